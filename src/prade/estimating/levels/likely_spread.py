"""How likely each size of the differences between groups and their priors is, given all groups' noisy answers.

    y_g - m_g ~ N(0, a B + (w / n) C + V_g)

The numbers a and w are tried on a grid, each with a prior expectation; see `prade.estimating.levels.smoothing`. For
every a / w, directions are turned so that the matrix has a diagonal and what is beside it: that takes a third of the
time of eigenvectors, which are found for the most likely one, and where noise is so small that rounding would matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled, tridiagonal
from prade.core.execution import several, single_threaded_blas
from prade.estimating.levels.variation import PublicVariation

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
    def numbers(self) -> tuple[float, float, float, float]:
        """The most likely a and w, and their means."""
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
        best, of_w, tried = None, 0.5 * (np.log(SCALES / EXPECTED_WITHIN) / UNSURE) ** 2, []
        found = several(told_by, ratios, threads) if threads > 1 else map(told_by, ratios)
        for ratio, told in zip(ratios, found, strict=True):
            of_a = 0.5 * (np.log(SCALES * ratio / expected) / UNSURE) ** 2 if ratio else np.zeros(len(SCALES))
            fit = told - of_a - of_w
            tried.append((told, of_a, SCALES * ratio, SCALES))
            k = int(np.argmax(fit))
            if best is None or fit[k] > best[0]:
                best = fit[k], ratio, SCALES[k]
        assert best is not None
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
