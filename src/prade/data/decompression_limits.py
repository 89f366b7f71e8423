"""Refusing decompression bombs: small files that would fill the memory when they are read."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from prade.core.errors import DataError

MOST_GROWTH = 1032  # no gzip file grows by a larger factor when it is decompressed
HONEST_GROWTH = 200  # real tables of text stay below this factor, however repetitive they are
ALWAYS = 2**30  # files of up to this many bytes, decompressed, are always accepted
PIECE = 2**20


def memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def refuse_gzip_bomb(path: Path) -> None:
    """Refuse a file that decompresses to more than `ALWAYS` bytes and more than `HONEST_GROWTH` times its size."""
    size = path.stat().st_size
    if size * MOST_GROWTH <= ALWAYS:
        return
    room = max(ALWAYS, size * HONEST_GROWTH)
    try:
        with gzip.open(path) as unpacked:
            while room >= 0 and (piece := unpacked.read(PIECE)):
                room -= len(piece)
    except (EOFError, OSError, zlib.error):
        return  # the reader will report what is wrong with the file
    if room < 0:
        raise DataError(
            f"{path} decompresses to more than {HONEST_GROWTH} times its size, which no real table does; check the file"
        )


def refuse_parquet_bomb(path: Path, rows: int, columns: int) -> None:
    """Refuse a file that declares more cells than the machine has bytes of memory."""
    if rows * columns > memory():
        raise DataError(
            f"{path} declares {rows:,} rows of {columns} columns, more than fit in memory; check the file, or use one "
            "with fewer rows"
        )
