"""Smoothing against dense Gaussian conditioning, and the choice of (a, w) against a likelihood of multivariate normals.

The reference solves (S + V) x = y and evaluates densities by scipy; no eigenvectors, no whitening.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prade.estimating.levels.error_bars import _Kind
from prade.estimating.levels.smoothing import (
    EXPECTED_BETWEEN,
    EXPECTED_WITHIN,
    RATIOS,
    SCALES,
    UNSURE,
    Smoother,
    expected_within,
)
from prade.estimating.levels.variation import FurtherVariation, PublicVariation


def covariance(generator, cells, rank):
    root = generator.normal(size=(cells, rank))
    return root @ root.T / rank


def problem(seed, cells=6, groups=5, *, between=True):
    generator = np.random.default_rng(seed)
    variation = PublicVariation(
        1e-3 * covariance(generator, cells, 2) * between,
        covariance(generator, cells, cells) * generator.uniform(0.1, 1),
    )
    noise = np.outer(generator.uniform(0.5, 3.0, groups), generator.uniform(0.01, 0.05, cells))
    rows = np.full(groups, 300.0)
    truth = generator.multivariate_normal(np.zeros(cells), variation.between + variation.within / 150, size=groups)
    return variation, truth + noise * generator.normal(size=(groups, cells)), rows, noise


def penalised(variation, deviations, noise, rows, a, w, usual=EXPECTED_WITHIN):
    s = a * variation.between + w / rows * variation.within
    fit = sum(
        multivariate_normal(np.zeros(len(each)), s + np.diag(each**2))
        .logpdf(deviations[(noise == each).all(axis=1)])
        .sum()
        for each in np.unique(noise, axis=0)
    )
    fit -= (np.log(w / usual) / UNSURE) ** 2 / 2
    return fit - (np.log(a / EXPECTED_BETWEEN) / UNSURE) ** 2 / 2 if a else fit


@pytest.mark.parametrize("seed", range(6))
def test_the_posterior_is_gaussian_conditioning(seed):
    """E[u | y] = S (S + V)^-1 y and Var = diag(S - S (S + V)^-1 S), for noise that differs by a factor a group."""
    variation, deviations, rows, noise = problem(seed)
    smoother = Smoother.fit(variation, deviations, rows, noise)
    s = smoother.a * variation.between + smoother.w / rows[0] * variation.within
    for deviation, each in zip(deviations, noise, strict=True):
        gain = s @ np.linalg.inv(s + np.diag(each**2))
        mean, variance = smoother.posterior(deviation, each)
        np.testing.assert_allclose(mean, gain @ deviation, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(variance, np.diag(s - gain @ s), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_most_likely_numbers_are_chosen(seed):
    """No other pair on the grid has a larger penalised likelihood."""
    variation, deviations, rows, noise = problem(seed, cells=4, groups=4)
    smoother = Smoother.fit(variation, deviations, rows, noise)
    # every fourth scale and second ratio, and all that surround the chosen pair
    scales = {*SCALES[::4], *SCALES[np.abs(np.log(SCALES / smoother.w)) < 0.6]}
    ratios = {*RATIOS[::2], *RATIOS[np.abs(np.log(RATIOS / (smoother.a / smoother.w))) < 1.6]}
    grid = {(r * w, w): penalised(variation, deviations, noise, rows[0], r * w, w) for r in ratios for w in scales}
    chosen = penalised(variation, deviations, noise, rows[0], smoother.a, smoother.w)
    assert chosen >= max(grid.values()) - 1e-9
    assert sum(chosen - fit < 0.1 for fit in grid.values()) < len(grid) / 10  # the maximum is no plateau


@pytest.mark.parametrize("seed", range(3))
def test_the_means_of_a_and_w_are_those_over_a_fine_grid(seed):
    """Within 5 %: Smoother's own grid has steps of 2 and 1.2."""
    variation, deviations, rows, noise = problem(seed)
    noise = np.broadcast_to(noise[:1], noise.shape)
    found = Smoother.fit(variation, deviations, rows, noise)
    logs = np.linspace(np.log(1e-3), np.log(1e3), 60), np.linspace(np.log(1e-2), np.log(1e3), 60)
    a, w = (np.exp(each) for each in np.meshgrid(*logs, indexing="ij"))
    usual = expected_within(variation, 300.0)
    pairs = zip(a.ravel(), w.ravel(), strict=True)
    fits = np.array([penalised(variation, deviations, noise, 300.0, x, y, usual) for x, y in pairs])
    likely = np.exp(fits - fits.max())
    assert found.expected_a == pytest.approx(likely @ a.ravel() / likely.sum(), rel=0.05)
    assert found.expected_w == pytest.approx(likely @ w.ravel() / likely.sum(), rel=0.05)


