"""An index of rows by their codes: made once, then asked for the rows that are equal to others, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Ints, smallest_unsigned

Columns = Sequence[NDArray[Any]]


class RowIndex:
    """Rows sorted by a random 64-bit sum of their codes; equal rows are next to each other, in their own order.

    `order` has the numbers of the rows. Different rows never share a sum: that is checked when the index is made.

    >>> index = RowIndex([np.array([0, 1, 0, 1])], [2])
    >>> first, stop = index.runs([np.array([1, 5])])
    >>> index.order[first[0] : stop[0]], int(stop[1] - first[1])
    (array([1, 3], dtype=uint8), 0)
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
            self.order = order.astype(smallest_unsigned(len(order)))
            if self._exact():
                return

    def _keys(self, columns: Columns) -> NDArray[np.uint64]:
        key = np.zeros(len(columns[0]), np.uint64)
        for values, column in zip(self._values, columns, strict=True):
            inside = (column >= 0) & (column < len(values))
            key += values[np.where(inside, column, len(values) - 1)]
        return key

    def _exact(self) -> bool:
        """Whether neighbours with the same sum are equal in every column."""
        same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        one, other = self.order[same], self.order[same + 1]
        return all(np.array_equal(column[one], column[other]) for column in self._columns)

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
