"""Smoothing by hand: what the spread of public groups is, what the posterior does at its edges, totals."""

import numpy as np
import pytest

from prade.estimating.levels import smoothing as likely_spread
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.smoothing import Smoother, shared_part
from prade.estimating.levels.totals import estimated_totals, smooth_totals, totals_variance
from prade.estimating.levels.variation import VariationOfCells
from prade.privacy.noise_law import SMALLEST_VARIANCE


def world(generator, groups=40, rows=60, sizes=(4, 3)):
    """Rows in two dependent parts; groups have shares of their own."""
    group = np.repeat(np.arange(groups), rows)
    shares = generator.dirichlet(np.full(sizes[0], 8.0), size=groups)
    one = np.array([generator.choice(sizes[0], p=shares[g]) for g in group])
    other = np.where(generator.random(len(one)) < 0.5, one % sizes[1], generator.integers(0, sizes[1], len(one)))
    return [one, other], list(sizes), group


def variation_of(cells, sizes, group, groups, weights=None):
    weights = np.ones(len(group)) if weights is None else weights
    return VariationOfCells(cells, sizes, group, groups, weights).variation


def test_weighted_rows_by_hand():
    """Two groups: rows weigh n_g w_i / W_g with n_g = W_g^2 / sum w^2, and each group takes one degree of freedom."""
    generator = np.random.default_rng(13)
    cells, sizes, group = world(generator, groups=2, rows=30)
    weights = generator.uniform(0.1, 3.0, len(group))
    found = variation_of(cells, sizes, group, 2, weights)
    e = np.concatenate([np.eye(size + 1)[cell][:, :size] for cell, size in zip(cells, sizes, strict=True)], axis=1)
    summed, number = 0.0, 0.0
    for g in range(2):
        w = weights[group == g]
        away = e[group == g] - w @ e[group == g] / w.sum()
        kish = w.sum() ** 2 / (w @ w)
        assert 1 < kish < 30
        summed, number = summed + kish / w.sum() * (away.T * w) @ away, number + kish
    np.testing.assert_allclose(found.within, summed / (number - 2), atol=1e-15)


@pytest.mark.parametrize("groups", [1, 2])
def test_fewer_than_three_groups_say_nothing_of_differences(groups):
    cells, sizes, group = world(np.random.default_rng(3), groups=groups)
    variation = variation_of(cells, sizes, group, groups)
    assert not variation.between.any()
    assert variation.within.any()


def test_the_machines_cores_do_not_matter():
    """Linear algebra in threads adds in another order: what follows from the last bit must be the same everywhere."""
    from threadpoolctl import threadpool_limits

    generator = np.random.default_rng(20)
    cells, sizes = [generator.integers(0, 50, 3000) for _ in range(9)], [50] * 9
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(variation_of(cells, sizes, np.arange(3000) % 30, 30))
    assert np.array_equal(found[0].between, found[1].between)
    assert np.array_equal(found[0].within, found[1].within)


@pytest.mark.parametrize("never", [0, 6])
def test_a_cell_that_never_occurs_stays_as_the_prior_has_it(never):
    """No public row is in it, so nothing varies there: no deviation, no variance, no division by zero."""
    cells, _, group = world(np.random.default_rng(11), sizes=(3, 3))
    if never == 0:
        cells = [cells[0] + 1, cells[1]]
    wider = [4, 3] if never == 0 else [3, 4]
    variation = variation_of(cells, wider, group, 40)
    noise = np.full((6, 7), 0.02)
    deviations = 0.05 * np.random.default_rng(12).normal(size=(6, 7))
    mean, variance = Smoother.fit(variation, deviations, np.full(6, 300.0), noise).posterior(deviations[0], noise[0])
    assert abs(mean[never]) < 1e-15
    assert variance[never] < 1e-15
    assert (np.delete(variance, never) > 1e-6).all()


def test_totals_by_hand():
    """Deviations 30, -10, -20 from 100: squares 1400 over two degrees of freedom, less a noise variance of 100: 600."""
    noisy, variance = np.array([130.0, 90.0, 80.0]), np.full(3, 100.0)
    expected = 100 + 600 / 700 * np.array([30.0, -10.0, -20.0])
    np.testing.assert_allclose(smooth_totals(noisy, variance, np.full(3, 100.0)), expected, rtol=1e-9)


