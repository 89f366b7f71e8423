"""The shares of next year, from the noisy answers of several past years: a walk, and a trend that goes on.

Let x_t be the shares of a group's cells in year t, less those of all groups together, and y_t what is known of them:

    x_t = x_0 + t b + u_1 + ... + u_t        x_0 ~ N(0, B),   b ~ N(0, trend B),   u_t ~ N(0, walk B)
    y_t = x_t + noise_t                      noise_t ~ N(0, V_t + C / n_t)

B and C are the covariances of cells between groups and within them (`prade.estimating.levels.variation`), V_t is the
noise of the release, n_t the group's rows. A walk leaves next year where this year is; a trend adds b once more. The
forecast is the mean of next year's x, given all past years.

The two numbers, the same for all groups and cells, are tried on a grid, and the forecast is the mean over the grid, by
how well each pair explains the answers (empirical Bayes, as in `likely_spread`). Before any answer, there is no trend
with the chance `NO_TREND`: where noise or the walk hides a trend, little or nothing is expected of it. The first year
may be of another kind than the others, as a public table is: an unknown `jump` B after it is tried as well.

What all groups have in common gets a forecast of its own, with its own numbers, in which columns change independently:
wages rise, and schooling does not. Harvey (1989), structural time series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.threads import single_threaded_blas
from prade.estimating.levels.variation import FEWEST_GROUPS, PublicVariation

FEWEST_YEARS = 3  # for a trend: one difference does not tell it from a walk
NO_TREND, NO_JUMP = 0.5, 0.8
# Shares of B, a year. What is assumed where nothing is known is `EXPECTED_WALK`, the `change` of `Settings`; it may
# well be 4 or 5 times larger or smaller (`UNSURE`: the standard deviation of its logarithm).
EXPECTED_WALK, UNSURE = 0.03, 1.5
WALKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
TRENDS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
JUMPS = (0.0, 0.1, 1.0)
LEAST = 1e-9  # variance of a direction as a share of the largest: below, it is rounding


@dataclass(frozen=True)
class Years:
    """What is known about the shares of cells in several years, oldest first.

    `shares` and the variances of their noise are [years, groups, cells], `rows` are [years, groups]; a group has no
    rows in a year in which nothing is known about it.
    """

    shares: Floats
    variance: Floats
    rows: Floats

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def weights(self) -> Floats:
        """The groups' shares of all rows."""
        return np.asarray(self.rows / np.maximum(self.rows.sum(axis=1, keepdims=True), 1e-300))

    def common(self) -> Years:
        """All groups together."""
        mean = np.einsum("tg,tgc->tc", self.weights, self.shares)[:, None]
        variance = np.einsum("tg,tgc->tc", self.weights**2, self.variance)[:, None]
        return Years(mean, variance, self.rows.sum(axis=1, keepdims=True))

    def apart(self) -> Years:
        """Groups, less what all have in common. A share that is not known might be any: its variance is 1."""
        known = self.rows[..., None] > 0
        shares = np.where(known, self.shares - self.common().shares, 0.0)
        return Years(shares, np.where(known, self.variance, 1.0), np.where(known[..., 0], self.rows, 1.0))


@dataclass(frozen=True)
class Forecast:
    """Next year's shares, [groups, cells], and the means of `walk` and `trend` of the groups' own changes.

    `change` is what the forecast leaves open about a group, as a share of B.
    """

    shares: Floats
    walk: float
    trend: float
    change: float


def forecast(years: Years, variation: PublicVariation, families: Ints) -> Forecast:
    """The forecast from past years; `families` has a number for each cell, that of its column."""
    within = variation.within
    with single_threaded_blas():
        shape = clear_between(years, within)
        own = _forecast(years.apart(), variation.between if shape is None else shape, within)
        alike = families[:, None] == families
        common, first = years.common(), years.common().shares[:1]
        together = Years(common.shares - first, common.variance, common.rows)
        found = _forecast(together, np.where(alike, _shape_of_all(variation, alike), 0.0), np.where(alike, within, 0.0))
    return Forecast(first[0] + found.shares + own.shares, own.walk, own.trend, own.change)


def _shape_of_all(variation: PublicVariation, alike: Floats) -> Floats:
    """How all groups change, before any answer: half as groups differ, half as people do within them."""
    between, within = (alike @ np.diag(each) for each in (variation.between, variation.within))  # of each column
    return np.asarray((variation.between + (between / np.maximum(within, 1e-300))[:, None] * variation.within) / 2)


