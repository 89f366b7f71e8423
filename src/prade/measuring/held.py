"""Folders that belong to a process: held while it lives, so that others can tell what a killed one left behind.

The system's temporary folder is everybody's: whatever has the name of a spill folder there may be somebody else's, a
link or a pipe. So nothing is opened that could block or lead elsewhere, only folders that are real, this user's alone
and carry our mark are removed, and that by the handle through which they were looked at, not by their name.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SPILL = "prade-spill-"
MARK = ".prade-spill"  # an empty file in every spill folder, made when the folder is held and removed last


@contextmanager
def held(folder: Path, *, wait: bool = False) -> Iterator[int | None]:
    """Hold a real folder until this block or the process ends; its handle, None where another process holds it.

    None also where nobody can tell (on Windows, and on file systems without locks). OSError for all but a real folder:
    a link is not followed, a pipe not waited for.
    """
    if sys.platform == "win32":
        yield None
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mine: int | None = handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            mine = None
        yield mine
    finally:
        os.close(handle)


def held_folder(holding: ExitStack, make: Callable[[], Path]) -> tuple[Path, int | None]:
    """A new folder that `holding` holds, and its handle; one that is gone before it was held is made anew."""
    while True:
        own, handle = make(), None
        with suppress(FileNotFoundError):
            handle = holding.enter_context(held(own, wait=True))
        if own.exists():
            return own, handle


def remove_held(folder: Path, handle: int) -> None:
    """Remove a folder and all that is in it through its handle, the mark last: who is killed here leaves it marked."""
    for name in sorted(os.listdir(handle), key=lambda name: name == MARK):
        if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=handle)
        else:
            os.unlink(name, dir_fd=handle)
    os.rmdir(folder)


# ---------------------------------------------------------------------- spill folders


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder for what does not fit in memory. It may come to hold private rows: what killed runs left is removed."""
    temporary = Path(tempfile.gettempdir())
    with suppress(OSError):  # a folder that may be written but not listed
        for left in [temporary / name for name in os.listdir(temporary) if name.startswith(SPILL)]:
            with suppress(OSError), held(left) as handle:  # not a folder, another user's, or gone meanwhile
                if handle is not None and _is_spill(handle):
                    remove_held(left, handle)
    with ExitStack() as holding:
        own, handle = held_folder(holding, lambda: Path(tempfile.mkdtemp(prefix=SPILL)))
        if handle is not None:
            os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=handle))
        try:
            yield own
        finally:
            if handle is None:
                shutil.rmtree(own, ignore_errors=True)
            else:
                with suppress(OSError):
                    remove_held(own, handle)


def _is_spill(handle: int) -> bool:
    """Whether a held folder is this user's alone and was marked by a run of theirs."""
    folder, mark = os.fstat(handle), os.stat(MARK, dir_fd=handle, follow_symlinks=False)
    alone = stat.S_IMODE(folder.st_mode) == 0o700 and stat.S_ISREG(mark.st_mode)
    return alone and folder.st_uid == mark.st_uid == os.geteuid()
