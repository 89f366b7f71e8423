"""When two files are one: the same place, the same disk blocks, one the other's compressed form, or the same bytes.

    path      the same real path: links and ".." are followed
    inode     the same device and inode: hard links
    name      "x.csv" and "x.csv.gz" in one folder
    content   the same bytes, decompressed, in files that have at least one row

The first three look at names only. The last one reads contents, so whether it finds a pair can depend on rows; it
compares whole files, and finds a pair only where *every* row of one is in the other. Files without rows, such as the
empty parts that some exporters write, may be alike.
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

OPENING = 2**16  # bytes of content that tell most files apart
BLOCK = 2**20

Sides = Sequence[Sequence[str]]


def find_duplicate(sides: Sides) -> tuple[str, str] | None:
    """Two existing files of different sides that are one file, or None.

    >>> for name in ("x.csv", "x.csv.gz", "y.csv"):
    ...     size = Path(name).write_text("AGE\\n" if name == "y.csv" else "AGE\\n40\\n")
    >>> find_duplicate([["x.csv"], ["y.csv"]]), find_duplicate([["x.csv"], ["y.csv", "x.csv.gz"]])
    (None, ('x.csv', 'x.csv.gz'))
    """
    for mark in (os.path.realpath, _inode, _plain_name):
        if (pair := _pair(sides, mark)) is not None:
            return pair
    return _pair(_rivals(_rivals(sides, _opening), _size), content_hash)


def refuse_duplicates(files: Sequence[str]) -> None:
    """Refuse a list of files in which one is given twice."""
    pair = find_duplicate([[file] for file in files]) if len(files) > 1 else None
    if pair is None:
        return
    both = f"{pair[0]} is given twice" if pair[0] == pair[1] else f"{pair[0]} and {pair[1]} are the same file"
    raise DataError(
        f"{both} (by path, link, compression or content), and would count twice: give each file once, and "
        "check what a pattern matches"
    )


# ---------------------------------------------------------------------- pairs


def _pair(sides: Sides, mark: Callable[[str], Hashable]) -> tuple[str, str] | None:
    """The first two files of different sides that have the same mark; files whose mark is None have none."""
    seen: dict[Hashable, tuple[int, str]] = {}
    for side, files in enumerate(sides):
        for file in files:
            found = mark(file)
            home, first = seen.setdefault(found, (side, file))
            if found is not None and home != side:
                return first, file
    return None


def _rivals(sides: Sides, mark: Callable[[str], Hashable]) -> Sides:
    """The files whose mark is also that of a file of another side; the others need no closer look."""
    marks = [[mark(file) for file in files] for files in sides]
    where: dict[Hashable, set[int]] = {}
    for side, found in enumerate(marks):
        for each in found:
            where.setdefault(each, set()).add(side)
    return [
        [file for file, each in zip(files, found, strict=True) if each is not None and len(where[each]) > 1]
        for files, found in zip(sides, marks, strict=True)
    ]


# ---------------------------------------------------------------------- marks


def _inode(file: str) -> Hashable:
    with _readable(file):
        found = os.stat(file)
    return (found.st_dev, found.st_ino) if found.st_ino else None  # some file systems do not number their files


def _plain_name(file: str) -> Hashable:
    place = os.path.realpath(file)
    return place[: -len(".gz")] if _compressed(place) else place


def _opening(file: str) -> Hashable:
    """The first bytes of the content; None for a file without rows, which may be like another one."""
    with _readable(file), _content(file) as content:
        return hashlib.sha256(content.read(OPENING)).digest() if has_rows(file) else None


def _size(file: str) -> Hashable:
    return sum(map(len, _blocks(file))) if _compressed(file) else Path(file).stat().st_size


def content_hash(file: str) -> str:
    """SHA-256 of a file's content, decompressed."""
    digest = hashlib.sha256()
    for block in _blocks(file):
        digest.update(block)
    return digest.hexdigest()


# ---------------------------------------------------------------------- contents


def _compressed(file: str) -> bool:
    return file.lower().endswith(".gz")


@contextmanager
def _readable(file: str) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not a whole gzip file"
        raise DataError(f"{file} cannot be read ({why}): get access to it, or write it again") from None


def _content(file: str) -> Any:
    return gzip.open(file) if _compressed(file) else open(file, "rb")


def _blocks(file: str) -> Iterator[bytes]:
    with _readable(file), _content(file) as content:
        while block := content.read(BLOCK):
            yield block


def has_rows(file: str) -> bool:
    """Whether anything follows a CSV file's header, or a parquet file counts a row; a damaged file may have some."""
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
        except csv.Error:  # a field that is longer than the reader takes
            return True
