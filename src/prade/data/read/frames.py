"""The types that a public table declares, carried into the synthetic table: so programs read both as the same types.

A parquet file has an Arrow type for each column, notes for polars beside it, and notes for pandas about all columns
(such as `Int64`, whole numbers that may be missing). An index and other notes are not carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prade.core.errors import DataError
from prade.data.declare.column import Column
from prade.data.declare.kinds import numerals
from prade.data.read.cells import NUMBER, PANDAS, Columns, noted, one_piece, pandas_notes
from prade.data.read.tables import column_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
Like = Literal["pyarrow", "pandas", "polars"]
Frame: TypeAlias = "pa.Table | pd.DataFrame | pl.DataFrame"


def check_like(like: str) -> None:
    """Raise a DataError unless `like` names a kind of table that can be returned."""
    if like not in get_args(Like):
        raise DataError(f"like is {like!r}; use {', '.join(map(repr, get_args(Like)))}")


@dataclass(frozen=True, eq=False)
class DeclaredTypes:
    """The types of a public table's columns with their notes, and the values of those that are dictionary-encoded."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    dictionaries: Mapping[str, Any] = field(default_factory=dict)
    dtypes: Mapping[str, Any] = field(default_factory=dict)  # of a pandas frame

    @classmethod
    def of(cls, public: Any, table: pa.Table | Columns) -> DeclaredTypes:
        """The types of a public table as it was given, and as the Arrow table that it was read as."""
        schema = _schema_of_frame(public) or table.schema
        fields = {each.name: each for each in schema if each.name in table.column_names}
        coded = [name for name in table.column_names if pa.types.is_dictionary(table.schema.field(name).type)]
        pieces = {name: one_piece(table[name]) for name in coded}  # plain, where texts had to be replaced
        dictionaries = {name: cells.dictionary for name, cells in pieces.items() if pa.types.is_dictionary(cells.type)}
        dtypes = dict(public.dtypes) if hasattr(public, "iloc") else {}
        return cls(fields, pandas_notes(schema), dictionaries, dtypes)

    def of_table(self, table: pa.Table) -> pa.Table:
        """The same rows with these types and notes, in each column whose values allow that."""
        arrays, fields, own = [], [], set()
        for name in table.column_names:
            declared, cells = self.fields.get(name), table[name]
            if declared is not None and pa.types.is_dictionary(declared.type):
                cells = _encoded(cells, declared.type, self.dictionaries.get(name))
            if declared is None or declared.type != cells.type:
                declared = pa.field(name, cells.type)
            else:
                own.add(name)
            fields.append(declared.with_nullable(declared.nullable or cells.null_count > 0))
            arrays.append(cells)
        metadata = {key: value for key, value in (table.schema.metadata or {}).items() if key != PANDAS}
        return pa.table(arrays, schema=pa.schema(fields, {**metadata, **noted(self.notes, own)}))

    def framed(self, table: pa.Table, like: Like) -> Frame:
        """An Arrow table, converted to a frame if `like` asks for one."""
        check_like(like)
        if like == "pandas":
            return _to_pandas(table, self.dtypes)
        if like == "polars":
            import polars as pl

            return cast(Frame, pl.from_arrow(table))
        return table


def _schema_of_frame(public: Any) -> pa.Schema | None:
    """The Arrow schema of a frame with its notes; None for other tables, and for frames that Arrow cannot describe."""
    home = type(public).__module__.partition(".")[0]
    with suppress(Exception):  # a frame may hold objects that raise anything
        if home == "pandas":
            return pa.Schema.from_pandas(public, preserve_index=False)
        if home == "polars":
            return public.head(0).to_arrow().schema
    return None


def _encoded(cells: Any, kind: pa.DictionaryType, dictionary: Any) -> Any:
    """Plain cells with a dictionary encoding: the public dictionary's values first, then those that it lacks."""
    if cells.type != kind.value_type or dictionary is None:
        return cells
    cells = one_piece(cells)
    present = cells.drop_null().unique()
    values = pa.concat_arrays([dictionary, present.filter(pc.invert(pc.is_in(present, value_set=dictionary)))])
    indices = pc.index_in(cells, value_set=values)
    with suppress(pa.ArrowInvalid):  # more values than the index type can number
        indices = indices.cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)])


