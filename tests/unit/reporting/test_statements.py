"""What the page says about a release: the top, the questions, where it comes from, and how it was made."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from prade import Budget, Level, Plan, PublishedTotals, Release, Rule, Schema, Settings, Unit, Workload
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import kept_estimates
from prade.planning.settings import Expected
from prade.reporting.page_data import noun_of
from prade.reporting.statements import (
    MEASURE,
    account_of,
    budget_tile,
    caveats_of,
    cite,
    estimation,
    expected_tile,
    headline_of,
    intervals,
    invariants,
    measured,
    methodology_of,
    neighbours,
    prior,
    protection_tile,
    provenance_of,
    public_files,
    tiles_of,
)
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import ONE_TABLE, SAME_GROUPS
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES
from worlds.whole_releases import census, released

SCHEMA = Schema([STATE, PLACE, AGE, SEX])
ONES = Workload.all_marginals(SCHEMA, 1)
STATES = {"STATE": [1, 2], "rows": [1700, 700]}
FOUND = Expected(0.182, 0.011, 0.339, error_spread=0.02)


def plan(*levels, budget=None, unit=None, **known):
    levels = levels or (Level("STATE", ()), Level("PLACE", ONES))
    known = {"groups": THREE_PLACES, **known}
    return Plan("survey", SCHEMA, budget or Budget.pure(1), unit or Unit(1), list(levels), **known)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    def people(seed):
        draw = np.random.default_rng(seed)
        place = draw.integers(0, 3, 200)
        named = {name: [values[k] for k in place] for name, values in THREE_PLACES.items()}
        return pa.table({**named, "AGE": draw.integers(0, 90, 200), "SEX": draw.integers(1, 3, 200)})

    return Release.load(released(tmp_path_factory.mktemp("world"), plan(), people(1), people(2)))


def test_the_sentence_says_how_many_for_whom_and_how_well_protected(release):
    found = headline_of(release, 1234)
    assert found["sentence"] == "1,234 synthetic rows for 3 PLACEs, epsilon = 1"
    assert (found["rows"], found["groups"], found["level"], found["dataset"]) == (1234, 3, "STATE+PLACE", "survey")
    assert len(found["made"]) == 10
    alone = Plan("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))])
    assert headline_of(replace(release, plan=alone), 1)["sentence"] == "1 synthetic row, epsilon = 1"
    assert tiles_of(replace(release, plan=alone), 1)[0]["title"] == "Rows and columns"


def test_there_are_four_tiles(release):
    found = tiles_of(release, 1234)
    assert [each["title"] for each in found] == [
        "Rows and groups",
        "Expected error against the public table alone",
        "Unit of protection",
        "Budget left",
    ]
    assert found[0]["note"] == "2 STATEs, 3 PLACEs, 2 columns."
    assert {each["tone"] for each in found} <= {"good", "plain", "bad"}


@pytest.mark.parametrize(
    ("expected", "value", "note", "tone"),
    [
        (FOUND, "46 % smaller", "0.182 ± 0.020, public table alone 0.339", "good"),
        (Expected(0.3, 0.05, 0.339), "12 % smaller", "0.300, public table alone 0.339", "plain"),
        (Expected(0.4, 0.05, 0.3), "33 % larger", "0.400, public table alone 0.300", "bad"),
        (None, "not rehearsed", "without a rehearsal", "plain"),
    ],
)
def test_the_expected_error_is_beside_that_of_the_public_table(expected, value, note, tone):
    tile = expected_tile(expected)
    assert (tile["value"], tile["tone"]) == (value, tone)
    assert note in tile["note"]


def test_the_unit_of_protection_says_what_is_assumed():
    assumed, enforced = plan(unit=Unit(3)), plan(unit=Unit(3, person_id="ID"))
    assert protection_tile(assumed)["value"] == "one person, if nobody has more than 3 rows"
    assert "Assumed, not enforced" in protection_tile(assumed)["note"]
    assert (protection_tile(enforced)["value"], protection_tile(enforced)["tone"]) == ("one person", "good")


def test_what_is_left_is_the_ledgers_account(release):
    assert account_of(release) == {"cap": "epsilon = 1", "spent": "epsilon = 1", "remaining": "epsilon = 0"}
    tile = budget_tile(release)
    assert tile["value"] == "epsilon = 0"
    assert tile["note"].startswith("Of epsilon = 1, after this release cost epsilon = 1. As of 20")


def test_the_rehearsals_warnings_are_kept_sentence_by_sentence():
    """Of the advice as the tuner writes it, only the number that a tile has is left out."""
    for words in WORDS.values():
        advice = f"{MEASURE}{FOUND}. {words} {SAME_GROUPS} {ONE_TABLE}"
        found = caveats_of(plan(expected=replace(FOUND, advice=advice)))
        assert " ".join(found) == f"{words} {SAME_GROUPS} {ONE_TABLE}"
        assert found[-2:] == [SAME_GROUPS, ONE_TABLE]
    against = caveats_of(plan(expected=replace(FOUND, advice=f"Do not touch the private data: {FOUND}. {ONE_TABLE}")))
    assert against[0].startswith("Do not touch")
    (none,) = caveats_of(plan())
    assert "not rehearsed" in none


def test_what_was_read_besides_the_counts_is_said():
    nothing = "Nothing else was read from the private table."
    assert measured(plan()).endswith(nothing)
    assert measured(plan(invariants=[Rule("AGE < 18 -> SEX == 1")])).endswith(nothing)
    assert measured(plan(unit=Unit(2, person_id="ID"))).endswith(
        "Besides, only this was read from the private table: the column 'ID', to limit the rows of each person."
    )
    exact = [PublishedTotals.of(STATES, "STATE", source="private")]
    assert measured(plan(unit=Unit(2, person_id="ID"), invariants=exact)).endswith(
        "the rows of each person; and the numbers of rows of STATE, without noise."
    )
    assert measured(plan(invariants=exact)).endswith("table: the numbers of rows of STATE, without noise.")


def test_published_numbers_are_named_with_their_level():
    by_state, whole = PublishedTotals.of(STATES, "STATE"), PublishedTotals.of({"rows": [2400]}, [])
    assert invariants(plan(invariants=[by_state])) == ["Numbers of rows by STATE were set to published ones."]
    alone = Plan(
        *("survey", SCHEMA, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(SCHEMA, 1))]), invariants=[whole]
    )
    assert invariants(alone) == ["Numbers of rows of the whole table were set to published ones."]


@pytest.mark.parametrize("settings", [Settings(), Settings(estimator="ide")])
def test_one_table_is_not_called_a_group(settings):
    assert estimation(settings, 2).startswith("Each group's weights were estimated level by level")
    assert estimation(settings, 1, grouped=False).startswith("Weights were estimated ")
    assert "group" not in estimation(settings, 1, grouped=False)
    assert "groups of the public table" in intervals()
    assert "group" not in intervals(grouped=False)


def test_rows_are_people_only_where_nobody_has_several():
    assert (noun_of(plan()), noun_of(plan(unit=Unit(2, person_id="ID")))) == ("people", "rows")


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    return kept_estimates(Release.load(census(tmp_path_factory.mktemp("world"))))


def test_everything_that_is_needed_to_make_it_again(estimates):
    found = provenance_of(estimates, 7, 3361)
    manifest = json.loads((estimates.release.path / "release.json").read_text())
    assert found["versions"]["measured"] == manifest["versions"]
    assert {"python", "prade", "numpy", "pyarrow"} <= set(found["versions"]["page"])
    assert (found["plan"], found["seed"], found["publicRows"]) == (estimates.plan.hash, 7, len(estimates.public))
    assert found["ledger"]["entry"] == manifest["entry"]
    assert found["ledger"]["ledger"] == manifest["head"]["ledger"]
    assert found["ledger"]["measurements"] == manifest["files"]["measurements.parquet"]


def test_labels_that_were_given_later_leave_a_trace(estimates):
    """Nobody signed their file: the page names it and its hash."""
    assert provenance_of(estimates, 7, 3361)["labels"] is None
    labelled = SimpleNamespace(release=replace(estimates.release, labels="ab12"), public=estimates.public)
    found = provenance_of(labelled, 7, 3361)
    assert found["labels"] == {"file": "labels.toml", "hash": "ab12"}


def test_public_files_are_named_without_their_folders():
    """A page is public; the custodian's folders are not."""
    files = PublicFiles(("/home/secret/il.parquet", "/home/secret/oh.parquet"), sha256=("a1", "b2"))
    assert public_files(plan(public=files)) == [
        {"file": "il.parquet", "hash": "a1"},
        {"file": "oh.parquet", "hash": "b2"},
    ]
    assert public_files(plan(public=PublicFiles(("il.csv",)))) == [{"file": "il.csv", "hash": None}]
    assert public_files(plan()) == []


