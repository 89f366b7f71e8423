"""Several budgets at once: the plans are those of single rehearsals, all that is shown of them is true, the elbow."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from prade import Budget, Task, Unit, explore
from prade.core.errors import PradeError
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.examples import census_like
from prade.tuning.closer_look import CloserLook
from prade.tuning.effort import Effort
from prade.tuning.explore import elbow
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import FRESH
from prade.tuning.tune import ANOTHER_BUDGET, Tuner

LEVELS = ["STATE", "PLACE"]
COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "RACE", "EMPLOY"]
BUDGETS = ["1/10000", 1, 20]
AMOUNTS = [Fraction(each) for each in ("1/10", "3/10", "1", "3", "10")]
ALL = [True] * 5


@pytest.fixture(scope="module")
def task(data):
    return Task("people", data.schema, 1, Unit(1), LEVELS, data.groups)


@pytest.fixture(scope="module")
def explored(task, data):
    return explore(task, data.public, BUDGETS, effort=1, execution=Execution(1))


def test_the_errors_are_those_of_separate_rehearsals_with_fresh_noise(explored, rehearsal):
    """The stand-ins, layouts and covariances of one rehearsal served all budgets: a rehearsal of its own agrees."""
    assert [plan.budget for plan in explored.plans] == [Budget.pure(each) for each in BUDGETS]
    starts = [each.trials[0].what == ANOTHER_BUDGET for each in explored.tuned]
    assert starts == [True, False, True]  # the middle budget is searched first, and its neighbours start from it
    public = np.mean([rehearsal.public_errors(k).mean() for k in (0, 1)])
    for each in explored.tuned:
        draws = [int(trial.what.split()[0]) for trial in each.trials if trial.what.endswith("draws of noise")]
        seeds = range(FRESH, FRESH + max([1, *draws]))
        errors = [
            rehearsal.errors(each.plan, each.settings, seed=seed, stand_in=k, fresh=True)
            for seed in seeds
            for k in (0, 1)
        ]
        assert np.mean(errors) == pytest.approx(each.expected.error, abs=1e-6)
        assert public == pytest.approx(each.expected.prior, abs=1e-6)


def test_a_tuner_that_served_another_budget_finds_what_a_new_one_finds(task, few):
    """From the simplest plan to the end of its search."""
    task, how = replace(task, schema=few.schema), {"execution": Execution(1), "most_draws": 1}
    used, new = (Tuner(task, few.public, **how) for _ in range(2))
    used.tune(Budget.pure(1), Effort.of(0))
    again, alone = (tuner.tune(Budget.pure(5), Effort.of(600)) for tuner in (used, new))
    assert (again.plan, again.settings, again.trials) == (alone.plan, alone.settings, alone.trials)


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ("1", "give a list, such as"),
        ([1, "1.0"], "given twice"),
        ([1, Budget.zcdp(1)], "cannot be compared"),
        ([1, 10**40], "promises nothing"),
    ],
)
def test_budgets_that_cannot_be_compared_are_refused_before_the_public_table_is_read(task, budgets, words):
    with pytest.raises(PradeError, match=words):
        explore(task, "no such file.parquet", budgets)


def test_the_last_levels_error_is_the_expected_one_and_a_budget_helps_at_every_level(explored):
    few, _, many = levels = [budget["by_level"] for budget in explored.to_dict()["budgets"]]
    for each, of_budget in zip(explored.tuned, levels, strict=True):
        expected = each.expected
        assert [level["level"] for level in of_budget] == ["STATE", "STATE+PLACE"]
        assert [of_budget[-1][name] for name in ("error", "prior")] == [expected.error, expected.prior]
    assert all(one["error"] > other["error"] for one, other in zip(few, many, strict=True))
    assert many[0]["error"] < many[1]["error"]  # sums of places are nearer to the truth than places


def test_places_that_chose_nothing_are_shown_where_there_are_enough(data):
    many = census_like(persons=4_000, places_per_state=20, seed=1)
    schema = many.schema.select(COLUMNS)
    groups = many.groups.select(LEVELS).group_by(LEVELS).aggregate([])
    rehearsal = Rehearsal.of(Public.of(schema, many.public.select(COLUMNS), LEVELS), groups, LEVELS, threads=1)
    closer = CloserLook(rehearsal, (("STATE",), ("STATE", "PLACE")))
    assert rehearsal.apart
    assert all(group in rehearsal.kept_back(stand_in) for stand_in, group in closer.places)


FALLING = [0.5, 0.4, 0.3, 0.2, 0.1]
UP_TO = "Up to rho = 10, the largest budget that was rehearsed, more budget still buys 10 % less error or more per "
UP_TO += "doubling."
NONE = "At none of these budgets is the result expected to be better than the public table alone."
LAST = "Only at rho = 10 is the result expected to be better than the public table."


@pytest.mark.parametrize(
    ("errors", "worthwhile", "number", "words"),
    [
        ([0.4, 0.3, 0.2, 0.12, 0.11], ALL, 3, "Beyond rho = 3, you pay twice the budget for at most 5 % less error."),
        ([0.4, 0.39, 0.38, 0.37], ALL[:4], 0, "Beyond rho = 0.1, you pay twice the budget for at most 2 % less error."),
        ([0.2, 0.2, 0.2, 0.19, 0.19], [False] * 3 + [True] * 2, 3, "Beyond rho = 3, the error stays."),
        (FALLING, [False] * 5, None, NONE),
        (FALLING, [False] * 4 + [True], None, LAST),
        ([0.4, 0.39, 0.38, 0.37, 0.05], ALL, None, UP_TO),  # flat, then falling
    ],
)  # fmt: skip
def test_the_elbow_is_where_more_budget_starts_to_buy_little(errors, worthwhile, number, words):
    assert elbow(AMOUNTS[: len(errors)], errors, worthwhile, "rho") == (number, words)
