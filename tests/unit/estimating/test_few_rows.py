"""Groups with the same prior share their start and a sample of rows, on which climbs begin; no optimum changes."""

import pickle

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.layout import FEWEST, ONE_IN, Layout
from prade.estimating.posterior_mode import MAP
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 12, "b": 30, "c": 300, "d": 900})
WORKLOAD = Workload.all_marginals(SCHEMA, 1)
ROWS = ONE_IN * FEWEST + 30_000
RARE = 29  # a code of b that a single row has


def prior(rows=ROWS, seed=0):
    generator = np.random.default_rng(seed)
    hidden = generator.random(rows)
    codes = {
        name: np.clip((size * (hidden + generator.normal(0, 0.3, rows))).astype(int), 0, size - 1)
        for name, size in zip(SCHEMA.coded, SCHEMA.shape(SCHEMA.coded), strict=True)
    }
    codes["b"] = np.minimum(codes["b"], RARE - 1)
    codes["b"][17] = RARE
    return Prior(SCHEMA, codes, generator.gamma(2.0, size=rows))


def measured(layout, seed, scale=20.0, total=3000):
    """Noisy counts of a table that differs from the prior in all columns."""
    generator = np.random.default_rng(seed)
    away = layout.evaluate(generator.normal(0, 0.5, layout.n_cells)).masses
    counts = total * away + generator.normal(0, max(scale, 1e-9), layout.n_cells) * (scale > 0)
    return [Measurement(part, counts[layout.part(k)], scale, "gaussian") for k, part in enumerate(layout.workload)]


@pytest.fixture(scope="module")
def large():
    start = prior()
    return start, Layout(start, WORKLOAD)


def test_the_few_rows_have_every_cell_and_are_shared(large):
    first, layout = large
    few = layout.few
    assert layout.rows / (2 * ONE_IN) < few.rows <= layout.rows / ONE_IN
    assert np.array_equal(few.reachable, layout.reachable)
    assert layout.reachable[layout.part(1)][RARE]
    np.testing.assert_allclose(few.start.masses, layout.start.masses, atol=0.03)
    assert layout.reweighted(first.with_weights(first.weights.copy())).few is few
    assert layout.reweighted(first.with_weights(np.random.default_rng(5).random(ROWS))).few is not few
    assert few.few is None


@pytest.mark.parametrize("limit", [None, 0.3])
def test_the_optimum_is_that_of_other_solvers(large, limit):
    start, layout = large
    answers = measured(layout, 1)
    how = {"n0": 500, "tolerance": 1e-6, "limit": limit}
    newton, block = (MAP(**how, solver=solver).fit(start, answers, 3000, layout=layout) for solver in ("auto", "block"))
    assert newton.report.trace[1].passes % 1 != 0, "it did not begin with few rows"
    assert newton.status.value == block.status.value == "converged"
    assert newton.report.gap <= 1e-6 * newton.report.objective
    assert newton.report.objective == pytest.approx(block.report.objective, rel=3e-6)


def test_answers_that_must_hold_exactly_are_met_on_all_rows(large):
    """Few rows may lack a way to meet them: the climb is on all rows from its first step on."""
    start, layout = large
    noisy, sharp = measured(layout, 1), measured(layout, 1, scale=0.0)
    estimate = MAP(n0=500).fit(start, [sharp[0], *noisy[1:]], 3000, layout=layout)
    assert all(row.passes % 1 == 0 for row in estimate.report.trace), "it began with few rows"
    assert estimate.report.status.value == "converged"
    np.testing.assert_allclose(estimate.project(["a"]) * 3000, sharp[0].counts, atol=1e-5)


def test_estimates_are_those_of_groups_on_their_own_to_the_last_bit():
    one, two = prior(300), prior(300).with_weights(np.random.default_rng(1).random(300))
    shared = Layout(one, WORKLOAD)
    for seed, mine in enumerate((one, two, one, one, two)):
        alone = Layout(mine, WORKLOAD)
        answers = measured(alone, seed)
        first, other = (MAP(n0=50.0).fit(mine, answers, 500, layout=each) for each in (alone, shared.reweighted(mine)))
        assert np.array_equal(first.multipliers, other.multipliers)
        assert first.report.trace == other.report.trace


def test_a_layout_travels_to_another_process():
    layout = Layout(prior(300), WORKLOAD)
    size, masses = len(pickle.dumps(layout)), layout.start.masses
    again = pickle.loads(pickle.dumps(layout))
    assert np.array_equal(again.start.masses, masses)
    assert len(pickle.dumps(layout)) <= size + 100
