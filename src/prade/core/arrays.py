"""Type aliases for arrays, the few array operations that many rooms need, precise means, random numbers of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

STREAM = 2  # keeps the random numbers of rows apart from others that are drawn with the same seed
LARGEST_COUNTED = 2**22  # cells; beyond this, sorting the rows is faster than a table of all cells


def mass_per_cell(cells: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of the weights in each of `size` cells."""
    return np.bincount(cells, weights, size).astype(np.float64, copy=False)


def mass_by_group(
    group: NDArray[Any], n_groups: int, cells: NDArray[Any], n_cells: int, weights: Floats | None = None
) -> NDArray[Any]:
    """Number of rows, or sum of weights, in each cell of each group; a row in none has `n_cells` or `n_groups`."""
    width = n_cells + 1
    place = group.astype(np.int64) * width + cells
    return np.bincount(place, weights, (n_groups + 1) * width).reshape(n_groups + 1, width)[:n_groups, :n_cells]


def counted(cells: Ints, size: int) -> tuple[Ints, Ints]:
    """The cells that occur, in ascending order, and how often each does; `size` is the number of cells there are."""
    if size > LARGEST_COUNTED:
        place, counts = np.unique(cells, return_counts=True)
        return place, counts
    counts = np.bincount(cells, minlength=size)
    place = np.flatnonzero(counts)
    return place, counts[place]


def drawn_in_runs(cumulative: Floats, first: Ints, stop: Ints, chance: Floats) -> Ints:
    """One index from each run first : stop, in proportion to weights with this cumulative sum; an empty run's start.

    >>> drawn_in_runs(np.array([1.0, 1.0, 3.0]), np.array([0, 2, 3]), np.array([2, 3, 3]), np.array([0.3, 0.6, 0.9]))
    array([0, 2, 3])
    """
    below = np.concatenate([[0.0], cumulative])
    target = below[first] + chance * (below[stop] - below[first])
    index = np.searchsorted(cumulative, target, side="right")
    return np.asarray(np.clip(index, first, np.maximum(first, stop - 1)))  # rounding may leave the run


def shared_out(rows: int, totals: Floats) -> Floats:
    """Whole numbers that add up to `rows`, in proportion to totals (or equal if all are 0), by largest remainders.

    >>> shared_out(10, np.array([1.0, 1.0, 0.0, 4.0]))
    array([2., 2., 0., 6.])
    """
    totals = totals if totals.any() else np.ones(len(totals))
    shares = rows * (totals / totals.sum())
    least = np.floor(shares)
    least[np.argsort(least - shares, kind="stable")[: rows - int(least.sum())]] += 1
    return np.asarray(least, np.float64)


class PreciseMean:
    """The mean of noisy answers to one question, weighted by inverse variances; `add` takes in one more answer.

        mean = sum_k (y_k / v_k) / sum_k (1 / v_k),        variance = 1 / sum_k (1 / v_k)

    Answers are arrays of one shape. A variance is a number, or has one entry for each row of the answers.
    """

    def __init__(self, *shape: int) -> None:
        self.weighted = np.zeros(shape)
        self.precision: Any = 0.0

    def add(self, answers: Floats, variance: Any) -> None:
        self.weighted += answers / self._per_row(variance)
        self.precision = self.precision + 1 / variance

    @property
    def known(self) -> bool:
        """Whether every row has an answer."""
        return bool(np.all(self.precision > 0))

    @property
    def value(self) -> Floats:
        return np.asarray(self.weighted / self._per_row(self.precision))

    @property
    def variance(self) -> Any:
        return 1 / self.precision

    def _per_row(self, values: Any) -> Any:
        return np.reshape(values, (-1, *[1] * (self.weighted.ndim - 1))) if np.ndim(values) else values


class Chances:
    """Random numbers of rows, each a function of the row's key and its use, however a table is made in pieces."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self.keys = keys

    @classmethod
    def of_groups(cls, seed: int, groups: Sequence[int], sizes: Sequence[int]) -> Chances:
        """For the rows of some groups; a row's key depends on its place in its own group only."""
        generators = [np.random.default_rng([STREAM, group, seed]) for group in groups]
        keys = [each.integers(0, 2**64, n, np.uint64) for each, n in zip(generators, sizes, strict=True)]
        return cls(np.concatenate([np.zeros(0, np.uint64), *keys]))

    def uniform(self, what: str, rows: Ints) -> Floats:
        """A number from 0 up to 1 for each of some rows; other numbers for anything else that they are for."""
        salt = np.frombuffer(hashlib.sha256(what.encode()).digest()[:8], np.uint64)[0]
        return np.asarray((mixed(self.keys[rows] + salt) >> np.uint64(11)) * 2.0**-53)


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A permutation of 64 bits that changes half of them when one changes (Steele, Lea, Flood: SplitMix, 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
