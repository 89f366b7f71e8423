"""How the cells of a workload vary in public data: between groups, and from row to row within a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.compiled import compiled
from prade.core.execution import single_threaded_blas
from prade.queries.parts import Part

ROWS_PER_CELL, FEWEST_ROWS = 100, 20_000  # of the sample for `within`: a cell's variance is then known to 10 %
FEWEST_GROUPS = 3  # with fewer groups nothing is known about differences between groups


@dataclass(frozen=True)
class PublicVariation:
    """Covariances of cells in public data: B `between` groups beyond sampling, and C `within`, of one row's cells."""

    between: Floats
    within: Floats


@dataclass(frozen=True)
class FurtherVariation:
    """Covariances of further cells with known ones [further, known], and their own variances, as `PublicVariation`.

    `explained` is what the known cells explain of the variances between groups; it can be more than these, because the
    known cells' covariance was cut to its positive part.
    """

    between: Floats
    within: Floats
    between_variance: Floats
    explained: Floats
    within_variance: Floats


class VariationOfCells:
    """How cells vary in public data, and further cells with them.

    It is made from each row's cell in every part (the number of cells if it is in none), its group and its weight.
    `within` is estimated from a sample of rows, `between` from all: it is the covariance of the groups' shares, less
    what sampling alone would cause, cut to its positive part. Groups of one row are left out. Weighted rows count as
    (sum w)^2 / sum w^2 rows, which vary as much (Kish, 1965).
    """

    def __init__(
        self, cells: Sequence[NDArray[Any]], sizes: Sequence[int], group: Ints, n_groups: int, weights: Floats
    ) -> None:
        used = np.bincount(group[weights > 0], minlength=n_groups) > 1
        if not used.any() and n_groups > 1:
            group, n_groups = np.zeros_like(group), 1
            used = np.bincount(group[weights > 0], minlength=n_groups) > 1
        mass = mass_per_cell(group, weights, n_groups)
        rows = mass**2 / np.maximum(mass_per_cell(group, weights**2, n_groups), 1e-300)
        self.group, self.used, self.sizes = group, used, tuple(sizes)
        self._share_of = np.divide(1.0, mass, out=np.zeros(n_groups), where=used)[group] * weights
        self.shares = self._group_shares(cells, sizes)
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(used[group]))
        self._chosen = chosen[: max(ROWS_PER_CELL * int(sum(sizes)), FEWEST_ROWS)]
        sampled = [cell[self._chosen] for cell in cells]
        self._cells = numbered(sampled, sizes)
        self._weight = (rows[group] * self._share_of)[self._chosen]
        self.rows, size = float(rows[used].sum()), int(used.sum())
        # a group's shares are fitted to its rows: each group takes one degree of freedom
        self._freedom = self.rows / max(self.rows - size, 1.0)
        self._groups = rows[used] / self.rows  # weights of the groups
        self._sampling = (size - 1) / self.rows if size >= FEWEST_GROUPS else None
        with single_threaded_blas():
            within = self._within(sampled, sizes, self.shares)
            raw = self._between(self.shares, within)
            values, vectors = np.linalg.eigh(raw)
            positive = values > 1e-10 * max(float(values[-1]), 0.0)
            self._values, self._directions = values[positive], vectors[:, positive]
            between = (self._directions * self._values) @ self._directions.T
        self.variation = PublicVariation(between, within)

    def further(
        self, cells: Sequence[NDArray[Any]], sizes: Sequence[int], combined: Floats | None = None
    ) -> FurtherVariation:
        """How further cells vary with these, or linear combinations [combinations, cells] of the cells of one part.

        What is cut from `between` here is cut from theirs: their covariances are projected to the positive part.
        """
        shares, within, own = self._further_within(cells, sizes, combined)
        with single_threaded_blas():
            raw = self._between(shares, within)
            along = raw @ self._directions
            between, explained = along @ self._directions.T, np.sum(along**2 / self._values, axis=1)
        variance = np.zeros(len(own))
        if self._sampling is not None:
            away = shares[self.used] - self._groups @ shares[self.used]
            variance = (self._groups @ away**2 - own * self._sampling) / (1 - self._groups @ self._groups)
        return FurtherVariation(between, within, np.maximum(variance, 0.0), explained, own)

    def _further_within(
        self, cells: Sequence[NDArray[Any]], sizes: Sequence[int], combined: Floats | None
    ) -> tuple[Floats, Floats, Floats]:
        shares, sampled = self._group_shares(cells, sizes), [cell[self._chosen] for cell in cells]
        own = self._own_variance(sampled, sizes, shares, combined)
        with single_threaded_blas():
            within = self._within(sampled, sizes, shares)
            if combined is not None:
                shares, within = shares @ combined.T, combined @ within
        return shares, within, own

    def _group_shares(self, cells: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Floats:
        return _sums(self.group, len(self.used), cells, sizes, self._share_of)

    def _between(self, shares: Floats, within: Floats) -> Floats:
        """Covariances of groups' shares with those of the known cells, less what sampling causes."""
        if self._sampling is None:
            return np.zeros_like(within)
        mine, known = (each[self.used] - self._groups @ each[self.used] for each in (shares, self.shares))
        return np.asarray(
            ((mine.T * self._groups) @ known - within * self._sampling) / (1 - self._groups @ self._groups)
        )

    def _within(self, cells: Sequence[NDArray[Any]], sizes: Sequence[int], shares: Floats) -> Floats:
        """Weighted mean over rows of (e - s)(f - t)', e and f the 0/1 vectors of a row's cells, s and t its group's
        shares: of the given cells and of the known ones.

        Multiplied out, it needs only counts of pairs of cells, and of cells by group: quicker than vectors of 0 and 1.
        """
        weight, group = self._weight, self.group[self._chosen]
        known, parts = sum(self.sizes), zip(cells, sizes, strict=True)
        pairs = np.concatenate([_counted(c.astype(np.int64), size, self._cells, known, weight) for c, size in parts])
        mine = _sums(group, len(self.used), cells, sizes, weight)
        theirs = _counted(group, len(self.used), self._cells, known, weight)
        mixed = mine.T @ self.shares + shares.T @ theirs
        of_shares = (shares.T * mass_per_cell(group, weight, len(self.used))) @ self.shares
        return np.asarray(self._freedom * (pairs - mixed + of_shares) / max(float(weight.sum()), 1e-300))

    def _own_variance(
        self, cells: Sequence[NDArray[Any]], sizes: Sequence[int], shares: Floats, combined: Floats | None
    ) -> Floats:
        """The diagonal of `within` for further cells: the weighted mean over rows of (e - s)^2."""
        weight, group = self._weight, self.group[self._chosen]
        mine = _sums(group, len(self.used), cells, sizes, weight)
        squares, firsts, means = mine, mine, shares
        if combined is not None:  # a row is in one cell at most
            squares, firsts, means = mine @ combined.T**2, mine @ combined.T, shares @ combined.T
        rows = mass_per_cell(group, weight, len(self.used))[:, None]
        found = np.sum(squares - 2 * means * firsts + means**2 * rows, axis=0)
        return np.asarray(self._freedom * found / max(float(weight.sum()), 1e-300))


def numbered(cells: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.int32]:
    """Each row's cells in several parts, [rows, parts], numbered one part after the other; in none: the last number."""
    starts = np.cumsum([0, *sizes])
    parts = zip(cells, sizes, starts, strict=False)
    return np.stack([np.where(each < size, each + start, starts[-1]) for each, size, start in parts], 1, dtype=np.int32)


@compiled
def _counted(row: Ints, n_rows: int, cells: NDArray[np.int32], size: int, weights: Floats) -> Floats:
    """As `_sums`, for cells that are numbered one part after the other."""
    sums = np.zeros((n_rows + 1, size + 1))
    for k in range(len(row)):
        mine, weight = sums[row[k]], weights[k]
        for part in range(cells.shape[1]):
            mine[cells[k, part]] += weight
    return sums[:n_rows, :size]


def _sums(
    row: NDArray[Any], n_rows: int, cells: Sequence[NDArray[Any]], sizes: Sequence[int], weights: Floats
) -> Floats:
    """Weight of each cell of all parts, by the value of `row`; rows in no cell, and values beyond, are left out."""
    parts = zip(cells, sizes, strict=True)
    return np.concatenate([weight_by_group(row, n_rows, cell, size, weights) for cell, size in parts], axis=1)


def weight_by_group(group: NDArray[Any], n_groups: int, cells: NDArray[Any], size: int, weights: Floats) -> Floats:
    """As `mass_by_group`, to the last bit and in a third of the time: pages ask for hundreds of tables of all rows."""
    return _counted(group.astype(np.int64, copy=False), n_groups, cells.astype(np.int32)[:, None], size, weights)


# ---------------------------------------------------------------------- blocks of cells


MOST_SMOOTHED = 500  # cells in a block: the time for a covariance grows with the cube of their number
PIECE = 200  # cells in each piece of a part that is larger than a block: of thousands of cells, few vary together


def blocks_of(parts: Sequence[Part]) -> list[slice]:
    """The cells of some parts, cut into blocks."""
    return blocks([part.n_cells for part in parts], MOST_SMOOTHED, PIECE)


def blocks(sizes: Sequence[int], most: int, piece: int) -> list[slice]:
    """All cells of neighbouring parts, at most `most` in a block; a part that has more is cut into pieces.

    >>> blocks([4, 4, 3, 20, 2], most=8, piece=7)
    [slice(0, 8, None), slice(8, 11, None), slice(11, 18, None), slice(18, 25, None), slice(25, 31, None), \
slice(31, 33, None)]
    """
    made: list[slice] = []
    start, room = 0, 0
    for size in sizes:
        stop = start + size
        if size > most:
            made += [slice(first, min(first + piece, stop)) for first in range(start, stop, piece)]
            room = 0
        elif size > room:
            made.append(slice(start, stop))
            room = most - size
        else:
            made[-1] = slice(made[-1].start, stop)
            room -= size
        start = stop
    return made