def drawn_totals(generator, sizes, change, deviation):
    """Numbers of rows that changed by this rate since last year, what noise says of them, and what to expect."""
    groups = len(sizes)
    true = generator.poisson(sizes * np.exp(change * generator.standard_normal(groups)))
    noisy = true + np.rint(generator.laplace(0, deviation / 2**0.5, groups))
    public = np.maximum(generator.poisson(sizes), 1)
    return true, noisy, public * (noisy.sum() / public.sum())


def test_intervals_of_totals_hold_what_they_say():
    """95 % intervals in 200 tables of 20 groups: each lot's standard error is 1 % or less, so 90 % is 3 or more off."""
    generator = np.random.default_rng(1)
    for change in (0.02, 0.15):
        held = []
        for _ in range(200):
            true, noisy, expected = drawn_totals(generator, np.geomspace(100, 30_000, 20), change, 141.0)
            variance = np.full(20, 141.0**2)
            width = 1.96 * np.sqrt(totals_variance(noisy, variance, expected))
            held.append(np.abs(smooth_totals(noisy, variance, expected) - true) <= width)
        assert 0.9 < np.mean(held) <= 0.99


def test_recurring_groups_and_new_ones_are_fitted_apart():
    """A single new group has nothing to be drawn towards, and tells nothing about how much the others changed."""
    known = np.array([130.0, 90.0, 80.0])
    counts, public = np.array([130.0, 90.0, 80.0, 5_000.0]), np.array([100.0, 100.0, 100.0, 0.0])
    answers = RawAnswers((), [], np.zeros((4, 0)), counts, np.full(4, 100.0))
    found, variance = estimated_totals(answers, public)
    np.testing.assert_array_equal(found[:3], smooth_totals(known, np.full(3, 100.0), np.full(3, 100.0)))
    assert found[3] == 5_000
    assert variance[3] == 100
    assert (variance[:3] < 100).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_shared_part_is_found(share):
    """500 cells in 40 groups of different sizes, noise as large as the differences: to within 0.1."""
    generator = np.random.default_rng(15)
    rows = generator.uniform(100, 1000, 40)
    variance, noise = np.full((40, 500), 0.01), np.full((40, 500), 0.1)
    common, own = generator.normal(0, 0.1, (1, 500)), generator.normal(0, 0.1, (40, 500))
    away = np.sqrt(share) * common + np.sqrt(1 - share) * own + noise * generator.normal(size=noise.shape)
    assert shared_part(away, variance, noise, rows) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e2])
def test_the_likelihood_is_right_where_groups_are_large_and_noise_is_small(ratio):
    """The noise is 10^-20 of what groups differ by: less than what rounding leaves of a difference of such numbers."""
    generator, rows, sizes = np.random.default_rng(3), 1e7, (2, 5, 9, 20, 12)
    within, sums_to_nothing = np.zeros((48, 48)), np.eye(48)
    for last, size in zip(np.cumsum(sizes), sizes, strict=True):  # nothing in as many directions as there are parts
        part, shares = slice(last - size, last), generator.dirichlet(np.full(size, 2.0))
        within[part, part] = np.diag(shares) - np.outer(shares, shares)
        sums_to_nothing[part, part] -= 1 / size
    spread = 0.01 * sums_to_nothing @ generator.normal(size=(48, 6))
    between, root = spread @ spread.T, np.sqrt(SMALLEST_VARIANCE) / rows
    truth = generator.multivariate_normal(np.zeros(48), between + 1e-3 * within, 6)
    deviations, factor = truth / root + generator.normal(size=truth.shape), generator.uniform(0.5, 2.0, 6)
    matrix = (within / rows + ratio * between) / root**2
    diagonal, beside, turned = likely_spread._turned(matrix, deviations, factor.min())
    found = likely_spread._surprises(diagonal, beside, factor, turned, likely_spread.SCALES)
    values, vectors = np.linalg.eigh(matrix)
    variance = likely_spread.SCALES[:, None, None] * np.maximum(values, 0.0) + factor[:, None]
    expected = (np.log(variance) + (deviations @ vectors) ** 2 / variance).sum(axis=(1, 2))
    assert found == pytest.approx(expected, rel=1e-9)
