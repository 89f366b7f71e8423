"""What `measure` enters in the ledger when the law of the noise is not the usual one: all that was promised."""

from fractions import Fraction

import pyarrow as pa
import pytest

from prade import Budget, BudgetError, Ledger, Level, Plan, Schema, Unit, Workload
from prade.core.errors import PradeError
from prade.measuring.run import measure
from prade.release.release import Release

SCHEMA = Schema.from_mbi({"X": 2, "Y": 3})
ROWS = pa.table({"X": [0, 1, 1], "Y": [2, 2, 0]})


def plan_of(budget, noise, columns=("X", "Y")):
    return Plan("people", SCHEMA, budget, Unit(1), [Level((), Workload.marginals(SCHEMA, columns), 0)], noise=noise)


@pytest.mark.parametrize("budget", [Budget.approx(1, "1e-9"), Budget.zcdp("1/8")], ids=str)
def test_a_plan_with_laplace_noise_costs_what_it_promises_and_adds_up_with_others(budget, tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", Unit(1), budget * Fraction(5, 2))
    release = measure(plan_of(budget, "laplace"), ROWS, tmp_path / "first", ledger)
    assert {question.law for question in release.plan.questions} == {"laplace"}
    assert Release.load(tmp_path / "first").plan == release.plan
    assert ledger.remaining("people") == budget * Fraction(3, 2)
    measure(plan_of(budget, None), ROWS, tmp_path / "second", ledger)
    assert [entry.cost for entry in ledger.entries("people")] == [budget, budget]
    for noise in ("laplace", None):  # a third one exceeds the cap, in both numbers
        with pytest.raises(BudgetError, match="was requested"):
            measure(plan_of(budget, noise, ("X",)), ROWS, tmp_path / "third", ledger)
    assert ledger.remaining("people") == budget / 2
    assert not (tmp_path / "third").exists()


def test_laplace_noise_within_approx_is_no_pure_release_for_the_ledger(tmp_path):
    """A cap in pure epsilon takes pure costs only: what was promised decides, not what the noise would allow."""
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("people", Unit(1), Budget.pure(1))
    with pytest.raises(PradeError, match="has a budget of kind 'pure'"):
        measure(plan_of(Budget.approx(1, "1e-9"), "laplace"), ROWS, tmp_path / "release", ledger)


def test_the_sampler_gets_the_law_and_the_scale_of_the_pure_budget(tmp_path, monkeypatch):
    asked = set()

    def no_noise(counts, law, scale, *, threads=None):
        asked.add((law, scale))
        return counts

    monkeypatch.setattr("prade.measuring.run.add_noise", no_noise)
    plan = plan_of(Budget.approx("1/2", "1e-9"), "laplace")
    measure(plan, ROWS, tmp_path / "release", tmp_path / "ledger", cap=plan.budget)
    assert asked == {("laplace", Fraction(4))}  # a row is in two tables, and epsilon is a half
