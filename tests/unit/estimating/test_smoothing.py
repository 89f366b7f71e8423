"""Smoothing by hand: what the spread of public groups is, what the posterior does at its edges, totals."""

import numpy as np
import pytest

from prade.estimating.levels import smoothing as likely_spread
from prade.estimating.levels import variation as module
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.smoothing import Smoother, shared_part
from prade.estimating.levels.totals import (
    estimated_totals,
    estimated_totals_variance,
    smooth_totals,
    totals_variance,
)
from prade.estimating.levels.variation import PublicVariation
from prade.privacy.noise_law import SMALLEST_VARIANCE


def world(generator, groups=40, rows=60, sizes=(4, 3)):
    """Rows in two dependent parts; groups have shares of their own."""
    group = np.repeat(np.arange(groups), rows)
    shares = generator.dirichlet(np.full(sizes[0], 8.0), size=groups)
    one = np.array([generator.choice(sizes[0], p=shares[g]) for g in group])
    other = np.where(generator.random(len(one)) < 0.5, one % sizes[1], generator.integers(0, sizes[1], len(one)))
    return [one, other], list(sizes), group


def indicators(cells, sizes):
    return np.concatenate([np.eye(size + 1)[cell][:, :size] for cell, size in zip(cells, sizes, strict=True)], axis=1)


# ---------------------------------------------------------------- variation


def test_within_is_the_pooled_covariance_of_rows_about_their_groups_mean():
    generator = np.random.default_rng(0)
    cells, sizes, group = world(generator, groups=6, rows=20)
    variation = PublicVariation.of(cells, sizes, group, 6, seed=0)  # fewer rows than the sample would take
    e = indicators(cells, sizes)
    away = e - np.array([e[group == g].mean(axis=0) for g in range(6)])[group]
    np.testing.assert_allclose(variation.within, away.T @ away / (len(e) - 6), atol=1e-14)


def test_a_partial_part_leaves_rows_in_no_cell():
    """A row in no cell has the part's size as its cell, and counts as none of its cells."""
    cells, sizes, group = [np.array([0, 2, 2, 1, 0, 2])], [2], np.zeros(6, np.int64)
    variation = PublicVariation.of(cells, sizes, group, 1, seed=0)
    np.testing.assert_allclose(variation.within, np.cov(indicators(cells, sizes).T), atol=1e-15)


def test_a_sample_of_rows_says_nearly_the_same(monkeypatch):
    cells, sizes, group = world(np.random.default_rng(1), groups=40, rows=100)
    whole = PublicVariation.of(cells, sizes, group, 40, seed=0)
    monkeypatch.setattr(module, "ROWS_PER_CELL", 200)  # 1,400 of 4,000 rows
    monkeypatch.setattr(module, "FEWEST_ROWS", 1)
    some = PublicVariation.of(cells, sizes, group, 40, seed=0)
    assert not np.array_equal(some.within, whole.within)
    np.testing.assert_allclose(some.within, whole.within, atol=0.02)  # a standard error of 0.25 / sqrt(1400), thrice


def test_equal_weights_change_nothing():
    cells, sizes, group = world(np.random.default_rng(2), groups=5, rows=50)
    plain = PublicVariation.of(cells, sizes, group, 5, seed=3)
    weighted = PublicVariation.of(cells, sizes, group, 5, 3, np.full(len(group), 0.004))
    np.testing.assert_allclose(weighted.within, plain.within, atol=1e-15)
    np.testing.assert_allclose(weighted.between, plain.between, atol=1e-15)


def test_weighted_rows_by_hand():
    """Two groups: rows weigh n_g w_i / W_g with n_g = W_g^2 / sum w^2, and each group takes one degree of freedom."""
    generator = np.random.default_rng(13)
    cells, sizes, group = world(generator, groups=2, rows=30)
    weights = generator.uniform(0.1, 3.0, len(group))
    found = PublicVariation.of(cells, sizes, group, 2, 0, weights)
    e, summed, number = indicators(cells, sizes), 0.0, 0.0
    for g in range(2):
        w = weights[group == g]
        away = e[group == g] - w @ e[group == g] / w.sum()
        kish = w.sum() ** 2 / (w @ w)
        assert 1 < kish < 30
        summed, number = summed + kish / w.sum() * (away.T * w) @ away, number + kish
    np.testing.assert_allclose(found.within, summed / (number - 2), atol=1e-15)


