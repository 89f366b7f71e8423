"""The hidden folder in which a release is prepared, next to where the finished release will be.

The manifest is written last and seals the folder. A sealed folder holds everything that was paid for, and any run may
finish it. An unsealed folder is useless once its run has ended, and later runs remove it.
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
from prade.core.files import locked, new_locked_folder, remove_locked, replace_file
from prade.release.release import EXTRACT, HASHED, MANIFEST, sealed_text

UNFINISHED = ".unfinished"
BYTES_PER_COUNT = 32  # more than a row of the file takes
SPARE_BYTES = 2**20


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A new folder next to `target`; it is removed when this block ends, unless it was sealed or renamed."""

    def make() -> Path:
        staging = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
        try:
            staging.mkdir()
        except OSError as error:
            raise unwritable(staging, error) from None
        return staging

    with ExitStack() as locks:
        staging, _ = new_locked_folder(locks, make)
        try:
            yield staging
        finally:
            if not is_sealed(staging):
                shutil.rmtree(staging, ignore_errors=True)


def need_room(counts: int, staging: Path) -> None:
    """Notice a full disk before the budget is spent."""
    needed, free = counts * BYTES_PER_COUNT + SPARE_BYTES, shutil.disk_usage(staging).free
    if free < needed:
        raise DataError(
            f"{staging.parent} has {free:,} bytes free, but the release may need {needed:,}: free some space"
        )


def unfinished(target: Path) -> list[Path]:
    """The staging folders next to `target`: real folders only, not links or pipes that have such a name."""
    if not target.parent.is_dir():
        return []
    pattern = re.compile(re.escape(f".{target.name}.") + "[0-9a-f]{16}" + re.escape(UNFINISHED))
    with os.scandir(target.parent) as entries:
        names = [each.name for each in entries if pattern.fullmatch(each.name) and each.is_dir(follow_symlinks=False)]
    return [target.with_name(name) for name in sorted(names)]


def is_sealed(staging: Path) -> bool:
    """Whether the folder holds everything that was paid for."""
    return (staging / MANIFEST).is_file()


def sweep(target: Path) -> None:
    """Remove incomplete files that killed or overtaken runs left in a release and next to it."""
    with suppress(OSError):  # leftovers do no harm
        for stray in target.glob(f".{EXTRACT}.*"):
            stray.unlink(missing_ok=True)
        for staging in unfinished(target):
            with suppress(OSError), locked(staging) as handle:
                if handle is not None and _is_abandoned(handle):
                    remove_locked(staging, handle)


def _is_abandoned(handle: int) -> bool:
    """Whether a locked folder belongs to this user and holds nothing but what a run writes before it seals."""
    starts = tuple(f".{name}." for name in (*HASHED, MANIFEST))  # names of files that are being written
    known = all(name in HASHED or name.startswith(starts) for name in os.listdir(handle))
    return known and os.fstat(handle).st_uid == os.geteuid()


def unwritable(staging: Path, error: OSError) -> DataError:
    """The error for a folder that cannot be written to, raised before any budget is spent."""
    return DataError(f"{staging} cannot be written ({reason(error)}): fix this, or choose another folder")


def reason(error: Exception) -> str:
    """The cause in a few words. Only the operating system's messages and our own are sure not to quote private data."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error.args[0]) if isinstance(error, PradeError) else type(error).__name__


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file of a release, completely or not at all, and durably: the commit that follows relies on it."""
    with replace_file(path) as temporary:
        temporary.write_text(sealed_text(content), encoding="utf-8")
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports it; the files themselves already are."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # some network file systems cannot; losing what was paid for would be worse
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
