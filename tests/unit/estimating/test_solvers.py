"""The choice of a solver, how far the prior is trusted, and a climb through many tables."""

from itertools import combinations

import numpy as np
import pytest

from prade import Schema, Workload
from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.estimating import solvers
from prade.estimating.base import check
from prade.estimating.layout import Layout
from prade.estimating.posterior_mode import MAP
from prade.estimating.solvers import BlockAscent, Newton, QuasiNewton, Tolerance, best_solver
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 60, "b": 60, "c": 4})
PAIRS = Workload.marginals(SCHEMA, [("a", "b"), ("b", "c")])


def diagonal(rows=3000):
    """b is a, or next to it: of 3,600 cells of the pair less than 180 can be reached."""
    generator = np.random.default_rng(0)
    a = generator.integers(0, 60, rows)
    b = np.clip(a + generator.integers(-1, 2, rows), 0, 59)
    return Prior(SCHEMA, {"a": a, "b": b, "c": generator.integers(0, 4, rows)}, generator.exponential(size=rows))


PRIOR = diagonal()
LAYOUT = Layout(PRIOR, PAIRS)


def answers(law):
    generator = np.random.default_rng(1)
    return [
        Measurement(part, 1000 * share * generator.gamma(5, 0.2, len(share)) + generator.normal(0, 3, len(share)), 3.0)
        if law == "laplace"
        else Measurement(part, 1000 * share + generator.normal(0, 3, len(share)), 3.0, law)
        for part, share in zip(PAIRS, PAIRS.answer(PRIOR), strict=True)
    ]


def dual_of(measured):
    return MAP().problem(check(PRIOR, measured, 1000, LAYOUT), 100)


def test_newton_is_chosen_by_the_cells_that_can_be_reached():
    reachable = int(LAYOUT.reachable.sum())
    assert reachable < 500 < solvers.MOST_CELLS_FOR_NEWTON < LAYOUT.n_cells
    noisy, smooth = answers("laplace"), answers("gaussian")
    exact = [Measurement(smooth[0].part, smooth[0].counts, 0.0, "gaussian"), smooth[1]]
    assert isinstance(best_solver(dual_of(noisy), Tolerance()), Newton)
    for measured, kind in ((noisy, BlockAscent), (smooth, QuasiNewton), (exact, BlockAscent)):
        assert isinstance(best_solver(dual_of(measured), Tolerance(), reachable - 1), kind)


def test_trust_multiplies_the_automatic_n0():
    noisy = answers("gaussian")
    once, thrice = (MAP(trust=trust).fit(PRIOR, noisy, 1000).report for trust in (1.0, 3.0))
    assert thrice.settings["n0"] == pytest.approx(3 * once.settings["n0"])
    assert thrice.kl < once.kl
    assert MAP(n0=7, trust=3.0).fit(PRIOR, noisy, 1000).report.settings["n0"] == 7
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(EstimationError, match="trust is"):
            MAP(trust=wrong)


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
    layout = Layout(prior, pairs)
    assert len(layout.bundles) == 190
    wanted = [Measurement(part, rows * y, 1.0, "gaussian") for part, y in zip(pairs, pairs.answer(other), strict=True)]
    estimate = MAP(n0=10, solver="block", limit=5.0, max_steps=3).fit(prior, wanted, rows, layout=layout)
    dual = [each.objective - each.gap for each in estimate.report.trace]
    assert len(dual) == 4
    assert (np.diff(dual) > 0).all()