def test_weighted_and_unweighted_worlds_differ_alike():
    """A row of weight 0 is as good as none, in both covariances."""
    cells, sizes, group = world(np.random.default_rng(14), groups=8, rows=40)
    weights = (np.arange(len(group)) % 4 > 0).astype(float)
    some = [cell[weights > 0] for cell in cells]
    one = PublicVariation.of(cells, sizes, group, 8, 0, weights)
    other = PublicVariation.of(some, sizes, group[weights > 0], 8, 0)
    np.testing.assert_allclose(one.within, other.within, atol=1e-15)
    np.testing.assert_allclose(one.between, other.between, atol=1e-15)


def test_between_is_positive_semidefinite():
    for seed in range(5):
        cells, sizes, group = world(np.random.default_rng(seed), groups=8, rows=5)
        values = np.linalg.eigvalsh(PublicVariation.of(cells, sizes, group, 8, seed=0).between)
        assert values.min() > -1e-15
        assert values.max() > 0


@pytest.mark.parametrize("groups", [1, 2])
def test_fewer_than_three_groups_say_nothing_of_differences(groups):
    cells, sizes, group = world(np.random.default_rng(3), groups=groups)
    variation = PublicVariation.of(cells, sizes, group, groups, seed=0)
    assert not variation.between.any()
    assert variation.within.any()


def test_groups_without_rows_or_with_one_change_nothing():
    cells, sizes, group = world(np.random.default_rng(4), groups=6, rows=10)
    alone = PublicVariation.of(cells, sizes, group, 6, seed=0)
    more = [np.append(cell, 1) for cell in cells]
    with_small = PublicVariation.of(more, sizes, np.append(group, 7), 9, seed=0)  # 6 and 8 are empty, 7 has one row
    np.testing.assert_allclose(with_small.within, alone.within, atol=1e-15)
    np.testing.assert_allclose(with_small.between, alone.between, atol=1e-15)


def test_groups_of_one_row_each_are_taken_as_one_group():
    """Or else nothing would vary within a group, and no answer could move anything."""
    cells, sizes, _ = world(np.random.default_rng(5), groups=1, rows=30)
    single = PublicVariation.of(cells, sizes, np.arange(30), 30, seed=0)
    together = PublicVariation.of(cells, sizes, np.zeros(30, np.int64), 1, seed=0)
    assert np.array_equal(single.within, together.within)
    assert not single.between.any()


def test_the_machines_cores_do_not_matter():
    """Linear algebra in threads adds in another order: what follows from the last bit must be the same everywhere."""
    from threadpoolctl import threadpool_limits

    generator = np.random.default_rng(20)
    cells, sizes = [generator.integers(0, 50, 3000) for _ in range(9)], [50] * 9
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(PublicVariation.of(cells, sizes, np.arange(3000) % 30, 30, seed=0))
    assert np.array_equal(found[0].between, found[1].between)
    assert np.array_equal(found[0].within, found[1].within)


def test_what_is_expected_remains_where_noise_drowns_the_answers():
    cells, sizes, group = world(np.random.default_rng(6))
    variation = PublicVariation.of(cells, sizes, group, 40, seed=0)
    shape = 40, variation.within.shape[0]
    for expected in (0.03, 0.7):
        found = Smoother.fit(variation, np.zeros(shape), np.full(40, 500.0), np.full(shape, 1e3), expected)
        assert found.a == pytest.approx(expected, rel=0.5)


# ---------------------------------------------------------------- posterior at its edges


@pytest.fixture
def variation():
    cells, sizes, group = world(np.random.default_rng(7))
    return PublicVariation.of(cells, sizes, group, 40, seed=0)


def test_huge_noise_returns_the_prior(variation):
    generator = np.random.default_rng(8)
    noise = np.full((10, 7), 1e4)
    deviations = generator.normal(size=(10, 7)) * noise
    smoother = Smoother.fit(variation, deviations, np.full(10, 500.0), noise)
    mean, variance = smoother.posterior(deviations[0], noise[0])
    assert np.abs(mean).max() < 1e-4
    assert (variance < 0.1).all()


