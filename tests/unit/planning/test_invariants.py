"""Rules read against a schema, totals compared with a list of groups, and plans that carry both."""

import pytest

from prade import Budget, Column, Level, Plan, PradeError, PublishedTotals, Rule, Schema, Task, Unit, Workload
from prade.data.public.public import Public
from prade.planning.invariants import ParsedRule, breaches, not_protected, obeying, possible_cells, published_totals
from prade.queries.parts import Marginal, Predicate
from prade.queries.query import parse
from prade.release.release import note_of

SCHEMA = Schema(
    [
        Column("STATE", "group", values=[17, 39]),
        Column("AGE", "numeric", edges=[15, 65], missing=True),
        Column("MAR", "categorical", values=[1, 2, 5], missing=True),
        Column("JOB", "categorical", values=["a -> b", "it's", "none"]),
    ]
)
YOUNG = Rule("AGE < 15 -> MAR == 5")
GROUPS = {"STATE": [17, 17, 39], "PUMA": [1, 2, 1]}
STATES = PublishedTotals.of({"STATE": [39, 17], "rows": [800, 1200]}, "STATE")
PUMAS = PublishedTotals.of({"STATE": [17, 17, 39], "PUMA": [2, 1, 1], "rows": [200, 1000, 800]}, ["STATE", "PUMA"])
ROWS = {
    "STATE": [17, 17, 39, 39, 39],
    "AGE": [3, 3, 70, None, 3],
    "MAR": [5, 1, 1, 1, None],
    "JOB": ["none"] * 5,
    "W": [1.0, 2.0, 3.0, 4.0, 10.0],
}


def public_rows():
    return Public.of(SCHEMA, ROWS, ["STATE"], weight="W")


def task_with(*invariants, schema=SCHEMA, levels=("STATE", "PUMA"), groups=GROUPS):
    return Task("survey", schema, 1, levels=list(levels), groups=groups, invariants=invariants)


def plan_with(*invariants, schema=SCHEMA):
    ages = Workload.marginals(SCHEMA, ["AGE"])
    levels = [Level("STATE"), Level("PUMA", ages)]
    return Plan("survey", schema, Budget.pure(1), Unit(1), levels, GROUPS, invariants=invariants)


@pytest.mark.parametrize(
    ("rule", "obeyed"),
    [
        (YOUNG, [1, 0, 1, 1, 0]),  # a missing age is not below 15, a missing status is not 5
        (Rule("not (AGE < 15 and MAR == 1)"), [1, 0, 1, 1, 1]),
    ],
)
def test_which_rows_obey_a_rule(rule, obeyed):
    assert ParsedRule.of(rule, SCHEMA).obeyed(public_rows().prior.codes).tolist() == obeyed


@pytest.mark.parametrize(
    "text", ["JOB == 'a -> b' -> MAR == 5", 'MAR == 5 -> JOB != "a -> b"', "JOB == 'it\\'s' -> MAR == 5"]
)
def test_an_arrow_in_a_text_is_not_the_rules_arrow(text):
    rule = ParsedRule.of(Rule(text), SCHEMA)
    assert rule.when is not None
    assert set(rule.columns) == {"JOB", "MAR"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AGE < 14 -> MAR == 5", "the rule AGE < 14 -> MAR == 5: AGE < 14 is not at the edge of a bin.*15"),
        ("AGE < 15 -> MAR == 5 -> JOB == 'none'", "at most one arrow"),
        ("AGE < 15 -> ", "expected the text of a query"),
        ("STATE == 17 -> MAR == 5", "'STATE' is a group column"),
    ],
)
@pytest.mark.parametrize("make", [task_with, plan_with])
def test_a_rule_that_the_schema_cannot_decide_is_refused(make, text, words):
    with pytest.raises(PradeError, match=words):
        make(Rule(text))


