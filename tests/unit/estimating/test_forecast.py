"""The forecast of next year: a planted trend is learned, noise and walks leave it alone, and the numbers are right."""

import numpy as np
import pytest

from prade.estimating.levels.forecast import Forecast, Years, clear_between, forecast
from prade.estimating.levels.variation import PublicVariation

CELLS, GROUPS, ROWS = 6, 40, 20_000.0
FAMILIES = np.array([0, 0, 0, 1, 1, 1])


def world(seed, years=6, walk=0.0, trend=0.0, common=0.0, noise=0.02):
    """True shares of `years` + 1 years, the past ones with noise, and how groups vary; two columns of three cells."""
    generator = np.random.default_rng(seed)
    pattern = np.array([[1.0, -1, 0, 0.5, -0.5, 0], [0, 1, -1, 0, 1, -1]]) * 0.04
    factors = generator.standard_normal((GROUPS, 2))
    steps = np.sqrt(walk) * generator.standard_normal((years, GROUPS, 2))
    steps += np.sqrt(trend) * generator.standard_normal((GROUPS, 2))
    moved = factors + np.concatenate([np.zeros((1, GROUPS, 2)), np.cumsum(steps, axis=0)])
    rising = common * np.arange(years + 1)[:, None, None] * np.array([1.0, 0, -1, 0, 0, 0])
    true = 1 / 3 + moved @ pattern + rising
    one = np.eye(3) / 3 - 1 / 9
    within = np.block([[one, np.zeros((3, 3))], [np.zeros((3, 3)), one]])
    seen = true[:-1] + generator.multivariate_normal(np.zeros(CELLS), within / ROWS, (years, GROUPS))
    variance = np.full((years, GROUPS, CELLS), noise**2)
    variance[0] = 0.0  # a public table
    seen = seen + np.sqrt(variance) * generator.standard_normal(seen.shape)
    known = Years(seen, variance, np.full((years, GROUPS), ROWS))
    return true, known, PublicVariation(pattern.T @ pattern, within)


def error(found, true):
    return float(np.abs(found - true).mean())


def test_a_planted_trend_is_learned_and_goes_on():
    true, known, variation = world(0, trend=0.1, noise=0.005)
    found = forecast(known, variation, FAMILIES)
    assert 0.03 < found.trend < 0.3
    assert found.walk < found.trend
    assert error(found.shares, true[-1]) < 0.5 * error(true[-2], true[-1])  # better than last year without any noise


def test_a_trend_that_all_groups_have_in_common_is_learned_column_by_column():
    true, known, variation = world(1, common=0.01, noise=0.005)
    found = forecast(known, variation, FAMILIES)
    risen = found.shares.mean(axis=0) - true[-2].mean(axis=0)
    np.testing.assert_allclose(risen, [0.01, 0, -0.01, 0, 0, 0], atol=0.004)


@pytest.mark.parametrize("walk", [0.0, 0.03])
def test_without_a_trend_none_is_expected(walk, monkeypatch):
    """Forecasts with and without trends on the grid are as good as the same, in ten worlds."""
    with_trend, without = [], []
    for seed in range(10):
        true, known, variation = world(seed, walk=walk)
        with_trend.append(forecast(known, variation, FAMILIES))
        with monkeypatch.context() as patch:
            patch.setattr("prade.estimating.levels.forecast.TRENDS", (0.0,))
            patch.setattr("prade.estimating.levels.forecast.NO_TREND", 1.0)
            without.append((forecast(known, variation, FAMILIES), true[-1]))
    ratio = np.mean([error(found.shares, true) for found, (_, true) in zip(with_trend, without, strict=True)])
    ratio /= np.mean([error(found.shares, true) for found, true in without])
    assert ratio < 1.02
    assert np.mean([found.trend for found in with_trend]) < 0.004


def test_the_variance_of_the_walk_is_learned():
    for walk in (0.01, 0.1):
        found = forecast(*world(2, walk=walk, noise=0.005)[1:], FAMILIES)
        assert 0.5 * walk < found.walk < 2 * walk
        assert found.change > walk


def test_noise_that_hides_everything_leaves_the_first_year():
    _, known, variation = world(3, noise=10.0)
    found = forecast(known, variation, FAMILIES)
    np.testing.assert_allclose(found.shares, known.shares[0], atol=0.03)


def test_two_years_show_no_trend():
    _, known, variation = world(4, years=2, trend=0.3, noise=0.001)
    assert forecast(known, variation, FAMILIES).trend == 0.0


def test_a_group_that_a_year_lacks_is_forecast_from_the_others():
    true, known, variation = world(5, trend=0.05, noise=0.005)
    rows, shares = known.rows.copy(), known.shares.copy()
    rows[:2, 7], shares[:2, 7] = 0.0, np.nan
    found = forecast(Years(np.nan_to_num(shares), known.variance, rows), variation, FAMILIES)
    assert isinstance(found, Forecast)
    assert error(found.shares[7], true[-1, 7]) < 0.02
    assert error(np.delete(found.shares, 7, 0), np.delete(true[-1], 7, 0)) < 0.01


def test_only_directions_beyond_sampling_are_clear():
    _, known, variation = world(6)
    found = clear_between(known, variation.within)
    assert np.linalg.matrix_rank(found, tol=1e-9) == 2  # as many as the places differ in
    assert np.trace(found) == pytest.approx(np.trace(variation.between), rel=0.5)
    alike = Years(known.shares.copy(), known.variance, known.rows)
    generator = np.random.default_rng(7)
    alike.shares[0] = generator.multivariate_normal(np.full(CELLS, 1 / 3), variation.within / ROWS, GROUPS)
    assert clear_between(alike, variation.within) is None
    noisy = Years(known.shares, known.variance + 0.01, known.rows)
    assert clear_between(noisy, variation.within) is None
