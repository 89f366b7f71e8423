"""Borrowing strength: a group's noisy answers, read together with how public groups differ from each other.

Let x_g be the true shares of group g in all measured cells, m_g what its prior says, y_g its noisy answers. We take

    x_g = m_g + u_g,        u_g ~ N(0, S),      S = a B + (w / n) C
    y_g = x_g + noise_g,    variances v_g

B is the covariance of cells between public groups beyond sampling: places differ together in many cells (where rents
are high, so are incomes), and a few such directions survive noise that would drown cell-by-cell answers. C is the
covariance of one row's cells within its group; C / n is what n rows vary by, and also the curvature of KL: w = n / n0
in `MAP`'s words. The numbers a and w are the most likely ones given all groups' answers together (empirical Bayes):
before any answer, private groups are expected to differ about as public ones do (a near 1), and to be samples like
others (w near 2: the group's own sampling and the prior's). Where noise drowns the answers that expectation remains.

The posterior mean and variances are answers again, with far less noise, that estimators take as Gaussian ones. All of
it is post-processing of noisy answers and public data. Efron and Morris (1973); Fay and Herriot (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.blas import single_threaded_blas

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXPECTED_BETWEEN, EXPECTED_WITHIN = 0.7, 2.0  # a and w before any answer: halfway in logarithms; states differ less
UNSURE = 1.5  # standard deviation of their logarithms: a factor of 4 or 5 either way is no surprise
RATIOS = np.geomspace(1e-3, 1e2, 16)  # a / w
SCALES = np.geomspace(1e-3, 1e5, 97)  # w
ROWS_A_CELL, FEWEST_ROWS = 100, 20_000  # of the sample that C is estimated from
ROWS_AT_ONCE = 4_096  # whose cells are held as 0/1 vectors
FEWEST_GROUPS = 3  # that say anything about differences between groups


@dataclass(frozen=True)
class Spread:
    """How cells vary in public data: `between` groups beyond sampling, and `within`, from row to row of a group."""

    between: Floats
    within: Floats

    @classmethod
    def of(cls, cells: Sequence[NDArray[Any]], sizes: Sequence[int], group: Ints, n_groups: int, seed: int) -> Spread:
        """From each row's cell in every part (its size for none) and its group.

        `within` is estimated from a sample of rows, `between` from all: it is the covariance of the groups' shares,
        minus what sampling alone would make of it, cut to its positive part. A group of one row says nothing of either.
        """
        start = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.bincount(group, minlength=n_groups).astype(float)
        shares = np.zeros((n_groups, start[-1]))
        for k, cell in enumerate(cells):
            flat = np.bincount(group * (sizes[k] + 1) + cell, minlength=n_groups * (sizes[k] + 1))
            shares[:, start[k] : start[k + 1]] = flat.reshape(n_groups, -1)[:, : sizes[k]]
        used = rows > 1
        if not used.any() and n_groups > 1:
            return cls.of(cells, sizes, np.zeros_like(group), 1, seed)
        shares[used] /= rows[used, None]
        usable = np.flatnonzero(used[group])
        chosen = np.random.default_rng(seed).permutation(usable)[: max(ROWS_A_CELL * int(start[-1]), FEWEST_ROWS)]
        number, size = float(rows[used].sum()), int(used.sum())
        with single_threaded_blas():
            # a group's shares are fitted to its rows: each group takes one degree of freedom
            within = _within(cells, sizes, start, chosen, shares, group) * (number / max(number - size, 1.0))
            if size < FEWEST_GROUPS:
                return cls(np.zeros_like(within), within)
            weight = rows[used] / number
            away = shares[used] - weight @ shares[used]
            raw = (away.T * weight) @ away - within * ((size - 1) / number)
            values, vectors = np.linalg.eigh(raw / (1 - weight @ weight))
            return cls((vectors * np.maximum(values, 0.0)) @ vectors.T, within)

    def without_between(self) -> Spread:
        """For groups whose prior is their own public rows: what public groups differ by is no matter then."""
        return Spread(np.zeros_like(self.between), self.within)


def _within(
    cells: Sequence[NDArray[Any]], sizes: Sequence[int], start: Ints, chosen: Ints, shares: Floats, group: Ints
) -> Floats:
    """Mean over the chosen rows of (e - s)(e - s)': e is the 0/1 vector of a row's cells, s its group's shares."""
    summed = np.zeros((shares.shape[1], shares.shape[1]))
    for first in range(0, len(chosen), ROWS_AT_ONCE):
        rows = chosen[first : first + ROWS_AT_ONCE]
        away = -shares[group[rows]]
        for k, cell in enumerate(cells):
            mine = cell[rows].astype(np.int64)
            inside = np.flatnonzero(mine < sizes[k])
            away[inside, start[k] + mine[inside]] += 1.0
        summed += away.T @ away
    return np.asarray(summed / max(len(chosen), 1))


@dataclass(frozen=True)
class Smoother:
    """The posterior under the most likely S, ready for any group, in the directions of the whitened S."""

    root: Floats  # standard deviations of the noise in a typical group's shares
    directions: Floats
    values: Floats
    a: float
    w: float

    @classmethod
    def fit(cls, spread: Spread, deviations: Floats, rows: Floats, noise: Floats) -> Smoother:
        """From deviations y_g - m_g [groups, cells], numbers of rows [groups], and the noise's standard deviations.

        These [groups, cells] are of shares, not counts, and are taken to differ from group to group by a factor.
        """
        typical = float(np.exp(np.mean(np.log(rows))))
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
                    fit -= 0.5 * (np.log(scale * ratio / EXPECTED_BETWEEN) / UNSURE) ** 2
                if best is None or fit > best[0]:
                    best = fit, cls(root, vectors, scale * values, float(scale * ratio), float(scale))
        assert best is not None
        return best[1]

    def posterior(self, deviation: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Mean and variances of u_g given the group's deviation y_g - m_g and its noise's standard deviations."""
        factor = float(np.mean((noise / self.root) ** 2))
        kept = self.values / (self.values + factor)
        mean = self.directions @ (kept * (self.directions.T @ (deviation / self.root)))
        variance = self.directions**2 @ (kept * factor)
        return self.root * mean, self.root**2 * variance


def smooth_totals(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Numbers of rows drawn towards what was expected, as far as they scatter no more than their noise does.

    n_g ~ N(expected_g, t^2), t^2 = mean squared deviation of the noisy numbers minus the mean variance of their noise.
    """
    away = noisy - expected
    spread = max(float(np.mean(away**2 - variance)), 0.0)
    return np.asarray(expected + away * (spread / np.maximum(spread + variance, 1e-300)))
