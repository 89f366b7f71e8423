"""Refuse a private source that is also the public table, or one of its files.

Each private file is compared with each public one as `prade.core.duplicate_files` describes. Tables in memory are
compared by the memory that holds their cells, never by the cells themselves: two tables with equal cells in different
memory pass, because a refusal must not depend on a private cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prade.core.duplicate_files import find_same_content, find_same_file
from prade.core.errors import DataError
from prade.data.public_files import PublicFiles
from prade.data.tables import column_names


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
        root = Path(path.anchor) if path.is_absolute() else Path()
        matches = sorted(map(str, root.glob(str(path.relative_to(path.anchor))))) if is_pattern else [text]
        if not matches or not all(Path(each).is_file() for each in matches):
            raise DataError(f"there is no file {text}; check the path")
        files += matches
    return files


def refuse_public(private: Any, *public: Any) -> None:
    """Refuse a private source that is among the public tables or files, by identity or by content."""
    refuse_same_files(private, *public)
    refuse_same_contents(private, *public)


def refuse_same_files(private: Any, *public: Any) -> None:
    """Refuse a private source (an argument or result of `open_source`) that is itself one of the public ones.

    Files are compared by path, link and name, tables in memory by the memory of their cells: no cell is read, so this
    may come before anything is reserved. None, and files that do not exist, are skipped.
    """
    origin = getattr(private, "origin", private)
    if (pair := find_same_file(_sides(origin, public))) is not None:
        raise _refusal(f"{pair[0]} is the public file {pair[1]} (by path, link or compression)")
    if not _is_lazy(origin):  # whose rows would have to be computed
        _refuse_shared_memory(origin, public)


def refuse_same_contents(private: Any, *public: Any) -> None:
    """Refuse private files with the same contents as one of the public files, and a LazyFrame of a public table.

    This reads the private rows, so its outcome is about private rows: in a run of a plan from outside, it belongs
    after the reservation. The public files themselves are compared, never hashes that a plan brings, because these
    could be guesses.
    """
    origin = getattr(private, "origin", private)
    if (pair := find_same_content(_sides(origin, public))) is not None:
        raise _refusal(f"{pair[0]} has the same content as the public file {pair[1]}")
    if _is_lazy(origin):
        _refuse_shared_memory(origin, public)


def _refuse_shared_memory(private: Any, public: Sequence[Any]) -> None:
    if paths_of(private) is not None or isinstance(private, str):  # other texts are addresses of databases
        return
    for each in public:
        in_memory = each is not None and not isinstance(each, PublicFiles) and paths_of(each) is None
        if in_memory and (shared := _shared(private, each)):
            raise _refusal(shared)


def _is_lazy(table: Any) -> bool:
    return type(table).__name__ == "LazyFrame"


def _sides(private: Any, public: Sequence[Any]) -> list[list[str]]:
    """The private files, and the public ones that exist; none of either if one of them is not in files."""
    paths = paths_of(private)
    named = [each.files if isinstance(each, PublicFiles) else paths_of(each) or () for each in public]
    files = [file for each in named for file in each if Path(file).is_file()]
    return [found_files(paths), files] if paths is not None and files else [[], []]


def _refusal(what: str) -> DataError:
    return DataError(
        f"the private table is also given as the public table: {what}. Rows of the public table reappear among the "
        "synthetic rows: give a table that is already public, such as last year's release or another region's"
    )


# ---------------------------------------------------------------------- tables in memory


class Region(NamedTuple):
    """The memory of some cells, addressed in bits because Arrow keeps eight true/false cells in a byte.

    `cells` is an array that may have gaps.
    """

    start: int
    end: int
    cells: Any = None

    def shares(self, other: Region) -> bool:
        """Whether some cell is in both regions."""
        if not (self.start < other.end and other.start < self.end):
            return False
        return self.cells is None or other.cells is None or bool(np.shares_memory(self.cells, other.cells))


def _shared(private: Any, public: Any) -> str | None:
    """What two tables in memory share: the object itself, or memory that holds cells of a column in both."""
    if private is public:
        return "they are the same object"
    # All arrays are kept until the end: the memory of a freed one might be reused for the next.
    theirs, own = _columns(public), _columns(private)
    regions = [region for cells in theirs.values() for region in _regions(cells)]
    starts, ends = (np.array([region[side] for region in regions], np.int64) for side in (0, 1))
    for name, cells in own.items():
        for region in _regions(cells):
            near = np.flatnonzero((starts < region.end) & (ends > region.start))
            if any(region.shares(regions[each]) for each in near):
                return f"they share the memory of column {name!r}"
    return None


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays, without copying them; none for a table that holds no rows itself."""
    table = _collected(table) if _is_lazy(table) else table
    if table is None:
        return {}
    return {name: _array(table[name]) for name in column_names(table)}


