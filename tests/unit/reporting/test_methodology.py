"""The paragraph on how a release was made: true in all cases."""

import pytest

from prade import Budget, Level, Plan, PublishedTotals, Rule, Schema, Settings, Unit, Workload
from prade.reporting import statements as methodology
from prade.reporting.page_data import noun_of
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES

SCHEMA = Schema([STATE, PLACE, AGE, SEX])
STATES = {"STATE": [1, 2], "rows": [1700, 700]}


def plan(unit=None, invariants=()):
    levels = [Level("STATE", ()), Level("PLACE", Workload.all_marginals(SCHEMA, 1))]
    return Plan("survey", SCHEMA, Budget.pure(1), unit or Unit(1), levels, THREE_PLACES, invariants=invariants)


def test_what_was_read_besides_the_counts_is_said():
    nothing = "Nothing else was read from the private table."
    assert methodology.measured(plan()).endswith(nothing)
    assert methodology.measured(plan(invariants=[Rule("AGE < 18 -> SEX == 1")])).endswith(nothing)
    assert methodology.measured(plan(Unit(2, person_id="ID"))).endswith(
        "Besides, only this was read from the private table: the column 'ID', to limit the rows of each person."
    )
    exact = [PublishedTotals.of(STATES, "STATE", source="private")]
    assert methodology.measured(plan(Unit(2, person_id="ID"), exact)).endswith(
        "the rows of each person; and the numbers of rows of STATE, without noise."
    )
    assert methodology.measured(plan(invariants=exact)).endswith("table: the numbers of rows of STATE, without noise.")


def test_published_numbers_are_named_with_their_level():
    by_state, whole = PublishedTotals.of(STATES, "STATE"), PublishedTotals.of({"rows": [2400]}, [])
    assert methodology.invariants(plan(invariants=[by_state])) == [
        "Numbers of rows by STATE were set to published ones."
    ]
    alone = Plan(
        *("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))]), invariants=[whole]
    )
    assert methodology.invariants(alone) == ["Numbers of rows of the whole table were set to published ones."]


@pytest.mark.parametrize("settings", [Settings(), Settings(estimator="ide")])
def test_one_table_is_not_called_a_group(settings):
    assert methodology.estimation(settings, 2).startswith("Each group's weights were estimated level by level")
    assert methodology.estimation(settings, 1, grouped=False).startswith("Weights were estimated ")
    assert "group" not in methodology.estimation(settings, 1, grouped=False)
    assert "groups of the public table" in methodology.intervals()
    assert "group" not in methodology.intervals(grouped=False)


def test_rows_are_people_only_where_nobody_has_several():
    assert (noun_of(plan()), noun_of(plan(Unit(2, person_id="ID")))) == ("people", "rows")
