"""How groups differ: covariances cell by cell, and the fit against a likelihood of multivariate normals.

The reference is restricted maximum likelihood by its definition: the likelihood of contrasts between groups, which do
not contain the mean, evaluated by scipy and maximised without gradients.
"""

import math

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from prade import Schema, Workload
from prade.estimating.levels.random_effects import (
    UNSURE,
    UNSURE_COLUMNS,
    CellModel,
    Deviations,
    Scales,
    columns_of,
    fitted_scales,
)
from prade.estimating.levels.variation import PublicVariation

SCHEMA = Schema.from_mbi({"A": 3, "B": 2})
PARTS = Workload.marginals(SCHEMA, ["A", ("A", "B"), "B"])
START = Scales(0.3, 0.2, 0.01, (0.0, 0.0))


def spread(generator, cells, rank):
    root = generator.normal(size=(cells, rank))
    return root @ root.T / rank


def model_of(generator, columns, between=1e-3):
    cells = len(columns)
    within = spread(generator, cells, cells) * 0.2
    return CellModel.of(PublicVariation(between * spread(generator, cells, 4), within), columns)


def deviations_of(raw, noise, rate, *, shares=None, rows=0.0):
    """All groups alike, with equal parts of their parent's rows: raw shares less their mean."""
    every, shares = np.ones(len(raw)), np.zeros(raw.shape[1]) if shares is None else shares
    own, of_rows = np.outer(every, noise**2), (np.outer(every, shares), rows * every)
    return Deviations(raw - raw.mean(axis=0), own, rate * every, (1 - 1 / len(raw)) * every, *of_rows)


