"""The posterior under Laplace noise against numerical integration and a Gibbs sampler, and at its limits.

The references integrate densities on grids, or draw from the posterior by writing Laplace noise as Gaussian noise of
random variance (Park and Casella, 2008); no sites, no cavities.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade.core.execution import single_threaded_blas
from prade.estimating.levels.laplace_posterior import ODD, laplace_posteriors


@pytest.fixture(autouse=True)
def one_thread():
    with single_threaded_blas():
        yield


def linear(root, answer, noise):
    """Gaussian conditioning, by singular vectors: no digits are lost where there is next to no noise."""
    directions, values, _ = np.linalg.svd(root / noise[:, None], full_matrices=False)
    kept = values**2 / (1 + values**2)
    return noise * (directions @ (kept * (directions.T @ (answer / noise)))), noise**2 * (directions**2 @ kept)


def posterior(root, answer, noise, one_draw=None, **options):
    one_draw = np.ones(len(answer), np.bool_) if one_draw is None else one_draw
    start = tuple(each[None] for each in linear(root, answer, noise))
    return tuple(
        each[0] for each in laplace_posteriors(root, answer[None], noise[None], one_draw[None], start, **options)
    )


def problem(seed, cells, directions, *, noise=(0.3, 2.0)):
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(cells, directions)) / math.sqrt(directions)
    noises = generator.uniform(*noise, cells)
    u = root @ generator.normal(size=directions)
    return root, u + noises * generator.laplace(scale=math.sqrt(0.5), size=cells), noises


def on_a_grid(prior_variance, noise, answer):
    """Mean and variance of one cell, integrated by the trapezoidal rule on both sides of the answer."""
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
    return mean, moments[2] / moments[0] - mean**2


@pytest.mark.parametrize("prior", [0.1, 0.7, 3.0, 50.0])
@pytest.mark.parametrize("answer", [0.0, 0.4, -2.5, 20.0])
def test_one_cell_is_integrated_exactly(prior, answer):
    """With one cell the cavity is the prior: one sweep is exact."""
    root, noise = np.array([[prior]]), np.array([0.8])
    mean, variance = posterior(root, np.array([answer]), noise, sweeps=1, odd=0.0)
    exact = on_a_grid(prior**2, 0.8, answer)
    assert mean[0] == pytest.approx(exact[0], abs=1e-5)
    assert variance[0] == pytest.approx(exact[1], rel=1e-4)


def gibbs(root, answer, noise, seed, chains=400, steps=300, burn_in=50):
    """Mean and variances from draws of (u, variances of the noise): 1 / variance is inverse Gaussian."""
    generator, b = np.random.default_rng(seed), noise / math.sqrt(2)
    directions = root.shape[1]
    draws = []
    scale = np.tile(noise**2, (chains, 1))
    for step in range(steps):
        curvature = np.eye(directions) + np.einsum("ci,kc,cj->kij", root, 1 / scale, root)
        half = np.linalg.cholesky(curvature)
        shift = (answer / scale) @ root
        middle = np.linalg.solve(curvature, shift[:, :, None])[:, :, 0]
        drawn = np.linalg.solve(np.transpose(half, (0, 2, 1)), generator.normal(size=(chains, directions, 1)))[:, :, 0]
        u = (middle + drawn) @ root.T
        scale = 1 / generator.wald(1 / (b * np.maximum(np.abs(answer - u), 1e-9)), 1 / b**2)
        if step >= burn_in:
            draws.append(u)
    each = np.concatenate(draws)
    return each.mean(axis=0), each.var(axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_a_block_agrees_with_a_gibbs_sampler(seed):
    """Twelve cells in five directions, 100,000 draws (standard error of a mean about 0.01 standard deviations).

    Means within 0.1 posterior standard deviations, where the linear posterior is off by more than 0.15 in some cell;
    variances within 15 %.
    """
    root, answer, noise = problem(seed, 12, 5)
    exact, variances = gibbs(root, answer, noise, seed)
    deviation = np.sqrt(variances)
    mean, variance = posterior(root, answer, noise, odd=0.0)
    assert np.max(np.abs(mean - exact) / deviation) < 0.1
    assert np.max(np.abs(linear(root, answer, noise)[0] - exact) / deviation) > 0.15
    np.testing.assert_allclose(variance, variances, rtol=0.15)


@pytest.mark.parametrize("odd", [0.0, ODD])
def test_without_noise_the_answer_is_met(odd):
    root, answer, noise = problem(1, 6, 6, noise=(1e-7, 2e-7))
    mean, variance = posterior(root, answer, noise, odd=odd)
    np.testing.assert_allclose(mean, answer, atol=1e-6)
    np.testing.assert_allclose(variance, noise**2, rtol=1e-3)


@pytest.mark.parametrize("away", [30.0, 1e3, 1e9])
def test_an_answer_that_noise_cannot_explain_is_followed_as_by_the_linear_posterior(away):
    """Without odd cells, the answer moves the mean by s^2 / b and no more."""
    root, answer, noise = np.array([[1.0]]), np.array([away]), np.array([1.0])
    assert posterior(root, answer, noise, odd=0.0)[0][0] == pytest.approx(math.sqrt(2))
    assert posterior(root, answer, noise)[0][0] == pytest.approx(away / 2, rel=0.01)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4),
    st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4),
    st.integers(0, 5),
)
def test_any_answers_give_finite_means_and_variances_below_the_prior(answer, noise, seed):
    root, _, _ = problem(seed, 4, 3)
    mean, variance = posterior(root, np.array(answer), np.array(noise))
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert (variance <= np.sum(root**2, axis=1) * (1 + 1e-6) + 1e-12).all()


def several_groups(groups=5, cells=12, directions=20):
    root = problem(1, cells, directions)[0]
    asked = [problem(2 + group, cells, directions)[1:] for group in range(groups)]
    return root, *(np.stack(each) for each in zip(*asked, strict=True))


def test_groups_together_are_each_as_alone_and_drowned_ones_stay_where_they_start(capfd):
    root, answers, noise = several_groups()
    noise[3] *= 1e6
    one_draw = np.random.default_rng(0).random(answers.shape) < 0.8
    one_draw[4] = False
    start = tuple(np.stack(each) for each in zip(*map(linear, [root] * 5, answers, noise), strict=True))
    together = laplace_posteriors(root, answers, noise, one_draw, start)
    for group in range(3):
        alone = posterior(root, answers[group], noise[group], one_draw[group])
        for found, wanted in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[group], wanted, rtol=1e-12)
    for found, first in zip(together, start, strict=True):
        np.testing.assert_array_equal(found[3:], first[3:])

    assert not np.array_equal(together[0][1], start[0][1])
    assert capfd.readouterr() == ("", "")  # LAPACK itself prints its complaints
