"""The posterior of a group against dense conditioning, numerical integration and a Gibbs sampler, and at its limits.

The references condition a joint covariance, integrate densities on grids, or draw from the posterior by writing Laplace
noise as Gaussian noise of random variance (Park and Casella, 2008); no sites, no cavities.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade.core.execution import single_threaded_blas
from prade.estimating.levels.posterior import Observed, posterior, under_laplace_noise


@pytest.fixture(autouse=True)
def one_thread():
    with single_threaded_blas():
        yield


def observed(away, noise, *, drawn=False):
    """Answers with these standard deviations of noise."""
    away = np.atleast_1d(away)
    return Observed(away, np.broadcast_to(noise, away.shape) ** 2, np.full(away.shape, drawn))


def problem(seed, cells=7, directions=9, *, noise=(0.3, 2.0), t=0.6):
    """S, shares, which cells are seen, the standard deviations of noise, and answers as the model has them.

    The last answer is that of the number of rows.
    """
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(cells, directions)) / math.sqrt(directions)
    shares, noises = generator.dirichlet(np.full(cells, 3.0)), generator.uniform(*noise, cells + 1)
    seen = np.arange(cells) % 4 != 2
    design = np.vstack([np.column_stack([root, t * shares])[seen], np.append(np.zeros(directions), t)])
    noises = np.append(noises[:-1][seen], noises[-1])
    latent = generator.normal(size=directions + 1)
    answers = design @ latent + noises * generator.laplace(scale=math.sqrt(0.5), size=len(noises))
    return root, shares, seen, noises, answers, design


def dense(root, shares, seen, noises, answers, t):
    """Mean and variances of (u, v - e) given the answers, from their joint covariance."""
    cells = len(shares)
    prior = np.zeros((cells + 1, cells + 1))
    prior[:cells, :cells], prior[cells, cells] = root @ root.T, t**2
    tells = np.column_stack([np.eye(cells), shares])[seen]
    if len(answers) > len(tells):
        tells = np.vstack([tells, np.eye(cells + 1)[cells]])
    gain = prior @ tells.T @ np.linalg.inv(tells @ prior @ tells.T + np.diag(noises**2))
    return gain @ answers, np.diag(prior - gain @ tells @ prior)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("t", [0.0, 0.6, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_answers_give_the_conditional_mean_and_variances(seed, t, counted):
    root, shares, seen, noises, answers, _ = problem(seed)
    told = seen.sum() + counted
    mean, variance = dense(root, shares, seen, noises[:told], answers[:told], t)
    z = observed(answers[-1], noises[-1]) if counted else None
    found = posterior(root @ root.T, seen, shares, observed(answers[: seen.sum()], noises[:-1]), t**2, z)
    np.testing.assert_allclose(found.mean, mean[:-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.variance, variance[:-1], rtol=1e-6)
    np.testing.assert_allclose([found.rows, found.rows_variance], [mean[-1], variance[-1]], rtol=1e-6, atol=1e-9)
    assert found.told == pytest.approx(1)


def on_a_grid(prior_variance, noise, answer):
    """Mean and variance of one cell, integrated by the trapezoidal rule on both sides of the answer; y's density."""
    prior, b = math.sqrt(prior_variance), noise / math.sqrt(2)
    reach = 40 * min(prior, 60 * b)
    sides = [np.linspace(min(0, answer) - reach, answer, 200_001), np.linspace(answer, max(0, answer) + reach, 200_001)]
    moments = np.zeros(3)
    peak = np.min(np.concatenate([u**2 / (2 * prior_variance) + np.abs(u - answer) / b for u in sides]))
    for u in sides:
        density = np.exp(peak - u**2 / (2 * prior_variance) - np.abs(u - answer) / b)
        density[[0, -1]] /= 2
        moments += (u[1] - u[0]) * np.array([density.sum(), density @ u, density @ u**2])
    mean = moments[1] / moments[0]
    return (
        mean,
        moments[2] / moments[0] - mean**2,
        math.log(moments[0] / (2 * b * prior * math.sqrt(2 * math.pi))) - peak,
    )