def test_the_covariance_cell_by_cell():
    """S_ij = sqrt(d_i d_j) (a B_ij + b B'_ij + (k + r) C_ij), with d of a pair's cell the mean of two in logarithms.

    B' is B for cells of one column or of one pair, 0 between columns, and B / sqrt(2) for a cell of a pair and one of
    its columns.
    """
    columns = columns_of(PARTS)
    assert columns.tolist() == [[1, 0]] * 3 + [[0.5, 0.5]] * 6 + [[0, 1]] * 2
    model = model_of(np.random.default_rng(0), columns)
    scales = Scales(0.7, 0.2, 0.05, (math.log(4.0), math.log(0.25)))
    kind = ["A"] * 3 + ["AB"] * 6 + ["B"] * 2
    d = {"A": 4.0, "B": 0.25, "AB": 1.0}
    alone = {("A", "B"): 0.0, ("A", "AB"): math.sqrt(0.5), ("AB", "B"): math.sqrt(0.5)}
    found = model.covariance(scales, 0.01)
    for i, one in enumerate(kind):
        for j, other in enumerate(kind):
            shared = 1.0 if one == other else alone[min(one, other), max(one, other)]
            mixed = (0.7 + 0.2 * shared) * model.between[i, j] + 0.06 * model.within[i, j]
            assert found[i, j] == pytest.approx(math.sqrt(d[one] * d[other]) * mixed, rel=1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    assert scales.typical == pytest.approx(math.sqrt(4.0 * 0.25))
    some = np.array([0, 4, 10])
    np.testing.assert_allclose(model.of_cells(some).covariance(scales, 0.01), found[np.ix_(some, some)], rtol=1e-12)


@pytest.mark.parametrize("rows", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_the_scales_are_those_of_the_largest_density(seed, rows):
    """Logarithms to within 0.03, and the density has next to no slope there."""
    generator = np.random.default_rng(seed)
    model, groups, rate = model_of(generator, columns_of(PARTS)), 30, 1 / 400
    noise, shares = generator.uniform(0.01, 0.03, 11), generator.dirichlet(np.ones(11))
    true = model.covariance(Scales(1.0, 0.5, 0.002, (1.0, -0.5)), rate)
    known = np.diag(noise**2) + rows * np.outer(shares, shares)
    raw = generator.multivariate_normal(np.zeros(11), true + known, groups, method="svd")
    found = fitted_scales(model, deviations_of(raw, noise, rate, shares=shares, rows=rows), START)

    contrasts = helmert(groups) @ raw  # of groups: as many as degrees of freedom, each with the variance of one group
    at, start = (np.array([*np.log([each.a, each.b, each.k]), *each.columns]) for each in (found, START))

    def surprise(logarithms):
        """Less the logarithm of the posterior density of a, b, k and D."""
        s = model.covariance(Scales(*np.exp(logarithms[:3]), tuple(logarithms[3:])), rate)
        fit = multivariate_normal(np.zeros(11), s + known).logpdf(contrasts).sum()
        return np.sum(((logarithms - start) / ([UNSURE] * 3 + [UNSURE_COLUMNS] * 2)) ** 2) / 2 - fit

    best = minimize(surprise, at + 0.3, method="Nelder-Mead", options={"maxiter": 6000, "xatol": 1e-5, "fatol": 1e-7})
    assert surprise(at) <= best.fun + 1e-3
    np.testing.assert_allclose(at, best.x, atol=0.03)
    slope, before = (np.abs(approx_fprime(point, surprise, 1e-5)).max() for point in (at, at + 0.3))
    assert slope < 0.03 * before


def test_scales_are_found_again():
    """Four columns of four cells, 400 groups of different sizes, noise as large as the differences.

    The variances of cells are found to within 25 % (the standard error of one cell's own is 10 %), their mean to 5 %.
    """
    generator, cells = np.random.default_rng(5), 16
    model = model_of(generator, np.repeat(np.eye(4), 4, axis=0))
    rates, true = 1 / np.geomspace(100, 2000, 400), Scales(1.2, 0.4, 0.003, (1.5, 0.0, -1.0, 0.5))
    noise = 0.03 * np.sqrt(rates / rates.mean())
    u = [generator.multivariate_normal(np.zeros(cells), model.covariance(true, rate), method="svd") for rate in rates]
    away = np.array(u) + noise[:, None] * generator.normal(size=(400, cells))
    variances, nothing = np.repeat(noise[:, None] ** 2, cells, axis=1), np.zeros((400, cells))
    deviations = Deviations(away, variances, rates, np.ones(400), nothing, np.zeros(400))
    found = fitted_scales(model, deviations, Scales.before(0.3, 4))
    ratios = np.diag(model.covariance(found, 0.0)) / np.diag(model.covariance(true, 0.0))
    assert np.abs(np.log(ratios)).max() < math.log(1.25)
    assert abs(np.log(ratios).mean()) < 0.05


def test_one_column_that_drifted_widens_no_other():
    """Its own deviations are five times as large. Others are thought at most 1.4 times too wide, it at least half.

    With one scale for all columns, the others would be thought more than 1.4 times too wide.
    """
    generator = np.random.default_rng(8)
    model = model_of(generator, np.repeat(np.eye(8), 4, axis=0))
    true = model.covariance(Scales(0.5, 0.1, 1e-3, (math.log(25.0),) + (0.0,) * 7), 1e-3)
    noise = np.full(32, 0.01)
    raw = generator.multivariate_normal(np.zeros(32), true + np.diag(noise**2), 40, method="svd")

    def too_wide(model):
        scales = fitted_scales(model, deviations_of(raw, noise, 1e-3), Scales.before(0.3, model.columns.shape[1]))
        return np.sqrt(np.diag(model.covariance(scales, 1e-3)) / np.diag(true))

    found = too_wide(model)
    assert 1 / 1.4 < found[4:].min() < found[4:].max() < 1.4
    assert 0.5 < found[:4].min() <= found[:4].max() < 1.4
    assert too_wide(CellModel(model.between, model.within, np.ones((32, 1))))[4:].max() > 1.4


def test_only_children_tell_nothing():
    model = model_of(np.random.default_rng(1), columns_of(PARTS))
    assert fitted_scales(model, deviations_of(np.ones((1, 11)), np.full(11, 0.1), 0.01), START) == START
