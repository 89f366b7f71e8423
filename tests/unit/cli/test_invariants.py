"""Invariants on the command line: from a schema file to the ledger, the report and the synthetic rows."""

import json
import shutil
from collections import Counter

import pyarrow as pa
import pytest

from prade import Plan
from prade.data.read.tables import read_table, write_table
from prade.examples import census_like
from worlds.commands import call

COLUMNS = ["PERSON", "STATE", "PLACE", "AGE", "SEX", "MARITAL"]
YOUNG = "AGE < 18 -> MARITAL == 'never married'"
OLD = "not (AGE >= 65 and MARITAL == 'never married')"
TOTALS = {13: 700, 14: 500}
UNPROTECTED = f"Not protected, because taken from the private table and published exactly: the rule {OLD}."
STATED = f"""
[[invariant]]
rule = "{YOUNG}"

[[invariant]]
rule = "{OLD}"
source = "private"

[[invariant]]
level = "STATE"
totals = "published.csv"
column = "persons"
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    data = census_like(persons=1_500, places_per_state=2, seed=3)
    write_table(data.public.select(COLUMNS), folder / "public.parquet")
    write_table(data.private.select(COLUMNS), folder / "private.parquet")
    write_table(data.groups.group_by(["STATE", "PLACE"]).aggregate([]), folder / "places.csv")
    write_table(pa.table({"STATE": list(TOTALS), "persons": list(TOTALS.values())}), folder / "published.csv")
    data.schema.select(COLUMNS[1:]).save(folder / "plain.toml")
    (folder / "schema.toml").write_text((folder / "plain.toml").read_text() + STATED)
    return folder


def check(files, text, *more, code=0):
    """Check the public table against the plain schema with this text added."""
    (files / "tried.toml").write_text((files / "plain.toml").read_text() + text)
    return call("check", "--schema", files / "tried.toml", *more, files / "public.parquet", code=code)


def test_check_says_how_often_the_public_rows_break_each_rule(files):
    groups = "--groups", files / "places.csv"
    public = read_table(files / "public.parquet").to_pylist()
    broken = sum(row["AGE"] >= 65 and row["MARITAL"] == "never married" for row in public)
    assert 0 < broken < len(public)
    said = check(files, STATED, *groups).stdout
    assert f"all public rows obey the rule {YOUNG}\n" in said
    share = broken / len(public)
    words = "public row" if broken == 1 else "public rows"
    assert f"{broken} {words} ({share:.2%} of the weight) will be left out: against the rule {OLD}\n" in said
    facts = json.loads(check(files, STATED, *groups, "--json").stdout)
    young, old = facts["rules"]
    assert young == {"rule": YOUNG, "rows": 0, "share": 0.0}
    assert old == {"rule": OLD, "rows": broken, "share": pytest.approx(share)}


def test_check_needs_the_groups_to_check_their_totals(files):
    assert "give the list of groups with --groups" in check(files, STATED, code=2).stderr


def test_invariants_are_met_and_named_from_the_plan_to_the_report(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(files / "public.parquet", tmp_path)
    call("ledger", "open", "people", "--cap", 4, "--max-rows-per-person", 4, "--person-id", "PERSON")
    planned = call(
        *("plan", "--schema", files / "schema.toml", "--public", "public.parquet", "--effort", 0),
        *("--groups", files / "places.csv", "--levels", "STATE,PLACE", "--epsilon", 4, "--dataset", "people"),
        *("--max-rows-per-person", 4, "--person-id", "PERSON"),
    )
    assert UNPROTECTED in planned.stdout
    assert f"met exactly: the rule {YOUNG}\n" in planned.stdout
    assert "met exactly: the numbers of rows of STATE\n" in planned.stdout
    assert Plan.load("plan.toml").published[0].tolist() == [700, 500]
    assert UNPROTECTED in call("measure", "plan.toml", files / "private.parquet", "-o", "release").stdout
    assert UNPROTECTED in call("ledger", "show", "people").stdout
    assert " groups, 1,200 rows" in call("estimate", "release").stdout
    call("sample", "release")
    rows = read_table("release/synthetic.parquet").to_pylist()
    assert Counter(row["STATE"] for row in rows) == TOTALS
    assert not any(row["AGE"] < 18 and row["MARITAL"] != "never married" for row in rows)
    assert not any(row["AGE"] >= 65 and row["MARITAL"] == "never married" for row in rows)
    broken = "AGE >= 65 and MARITAL == 'never married'"
    for answer in json.loads(call("answer", "release", broken, "--by", "STATE", "--json").stdout):
        assert [answer[name] for name in ("count", "share", "sd", "low", "high")] == [0.0] * 5
    call("report", "release")
    page = (tmp_path / "release" / "report.html").read_text()
    assert UNPROTECTED.replace("'", "&#39;").replace(">", "&gt;") in page