def test_a_citation_for_readers_and_one_for_bibtex(estimates):
    found = cite(estimates.release, 3361)
    made = str(json.loads((estimates.release.path / "release.json").read_text())["made"])[:10]
    assert found["sentence"].startswith(f"census-like survey: synthetic rows with differential privacy ({made}). 3,361")
    assert found["bibtex"].startswith(f"@misc{{census-like-survey-{made[:4]},\n  title = {{census-like survey: synth")
    named = SimpleNamespace(path=estimates.release.path, plan=SimpleNamespace(**vars(plan()), hash="f" * 64))
    named.plan.dataset = "50 % of {us} & them\\"
    assert r"title = {50 \% of \{us\} \& them/: synthetic" in cite(named, 1)["bibtex"]


def test_the_paragraph_says_what_the_plan_says(estimates):
    said = methodology_of(estimates, 3361, 7)
    for words in (
        "The 3,361 synthetic rows of census-like survey",
        "budget of epsilon = 4",
        "of which at most 2 rows were counted, chosen at random",
        "6 one-way tables (57 counts) of each of 8 PLACEs, with discrete Laplace noise of scale 6 in every count",
        "the number of rows of each of 8 PLACEs",
        f"public table of {len(estimates.public):,} rows",
        "(seed 7)",
        "95 % intervals",
    ):
        assert words in said


