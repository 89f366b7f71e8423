"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from prade.core.errors import DataError


@contextmanager
def replace_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; what is written there replaces `path`, whole or not at all."""
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"there is no folder {final.parent} to write {final.name} in; make it first")
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes a file that only its owner reads; give it what a plain open() would have given.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
