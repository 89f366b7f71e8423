"""How likely each size of the differences between groups and their priors is, given all groups' noisy answers.

    y_g - m_g ~ N(0, a B + (w / n) C + V_g)

The numbers a and w are tried on a grid, each with a prior expectation; see `prade.estimating.levels.smoothing`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled
from prade.core.threads import several, single_threaded_blas
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

        def told_by(ratio: float) -> tuple[Floats, Floats, Floats]:
            with single_threaded_blas():
                values, vectors = np.linalg.eigh(within + ratio * between)
                squares = (whitened @ vectors) ** 2
            values = np.maximum(values, 0.0)
            return -0.5 * _surprises(values, factor, squares, SCALES), values, vectors

        ratios = RATIOS if between.any() else np.zeros(1)
        best, of_w, tried = None, 0.5 * (np.log(SCALES / EXPECTED_WITHIN) / UNSURE) ** 2, []
        found = several(told_by, ratios, threads) if threads > 1 else map(told_by, ratios)
        for ratio, (told, values, vectors) in zip(ratios, found, strict=True):
            of_a = 0.5 * (np.log(SCALES * ratio / expected) / UNSURE) ** 2 if ratio else np.zeros(len(SCALES))
            fit = told - of_a - of_w
            tried.append((told, of_a, SCALES * ratio, SCALES))
            k = int(np.argmax(fit))
            if best is None or fit[k] > best[0]:
                best = fit[k], SCALES[k] * values, vectors, float(SCALES[k] * ratio), float(SCALES[k])
        assert best is not None
        _, values, vectors, a, w = best
        told, of_a, *both = np.concatenate(tried, axis=1)
        before = -of_a - 0.5 * (np.log(both[1] / expected_within(variation, rows)) / UNSURE) ** 2
        fits = told + before
        likely = np.exp(fits - fits.max())
        mean_a, mean_w = (float(likely @ each / likely.sum()) for each in both)
        evidence = float(fits.max() + np.log(likely.sum() / np.exp(before).sum()))
        return cls(a, w, mean_a, mean_w, evidence, values, vectors)


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


@compiled
def _surprises(values: Floats, factor: Floats, squares: Floats, scales: Floats) -> Floats:
    """Sum over groups and directions of log v + r^2 / v with v = scale value + factor, r^2 in [groups, directions].

    Four variances are multiplied before their logarithm is taken, which takes longer than all the rest.
    """
    found = np.zeros(len(scales))
    for k in range(len(scales)):
        for g in range(len(factor)):
            squared, product, logs = 0.0, 1.0, 0.0
            for j in range(len(values)):
                variance = scales[k] * values[j] + factor[g]
                squared += squares[g, j] / variance
                product *= variance
                if j % 4 == 3:
                    logs += np.log(product)
                    product = 1.0
            found[k] += squared + logs + np.log(product)
    return found
