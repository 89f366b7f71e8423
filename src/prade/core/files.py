"""Files: writing them completely or not at all, finding duplicates, and folders that a living process locks."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError


@contextmanager
def replace_file(path: str | PathLike[str], *, owner_only: bool = False) -> Iterator[Path]:
    """A temporary path next to `path`. When the block ends without an error, the file written there replaces `path`.

    With `owner_only`, other users of the machine cannot read the file.
    """
    final = _in_a_folder(path)
    temporary = final.parent / f".{final.name}.{secrets.token_hex(8)}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if owner_only else 0o666))
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def _in_a_folder(path: str | PathLike[str]) -> Path:
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"{final.name} cannot be written: the folder {final.parent} does not exist; create it first")
    return final


@contextmanager
def replace_folder(path: str | PathLike[str]) -> Iterator[Path]:
    """As `replace_file` for a folder. What an earlier run left unfinished is removed: one run at a time may write."""
    final = _in_a_folder(path)
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


# Two files are duplicates if they have the same path after following links and "..", the same inode (hard links), the
# same name apart from compression ("x.csv" and "x.csv.gz" in one folder), or the same content after decompression, and
# at least one row. Files without rows, such as the empty files that some exporters write, may be identical.

OPENING = 2**16  # bytes: enough to tell most files apart

Sides = Sequence[Sequence[str]]


def find_duplicate(sides: Sides) -> tuple[str, str] | None:
    """Two existing files, listed in different `sides`, that are duplicates of each other; None if there are none."""
    return find_same_file(sides) or find_same_content(sides)


def find_same_file(sides: Sides) -> tuple[str, str] | None:
    """As `find_duplicate`, by path, inode and name only: no file is read."""
    return next(filter(None, (_pair(sides, mark) for mark in (os.path.realpath, _inode, _plain_name))), None)


def find_same_content(sides: Sides) -> tuple[str, str] | None:
    """As `find_duplicate`, by content only: files are read, whole ones only where their openings agree."""
    openings = [[_opening(file) for file in files] for files in sides]
    common = Counter(mark for marks in openings for mark in marks)
    common[None] = 0  # files without rows may be alike
    pairs = [zip(files, marks, strict=True) for files, marks in zip(sides, openings, strict=True)]
    return _pair([[file for file, mark in each if common[mark] > 1] for each in pairs], content_hash)


def refuse_duplicates(files: Sequence[str], find: Callable[[Sides], tuple[str, str] | None] = find_duplicate) -> None:
    """Refuse a list that contains the same file twice."""
    if (pair := find([[file] for file in files]) if len(files) > 1 else None) is not None:
        same = f"{pair[0]} and {pair[1]} are the same file (by path, link, compression or content)"
        raise DataError(f"{same}, so it would count twice; give each file once: see which ones your pattern matches")


def _pair(sides: Sides, mark: Callable[[str], Hashable]) -> tuple[str, str] | None:
    """The first two files from different sides with the same mark; a mark of None matches nothing."""
    seen: dict[Hashable, tuple[int, str]] = {}
    for side, files in enumerate(sides):
        for file in files:
            value = mark(file)
            first_side, first = seen.setdefault(value, (side, file))
            if value is not None and first_side != side:
                return first, file
    return None


def _inode(file: str) -> Hashable:
    with _readable(file):
        status = os.stat(file)
    return (status.st_dev, status.st_ino) if status.st_ino else None  # some file systems have no inode numbers


def _plain_name(file: str) -> Hashable:
    path = os.path.realpath(file)
    return path[: -len(".gz")] if _compressed(path) else path


def _opening(file: str) -> bytes | None:
    """The hash of the first bytes of the content; None for a file without rows, which may have an identical copy."""
    with _readable(file), opened(file) as content:
        opening = content.read(OPENING)
    if file.lower().endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        with suppress(pa.ArrowException, OSError):  # a damaged file may have rows
            if not pq.read_metadata(file).num_rows:
                return None
    elif len(opening) < OPENING:
        records = csv.reader(StringIO(opening.decode("utf-8-sig", "replace"), newline=""))
        if len(list(islice(records, 2))) < 2:
            return None
    return hashlib.sha256(opening).digest()


def content_hash(file: str) -> str:
    """SHA-256 of a file's content after decompression."""
    with _readable(file), opened(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _compressed(file: str | PathLike[str]) -> bool:
    return os.fspath(file).lower().endswith(".gz")


@contextmanager
def _readable(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not a complete gzip file"
        raise DataError(f"{file} cannot be read ({why}); check its permissions, or create it again") from None


def opened(file: str | PathLike[str]) -> Any:
    """The bytes of a file, decompressed."""
    return gzip.open(file) if _compressed(file) else open(file, "rb")


SPILL = "prade-spill-"
MARK = ".prade-spill"  # an empty file in every spill folder, made once the folder is locked and removed last


@contextmanager
def locked(folder: Path, *, wait: bool = False, without: int | None = None) -> Iterator[int | None]:
    """Lock a real folder until this block or the process ends; yield its handle, or None if another process has it.

    Where locks are not available (on Windows and on some file systems), yield `without`. Raises OSError for anything
    but a real folder: it neither follows a link nor waits for a pipe.
    """
    if sys.platform == "win32":
        yield without
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        mine: int | None = handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            mine = None
        except OSError:
            mine = without
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


def paths_of(source: Any) -> list[str] | None:
    """A path, or a list of paths, as texts; None for anything else."""
    if isinstance(source, (str, PathLike)):
        return None if "://" in str(source) else [str(source)]
    if isinstance(source, Sequence) and source and all(isinstance(each, (str, PathLike)) for each in source):
        return [str(each) for each in source]
    return None


def found_files(paths: Sequence[str]) -> list[str]:
    """The files that paths and globs match."""
    files: list[str] = []
    for text in paths:
        path = Path(text)
        is_pattern = any(mark in text for mark in "*?[") and not path.exists()
        root = Path(path.anchor) if path.is_absolute() else Path()  # Path.glob does not follow links to folders
        try:
            matches = sorted(map(str, root.glob(str(path.relative_to(path.anchor))))) if is_pattern else [text]
        except ValueError as error:
            raise DataError(f"{text} is not a pattern of files: {str(error).lower()}") from None
        if not matches or not all(Path(each).is_file() for each in matches):
            raise DataError(f"there is no file {text}; check the path")
        files += matches
    return files


def need_folder(path: str | PathLike[str]) -> None:
    """Check that `path` can be written, so that a run fails before the work and not after it."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise DataError(f"you don't have permission to write to {folder}; choose another folder")
