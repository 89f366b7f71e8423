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
from prade.core.compiled import compiled, tridiagonal
from prade.core.execution import several, single_threaded_blas
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
        independent: Floats | float = 1.0,
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
        independent = np.broadcast_to(independent, deviations.shape)
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


# ---------------------------------------------------------------------- the likelihood of a and w

# y_g - m_g ~ N(0, a B + (w / n) C + V_g)
#
# The numbers a and w are tried on a grid, each with a prior expectation. For every a / w, directions are turned so
# that the matrix is tridiagonal: that takes a third of the time of eigenvectors, which are found for the most likely
# one, and where noise is so small that rounding would matter.


# w before any answer: 1 for the group's own sampling and 1 for that of its prior, which is all that rows of one law do.
EXPECTED_WITHIN = 2.0
# A group may also differ from its prior in ways that public groups do not differ by, such as a rise of all wages,
# however many rows it has. That part of (w / n) C is this share of what public groups differ by, tr B / tr C. Where
# noise decides nothing (epsilon 10), the fit gave 0.01 to 0.3 for everybody, 0.003 to 0.16 for places and states: on
# ACS 2024 (public IL and OH) and on invented census tables of other states and of earlier years alike. The means of w,
# for error bars, expect it; the most likely w, for estimates, does without as long as the answers do not show it.
UNLIKE_PUBLIC = 0.05
USUAL_SPREAD = 0.02  # tr B / tr C where too few public groups tell it; it was 0.011 to 0.031 in the same tables
# a of a column that differs on its own, before any answer: at epsilon 1, half of the columns of the same tables had 0.2
# to 1, for everybody. The evidence for this model counts by a third, because neither model is true: with all of it, the
# errors of everybody's tables were the same at epsilon 0.1, and larger by 3 % at epsilon 1.
EXPECTED_APART = 0.3
TRUST = 1 / 3
LEAST_LIKELY = 1e-3  # a model that is less likely than this is left out
UNSURE = 1.5  # standard deviation of the logarithms of a and w: they may well be 4 or 5 times larger or smaller
# The grid for a / w and w, from nothing to more than any table showed; steps of 2 for a / w, and of 1.2 for w.
RATIOS = np.geomspace(1e-3, 1e2, 16)
SCALES = np.geomspace(1e-3, 1e5, 97)
ROUNDING = 1e-3  # what rounding may do to a variance, as a share of the noise's


@dataclass(frozen=True)
class LikelySpread:
    """The most likely a and w, their means, and the evidence: the logarithm of the mean likelihood.

    `values` and `directions` are the eigenvectors of the whitened S under the most likely a and w. Where families of
    cells may differ apart, all four numbers are those of the joint model times its probability, and `apart` has the
    other model's for every cell, times its probability: [4, cells].
    """

    a: float
    w: float
    mean_a: float
    mean_w: float
    evidence: float
    values: Floats
    directions: Floats
    apart: Floats | None = None

    @property
    def numbers(self) -> tuple[float, float, float, float]:  # the most likely a and w, and their means
        return self.a, self.w, self.mean_a, self.mean_w

    def variance(self, variation: PublicVariation, rows: Floats) -> Floats:
        """The variances of the cells in groups of that many rows, [groups, cells], with the most likely numbers."""
        a, w = (self.a, self.w) if self.apart is None else (self.a + self.apart[0], self.w + self.apart[1])
        return np.asarray(a * np.diag(variation.between) + w / rows[:, None] * np.diag(variation.within))

    @classmethod
    def of(
        cls,
        variation: PublicVariation,
        whitened: Floats,
        factor: Floats,
        root: Floats,
        rows: float,
        expected: float,
        threads: int = 1,
    ) -> LikelySpread:
        """From deviations divided by `root` [groups, cells], the noise of a typical group of `rows` rows.

        `factor` [groups] is what the variances of a group's noise are multiplied by; `expected` is a before any answer.
        """
        within = variation.within / rows / np.outer(root, root)
        between = variation.between / np.outer(root, root)

        def told_by(ratio: float) -> Floats:
            with single_threaded_blas():
                diagonal, beside, turned = _turned(within + ratio * between, whitened, factor.min(initial=np.inf))
            return -0.5 * _surprises(diagonal, beside, factor, turned, SCALES)

        ratios = RATIOS if between.any() else np.zeros(1)
        best, of_w, tried = (-np.inf, 0.0, 0.0), 0.5 * (np.log(SCALES / EXPECTED_WITHIN) / UNSURE) ** 2, []
        each = several(told_by, ratios, threads) if threads > 1 else map(told_by, ratios)
        for ratio, told in zip(ratios, each, strict=True):
            of_a = 0.5 * (np.log(SCALES * ratio / expected) / UNSURE) ** 2 if ratio else np.zeros(len(SCALES))
            fit = told - of_a - of_w
            tried.append((told, of_a, SCALES * ratio, SCALES))
            k = int(np.argmax(fit))
            if fit[k] > best[0]:
                best = fit[k], ratio, SCALES[k]
        _, ratio, w = best
        with single_threaded_blas():
            values, vectors = np.linalg.eigh(within + ratio * between)
        told, of_a, *both = np.concatenate(tried, axis=1)
        before = -of_a - 0.5 * (np.log(both[1] / expected_within(variation, rows)) / UNSURE) ** 2
        fits = told + before
        likely = np.exp(fits - fits.max())
        mean_a, mean_w = (float(likely @ each / likely.sum()) for each in both)
        evidence = float(fits.max() + np.log(likely.sum() / np.exp(before).sum()))
        return cls(float(w * ratio), float(w), mean_a, mean_w, evidence, w * np.maximum(values, 0.0), vectors)


