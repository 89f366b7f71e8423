"""Where a release comes from, and the paragraph that says how it was made."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from prade import Ask, Budget, Level, Plan, PublishedTotals, Release, Rule, Schema, Unit, Workload
from prade.data.public.table import PublicFiles
from prade.estimating.levels.estimates import kept_estimates
from prade.planning.settings import Settings
from prade.reporting.statements import (
    cite,
    estimation,
    invariants,
    measured,
    methodology_of,
    neighbours,
    prior,
    provenance_of,
    public_files,
)
from worlds.survey import AGE, PLACE, SEX, STATE, THREE_PLACES
from worlds.whole_releases import census

SCHEMA = Schema([STATE, PLACE, AGE, SEX])
ONES = Workload.all_marginals(SCHEMA, 1)


def plan(*levels, budget=None, **known):
    levels = levels or (Level("STATE", ()), Level("PLACE", Ask(ONES, 1), total=1))
    return Plan("survey", SCHEMA, budget or Budget.pure(3), Unit(1), list(levels), THREE_PLACES, **known)


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