def test_next_to_no_noise_returns_the_answers(variation):
    generator = np.random.default_rng(9)
    deviations = generator.multivariate_normal(np.zeros(7), variation.between + variation.within / 500, size=10)
    noise = np.full((10, 7), 1e-9)
    smoother = Smoother.fit(variation, deviations, np.full(10, 500.0), noise)
    mean, variance = smoother.posterior(deviations[3], noise[3])
    np.testing.assert_allclose(mean, deviations[3], atol=1e-8)
    assert (variance <= 1.0001e-18).all()


def test_the_parts_still_add_up(variation):
    """Noise moves the sum of a part's answers; shares of everybody sum to 1 whatever happens, so deviations to 0."""
    generator = np.random.default_rng(10)
    noise = np.full((5, 7), 0.05)
    deviations = 0.05 * generator.normal(size=(5, 7))
    mean, _ = Smoother.fit(variation, deviations, np.full(5, 500.0), noise).posterior(deviations[0], noise[0])
    np.testing.assert_allclose([mean[:4].sum(), mean[4:].sum()], 0.0, atol=1e-15)
    assert np.abs(mean).max() > 1e-3


@pytest.mark.parametrize("never", [0, 6])
def test_a_cell_that_never_occurs_stays_as_the_prior_has_it(never):
    """No public row is in it, so nothing varies there: no deviation, no variance, no division by zero."""
    cells, _, group = world(np.random.default_rng(11), sizes=(3, 3))
    if never == 0:
        cells = [cells[0] + 1, cells[1]]
    wider = [4, 3] if never == 0 else [3, 4]
    variation = PublicVariation.of(cells, wider, group, 40, seed=0)
    noise = np.full((6, 7), 0.02)
    deviations = 0.05 * np.random.default_rng(12).normal(size=(6, 7))
    mean, variance = Smoother.fit(variation, deviations, np.full(6, 300.0), noise).posterior(deviations[0], noise[0])
    assert abs(mean[never]) < 1e-15
    assert variance[never] < 1e-15
    assert (np.delete(variance, never) > 1e-6).all()


def test_nothing_varies_at_all():
    """All public rows alike."""
    variation = PublicVariation.of([np.zeros(20, np.int64)], [2], np.arange(20) % 4, 4, seed=0)
    noise = np.full((3, 2), 0.1)
    deviations = np.ones((3, 2))
    mean, variance = Smoother.fit(variation, deviations, np.full(3, 20.0), noise).posterior(deviations[0], noise[0])
    assert not mean.any()
    assert not variance.any()


def test_one_group_is_enough(variation):
    noise, deviation = np.full((1, 7), 0.01), np.array([[0.05, -0.05, 0, 0, 0.05, -0.05, 0]])
    smoother = Smoother.fit(variation, deviation, np.array([200.0]), noise)
    mean, variance = smoother.posterior(deviation[0], noise[0])
    assert 0.01 < mean[0] < 0.05
    assert (variance > 0).all()
    assert (variance <= 1e-4).all()


def test_more_noise_means_less_trust(variation):
    """Groups whose noise differs by a factor: the noisier keeps less of the same deviation, and is less sure."""
    noise = np.outer([1.0, 2.0, 8.0], np.full(7, 0.01))
    deviations = np.tile([0.05, -0.05, 0, 0, 0.05, -0.05, 0], (3, 1))
    smoother = Smoother.fit(variation, deviations, np.full(3, 200.0), noise)
    found = [smoother.posterior(deviations[0], each) for each in noise]
    assert np.abs(found[0][0]).sum() > np.abs(found[1][0]).sum() > np.abs(found[2][0]).sum()
    assert (found[0][1] < found[1][1]).all()
    assert (found[1][1] < found[2][1]).all()


# ---------------------------------------------------------------- totals


def test_totals_by_hand():
    """Deviations 30, -10, -20 from 100: squares 1400 over two degrees of freedom, less a noise variance of 100: 600."""
    noisy, variance = np.array([130.0, 90.0, 80.0]), np.full(3, 100.0)
    expected = 100 + 600 / 700 * np.array([30.0, -10.0, -20.0])
    np.testing.assert_allclose(smooth_totals(noisy, variance, np.full(3, 100.0)), expected, rtol=1e-9)


