"""The posterior of a group against dense conditioning, numerical integration and a Gibbs sampler, and at its limits.

The references condition a joint covariance, integrate densities on grids, or draw from the posterior by writing Laplace
noise as Gaussian noise of random variance (Park and Casella, 2008); no sites, no cavities.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace, multivariate_normal, norm

from prade.core.execution import single_threaded_blas
from prade.estimating.levels.posterior import Observed, posterior, under_laplace_noise
from prade.estimating.levels.random_effects import UNSURE_COLUMNS

B = math.sqrt(0.5)  # of Laplace noise of standard deviation 1


@pytest.fixture(autouse=True)
def one_thread():
    with single_threaded_blas():
        yield


def observed(away, noise, drawn):
    """Answers with these standard deviations of noise, Laplace noise where it is one draw."""
    away = np.atleast_1d(away)
    return Observed(away, np.broadcast_to(noise, away.shape) ** 2, np.full(away.shape, drawn))


def problem(seed, cells=7, directions=9, t=0.6):
    """S as root @ root.T, shares, which cells are seen, and noisy answers as the model has them, v - e the last."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(cells, directions)) / math.sqrt(directions)
    shares, seen = generator.dirichlet(np.full(cells, 3.0)), np.arange(cells) % 4 != 2
    design = np.vstack([np.column_stack([root, t * shares])[seen], np.append(np.zeros(directions), t)])
    noises = generator.uniform(0.3, 2.0, len(design))
    answers = design @ generator.normal(size=directions + 1) + noises * generator.laplace(scale=B, size=len(noises))
    return root, shares, seen, noises, answers, design


def dense(root, shares, seen, noises, answers, t):
    """Mean and variances of (u, v - e) given the answers, from their joint covariance."""
    cells = len(shares)
    prior = np.zeros((cells + 1, cells + 1))
    prior[:cells, :cells], prior[cells, cells] = root @ root.T, t**2
    tells = np.vstack([np.column_stack([np.eye(cells), shares])[seen], np.eye(cells + 1)[cells]])[: len(answers)]
    gain = prior @ tells.T @ np.linalg.inv(tells @ prior @ tells.T + np.diag(noises**2))
    return gain @ answers, np.diag(prior - gain @ tells @ prior)


