"""Variances of errors against simulations of the model that they are derived from, and of measured cells against S.

A simulation draws the differences of all cells from their covariance and the noise of measured ones, and answers by
explicit matrices, 40,000 times: variances are then known to 0.7 %, and have to agree to within 8 %.
"""

import math

import numpy as np
import pytest

from prade import Budget, Column, Level, PublishedTotals, Schema, Workload
from prade.data.public.public import Public
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.error_bars import _Kind, errors
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.random_effects import CellModel, Scales
from prade.estimating.levels.variation import FurtherVariation
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.releases import counted
from worlds.survey import PLACE

DRAWS, MEASURED, ASKED = 40_000, 5, 3
COLUMNS = np.repeat(np.eye(2), [3, 2], axis=0)
AT, AFTER = slice(MEASURED), slice(MEASURED, None)


def spread(generator, cells, rank):
    root = generator.normal(size=(cells, rank))
    return root @ root.T / rank


def gains(model, scales, own, typical, noise, n0, told, within):
    """G of a group: what the answers to the cells after the measured ones make of the measured ones."""
    s = own * model.covariance(scales, typical)
    if not n0:
        worth = 0.0 if n0 == 0.0 else np.trace(model.within) / np.trace(s)
        smoothed, left = np.eye(MEASURED), np.diag(noise**2)
    else:
        smoothed = s @ np.linalg.inv(s + np.diag(noise**2 / told))
        left, worth = np.diag(np.diag(s - smoothed @ s)), n0
    return within[AFTER, AT] @ np.linalg.inv(model.within + worth * left) @ smoothed


@pytest.mark.parametrize("n0", [10.0, None, 0.0])
@pytest.mark.parametrize("groups", [3, 20])
@pytest.mark.parametrize("columns", ["alike", "of different scales"])
def test_the_variance_of_errors_is_that_of_simulated_ones(n0, groups, columns):
    """20 groups have as many levels of noise, between which variances are interpolated.

    Where columns are alike, cells are simulated from S itself. Otherwise from what is said of cells that were not
    measured: they follow the measured ones by a regression, and what it leaves has the typical scale.
    """
    generator = np.random.default_rng(groups)
    between, within = 1e-3 * spread(generator, 8, 3), spread(generator, 8, 8)
    scales = Scales(0.6, 0.0, 0.002, (math.log(2.0),) * 2)
    if columns != "alike":
        scales = Scales(0.6, 0.3, 0.002, (math.log(3.0), math.log(0.5)))
        k = within[AFTER, AT] @ np.linalg.inv(within[AT, AT])
        alone = 1e-3 * spread(generator, ASKED, ASKED)
        between[AFTER, AT] = k @ between[AT, AT]
        between[AT, AFTER], between[AFTER, AFTER] = between[AFTER, AT].T, k @ between[AT, AT] @ k.T + alone
    model = CellModel(between[AT, AT], within[AT, AT], COLUMNS)
    rows = np.geomspace(200, 800, groups)
    noise = np.outer(1 / rows, generator.uniform(5, 20, MEASURED))
    own = 1.5 ** np.sin(np.arange(groups))  # scales of their own
    kind = _Kind(model, scales, 1.3, 1 / rows, noise, own, np.ones(MEASURED, np.bool_), n0)
    of_groups, of_rows = np.diag(between)[AFTER], np.diag(within)[AFTER]
    further = FurtherVariation(between[AFTER, AT], within[AFTER, AT], of_groups, of_groups, of_rows)
    variance, left, prior = kind.errors(further, further.within @ np.linalg.inv(model.within), of_rows, of_groups)
    typical = 1 / np.exp(np.mean(np.log(rows * own)))
    for g in range(groups):
        gain = gains(model, scales, own[g], typical, noise[g], n0, 1.3, within)
        if columns == "alike":
            true = 2.0 * (own[g] * (0.6 * between + 0.002 * within) + within / rows[g])
            u = generator.multivariate_normal(np.zeros(8), true, DRAWS)
        else:
            measured = own[g] * model.covariance(scales, 1 / (own[g] * rows[g]))
            of_row = within[AFTER, AFTER] - k @ within[AT, AFTER]
            rest = scales.typical * (own[g] * ((0.6 + 0.3) * alone + 0.002 * of_row) + of_row / rows[g])
            u = generator.multivariate_normal(np.zeros(MEASURED), measured, DRAWS)
            u = np.column_stack([u, u @ k.T + generator.multivariate_normal(np.zeros(ASKED), rest, DRAWS)])
            true = np.block([[measured, measured @ k.T], [k @ measured, k @ measured @ k.T + rest]])
        heard = u[:, AT] + noise[g] * generator.normal(size=(DRAWS, MEASURED))
        np.testing.assert_allclose(variance[g], np.var(u[:, AFTER] - heard @ gain.T, axis=0), rtol=0.08)
        np.testing.assert_allclose(left[g], np.var(u[:, AFTER] - u[:, AT] @ gain.T, axis=0), rtol=0.08)
        np.testing.assert_allclose(prior[g], np.diag(true)[AFTER], rtol=1e-9)


NAMES = [f"p{number:02}" for number in range(30)]
SCHEMA = Schema([PLACE, Column("A", "categorical", values=[0, 1, 2, 3]), Column("B", "categorical", values=[0, 1, 2])])


def table(seed, names):
    """Places of 500 rows that differ at random."""
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(20 * np.random.default_rng(1).dirichlet(np.full(12, 3.0)), len(names))
    cells = np.concatenate([generator.choice(12, 500, p=share) for share in shares])
    return {"PLACE": np.repeat(names, 500), "A": cells // 3, "B": cells % 3}


def test_the_variance_of_a_measured_cell_is_the_posterior_s():
    """Where the prior is worth next to nothing against answers, and numbers of rows are published, within 3 %.

    The posterior's is for each group's own rate and noise, the other for those of a typical group.
    """
    private = table(3, NAMES)
    known = PublishedTotals.of({"PLACE": NAMES, "rows": [500] * 30}, "PLACE")
    plan = plan_of(
        SCHEMA.with_invariants([known]),
        Level("PLACE", Workload.marginals(SCHEMA, ["A", "B"])),
        groups={"PLACE": NAMES},
        budget=Budget.zcdp("1/50"),
    )
    release = counted(plan, private, np.random.default_rng(4))
    public, settings = Public.of(SCHEMA, table(2, [name.upper() for name in NAMES]), ["PLACE"]), Settings(n0=1e-4)
    last = Descent(release, public, settings).last
    estimates = Estimates.of(release, public, settings)
    asked = [(public.prior.codes[name].astype(np.int64), size) for name, size in (("A", 4), ("B", 3))]
    found = errors(estimates, 1, asked)
    np.testing.assert_allclose(found.variance, last.variance, rtol=0.03)
    assert (found.left < found.variance).all()
    assert (found.variance < found.prior).all()