def _to_pandas(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    import pandas as pd

    def whole(kind: pa.DataType) -> Any:
        """Integers with missing cells stay integers; otherwise the notes for pandas decide."""
        named = "boolean" if pa.types.is_boolean(kind) else str(kind).replace("int", "Int").replace("u", "U")
        return pd.api.types.pandas_dtype(named) if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else None

    def series(name: str) -> Any:
        if (dtype := dtypes.get(name)) == "object":  # Arrow has no such types
            return pd.Series(table[name].to_pylist(), dtype=object)
        cells = table.select([name]).to_pandas(types_mapper=whole if table[name].null_count else None)[name]
        return cells.astype(dtype) if isinstance(dtype, pd.StringDtype) else cells

    return pd.DataFrame({name: series(name) for name in table.column_names})


# ---------------------------------------------------------------------- memory that two tables share


def is_lazy(table: Any) -> bool:
    """Whether a table is a LazyFrame of polars, whose rows are yet to be computed."""
    return type(table).__name__ == "LazyFrame"


def shared_memory(private: Any, public: Any) -> str | None:
    """What two tables in memory share: the object itself, or memory that holds cells; no cell is read or compared."""
    if private is public:
        return "they are the same object"
    # All arrays are kept until the end: the memory of a freed one might be reused for the next.
    theirs, own = _columns(public), _columns(private)
    spans = [span for cells in theirs.values() for span in _spans(cells)]
    starts, stops = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    for name, cells in own.items():
        for start, stop, array in _spans(cells):
            for near in np.flatnonzero((starts < stop) & (stops > start)):
                other = spans[near][2]
                if array is None or other is None or np.shares_memory(array, other):
                    return f"they share the memory of column {name!r}"
    return None


def _columns(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays, without copying them; none for a table that holds no rows itself."""
    if is_lazy(table):
        with suppress(Exception):  # errors might quote cells; opening the source has already reported what it may
            return {} if " SCAN " in table.explain(optimized=False) else _columns(table.collect())
        return {}
    return {} if table is None else {name: _array(table[name]) for name in column_names(table)}


def _array(column: Any) -> Any:
    """A column's cells as its library stores them, without a conversion, which could fail and quote a cell."""
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


def _spans(column: Any) -> Iterator[tuple[int, int, Any]]:
    """Where a column's cells begin and end in memory, in bits because Arrow keeps eight Booleans in a byte.

    Of Arrow's cells, or of what refers to each: an offset, a view, a dictionary's code.
    """
    if isinstance(column, np.ndarray) and column.size:
        steps = [(size - 1) * step for size, step in zip(column.shape, column.strides, strict=True)]
        first, last = (column.ctypes.data + sum(cut(0, step) for step in steps) for cut in (min, max))
        yield 8 * first, 8 * (last + column.itemsize), column
    elif isinstance(column, pa.ChunkedArray):
        for chunk in column.chunks:
            yield from _spans(chunk)
    elif isinstance(column, pa.Array):
        cells = getattr(column, "storage", column)  # of an extension type
        cells = getattr(cells, "indices", cells)  # of a dictionary, whose values two tables may rightly share
        kind = cells.type
        if pa.types.is_struct(kind):
            for number in range(kind.num_fields):
                yield from _spans(cells.field(number))
            return
        try:
            bits = kind.bit_width
        except ValueError:  # an offset or a view for each cell, or the type of a union
            large, view = str(kind).startswith("large_"), str(kind) in ("string_view", "binary_view")
            bits = 8 if pa.types.is_union(kind) else 128 if view else 64 if large else 32
        elsewhere = pa.types.is_fixed_size_list(kind) or pa.types.is_run_end_encoded(kind)
        # the first buffer marks missing cells
        if len(cells) and not elsewhere and (buffer := [*cells.buffers(), None][1]) is not None:
            start = 8 * buffer.address + bits * cells.offset
            yield start, start + bits * len(cells), None
    elif hasattr(column, "__len__") and len(column):
        yield 8 * id(column), 8 * id(column) + 1, None


# ---------------------------------------------------------------------- types that a database declares

DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
Kind = Literal["number", "boolean", "date", "text", "other", "unreadable"]


@dataclass(frozen=True)
class DeclaredType:
    """The type that a database declares for a column, in the database's words, and what cells of it can be."""

    words: str
    kind: Kind

    def misfit(self, column: Column | None) -> str | None:
        """Why no cell of this type can have a value of the column, or be a person's id (None); None if some can."""
        if self.kind == "unreadable":
            return f"prade cannot read the table's type {self.words}; convert it"
        if column is None or self.kind == "text" or column.size == 1:
            return None
        if column.value_type != "str":
            wanted, fits = "dates" if column.dates else "numbers", (self.kind == "date") == column.dates
            unlike = f"the schema has {wanted}, but the table has the type {self.words}; convert it"
            return None if fits and self.kind != "other" else unlike
        pattern = {"number": NUMBER, "boolean": "(true|false)$", "date": DATE, "other": ""}[self.kind]
        values = numerals(column.values) if self.kind == "number" else column.values
        if any(re.match(pattern, str(value)) for value in values):
            return None
        first = f"a listed value (the first is {column.values[0]!r})"
        equal = f"no cell of the table's type {self.words} can equal {first}"
        return f"{equal}; write the values as the table does, or convert the column"
