"""Several budgets at once: the plans are those of single rehearsals, all that is shown of them is true, the elbow."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from prade import Budget, Plan, Schema, Task, Unit, explore
from prade.core.errors import PradeError
from prade.core.execution import Execution
from prade.data.declare.column import Column
from prade.data.public.joint import Coded
from prade.data.public.public import Public
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import Estimates
from prade.examples import census_like
from prade.reporting.html import packed
from prade.scoring.score import joint_errors
from prade.tuning.candidates import Choice
from prade.tuning.closer_look import CloserLook
from prade.tuning.effort import Effort
from prade.tuning.explore import budgets_of, elbow, listed
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import FRESH
from prade.tuning.tune import ANOTHER_BUDGET, Tuner
from worlds import rehearsals

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


@pytest.fixture(scope="module")
def rehearsal(data):
    return Rehearsal.of(Public.of(data.schema, data.public, LEVELS), data.groups, LEVELS, threads=1)


# ---------------------------------------------------------------------- sharing


def test_the_errors_are_those_of_separate_rehearsals_with_fresh_noise(explored, rehearsal):
    """The stand-ins, layouts and covariances of one rehearsal served all budgets: a rehearsal of its own agrees."""
    assert [plan.budget for plan in explored.plans] == [Budget.pure(each) for each in BUDGETS]
    starts = [each.tuned.trials[0].what == ANOTHER_BUDGET for each in explored.rehearsed]
    assert starts == [True, False, True]  # the middle budget is searched first, and its neighbours start from it
    public = np.mean([rehearsal.public_errors(k).mean() for k in (0, 1)])
    for each in (each.tuned for each in explored.rehearsed):
        draws = [int(trial.what.split()[0]) for trial in each.trials if trial.what.endswith("draws of noise")]
        seeds = range(FRESH, FRESH + max([1, *draws]))
        errors = [
            rehearsal.errors(each.plan, each.settings, seed=seed, stand_in=k, fresh=True)
            for seed in seeds
            for k in (0, 1)
        ]
        assert np.mean(errors) == pytest.approx(each.expected.error, abs=1e-6)
        assert public == pytest.approx(each.expected.prior, abs=1e-6)


@pytest.fixture(scope="module")
def tuner(task, few):
    return Tuner(replace(task, schema=few.schema), few.public, execution=Execution(1), most_draws=1)


@pytest.fixture(scope="module")
def alone(task, few):
    """A search at epsilon = 5 by a tuner that served no other budget, from the simplest plan to its end."""
    tuner = Tuner(replace(task, schema=few.schema), few.public, execution=Execution(1), most_draws=1)
    return tuner.tune(Budget.pure(5), Effort.of(600))


def test_a_tuner_that_served_another_budget_finds_what_a_new_one_finds(tuner, alone):
    tuner.tune(Budget.pure(1), Effort.of(0))
    again = tuner.tune(Budget.pure(5), Effort.of(600))
    assert (again.plan, again.settings, again.trials) == (alone.plan, alone.settings, alone.trials)


def test_a_search_starts_from_its_neighbour_and_leaves_a_bad_start_for_the_simplest_plan(tuner, alone):
    start, simplest = tuner.tune(Budget.pure(2), Effort.of(1)).best, tuner.candidates.simplest()
    assert start != replace(simplest, budget=start.budget)
    useless = Choice(simplest.parts[:1], simplest.above, simplest.total)
    for each in (start, useless):
        tuned = tuner.tune(Budget.pure(5), Effort.of(600), each)
        assert [trial.what for trial in tuned.trials[:2]] == [ANOTHER_BUDGET, "all one-way tables"]
        assert tuned.expected.error < 1.05 * alone.expected.error
    assert tuned.trials[1].kept


# ---------------------------------------------------------------------- which budgets


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        ([], "give a list, such as"),
        ("1", "give a list, such as"),
        ([1, "1.0"], "given twice"),
        ([1, "much"], "epsilon is 'much'"),
        ([1, Budget.zcdp(1)], "cannot be compared"),
        ([1, Budget.approx(1, "1e-9")], "cannot be compared"),
        ([0, 1], "budget is zero"),
        ([1, 10**40], "promises nothing"),
    ],
)
def test_budgets_that_cannot_be_compared_are_refused_before_the_public_table_is_read(task, budgets, words):
    with pytest.raises(PradeError, match=words):
        explore(task, "no such file.parquet", budgets)


def test_numbers_are_of_the_kind_of_the_tasks_budget():
    schema = Schema([Column("AGE", "numeric", edges=[18])])
    assert budgets_of(Task("x", schema, Budget.zcdp(1)), [1, 0.1]) == [Budget.zcdp("0.1"), Budget.zcdp(1)]
    approx = budgets_of(Task("x", schema, Budget.approx(1, "1e-6")), [Budget.approx(2, "1e-6"), 1])
    assert approx == [Budget.approx(1, "1e-6"), Budget.approx(2, "1e-6")]


def test_plans_are_saved_as_the_data_have_them(explored, tmp_path):
    paths = explored.save_plans(tmp_path / "census.toml")
    shown = explored.to_dict(tmp_path / "census.toml")["budgets"]
    assert [path.name for path in paths] == [budget["file"] for budget in shown]
    assert [path.name for path in paths] == ["census-0.0001.toml", "census-1.toml", "census-20.toml"]
    for path, budget, plan in zip(paths, shown, explored.plans, strict=True):
        assert path.read_text() == budget["plan"]
        assert Plan.load(path) == plan
        first, second = budget["command"].splitlines()
        assert first.startswith("prade ledger open ")
        assert second.startswith(f"prade measure {path} PRIVATE -o release-")


# ---------------------------------------------------------------------- the data of the page


def shape(value):
    """The structure of some data: names, and the structure of the first entry of a list."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()} if "packed" not in value else "packed"
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def kinds(value):
    """Structures alike: whole numbers are numbers, and what may be missing is left open."""
    text = json.dumps(shape(value), sort_keys=True)
    return text.replace('"int"', '"number"').replace('"float"', '"number"')


