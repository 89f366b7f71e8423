"""How the cells of a workload vary in public data: between groups, and from row to row within a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_by_group, mass_per_cell
from prade.core.threads import single_threaded_blas

ROWS_PER_CELL, FEWEST_ROWS = 100, 20_000  # of the sample for `within`: a cell's variance is then known to 10 %
FEWEST_GROUPS = 3  # with fewer groups nothing is known about differences between groups


@dataclass(frozen=True)
class PublicVariation:
    """Covariances of cells in public data: B `between` groups beyond sampling, and C `within`, of one row's cells."""

    between: Floats
    within: Floats

    def combined(self, combinations: Floats) -> PublicVariation:
        """The same with linear combinations, [combinations, cells], in place of the last cells."""
        first = len(self.between) - combinations.shape[1]

        def changed(matrix: Floats) -> Floats:
            rows = np.concatenate([matrix[:first], combinations @ matrix[first:]])
            return np.concatenate([rows[:, :first], rows[:, first:] @ combinations.T], axis=1)

        return PublicVariation(changed(self.between), changed(self.within))

    @classmethod
    def of(
        cls,
        cells: Sequence[NDArray[Any]],
        sizes: Sequence[int],
        group: Ints,
        n_groups: int,
        seed: int,
        weights: Floats | None = None,
    ) -> PublicVariation:
        """From each row's cell in every part (the number of cells if it is in none), its group and its weight (None for
        equal weights).

        `within` is estimated from a sample of rows, `between` from all: it is the covariance of the groups' shares,
        less what sampling alone would cause, cut to its positive part. Groups of one row are left out. Weighted rows
        count as (sum w)^2 / sum w^2 rows, which vary as much (Kish, 1965).
        """
        weights = np.ones(len(group)) if weights is None else weights
        mass = mass_per_cell(group, weights, n_groups)
        rows = mass**2 / np.maximum(mass_per_cell(group, weights**2, n_groups), 1e-300)
        used = np.bincount(group[weights > 0], minlength=n_groups) > 1
        if not used.any() and n_groups > 1:
            return cls.of(cells, sizes, np.zeros_like(group), 1, seed, weights)
        start = np.concatenate([[0], np.cumsum(sizes)])
        share_of = np.divide(1.0, mass, out=np.zeros(n_groups), where=used)[group] * weights
        shares = _sums(group, n_groups, cells, sizes, share_of)
        chosen = np.random.default_rng(seed).permutation(np.flatnonzero(used[group]))
        chosen = chosen[: max(ROWS_PER_CELL * int(start[-1]), FEWEST_ROWS)]
        number, size = float(rows[used].sum()), int(used.sum())
        with single_threaded_blas():
            # a group's shares are fitted to its rows: each group takes one degree of freedom
            freedom = number / max(number - size, 1.0)
            within = freedom * _within(
                [cell[chosen] for cell in cells], sizes, shares, group[chosen], (rows[group] * share_of)[chosen]
            )
            if size < FEWEST_GROUPS:
                return cls(np.zeros_like(within), within)
            weight = rows[used] / number
            away = shares[used] - weight @ shares[used]
            raw = (away.T * weight) @ away - within * ((size - 1) / number)
            values, vectors = np.linalg.eigh(raw / (1 - weight @ weight))
            return cls((vectors * np.maximum(values, 0.0)) @ vectors.T, within)


def _within(
    cells: Sequence[NDArray[Any]], sizes: Sequence[int], shares: Floats, group: Ints, weights: Floats
) -> Floats:
    """Weighted mean over rows of (e - s)(e - s)': e is the 0/1 vector of a row's cells, s its group's shares.

    Multiplied out, it needs only counts of pairs of cells, and of cells by group: quicker than vectors of 0 and 1.
    """
    pairs = np.concatenate([_sums(cell, size, cells, sizes, weights) for cell, size in zip(cells, sizes, strict=True)])
    in_group = _sums(group, len(shares), cells, sizes, weights)
    mixed = shares.T @ in_group
    of_shares = (shares.T * mass_per_cell(group, weights, len(shares))) @ shares
    return np.asarray((pairs - mixed - mixed.T + of_shares) / max(float(weights.sum()), 1e-300))


def _sums(
    row: NDArray[Any], n_rows: int, cells: Sequence[NDArray[Any]], sizes: Sequence[int], weights: Floats
) -> Floats:
    """Weight of each cell of all parts, by the value of `row`; rows in no cell, and values beyond, are left out."""
    parts = zip(cells, sizes, strict=True)
    return np.concatenate([mass_by_group(row, n_rows, cell, size, weights) for cell, size in parts], axis=1)
