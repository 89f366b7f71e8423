"""The types that a public table declares, carried into the synthetic table: so programs read both as the same types.

A parquet file has an Arrow type for each column, notes for polars beside it, and notes for pandas about all columns
(such as `Int64`, whole numbers that may be missing). Those about the columns that are written are carried; an index,
which numbers the rows of the public file, and other notes are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prade.core.errors import DataError
from prade.data.declare.column import Column
from prade.data.declare.kinds import numerals
from prade.data.read.cells import NUMBER, PANDAS, Columns, one_piece, pandas_notes
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
    """The types of a public table's columns: Arrow's, their notes, and those of a pandas or polars frame.

    `dictionaries` are the values of columns that are dictionary-encoded: the categories of pandas, in their order.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    dictionaries: Mapping[str, Any] = field(default_factory=dict)
    of_frame: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, public: Any, table: pa.Table | Columns) -> DeclaredTypes:
        """The types of a public table as it was given, and as the Arrow table that it was read as."""
        schema = _schema_of_frame(public) or table.schema
        fields = {each.name: each for each in schema if each.name in table.column_names}
        coded = [name for name in table.column_names if pa.types.is_dictionary(table.schema.field(name).type)]
        pieces = {name: one_piece(table[name]) for name in coded}  # plain, where texts had to be replaced
        dictionaries = {name: cells.dictionary for name, cells in pieces.items() if pa.types.is_dictionary(cells.type)}
        is_frame = hasattr(public, "dtypes") and hasattr(public, "columns")  # pandas, polars
        of_frame = {name: public[name].dtype for name in table.column_names} if is_frame else {}
        return cls(fields, pandas_notes(schema), dictionaries, of_frame)

    def of_table(self, table: pa.Table) -> pa.Table:
        """The same rows with these types and notes, in each column whose values allow that."""
        arrays, fields = [], []
        for name in table.column_names:
            declared, cells = self.fields.get(name), table[name]
            if declared is not None and pa.types.is_dictionary(declared.type):
                cells = _encoded(cells, declared.type, self.dictionaries.get(name))
            if declared is None or declared.type != cells.type:
                declared = pa.field(name, cells.type)
            fields.append(declared.with_nullable(declared.nullable or cells.null_count > 0))
            arrays.append(cells)
        declared_names = {
            each.name for each in fields if each.type == getattr(self.fields.get(each.name), "type", None)
        }
        metadata = {key: value for key, value in (table.schema.metadata or {}).items() if key != PANDAS}
        metadata |= _noted(self.notes, [n for n in self.notes.get("columns", []) if n["field_name"] in declared_names])
        return pa.table(arrays, schema=pa.schema(fields, metadata))

    def framed(self, table: pa.Table, like: Like) -> Frame:
        """An Arrow table, converted to a frame with these types if `like` asks for one."""
        check_like(like)
        if like == "pandas":
            return _to_pandas(table, self.of_frame)
        return _to_polars(table, self.of_frame) if like == "polars" else table


def common_schema(schemas: Sequence[pa.Schema], joined: pa.Schema) -> pa.Schema:
    """The types of several files' joined rows, with the notes that all files have about a column."""
    notes = [{each["field_name"]: each for each in pandas_notes(schema).get("columns", [])} for schema in schemas]
    fields, columns = [], []
    for each in joined:
        first, *others = (schema.field(each.name) for schema in schemas)
        same = all(other.equals(first, check_metadata=True) for other in others) and first.type == each.type
        fields.append(each.with_metadata(first.metadata if same else None))
        noted, *others = (about.get(each.name) for about in notes)
        if noted and all(other == noted for other in others):
            columns.append(noted)
    return pa.schema(fields, _noted(pandas_notes(schemas[0]), columns))


def _of_pandas(kind: pa.DataType) -> str:
    """Nullable whole numbers: `Int8` for int8."""
    return str(kind).replace("int", "Int").replace("u", "U")