def test_the_data_have_the_structure_that_the_page_is_made_for(explored):
    assert listed(np.array([[0.5, np.nan]])) == [[0.5, None]]
    mine = explored.to_dict(array=lambda values: packed(values, unit=1, type="f32"))
    page = rehearsals.explored()
    for data in (mine, page):
        data["caveats"] = ["text"]
        data["recommended"] = 0
        data["public"]["files"] = ["text"]
        for budget in data["budgets"]:
            budget["not_measured"] = ["text"]
    for name in page:
        assert kinds(mine[name]) == kinds(page[name]), name
    assert set(mine) == set(page)


def test_the_words_and_the_table_say_what_was_done(explored):
    data = replace(explored, public=PublicFiles(("/home/secret/il.parquet",))).to_dict()
    assert data["public"]["files"] == ["il.parquet"]
    assert data["unit"].startswith("Protected: one person with all of their rows")
    assert "stood in for the private ones" in data["rehearsal"]
    assert any("few public groups" in caveat for caveat in data["caveats"])
    assert data["elbow"]
    first, _, last = data["budgets"]
    assert (first["worthwhile"], last["worthwhile"]) == (False, True)
    assert first["not_measured"] == ["AGE", "SEX", "RACE", "EMPLOY"]
    assert "only their numbers of rows" in first["too_small"]["words"]
    assert last["expected"]["gain"] == pytest.approx(last["expected"]["prior"] - last["expected"]["error"])
    assert sum(asked["share"] for asked in last["measured"]) == pytest.approx(1)
    rows = explored.table()
    assert [row["epsilon"] for row in rows] == ["0.0001", "1", "20"]
    assert (rows[0]["tables measured"], rows[0]["worth it"]) == ("0", "no")
    assert rows[2]["expected error"].startswith(f"{last['expected']['error']:.3f} ±")
    few, some, many = explored.rehearsed
    assert few.risk["groups"] > many.risk["groups"]
    assert some.too_small["groups"] >= many.too_small["groups"]
    assert many.risk["of"] == 10


# ---------------------------------------------------------------------- a closer look


def test_the_last_levels_error_is_the_expected_one_and_a_budget_helps_at_every_level(explored):
    few, _, many = levels = [budget["by_level"] for budget in explored.to_dict()["budgets"]]
    for each, of_budget in zip(explored.rehearsed, levels, strict=True):
        expected = each.tuned.expected
        assert [level["level"] for level in of_budget] == ["STATE", "STATE+PLACE"]
        assert [of_budget[-1][name] for name in ("error", "prior")] == [expected.error, expected.prior]
    assert all(one["error"] > other["error"] for one, other in zip(few, many, strict=True))
    assert many[0]["error"] < many[1]["error"]  # sums of places are nearer to the truth than places


def test_errors_above_are_those_of_the_sums(explored, rehearsal):
    plan = explored.plans[-1]
    found = []
    for number, stand_in in enumerate(rehearsal.stand_ins):
        release = rehearsal.release(plan, number, FRESH)
        estimates = Estimates.of(release, stand_in.public, plan.settings)
        weights = sum(estimates.totals[g] * estimates.weights(1, g) for g in range(len(estimates.totals)))
        together = Coded(plan.schema, estimates.public.prior.codes, weights / weights.sum())
        truth = Coded(plan.schema, stand_in.codes)
        assert len(stand_in.groups.level(["STATE"])) == 1
        found.append(joint_errors(truth, together, rehearsal.pairs).mean() * stand_in.shrink)
    assert np.mean(found) == pytest.approx(explored.rehearsed[-1].look.above[0]["error"], abs=1e-5)


