"""Type aliases for arrays, and the few array operations that many rooms need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

LARGEST_COUNTED = 2**22  # cells; beyond this, sorting the rows is faster than a table of all cells


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that can hold every number up to `largest`."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def mass_per_cell(cells: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of the weights in each of `size` cells."""
    return np.bincount(cells, weights=weights, minlength=size).astype(np.float64, copy=False)


def mass_by_group(
    group: NDArray[Any], n_groups: int, cells: NDArray[Any], n_cells: int, weights: Floats | None = None
) -> NDArray[Any]:
    """Number of rows, or sum of their weights, in each cell of each group: [groups, cells].

    A row in no cell has the number `n_cells`, a row in no group the number `n_groups`.

    >>> mass_by_group(np.array([0, 1, 1, 1]), 2, np.array([0, 0, 1, 2]), 2)
    array([[1, 0],
           [1, 1]])
    """
    width = n_cells + 1
    place = group.astype(np.int64) * width + cells
    return np.bincount(place, weights, (n_groups + 1) * width).reshape(n_groups + 1, width)[:n_groups, :n_cells]


def counted(cells: Ints, size: int) -> tuple[Ints, Ints]:
    """The cells that occur, in ascending order, and how often each does; `size` is the number of cells there are.

    >>> counted(np.array([3, 1, 3]), 5)
    (array([1, 3]), array([1, 2]))
    """
    if size > LARGEST_COUNTED:
        place, counts = np.unique(cells, return_counts=True)
        return place, counts
    counts = np.bincount(cells, minlength=size)
    place = np.flatnonzero(counts)
    return place, counts[place]


def drawn_in_runs(cumulative: Floats, first: Ints, stop: Ints, chance: Floats) -> Ints:
    """One index from each run first : stop, drawn in proportion to the weights whose cumulative sum is given.

    `chance` has a random number from 0 to 1 for each run. An empty run gives its own start.

    >>> drawn_in_runs(np.array([1.0, 1.0, 3.0]), np.array([0, 2, 3]), np.array([2, 3, 3]), np.array([0.3, 0.6, 0.9]))
    array([0, 2, 3])
    """
    below = np.concatenate([[0.0], cumulative])
    target = below[first] + chance * (below[stop] - below[first])
    found = np.searchsorted(cumulative, target, side="right")
    return np.asarray(np.clip(found, first, np.maximum(first, stop - 1)))  # rounding may leave the run


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """The index at which each distinct row first appears, and for every row the number of its distinct row.

    Rows are compared by a random 64-bit sum of their codes and then checked column by column, so the result is exact.
    Distinct rows are numbered in order of first appearance, so the result does not depend on the random numbers.
    """
    rows = len(columns[0])
    generator = np.random.default_rng(0x9E3779B9)
    while True:
        key = np.zeros(rows, np.uint64)
        for column in columns:
            values = generator.integers(0, 2**64, size=int(column.max(initial=0)) + 1, dtype=np.uint64)
            key += values[column]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, number = first[order], rank[number]
        if all(np.array_equal(column, column[first][number]) for column in columns):
            return first, number


def shared_out(rows: int, totals: Floats) -> Floats:
    """Whole numbers that add up to `rows`, in proportion to totals, or equal if all totals are 0.

    Each gets the whole part of its share rows n_g / sum(n), those with the largest fractions one more.

    >>> shared_out(10, np.array([1.0, 1.0, 0.0, 4.0]))
    array([2., 2., 0., 6.])
    """
    totals = totals if totals.any() else np.ones(len(totals))
    shares = rows * (totals / totals.sum())
    least = np.floor(shares)
    least[np.argsort(least - shares, kind="stable")[: rows - int(least.sum())]] += 1
    return np.asarray(least, np.float64)
