"""Turning codes back into a table like the public one: same types, same column order, missing cells where coded.

The values of a numeric bin are drawn from the public values in that bin, in proportion to how often they occur (or to
their weights, if public rows have weights). This preserves heaping at round numbers and the shape of the tails. If the
public table has no value in a bin, numbers are drawn uniformly from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.data.cells import is_text, one_piece
from prade.data.column import LARGEST_WHOLE, Column
from prade.data.matching import PER_DAY, code_cells, numbers_of
from prade.data.tables import plain_cells, read_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from prade.data.joint import Joint
    from prade.data.schema import Schema

Like = Literal["pyarrow", "pandas", "polars"]
Frame: TypeAlias = "pa.Table | pd.DataFrame | pl.DataFrame"


def check_like(like: str) -> None:
    """Raise a DataError unless `like` names a kind of table that can be returned."""
    if like not in get_args(Like):
        raise DataError(f"like is {like!r}; use {', '.join(map(repr, get_args(Like)))}")


@dataclass(frozen=True)
class Menu:
    """The values that each code of one column can be decoded to.

    `values` are sorted by code; those of code c are at starts[c] : starts[c + 1]. `cumulative` is the cumulative sum of
    their frequencies (or weights), so that a uniform draw selects a value in proportion to its frequency.
    """

    column: Column
    values: Any  # pyarrow array, without dictionary encoding
    starts: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    type: Any  # the column's own Arrow type

    def draw(self, codes: NDArray[Any], rng: np.random.Generator) -> Any:
        """Draw one value for each code."""
        import pyarrow as pa

        codes = codes.astype(np.int64)
        missing = codes >= self.column.present
        codes[missing] = 0
        first, stop = self.starts[codes], self.starts[codes + 1]
        index = first
        if self.column.kind == "numeric":
            below = np.concatenate([[0.0], self.cumulative])
            target = below[first] + rng.random(len(codes)) * (below[stop] - below[first])
            index = np.clip(np.searchsorted(self.cumulative, target, side="right"), first, np.maximum(first, stop - 1))
        values, unseen = self.values, (first == stop) & ~missing
        if unseen.any():
            values, drawn = self._uniform(codes[unseen], rng)
            index = index.copy()
            index[unseen] = drawn
        cells = values.take(pa.array(index, mask=missing))
        return _as_declared(cells, self.type)

    def _uniform(self, codes: NDArray[np.int64], rng: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
        """The values with a uniformly drawn number appended for each of these codes, and the indices of those."""
        import pyarrow as pa

        numbers = _uniform_numbers(self.column, codes, rng)
        drawn = typed_numbers(self.column, numbers, self.values.type)
        public = self.values
        if drawn is None or not np.array_equal(code_cells(self.column, drawn)[0], codes):
            # The public type cannot hold a number of this bin (e.g. 300 in 8 bits): use the natural type.
            kind = natural_type(self.column)
            drawn = typed_numbers(self.column, numbers, kind)
            public = typed_numbers(self.column, numbers_of(self.column, public), kind)
        return pa.concat_arrays([public, drawn]), len(public) + np.arange(len(codes))


class Decoder:
    """Turns codes into a table; made by `Decoder.fit` from a public table or by `Decoder.plain` from a schema alone.

    >>> from prade.data.schema import Column, Schema
    >>> from prade.data.encoding import encode
    >>> schema = Schema([Column("PAY", "numeric", edges=[1000, 2000], integer=True, min=0)])
    >>> public = {"PAY": [500, 1500, 1500, 9000]}
    >>> decoder = Decoder.fit(schema, public)
    >>> decoder.decode(encode(schema, {"PAY": [1, 1999]}), seed=0)["PAY"].to_pylist()
    [500, 1500]
    """

    def __init__(self, schema: Schema, menus: Sequence[Menu], frame_types: dict[str, Any]) -> None:
        self.schema = schema
        self._menus = {menu.column.name: menu for menu in menus}
        self._frame_types = frame_types  # pandas or polars types of the public table, by column

    @classmethod
    def fit(cls, schema: Schema, public: Any, *, weight: str | None = None) -> Decoder:
        """Learn the values of each bin, the types and the column order from a public table.

        `weight` names a column of row weights: values are drawn in proportion to them, and never from rows of weight 0.
        """
        table = read_table(public)
        weights = np.ones(table.num_rows)
        if weight is not None:
            cells = one_piece(plain_cells(read_table(table, [weight])[weight]))
            weights = _checked_weights(numbers_of(Column(weight, "numeric", edges=(0,)), cells), weight)
        without_values = {name for name in schema.groups if not schema[name].values}
        for name in schema.coded:
            table = table if name in table.column_names else read_table(table, [name])  # an error names the column
        names = [name for name in table.column_names if name in schema and name not in without_values]
        menus = [_menu_of_public(schema[name], table[name], weights) for name in names]
        frame_types = {}
        if hasattr(public, "dtypes") and hasattr(public, "columns"):  # pandas, polars
            frame_types = {name: public[name].dtype for name in names}
        return cls(schema, menus, frame_types)

    @classmethod
    def plain(cls, schema: Schema) -> Decoder:
        """A decoder without public values: listed values as the schema lists them, numbers uniform within their bin."""
        columns = [column for column in schema.columns if column.kind != "group" or column.values]
        return cls(schema, [_menu_of_schema(column, natural_type(column)) for column in columns], {})

    def decode(self, coded: Joint, *, seed: int | np.random.Generator, like: Like = "pyarrow") -> Frame:
        """The rows of `coded` as a table; the same seed gives the same table."""
        import pyarrow as pa

        check_like(like)
        for name in coded.columns:
            if name not in self._menus:
                raise DataError(
                    f"column {name!r} was not in the public table that the decoder was made from; leave it out, or "
                    "make the decoder from a table that has it"
                )
        rng = np.random.default_rng(seed)
        names = [name for name in self._menus if name in coded.codes]
        return self.framed(
            pa.table([self._menus[name].draw(coded.codes[name], rng) for name in names], names=names), like
        )

    def listed(self, name: str) -> pa.Array:
        """The values of a column with listed values, in the order of its codes, as the public table writes them."""
        menu = self._menus[name]
        return _as_declared(menu.values, menu.type)

    def framed(self, table: pa.Table, like: Like) -> Frame:
        """An Arrow table, converted to a frame with the public frame's types if `like` asks for one."""
        check_like(like)
        if like == "pandas":
            return _to_pandas(table, self._frame_types)
        return _to_polars(table, self._frame_types) if like == "polars" else table


