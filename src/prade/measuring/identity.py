"""What is private is not public: a private source is refused that is also the public table, or one of its files.

Files are compared as `prade.core.duplicate_files` says, all of them with all of them. Tables in memory are compared by
where their cells are, never by what is in them: two tables with equal cells in different places pass, because a
refusal must not depend on a private cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prade.core.duplicate_files import content_hash, find_duplicate, has_rows
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
    """The files that paths and globs stand for."""
    found: list[str] = []
    for path in paths:
        place = Path(path)
        pattern = any(mark in path for mark in "*?[") and not place.exists()
        root = Path(place.anchor) if place.is_absolute() else Path()
        files = sorted(map(str, root.glob(str(place.relative_to(place.anchor))))) if pattern else [path]
        if not files or not all(Path(each).is_file() for each in files):
            raise DataError(f"there is no file {path}; check the path")
        found += files
    return found


def refuse_public(private: Any, *public: Any) -> None:
    """Refuse a private source (what `open_source` takes, or gave) that is among the public tables or files.

    Public files that are not there are compared by the hashes of their contents, where a `PublicFiles` has them;
    others, and what is None, are passed over: they cannot be compared.
    """
    private = getattr(private, "origin", private)
    known = [each for each in public if each is not None]
    paths = paths_of(private)
    if paths is not None:
        _refuse_files(paths, known)
        return
    for each in known if not isinstance(private, str) else ():  # a text that is not a path is a database's address
        in_memory = not isinstance(each, PublicFiles) and paths_of(each) is None
        if in_memory and (shared := _shared(private, each)):
            raise _refusal(f"{shared} of the private table and of the public one")


def _refuse_files(paths: Sequence[str], public: Sequence[Any]) -> None:
    """Refuse private files that are public ones, or have the recorded contents of public files that were moved."""
    named = [each.files if isinstance(each, PublicFiles) else paths_of(each) or () for each in public]
    files = [file for each in named for file in each if Path(file).is_file()]
    pair = find_duplicate([found_files(paths), files]) if files else None
    if pair is not None:
        raise _refusal(f"{pair[0]} is the public file {pair[1]} (by path, link, compression or content)")
    recorded = {each for table in public if isinstance(table, PublicFiles) for each in table.sha256}
    for file in found_files(paths) if recorded else ():
        if content_hash(file) in recorded and has_rows(file):
            raise _refusal(f"{file} has the content of a public file that the plan was made with")


def _refusal(what: str) -> DataError:
    return DataError(
        f"the private table is also given as public: {what}, and rows of the public table reappear in synthetic ones. "
        "Nothing was spent: give a public table that is public already, such as last year's release or another region's"
    )


# ---------------------------------------------------------------------- tables in memory


class Place(NamedTuple):
    """Where cells are, in bits: Arrow keeps eight true/false cells in a byte. `cells`: an array that may have gaps."""

    start: int
    end: int
    cells: Any = None

    def shares(self, other: Place) -> bool:
        """Whether a cell is in both places."""
        if not (self.start < other.end and other.start < self.end):
            return False
        return self.cells is None or other.cells is None or bool(np.shares_memory(self.cells, other.cells))


def _shared(private: Any, public: Any) -> str | None:
    """What two tables in memory have in common: the object, or memory in which both have cells of a column."""
    if private is public:
        return "the same object"
    # All arrays are kept until the end: the memory of one that is gone may be given to the next.
    theirs, own = _columns(public), _columns(private)
    places = [place for cells in theirs.values() for place in _places(cells)]
    starts, ends = (np.array([place[side] for place in places], np.int64) for side in (0, 1))
    for name, cells in own.items():
        for place in _places(cells):
            near = np.flatnonzero((starts < place.end) & (ends > place.start))
            if any(place.shares(places[each]) for each in near):
                return f"the same column {name!r}"
    return None


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays in the place where they are; none for what holds no rows itself."""
    if type(table).__name__ == "LazyFrame":
        table = _collected(table)
    if table is None or type(table).__module__.startswith("ibis."):
        return {}
    return {name: _array(table[name]) for name in column_names(table)}


def _collected(lazy: Any) -> Any:
    """The table of a LazyFrame that is in memory already; None where files would have to be read again."""
    with suppress(Exception):  # what its steps say of cells is not repeated; opening the source has said what it may
        return lazy.collect() if " SCAN " not in lazy.explain(optimized=False) else None
    return None


def _array(column: Any) -> Any:
    """A column's cells as the library keeps them, without a conversion: that could fail, and quote a cell."""
    import pyarrow as pa

    if isinstance(column, (list, np.ndarray, pa.Array, pa.ChunkedArray)):
        return column
    if hasattr(column, "to_arrow"):  # polars
        import polars as pl

        with suppress(Exception):  # types that Arrow does not have, such as Int128
            return column.to_arrow(compat_level=pl.CompatLevel.newest())  # older levels copy texts
        return ()
    if isinstance(getattr(column, "dtype", None), np.dtype):  # pandas, from here on
        return column.to_numpy()
    kept = getattr(column, "array", column)
    inner = (getattr(kept, name, None) for name in ("_pa_array", "_ndarray", "_data"))  # pandas has no public names
    return next((each for each in inner if isinstance(each, (np.ndarray, pa.Array, pa.ChunkedArray))), kept)


def _places(column: Any) -> Iterator[Place]:
    """Where a column's cells are; nowhere, if it has none or does not tell."""
    if isinstance(column, np.ndarray) and column.size:
        steps = [(size - 1) * step for size, step in zip(column.shape, column.strides, strict=True)]
        address = column.__array_interface__["data"][0]
        first, last = (address + sum(cut(0, step) for step in steps) for cut in (min, max))
        yield Place(8 * first, 8 * (last + column.itemsize), column)
    elif isinstance(column, np.ndarray) or not hasattr(column, "__len__") or not len(column):
        return
    elif hasattr(column, "chunks"):
        for chunk in column.chunks:
            yield from _places(chunk)
    elif hasattr(column, "buffers"):
        yield from _arrow_places(column)
    else:
        yield Place(8 * id(column), 8 * id(column) + 1)


def _arrow_places(cells: Any) -> Iterator[Place]:
    """Where an Arrow array's cells are, or what leads to each: an offset, a view, the code of a dictionary's value."""
    import pyarrow.types as kinds

    cells = getattr(cells, "storage", cells)  # of an extension
    cells = getattr(cells, "indices", cells)  # of a dictionary: its values may well be shared
    if kinds.is_struct(cells.type):
        for number in range(cells.type.num_fields):
            yield from _places(cells.field(number))
        return
    bits = _bits(cells.type)
    buffers = cells.buffers()
    if bits and len(buffers) > 1 and buffers[1] is not None:  # the first says what is missing
        start = 8 * buffers[1].address + bits * cells.offset
        yield Place(start, start + bits * len(cells))


def _bits(kind: Any) -> int:
    """Bits per cell in the first buffer of an Arrow type; 0 for types that have none of their own."""
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
