"""Borrowing strength: a group's noisy answers, read together with how public groups differ from each other.

Let x_g be the true shares of group g in all measured cells, m_g what its prior says, y_g its noisy answers. We take

    x_g = m_g + u_g,        u_g ~ N(0, S),      S = a B + (w / n) C
    y_g = x_g + noise_g,    variances v_g

B is the covariance of cells between public groups beyond sampling: places differ together in many cells (where rents
are high, so are incomes), and a few such directions survive noise that would drown cell-by-cell answers. C is the
covariance of one row's cells within its group; C / n is what n rows vary by, and also the curvature of KL: w = n / n0
in `MAP`'s words. The numbers a and w are the most likely ones given all groups' answers together (empirical Bayes):
before any answer, private groups are expected to differ about as public ones do (a = 0.7; where a group's prior is its
own public rows, by far less), and to be samples like others (w near 2: the group's own sampling and the prior's). Where
noise drowns the answers that expectation remains.

The posterior mean and variances are answers again, with far less noise, that estimators take as Gaussian ones. All of
it is post-processing of noisy answers and public data. Efron and Morris (1973); Fay and Herriot (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.threads import single_threaded_blas

EXPECTED_BETWEEN, EXPECTED_WITHIN = 0.7, 2.0  # a and w before any answer: halfway in logarithms; states differ less
EXPECTED_CHANGE = 0.03  # a where a group's prior is its own public rows: places differ more than years do
UNSURE = 1.5  # standard deviation of their logarithms: a factor of 4 or 5 either way is no surprise
RATIOS = np.geomspace(1e-3, 1e2, 16)  # a / w
SCALES = np.geomspace(1e-3, 1e5, 97)  # w
ROWS_A_CELL, FEWEST_ROWS = 100, 20_000  # of the sample that C is estimated from
FEWEST_GROUPS = 3  # that say anything about differences between groups


@dataclass(frozen=True)
class Spread:
    """How cells vary in public data: `between` groups beyond sampling, and `within`, from row to row of a group."""

    between: Floats
    within: Floats

    @classmethod
    def of(
        cls,
        cells: Sequence[NDArray[Any]],
        sizes: Sequence[int],
        group: Ints,
        n_groups: int,
        seed: int,
        weights: Floats | None = None,
    ) -> Spread:
        """From each row's cell in every part (its size for none), its group and its weight (None: all weigh alike).

        `within` is estimated from a sample of rows, `between` from all: it is the covariance of the groups' shares,
        minus what sampling alone would make of it, cut to its positive part. A group of one row says nothing of either.
        Weighted rows count as many as would vary as little, (sum w)^2 / sum w^2 (Kish, 1965).
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
        chosen = chosen[: max(ROWS_A_CELL * int(start[-1]), FEWEST_ROWS)]
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

    Multiplied out, it is made of counts of pairs of cells, and of cells by group: quicker than with vectors of 0 and 1.
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
    found = []
    for cell, size in zip(cells, sizes, strict=True):
        flat = mass_per_cell(row.astype(np.int64) * (size + 1) + cell, weights, (n_rows + 1) * (size + 1))
        found.append(flat.reshape(n_rows + 1, size + 1)[:n_rows, :size])
    return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class Smoother:
    """The posterior under the most likely S, ready for any group, in the directions of the whitened S."""

    root: Floats  # standard deviations of the noise in a typical group's shares
    directions: Floats
    values: Floats
    a: float
    w: float  # of `typical_rows`
    shared: float  # share of the variance of u_g that is the same u for all groups (`shared_part`)

    @classmethod
    def fit(
        cls, spread: Spread, deviations: Floats, rows: Floats, noise: Floats, expected: float = EXPECTED_BETWEEN
    ) -> Smoother:
        """From deviations y_g - m_g [groups, cells], numbers of rows [groups], and the noise's standard deviations.

        These [groups, cells] are of shares, not counts, and are taken to differ from group to group by a factor.
        `expected` is a before any answer.
        """
        typical = typical_rows(rows)
        root = np.exp(np.mean(np.log(noise), axis=0))
        factor = np.mean((noise / root) ** 2, axis=1)
        whitened = deviations / root
        within = spread.within / typical / np.outer(root, root)
        between = spread.between / np.outer(root, root)
        best = None
        for ratio in RATIOS if between.any() else (0.0,):
            with single_threaded_blas():
                values, vectors = np.linalg.eigh(within + ratio * between)
                squares = (whitened @ vectors) ** 2
            values = np.maximum(values, 0.0)
            for scale in SCALES:
                variance = scale * values + factor[:, None]
                fit = -0.5 * float(np.sum(np.log(variance) + squares / variance))
                fit -= 0.5 * (np.log(scale / EXPECTED_WITHIN) / UNSURE) ** 2
                if ratio:
                    fit -= 0.5 * (np.log(scale * ratio / expected) / UNSURE) ** 2
                if best is None or fit > best[0]:
                    best = fit, scale * values, vectors, float(scale * ratio), float(scale)
        assert best is not None
        _, values, vectors, a, w = best
        variance = a * np.diag(spread.between) + w / rows[:, None] * np.diag(spread.within)
        shared = shared_part(deviations, np.maximum(variance, 0.0), noise, rows)
        return cls(root, vectors, values, a, w, shared)

    def posterior(self, deviation: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Mean and variances of u_g given the group's deviation y_g - m_g and its noise's standard deviations."""
        factor = float(np.mean((noise / self.root) ** 2))
        kept = self.values / (self.values + factor)
        mean = self.directions @ (kept * (self.directions.T @ (deviation / self.root)))
        variance = self.directions**2 @ (kept * factor)
        return self.root * mean, self.root**2 * variance


def shared_part(deviations: Floats, variance: Floats, noise: Floats, rows: Floats) -> float:
    """What share of the variance of u_g [groups, cells] groups have in common: a change from one year to the next, say.

    The mean of all groups' deviations, weighted by rows, varies by A if groups differ from their priors independently,
    by A + T if all do alike; of its square, what is beyond A is compared with T, summed over cells.
    """
    weight = rows / rows.sum()
    mean = weight @ deviations
    independent = weight**2 @ (variance + noise**2)
    alike = (weight @ np.sqrt(np.maximum(variance, 0.0))) ** 2 - weight**2 @ variance  # rounding may go below 0
    most = float(np.sum(alike))
    return float(np.clip(np.sum(mean**2 - independent) / most, 0.0, 1.0)) if most > 0 and len(rows) > 1 else 0.0


def typical_rows(rows: Floats) -> float:
    """The n that w / n stands for, in groups of different numbers of rows: their geometric mean."""
    return float(np.exp(np.mean(np.log(rows))))


def smooth_totals(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Numbers of rows drawn towards what was expected, as far as they scatter no more than their noise does.

    n_g ~ N(expected_g, t^2), t^2 = mean squared deviation of the noisy numbers minus the mean variance of their noise.
    """
    away = noisy - expected
    spread = max(float(np.mean(away**2 - variance)), 0.0)
    return np.asarray(expected + away * (spread / np.maximum(spread + variance, 1e-300)))


def totals_variance(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Of the numbers that `smooth_totals` returns: t^2 v / (t^2 + v), with t^2 larger by what it may be off by.

    That is its standard error, sqrt(2 / groups) (t^2 + mean of v). One group is drawn nowhere: v.
    """
    if len(noisy) == 1:
        return variance
    spread = max(float(np.mean((noisy - expected) ** 2 - variance)), 0.0)
    spread += np.sqrt(2 / len(noisy)) * (spread + float(np.mean(variance)))
    return np.asarray(spread * variance / np.maximum(spread + variance, 1e-300))