def errors_of(variation, measured, likely, expected, rows, noise, n0):
    """Variance, R and S_QQ of the cells after the measured ones, for the most likely a and w, and their means."""
    at, after = slice(measured), slice(measured, None)
    known = SimpleNamespace(variation=PublicVariation(variation.between[at, at], variation.within[at, at]))
    between, within = np.diag(variation.between)[after], np.diag(variation.within)[after]
    further = FurtherVariation(variation.between[after, at], variation.within[after, at], between, between, within)
    model = _Kind(known, (*likely, 0.0, 1.0, *expected), np.zeros(measured), None, rows, noise, n0)
    return model.errors(further, np.linalg.pinv(known.variation.within), within, between, np.zeros(len(within)))


@pytest.mark.parametrize("n0", [10.0, None])
@pytest.mark.parametrize("groups", [3, 20])
def test_the_variance_of_errors_is_that_of_simulated_ones(n0, groups):
    """u and noise drawn 40,000 times, answered by explicit matrices: variances to within 5 % (standard error 0.7 %).

    The answers are smoothed with the most likely a and w, and u has the variance of their means. 20 groups have as many
    levels of noise, between which the variances are interpolated.
    """
    generator = np.random.default_rng(groups)
    measured, asked, a, w, mean_a, mean_w = 5, 3, 0.5, 1.5, 1.2, 1.9
    cells = measured + asked
    variation = PublicVariation(1e-3 * covariance(generator, cells, 3), covariance(generator, cells, cells))
    rows = np.geomspace(200, 800, groups)
    noise = np.outer(1 / rows, generator.uniform(5, 20, measured))
    variance, left, prior = errors_of(variation, measured, (a, w), (mean_a, mean_w), rows, noise, n0)
    typical = np.exp(np.mean(np.log(rows)))
    c = variation.within[:measured, :measured]
    for g in range(groups):
        fitted = (a * variation.between + w / typical * variation.within)[:measured, :measured]
        v = np.diag(noise[g] ** 2)
        if n0 is None:
            smoothed, d, worth = np.eye(measured), v, np.trace(c) / np.trace(fitted)
        else:
            smoothed = fitted @ np.linalg.inv(fitted + v)
            d, worth = np.diag(np.diag(fitted - smoothed @ fitted)), n0
        gain = variation.within[measured:, :measured] @ np.linalg.inv(c + worth * d) @ smoothed
        true = mean_a * variation.between + mean_w / rows[g] * variation.within
        u = generator.multivariate_normal(np.zeros(cells), true, 40_000)
        heard = u[:, :measured] + noise[g] * generator.normal(size=(40_000, measured))
        np.testing.assert_allclose(variance[g], np.var(u[:, measured:] - heard @ gain.T, axis=0), rtol=0.05)
        np.testing.assert_allclose(left[g], np.var(u[:, measured:] - u[:, :measured] @ gain.T, axis=0), rtol=0.05)
        np.testing.assert_allclose(prior[g], np.diag(true)[measured:], rtol=1e-9)
