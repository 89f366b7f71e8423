"""Donors: the public rows that synthetic rows take their values from.

All values of a synthetic row come from one public row with the same codes, its *donor*, so that values that belong
together stay together: wages are part of the same person's income.

If no public row has all codes of a row, its columns are put in a line: the linked sets of the schema, then the other
numeric columns. One donor gives as many columns from the start of the line as some public row has the bins of,
together; another donor those that follow, and so on. A linked set is divided only if no public row has its bins
together. A column that is left over takes a value of its bin by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Chances, Flags, Floats, Ints, drawn_in_runs
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes

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

        A `drawn` public row is the donor if it has the row's codes. Otherwise the donor is drawn by weight from the
        public rows that have them, with the row's own random numbers.
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


# ---------------------------------------------------------------------- an index of rows by their codes


Columns = Sequence[NDArray[Any]]


class RowIndex:
    """An index of rows, sorted by a random 64-bit sum of their codes (checked: different rows never share one).

    `order` has the numbers of the rows; equal rows are next to each other, in their own order.
    """

    def __init__(self, columns: Columns, sizes: Sequence[int]) -> None:
        generator = np.random.default_rng(0x9E3779B9)
        self._columns = columns
        while True:
            # one more than the codes there are: all that is larger is like no row
            self._values = [generator.integers(0, 2**64, size=size + 1, dtype=np.uint64) for size in sizes]
            key = self._keys(columns)
            order = np.argsort(key, kind="stable")
            self._sorted = key[order]
            self.order = order.astype(np.min_scalar_type(len(order)))
            same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])  # neighbours, to be equal in every column
            if all(np.array_equal(column[self.order[same]], column[self.order[same + 1]]) for column in columns):
                return

    def _keys(self, columns: Columns) -> NDArray[np.uint64]:
        key = np.zeros(len(columns[0]), np.uint64)
        for values, column in zip(self._values, columns, strict=True):
            inside = (column >= 0) & (column < len(values))
            key += values[np.where(inside, column, len(values) - 1)]
        return key

    def runs(self, wanted: Columns) -> tuple[Ints, Ints]:
        """Where the rows that are equal to each of some others begin and end in `order`; an empty run for none."""
        keys = self._keys(wanted)
        first, stop = (np.searchsorted(self._sorted, keys, side=side) for side in ("left", "right"))
        found = np.flatnonzero(first < stop)
        rows = self.order[first[found]]
        equal = np.ones(len(found), np.bool_)
        for column, mine in zip(self._columns, wanted, strict=True):
            equal &= column[rows] == mine[found]
        stop[found[~equal]] = first[found[~equal]]
        return first, stop
