"""Weighted shares against an independent optimiser: the sum of all counts' errors, taken from the plan's own noise."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from prade import Ask, Budget, Level, Plan, Schema, Unit, Workload
from prade.planning.questions import shared_asks

CASES = {
    "one-way tables": ({"a": 2, "b": 20, "c": 7, "d": 3, "e": 100}, 1),
    "two-way tables": ({"a": 2, "b": 9, "c": 4, "d": 25}, 2),
    "equal sizes": ({"a": 4, "b": 4, "c": 4}, 1),
}


def least(cells):
    """min sum n_k t_k subject to t_k s_k >= 1 and sum s <= 1, as a second-order cone programme."""
    k = len(cells)
    blocks = [np.concatenate([np.ones(k), np.zeros(k)])[None]]
    sides, cones = [1.0], [clarabel.NonnegativeConeT(1)]
    for s, t in zip(np.eye(2 * k)[:k], np.eye(2 * k)[k:], strict=True):
        blocks.append(-np.array([s + t, s - t, np.zeros(2 * k)]))  # (s + t, s - t, 2) in the cone says s t >= 1
        sides += [0.0, 0.0, 2.0]
        cones.append(clarabel.SecondOrderConeT(3))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cost = np.concatenate([np.zeros(k), cells])
    constraints = sparse.csc_matrix(np.concatenate(blocks))
    nothing = sparse.csc_matrix((2 * k, 2 * k))
    solution = clarabel.DefaultSolver(nothing, cost, constraints, np.array(sides), cones, settings).solve()
    assert str(solution.status) == "Solved"
    return solution.obj_val


def summed(schema, asks, budget):
    """Over all counts: Laplace scales, or Gaussian variances."""
    plan = Plan("x", schema, budget, Unit(1), [Level((), asks, total=0)])
    power = 1 if budget.law == "laplace" else 2
    return sum(float(q.scale) ** power * part.n_cells for q in plan.questions for part in q.parts)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("budget", [Budget.pure(3), Budget.zcdp("1/4")])
def test_no_shares_give_a_smaller_sum(name, budget):
    sizes, k = CASES[name]
    schema = Schema.from_mbi(sizes)
    workload = Workload.all_marginals(schema, k)
    optimum = least([float(part.n_cells) for part in workload])
    unit = 1 / 3 if budget.law == "laplace" else 2.0  # scale 1 / epsilon, variance 1 / (2 rho)
    found = summed(schema, shared_asks(workload), budget)
    assert found == pytest.approx(unit * optimum, rel=1e-5)
    equal = summed(schema, [Ask(workload)], budget)
    assert equal > 1.05 * found if name != "equal sizes" else equal == pytest.approx(found)
