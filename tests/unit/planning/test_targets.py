"""Targets: how they are written, what is refused and with which words, and that nothing that is measured changes."""

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

from prade import Budget, Column, Level, Plan, PradeError, Schema, Target, Task, Unit, Workload
from prade.planning.settings import Expected, TargetError
from prade.planning.task import checked_targets, targets_of_file, wanted_of

SCHEMA = Schema(
    [
        Column("STATE", "group", values=(17, 39)),
        Column("AGE", "numeric", edges=(18, 65), integer=True, min=0, max=120),
        Column("SEX", "categorical", values=("m", "f")),
        Column("marital status", "categorical", values=(1, 2)),
        Column("BORN", "numeric", edges=(datetime.date(1950, 1, 1),)),
    ]
)
LEVELS = (("STATE",), ("STATE", "PUMA"))
GROUPS = {"STATE": [17, 17, 39], "PUMA": [1, 2, 1]}
MANY = Schema.from_mbi({"a": 1000, "b": 1000})


def task(*targets, **changed):
    return Task("survey", SCHEMA, 1, Unit(1), ["STATE", "PUMA"], GROUPS, targets=targets, **changed)


def plan_for(made, **more):
    return Plan.of(made, [Level("STATE"), Level("PUMA", Workload.all_marginals(SCHEMA, 1))], **more)


def test_tables_are_columns_joined_by_an_x_or_lists_of_columns():
    written = Target(["AGE x SEX", "SEX", "`marital status` x AGE", ["AGE", "SEX"]])
    assert written.tables == (("AGE", "SEX"), ("SEX",), ("marital status", "AGE"), ("AGE", "SEX"))


@pytest.mark.parametrize("by", [["STATE", "PUMA"], ["STATE", "STATE+PUMA"], [["STATE"], ["PUMA", "STATE"]]])
def test_a_level_is_named_by_its_own_columns_or_by_all_of_them(by):
    assert task(Target(["AGE"], by=by)).targets[0].by == LEVELS


def test_without_levels_a_target_is_at_the_last_one_and_all_is_the_whole_table():
    assert task(Target(["AGE"]), Target(["SEX"], by="all")).targets[0].by == (("STATE", "PUMA"),)
    assert task(Target(["AGE"]), Target(["SEX"], by="all")).targets[1].by == ((),)
    assert Task("survey", SCHEMA, 1, targets=[Target(["AGE"])]).targets[0].by == ((),)


def test_a_targets_weight_is_shared_by_all_that_it_names_at_all_its_levels():
    first = Target(
        ["AGE x SEX", "SEX"], ["AGE >= 65"], ["median(AGE) where SEX == 'f'"], by=["STATE", "PUMA"], weight=3
    )
    wanted = wanted_of(task(first, Target(["AGE"])).targets, SCHEMA)
    assert [(each.kind, each.words, each.level) for each in wanted[::2]] == [
        ("table", "AGE x SEX", "STATE"),
        ("table", "SEX", "STATE"),
        ("predicate", "AGE >= 65", "STATE"),
        ("quantile", "quantile(AGE, 0.5) where SEX == 'f'", "STATE"),
        ("table", "AGE", "STATE+PUMA"),
    ]
    assert [each.weight for each in wanted] == [3 / 4 / 8] * 8 + [1 / 4]


FILE = """\
version = 1

[[target]]
tables = ["AGE x SEX"]
by = ["STATE", "PUMA"]
weight = 3

[[target]]
predicates = ["AGE >= 65"]
statistics = ["mean(AGE)"]
by = "all"
weight = "1/3"
"""