def test_each_sentence_follows_the_plan():
    assert neighbours(Unit(2)).endswith("that nobody has more than 2 rows was assumed, not enforced.")
    limited = Unit(5, person_id="ID", per_group=2, neighbours="replace")
    assert neighbours(limited) == (
        "Neighbouring tables differ by exchanging all rows of one person, of which at most 5 rows were counted, and at "
        "most 2 of them in any one group, chosen at random."
    )
    gaussian = plan(Level((), ONES), budget=Budget.zcdp("0.5"))
    assert "of the whole table, with discrete Gaussian noise of scale" in measured(gaussian)
    assert "of 10 rows in 2 files, and" in prior(plan(public=PublicFiles(("a", "b"))), 10)
    assert "two-stage" in estimation(Settings(estimator="two-stage"), 1)
    assert "the raw answers as closely" in estimation(Settings(smooth=False), 1)
    assert "level by level" in estimation(Settings(), 2)
    assert "level by level" not in estimation(Settings(), 1)


def test_what_is_met_exactly_is_said_with_what_is_not_protected():
    assert invariants(plan()) == []
    totals = PublishedTotals.of({"STATE": [1, 2], "rows": [5, 6]}, "STATE", "rows", source="private")
    facts = [Rule("AGE < 18 -> SEX == 1"), totals]
    first, second, third = invariants(plan(invariants=facts))
    assert first == "All rows obey: AGE < 18 -> SEX == 1."
    assert second == "Numbers of rows by STATE were set to published ones."
    assert third.startswith("Not protected, because taken from the private table")