def test_columns_and_pairs_are_scored_and_a_pair_is_harder_than_its_columns(explored):
    for each in explored.rehearsed:
        columns, pairs = each.look.columns, each.look.pairs
        assert np.isnan(np.diag(pairs)).all()
        off = ~np.eye(len(columns), dtype=bool)
        assert np.allclose(pairs[off], pairs.T[off])
        # merging the cells of a pair into those of a column brings tables nearer to each other
        assert (pairs[off] + 1e-9 >= np.maximum(columns[:, None], columns)[off]).all()
    assert (explored.rehearsed[-1].look.columns < explored.closer.prior[0]).all()


def test_places_are_stand_ins_of_different_sizes_and_their_tables_are_shares(explored, data):
    """Raw answers are shown where something is measured and nowhere else."""
    places = explored.closer.places
    assert len(places) == 4
    assert sorted(place.rows for place in places) == [place.rows for place in places]
    ends = np.cumsum(data.schema.shape(data.schema.coded))[:-1]

    def sums(shares):
        return [column.sum() for column in np.split(shares, ends)]

    for number, place in enumerate(places):
        assert [sums(place.truth), sums(place.public)] == [pytest.approx([1.0] * 4)] * 2
        for each in explored.rehearsed:
            tables, questions = each.look.tables[number], each.tuned.plan.questions
            assert [sums(tables[name]) for name in ("estimate", "synthetic")] == [pytest.approx([1.0] * 4)] * 2
            assert (tables["sd"] > 0).all()
            assert np.abs(tables["synthetic"] - tables["estimate"]).max() < 0.02
            asked = {part.columns for question in questions if not question.is_total for part in question.parts}
            for name, noisy in zip(data.schema.coded, np.split(tables["noisy"], ends), strict=True):
                assert np.isnan(noisy).all() == np.isnan(noisy).any() == ((name,) not in asked)
    last = explored.rehearsed[-1].look.tables[-1]
    assert np.nanmax(np.abs(last["noisy"] - places[-1].truth)) < 0.05  # epsilon 20 has little noise


def test_places_that_chose_nothing_are_shown_where_there_are_enough(data):
    many = census_like(persons=4_000, places_per_state=20, seed=1)
    schema = many.schema.select(COLUMNS)
    groups = many.groups.select(LEVELS).group_by(LEVELS).aggregate([])
    rehearsal = Rehearsal.of(Public.of(schema, many.public.select(COLUMNS), LEVELS), groups, LEVELS, threads=1)
    closer = CloserLook(rehearsal, (("STATE",), ("STATE", "PLACE")))
    assert rehearsal.apart
    assert all(place.group in rehearsal.kept_back(place.stand_in) for place in closer.places)


def test_one_table_of_everybody_is_shown_by_public_groups_in_its_place(data):
    schema = data.schema.select(data.schema.coded)
    groups = Public.of(data.schema, data.public, ["STATE"])
    rehearsal = Rehearsal.of(groups, None, [()], threads=1)
    closer = CloserLook(rehearsal, ((),))
    words = [f"public group {place.stand_in + 1}, in place of the whole table" for place in closer.places]
    assert [place.label for place in closer.places] == words
    look = closer.at(Plan.simplest(Task("x", schema, 1)))
    assert look.above == ()
    assert len(look.tables) == len(closer.places) == 2


# ---------------------------------------------------------------------- the elbow


FALLING = [0.5, 0.4, 0.3, 0.2, 0.1]
UP_TO = "Up to rho = 10, the largest budget that was rehearsed, more budget still buys 10 % less error or more per "
UP_TO += "doubling."
NONE = "At none of these budgets is the result expected to be better than the public table alone."
LAST = "Only at rho = 10 is the result expected to be better than the public table."


@pytest.mark.parametrize(
    ("errors", "worthwhile", "number", "words"),
    [
        ([0.4, 0.3, 0.2, 0.12, 0.11], ALL, 3, "Beyond rho = 3, you pay twice the budget for at most 5 % less error."),
        ([0.2, 0.2, 0.2, 0.21, 0.2], ALL, 0, "Beyond rho = 0.1, the error stays."),
        ([0.4, 0.39, 0.38, 0.37, 0.05], ALL, None, UP_TO),  # flat, then falling
        ([0.4, 0.39, 0.38, 0.37], ALL[:4], 0, "Beyond rho = 0.1, you pay twice the budget for at most 2 % less error."),
        ([0.2, 0.2, 0.2, 0.19, 0.19], [False] * 3 + [True] * 2, 3, "Beyond rho = 3, the error stays."),
        ([0.0, 0.0], ALL[:2], 0, "Beyond rho = 0.1, the error stays."),
        ([0.1], ALL[:1], None, ""),
        (FALLING, [False] * 5, None, NONE),
        (FALLING, [False] * 4 + [True], None, LAST),
        (FALLING, ALL, None, UP_TO),
    ],
)  # fmt: skip
def test_the_elbow_is_where_more_budget_starts_to_buy_little(errors, worthwhile, number, words):
    assert elbow(AMOUNTS[: len(errors)], errors, worthwhile, "rho") == (number, words)
