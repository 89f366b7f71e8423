"""Files: writing them completely or not at all, and hashing them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from os import PathLike
from pathlib import Path
from threading import Lock

from prade.core.errors import DataError

_asking = Lock()  # for the mask of permissions: to ask for it is to change it, for all threads


@contextmanager
def replace_file(path: str | PathLike[str], *, owner_only: bool = False) -> Iterator[Path]:
    """A temporary path next to `path`. When the block ends without an error, the file written there replaces `path`.

    With `owner_only`, other users of the machine cannot read the file.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"{final.name} cannot be written: the folder {final.parent} does not exist; create it first")
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        if not owner_only:  # mkstemp creates a file that only its owner can read; open() gives these permissions
            with _asking:
                mask = os.umask(0)
                os.umask(mask)
            temporary.chmod(0o666 & ~mask)
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def sha256_of(file: BufferedIOBase) -> str:
    """SHA-256 (hexadecimal) of what an open file contains, read in blocks.

    >>> from io import BytesIO
    >>> sha256_of(BytesIO(b"AGE"))[:8]
    'ab864bbd'
    """
    return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replace_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """As `replace_file` for a folder, which is written next to `path` and takes its place when the block ends.

    A folder at `path` is replaced. What an earlier run left unfinished is removed first, so one run at a time may write
    to a path.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"{final.name} cannot be written: the folder {final.parent} does not exist; create it first")
    unfinished, replaced = (final.parent / f".{final.name}.{word}" for word in ("unfinished", "replaced"))
    if replaced.exists() and not final.exists():  # a power cut between the two renames
        os.replace(replaced, final)
    for left in (unfinished, replaced):
        shutil.rmtree(left, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        for written in (each for each in unfinished.rglob("*") if each.is_file()):
            with open(written, "rb+") as file:
                os.fsync(file.fileno())
        if final.exists():
            os.replace(final, replaced)
        os.replace(unfinished, final)
    finally:
        for left in (unfinished, replaced):
            shutil.rmtree(left, ignore_errors=True)
