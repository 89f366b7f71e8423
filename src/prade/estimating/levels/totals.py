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

from collections.abc import Callable

import numpy as np

from prade.core.arrays import Floats, Ints, shared_out
from prade.estimating.levels.answers import RawAnswers

FEWEST_ROWS = 1.0  # a number of rows that shares can be divided by
SAMPLES = 2.0  # this table's number of rows is a sample, and so is the expected one
STEPS, PRECISION = 50, 1e-10  # of Newton's method, which takes about five

Totals = Callable[[Floats, Floats, Floats], Floats]


def estimated_totals(answers: RawAnswers, public: Floats) -> Floats:
    """The numbers of rows of a level's groups; `public` are the sizes of the same groups in public data, 0 for none."""
    return np.maximum(_each_kind(smooth_totals, answers, public), 0.0)


def estimated_totals_variance(answers: RawAnswers, public: Floats) -> Floats:
    """Variances of the errors of `estimated_totals`."""
    return _each_kind(totals_variance, answers, public)


def adding_up(totals: Floats, variance: Floats, parent_of: Ints, parents: Floats) -> Floats:
    """Whole numbers of rows that add up to the numbers of the parents.

    What is missing is handed to the groups in proportion to the variances of their numbers, as shares are in
    `prade.estimating.levels.benchmarking`; none becomes negative.

    >>> adding_up(np.array([10.2, 20.4, 7.0]), np.array([1.0, 3.0, 1.0]), np.array([0, 0, 1]), np.array([35.0, 9.0]))
    array([11., 24.,  9.])
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

    >>> smooth_totals(np.array([130.0, 90.0, 80.0]), np.full(3, 100.0), np.full(3, 100.0)).round(1)
    array([125.7,  91.4,  82.9])
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
    """t_g^2 of each group, and its standard error: that of d, sqrt(2 / sum of (m^2 / (t^2 + v))^2), times m_g^2."""
    rows, squares, degrees = np.maximum(expected, FEWEST_ROWS), (noisy - expected) ** 2, noisy.shape[-1] - 1
    d = np.zeros((*noisy.shape[:-1], 1))
    for _ in range(STEPS if degrees else 0):
        both = SAMPLES * rows + d * rows**2 + variance
        found = np.sum(squares / both, axis=-1, keepdims=True)
        slope = np.sum(squares * rows**2 / both**2, axis=-1, keepdims=True)
        # Newton's method for 1 / sum, which is nearly straight in d and concave: every step stays below the solution
        step = np.divide(found * (found / degrees - 1), slope, out=np.zeros_like(d), where=slope > 0)
        going = step > PRECISION * d
        if not going.any():
            break
        d = np.where(going, d + step, d)
    beyond = SAMPLES * rows + d * rows**2
    information = np.sum((rows**2 / (beyond + variance)) ** 2, axis=-1, keepdims=True) * (degrees / noisy.shape[-1])
    return beyond, np.asarray(rows**2 * np.sqrt(2 / information) if degrees else np.zeros(1))


def _each_kind(function: Totals, answers: RawAnswers, public: Floats) -> Floats:
    """A function of noisy numbers, their variances and the expected ones, for recurring groups and for others apart."""
    expected = expected_totals(answers.totals, public)
    found = np.empty(len(expected))
    for mine in (public > 0, public <= 0):
        if mine.any():
            found[mine] = function(answers.totals[mine], answers.total_variance[mine], expected[mine])
    return found
