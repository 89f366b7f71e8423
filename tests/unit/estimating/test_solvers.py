"""The choice of a solver, and Newton's method on tables that are mostly out of reach."""

from itertools import combinations

import numpy as np
import pytest

from prade import Schema, Workload
from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.estimating import solvers
from prade.estimating.base import check
from prade.estimating.estimate import Status
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP
from prade.estimating.solvers import LBFGSB, Tolerance
from prade.release.release import Measurement

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
    # a square makes the dual smooth
    assert MAP(n0=100, loss="squared").fit(prior, noisy, 1000).report.settings["solver"] == "QuasiNewton"
    exact = [*noisy[1:], Measurement(noisy[0].part, noisy[0].counts, 0.0)]
    assert MAP(n0=100, loss="squared").fit(prior, exact, 1000).report.settings["solver"] == "BlockAscent"


@pytest.mark.parametrize("limit", [None, 0.5])
def test_sweeps_and_quasi_newton_steps_find_what_newton_finds(limit, monkeypatch):
    prior = diagonal()
    noisy = answers(prior, "gaussian")
    how = {"n0": 100, "tolerance": 1e-9, "limit": limit}
    newton = MAP(**how).fit(prior, noisy, 1000)
    monkeypatch.setattr(solvers, "MOST_CELLS_FOR_NEWTON", 0)
    found = MAP(**how).fit(prior, noisy, 1000)
    assert found.report.settings["solver"] == "QuasiNewton"
    assert found.status == newton.status == Status.CONVERGED
    assert found.report.objective == pytest.approx(newton.report.objective, rel=1e-8)
    np.testing.assert_allclose(found.weights, newton.weights, atol=1e-6)


def test_a_step_ends_where_the_certificate_is_good_enough():
    prior = diagonal()
    layout = Layout(prior, PAIRS)
    noisy = answers(prior, "gaussian")
    dual = MAP(n0=100).problem(check(prior, noisy, 1000, layout), 100)
    wanted = Tolerance(relative=1e-2)
    start = solvers.state_at(dual, dual.start(), 1.0)
    early, late = (LBFGSB(good_enough=each).step(dual, start) for each in (wanted, None))
    assert wanted.met(early.certificate)
    assert early.passes < 0.5 * late.passes
    assert late.certificate.gap < early.certificate.gap


def test_trust_multiplies_the_automatic_n0():
    prior = diagonal()
    noisy = answers(prior, "gaussian")
    once, thrice = (MAP(trust=trust).fit(prior, noisy, 1000).report for trust in (1.0, 3.0))
    assert thrice.settings["n0"] == pytest.approx(3 * once.settings["n0"])
    assert thrice.kl < once.kl
    assert MAP(n0=7, trust=3.0).fit(prior, noisy, 1000).report.settings["n0"] == 7
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(EstimationError, match="trust is"):
            MAP(trust=wrong)


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