def likely_spread(
    variation: PublicVariation,
    whitened: Floats,
    factor: Floats,
    root: Floats,
    rows: float,
    expected: float,
    families: Ints | None = None,
    threads: int = 1,
) -> LikelySpread:
    """As `LikelySpread.of`; with `families`, a number for each cell, families of cells are also tried apart.

    Then S is the mean of both models' by how likely they are, if they are equally likely before any answer.
    """
    joint = LikelySpread.of(variation, whitened, factor, root, rows, expected, threads)
    if families is None or not len(whitened) or len(set(families.tolist())) == 1:
        return joint
    apart, evidence = np.zeros((4, len(families))), 0.0
    for family in np.unique(families):
        mine = families == family
        alone = PublicVariation(*(each[np.ix_(mine, mine)] for each in (variation.between, variation.within)))
        found = LikelySpread.of(alone, whitened[:, mine], factor, root[mine], rows, min(expected, EXPECTED_APART))
        apart[:, mine] = np.array(found.numbers)[:, None]
        evidence += found.evidence
    likely = 1 / (1 + np.exp(np.clip((joint.evidence - evidence) * TRUST, -500, 500)))
    if likely < LEAST_LIKELY:
        return joint
    apart *= likely
    with single_threaded_blas():
        s = (1 - likely) * (joint.directions * joint.values) @ joint.directions.T
        s += differing_apart(variation, families, apart[0], apart[1], rows) / np.outer(root, root)
        values, vectors = np.linalg.eigh(s)
    a, w, mean_a, mean_w = ((1 - likely) * each for each in joint.numbers)
    return LikelySpread(a, w, mean_a, mean_w, joint.evidence, np.maximum(values, 0.0), vectors, apart)


def differing_apart(variation: PublicVariation, families: Ints, a: Floats, w: Floats, rows: float) -> Floats:
    """a B + (w / rows) C within each family of cells, and nothing between families; a and w have a number per cell."""
    s = a[:, None] * variation.between + w[:, None] / rows * variation.within
    return np.where(families[:, None] == families, s, 0.0)


def expected_within(variation: PublicVariation, rows: float) -> float:
    """w before any answer, for a group of that many rows: sampling, and the changes that public groups do not show."""
    within, between = float(np.trace(variation.within)), float(np.trace(variation.between))
    spread = between / within if between > 0 and within > 0 else USUAL_SPREAD
    return EXPECTED_WITHIN + UNLIKE_PUBLIC * spread * rows


def _turned(matrix: Floats, vectors: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
    """The diagonal of T = Q' M Q for a symmetric M, what is beside it, and the vectors [vectors, cells] turned by Q.

    T has nothing elsewhere, and the columns of Q are directions at right angles to each other. `noise` is the smallest
    variance that `_surprises` will add to multiples of T. The cells of a part add up to one, so M is nothing in some
    directions, where `_surprises` takes large numbers from each other and must be left with the noise. If it is less
    than their rounding, Q are the eigenvectors, with which nothing is beside the diagonal and nothing is taken away.
    """
    if SCALES[-1] * np.trace(matrix) * np.finfo(float).eps > ROUNDING * noise:
        values, directions = np.linalg.eigh(matrix)
        return np.maximum(values, 0.0), np.zeros(len(values) - 1), vectors @ directions
    return tridiagonal(matrix, vectors)


@compiled
def _surprises(diagonal: Floats, beside: Floats, factor: Floats, deviations: Floats, scales: Floats) -> Floats:
    """Sum over groups of log det V + r' V^-1 r with V = scale T + factor 1, for the deviations r [groups, cells].

    T is that of `_turned`, so that V = L D L' takes one step for each cell: p is an entry of D, lower the one of L
    beside it, and z that of L^-1 r. As T has no negative eigenvalue, no p is below the factor, except by rounding.
    Eight of them are multiplied before their logarithm is taken, which takes longer than all the rest; if they are so
    large or so small that a product of eight might not be a number, each has its own logarithm.
    """
    found = np.zeros(len(scales))
    if not len(diagonal) or not len(factor):
        return found
    largest = np.max(scales) * max(np.max(diagonal), 0.0) + np.max(factor)
    together = 8 if largest < 1e38 and np.min(factor) > 1e-38 else 1
    inverse, z, product, logs, squared = np.zeros((5, len(scales)))
    for g in range(len(factor)):
        inverse[:], z[:], product[:], logs[:], squared[:] = 0.0, 0.0, 1.0, 0.0, 0.0
        for j in range(len(diagonal)):
            next_to = beside[j - 1] if j else 0.0
            for k in range(len(scales)):  # they do not depend on each other: several are worked out at once
                across = scales[k] * next_to
                lower = across * inverse[k]
                z[k] = deviations[g, j] - lower * z[k]
                p = max(scales[k] * diagonal[j] + factor[g] - lower * across, factor[g])
                inverse[k] = 1.0 / p
                squared[k] += z[k] * z[k] * inverse[k]
                product[k] *= p
            if (j + 1) % together == 0:
                for k in range(len(scales)):
                    logs[k] += np.log(product[k])
                    product[k] = 1.0
        for k in range(len(scales)):
            found[k] += squared[k] + logs[k] + np.log(product[k])
    return found
