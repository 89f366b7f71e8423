"""The choice of a solver, and Newton's method on tables that are mostly out of reach."""

from itertools import combinations

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.prior import Prior
from prade.estimating import solvers
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP
from prade.release.measurement import Measurement

SCHEMA = Schema.from_mbi({"a": 60, "b": 60, "c": 4})
PAIRS = Workload.marginals(SCHEMA, [("a", "b"), ("b", "c")])


def diagonal(rows=3000, seed=0):
    """b is a, or next to it: of 3,600 cells of the pair less than 180 can be reached."""
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 60, rows)
    b = np.clip(a + generator.integers(-1, 2, rows), 0, 59)
    return Prior(SCHEMA, {"a": a, "b": b, "c": generator.integers(0, 4, rows)}, generator.exponential(size=rows))


def answers(prior, law, seed=1):
    generator = np.random.default_rng(seed)
    found = []
    for part, share in zip(PAIRS, PAIRS.answer(prior), strict=True):
        told = 1000 * share * generator.gamma(5, 0.2, len(share)) + generator.normal(0, 3, len(share))
        found.append(Measurement(part, told, 3.0, law=law))
    return found


def test_newton_is_chosen_by_the_cells_that_can_be_reached(monkeypatch):
    prior = diagonal()
    layout = Layout(prior, PAIRS)
    reachable = int(layout.reachable.sum())
    assert reachable < 500 < solvers.MOST_CELLS_FOR_NEWTON < layout.n_cells
    noisy = answers(prior, "laplace")
    assert MAP(n0=100).fit(prior, noisy, 1000).report.settings["solver"] == "Newton"
    monkeypatch.setattr(solvers, "MOST_CELLS_FOR_NEWTON", reachable - 1)
    assert MAP(n0=100).fit(prior, noisy, 1000).report.settings["solver"] == "BlockAscent"


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_newton_and_block_ascent_agree_where_most_cells_are_out_of_reach(law):
    prior = diagonal()
    noisy = answers(prior, law)
    newton, block = (
        MAP(n0=100, solver=solver, tolerance=1e-11, max_steps=2000).fit(prior, noisy, 1000)
        for solver in ("newton", "block")
    )
    assert newton.report.status.value == block.report.status.value == "converged"
    assert newton.report.objective == pytest.approx(block.report.objective, rel=1e-8)
    assert np.allclose(newton.weights, block.weights, atol=1e-6)


def test_the_curvature_of_reachable_cells_is_a_part_of_the_whole():
    layout = Layout(diagonal(), PAIRS)
    within = np.flatnonzero(layout.reachable)
    narrow = layout.bundles.only(within)
    assert narrow.n_cells == len(within) < layout.n_cells
    tilted = layout.evaluate(np.zeros(layout.n_cells))
    whole = layout.bundles.covariance(tilted, layout.rows, offset=0.5)
    fewer = solvers.replace(tilted, masses=tilted.masses[within])
    assert np.allclose(narrow.covariance(fewer, layout.rows, offset=0.5), whole[np.ix_(within, within)], atol=1e-15)
    sampled = narrow.covariance(fewer, 500, offset=0.5)
    assert np.allclose(sampled, layout.bundles.covariance(tilted, 500, offset=0.5)[np.ix_(within, within)], atol=1e-15)
    assert not np.any(np.delete(whole, within, axis=0))


def test_block_ascent_climbs_through_hundreds_of_bundles():
    """Each visit takes most rows down by much, all of them together beyond the smallest number."""
    generator = np.random.default_rng(1)
    values, rows = np.arange(20), 400
    schema = Schema.from_mbi({f"c{k}": 20 for k in range(20)})

    def table(tilt):
        share = np.exp(tilt * values)
        return {name: generator.choice(values, rows, p=share / share.sum()) for name in schema.coded}

    prior, other = (Prior.from_table(schema, table(tilt)) for tilt in (-0.2, 0.2))
    pairs = Workload.marginals(schema, list(combinations(schema.coded, 2)))
    assert len(Layout(prior, pairs).bundles) == 190
    wanted = [
        Measurement(part, rows * share, 1.0, "gaussian") for part, share in zip(pairs, pairs.answer(other), strict=True)
    ]
    found = MAP(n0=10, solver="block", limit=5.0, max_steps=3).fit(prior, wanted, rows)
    dual = [each.objective - each.gap for each in found.report.trace]
    assert len(dual) == 4
    assert (np.diff(dual) > 0).all()
