"""What the page says about a release: the top, the questions, where it comes from, and how it was made."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prade import Budget, Level, Plan, PublishedTotals, Release, Rule, Schema, Settings, Unit, Workload
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import kept_estimates
from prade.planning.settings import Expected
from prade.reporting.statements import (
    MEASURE,
    caveats_of,
    expected_tile,
    headline_of,
    methodology_of,
    provenance_of,
    public_files,
    tiles_of,
)
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import ONE_TABLE, SAME_GROUPS
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES
from worlds.whole_releases import census

SCHEMA = Schema([STATE, PLACE, AGE, SEX])
ONES = Workload.all_marginals(SCHEMA, 1)
ALONE = Level((), ONES)
STATES = {"STATE": [1, 2], "rows": [1700, 700]}
YOUNG = Rule("AGE < 18 -> SEX == 1")
EXACT = PublishedTotals.of(STATES, "STATE", source="private")
ALL_ROWS = PublishedTotals.of({"rows": [2400]}, [])
EVERYBODY = {"levels": [ALONE], "groups": None}
PERSONS = {"unit": Unit(2, person_id="ID"), "invariants": [EXACT]}
REPLACED = Unit(5, person_id="ID", per_group=2, neighbours="replace")
FOUND = Expected(0.182, 0.011, 0.339, error_spread=0.02)


def plan(*levels, budget=None, unit=None, **known):
    levels = levels or (Level("STATE", ()), Level("PLACE", ONES))
    known = {"groups": THREE_PLACES, **known}
    return Plan("survey", SCHEMA, budget or Budget.pure(1), unit or Unit(1), list(levels), **known)


def methodology(settings=None, rows=10, **known):
    """The paragraph about a plan."""
    made = plan(*known.pop("levels", ()), **known)
    return methodology_of(
        SimpleNamespace(plan=made, public=SimpleNamespace(observed=range(rows)), settings=settings or Settings()),
        5,
        None,
    )


@pytest.fixture(scope="module")
def estimates(tmp_path_factory):
    return kept_estimates(Release.load(census(tmp_path_factory.mktemp("world"))))


def test_the_sentence_and_the_tiles(estimates):
    release = estimates.release
    headline, tiles = headline_of(release, 1234), tiles_of(release, 1234)
    assert headline["sentence"] == "1,234 synthetic rows for 8 PLACEs, epsilon = 4"
    assert (headline["rows"], headline["groups"]) == (1234, 8)
    titles = "Rows and groups", "Expected error against the public table alone", "Unit of protection", "Budget left"
    assert tuple(each["title"] for each in tiles) == titles
    assert tiles[0]["note"] == "2 STATEs, 8 PLACEs, 6 columns."
    assert (tiles[2]["value"], tiles[2]["tone"]) == ("one person", "good")
    assert tiles[3]["value"] == "epsilon = 0"
    assert tiles[3]["note"].startswith("Of epsilon = 4, after this release cost epsilon = 4. As of 20")
    alone = replace(release, plan=plan(ALONE, groups=None, unit=Unit(3)))
    assert headline_of(alone, 1)["sentence"] == "1 synthetic row, epsilon = 1"
    tiles = tiles_of(alone, 1)
    assert tiles[0]["title"] == "Rows and columns"
    assert tiles[2]["value"] == "one person, if nobody has more than 3 rows"
    assert "Assumed, not enforced" in tiles[2]["note"]


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


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "Nothing else was read from the private table."),
        (PERSONS, "the rows of each person; and the numbers of rows of STATE, without noise."),
        ({**EVERYBODY, "invariants": [ALL_ROWS]}, "Numbers of rows of the whole table were set to published ones."),
        ({"invariants": [YOUNG, EXACT]}, "All rows obey: AGE < 18 -> SEX == 1. Numbers of rows by STATE were set to"),
        ({"invariants": [YOUNG, EXACT]}, "Not protected, because taken from the private table"),
        ({"unit": Unit(2)}, "that nobody has more than 2 rows was assumed, not enforced."),
        ({"unit": REPLACED}, "differ by exchanging all rows of one person, of which at most 5 rows were counted,"),
        ({"unit": REPLACED}, "and at most 2 of them in any one group, chosen at random."),
        ({"public": PublicFiles(("a", "b"))}, "of 10 rows in 2 files, and"),
        ({"settings": Settings(estimator="two-stage")}, "from the raw answers, by the two-stage estimator."),
        ({"settings": Settings(smooth=False)}, "the raw answers as closely"),
        (EVERYBODY, "Weights were estimated as the least change"),
    ],
)
def test_the_paragraph_follows_the_plan(known, words):
    assert words in methodology(**known)


def test_everything_that_is_needed_to_make_it_again(estimates):
    found = provenance_of(estimates, 7, 3361)
    manifest = json.loads((estimates.release.path / "release.json").read_text())
    assert found["versions"]["measured"] == manifest["versions"]
    assert {"python", "prade", "numpy", "pyarrow"} <= set(found["versions"]["page"])
    assert (found["plan"], found["seed"], found["publicRows"]) == (estimates.plan.hash, 7, len(estimates.public))
    assert found["ledger"]["entry"] == manifest["entry"]
    assert found["ledger"]["ledger"] == manifest["head"]["ledger"]
    assert found["ledger"]["measurements"] == manifest["files"]["measurements.parquet"]


def test_public_files_are_named_without_their_folders():
    """A page is public; the custodian's folders are not."""
    files = PublicFiles(("/home/secret/il.parquet", "/home/secret/oh.parquet"), sha256=("a1", "b2"))
    assert public_files(plan(public=files)) == [
        {"file": "il.parquet", "hash": "a1"},
        {"file": "oh.parquet", "hash": "b2"},
    ]
    assert public_files(plan(public=PublicFiles(("il.csv",)))) == [{"file": "il.csv", "hash": None}]
    assert public_files(plan()) == []
