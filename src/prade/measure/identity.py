"""What is private is not public: a private source is refused that is also the public table, or one of its files.

Files are compared as `prade.same_file` says, all of them with all of them. Tables in memory are compared by where
their cells are, never by what is in them: two tables with equal cells in different places pass, because a refusal
must not depend on a private cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prade.errors import DataError
from prade.public_files import PublicFiles
from prade.same_file import content_hash, has_rows, same_file
from prade.tables import column_names

Place = tuple[int, int, int]  # address of the memory, offset in it, number of cells


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

    Public files that are not there are compared by the hashes of their contents, where a `PublicFiles` has them; others,
    and what is None, are passed over: they cannot be compared.
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
    pair = same_file([found_files(paths), files]) if files else None
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


def _shared(private: Any, public: Any) -> str | None:
    """What two tables in memory have in common: the object, or the memory of a column that has rows."""
    if private is public:
        return "the same object"
    # All arrays are kept until the end: the memory of one that is gone may be given to the next.
    theirs = _columns(public)
    places = {place for cells in theirs.values() for place in _places(cells)}
    for name, cells in _columns(private).items():
        if any(place in places for place in _places(cells)):
            return f"the same column {name!r}"
    return None


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays in the place where they are; none for what holds no rows itself."""
    if type(table).__name__ == "LazyFrame" or type(table).__module__.startswith("ibis."):
        return {}
    return {name: _array(table[name]) for name in column_names(table)}


def _array(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, (list, np.ndarray, pa.Array, pa.ChunkedArray)):
        return column
    if hasattr(column, "to_arrow"):  # polars
        import polars as pl

        return column.to_arrow(compat_level=pl.CompatLevel.newest())  # older levels copy texts
    if isinstance(getattr(column, "dtype", None), np.dtype):  # pandas, from here on
        return column.to_numpy()
    kept = getattr(column, "array", column)
    kept = getattr(kept, "codes", kept)  # of a categorical column
    return pa.array(kept) if hasattr(kept, "__arrow_array__") else kept


def _places(column: Any) -> Iterator[Place]:
    """Where a column's cells are; nowhere, if it has none."""
    if len(column) == 0:
        return
    if isinstance(column, np.ndarray):
        yield column.__array_interface__["data"][0], 0, len(column)
    elif hasattr(column, "chunks"):
        for chunk in column.chunks:
            yield from _places(chunk)
    elif hasattr(column, "buffers"):
        cells = getattr(column, "indices", column)  # of a dictionary: its values may well be shared
        buffer = next((each for each in cells.buffers()[1:] if each is not None), None)  # the first says what is null
        if buffer is not None:
            yield buffer.address, cells.offset, len(cells)
    else:
        yield id(column), 0, len(column)
