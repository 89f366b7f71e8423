"""Folders that belong to a process: held while it lives, so that others can tell what a killed one left behind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SPILL = "prade-spill-"


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a folder until this block or the process ends; False where another process holds it or nobody can tell."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except OSError:
            mine = False
        yield mine
    finally:
        os.close(handle)


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder for what does not fit in memory. It may come to hold private rows: what killed runs left is removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{SPILL}*"):
        with suppress(OSError), held(left) as abandoned:  # another user's, or gone meanwhile
            if abandoned:
                shutil.rmtree(left, ignore_errors=True)
    with ExitStack() as holding:
        own = held_folder(holding, lambda: Path(tempfile.mkdtemp(prefix=SPILL)))
        try:
            yield own
        finally:
            shutil.rmtree(own, ignore_errors=True)


def held_folder(holding: ExitStack, make: Callable[[], Path]) -> Path:
    """A new folder that `holding` holds; one that another run swept away before it was held is made anew."""
    while True:
        own = make()
        with suppress(FileNotFoundError):
            holding.enter_context(held(own, wait=True))
        if own.exists():
            return own