def test_several_tables_of_totals_are_smoothed_as_each_alone():
    generator = np.random.default_rng(0)
    scatter = np.array([1.0, 30.0, 300.0])[:, None]  # within the noise, about it, and far beyond
    noisy, variance = 1_000 + scatter * generator.normal(size=(3, 20)), np.full(20, 900.0)
    expected = noisy.mean(axis=1, keepdims=True) * np.ones(20)
    each = [smooth_totals(*table, wanted) for *table, wanted in zip(noisy, [variance] * 3, expected, strict=True)]
    assert np.array_equal(smooth_totals(noisy, variance, expected), each)


def test_a_total_with_more_noise_is_drawn_further():
    noisy, variance = np.array([130.0, 130.0, 40.0]), np.array([10.0, 1000.0, 10.0])
    found = smooth_totals(noisy, variance, np.full(3, 100.0))
    assert 100 < found[1] < found[0] < 130


def test_totals_that_scatter_less_than_their_noise_change_only_as_samples_do():
    """Nothing is left beyond noise: t^2 is the variance of two samples of the expected numbers, 100 and 140."""
    expected, noisy = np.array([50.0, 70.0]), np.array([53.0, 67.0])
    keeps = np.array([100 / 200, 140 / 240])
    np.testing.assert_allclose(smooth_totals(noisy, np.full(2, 100.0), expected), expected + keeps * [3.0, -3.0])


def test_exact_totals_stay():
    noisy = np.array([130.0, 90.0])
    assert np.array_equal(smooth_totals(noisy, np.zeros(2), np.full(2, 100.0)), noisy)
    assert np.array_equal(smooth_totals(noisy, np.zeros(2), noisy), noisy)


def test_numbers_of_rows_change_in_proportion():
    """One d for all, from the equation of Paule and Mandel: small groups are drawn by what small groups change by."""
    expected = np.array([100.0, 300.0, 1_000.0, 30_000.0])
    noisy, variance = expected * [1.4, 0.8, 1.1, 0.9], np.full(4, 50.0**2)
    found = smooth_totals(noisy, variance, expected)
    keeps = (found - expected) / (noisy - expected)
    beyond = keeps / (1 - keeps) * variance
    d = (beyond - 2 * expected) / expected**2
    np.testing.assert_allclose(d, d[0], rtol=1e-6)
    assert np.sum((noisy - expected) ** 2 / (beyond + variance)) == pytest.approx(3, rel=1e-6)
    assert keeps[0] < 0.3
    assert keeps[-1] > 0.99


def drawn_totals(generator, sizes, change, deviation):
    """Numbers of rows that changed by this rate since last year, what noise says of them, and what to expect."""
    groups = len(sizes)
    true = generator.poisson(sizes * np.exp(change * generator.standard_normal(groups)))
    noisy = true + np.rint(generator.laplace(0, deviation / 2**0.5, groups))
    public = np.maximum(generator.poisson(sizes), 1)
    return true, noisy, public * (noisy.sum() / public.sum())


def test_two_groups_are_hardly_worse_off_and_small_ones_among_large_ones_much_better():
    """With G in place of G - 1, two groups were 9 % worse off than with raw numbers; small groups gained little.

    The limits are three standard errors and more from what was measured: a false alarm is rarer than 1 in 1,000.
    """
    generator = np.random.default_rng(0)
    variance = np.full(2, 14.0**2)
    draws = [drawn_totals(generator, np.full(2, 1_500.0), 0.02, 14.0) for _ in range(2_000)]
    smoothed = np.mean([(smooth_totals(noisy, variance, expected) - true) ** 2 for true, noisy, expected in draws])
    assert smoothed < 1.03 * np.mean([(noisy - true) ** 2 for true, noisy, _ in draws])
    sizes = np.geomspace(100, 30_000, 20)
    small = []
    for _ in range(100):
        true, noisy, expected = drawn_totals(generator, sizes, 0.15, 141.0)
        found = smooth_totals(noisy, np.full(20, 141.0**2), expected)
        small.append((found - true)[:7] ** 2)
    assert np.sqrt(np.mean(small)) < 0.5 * 141


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


def test_what_remains_unknown_of_totals():
    """t^2 = 600 with the standard error sqrt(2 / 2) 700; the mean of three noisy numbers is uncertain, too."""
    noisy, variance = np.array([130.0, 90.0, 80.0]), np.full(3, 100.0)
    raised = 600 + 700
    left = raised * 100 / (raised + 100) + (100 / (raised + 100)) ** 2 * (raised + 100) / 3
    np.testing.assert_allclose(totals_variance(noisy, variance, np.full(3, 100.0)), left)
    assert totals_variance(np.array([50.0]), np.array([9.0]), np.array([50.0])) == 9.0
    assert not totals_variance(noisy, np.zeros(3), noisy).any()