def test_rows_that_break_a_rule_are_left_out_with_groups_that_have_no_other_rows():
    only_adults = obeying(public_rows(), [Rule("AGE >= 65")])
    assert len(only_adults) == 1
    assert only_adults.groups.values == ((39,),)
    assert only_adults.group.tolist() == [0]
    public = public_rows()
    assert obeying(public, [STATES]) is public
    assert obeying(public, [Rule("AGE is missing or AGE < 65 or AGE >= 65")]) is public


def test_breaches_count_rows_and_weigh_them():
    (young,) = breaches(public_rows(), [YOUNG, STATES])
    assert (young.rows, young.share) == (2, pytest.approx(12 / 20))
    assert str(young) == "2 public rows (60.00% of the weight) will be left out: against the rule AGE < 15 -> MAR == 5"
    with pytest.raises(PradeError, match=r"no public row obeys AGE < 15; AGE < 15 -> MAR == 2: correct the rules"):
        breaches(public_rows(), [Rule("AGE < 15"), Rule("AGE < 15 -> MAR == 2")])
    (obeyed,) = breaches(public_rows(), [Rule("MAR == 5 -> AGE < 15")])
    assert str(obeyed) == "all public rows obey the rule MAR == 5 -> AGE < 15"


def test_a_rule_decides_which_cells_are_possible():
    table = possible_cells(Marginal.of(SCHEMA, ["MAR", "AGE"]), [YOUNG], SCHEMA).reshape(4, 4)
    assert table[:, 0].tolist() == [False, False, True, False]  # below 15: only the status 5
    assert table[:, 1:].all()
    assert possible_cells(Marginal.of(SCHEMA, "JOB"), [YOUNG], SCHEMA).all()

    def possible(text):
        return bool(possible_cells(Predicate(parse(text, SCHEMA)), [YOUNG], SCHEMA)[0])

    assert not possible("MAR == 1 and AGE < 15 and JOB == 'none'")
    assert not possible("MAR is missing and AGE < 15")
    assert possible("MAR == 1 and AGE < 65")
    assert possible("JOB == 'none'")


def test_totals_come_in_the_order_of_the_levels_groups_whose_names_are_compared_as_those_of_private_rows_are():
    totals = {level: rows.tolist() for level, rows in plan_with(STATES, PUMAS).published.items()}
    assert totals == {0: [1200.0, 800.0], 1: [1000.0, 200.0, 800.0]}
    odd = PublishedTotals.of({"STATE": ["17", "039"], "rows": [1, 2]}, "STATE")
    assert plan_with(odd).published[0].tolist() == [1.0, 2.0]


def test_a_column_that_identifies_the_groups_is_enough():
    groups = {"STATE": [17, 17, 39], "PUMA": ["17-1", "17-2", "39-1"]}
    totals = PublishedTotals.of({"PUMA": ["39-1", "17-1", "17-2"], "rows": [1, 2, 3]}, "PUMA")
    task = task_with(totals, groups=groups)
    assert task.invariants == (totals,)
    levels = [task.groups.level(by) for by in task.levels]
    assert published_totals(task.invariants, task.groups, levels)[1].tolist() == [2.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("totals", "level", "words"),
    [
        ({"STATE": [17, 39, 55], "rows": [1, 2, 3]}, "STATE", "STATE 55 is not in the list of groups"),
        ({"STATE": [17], "rows": [1]}, "STATE", "STATE 39 has no number; give every group of the level one number"),
        ({"COUNTY": [1], "rows": [1]}, "COUNTY", "the list of groups has no column 'COUNTY'"),
        ({"PUMA": [1, 2], "rows": [1, 2]}, "PUMA", "these are not the groups of any level; the levels are"),
    ],
)
@pytest.mark.parametrize("make", [task_with, plan_with])
def test_totals_that_do_not_fit_the_groups_are_refused(make, totals, level, words):
    with pytest.raises(PradeError, match=words):
        make(PublishedTotals.of(totals, level))


