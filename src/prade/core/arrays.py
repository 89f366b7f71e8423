"""Arrays: their names in signatures, and the few operations that many rooms need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds every number up to `largest`."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def mass_per_cell(cells: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of the weights in each of `size` cells."""
    return np.bincount(cells, weights=weights, minlength=size).astype(np.float64, copy=False)


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """Index of the first row of each kind, and for every row which kind it is.

    Rows are compared by a random 64-bit sum of their codes and then checked column by column, so the answer is exact;
    kinds come in the order of their first row, so it does not depend on the random numbers either.
    """
    rows = len(columns[0])
    generator = np.random.default_rng(0x9E3779B9)
    while True:
        key = np.zeros(rows, np.uint64)
        for column in columns:
            values = generator.integers(0, 2**64, size=int(column.max(initial=0)) + 1, dtype=np.uint64)
            key += values[column]
        _, first, kind = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first, kind = first[order], rank[kind]
        if all(np.array_equal(column, column[first][kind]) for column in columns):
            return first, kind
