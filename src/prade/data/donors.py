"""Donors: the public rows that synthetic rows take their values from.

A synthetic row has codes; a code is a value or a bin. All values of the row come from one public row with the same
codes, its *donor*, so that values that belong together stay together: wages are part of the same person's income.

If no public row has all codes of a row, its columns are put in a line: the linked sets of the schema, then the other
numeric columns. One donor gives the values of as many columns from the start of the line as some public row has the
bins of, together; another donor gives those of the columns that follow, and so on. A linked set is divided only if no
public row has its bins together. A column that is left over takes a value of its bin by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, distinct_rows, drawn_in_runs
from prade.data.joint import Codes
from prade.data.schema import Schema

NONE = -1  # in place of a row number: no public row


@dataclass(frozen=True, eq=False)
class Donors:
    """The codes of the public rows, by column, and their weights, all above 0."""

    schema: Schema
    codes: Codes
    weights: Floats

    def find(self, wanted: Codes, generator: np.random.Generator, drawn: Ints | None = None) -> dict[str, Ints]:
        """The donor of each row for each numeric column of `wanted`: the number of a public row, or -1 for none.

        `drawn` are public rows that the rows were drawn from: each is the donor if it has the row's codes. Otherwise
        the donor is drawn by weight from the public rows that have them.
        """
        rows = len(next(iter(wanted.values())))
        donor = np.full(rows, NONE) if drawn is None else np.where(self._agree(wanted, drawn), drawn, NONE)
        without = np.flatnonzero(donor == NONE)
        donor[without] = self._pick(list(wanted), wanted, without, generator)
        found = {name: donor.copy() for name in wanted if self.schema[name].kind == "numeric"}
        self._find_in_line(found, wanted, without[donor[without] == NONE], generator)
        return found

    def _agree(self, wanted: Codes, drawn: Ints) -> Flags:
        """Whether each drawn public row exists and has the codes of its row."""
        known = (drawn >= 0) & (drawn < len(self.weights))
        rows = np.where(known, drawn, 0)
        for name, code in wanted.items():
            known &= self.codes[name][rows] == code
        return known

    def _pick(self, columns: Sequence[str], wanted: Codes, rows: Ints, generator: np.random.Generator) -> Ints:
        """For each of some rows, a public row with the same codes in these columns, drawn by weight; -1 for none."""
        if not len(rows):
            return rows
        public = len(self.weights)
        both = [np.concatenate([self.codes[name], wanted[name][rows]]) for name in columns]
        number = distinct_rows(both)[1]
        order = np.argsort(number[:public], kind="stable")
        runs = np.searchsorted(number[order], np.arange(len(rows) + public + 1))  # where each distinct row's run starts
        first, stop = runs[number[public:]], runs[number[public:] + 1]
        index = drawn_in_runs(np.cumsum(self.weights[order]), first, stop, generator)
        return np.where(first < stop, order[np.minimum(index, public - 1)], NONE)

    def _find_in_line(self, found: dict[str, Ints], wanted: Codes, rows: Ints, generator: np.random.Generator) -> None:
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
                picked = self._pick(line[start:end], wanted, rows[waiting], generator)
                has = picked != NONE
                for name in line[start:end]:
                    if name in found:
                        found[name][rows[waiting[has]]] = picked[has]
                reached[waiting[has]] = end
                waiting = waiting[~has]
            reached[waiting] = start + 1


def _ends(start: int, bounds: Sequence[int]) -> list[int]:
    """Where two columns or more that begin at `start` may end: at the end of a set if possible, or else within one.

    >>> _ends(0, [3, 4, 5])
    [5, 4, 3, 2]
    >>> _ends(0, [4, 5]), _ends(3, [4, 5])
    ([5, 4, 3, 2], [5])
    """
    of_set = next(bound for bound in bounds if bound > start)
    whole = [bound for bound in reversed(bounds) if bound >= start + 2]
    return whole + list(range(of_set - 1, start + 1, -1))