def test_recurring_groups_and_new_ones_are_fitted_apart():
    """A single new group has nothing to be drawn towards, and tells nothing about how much the others changed."""
    known = np.array([130.0, 90.0, 80.0])
    counts, public = np.array([130.0, 90.0, 80.0, 5_000.0]), np.array([100.0, 100.0, 100.0, 0.0])
    answers = RawAnswers((), [], np.zeros((4, 0)), counts, np.full(4, 100.0))
    found, variance = estimated_totals(answers, public), estimated_totals_variance(answers, public)
    np.testing.assert_array_equal(found[:3], smooth_totals(known, np.full(3, 100.0), np.full(3, 100.0)))
    assert found[3] == 5_000
    assert variance[3] == 100
    assert (variance[:3] < 100).all()


# ---------------------------------------------------------------- what groups have in common


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_shared_part_is_found(share):
    """500 cells in 40 groups of different sizes, noise as large as the differences: to within 0.1."""
    generator = np.random.default_rng(15)
    rows = generator.uniform(100, 1000, 40)
    variance, noise = np.full((40, 500), 0.01), np.full((40, 500), 0.1)
    common, own = generator.normal(0, 0.1, (1, 500)), generator.normal(0, 0.1, (40, 500))
    away = np.sqrt(share) * common + np.sqrt(1 - share) * own + noise * generator.normal(size=noise.shape)
    assert shared_part(away, variance, noise, rows) == pytest.approx(share, abs=0.1)


def test_one_group_shares_nothing():
    assert shared_part(np.ones((1, 3)), np.ones((1, 3)), np.ones((1, 3)), np.ones(1)) == 0.0
    assert shared_part(np.ones((2, 3)), np.zeros((2, 3)), np.ones((2, 3)), np.ones(2)) == 0.0  # nothing to share


@pytest.mark.parametrize("cells", [1, 2, 7, 8, 9, 17])
def test_the_likelihood_of_a_and_w_is_that_of_the_formula(cells):
    generator = np.random.default_rng(cells)
    factor, deviations = generator.uniform(0.5, 2.0, 6), generator.normal(0, 30, (6, cells))
    root, scales = generator.normal(0, 30, (cells, max(cells - 1, 1))), np.array([1e-3, 1.0, 1e5])
    matrix = root @ root.T  # in one direction it is nothing, as where cells add up to one
    expected = np.zeros(3)
    for at, scale in enumerate(scales):
        for each, of_noise in zip(deviations, factor, strict=True):
            variance = scale * matrix + of_noise * np.eye(cells)
            expected[at] += np.linalg.slogdet(variance)[1] + each @ np.linalg.solve(variance, each)
    found = likely_spread._surprises(*_as_turned(matrix, factor, deviations), scales)
    assert found == pytest.approx(expected, rel=1e-6)


def _as_turned(matrix, factor, deviations):
    diagonal, beside, turned = likely_spread._turned(matrix, deviations, factor.min())
    return diagonal, beside, factor, turned


def _large_groups_with_little_noise(rows=1e7, groups=6, sizes=(2, 5, 9, 20, 12)):
    """The arguments of a fit to cells of parts, so that the matrices are nothing in as many directions as parts."""
    generator = np.random.default_rng(3)
    within = np.zeros((sum(sizes), sum(sizes)))
    sums_to_nothing = np.eye(sum(sizes))
    for last, size in zip(np.cumsum(sizes), sizes, strict=True):
        part, shares = slice(last - size, last), generator.dirichlet(np.full(size, 2.0))
        within[part, part] = np.diag(shares) - np.outer(shares, shares)
        sums_to_nothing[part, part] -= 1 / size
    spread = 0.01 * sums_to_nothing @ generator.normal(size=(len(within), 6))
    variation = PublicVariation(spread @ spread.T, within)
    root = np.full(len(within), np.sqrt(SMALLEST_VARIANCE) / rows)
    truth = generator.multivariate_normal(np.zeros(len(root)), variation.between + 1e-3 * within, groups)
    deviations = truth + generator.normal(size=truth.shape) * root
    return variation, deviations / root, generator.uniform(0.5, 2.0, groups), root, rows, 0.7


