"""Numbers of rows: noisy ones, drawn towards what public data and the other groups lead us to expect.

    n_g = m_g + u_g,        u_g with the variance t_g^2 = 2 m_g + d m_g^2
    noisy number = n_g + noise of the variance v_g

m_g is the expected number: a recurring group's public size, scaled to this table; for other groups, their mean. Both it
and n_g are samples, which makes 2 m_g; d is the square of the rate by which numbers change, or differ. So a group of a
hundred rows is drawn by what hundreds change by, and one of ten thousand by what ten thousands do. d is such that

    sum over groups of (noisy number - m_g)^2 / (t_g^2 + v_g) = groups - 1

or 0 if the sum is smaller anyway (Paule and Mandel, 1982): one degree of freedom went into the scale of the m_g.
Recurring groups and others are fitted apart. The numbers of a parent's groups then add up to the parent's number
(`adding_up`), which knows the sum of all their answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, mass_per_cell, shared_out
from prade.estimating.levels.answers import RawAnswers

if TYPE_CHECKING:
    from prade.data.declare.groups import Grouping
    from prade.planning.plan import Plan

FEWEST_ROWS = 1.0  # a number of rows that shares can be divided by
SAMPLES = 2.0  # this table's number of rows is a sample, and so is the expected one
STEPS, PRECISION = 50, 1e-10  # of Newton's method, which takes about five


def estimated_totals(answers: RawAnswers, public: Floats) -> tuple[Floats, Floats]:
    """The numbers of rows of a level's groups, and the variances of their errors.

    `public` are the sizes of the same groups in public data, 0 for none. Recurring groups and others are taken apart.
    """
    expected = expected_totals(answers.totals, public)
    totals, variances = np.empty((2, len(expected)))
    for mine in _kinds(public):
        noisy = answers.totals[mine], answers.total_variance[mine], expected[mine]
        totals[mine], variances[mine] = smooth_totals(*noisy), totals_variance(*noisy)
    return np.maximum(totals, 0.0), variances


def expected_rows(answers: RawAnswers, public: Floats) -> tuple[Floats, Floats]:
    """m_g and t_g^2 of all groups: what is thought of their numbers before any answer. One alone may be anything."""
    expected = expected_totals(answers.totals, public)
    variance = np.maximum(expected, FEWEST_ROWS) ** 2
    for mine in _kinds(public):
        if mine.sum() > 1:
            variance[mine] = sum(_beyond_noise(answers.totals[mine], answers.total_variance[mine], expected[mine]))
    return expected, variance


def _kinds(public: Floats) -> list[Flags]:
    return [mine for mine in (public > 0, public <= 0) if mine.any()]


def adding_up(totals: Floats, variance: Floats, parent_of: Ints, parents: Floats) -> Floats:
    """Whole numbers of rows that add up to the numbers of the parents.

    What is missing is handed to the groups in proportion to the variances of their numbers; none becomes negative.
    """
    whole = np.zeros(len(totals))
    for parent, rows in enumerate(parents):
        mine = np.flatnonzero(parent_of == parent)
        unsure = variance[mine] if variance[mine].any() else np.ones(len(mine))
        missing = rows - totals[mine].sum()
        whole[mine] = shared_out(int(rows), np.maximum(totals[mine] + missing * unsure / unsure.sum(), 0.0))
    return whole


def expected_totals(noisy: Floats, public: Floats) -> Floats:
    """What to expect: for recurring groups, public sizes scaled to this table; for the others, their common mean."""
    known = (public > 0) & (len(noisy) > 1)
    expected = np.full(len(noisy), noisy.mean())
    if known.any():
        expected[known] = public[known] * (noisy[known].sum() / public[known].sum())
        expected[~known] = noisy[~known].mean() if not known.all() else 0.0
    return expected


def smooth_totals(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Numbers of rows drawn towards the expected ones, the more the less they scatter beyond their noise.

    All are [groups], or [tables, groups] for several tables at once.
    """
    beyond, _ = _beyond_noise(noisy, variance, expected)
    return np.asarray(expected + (noisy - expected) * (beyond / np.maximum(beyond + variance, 1e-300)))


