"""Type aliases for arrays, and the few array operations that many rooms need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that can hold every number up to `largest`."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def mass_per_cell(cells: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of the weights in each of `size` cells."""
    return np.bincount(cells, weights=weights, minlength=size).astype(np.float64, copy=False)


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
