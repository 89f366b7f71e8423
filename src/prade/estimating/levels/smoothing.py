"""Smoothing: a group's raw answers, improved by what public data show about how groups differ.

Let x_g be the true shares of group g in all measured cells, m_g the prior's shares, y_g the raw answers. We assume

    x_g = m_g + u_g,        u_g ~ N(0, S),      S = a B + (w / n) C
    y_g = x_g + noise_g,    variances v_g

B is the covariance of cells between public groups beyond sampling: places differ together in many cells (where rents
are high, so are incomes), and a few such directions survive noise that would drown cell-by-cell answers. C is the
covariance of one row's cells within its group; C / n is what n rows vary by, and also the curvature of KL: w = n / n0
in `MAP`'s terms. The numbers a and w are the most likely ones given all groups' answers together (empirical Bayes).
Before any answer, we expect private groups to differ about as much as public ones (a = 0.7; far less where a group's
prior is its own public rows), and to be samples like others (w near 2: the group's own sampling and the prior's; more
for large groups, which also change in ways that public groups do not show). Where noise drowns the answers, that
expectation remains.

Places differ in patterns, and B has them. What everybody has in common since last year, or a whole state, may follow
none of them: wages rise, and schooling does not. Where a level has few groups, a second S is tried, in which each
column differs on its own, with its own a and w and as B and C have it for this column alone. The S that is used is the
mean of both, weighted by how well each explains the answers.

The posterior means and variances are the smoothed answers: they have far less noise, and estimators take them as
Gaussian answers. All of it is post-processing of noisy answers and public data. Efron and Morris (1973); Fay and
Herriot (1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.execution import single_threaded_blas
from prade.estimating.levels.likely_spread import likely_spread
from prade.estimating.levels.variation import PublicVariation

# a before any answer. It is 1 if private groups differ as public ones do, and less for coarse groups such as states;
# 0.7 is halfway between 1/2 and 1 in logarithms. Where the answers decide, the fit gave 0.5 for states and 1.8 for
# PUMAs (ACS 2024, public IL and OH, epsilon 1), and 0.2 to 1.5 on invented census tables.
EXPECTED_BETWEEN = 0.7
ODD, ODD_SHARE = 0.01, 0.01  # how many cells are odd, and by how much: one person in a hundred
LEAST_INDEPENDENT = 0.1  # of the variance of a deviation


@dataclass(frozen=True)
class Smoother:
    """The posterior under the most likely S, for any group, in the eigenvectors of the whitened S."""

    root: Floats  # standard deviations of the noise in a typical group's shares
    directions: Floats
    values: Floats
    a: float
    w: float  # of `typical_rows`
    shared: float  # share of the variance of u_g that is the same u for all groups (`shared_part`)
    excess: Floats  # variances of single cells beyond aB + (w / n) C (`excess_variance`)
    expected_a: float  # means over all a and w, by how likely each is: error bars must know what the answers leave open
    expected_w: float
    apart: Floats | None = None  # the same four numbers for every cell, if columns differ on their own

    @classmethod
    def fit(
        cls,
        variation: PublicVariation,
        deviations: Floats,
        rows: Floats,
        noise: Floats,
        expected: float = EXPECTED_BETWEEN,
        independent: Floats | None = None,
        *,
        laplace: bool = False,
        families: Ints | None = None,
        threads: int = 1,
    ) -> Smoother:
        """From deviations y_g - m_g [groups, cells], numbers of rows [groups], and the noise's standard deviations.

        The last are of shares, [groups, cells], and are assumed to differ from group to group by a factor only.
        `expected` is a before any answer. A group whose own answers are part of its prior agrees with it more than with
        the truth: `independent` [groups, cells] is the variance of its deviation as a share of what it would be with an
        independent prior. Where that is almost nothing, as for an only child, the group is left out of the fit.
        `laplace` is for `excess_variance`. With `families`, a number for each cell, cells of different numbers are also
        tried apart.
        """
        typical = typical_rows(rows)
        root = np.exp(np.mean(np.log(noise), axis=0))
        factor = np.mean((noise / root) ** 2, axis=1)
        independent = np.ones_like(deviations) if independent is None else independent
        telling = independent.mean(axis=1) > LEAST_INDEPENDENT
        deviations = deviations[telling] / np.sqrt(np.maximum(independent[telling], LEAST_INDEPENDENT))
        whitened = deviations / root
        spread = likely_spread(variation, whitened, factor[telling], root, typical, expected, families, threads)
        rows, noise = rows[telling], noise[telling]
        variance = np.maximum(spread.variance(variation, rows), 0.0)
        excess = excess_variance(deviations, variance + noise**2, laplace=laplace)
        excess[np.diag(variation.within) <= 0] = 0.0  # no public row is there: nothing can follow
        values, vectors = spread.values, spread.directions
        if excess.any():
            with single_threaded_blas():
                values, vectors = np.linalg.eigh((vectors * values) @ vectors.T + np.diag(excess / root**2))
            values = np.maximum(values, 0.0)
        with single_threaded_blas():
            shared = shared_part(deviations, variance + excess, noise, rows)
        return cls(
            root, vectors, values, spread.a, spread.w, shared, excess, spread.mean_a, spread.mean_w, spread.apart
        )

    def posterior(self, deviation: Floats, noise: Floats) -> tuple[Floats, Floats]:
        """Mean and variances of u_g given a group's deviation y_g - m_g and its noise's standard deviations.

        Both are [cells], or [groups, cells] for several groups.
        """
        factor = np.mean((noise / self.root) ** 2, axis=-1, keepdims=True)
        kept = self.values / (self.values + factor)
        mean = (kept * ((deviation / self.root) @ self.directions)) @ self.directions.T
        variance = (kept * factor) @ (self.directions**2).T
        return self.root * mean, self.root**2 * variance

    def weighted_by_precision(self, vectors: Floats, noise: Floats) -> Floats:
        """(S + V)^-1 times a vector of each group, both [groups, cells], with V the noise's variances."""
        factor = np.mean((noise / self.root) ** 2, axis=-1, keepdims=True)
        whitened = vectors / self.root
        kept = self.values / (self.values + factor)
        along = (kept * (whitened @ self.directions)) @ self.directions.T
        return np.asarray((whitened - along) / (factor * self.root))

    def square_root(self) -> Floats:
        """A matrix R with S = R R': [cells, directions]."""
        return np.asarray(self.root[:, None] * self.directions * np.sqrt(self.values))