def _noted(notes: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> dict[bytes, bytes]:
    """The metadata with notes for pandas about these columns, without an index."""
    return {PANDAS: json.dumps({**notes, "index_columns": [], "columns": columns}).encode()} if columns else {}


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


def _to_pandas(table: pa.Table, frame_types: Mapping[str, Any]) -> Any:
    import pandas as pd

    widths = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    nullable = {kind: pd.api.types.pandas_dtype(_of_pandas(kind)) for kind in widths} | {pa.bool_(): pd.BooleanDtype()}
    frame = {}
    for name in table.column_names:
        # Integers with missing cells stay integers; otherwise the notes for pandas decide.
        mapper = nullable.get if table[name].null_count else None
        series = table.select([name]).to_pandas(types_mapper=mapper)[name]
        dtype = frame_types.get(name)
        if dtype is not None and not isinstance(dtype, pd.CategoricalDtype) and not _is_polars(dtype):
            # If the public type cannot hold missing cells or one of the values, keep the type that can.
            with suppress(TypeError, ValueError):
                series = series.astype(dtype)
        frame[name] = series
    return pd.DataFrame(frame)


def _to_polars(table: pa.Table, frame_types: Mapping[str, Any]) -> Any:
    import polars as pl

    frame: Any = pl.from_arrow(table)
    for name, dtype in frame_types.items():
        if _is_polars(dtype) and name in frame.columns and frame[name].dtype != dtype:
            with suppress(pl.exceptions.PolarsError):  # the public type may not allow all of the values
                frame = frame.with_columns(frame[name].cast(dtype))
    return frame


def _is_polars(dtype: Any) -> bool:
    return type(dtype).__module__.startswith("polars")


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
    """Where a column's cells begin and end in memory, in bits because Arrow keeps eight Booleans in a byte."""
    if isinstance(column, np.ndarray):
        if column.size:
            steps = [(size - 1) * step for size, step in zip(column.shape, column.strides, strict=True)]
            first, last = (column.ctypes.data + sum(cut(0, step) for step in steps) for cut in (min, max))
            yield 8 * first, 8 * (last + column.itemsize), column
    elif hasattr(column, "chunks"):
        for chunk in column.chunks:
            yield from _spans(chunk)
    elif hasattr(column, "buffers"):
        yield from _arrow_spans(column)
    elif hasattr(column, "__len__") and len(column):
        yield 8 * id(column), 8 * id(column) + 1, None


def _arrow_spans(cells: Any) -> Iterator[tuple[int, int, None]]:
    """As `_spans`, of an Arrow array's cells, or of what refers to each: an offset, a view, a dictionary's code."""
    import pyarrow.types as types

    cells = getattr(cells, "storage", cells)  # of an extension type
    cells = getattr(cells, "indices", cells)  # of a dictionary, whose values two tables may rightly share
    kind = cells.type
    if types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _arrow_spans(cells.field(number))
    elif not (types.is_fixed_size_list(kind) or types.is_run_end_encoded(kind) or types.is_null(kind)):
        try:
            bits = kind.bit_width
        except ValueError:  # an offset or a view for each cell, or the type of a union
            large, view = str(kind).startswith("large_"), str(kind) in ("string_view", "binary_view")
            bits = 8 if types.is_union(kind) else 128 if view else 64 if large else 32
        buffer = cells.buffers()[1]  # the first marks missing cells
        if buffer is not None and len(cells):
            start = 8 * buffer.address + bits * cells.offset
            yield start, start + bits * len(cells), None


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
        if column.value_type == "str":
            return self._unlike_texts(column)
        wanted = "dates" if column.dates else "numbers"
        if self.kind == "other" or (self.kind == "date") != column.dates:
            return f"the schema has {wanted}, but the table has the type {self.words}; convert it"
        return None

    def _unlike_texts(self, column: Column) -> str | None:
        pattern = {"number": NUMBER, "boolean": "(true|false)$", "date": DATE, "other": ""}[self.kind]
        values = numerals(column.values) if self.kind == "number" else column.values
        if any(re.match(pattern, str(value)) for value in values):
            return None
        return (
            f"no cell of the table's type {self.words} can equal a listed value (the first is {column.values[0]!r}); "
            "write the values as the table does, or convert the column"
        )
