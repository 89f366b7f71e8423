"""Whether two tables in memory are one, or have cells in the same memory. No cell is read or compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from prade.data.tables import column_names


def is_lazy(table: Any) -> bool:
    """Whether a table is a LazyFrame of polars, whose rows are yet to be computed."""
    return type(table).__name__ == "LazyFrame"


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


def shared_memory(private: Any, public: Any) -> str | None:
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
    table = _collected(table) if is_lazy(table) else table
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