def clear_between(years: Years, within: Floats) -> Floats | None:
    """B from the first year, if that has no noise: the directions in which groups differ beyond sampling, or None.

    With few groups and many cells, sampling alone makes groups look different in some directions, by up to
    (1 + sqrt(cells / groups))^2 times its variance. Directions below that are left out, and what sampling adds to the
    others is taken off (Baik, Ben Arous and Péché, 2005; Donoho, Gavish and Johnstone, 2018).
    """
    known = years.rows[0] > 0
    if years.variance[0][known].any() or known.sum() < FEWEST_GROUPS:
        return None
    rows, shares = years.rows[0, known], years.shares[0, known]
    away = (shares - rows @ shares / rows.sum()) * np.sqrt(rows)[:, None]
    values, vectors = np.linalg.eigh(within)
    kept = values > 1e-6 * values[-1]
    root = vectors[:, kept] * np.sqrt(values[kept])
    white = away @ (vectors[:, kept] / np.sqrt(values[kept]))
    ratio = kept.sum() / (known.sum() - 1)
    found, directions = np.linalg.eigh(white.T @ white / (known.sum() - 1))
    clear = found > (1 + np.sqrt(ratio)) ** 2
    if not clear.any():
        return None
    beyond = found[clear] + 1 - ratio
    beyond = (beyond + np.sqrt(beyond**2 - 4 * found[clear])) / 2 - 1
    along = root @ directions[:, clear]
    return np.asarray((along * beyond) @ along.T / rows.mean())


def _forecast(years: Years, shape: Floats, within: Floats) -> Forecast:
    """As `forecast`, for shares around 0 that have a walk, a trend and a jump of covariance `shape`."""
    n, rows = len(years), np.maximum(years.rows, 1.0)
    noise = np.diag(years.variance.mean(axis=(0, 1))) + within * float(np.exp(-np.log(rows).mean()))
    values, directions, back = _directions(shape, noise)
    series = np.einsum("tgc,ck->gkt", years.shares, directions)
    of_rows = np.einsum("ck,cd,dk->k", directions, within, directions)
    blur = np.einsum("tgc,ck->gkt", years.variance, directions**2) + of_rows[:, None] / rows.T[:, None]
    time, after = np.arange(n + 1.0), (np.arange(n + 1) > 0).astype(np.float64)
    evidence, means, told = [], [], []
    for walk, trend, jump, chance in _grid(n):
        law = 1 + walk * np.minimum.outer(time, time) + trend * np.outer(time, time) + jump * np.outer(after, after)
        root = np.linalg.cholesky(values[:, None, None] * law[:n, :n] + blur[..., None] * np.eye(n))
        both = np.stack([series, values[:, None] * np.broadcast_to(law[n, :n], series.shape)], axis=-1)
        white = np.linalg.solve(root, both)
        logs = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum()
        evidence.append(np.log(chance) - logs - 0.5 * float((white[..., 0] ** 2).sum()))
        means.append((white[..., 0] * white[..., 1]).sum(axis=-1))
        left = (values * law[n, n] - (white[..., 1] ** 2).sum(axis=-1)).mean(axis=0)
        told.append((walk, trend, float(left.sum() / max(values.sum(), 1e-300))))
    likely = np.exp(np.array(evidence) - max(evidence))
    likely /= likely.sum()
    mean = np.einsum("m,mgk->gk", likely, np.array(means))
    return Forecast(mean @ back.T, *(float(each) for each in likely @ np.array(told)))


def _grid(years: int) -> Iterator[tuple[float, float, float, float]]:
    """Walk, trend and jump, with their chance before any answer."""
    of_walks = np.exp(-0.5 * (np.log(np.array(WALKS) / EXPECTED_WALK) / UNSURE) ** 2)
    walks = zip(WALKS, of_walks / of_walks.sum(), strict=True)
    trends = [(each, NO_TREND if each == 0 else (1 - NO_TREND) / (len(TRENDS) - 1)) for each in TRENDS]
    trends = trends if years >= FEWEST_YEARS else [(0.0, 1.0)]
    jumps = [(each, NO_JUMP if each == 0 else (1 - NO_JUMP) / (len(JUMPS) - 1)) for each in JUMPS]
    for (walk, p), (trend, q), (jump, r) in product(walks, trends, jumps):
        yield walk, trend, jump, float(p) * q * r


def _directions(shape: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """The variances of independent combinations of cells, as shares of their noise; the combinations; the way back.

    With L L' the covariance of the noise, they are the eigenvectors of the whitened shape.
    """
    root = np.linalg.cholesky(noise + 1e-9 * np.trace(noise) / len(noise) * np.eye(len(noise)))
    values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, shape).T))
    kept = values > LEAST * max(float(values[-1]), 0.0)
    return values[kept], np.linalg.solve(root.T, vectors[:, kept]), root @ vectors[:, kept]