def found_in(root, shares, seen, noises, answers, t, drawn):
    """Mean and variances of (u, v - e), as `dense`, what was told, and the group's own scale. S is due to chance."""
    number = int(seen.sum())
    z = observed(answers[number], noises[number], drawn) if len(answers) > number else None
    known = seen, shares, observed(answers[:number], noises[:number], drawn), t**2, z
    found = posterior(np.zeros((len(root), len(root))), root @ root.T, *known)
    return np.append(found.mean, found.rows), np.append(found.variance, found.rows_variance), (found.told, found.scale)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("t", [0.0, 0.6, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_answers_give_the_conditional_mean_and_variances(seed, t, counted):
    root, shares, seen, noises, answers, _ = problem(seed)
    told = int(seen.sum()) + counted
    *found, times = found_in(root, shares, seen, noises[:told], answers[:told], t, False)
    for one, other in zip(found, dense(root, shares, seen, noises[:told], answers[:told], t), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert times == pytest.approx((1, 1))  # where groups do not differ, there is no scale of their own


def on_a_grid(variance, y):
    """Mean and variance of one unknown under Laplace noise of standard deviation 1, and the density of the answer."""
    reach = np.linspace(-1, 1, 400_001) * 40 * min(math.sqrt(variance), 60)
    u = np.union1d(min(0, y) + reach, max(0, y) + reach)
    density = norm.pdf(u, scale=math.sqrt(variance)) * laplace.pdf(y - u, scale=B)
    whole, first, second = (np.trapezoid(density * u**k, u) for k in range(3))
    return first / whole, second / whole - (first / whole) ** 2, math.log(whole)


@pytest.mark.parametrize("prior", [0.1, 0.7, 3.0, 50.0])
@pytest.mark.parametrize("answer", [0.0, 0.4, -2.5, 20.0])
def test_one_unknown_is_integrated_exactly_and_followed(prior, answer):
    """Exactly, around another middle than 0, too. Three damped sweeps leave 0.2^3 of the way from Gaussian noise.

    That is next to nothing unless an answer is far beyond noise and prior.
    """
    mean, variance, density = on_a_grid(prior**2, answer)
    found = under_laplace_noise(np.array([prior**2]), np.array([1.5]), np.array([answer + 1.5]))
    assert [float(each[0]) for each in found] == pytest.approx([mean + 1.5, variance, density], rel=1e-4, abs=1e-5)
    y, nothing, none = observed(answer, 1.0, True), observed(np.zeros(0), 1.0, True), np.zeros(1, bool)
    cell = posterior(np.zeros((1, 1)), np.array([[prior**2]]), ~none, np.zeros(1), y, 0.0)
    rows = posterior(np.zeros((1, 1)), np.array([[1.0]]), none, np.ones(1), nothing, prior**2, y)
    for said in ((cell.mean[0], cell.variance[0]), (rows.rows, rows.rows_variance)) if answer < 20 else ():
        assert said[0] == pytest.approx(mean, rel=0.03, abs=0.01)
        assert said[1] == pytest.approx(variance, rel=0.06)


def gibbs(design, answer, noise, seed, chains=400, steps=300, burn_in=50):
    """Draws of latents, and of the variances of the noise: 1 / variance is inverse Gaussian."""
    generator, b = np.random.default_rng(seed), noise * B
    draws, scale = [], np.tile(noise**2, (chains, 1))
    for step in range(steps):
        curvature = np.eye(design.shape[1]) + np.einsum("ci,kc,cj->kij", design, 1 / scale, design)
        half, shift = np.linalg.cholesky(curvature), (answer / scale) @ design
        normal = generator.normal(size=(*shift.shape, 1))
        latents = np.linalg.solve(curvature, shift[:, :, None]) + np.linalg.solve(np.transpose(half, (0, 2, 1)), normal)
        away = np.abs(answer - latents[:, :, 0] @ design.T)
        scale = 1 / generator.wald(1 / (b * np.maximum(away, 1e-9)), 1 / b**2)
        draws += [latents[:, :, 0]] if step >= burn_in else []
    return np.concatenate(draws)


@pytest.mark.parametrize("seed", range(3))
def test_a_group_agrees_with_a_gibbs_sampler(seed):
    """Twelve cells in five directions and the number of rows, 100,000 draws.

    Means within 0.15 posterior standard deviations (the standard error is about 0.01), where Gaussian conditioning is
    off by more than that in some cell; variances within 15 %. Cells that were not asked for are among them.
    """
    *asked, design = problem(seed, 12, 5)
    latents = gibbs(design, asked[4], asked[3], seed)
    each = np.column_stack([latents[:, :-1] @ asked[0].T, 0.6 * latents[:, -1]])
    exact, deviation = each.mean(axis=0), each.std(axis=0)
    mean, variance, _ = found_in(*asked, 0.6, True)
    assert np.max(np.abs(mean - exact) / deviation) < 0.15 < np.max(np.abs(dense(*asked, 0.6)[0] - exact) / deviation)
    np.testing.assert_allclose(variance, deviation**2, rtol=0.15)


def test_an_answer_that_noise_cannot_explain_moves_the_mean_by_a_limit_under_laplace_noise_alone():
    """By s^2 / b; under Gaussian noise, by half of the way. Two cells that have nothing in common may have one each."""
    answers = Observed(np.array([20.0, 20.0]), np.ones(2), np.array([True, False]))
    found = posterior(np.zeros((2, 2)), np.eye(2), np.ones(2, bool), np.zeros(2), answers, 0.0)
    assert found.mean.tolist() == pytest.approx([1 / B, 10.0], rel=0.15)


@pytest.mark.parametrize("times", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_group_s_own_scale_is_the_most_likely_one(times, seed):
    """By scipy's likelihood on a fine grid: within 0.2 in logarithms, for the parabola has steps of 1.

    With the scale that was found, the answers are followed as by dense conditioning. A group that differs six times as
    much as others has a larger one.
    """
    root, shares, seen, noises, answers, _ = problem(seed, 24, 24)
    away, noise, chance = np.sqrt(times) * answers[:-1], 0.3 * noises[:-1], 0.05 * np.eye(24)
    found = posterior(root @ root.T, chance, seen, shares, observed(away, noise, False), 0.0)
    s, rest = (root @ root.T)[np.ix_(seen, seen)], chance[np.ix_(seen, seen)] + np.diag(noise**2)
    logs = np.linspace(-3, 3, 601)
    fits = [multivariate_normal(np.zeros(len(s)), math.exp(x) * s + rest).logpdf(away) for x in logs]
    best = logs[np.argmax(np.array(fits) - (logs / UNSURE_COLUMNS) ** 2 / 2)]
    assert math.log(found.scale) == pytest.approx(best, abs=0.2)
    whole = np.linalg.cholesky(found.scale * root @ root.T + chance)
    mean, variance = dense(whole, shares, seen, noise, away, 0.0)
    np.testing.assert_allclose(np.append(found.mean, found.variance), np.append(mean[:-1], variance[:-1]), atol=1e-6)


FIVE = {"min_size": 5, "max_size": 5}


@given(st.lists(st.floats(-1e6, 1e6), **FIVE), st.lists(st.floats(1e-3, 1e6), **FIVE), st.integers(0, 5), st.booleans())
def test_any_answers_give_finite_means_and_variances_below_the_prior(answer, noise, seed, drawn):
    root, shares, *_ = problem(seed, 4, 3)
    mean, variance, _ = found_in(root, shares, np.ones(4, bool), np.array(noise), np.array(answer), 0.5, drawn)
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert (variance <= np.append(np.sum(root**2, axis=1), 0.25) * (1 + 1e-6) + 1e-12).all()
