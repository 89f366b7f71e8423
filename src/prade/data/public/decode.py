"""Turning codes back into a table like the public one: same types, same column order, missing cells where coded.

All values of a synthetic row come from one public row with the same codes, its *donor*, so that values that belong
together stay together: wages are part of the same person's income.

If no public row has all codes of a row, its columns are put in a line: the linked sets of the schema, then the other
numeric columns. One donor gives as many columns from the start of the line as some public row has the bins of,
together; another donor those that follow, and so on. A linked set is divided only if no public row has its bins
together. A column that is left over takes a public value of its bin, in proportion to the weights of its rows: heaping
at round numbers stays. If the public table has no value in a bin, numbers are drawn uniformly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Chances, Flags, Floats, Ints, drawn_in_runs
from prade.core.errors import DataError
from prade.core.execution import cores, finishing
from prade.data.declare.column import Column
from prade.data.declare.kinds import Numeric
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes, Joint, RowIndex, row_weights
from prade.data.read.cells import AT_ONCE, Columns, one_piece, plain_cells
from prade.data.read.coding import code_cells, numbers_of
from prade.data.read.frames import DeclaredTypes, Frame, Like
from prade.data.read.tables import read_table

NONE = -1  # in place of a row number: no public row
MOST_INDEXES = 4  # kept at once: each takes a dozen bytes per public row


@dataclass(frozen=True, eq=False)
class Donors:
    """The codes of the public rows, by column, and their weights, all above 0."""

    schema: Schema
    codes: Codes
    weights: Floats
    _indexes: dict[tuple[str, ...], RowIndex] = field(default_factory=dict)

    def find(self, wanted: Codes, chances: Chances, drawn: Ints | None = None) -> dict[str, Ints]:
        """The donor of each row for each numeric column of `wanted`: the number of a public row, or -1 for none.

        It is the `drawn` public row if that has the row's codes, else one that has them, drawn by weight.
        """
        rows = len(next(iter(wanted.values())))
        donor = np.full(rows, NONE) if drawn is None else np.where(self.agree(wanted, drawn), drawn, NONE)
        without = np.flatnonzero(donor == NONE)
        donor[without] = self._pick(list(wanted), wanted, without, chances)
        found = {name: donor.copy() for name in wanted if self.schema[name].numeric}
        self._find_in_line(found, wanted, without[donor[without] == NONE], chances)
        return found

    def agree(self, wanted: Codes, drawn: Ints) -> Flags:
        """Whether each drawn public row exists and has the codes of its row."""
        known = (drawn >= 0) & (drawn < len(self.weights))
        rows = np.where(known, drawn, 0)
        for name, code in wanted.items():
            known &= self.codes[name][rows] == code
        return known

    def _pick(self, columns: Sequence[str], wanted: Codes, rows: Ints, chances: Chances) -> Ints:
        """For each of some rows, a public row with the same codes in these columns, drawn by weight; -1 for none."""
        if not len(rows):
            return rows
        index = self._index(tuple(columns))
        first, stop = index.runs([wanted[name][rows] for name in columns])
        chance = chances.uniform("\n".join(["donor", *columns]), rows)
        place = drawn_in_runs(np.cumsum(self.weights[index.order]), first, stop, chance)
        return np.where(first < stop, index.order[np.minimum(place, len(self.weights) - 1)].astype(np.int64), NONE)

    def _index(self, columns: tuple[str, ...]) -> RowIndex:
        """The public rows by their codes in some columns; the last few are kept for the next batch of rows."""
        if columns not in self._indexes:
            while len(self._indexes) >= MOST_INDEXES:
                del self._indexes[next(iter(self._indexes))]
            sizes = [self.schema.size(name) for name in columns]
            self._indexes[columns] = RowIndex([self.codes[name] for name in columns], sizes)
        return self._indexes[columns]

    def _find_in_line(self, found: dict[str, Ints], wanted: Codes, rows: Ints, chances: Chances) -> None:
        """Fill in the donors of rows whose codes no public row has, from the start of the line to its end."""
        sets = [tuple(name for name in together if name in wanted) for together in self.schema.linked]
        linked = {name for together in sets for name in together}
        sets += [(name,) for name in found if name not in linked]
        line = [name for together in sets for name in together]
        bounds = list(accumulate(map(len, sets)))
        reached = np.zeros(len(rows), np.int64)  # how much of the line each row has donors for
        for start in range(len(line)):
            waiting = np.flatnonzero(reached == start)
            for end in _ends(start, bounds):
                picked = self._pick(line[start:end], wanted, rows[waiting], chances)
                has = picked != NONE
                for name in line[start:end]:
                    if name in found:
                        found[name][rows[waiting[has]]] = picked[has]
                reached[waiting[has]] = end
                waiting = waiting[~has]
            reached[waiting] = start + 1


def _ends(start: int, bounds: Sequence[int]) -> list[int]:
    """Where two columns or more that begin at `start` may end: at the end of a set if possible, or else within one."""
    of_set = next(bound for bound in bounds if bound > start)
    whole = [bound for bound in reversed(bounds) if bound >= start + 2]
    return whole + list(range(of_set - 1, start + 1, -1))


# ---------------------------------------------------------------------- menus


@dataclass(frozen=True, eq=False)
class Menu:
    """The values that each code of one column can be decoded to.

    `values` are sorted by code; those of code c are at starts[c] : starts[c + 1], with the cumulative sum of their
    frequencies (or weights). `codes` are those of the public rows, and `of_row` is where each row's value is among
    `values`, -1 for a row without a value of the domain.
    """

    column: Column
    values: Any  # pyarrow array, without dictionary encoding
    starts: Ints
    cumulative: Floats
    codes: NDArray[Any]
    of_row: NDArray[Any]  # signed integers, as narrow as possible: there is one for each public row

    def draw(self, codes: NDArray[Any], chances: Chances, donor: Ints | None = None) -> Any:
        """One value for each code: that of the row's donor, or where it has none, one drawn from those of the code."""
        codes = codes.astype(np.int64)
        missing = codes >= self.column.present
        codes[missing] = 0
        values, index = self.values, self.starts[codes]
        if self.column.numeric:
            index = np.full(len(codes), NONE)
            if donor is not None:
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
        """The values and a uniformly drawn number for each of these codes, and the indices of those."""
        column, numeric = self.column, Numeric(self.column)
        numbers, kind, public = numeric.uniform(codes, chance), self.values.type, self.values

        def held(codes: Ints) -> Floats:
            """What a type must hold to be used for these bins: the first and last whole number, or else the middle."""
            bounds = np.array([numeric.closed_bounds(code) for code in codes.tolist()]).T
            return bounds if column.integer else bounds.mean(axis=0, keepdims=True)

        different = np.unique(codes)  # which type is used depends on no number that is drawn
        cells = [numeric.typed(each, kind) for each in held(different)]
        if any(each is None or not np.array_equal(code_cells(column, each)[0], different) for each in cells):
            # The public type cannot hold a number of this bin (e.g. 300 in 8 bits): use the natural type.
            kind = numeric.natural_type()
            public = numeric.typed(numbers_of(column, public), kind)
        drawn = numeric.typed(numbers, kind)
        off = np.flatnonzero(code_cells(column, drawn)[0] != codes)
        if len(off):  # rounded to the type, a number is in the next bin
            numbers[off] = held(codes[off]).mean(axis=0)
            drawn = numeric.typed(numbers, kind)
        return pa.concat_arrays([public, drawn]), len(public) + np.arange(len(codes))


