"""A climb that begins with few of the rows ends where any other ends, by the certificate on all rows."""

import pickle

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating import layout as few_rows
from prade.estimating.layout import ONE_IN, Layout
from prade.estimating.posterior_mode import MAP
from prade.estimating.solvers import climb
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 12, "b": 30, "c": 7, "d": 9})
WORKLOAD = Workload.all_marginals(SCHEMA, 1)
ROWS = 6000
RARE = 29  # a code of b that a single row has


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(few_rows, "FEWEST", 256)


def prior(seed=0):
    generator = np.random.default_rng(seed)
    hidden = generator.random(ROWS)
    codes = {
        name: np.clip((size * (hidden + generator.normal(0, 0.3, ROWS))).astype(int), 0, size - 1)
        for name, size in zip(SCHEMA.coded, SCHEMA.shape(SCHEMA.coded), strict=True)
    }
    codes["b"] = np.minimum(codes["b"], RARE - 1)
    codes["b"][17] = RARE
    return Prior(SCHEMA, codes, generator.gamma(2.0, size=ROWS))


def measured(layout, seed, scale=20.0, total=3000):
    """Noisy counts of a table that differs from the prior in all columns."""
    generator = np.random.default_rng(seed)
    away = layout.evaluate(generator.normal(0, 0.5, layout.n_cells)).masses
    counts = total * away + generator.normal(0, max(scale, 1e-9), layout.n_cells) * (scale > 0)
    return [
        Measurement(part, counts[layout.part(k)], scale, "gaussian") for k, part in enumerate(layout.workload)
    ], total


def test_the_few_rows_have_every_cell_and_are_shared():
    first = prior()
    layout = Layout(first, WORKLOAD)
    few = layout.few
    assert layout.rows / (2 * ONE_IN) < few.rows <= layout.rows / ONE_IN
    assert np.array_equal(few.reachable, layout.reachable)
    assert layout.reachable[layout.part(1)][RARE]
    np.testing.assert_allclose(few.prior_masses, layout.prior_masses, atol=0.03)
    same = layout.reweighted(first.with_weights(first.weights.copy()))
    assert same.few is few
    other = layout.reweighted(first.with_weights(np.random.default_rng(5).random(ROWS)))
    assert other.few is not few
    assert few.few is None
    assert len(pickle.dumps(layout)) < 2 * len(pickle.dumps(Layout(first, WORKLOAD)))


@pytest.mark.parametrize("limit", [None, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_other_solvers(seed, limit, monkeypatch):
    start = prior(seed)
    layout = Layout(start, WORKLOAD)
    answers, total = measured(layout, seed)
    begun = []
    monkeypatch.setattr("prade.estimating.solvers.climb", lambda *some, **more: begun.append(1) or climb(*some, **more))
    found = MAP(n0=500, tolerance=1e-6, limit=limit).fit(start, answers, total, layout=layout).report
    assert begun, "it did not begin with few rows"
    other = MAP(n0=500, tolerance=1e-6, limit=limit, solver="block").fit(start, answers, total, layout=layout).report
    assert found.status.value == other.status.value == "converged"
    assert found.gap <= 1e-6 * found.objective
    assert found.objective == pytest.approx(other.objective, rel=3e-6)


@pytest.mark.parametrize("exact", [0, 1])
def test_answers_that_must_hold_exactly_are_met_on_all_rows(exact, monkeypatch):
    """Few rows may lack a way to meet them: the climb is on all rows from its first step on."""
    start = prior()
    layout = Layout(start, WORKLOAD)
    noisy, total = measured(layout, 1)
    sharp, _ = measured(layout, 1, scale=0.0)
    answers = [sharp[k] if k == exact else noisy[k] for k in range(len(noisy))]
    monkeypatch.setattr(Layout, "few", property(lambda _: pytest.fail("it began with few rows")))
    made = MAP(n0=500).fit(start, answers, total, layout=layout)
    assert made.report.status.value == "converged"
    np.testing.assert_allclose(made.project([SCHEMA.coded[exact]]) * total, sharp[exact].counts, atol=1e-5)