def excess_variance(deviations: Floats, variance: Floats, *, laplace: bool) -> Floats:
    """What single cells differ by beyond the model's variances v of their deviations r, both [groups, cells].

    A kind of people that is rare in public data may be frequent in the private table, against all that public groups
    show. One cell in a hundred is thought to be odd before any answer: its variance is then larger by the square of
    `ODD_SHARE`. Where the deviations make that more likely than not, its excess is what they have beyond v on average,

        sum_g (r_g^2 - v_g) / v_g  /  sum_g 1 / v_g

    Where noise drowns such a share, nothing is odd. `laplace` says whether the noise is single draws of Laplace noise,
    which has large values more often than sums of them.
    """
    if not len(deviations):
        return np.zeros(deviations.shape[1])
    precision = 1 / np.maximum(variance, 1e-300)
    shrunk = 1 / (1 + ODD_SHARE**2 * precision)  # v / (v + odd)
    if laplace:
        away = np.sqrt(2 * precision) * np.abs(deviations)
        evidence = 0.5 * np.log(shrunk) + away * (1 - np.sqrt(shrunk))
    else:
        evidence = 0.5 * (np.log(shrunk) + deviations**2 * precision * (1 - shrunk))
    odds = np.exp(np.minimum(evidence.sum(axis=0), 100.0)) * ODD / (1 - ODD)
    beyond = (deviations**2 * precision - 1).sum(axis=0) / precision.sum(axis=0)
    return np.where(odds > 1, np.maximum(beyond, 0.0), 0.0)


def shared_part(deviations: Floats, variance: Floats, noise: Floats, rows: Floats) -> float:
    """The share of the variance of u_g [groups, cells] that groups have in common, such as a change since last year.

    The mean of all groups' deviations, weighted by rows, has the variance A if groups differ from their priors
    independently, and A + T if all differ alike. The share is (its square - A) / T, summed over cells.
    """
    if len(rows) < 2:
        return 0.0
    weight = rows / rows.sum()
    mean = weight @ deviations
    independent = weight**2 @ (variance + noise**2)
    alike = (weight @ np.sqrt(np.maximum(variance, 0.0))) ** 2 - weight**2 @ variance  # rounding may go below 0
    most = float(np.sum(alike))
    return float(np.clip(np.sum(mean**2 - independent) / most, 0.0, 1.0)) if most > 0 else 0.0


def typical_rows(rows: Floats) -> float:
    """The n that w / n stands for, in groups of different numbers of rows: their geometric mean."""
    return float(np.exp(np.mean(np.log(rows))))