def menu_of_public(column: Column, cells: Any, weights: Floats) -> Menu:
    """The values as the public table writes them, with the rows that have them; rows of weight 0 are left out."""
    seen = one_piece(plain_cells(cells)).dictionary_encode()
    values = seen.dictionary
    indices = seen.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    codes, fits = code_cells(column, pa.concat_arrays([values, pa.nulls(1, values.type)]))  # the last: missing
    counts = np.bincount(indices, weights, minlength=len(codes))
    usable = fits & (codes < column.present)
    usable[-1] = False
    if column.numeric:
        usable &= counts > 0
    # Within a code, sort by frequency, the highest first; ties keep their order of appearance.
    order = np.flatnonzero(usable)[np.lexsort((-counts[usable], codes[usable]))]
    menu = values.take(pa.array(order))
    rows = indices[weights > 0]
    codes_of_rows = codes.astype(np.min_scalar_type(column.size))[rows]
    if column.numeric:
        starts = np.searchsorted(codes[order], np.arange(column.present + 1))
        place = np.full(len(codes), NONE, np.min_scalar_type(-max(len(order), 1)))
        place[order] = np.arange(len(order))
        return Menu(column, menu, starts, np.cumsum(counts[order]), codes_of_rows, place[rows])
    of_row = np.where(usable, codes, NONE).astype(np.min_scalar_type(-column.size))[rows]
    places = np.arange(column.present + 1)
    written = _as_written(column, pa.array(column.values), menu, codes[order])
    return Menu(column, written, places, places[1:].astype(np.float64), codes_of_rows, of_row)


