"""Where a release is made before it has its name: a hidden folder beside the release's place.

The manifest is written last and seals it: a sealed folder holds all that was paid for, and any run may finish it. A
folder without a seal is worth nothing once its run is gone, and later runs remove it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.files import replace_file
from prade.measuring.held import held, held_folder, remove_held
from prade.release.release import EXTRACT, HASHED, MANIFEST, sealed_text

UNFINISHED = ".unfinished"


@contextmanager
def staging_folder(place: Path) -> Iterator[Path]:
    """A new folder beside `place`; it goes away with this block, unless it has been sealed or renamed."""

    def make() -> Path:
        staging = place.with_name(f".{place.name}.{secrets.token_hex(8)}{UNFINISHED}")
        try:
            staging.mkdir()
        except OSError as error:
            raise unwritable(staging, error) from None
        return staging

    with ExitStack() as holding:
        staging, _ = held_folder(holding, make)
        try:
            yield staging
        finally:
            if not is_sealed(staging):
                shutil.rmtree(staging, ignore_errors=True)


def unfinished(place: Path) -> list[Path]:
    """The folders that runs for this place have beside it: real ones, no links and no pipes of such a name."""
    if not place.parent.is_dir():
        return []
    name = re.compile(re.escape(f".{place.name}.") + "[0-9a-f]{16}" + re.escape(UNFINISHED))
    with os.scandir(place.parent) as beside:
        found = [each.name for each in beside if name.fullmatch(each.name) and each.is_dir(follow_symlinks=False)]
    return [place.with_name(each) for each in sorted(found)]


def is_sealed(staging: Path) -> bool:
    """Whether everything that was paid for is in the folder."""
    return (staging / MANIFEST).is_file()


def sweep(place: Path) -> None:
    """Remove what runs left incomplete beside a release, and in it, when they were killed or overtaken."""
    with suppress(OSError):  # it is only a matter of tidiness
        for stray in place.glob(f".{EXTRACT}.*"):
            stray.unlink(missing_ok=True)
        for staging in unfinished(place):
            with suppress(OSError), held(staging) as handle:
                if handle is not None and _is_abandoned(handle):
                    remove_held(staging, handle)


def _is_abandoned(handle: int) -> bool:
    """Whether a held folder is this user's and has nothing in it but what a run writes before it seals."""
    starts = tuple(f".{name}." for name in (*HASHED, MANIFEST))  # of files that are being written
    known = all(name in HASHED or name.startswith(starts) for name in os.listdir(handle))
    return known and os.fstat(handle).st_uid == os.geteuid()


def unwritable(staging: Path, error: OSError) -> DataError:
    """The error for a folder that cannot be written, before the budget is touched."""
    return DataError(
        f"{staging} cannot be written ({reason(error)}): nothing was spent; mend that, or give another folder"
    )


def reason(error: Exception) -> str:
    """Why, in a few words; only the system's and our own words are sure to quote nothing private."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) if isinstance(error, PradeError) else type(error).__name__


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file of a release, whole or not at all, and durably: what is committed next relies on it."""
    with replace_file(path) as temporary:
        temporary.write_text(sealed_text(content), encoding="utf-8")
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system can; the files themselves are durable already."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # some network file systems cannot; that is no reason to lose what was paid for
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