def _checked_weights(weights: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"the weights in {name!r} must be finite and not negative; remove such rows or set them to 0")
    return weights


# ---------------------------------------------------------------------- menus


def natural_type(column: Column) -> pa.DataType:
    """The Arrow type of a column if there is no public table to take it from."""
    import pyarrow as pa

    if column.kind != "numeric":
        return pa.array(column.values).type
    if column.dates:
        return pa.date32()
    return pa.int64() if column.integer else pa.float64()


def _menu_of_schema(column: Column, kind: pa.DataType) -> Menu:
    import pyarrow as pa

    if column.kind == "numeric":
        starts = np.zeros(column.present + 1, dtype=np.int64)
        return Menu(column, pa.array([], kind), starts, np.zeros(0), kind)
    starts = np.arange(column.present + 1)
    return Menu(column, pa.array(column.values), starts, np.arange(1.0, column.present + 1), kind)


def _menu_of_public(column: Column, cells: Any, weights: NDArray[np.float64]) -> Menu:
    import pyarrow as pa

    kind = cells.type
    seen = one_piece(plain_cells(cells)).dictionary_encode()
    values, present = seen.dictionary, seen.is_valid().to_numpy(zero_copy_only=False)
    indices = seen.indices.drop_null().to_numpy()
    counts = np.bincount(indices, weights[present], minlength=len(values))
    codes, fits = code_cells(column, values)
    usable = fits & (codes < column.present)
    if column.kind == "numeric":
        usable &= counts > 0
    values, counts, codes = values.filter(pa.array(usable)), counts[usable], codes[usable]
    # Within a code, sort by frequency, the highest first; ties keep their order of appearance.
    order = np.lexsort((-counts, codes))
    values, counts, codes = values.take(pa.array(order)), counts[order], codes[order]
    if column.kind == "numeric":
        starts = np.searchsorted(codes, np.arange(column.present + 1))
        return Menu(column, values, starts, np.cumsum(counts, dtype=np.float64), kind)
    return _listed_menu(column, values, codes, kind)


