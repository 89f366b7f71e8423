"""Smoothing against dense Gaussian conditioning, and the choice of (a, w) against a likelihood of multivariate normals.

The reference solves (S + V) x = y and evaluates densities by scipy; no eigenvectors, no whitening.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prade.smooth import EXPECTED_BETWEEN, EXPECTED_WITHIN, RATIOS, SCALES, UNSURE, Smoother, Spread


def covariance(generator, cells, rank):
    root = generator.normal(size=(cells, rank))
    return root @ root.T / rank


def problem(seed, cells=6, groups=5, *, between=True):
    generator = np.random.default_rng(seed)
    spread = Spread(
        1e-3 * covariance(generator, cells, 2) * between,
        covariance(generator, cells, cells) * generator.uniform(0.1, 1),
    )
    noise = np.outer(generator.uniform(0.5, 3.0, groups), generator.uniform(0.01, 0.05, cells))
    rows = np.full(groups, 300.0)
    truth = generator.multivariate_normal(np.zeros(cells), spread.between + spread.within / 150, size=groups)
    return spread, truth + noise * generator.normal(size=(groups, cells)), rows, noise


def penalised(spread, deviations, noise, rows, a, w):
    s = a * spread.between + w / rows * spread.within
    fit = sum(
        multivariate_normal(np.zeros(len(y)), s + np.diag(each**2)).logpdf(y)
        for y, each in zip(deviations, noise, strict=True)
    )
    fit -= (np.log(w / EXPECTED_WITHIN) / UNSURE) ** 2 / 2
    return fit - (np.log(a / EXPECTED_BETWEEN) / UNSURE) ** 2 / 2 if a else fit


@pytest.mark.parametrize("seed", range(6))
def test_the_posterior_is_gaussian_conditioning(seed):
    """E[u | y] = S (S + V)^-1 y and Var = diag(S - S (S + V)^-1 S), for noise that differs by a factor a group."""
    spread, deviations, rows, noise = problem(seed)
    smoother = Smoother.fit(spread, deviations, rows, noise)
    s = smoother.a * spread.between + smoother.w / rows[0] * spread.within
    for deviation, each in zip(deviations, noise, strict=True):
        gain = s @ np.linalg.inv(s + np.diag(each**2))
        mean, variance = smoother.posterior(deviation, each)
        np.testing.assert_allclose(mean, gain @ deviation, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(variance, np.diag(s - gain @ s), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_most_likely_numbers_are_chosen(seed):
    """No other pair on the grid has a larger penalised likelihood."""
    spread, deviations, rows, noise = problem(seed, cells=4, groups=4)
    smoother = Smoother.fit(spread, deviations, rows, noise)
    # every fourth scale and second ratio, and all that surround the chosen pair
    scales = {*SCALES[::4], *SCALES[np.abs(np.log(SCALES / smoother.w)) < 0.6]}
    ratios = {*RATIOS[::2], *RATIOS[np.abs(np.log(RATIOS / (smoother.a / smoother.w))) < 1.6]}
    grid = {(r * w, w): penalised(spread, deviations, noise, rows[0], r * w, w) for r in ratios for w in scales}
    chosen = penalised(spread, deviations, noise, rows[0], smoother.a, smoother.w)
    assert chosen >= max(grid.values()) - 1e-9
    assert sum(chosen - fit < 0.1 for fit in grid.values()) < len(grid) / 10  # the maximum is no plateau


def test_without_differences_between_groups_only_w_is_chosen():
    spread, deviations, rows, noise = problem(1, between=False)
    smoother = Smoother.fit(spread, deviations, rows, noise)
    fits = [penalised(spread, deviations, noise, rows[0], 0.0, w) for w in SCALES]
    assert smoother.a == 0
    assert smoother.w == SCALES[int(np.argmax(fits))]


def test_noise_that_differs_otherwise_than_by_a_factor_is_nearly_conditioned_on():
    """Up to 20 % up or down from cell to cell: means off by half a standard deviation at most, variances by half."""
    spread, deviations, rows, noise = problem(4)
    noise = noise * np.random.default_rng(0).uniform(0.8, 1.2, noise.shape)
    smoother = Smoother.fit(spread, deviations, rows, noise)
    s = smoother.a * spread.between + smoother.w / rows[0] * spread.within
    for deviation, each in zip(deviations, noise, strict=True):
        gain = s @ np.linalg.inv(s + np.diag(each**2))
        mean, variance = smoother.posterior(deviation, each)
        exact = np.diag(s - gain @ s)
        assert (np.abs(mean - gain @ deviation) < 0.5 * np.sqrt(exact)).all()
        np.testing.assert_allclose(variance, exact, rtol=0.5)