PRIORS, ANSWERS = [0.1, 0.7, 3.0, 50.0], [0.0, 0.4, -2.5, 20.0]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_one_cell_is_integrated_exactly(prior, answer):
    """Around another middle than 0, too."""
    mean, variance, density = on_a_grid(prior**2, 1.0, answer)
    found = under_laplace_noise(np.array([prior**2]), np.array([1.5]), np.array([answer + 1.5]))
    assert [float(each[0]) for each in found] == pytest.approx([mean + 1.5, variance, density], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("answer", ANSWERS[:-1])
@pytest.mark.parametrize("asked", ["a cell", "the number of rows"])
def test_one_answer_of_one_unknown_is_followed_as_its_noise_has_it(asked, prior, answer):
    """The cavity is the prior. Three damped sweeps leave 0.2^3 of the way from Gaussian noise of the same variance.

    That is next to nothing unless an answer is far beyond noise and prior.
    """
    mean, variance, _ = on_a_grid(prior**2, 0.8, answer)
    y, nothing = observed(answer, 0.8, drawn=True), observed(np.zeros(0), 0.8)
    if asked == "a cell":
        found = posterior(np.array([[prior**2]]), np.ones(1, bool), np.zeros(1), y, 0.0)
        said = found.mean[0], found.variance[0]
    else:
        found = posterior(np.array([[1.0]]), np.zeros(1, bool), np.ones(1), nothing, prior**2, y)
        said = found.rows, found.rows_variance
    assert said[0] == pytest.approx(mean, rel=0.03, abs=0.01)
    assert said[1] == pytest.approx(variance, rel=0.06)


def gibbs(design, answer, noise, seed, chains=400, steps=300, burn_in=50):
    """Mean and variances from draws of (latents, variances of the noise): 1 / variance is inverse Gaussian."""
    generator, b = np.random.default_rng(seed), noise / math.sqrt(2)
    directions = design.shape[1]
    draws = []
    scale = np.tile(noise**2, (chains, 1))
    for step in range(steps):
        curvature = np.eye(directions) + np.einsum("ci,kc,cj->kij", design, 1 / scale, design)
        half = np.linalg.cholesky(curvature)
        shift = (answer / scale) @ design
        middle = np.linalg.solve(curvature, shift[:, :, None])[:, :, 0]
        drawn = np.linalg.solve(np.transpose(half, (0, 2, 1)), generator.normal(size=(chains, directions, 1)))[:, :, 0]
        latents = middle + drawn
        scale = 1 / generator.wald(1 / (b * np.maximum(np.abs(answer - latents @ design.T), 1e-9)), 1 / b**2)
        if step >= burn_in:
            draws.append(latents)
    return np.concatenate(draws)


@pytest.mark.parametrize("seed", range(3))
def test_a_group_agrees_with_a_gibbs_sampler(seed):
    """Twelve cells in five directions and the number of rows, 100,000 draws.

    Means within 0.15 posterior standard deviations (the standard error is about 0.01), where Gaussian conditioning is
    off by more than that in some cell; variances within 15 %. Cells that were not asked for are among them.
    """
    t = 0.6
    root, shares, seen, noises, answers, design = problem(seed, 12, 5)
    latents = gibbs(design, answers, noises, seed)
    each = np.column_stack([latents[:, :-1] @ root.T, t * latents[:, -1]])
    exact, deviation = each.mean(axis=0), each.std(axis=0)
    y, z = observed(answers[:-1], noises[:-1], drawn=True), observed(answers[-1], noises[-1], drawn=True)
    found = posterior(root @ root.T, seen, shares, y, t**2, z)
    means, variances = np.append(found.mean, found.rows), np.append(found.variance, found.rows_variance)
    assert np.max(np.abs(means - exact) / deviation) < 0.15
    assert np.max(np.abs(dense(root, shares, seen, noises, answers, t)[0] - exact) / deviation) > 0.15
    np.testing.assert_allclose(variances, deviation**2, rtol=0.15)
    assert 1 < found.told < 2  # Laplace noise tells up to twice as much as Gaussian noise


@pytest.mark.parametrize("drawn", [True, False])
def test_without_noise_the_answer_is_met(drawn):
    root, shares, _, _, _, _ = problem(1)
    seen, answers, noises = np.ones(7, bool), np.arange(7) - 3.0, np.full(7, 1e-4)
    found = posterior(root @ root.T, seen, shares, observed(answers, noises, drawn=drawn), 0.0)
    np.testing.assert_allclose(found.mean, answers, atol=1e-3)
    assert (found.variance < 1e-6).all()


@pytest.mark.parametrize("away", [10.0, 30.0])
def test_an_answer_that_noise_cannot_explain_moves_the_mean_less_than_gaussian_noise_would(away):
    """By s^2 / b in the limit of many sweeps, and by half of the way under Gaussian noise."""
    one = np.array([[1.0]]), np.ones(1, bool), np.zeros(1)
    moved = [posterior(*one, observed(away, 1.0, drawn=drawn), 0.0).mean[0] for drawn in (True, False)]
    assert moved[0] == pytest.approx(math.sqrt(2), rel=0.2)
    assert moved[1] == pytest.approx(away / 2)


def test_one_answer_may_have_laplace_noise_and_another_gaussian_noise():
    """What is far from each other in S is as if it were alone."""
    s, shares, answers = np.diag([1.0, 2.0]), np.zeros(2), np.array([3.0, 3.0])
    mixed = posterior(s, np.ones(2, bool), shares, Observed(answers, np.ones(2), np.array([True, False])), 0.0)
    for drawn, cell in ((True, 0), (False, 1)):
        alone = posterior(s, np.ones(2, bool), shares, observed(answers, 1.0, drawn=drawn), 0.0)
        assert mixed.mean[cell] == pytest.approx(alone.mean[cell], rel=1e-9)
        assert mixed.variance[cell] == pytest.approx(alone.variance[cell], rel=1e-9)
    assert mixed.mean[0] < 1.5 < mixed.mean[1]


FIVE = {"min_size": 5, "max_size": 5}


@given(st.lists(st.floats(-1e6, 1e6), **FIVE), st.lists(st.floats(1e-3, 1e6), **FIVE), st.integers(0, 5), st.booleans())
def test_any_answers_give_finite_means_and_variances_below_the_prior(answer, noise, seed, drawn):
    root, shares, _, _, _, _ = problem(seed, 4, 3)
    y = observed(np.array(answer[:4]), np.array(noise[:4]), drawn=drawn)
    z = observed(answer[4], noise[4], drawn=drawn)
    found = posterior(root @ root.T, np.ones(4, bool), shares, y, 0.3, z)
    assert np.isfinite([*found.mean, found.rows]).all()
    variance = np.append(found.variance, found.rows_variance)
    assert (variance >= 0).all()
    assert (variance <= np.append(np.sum(root**2, axis=1), 0.3) * (1 + 1e-6) + 1e-12).all()
