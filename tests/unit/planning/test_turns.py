"""Tables that take turns: which ones, when it pays, and that a chain of releases asks every table again."""

import numpy as np
import pytest

from prade import Budget, Column, Schema, Task, Unit, Workload
from prade.data.public import Public
from prade.planning import turns
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.turns import in_turns, noise_per_change, tables_in_turn

NAMES = ("A", "B", "C", "D", "E")
SCHEMA = Schema([Column("PLACE", "group"), *(Column(name, "categorical", values=("no", "yes")) for name in NAMES)])
PLACES = ["north", "south"]


def plan_of(budget):
    return Plan.simplest(Task("people", SCHEMA, budget, Unit(1), levels=["PLACE"], groups={"PLACE": PLACES}))


@pytest.fixture(scope="module")
def public():
    """Two places of 100 rows; A is yes for 20 and 60 of them, all other columns for half of them."""
    table = {"PLACE": np.repeat(PLACES, 100), "A": ["yes"] * 20 + ["no"] * 80 + ["yes"] * 60 + ["no"] * 40}
    table |= {name: ["yes", "no"] * 100 for name in NAMES[1:]}
    return Public.of(SCHEMA, table, by=["PLACE"])


def names_of(plan):
    return [part.name for ask in plan.levels[-1].asks for part in ask.workload]


def test_noise_and_change_are_those_worked_out_by_hand(public):
    plan = plan_of(Budget.pure(1))
    (question,) = (each for each in plan.questions if not each.is_total)
    noise = 10 * question.variance / 100**2  # ten cells
    # A: shares of 0.2 and 0.6 differ from their mean by 0.2 in either cell; a sample of 100 rows varies by p (1 - p)
    change = 2 * (Settings.change * 0.2**2 + 0.4 * 0.6 / 100) + 8 * 0.25 / 100
    assert noise_per_change(plan, public, 100.0) == pytest.approx(noise / change)


def test_where_noise_is_large_half_of_the_tables_get_all_of_the_budget(public):
    whole = plan_of(Budget.pure("1/4"))
    half = in_turns(whole, public, NAMES, 100.0)
    assert names_of(half) == ["A", "C", "E"]
    assert half.budget == whole.budget
    assert half.levels[-1].by == whole.levels[-1].by
    noise = {plan.hash: max(each.variance for each in plan.questions if not each.is_total) for plan in (whole, half)}
    assert noise[half.hash] < 0.5 * noise[whole.hash]


def test_where_noise_is_small_every_table_is_asked_every_year(public):
    plan = plan_of(Budget.pure(40))
    assert noise_per_change(plan, public, 100.0) < turns.ENOUGH_NOISE
    assert in_turns(plan, public, NAMES, 100.0) is plan


def test_gaussian_noise_gains_nothing_from_turns(public):
    plan = plan_of(Budget.zcdp("1/1000"))
    assert noise_per_change(plan, public, 100.0) > turns.ENOUGH_NOISE
    assert in_turns(plan, public, NAMES, 100.0) is plan


def test_every_table_is_asked_again_within_two_years():
    tables = Workload.all_marginals(SCHEMA, 1).parts
    asked = [part.name for part in tables]
    for _ in range(4):
        now = [part.name for part in tables_in_turn(tables, asked)]
        after = [part.name for part in tables_in_turn(tables, now)]
        assert sorted([*now, *after]) == list(NAMES)
        asked = now


def test_of_many_tables_that_wait_half_are_asked():
    tables = Workload.all_marginals(SCHEMA, 1).parts
    assert [part.name for part in tables_in_turn(tables, ["A"])] == ["B", "D"]
