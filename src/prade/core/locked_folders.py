"""Folders that a process locks while it lives, so that later processes can recognise what a killed one left behind.

All users share the system's temporary folder: an entry there with the name of a spill folder may be another user's, a
link or a pipe. So nothing is opened that could block or lead elsewhere. A folder is removed only if it is a real
folder, belongs to this user alone and carries our mark, and it is removed through the handle by which it was inspected,
not by its name.
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
MARK = ".prade-spill"  # an empty file in every spill folder, made once the folder is locked and removed last


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[int | None]:
    """Lock a real folder until this block or the process ends; yield its handle, or None if another process has it.

    Also yields None where locks are not available (on Windows and on some file systems). Raises OSError for anything
    but a real folder: it neither follows a link nor waits for a pipe.
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


def new_locked_folder(locks: ExitStack, make: Callable[[], Path]) -> tuple[Path, int | None]:
    """A new folder, locked until `locks` closes, and its handle; if it is removed before that, another is made."""
    while True:
        own, handle = make(), None
        with suppress(FileNotFoundError):
            handle = locks.enter_context(locked(own, wait=True))
        if own.exists():
            return own, handle


def remove_locked(folder: Path, handle: int) -> None:
    """Remove a folder and its contents through its handle; the mark goes last, so a killed removal leaves it marked."""
    for name in sorted(os.listdir(handle), key=lambda name: name == MARK):
        if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=handle)
        else:
            os.unlink(name, dir_fd=handle)
    os.rmdir(folder)


# ---------------------------------------------------------------------- spill folders


@contextmanager
def spill_folder() -> Iterator[Path]:
    """A folder for rows that do not fit in memory. They are private, so folders of killed runs are removed first."""
    temporary = Path(tempfile.gettempdir())
    with suppress(OSError):  # we may be allowed to write to the folder but not to list it
        for left in [temporary / name for name in os.listdir(temporary) if name.startswith(SPILL)]:
            with suppress(OSError), locked(left) as handle:  # not a folder, another user's, or already gone
                if handle is not None and _is_spill(handle):
                    remove_locked(left, handle)
    with ExitStack() as locks:
        own, handle = new_locked_folder(locks, lambda: Path(tempfile.mkdtemp(prefix=SPILL)))
        if handle is not None:
            os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=handle))
        try:
            yield own
        finally:
            if handle is None:
                shutil.rmtree(own, ignore_errors=True)
            else:
                with suppress(OSError):
                    remove_locked(own, handle)


def _is_spill(handle: int) -> bool:
    """Whether a locked folder belongs to this user alone and one of their runs marked it."""
    folder, mark = os.fstat(handle), os.stat(MARK, dir_fd=handle, follow_symlinks=False)
    alone = stat.S_IMODE(folder.st_mode) == 0o700 and stat.S_ISREG(mark.st_mode)
    return alone and folder.st_uid == mark.st_uid == os.geteuid()
