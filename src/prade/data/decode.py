"""Codes back to values that look like the public table's: same types, same column order, real missing cells.

A numeric bin is filled with the public values seen in it, as often as they were seen (as much as they weigh, where
public rows have weights), so that heaping at round numbers and the shape of the tails survive; uniformly where the
public table has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.data.cells import is_text, one_piece
from prade.data.column import LARGEST_WHOLE, Column
from prade.data.matching import PER_DAY, code_cells, numbers_of
from prade.data.tables import plain_cells, read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.joint import Joint
    from prade.data.schema import Schema

Like = Literal["pyarrow", "pandas", "polars"]


@dataclass(frozen=True)
class Menu:
    """The values that one column's codes may become.

    `values` are sorted by code; those of code c are at starts[c] : starts[c + 1]. `reach` is the running sum of how
    often each was seen, or of its weight, so that a uniform draw below it picks a value in proportion.
    """

    column: Column
    values: Any  # pyarrow array, without dictionary encoding
    starts: NDArray[np.int64]
    reach: NDArray[np.float64]
    type: Any  # the column's own Arrow type

    def draw(self, codes: NDArray[Any], rng: np.random.Generator) -> Any:
        """One value a code."""
        import pyarrow as pa

        codes = codes.astype(np.int64)
        missing = codes >= self.column.present
        codes[missing] = 0
        first, stop = self.starts[codes], self.starts[codes + 1]
        place = first
        if self.column.kind == "numeric":
            steps = np.concatenate([[0.0], self.reach])
            target = steps[first] + rng.random(len(codes)) * (steps[stop] - steps[first])
            place = np.clip(np.searchsorted(self.reach, target, side="right"), first, np.maximum(first, stop - 1))
        values, unseen = self.values, (first == stop) & ~missing
        if unseen.any():
            values, fresh = self._uniform(codes[unseen], rng)
            place = place.copy()
            place[unseen] = fresh
        cells = values.take(pa.array(place, mask=missing))
        return _as_declared(cells, self.type)

    def _uniform(self, codes: NDArray[np.int64], rng: np.random.Generator) -> tuple[Any, NDArray[np.int64]]:
        """The menu with a fresh number for each of these codes appended, and where those stand in it."""
        import pyarrow as pa

        numbers = _uniform_numbers(self.column, codes, rng)
        fresh = typed_numbers(self.column, numbers, self.values.type)
        seen = self.values
        if fresh is None or not np.array_equal(code_cells(self.column, fresh)[0], codes):
            # The public type cannot hold a number of this bin (e.g. 300 in 8 bits): use the natural one.
            kind = natural_type(self.column)
            fresh = typed_numbers(self.column, numbers, kind)
            seen = typed_numbers(self.column, numbers_of(self.column, seen), kind)
        return pa.concat_arrays([seen, fresh]), len(seen) + np.arange(len(codes))


class Decoder:
    """Turns codes into a table; made by `Decoder.fit` from a public table or by `Decoder.plain` from a schema alone.

    >>> from prade.data.schema import Column, Schema
    >>> from prade.data.encode import encode
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

        `weight` names a column of row weights: a value is drawn in proportion to them, one of weight 0 never.
        """
        found = read_table(public)
        weights = np.ones(found.num_rows)
        if weight is not None:
            cells = one_piece(plain_cells(read_table(found, [weight])[weight]))
            weights = _checked_weights(numbers_of(Column(weight, "numeric", edges=(0,)), cells), weight)
        known = {name for name in schema.groups if not schema[name].values}
        for name in schema.coded:
            found = found if name in found.column_names else read_table(found, [name])  # says which is absent
        names = [name for name in found.column_names if name in schema and name not in known]
        menus = [_menu_of_public(schema[name], found[name], weights) for name in names]
        frame_types = {}
        if hasattr(public, "dtypes") and hasattr(public, "columns"):  # pandas, polars
            frame_types = {name: public[name].dtype for name in names}
        return cls(schema, menus, frame_types)

    @classmethod
    def plain(cls, schema: Schema) -> Decoder:
        """No public values: listed values as they are listed, numbers uniform within their bin."""
        columns = [column for column in schema.columns if column.kind != "group" or column.values]
        return cls(schema, [_menu_of_schema(column, natural_type(column)) for column in columns], {})

    def decode(self, coded: Joint, *, seed: int | np.random.Generator, like: Like = "pyarrow") -> Any:
        """The rows of `coded` as a table; the same seed gives the same table."""
        import pyarrow as pa

        if like not in ("pyarrow", "pandas", "polars"):
            raise DataError(f"like is {like!r}; write 'pyarrow', 'pandas' or 'polars'")
        for name in coded.columns:
            if name not in self._menus:
                raise DataError(f"column {name!r} was not in the public table that the decoder was made from")
        rng = np.random.default_rng(seed)
        names = [name for name in self._menus if name in coded.codes]
        return self.framed(
            pa.table([self._menus[name].draw(coded.codes[name], rng) for name in names], names=names), like
        )

    def framed(self, table: pa.Table, like: Like) -> Any:
        """An Arrow table as it is, or as a frame with the public frame's types."""
        if like == "pandas":
            return _to_pandas(table, self._frame_types)
        return _to_polars(table, self._frame_types) if like == "polars" else table


