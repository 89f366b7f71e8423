"""Small files that would fill the memory: refused before they are read."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from prade.core.errors import DataError

MOST_GROWTH = 1032  # times its size: nothing that gzip packs becomes larger when it is unpacked
HONEST_GROWTH = 200  # a table of text, however dull, stays below
ALWAYS = 2**30  # bytes that are unpacked without a question
PIECE = 2**20


def memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def refuse_gzip_bomb(path: Path) -> None:
    """Complain about a file that becomes more than `ALWAYS` bytes and `HONEST_GROWTH` times its size."""
    size = path.stat().st_size
    if size * MOST_GROWTH <= ALWAYS:
        return
    room = max(ALWAYS, size * HONEST_GROWTH)
    try:
        with gzip.open(path) as unpacked:
            while room >= 0 and (piece := unpacked.read(PIECE)):
                room -= len(piece)
    except (EOFError, OSError, zlib.error):
        return  # the reader says what is wrong with it
    if room < 0:
        raise DataError(f"{path} unpacks to more than {HONEST_GROWTH} times its size, which no table does; check it")


def refuse_parquet_bomb(path: Path, rows: int, columns: int) -> None:
    """Complain about a file that declares more cells than the machine has bytes."""
    if rows * columns > memory():
        raise DataError(
            f"{path} declares {rows:,} rows of {columns} columns, more than fit in memory; check it, or take fewer rows"
        )
