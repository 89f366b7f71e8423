"""Menus: the values that each code of a column can be decoded to, as the public table writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Chances, Floats, Ints, drawn_in_runs, smallest_unsigned
from prade.data.cells import is_text, one_piece
from prade.data.declare.column import LARGEST_WHOLE, Column
from prade.data.matching import PER_DAY, code_cells, numbers_of
from prade.data.read.tables import plain_cells

if TYPE_CHECKING:
    import pyarrow as pa

NONE = -1  # in place of a row number: no public row
NO_ROWS = np.zeros(0, np.uint8), np.zeros(0, np.int8)


@dataclass(frozen=True, eq=False)
class Menu:
    """The values that each code of one column can be decoded to.

    `values` are sorted by code; those of code c are at starts[c] : starts[c + 1]. `cumulative` is the cumulative sum of
    their frequencies (or weights), so that a uniform draw selects a value in proportion to its frequency. `codes` are
    those of the public rows, and `of_row` is where each row's value is among `values`, -1 for a row without a value of
    the schema's domain. A menu that was not made from public rows has neither.
    """

    column: Column
    values: Any  # pyarrow array, without dictionary encoding
    starts: Ints
    cumulative: Floats
    codes: NDArray[Any]
    of_row: NDArray[Any]  # signed integers, as narrow as possible: there is one for each public row

    def draw(self, codes: NDArray[Any], chances: Chances, donor: Ints | None = None) -> Any:
        """One value for each code: that of the row's donor, or where it has none, one drawn from those of the code."""
        import pyarrow as pa

        codes = codes.astype(np.int64)
        missing = codes >= self.column.present
        codes[missing] = 0
        values, index = self.values, self.starts[codes]
        if self.column.kind == "numeric":
            index = np.full(len(codes), NONE)
            if donor is not None and len(self.of_row):
                index = np.where(donor == NONE, NONE, self.of_row[donor].astype(np.int64))
            alone = np.flatnonzero((index == NONE) & ~missing)
            first, stop = self.starts[codes[alone]], self.starts[codes[alone] + 1]
            chance = chances.uniform(f"value\n{self.column.name}", alone)
            index[alone] = drawn_in_runs(self.cumulative, first, stop, chance)
            if (first == stop).any():
                unseen = alone[first == stop]
                values, index[unseen] = self._uniform(codes[unseen], chance[first == stop])
        return values.take(pa.array(index, mask=missing))

    def _uniform(self, codes: Ints, chance: Floats) -> tuple[Any, Ints]:
        """The values with a uniformly drawn number appended for each of these codes, and the indices of those."""
        import pyarrow as pa

        numbers, kind, public = _uniform_numbers(self.column, codes, chance), self.values.type, self.values
        if not self._holds(np.unique(codes), kind):
            # The public type cannot hold a number of this bin (e.g. 300 in 8 bits): use the natural type.
            kind = natural_type(self.column)
            public = typed_numbers(self.column, numbers_of(self.column, public), kind)
        drawn = typed_numbers(self.column, numbers, kind)
        off = np.flatnonzero(code_cells(self.column, drawn)[0] != codes)
        if len(off):  # rounded to the type, a number is in the next bin
            numbers[off] = self._held(codes[off]).mean(axis=0)
            drawn = typed_numbers(self.column, numbers, kind)
        return pa.concat_arrays([public, drawn]), len(public) + np.arange(len(codes))

    def _holds(self, codes: Ints, kind: pa.DataType) -> bool:
        """Whether a type has numbers of these bins, and of whole numbers all: it depends on no number that is drawn."""
        for numbers in self._held(codes):
            typed = typed_numbers(self.column, numbers, kind)
            if typed is None or not np.array_equal(code_cells(self.column, typed)[0], codes):
                return False
        return True

    def _held(self, codes: Ints) -> Floats:
        """What a type must hold to be used for these bins: the first and last whole number, or else the middle."""
        bounds = np.array([_closed_bounds(self.column, code) for code in codes.tolist()]).T
        return bounds if self.column.integer else bounds.mean(axis=0, keepdims=True)