def _as_written(column: Column, listed: Any, values: Any, codes: Ints) -> Any:
    """One value per code: as the public table writes it ("06" for 6), or as the schema lists it if it is not there."""
    try:
        written = listed.cast(values.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return listed  # the table's type cannot hold the listed values
    in_public, first = np.unique(codes, return_index=True)
    index = np.arange(column.present) + len(values)
    index[in_public] = first
    menu = pa.concat_arrays([values, written]).take(pa.array(index))
    return menu if np.array_equal(code_cells(column, menu)[0], np.arange(column.present)) else listed


# ---------------------------------------------------------------------- copies


MISSING, OUTSIDE = 0, 1  # no value, or one that is not in the menu; other values are numbered from 2 on


def _numbered_rows(menu: Menu) -> Ints:
    place = menu.of_row.astype(np.int64)
    if menu.column.numeric:
        place = np.where(place < 0, place, np.append(_ranks(menu)[1], -1)[place])
    # A value outside the domain has a code too, but it is not the value that is written for the code.
    return np.where(menu.codes >= menu.column.present, MISSING, np.where(place < 0, OUTSIDE, place + 2))


def _numbered_cells(menu: Menu, cells: Any) -> Ints:
    """A number for the value of each cell, that of public rows with an equal value; -1 for one that none has."""
    column, cells = menu.column, one_piece(plain_cells(cells))
    codes, fits = code_cells(column, cells)
    if column.numeric:
        known = _ranks(menu)[0]
        numbers = numbers_of(column, cells)
        index = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
        fits &= np.append(known, np.nan)[index] == numbers
    else:
        index = codes
    return np.where(codes >= column.present, MISSING, np.where(fits, index + 2, -1))


def _ranks(menu: Menu) -> tuple[Floats, Ints]:
    """The numbers of a menu in rising order, and the rank of each value ("1" and "1.0" have one)."""
    return np.unique(numbers_of(menu.column, menu.values), return_inverse=True)


@dataclass(frozen=True, eq=False)
class Decoder:
    """Turns codes into a table; made by `Decoder.fit` from a public table.

    >>> from prade import Column, Schema
    >>> from prade.data.public.joint import encode
    >>> schema = Schema([Column("PAY", "numeric", edges=[1000, 2000], integer=True, min=0)])
    >>> decoder = Decoder.fit(schema, {"PAY": [500, 1500, 1500, 9000]})
    >>> decoder.decode(encode(schema, {"PAY": [1, 1999]}), seed=0)["PAY"].to_pylist()
    [500, 1500]
    """

    schema: Schema
    types: DeclaredTypes
    _menus: Mapping[str, Menu]
    _donors: Donors | None = None

    @classmethod
    def fit(cls, schema: Schema, public: Any, *, weight: str | None = None) -> Decoder:
        """Learn values, types and the order of columns from a public table; `weight` names its column of weights."""
        table = public if isinstance(public, Columns) else read_table(public)
        weights = np.ones(table.num_rows) if weight is None else row_weights(table, weight)
        without_values = {name for name in schema.groups if not schema[name].values}
        read_table(table, [name for name in schema.coded if name not in table.column_names])  # an error names it
        names = [name for name in table.column_names if name in schema and name not in without_values]
        threads = min(cores(), AT_ONCE)
        menus = finishing(lambda name: menu_of_public(schema[name], table[name], weights), names, threads)
        codes = {menu.column.name: menu.codes for menu in menus}
        donors = Donors(schema, codes, weights[weights > 0]) if weights.any() else None
        return cls(schema, DeclaredTypes.of(public, table), dict(zip(names, menus, strict=True)), donors)

    def decode(self, coded: Joint, *, seed: int | Chances, like: Like = "pyarrow", drawn: Ints | None = None) -> Frame:
        """The rows of `coded` as a table; the same seed gives the same table.

        `drawn` are the numbers of the public rows (of those with weight) that the rows were drawn from, if known. With
        `Chances` for a seed, a row's cells do not depend on the rows that are decoded with it.
        """
        if absent := [name for name in coded.columns if name not in self._menus]:
            raise DataError(f"column {absent[0]!r} was not in the public table of the decoder; leave it out, or add it")
        chances = seed if isinstance(seed, Chances) else Chances.of_groups(seed, [0], [len(coded)])
        names = [name for name in self._menus if name in coded.codes]
        donors = {} if self._donors is None else self._donors.find(coded.codes, chances, drawn)
        cells = [self._menus[name].draw(coded.codes[name], chances, donors.get(name)) for name in names]
        return self.types.framed(self.types.of_table(pa.table(cells, names=names)), like)

    def listed(self, name: str) -> pa.Array:
        """The listed values of a column, in the order of its codes, as the public table writes them."""
        return self.types.of_table(pa.table([self._menus[name].values], names=[name]))[name].combine_chunks()

    def copied(self, table: pa.Table, coded: Joint | None = None, drawn: Ints | None = None) -> Flags:
        """Whether each row of a table has, in every coded column, the values of one and the same public row.

        `coded` and `drawn` are what the table was decoded from, if known, which saves a look at the cells.
        """
        copied = np.zeros(table.num_rows, np.bool_)
        menus = [self._menus[name] for name in self.schema.coded]
        if coded is not None and drawn is not None and self._donors is not None:
            copied = self._donors.agree(coded.codes, drawn)
            copied[copied] = self._whole[drawn[copied]]
        others = np.flatnonzero(~copied)
        if len(others):
            cells = table.take(others)
            first, stop = self._numbers.runs([_numbered_cells(menu, cells[menu.column.name]) for menu in menus])
            copied[others] = first < stop
        return copied

    @cached_property
    def _whole(self) -> Flags:
        """Whether all values of each public row are in the domain: only such a row can have a copy."""
        menus = [self._menus[name] for name in self.schema.coded]
        fits = [(each.codes >= each.column.present) | (each.of_row >= 0) for each in menus]
        return np.asarray(np.logical_and.reduce(fits))

    @cached_property
    def _numbers(self) -> RowIndex:
        """The public rows by the numbers of their values, as written, not only by their bins."""
        numbers = [_numbered_rows(self._menus[name]) for name in self.schema.coded]
        sizes = [int(each.max(initial=0)) + 1 for each in numbers]
        return RowIndex([each.astype(np.min_scalar_type(n - 1)) for each, n in zip(numbers, sizes, strict=True)], sizes)
