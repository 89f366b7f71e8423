"""Numbers of rows: noisy ones, drawn towards what public data and the other groups lead us to expect."""

from __future__ import annotations

import numpy as np

from prade.core.arrays import Floats
from prade.estimating.levels.answers import RawAnswers

FEWEST_ROWS = 1.0  # a number of rows that shares can be divided by


def estimated_totals(answers: RawAnswers, public: Floats) -> Floats:
    """The numbers of rows of a level's groups; `public` are the sizes of the same groups in public data, 0 for none."""
    expected = expected_totals(answers.totals, public)
    return np.maximum(smooth_totals(answers.totals, answers.total_variance, expected), 0.0)


def estimated_totals_variance(answers: RawAnswers, public: Floats) -> Floats:
    """Variances of the errors of `estimated_totals`."""
    return totals_variance(answers.totals, answers.total_variance, expected_totals(answers.totals, public))


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

    n_g ~ N(expected_g, t^2), t^2 = mean squared deviation of the noisy numbers minus the mean variance of their noise.
    """
    away = noisy - expected
    beyond = max(float(np.mean(away**2 - variance)), 0.0)
    return np.asarray(expected + away * (beyond / np.maximum(beyond + variance, 1e-300)))


def totals_variance(noisy: Floats, variance: Floats, expected: Floats) -> Floats:
    """Variances of the errors of `smooth_totals`: t^2 v / (t^2 + v), with t^2 raised by its own standard error.

    That is sqrt(2 / groups) (t^2 + mean of v). A single group is not drawn anywhere: v.
    """
    if len(noisy) == 1:
        return variance
    beyond = max(float(np.mean((noisy - expected) ** 2 - variance)), 0.0)
    beyond += np.sqrt(2 / len(noisy)) * (beyond + float(np.mean(variance)))
    return np.asarray(beyond * variance / np.maximum(beyond + variance, 1e-300))