def _listed_menu(column: Column, values: Any, codes: NDArray[np.int64], kind: pa.DataType) -> Menu:
    """One value per code: as the public table writes it ("06" for 6), or as the schema lists it if it is not there."""
    import pyarrow as pa

    listed = pa.array(column.values)
    try:
        written = listed.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _menu_of_schema(column, listed.type)  # the table's type cannot hold the listed values
    in_public, first = np.unique(codes, return_index=True)
    index = np.arange(column.present) + len(values)
    index[in_public] = first
    menu = pa.concat_arrays([values, written]).take(pa.array(index))
    if not np.array_equal(code_cells(column, menu)[0], np.arange(column.present)):
        return _menu_of_schema(column, listed.type)
    starts = np.arange(column.present + 1)
    return Menu(column, menu, starts, np.arange(1.0, column.present + 1), kind)


# ---------------------------------------------------------------------- numbers


def _uniform_numbers(column: Column, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A uniform number from the bin of each code; an open-ended bin is taken to be as wide as its neighbour."""
    low, high = np.array([_closed_bounds(column, code) for code in range(column.present)]).T
    if column.integer:
        whole = rng.integers(low[codes].astype(np.int64), high[codes].astype(np.int64), endpoint=True)
        return np.asarray(whole, dtype=np.float64)
    share = rng.random(len(codes))
    drawn = low[codes] * (1.0 - share) + high[codes] * share
    return np.asarray(np.clip(drawn, low[codes], high[codes]), dtype=np.float64)


def _closed_bounds(column: Column, code: int) -> tuple[float, float]:
    low, high = column.bounds(code)
    starts = column.thresholds
    if low is None:
        width = starts[1] - starts[0] if len(starts) > 1 else 1.0
        low = (starts[0] if starts else column.max or 0.0) - width
    if high is None:
        width = starts[-1] - starts[-2] if len(starts) > 1 else 1.0
        high = low + width - (1.0 if column.integer else 0.0)
    return min(low, high), high  # for large floats, low may have been rounded to a number above high


def typed_numbers(column: Column, numbers: NDArray[np.float64], kind: pa.DataType) -> Any | None:
    """Numbers (days for dates) as an Arrow array of a given type; None if the type cannot hold them."""
    import pyarrow as pa

    types = pa.types
    whole = column.integer or types.is_integer(kind)
    if whole and np.abs(numbers).max(initial=0.0) > 2 * LARGEST_WHOLE:
        return None
    source = pa.array(np.floor(numbers).astype(np.int64) if whole else numbers, from_pandas=True)
    try:
        if column.dates and types.is_timestamp(kind):
            return pa.array((numbers * PER_DAY[kind.unit]).astype(np.int64)).cast(kind)
        if column.dates:
            return source.cast(pa.int32()).cast(pa.date32()).cast(kind)
        if is_text(kind):
            return source.cast(pa.string()).cast(kind)
        return source.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


# ---------------------------------------------------------------------- types of tables


def _as_declared(cells: Any, kind: pa.DataType) -> Any:
    """The cells with the dictionary encoding of the column's own type, if it has one."""
    import pyarrow as pa

    if cells.type == kind or not pa.types.is_dictionary(kind) or cells.type != kind.value_type:
        return cells
    try:
        return cells.dictionary_encode().cast(kind)
    except pa.ArrowInvalid:  # more values than the index type can number
        return cells.dictionary_encode()


def _to_pandas(table: pa.Table, frame_types: dict[str, Any]) -> Any:
    import pandas as pd
    import pyarrow as pa

    nullable = {
        getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    nullable[pa.bool_()] = pd.BooleanDtype()
    frame = {}
    for name, cells in zip(table.column_names, table.columns, strict=True):
        # Integers with missing cells stay integers.
        series = cells.to_pandas(types_mapper=nullable.get if cells.null_count else None)
        dtype = frame_types.get(name)
        if isinstance(dtype, pd.CategoricalDtype):
            extra = [value for value in series.dropna().unique() if value not in dtype.categories]
            dtype = pd.CategoricalDtype([*dtype.categories, *extra], dtype.ordered)
        if dtype is not None and not _is_polars(dtype):
            # If the public type cannot hold missing cells or one of the values, keep the type that can.
            with suppress(TypeError, ValueError):
                series = series.astype(dtype)
        frame[name] = series
    return pd.DataFrame(frame)


def _to_polars(table: pa.Table, frame_types: dict[str, Any]) -> Any:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    for name, dtype in frame_types.items():
        if _is_polars(dtype) and name in frame.columns and frame[name].dtype != dtype:
            with suppress(pl.exceptions.PolarsError):  # the public type may not allow all of the values
                frame = frame.with_columns(frame[name].cast(dtype))
    return frame


def _is_polars(dtype: Any) -> bool:
    return type(dtype).__module__.startswith("polars")