def _checked_weights(weights: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"the weights in {name!r} must be finite and not negative; remove such rows or set them to 0")
    return weights


# ---------------------------------------------------------------------- menus


def natural_type(column: Column) -> pa.DataType:
    """The Arrow type for a column that no public table gives one."""
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
    # Within a code the most frequent first; ties by first appearance.
    order = np.lexsort((-counts, codes))
    values, counts, codes = values.take(pa.array(order)), counts[order], codes[order]
    if column.kind == "numeric":
        starts = np.searchsorted(codes, np.arange(column.present + 1))
        return Menu(column, values, starts, np.cumsum(counts, dtype=np.float64), kind)
    return _listed_menu(column, values, codes, kind)


def _listed_menu(column: Column, values: Any, codes: NDArray[np.int64], kind: pa.DataType) -> Menu:
    """One value a code: as the public table writes it ("06" for 6), or as the list does where it was not seen."""
    import pyarrow as pa

    listed = pa.array(column.values)
    try:
        written = listed.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _menu_of_schema(column, listed.type)  # the table's type cannot hold the listed values
    seen, first = np.unique(codes, return_index=True)
    place = np.arange(column.present) + len(values)
    place[seen] = first
    menu = pa.concat_arrays([values, written]).take(pa.array(place))
    if not np.array_equal(code_cells(column, menu)[0], np.arange(column.present)):
        return _menu_of_schema(column, listed.type)
    starts = np.arange(column.present + 1)
    return Menu(column, menu, starts, np.arange(1.0, column.present + 1), kind)


# ---------------------------------------------------------------------- numbers


def _uniform_numbers(column: Column, codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A number from the bin of each code; an open end bin is as wide as its neighbour."""
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
    return min(low, high), high  # where floats are sparse, low may have been rounded past high


def typed_numbers(column: Column, numbers: NDArray[np.float64], kind: pa.DataType) -> Any | None:
    """Numbers (days for dates) as an Arrow array of a type, None if the type cannot hold them."""
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


# ---------------------------------------------------------------------- the kinds of table


def _as_declared(cells: Any, kind: pa.DataType) -> Any:
    """Cells in the column's own type where they fit it (dictionary encoding included)."""
    import pyarrow as pa

    if cells.type == kind or not pa.types.is_dictionary(kind) or cells.type != kind.value_type:
        return cells
    try:
        return cells.dictionary_encode().cast(kind)
    except pa.ArrowInvalid:  # more values than the index type counts
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
        # Whole numbers with missing cells stay whole numbers.
        series = cells.to_pandas(types_mapper=nullable.get if cells.null_count else None)
        dtype = frame_types.get(name)
        if isinstance(dtype, pd.CategoricalDtype):
            extra = [value for value in series.dropna().unique() if value not in dtype.categories]
            dtype = pd.CategoricalDtype([*dtype.categories, *extra], dtype.ordered)
        if dtype is not None and not _is_polars(dtype):
            # a type without room for missing, or for this value, is left for the one that has it
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
            with suppress(pl.exceptions.PolarsError):  # a value that the public type does not list
                frame = frame.with_columns(frame[name].cast(dtype))
    return frame


def _is_polars(dtype: Any) -> bool:
    return type(dtype).__module__.startswith("polars")
