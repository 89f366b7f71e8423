"""The spread of public groups by hand, and what is made of cells in which nothing varies."""

import numpy as np
import pytest

from prade.estimating.levels.posterior import Observed, posterior
from prade.estimating.levels.random_effects import CellModel, Deviations, Scales, fitted_scales
from prade.estimating.levels.variation import VariationOfCells


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
    model = CellModel.of(variation_of(cells, wider, group, 40), np.repeat(np.eye(2), wider, axis=0))
    noise, nothing = np.full((6, 7), 0.02), np.zeros((6, 7))
    away = 0.05 * np.random.default_rng(12).normal(size=(6, 7))
    deviations = Deviations(away, noise**2, np.full(6, 1 / 300), np.ones(6), nothing, np.zeros(6))
    scales = fitted_scales(model, deviations, Scales.before(0.3, 2))
    seen, answers = np.ones(7, np.bool_), Observed(away[0], noise[0] ** 2, np.ones(7, np.bool_))
    found = posterior(model.covariance(scales, 0.0), model.within / 300, seen, nothing[0], answers, 0.0)
    assert abs(found.mean[never]) < 1e-12
    assert found.variance[never] < 1e-12
    assert (np.delete(found.variance, never) > 1e-6).all()