# ---------------------------------------------------------------------- menus


def natural_type(column: Column) -> pa.DataType:
    """The Arrow type of a column if there is no public table to take it from."""
    import pyarrow as pa

    if column.kind != "numeric":
        return pa.array(column.values).type
    if column.dates:
        return pa.date32()
    return pa.int64() if column.integer else pa.float64()


def menu_of_schema(column: Column) -> Menu:
    """The values as the schema lists them; of a numeric column none."""
    import pyarrow as pa

    if column.kind == "numeric":
        starts = np.zeros(column.present + 1, dtype=np.int64)
        return Menu(column, pa.array([], natural_type(column)), starts, np.zeros(0), *NO_ROWS)
    starts = np.arange(column.present + 1)
    return Menu(column, pa.array(column.values), starts, np.arange(1.0, column.present + 1), *NO_ROWS)


def menu_of_public(column: Column, cells: Any, weights: Floats) -> Menu:
    """The values as the public table writes them, with the rows that have them; rows of weight 0 are left out."""
    import pyarrow as pa

    seen = one_piece(plain_cells(cells)).dictionary_encode()
    values = seen.dictionary
    indices = seen.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    codes, fits = code_cells(column, pa.concat_arrays([values, pa.nulls(1, values.type)]))  # the last: missing
    counts = np.bincount(indices, weights, minlength=len(codes))
    usable = fits & (codes < column.present)
    usable[-1] = False
    if column.kind == "numeric":
        usable &= counts > 0
    # Within a code, sort by frequency, the highest first; ties keep their order of appearance.
    order = np.flatnonzero(usable)[np.lexsort((-counts[usable], codes[usable]))]
    menu = values.take(pa.array(order))
    rows = indices[weights > 0]
    codes_of_rows = codes.astype(smallest_unsigned(column.size))[rows]
    if column.kind == "numeric":
        starts = np.searchsorted(codes[order], np.arange(column.present + 1))
        place = np.full(len(codes), NONE, _signed(len(order)))
        place[order] = np.arange(len(order))
        return Menu(column, menu, starts, np.cumsum(counts[order]), codes_of_rows, place[rows])
    of_row = np.where(usable, codes, NONE).astype(_signed(column.size))[rows]
    return replace(_listed_menu(column, menu, codes[order]), codes=codes_of_rows, of_row=of_row)


def _signed(size: int) -> np.dtype[Any]:
    """The smallest integer type that can hold -1 and every number below `size`."""
    return np.min_scalar_type(-max(size, 1))


def _listed_menu(column: Column, values: Any, codes: Ints) -> Menu:
    """One value per code: as the public table writes it ("06" for 6), or as the schema lists it if it is not there."""
    import pyarrow as pa

    as_listed = menu_of_schema(column)
    try:
        written = as_listed.values.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return as_listed  # the table's type cannot hold the listed values
    in_public, first = np.unique(codes, return_index=True)
    index = np.arange(column.present) + len(values)
    index[in_public] = first
    menu = pa.concat_arrays([values, written]).take(pa.array(index))
    if not np.array_equal(code_cells(column, menu)[0], np.arange(column.present)):
        return as_listed
    return replace(as_listed, values=menu)


# ---------------------------------------------------------------------- numbers


def _uniform_numbers(column: Column, codes: Ints, chance: Floats) -> Floats:
    """A uniform number from the bin of each code; an open-ended bin is taken to be as wide as its neighbour."""
    low, high = np.array([_closed_bounds(column, code) for code in range(column.present)]).T[:, codes]
    if column.integer:
        return np.asarray(np.minimum(low + np.floor(chance * (high - low + 1.0)), high))
    return np.asarray(np.clip(low * (1.0 - chance) + high * chance, low, high))


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


def typed_numbers(column: Column, numbers: Floats, kind: pa.DataType) -> Any | None:
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
