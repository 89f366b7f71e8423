"""Finding duplicate files. Two files are duplicates if they have the same

    path      after following links and ".."
    inode     on the same device: hard links
    name      apart from compression: "x.csv" and "x.csv.gz" in one folder
    content   after decompression, if they have at least one row

The first three tests do not read the files. The last one does, so its result can depend on rows; but it compares whole
files, and finds a pair only if *every* row of one file is in the other. Files without rows, such as the empty files
that some exporters write, may be identical.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from prade.core.errors import DataError
from prade.core.files import sha256_of

OPENING = 2**16  # bytes: enough to tell most files apart
BLOCK = 2**20

Sides = Sequence[Sequence[str]]


def find_duplicate(sides: Sides) -> tuple[str, str] | None:
    """Two existing files, listed in different `sides`, that are duplicates of each other; None if there are none.

    >>> for name in ("x.csv", "x.csv.gz", "y.csv"):
    ...     size = Path(name).write_text("AGE\\n" if name == "y.csv" else "AGE\\n40\\n")
    >>> find_duplicate([["x.csv"], ["y.csv"]]), find_duplicate([["x.csv"], ["y.csv", "x.csv.gz"]])
    (None, ('x.csv', 'x.csv.gz'))
    """
    return find_same_file(sides) or find_same_content(sides)


def find_same_file(sides: Sides) -> tuple[str, str] | None:
    """As `find_duplicate`, by path, inode and name only: no file is read."""
    return next(filter(None, (_pair(sides, mark) for mark in (os.path.realpath, _inode, _plain_name))), None)


def find_same_content(sides: Sides) -> tuple[str, str] | None:
    """As `find_duplicate`, by content only: files are read."""
    return _pair(_candidates(_candidates(sides, _opening), _size), content_hash)


def refuse_duplicates(files: Sequence[str], find: Callable[[Sides], tuple[str, str] | None] = find_duplicate) -> None:
    """Refuse a list that contains the same file twice."""
    pair = find([[file] for file in files]) if len(files) > 1 else None
    if pair is None:
        return
    both = f"{pair[0]} is given twice" if pair[0] == pair[1] else f"{pair[0]} and {pair[1]} are the same file"
    raise DataError(
        f"{both} (by path, link, compression or content), so it would count twice; give each file once, and check "
        "which files your pattern matches"
    )


# ---------------------------------------------------------------------- pairs


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


def _candidates(sides: Sides, mark: Callable[[str], Hashable]) -> Sides:
    """The files that share their mark with a file from another side; only these need a closer look."""
    marks = [[mark(file) for file in files] for files in sides]
    sides_with: dict[Hashable, set[int]] = {}
    for side, values in enumerate(marks):
        for value in values:
            sides_with.setdefault(value, set()).add(side)
    return [
        [file for file, value in zip(files, values, strict=True) if value is not None and len(sides_with[value]) > 1]
        for files, values in zip(sides, marks, strict=True)
    ]


# ---------------------------------------------------------------------- marks


def _inode(file: str) -> Hashable:
    with _readable(file):
        status = os.stat(file)
    return (status.st_dev, status.st_ino) if status.st_ino else None  # some file systems have no inode numbers


def _plain_name(file: str) -> Hashable:
    path = os.path.realpath(file)
    return path[: -len(".gz")] if _compressed(path) else path


def _opening(file: str) -> Hashable:
    """Hash of the first bytes of the content; None for a file without rows, which may have an identical copy."""
    with _readable(file), _content(file) as content:
        return hashlib.sha256(content.read(OPENING)).digest() if has_rows(file) else None


def _size(file: str) -> Hashable:
    if not _compressed(file):
        return Path(file).stat().st_size
    with _readable(file), _content(file) as content:
        return sum(map(len, iter(lambda: content.read(BLOCK), b"")))


def content_hash(file: str) -> str:
    """SHA-256 of a file's content after decompression."""
    with _readable(file), _content(file) as content:
        return sha256_of(content)


# ---------------------------------------------------------------------- contents


def _compressed(file: str) -> bool:
    return file.lower().endswith(".gz")


@contextmanager
def _readable(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not a complete gzip file"
        raise DataError(f"{file} cannot be read ({why}); check its permissions, or create it again") from None


def _content(file: str) -> Any:
    return gzip.open(file) if _compressed(file) else open(file, "rb")


def has_rows(file: str) -> bool:
    """Whether a CSV or parquet file has at least one row; True for a damaged file, which may have some."""
    if file.lower().endswith(".parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return bool(pq.read_metadata(file).num_rows)
        except pa.ArrowException:
            return True
    with _readable(file), _content(file) as content:
        records = csv.reader(TextIOWrapper(content, encoding="utf-8-sig", errors="replace", newline=""))
        try:
            return next(records, None) is not None and next(records, None) is not None
        except csv.Error:  # a field is too long for the reader
            return True