def _by_eigenvectors(matrix, factor, deviations, scales):
    values, vectors = np.linalg.eigh(matrix)
    variance = scales[:, None, None] * np.maximum(values, 0.0) + factor[:, None]
    return (np.log(variance) + (deviations @ vectors) ** 2 / variance).sum(axis=(1, 2))


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e2])
def test_the_likelihood_is_right_where_groups_are_large_and_noise_is_small(ratio):
    """The noise is 10^-20 of what groups differ by: less than what rounding leaves of a difference of such numbers."""
    variation, whitened, factor, root, rows, _ = _large_groups_with_little_noise()
    matrix = (variation.within / rows + ratio * variation.between) / np.outer(root, root)
    found = likely_spread._surprises(*_as_turned(matrix, factor, whitened), likely_spread.SCALES)
    expected = _by_eigenvectors(matrix, factor, whitened, likely_spread.SCALES)
    assert found == pytest.approx(expected, rel=1e-9)


def test_large_groups_with_little_noise_differ_as_they_do():
    """The groups were drawn with a = 1 and w = 10,000; with the rounding of differences, w was 8."""
    found = likely_spread.LikelySpread.of(*_large_groups_with_little_noise())
    assert np.isfinite([*found.numbers, found.evidence]).all()
    assert 5_000 < found.w < 20_000
    assert 5_000 < found.mean_w < 20_000


@pytest.mark.parametrize("share", [1e-2, 1e2])
def test_eigenvectors_are_found_where_rounding_would_matter(share):
    """Either way, the likelihood is the same to within what rounding may do."""
    variation, whitened, factor, root, rows, _ = _large_groups_with_little_noise(rows=1e3)
    matrix = variation.within / rows / np.outer(root, root)
    noise = share * likely_spread.SCALES[-1] * np.trace(matrix) * 2.0**-52 / likely_spread.ROUNDING
    factor = factor / factor.min() * noise
    diagonal, beside, turned = likely_spread._turned(matrix, whitened, noise)
    assert (not beside.any()) == (share < 1)
    found = likely_spread._surprises(diagonal, beside, factor, turned, likely_spread.SCALES)
    expected = _by_eigenvectors(matrix, factor, whitened, likely_spread.SCALES)
    assert found == pytest.approx(expected, rel=likely_spread.ROUNDING)


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_no_variance_is_too_large_or_too_small_for_its_logarithm(size):
    factor, deviations = np.full(2, size), np.zeros((2, 9))
    found = likely_spread._surprises(np.zeros(9), np.zeros(8), factor, deviations, np.array([1.0]))
    assert found == pytest.approx([18 * np.log(size)])
    found = likely_spread._surprises(np.full(9, size), np.zeros(8), np.ones(2), deviations, np.array([1.0]))
    assert found == pytest.approx([18 * np.log1p(size)], abs=1e-12)


@pytest.mark.parametrize(("cells", "vectors"), [(1, 3), (2, 3), (40, 3), (150, 90), (5, 0)])
def test_directions_are_turned_so_that_little_is_beside_the_diagonal(cells, vectors):
    generator = np.random.default_rng(cells)
    matrix = generator.normal(size=(cells, cells))
    matrix, given = matrix + matrix.T, generator.normal(size=(vectors, cells))
    diagonal, beside, turned = likely_spread._turned(matrix, given, 1.0)
    tridiagonal = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert np.linalg.eigvalsh(tridiagonal) == pytest.approx(np.linalg.eigvalsh(matrix), abs=1e-10 * cells)
    for power in (0, 1, 2):
        of_turned = turned @ np.linalg.matrix_power(tridiagonal, power) @ turned.T
        assert of_turned == pytest.approx(given @ np.linalg.matrix_power(matrix, power) @ given.T, abs=1e-8 * cells)


def test_rounding_makes_no_direction_vary_less_than_its_noise():
    """Eigenvalues that are slightly below zero count as zero."""
    factor, scales = np.ones(1), np.array([1.0])
    below, zero = (
        likely_spread._surprises(np.array([value, 1.0]), np.zeros(1), factor, np.ones((1, 2)), scales)
        for value in (-3.0, 0.0)
    )
    assert np.isfinite(below).all()
    assert np.array_equal(below, zero)