def _collected(lazy: Any) -> Any:
    """The table of a LazyFrame that is already in memory; None if files would have to be read again."""
    with suppress(Exception):  # its error might quote cells; opening the source has already reported what it may
        return lazy.collect() if " SCAN " not in lazy.explain(optimized=False) else None
    return None


def _array(column: Any) -> Any:
    """A column's cells as its library stores them, without a conversion, which could fail and quote a cell."""
    import pyarrow as pa

    if isinstance(column, (list, np.ndarray, pa.Array, pa.ChunkedArray)):
        return column
    if hasattr(column, "to_arrow"):  # polars
        import polars as pl

        with suppress(Exception):  # types that Arrow lacks, such as Int128
            return column.to_arrow(compat_level=pl.CompatLevel.newest())  # older levels copy texts
        return ()
    if isinstance(getattr(column, "dtype", None), np.dtype):  # pandas, from here on
        return column.to_numpy()
    stored = getattr(column, "array", column)
    inner = (getattr(stored, name, None) for name in ("_pa_array", "_ndarray", "_data"))  # pandas has no public names
    return next((each for each in inner if isinstance(each, (np.ndarray, pa.Array, pa.ChunkedArray))), stored)


def _regions(column: Any) -> Iterator[Region]:
    """The memory of a column's cells; nothing if it has no cells or does not tell where they are."""
    if isinstance(column, np.ndarray) and column.size:
        steps = [(size - 1) * step for size, step in zip(column.shape, column.strides, strict=True)]
        address = column.__array_interface__["data"][0]
        first, last = (address + sum(cut(0, step) for step in steps) for cut in (min, max))
        yield Region(8 * first, 8 * (last + column.itemsize), column)
    elif isinstance(column, np.ndarray) or not hasattr(column, "__len__") or not len(column):
        return
    elif hasattr(column, "chunks"):
        for chunk in column.chunks:
            yield from _regions(chunk)
    elif hasattr(column, "buffers"):
        yield from _arrow_regions(column)
    else:
        yield Region(8 * id(column), 8 * id(column) + 1)


def _arrow_regions(cells: Any) -> Iterator[Region]:
    """The memory of an Arrow array's cells, or of what refers to each: an offset, a view, the code of a dictionary."""
    import pyarrow.types as kinds

    cells = getattr(cells, "storage", cells)  # of an extension type
    cells = getattr(cells, "indices", cells)  # of a dictionary, whose values two tables may rightly share
    if kinds.is_struct(cells.type):
        for number in range(cells.type.num_fields):
            yield from _regions(cells.field(number))
        return
    bits = _bits(cells.type)
    buffers = cells.buffers()
    if bits and len(buffers) > 1 and buffers[1] is not None:  # the first buffer marks missing cells
        start = 8 * buffers[1].address + bits * cells.offset
        yield Region(start, start + bits * len(cells))


def _bits(kind: Any) -> int:
    """Bits per cell in the data buffer of an Arrow type; 0 for types that have no such buffer."""
    import pyarrow.types as kinds

    if kinds.is_fixed_size_list(kind) or kinds.is_run_end_encoded(kind) or kinds.is_null(kind):
        return 0
    if kinds.is_union(kind):
        return 8
    if str(kind) in ("string_view", "binary_view"):
        return 128
    if kinds.is_large_string(kind) or kinds.is_large_binary(kind) or kinds.is_large_list(kind):
        return 64
    if kinds.is_string(kind) or kinds.is_binary(kind) or kinds.is_list(kind) or kinds.is_map(kind):
        return 32
    return (
        int(kind.bit_width)
        if kinds.is_primitive(kind) or kinds.is_fixed_size_binary(kind) or kinds.is_decimal(kind)
        else 0
    )
