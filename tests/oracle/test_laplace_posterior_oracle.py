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


@pytest.mark.parametrize("seed", range(8))
def test_two_cells_are_nearly_integrated(seed):
    """Means within 0.06 posterior standard deviations, variances within 12 %, with the sweeps that releases use."""
    root, answer, noise = problem(seed, 2, 2)
    precision = np.linalg.inv(root @ root.T)
    width = np.sqrt(np.diag(root @ root.T))
    one, other = (np.linspace(-7 * each, 7 * each, 1501) for each in width)
    x, y = np.meshgrid(one, other, indexing="ij")
    quadratic = precision[0, 0] * x**2 + 2 * precision[0, 1] * x * y + precision[1, 1] * y**2
    away = np.abs(x - answer[0]) / noise[0] + np.abs(y - answer[1]) / noise[1]
    density = np.exp(-quadratic / 2 - math.sqrt(2) * away)
    density /= density.sum()
    exact = np.array([(density * x).sum(), (density * y).sum()])
    variances = np.array([(density * x**2).sum(), (density * y**2).sum()]) - exact**2
    mean, variance = posterior(root, answer, noise, odd=0.0)
    assert (np.abs(mean - exact) < 0.06 * np.sqrt(variances)).all()
    np.testing.assert_allclose(variance, variances, rtol=0.12)


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


@pytest.mark.parametrize("seed", range(4))
def test_few_sweeps_are_enough(seed):
    """Two sweeps are within 0.15 standard deviations of thirty, in blocks whose noise is small, middling or large."""
    for noise in ((0.05, 0.1), (0.3, 2.0), (5.0, 9.0)):
        root, answer, noises = problem(seed, 40, 12, noise=noise)
        mean, variance = posterior(root, answer, noises)
        end, _ = posterior(root, answer, noises, sweeps=30)
        assert np.max(np.abs(mean - end) / np.sqrt(variance)) < 0.15


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("odd", [0.0, ODD])
def test_without_noise_the_answer_is_met(odd):
    root, answer, noise = problem(1, 6, 6, noise=(1e-7, 2e-7))
    mean, variance = posterior(root, answer, noise, odd=odd)
    np.testing.assert_allclose(mean, answer, atol=1e-6)
    np.testing.assert_allclose(variance, noise**2, rtol=1e-3)


@pytest.mark.parametrize("odd", [0.0, ODD])
def test_under_noise_the_prior_remains(odd):
    root, answer, noise = problem(2, 6, 3, noise=(1e5, 2e5))
    mean, variance = posterior(root, answer, noise, odd=odd)
    prior = np.sum(root**2, axis=1)
    assert (np.abs(mean) < 1e-3 * np.sqrt(prior)).all()
    np.testing.assert_allclose(variance, prior, rtol=1e-6)


def test_gaussian_answers_keep_the_linear_posterior():
    root, answer, noise = problem(3, 8, 8)
    found = posterior(root, answer, noise, np.zeros(8, np.bool_))
    np.testing.assert_allclose(found, linear(root, answer, noise), rtol=1e-9)


def test_gaussian_answers_beside_laplace_ones_are_conditioned_on_exactly():
    """Independent cells: each has its own posterior."""
    root, noise, answer = np.diag([1.0, 2.0]), np.array([0.8, 0.8]), np.array([1.5, 3.0])
    mean, variance = posterior(root, answer, noise, np.array([True, False]), odd=0.0)
    assert (mean[0], variance[0]) == pytest.approx(on_a_grid(1.0, 0.8, 1.5), rel=1e-5)
    assert (mean[1], variance[1]) == pytest.approx((3.0 * 4 / 4.64, 4 * 0.64 / 4.64), rel=1e-9)


def test_a_cell_that_cannot_vary_stays_where_it_is():
    root = np.array([[1.0], [0.0]])
    mean, variance = posterior(root, np.array([0.5, 40.0]), np.ones(2))
    assert mean[1] == 0
    assert 0 <= variance[1] < 1e-6
    assert (mean[0], variance[0]) == pytest.approx(
        tuple(x[0] for x in posterior(root[:1], np.array([0.5]), np.ones(1)))
    )


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


def test_groups_together_are_each_as_alone():
    root, answers, noise = several_groups()
    noise[3] *= 1e4  # drowned: its posterior is where it started
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


def test_where_noise_drowns_all_directions_the_start_remains_and_nothing_is_printed(capfd):
    root, answers, noise = several_groups()
    noise[2] *= 1e6
    start = np.zeros_like(answers), np.full_like(answers, 0.5)
    mean, variance = laplace_posteriors(root, answers, noise, np.ones(answers.shape, np.bool_), start)
    assert np.array_equal(mean[2], start[0][2])
    assert np.array_equal(variance[2], start[1][2])
    assert not np.array_equal(mean[1], start[0][1])
    assert capfd.readouterr() == ("", "")  # LAPACK itself prints its complaints
