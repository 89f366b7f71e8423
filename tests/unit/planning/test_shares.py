"""Uneven shares: exact, complete, and refused where they would not be the best."""

from fractions import Fraction

import pytest

from prade import Budget, Level, Plan, Schema, Unit, Workload
from prade.core.errors import PradeError, WorkloadError
from prade.planning.questions import weighted_asks

SCHEMA = Schema.from_mbi({"a": 2, "b": 20, "c": 2, "d": 5})


def test_shares_add_up_exactly_and_every_table_is_asked_once():
    workload = Workload.all_marginals(SCHEMA, 1) + Workload.marginals(SCHEMA, [("a", "b")])
    asks = weighted_asks(workload, "3/7")
    assert sum(ask.share for ask in asks) == Fraction(3, 7)
    assert [part for ask in asks for part in ask.workload] == sorted(workload, key=lambda part: part.n_cells)
    assert [len(ask.workload) for ask in asks] == [2, 1, 1, 1]


@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp(1)])
def test_noise_falls_with_the_root_of_the_number_of_cells(budget):
    """Laplace scales are proportional to 1 / sqrt(cells), Gaussian variances too; all asks cost the whole budget."""
    asks = weighted_asks(Workload.all_marginals(SCHEMA, 1))
    plan = Plan("x", SCHEMA, budget, Unit(1), [Level((), asks, total=0)])
    power = 1 if budget.law == "laplace" else 2
    products = [float(q.scale) ** power * q.parts[0].n_cells ** 0.5 for q in plan.questions]
    assert products == pytest.approx([products[0]] * 3, rel=1e-3)
    assert sum((q.share for q in plan.questions[1:]), plan.questions[0].share) == budget


def test_what_cannot_be_weighted_is_refused():
    with pytest.raises(WorkloadError, match="every row has a cell"):
        weighted_asks(Workload.queries(SCHEMA, ["b >= 3"]))
    with pytest.raises(WorkloadError, match="at least one part"):
        weighted_asks(Workload(SCHEMA, []))
    with pytest.raises(PradeError, match="0 or more"):
        weighted_asks(Workload.all_marginals(SCHEMA, 1), -1)