def test_a_file_holds_what_python_says(tmp_path):
    path = tmp_path / "targets.toml"
    path.write_text(FILE)
    said = Target(["AGE x SEX"], by=["STATE", "PUMA"], weight=3), Target((), ["AGE >= 65"], ["mean(AGE)"], "all", "1/3")
    assert targets_of_file(path) == said
    assert Task("survey", SCHEMA, 1, Unit(1), ["STATE", "PUMA"], GROUPS, targets=path) == task(*said)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (lambda: Target(), "names nothing; give tables, predicates or statistics"),
        (lambda: Target(["AGE"], weight=0), "weight is 0; give a number above 0"),
        (lambda: Target("AGE"), r"Expected `array`, got `str` - at `\$\.tables`; write a target as in"),
        (lambda: task(Target(["AGE"]), Target(["AGEP x SEX"])), r"target 2: .*AGEP.*did you mean 'AGE'"),
        (lambda: task(Target(["STATE x SEX"])), "STATE is a group column; name its level in `by` instead"),
        (lambda: task(Target(["AGE x AGE"])), "contain a name twice"),
        (lambda: task(Target(["AGE"], by="COUNTY")), r"by names COUNTY, which .* levels are STATE, STATE\+PUMA, all"),
        (lambda: task(Target(["AGE"], by=["PUMA", "STATE+PUMA"])), "names a level twice"),
        (lambda: task(Target((), ["AGE >= 60"])), "target 1: .*60"),
        (lambda: task(Target((), (), ["mean(SEX)"])), "SEX is not a numeric column; these are: AGE"),
        (lambda: task(Target((), (), ["mean(BORN)"])), "BORN contains dates"),
        (lambda: task(Target((), (), ["sum(AGE)"])), r"'sum\(AGE\)' is not a mean or a quantile"),
        (lambda: checked_targets([Target(["a x b"])], MANY, [()]), "has 1,000,000 cells; a target may have at most"),
        (lambda: task("AGE"), r"a target is a Target\(...\), got 'AGE'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_target_is_said_with_what_to_write(target, words):
    with pytest.raises(PradeError, match=words):
        target()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version = 1", "version = 2", r"value 2 - at `\$\.version`"),
        ("version = 1", "", "missing required field `version`"),
        ("version = 1", "version = 1\nlevels = 2", "unknown field `levels`"),
        ("tables =", "table =", "target 1: Object contains unknown field `table`; write a target as in"),
        ("weight = 3", "weight = 0", "target 1: weight is 0"),
        ("[[target]]\ntables", "[target]\ntables", "not valid TOML"),
    ],
)
def test_a_file_that_was_written_wrongly_is_answered_by_what_to_write(tmp_path, old, new, words):
    path = tmp_path / "targets.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(PradeError, match=words):
        targets_of_file(path)


def test_a_plan_keeps_its_targets_and_their_expected_errors():
    errors = TargetError("AGE x SEX", "STATE", 0.01, 0.002, 0.04), TargetError("AGE", "all", 0.0, 0.0, 0.1)
    made = task(Target(["AGE x SEX"], by="STATE", weight="5/2"), Target((), ["AGE >= 65"], ["mean(AGE)"], by="all"))
    plan = plan_for(made, expected=Expected(0.2, 0.1, 0.3, "Measure.", targets=errors))
    found = Plan.from_toml(plan.to_toml())
    assert found.task == made
    assert found.expected == plan.expected
    assert found.to_toml() == plan.to_toml()
    assert "target AGE x SEX by STATE: expected error 0.0100 ± 0.0020 (public table alone: 0.0400)" in plan.describe()
    everybody_first = Plan.of(made, [Level(()), Level("STATE"), Level("PUMA", Workload.all_marginals(SCHEMA, 1))])
    assert everybody_first.task == made


def test_targets_change_neither_what_is_measured_nor_the_file_of_a_plan_without_any():
    with_targets, without = plan_for(task(Target(["AGE"]))), plan_for(task(), expected=Expected(0.2, 0.1, 0.3))
    assert with_targets == without
    assert with_targets.questions == without.questions
    assert "target" not in without.to_toml()
    assert task(Target(["AGE"])).differs_from(task()) == "list of targets"
    other = task(Target(["AGE"], weight=Fraction(1, 3)))
    assert replace(other, budget=Budget.pure(2)).targets == other.targets