def totals_variance(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Variances of the errors of `smooth_totals`: what smoothing leaves of the noise, and the error of m_g.

        t^2 v / (t^2 + v) + (v / (t^2 + v))^2 Var(m_g),       Var(m_g) = (m_g / sum of m)^2 * sum of (t^2 + v)

    t^2 is raised by its own standard error. A single group is not drawn anywhere: v.
    """
    if len(noisy) == 1:
        return variance
    beyond, error = _beyond_noise(noisy, variance, expected)
    beyond = beyond + error
    both = np.maximum(beyond + variance, 1e-300)
    rows = np.maximum(expected, FEWEST_ROWS)
    of_expected = (rows / rows.sum()) ** 2 * both.sum()
    return np.asarray(np.minimum(beyond * variance / both + (variance / both) ** 2 * of_expected, variance))


def _beyond_noise(noisy: Floats, variance: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """t_g^2 of each group, and its standard error: that of d, times m_g^2."""
    rows, squares = np.maximum(expected, FEWEST_ROWS), (noisy - expected) ** 2
    d, error = rate_beyond_noise(squares, SAMPLES * rows + variance, rows, noisy.shape[-1] - 1)
    return SAMPLES * rows + d * rows**2, np.asarray(rows**2 * error)


def rate_beyond_noise(squares: Floats, variance: Floats, rows: Floats, degrees: int) -> tuple[Floats, Floats]:
    """d with sum of squares / (variance + d rows^2) = degrees of freedom, or 0 if the sum is smaller anyway.

    And its standard error, sqrt(2 / sum of (rows^2 / (variance + d rows^2))^2). Without degrees of freedom, both are 0.
    Sums are over the last axis, which the results have with one entry.
    """
    d = np.zeros((*squares.shape[:-1], 1))
    if not degrees:
        return d, d
    for _ in range(STEPS):
        both = variance + d * rows**2
        found = np.sum(squares / both, axis=-1, keepdims=True)
        slope = np.sum(squares * rows**2 / both**2, axis=-1, keepdims=True)
        # Newton's method for 1 / sum, which is nearly straight in d and concave: every step stays below the solution
        step = np.divide(found * (found / degrees - 1), slope, out=np.zeros_like(d), where=slope > 0)
        going = step > PRECISION * d
        if not going.any():
            break
        d = np.where(going, d + step, d)
    told = np.sum((rows**2 / (variance + d * rows**2)) ** 2, axis=-1, keepdims=True)
    return d, np.sqrt(2 / (told * (degrees / squares.shape[-1])))


# ---------------------------------------------------------------------- benchmarking to the parent's estimate

# A parent's shares are the mean of its groups' shares, weighted by rows. Its own estimate knows the sum of all its
# groups' answers, whose noise is relatively small; the groups' smoothed answers do not meet it. With x_g the smoothed
# shares of group g, P_g their variances and c_g = n_g / n its part of the parent's rows, the difference is handed down
# in proportion to what the groups do not know (Pfeffermann and Tiller, 2006):
#
#     x_g + c_g P_g / sum_h c_h^2 P_h  *  (x_parent - sum_h c_h x_h)
#
# These are the most likely shares, given that they must add up. The variance that remains is P_g (1 - h_g), where h_g
# = c_g^2 P_g / sum_h c_h^2 P_h; an only child is its parent: h = 1.


def added_up(values: Floats, parent_of: Ints, parents: int) -> Floats:
    """The sums of the groups' values [groups, ...] by parent."""
    sums = np.zeros((parents, *values.shape[1:]))
    np.add.at(sums, parent_of, values)
    return sums


def parts_of_parents(rows: Floats, parent_of: Ints, parents: int) -> Floats:
    """The part of its parent's rows that each group has, c_g."""
    return np.asarray(rows / np.maximum(added_up(rows, parent_of, parents), 1e-300)[parent_of])


def leverage(rows: Floats, variance: Floats, parent_of: Ints, parents: int) -> Floats:
    """h_g for every group and cell: the share of a group in the uncertainty of its parent's sum."""
    part = rows[:, None] ** 2 * np.maximum(variance, 1e-300)
    return np.asarray(part / np.maximum(added_up(part, parent_of, parents), 1e-300)[parent_of])


def benchmarked(
    shares: Floats, variance: Floats, rows: Floats, rows_variance: Floats, parent_of: Ints, wanted: Floats
) -> Floats:
    """The shares [groups, cells] changed so that they add up to the `wanted` shares of their parents.

    The numbers of rows [groups] have errors themselves, which change the sum of shares by U = sum_g Var(n_g) / n^2
    (x_g - x_parent)^2. What is missing counts by the part P / (P + U) that is not due to them, P = sum_g c_g^2 P_g.
    """
    parents = len(wanted)
    part = parts_of_parents(rows, parent_of, parents)[:, None]
    missing = wanted - added_up(part * shares, parent_of, parents)
    unsure = added_up(part**2 * variance, parent_of, parents)
    away = (shares - wanted[parent_of]) * part / np.maximum(rows, 1e-300)[:, None]
    by_rows = added_up(rows_variance[:, None] * away**2, parent_of, parents)
    missing *= unsure / np.maximum(unsure + by_rows, 1e-300)
    given = leverage(rows, variance, parent_of, parents) / np.maximum(part, 1e-300)
    return np.asarray(shares + given * missing[parent_of])


# ---------------------------------------------------------------------- published numbers of rows


def with_published(totals: Floats, level: int, grouping: Grouping, plan: Plan) -> Floats:
    """The numbers of rows of a level's groups, with what is published about them; everybody's level is -1 or 0.

    Published there or further down: these numbers, added up. Published further up only: whole numbers in proportion to
    `totals` that add up to the published number of each parent. The level -1 is everybody, above the plan's levels.
    """
    groupings, published = plan.groupings, plan.published
    if below := [number for number in published if number >= level]:
        above = groupings[min(below)].above(grouping)
        return mass_per_cell(above, published[min(below)], len(grouping))
    if not published:
        return totals
    parent_of = grouping.above(groupings[max(published)])
    shared = np.zeros(len(totals))
    for parent, rows in enumerate(published[max(published)]):
        mine = np.flatnonzero(parent_of == parent)
        shared[mine] = shared_out(int(rows), totals[mine])
    return shared


@dataclass(frozen=True)
class ErrorsOfRows:
    """Variances of the errors in numbers of rows, level by level, before each level's add up to those above it.

    Those of the last level's groups come first, then those of their parents, and so on. `parents[k]` says which group
    of `variances[k + 1]` each group of `variances[k]` is in.
    """

    variances: tuple[Floats, ...]
    parents: tuple[Ints, ...] = ()


def variance_of_sums(
    errors: ErrorsOfRows, times: Floats, totals: Floats, above: Ints, n_sums: int, plan: Plan
) -> Floats:
    """Variances of sums over the last level's groups of n_g times some numbers: [sums, cells].

    `totals` are the n_g; `above` says which sum each group is in. Where a parent's number N is published, an error e_g
    is shared out among its children: e_g - (n_g / N) (sum of e over the parent's children). The sum of all n_g has no
    error then. Where nothing is published, groups add up to their parents' numbers all the same (`_adding_up`).
    """
    level, size = len(plan.levels) - 1, times.shape[1]
    total = np.zeros((n_sums, size))
    if level in plan.published:
        return total
    if not plan.published:
        return np.maximum(_adding_up(errors, times, above, np.arange(len(times)), n_sums), 0.0)
    parents = plan.groupings[max(plan.published)]
    parent_of = plan.groupings[level].above(parents)
    published = plan.published[max(plan.published)][parent_of]
    variance = np.where(published > 0, errors.variances[0], 0.0)  # an empty parent has empty children
    np.add.at(total, above, times**2 * variance[:, None])
    pairs, pair = np.unique(above * len(parents) + parent_of, return_inverse=True)  # of a sum and a parent
    mean, covariance = np.zeros((2, len(pairs), size))
    np.add.at(mean, pair, times * (totals / np.maximum(published, 1.0))[:, None])
    np.add.at(covariance, pair, times * variance[:, None])
    shared = mass_per_cell(parent_of, variance, len(parents))[pairs % len(parents)]
    np.add.at(total, pairs // len(parents), mean**2 * shared[:, None] - 2 * mean * covariance)
    return np.maximum(total, 0.0)


def _adding_up(errors: ErrorsOfRows, times: Floats, above: Ints, group: Ints, n_sums: int) -> Floats:
    """Variances of sums of n_g times some numbers, where groups add up to their parents, and these to theirs.

    What was missing went to the groups in proportion to their variances v, so that the error of a group is

        e_g - (v_g / V) (sum of e over its parent's groups) + (v_g / V) E

    with V the sum of v over the parent's groups and E the parent's own error, which consists of the same terms. In a
    sum, E then counts (sum of v times) / V times. Groups without any variance have equal shares of E.
    """
    variance, *further = errors.variances
    total = np.zeros((n_sums, times.shape[1]))
    np.add.at(total, above, times**2 * variance[group, None])
    if not further:
        return total
    parent_of, of_parents = errors.parents[0], len(further[0])
    unsure = np.where(mass_per_cell(parent_of, variance, of_parents)[parent_of] > 0, variance, 1.0)
    added = mass_per_cell(parent_of, unsure, of_parents)
    pairs, pair = np.unique(above * of_parents + parent_of[group], return_inverse=True)  # of a sum and a parent
    sums, parents = pairs // of_parents, pairs % of_parents
    weighted, counted = np.zeros((2, len(pairs), times.shape[1]))
    np.add.at(weighted, pair, times * variance[group, None])
    np.add.at(counted, pair, times * (unsure / added[parent_of])[group, None])
    np.add.at(total, sums, -weighted * counted)
    return total + _adding_up(ErrorsOfRows(tuple(further), errors.parents[1:]), counted, sums, parents, n_sums)
