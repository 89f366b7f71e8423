"""Finished batches of a long run, kept on disk until all of it is done: a run that was killed goes on where it was.

    with FinishedBatches.open(release.path / "unfinished-rows", key) as finished:
        for batch in batches:                                        # "0-17", say: letters, digits and hyphens
            if (path := finished.path(batch)) is None:               # None: not finished yet
                with keep_batch(finished.folder, batch, ".parquet") as temporary:
                    write_table(rows_of(batch), temporary)           # here, or on a worker that sees the folder
        ...                                                          # make the results from finished.path(batch)
        finished.remove()

`key` is a fingerprint of all that the batches depend on: release, public rows, settings, seed, versions (`run_key`).
Batches of another key are removed. A batch is written beside its name and renamed when it is complete; its name has
its checksum, so a damaged one counts as not finished. A second run on the same release takes a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prade.core.documents import Versioned, structured
from prade.core.errors import DataError
from prade.core.execution import versions
from prade.core.files import replace_file
from prade.release.release import file_hash, read_sealed, sealed_text

FORMAT = 1
JOB = "job.json"  # sealed: the format and the key
NAME = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True)
class FinishedBatches:
    """The folder of a run that is not complete, locked by it."""

    folder: Path

    @classmethod
    @contextmanager
    def open(cls, folder: Path, key: str) -> Iterator[FinishedBatches]:
        """The finished batches of the runs with this key in a folder, which is made if there is none.

        If another run works in the folder, the name is followed by -2, -3 and so on.
        """
        with _locked(folder) as mine:
            with disk_trouble_reported(mine):
                if not _is_of(mine, key):
                    _empty(mine)
                    with replace_file(mine / JOB) as temporary:
                        temporary.write_text(sealed_text({"format": FORMAT, "key": key}), encoding="utf-8")
                for left in mine.glob(".*"):  # half-written by a run that was killed
                    left.unlink(missing_ok=True)
            yield cls(mine)

    def path(self, batch: str) -> Path | None:
        """The file of a finished batch; None if there is none, or if it is damaged, which removes it."""
        return next(iter(self._undamaged(f"{_checked(batch)}.*")), None)

    def paths(self, suffix: str) -> list[Path]:
        """The files of all finished batches with this suffix, in the order of their names; damaged ones are removed."""
        return self._undamaged(f"*.*{suffix}")

    def _undamaged(self, pattern: str) -> list[Path]:
        found = []
        for path in sorted(self.folder.glob(pattern)):
            if path.name.split(".")[1] == file_hash(path):
                found.append(path)
            else:
                path.unlink(missing_ok=True)
        return found

    def remove(self) -> None:
        """Remove the folder: all is done, and the results are where they belong."""
        shutil.rmtree(self.folder, ignore_errors=True)


def run_key(*inputs: Any) -> str:
    """A key for `FinishedBatches.open`: a fingerprint of inputs, which JSON can hold, and of the versions in use."""
    return hashlib.sha256(json.dumps([*inputs, versions()], sort_keys=True).encode()).hexdigest()


@contextmanager
def keep_batch(folder: Path, batch: str, suffix: str) -> Iterator[Path]:
    """A temporary path; what is written there becomes the finished batch when the block ends without an error.

    It may be called in another process, or on another machine that sees the folder.
    """
    with disk_trouble_reported(folder):
        unnamed = folder / f"{_checked(batch)}{suffix}"
        with replace_file(unnamed) as temporary:
            yield temporary
            checksum = file_hash(temporary)
            final = folder / f"{batch}.{checksum}{suffix}"
        os.replace(unnamed, final)


@contextmanager
def disk_trouble_reported(folder: Path) -> Iterator[None]:
    """Raise what the system says about a full or missing disk as a DataError that says what to do."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written ({error.strerror or error}): make room there, or have its permissions "
            "changed, then run the same command again; what is finished is kept"
        ) from error


def _checked(batch: str) -> str:
    assert NAME.fullmatch(batch), batch
    return batch


def _is_of(folder: Path, key: str) -> bool:
    """Whether the folder has batches of this key, in a format that this version writes."""
    with suppress(DataError):
        content = read_sealed(folder / JOB)
        return structured(content, Versioned).format == FORMAT and content.get("key") == key
    return False


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


# ---------------------------------------------------------------------- the lock


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """The first of FOLDER, FOLDER-2, ... that no living run has, made if needed; this run has it until the block ends.

    Where the file system knows no locks, the folder is taken without one.
    """
    number, handle = 1, None
    while handle is None:
        mine = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with disk_trouble_reported(folder):
            mine.mkdir(exist_ok=True)
        handle = _lock(mine)
        if handle is None:
            number += 1
        elif not mine.exists():  # the run that had it removed it while we waited for it
            _release(handle)
            handle = None
    try:
        yield mine
    finally:
        _release(handle)


def _release(handle: int) -> None:
    if handle >= 0:
        os.close(handle)


def _lock(folder: Path) -> int | None:
    """The handle of a folder that is locked now, -1 where there are no locks, None if another run has it."""
    if sys.platform == "win32":
        return -1
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:
        os.close(handle)
        return -1
    return handle