def test_totals_must_add_up():
    wrong = PublishedTotals.of({"STATE": [17, 39], "rows": [1300, 800]}, "STATE")
    words = (
        r"STATE 17 has 1,300 rows, but the published numbers of its STATE\+PUMA add up to 1,200; correct one of them"
    )
    with pytest.raises(PradeError, match=words):
        task_with(PUMAS, wrong)
    with pytest.raises(PradeError, match="the numbers of rows of STATE: stated twice"):
        task_with(STATES, wrong)
    listed = task_with().groups
    with pytest.raises(PradeError, match=words):
        published_totals([PUMAS, wrong], listed)  # as `check` does, which knows no levels
    assert len(published_totals([PUMAS, STATES], listed)) == 2
    crossing = PublishedTotals.of({"PUMA": [1, 2], "rows": [5, 6]}, "PUMA")
    assert len(published_totals([STATES, crossing], listed)) == 2


def test_the_number_of_all_rows_can_be_published_though_the_task_does_not_list_everybody():
    everybody = PublishedTotals.of({"rows": [3000]}, [])
    plan = Plan.simplest(task_with(everybody))
    assert plan.levels[0].by == ()
    assert plan.published[0].tolist() == [3000]
    assert Plan.from_toml(plan.to_toml()).hash == plan.hash


def test_a_task_takes_the_schemas_invariants_and_more_each_once():
    task = task_with(STATES, YOUNG, schema=SCHEMA.with_invariants([YOUNG]))
    assert task.invariants == (YOUNG, STATES)
    assert task.schema.invariants == ()
    assert task.differs_from(task_with(STATES)) == "list of invariants"
    assert task.differs_from(task_with(YOUNG, STATES)) is None


def test_a_plan_carries_the_invariants_and_its_hash_covers_them(tmp_path):
    plan = plan_with(YOUNG, STATES, Rule("MAR == 1 -> AGE >= 15", "private"))
    plan.save(tmp_path / "plan.toml")
    loaded = Plan.load(tmp_path / "plan.toml")
    assert loaded == plan
    assert loaded.invariants == plan.invariants
    assert loaded.to_toml() == plan.to_toml()
    assert loaded.task.invariants == plan.invariants
    assert Plan.of(loaded.task, loaded.levels) == plan
    texts = plan.to_toml()
    assert '[[invariant]]\nrule = "AGE < 15 -> MAR == 5"\n' in texts
    assert "[invariant.totals]\nSTATE = [39, 17]\nrows = [800, 1200]\n" in texts
    others = [
        plan_with(),
        plan_with(YOUNG, STATES),
        plan_with(YOUNG, STATES, Rule("MAR == 1 -> AGE >= 15")),
        plan_with(YOUNG, PublishedTotals.of({"STATE": [39, 17], "rows": [801, 1200]}, "STATE"), *plan.invariants[2:]),
    ]
    assert len({plan.hash, *(each.hash for each in others)}) == 5
    assert plan_with(STATES, schema=SCHEMA.with_invariants([YOUNG])) == others[1]


def test_what_comes_from_the_private_table_is_named_as_not_protected():
    private = Rule("MAR == 1 -> AGE >= 15", "private")
    counts = PublishedTotals.of({"STATE": [17, 39], "rows": [1, 2]}, "STATE", source="private")
    plan = plan_with(YOUNG, private, counts)
    said = (
        "Not protected, because taken from the private table and published exactly: the rule MAR == 1 -> AGE >= 15; "
        "the numbers of rows of STATE."
    )
    assert not_protected(plan.invariants) == said
    assert plan.promise() == f"{plan.unit.promise()} {said}"
    assert note_of(plan).endswith(said)
    assert "met exactly: the rule AGE < 15 -> MAR == 5\n" in plan.describe()
    assert "met exactly: the numbers of rows of STATE (from the private table: not protected)" in plan.describe()
    public = plan_with(YOUNG, STATES)
    assert not_protected(public.invariants) is None
    assert "rotected" not in note_of(public)
