"""Numbers of rows drawn towards what is expected of them, by hand and in simulated tables."""

import numpy as np

from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.totals import estimated_totals, expected_rows, smooth_totals, totals_variance


def test_intervals_of_totals_hold_what_they_say():
    """95 % intervals in 200 tables of 20 groups: each lot's standard error is 1 % or less, so 90 % is 3 or more off."""
    generator, sizes, variance = np.random.default_rng(1), np.geomspace(100, 30_000, 20), np.full(20, 141.0**2)
    for change in (0.02, 0.15):
        held = []
        for _ in range(200):
            true = generator.poisson(sizes * np.exp(change * generator.standard_normal(20)))  # since last year
            noisy = true + np.rint(generator.laplace(0, 141 / 2**0.5, 20))
            public = np.maximum(generator.poisson(sizes), 1)
            expected = public * (noisy.sum() / public.sum())
            width = 1.96 * np.sqrt(totals_variance(noisy, variance, expected))
            held.append(np.abs(smooth_totals(noisy, variance, expected) - true) <= width)
        assert 0.9 < np.mean(held) <= 0.99


def test_recurring_groups_and_new_ones_are_fitted_apart():
    """A single new group has nothing to be drawn towards, and tells nothing about how much the others changed.

    Theirs deviate by 30, -10, -20 from 100: squares of 1400 over two degrees of freedom, less the noise's 100: 600.
    """
    counts, public = np.array([130.0, 90.0, 80.0, 5_000.0]), np.array([100.0, 100.0, 100.0, 0.0])
    answers = RawAnswers((), [], np.zeros((4, 0)), counts, np.full(4, 100.0))
    found, variance = estimated_totals(answers, public)
    np.testing.assert_allclose(found[:3], 100 + 600 / 700 * np.array([30.0, -10.0, -20.0]), rtol=1e-9)
    assert found[3] == 5_000
    assert variance[3] == 100
    assert (variance[:3] < 100).all()


def test_what_is_expected_before_any_answer():
    """2 m, and the standard error of d = 0, here 2 m + v. A group alone may have any number of rows."""
    counts, public = np.array([110.0, 90.0, 100.0, 5_000.0]), np.array([100.0, 100.0, 100.0, 0.0])
    answers = RawAnswers((), [], np.zeros((4, 0)), counts, np.full(4, 100.0))
    expected, variance = expected_rows(answers, public)
    assert expected.tolist() == [100, 100, 100, 5_000]
    np.testing.assert_allclose(variance, [200 + 300] * 3 + [5_000**2])
