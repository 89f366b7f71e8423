"""Tuning: what it chooses is as good as it says, it keeps to its effort, and it says when not to measure at all."""

from itertools import combinations, takewhile

import pytest

from prade import Task
from prade.core.execution import Execution
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.tuning.candidates import laws_within
from prade.tuning.effort import Effort
from prade.tuning.tune import ONE_TABLE, OWN_ALONE, SAME_GROUPS, Tuner, tune

LEVELS = ["STATE", "PLACE"]


def tuned(task, data, *, effort=600, seconds=None, progress=None, **options):
    """The outcome with one draw of noise: more of them take longer, and go the same way."""
    tuner = Tuner(task, data.public, execution=Execution(1), most_draws=1, **options)
    return tuner.tune(task.budget, Effort.of(effort, seconds, progress, searches=len(laws_within(task.budget))))


def tuned_for(data, epsilon, **options):
    return tuned(Task("people", data.schema, epsilon, Unit(1), LEVELS, data.groups), data, **options)


def test_a_large_budget_is_worth_spending_and_the_plans_file_says_so(few, tmp_path):
    found = tuned_for(few, 5)
    assert found.finished
    assert found.worthwhile
    assert found.expected.error < found.expected.prior - found.expected.spread
    assert found.trials[-1].best < found.trials[0].error
    assert found.plan.advice.startswith("Measure: expected error")
    assert SAME_GROUPS in found.plan.advice
    assert ONE_TABLE not in found.plan.advice
    found.plan.save(tmp_path / "plan.toml")
    assert f"# {found.expected}" in (tmp_path / "plan.toml").read_text()
    kept = Plan.load(tmp_path / "plan.toml")
    assert (kept, kept.settings, kept.expected) == (found.plan, found.settings, found.expected)


def test_a_hopeless_budget_is_said_to_be_so(few):
    found = tuned_for(few, "1/10000", effort=5)
    assert not found.worthwhile
    assert [question.is_total for question in found.plan.questions] == [True]  # the prior is kept as it is
    assert found.settings == Settings(own=OWN_ALONE)
    assert found.plan.advice.startswith("Do not touch the private data at this budget: expected error")


def test_where_numbers_of_rows_need_everything_nothing_else_is_asked(data):
    found = tuned_for(data, "1/10000", effort=0, bias=20)
    assert found.trials[0].what == "numbers of rows alone"
    assert [level.asks for level in found.plan.levels] == [(), ()]
    assert found.plan.levels[-1].total == 1


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"effort": 0}, "Not every candidate was tried with effort 0: more effort"),
        ({"seconds": 0}, "The time was up before every candidate was tried: more seconds"),
    ],
)
def test_no_effort_or_time_is_the_simplest_plan(few, limit, why):
    told = []
    found = tuned_for(few, 5, progress=lambda *news: told.append(news), **limit)
    assert not found.finished
    assert found.time_was_up == ("seconds" in limit)
    assert len(found.trials) == 1
    assert why in found.plan.advice
    assert told[-1] == ("rehearsing", 1, 1)  # the bar ends at 100 %


@pytest.mark.parametrize("budget", [Budget.zcdp(1), Budget.approx(1, "1e-6")], ids=str)
def test_everybody_as_one_group_and_other_budgets(few, budget):
    """The schema's group columns tell public groups apart; without any, nothing says how far private rows differ."""
    found = tune(Task("x", few.schema, budget, Unit(2)), few.public, effort=0)
    assert len(found.plan.levels) == 1
    assert "other public groups stood in" in found.plan.advice
    found = tune(Task("x", few.schema.select(few.schema.coded), budget, Unit(2)), few.public, effort=0)
    assert "not rehearsed" in found.plan.advice
    assert ONE_TABLE in found.plan.advice


@pytest.mark.parametrize(("epsilon", "columns", "left"), [(2, 2, 0.9), (20, 4, 0.1)], ids=["pairs", "all columns"])
def test_a_large_table_is_asked_all_tables_of_several_columns_and_they_pay(data, epsilon, columns, left):
    """One table of some thousand rows at a large budget: what is smoothed cannot be worth as much.

    At the larger budget almost no noise falls on the 960 cells of the table of all columns, and rows are added for the
    cells that no public row is in.
    """
    found = tuned(Task("people", data.schema, epsilon), data, effort=10)
    (level,) = found.plan.levels
    asked = [part.columns for ask in level.asks for part in ask.workload]
    assert sorted(asked) == sorted(combinations(data.schema.coded, columns))
    assert not found.settings.smooth
    before = takewhile(lambda trial: "raw answers" not in trial.what, found.trials)
    assert found.expected.error < left * min(trial.error for trial in before)
    if columns == 4:
        assert found.settings.extra > 0
        assert found.expected.error < 0.001 < found.expected.prior / 100
