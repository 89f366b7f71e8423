"""`prade schema label`: what it writes, what it says about the rest, and that no file is lost."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from prade import Column, Level, Release, Schema, Workload
from prade.release.release import LabelsNotUsed
from worlds import commands
from worlds.plans import plan_of
from worlds.releases import invented, write_folder

SCHEMA = Schema(
    [
        Column("PLACE", "group"),
        Column("SEX", "categorical", values=(1, 2)),
        Column("AGE", "numeric", edges=(18, 65), integer=True),
        Column("TENURE", "categorical", values=("own", "rent")),
    ]
)
CODEBOOK = """column,title,unit,value,label
SEX,Sex,,1,male
SEX,,,2,female
SEX,,,3,other
AGE,Age,years,,
AGE,,,18,of age
WEIGHT,Weight,,,
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.toml")
    Path("codebook.csv").write_text(CODEBOOK, encoding="utf-8")
    return tmp_path


def call(*arguments: Any, code: int = 0) -> Result:
    return commands.call("schema", "label", *arguments, code=code)


def test_it_writes_the_labels_and_says_what_is_left(files: Path) -> None:
    done = call("--codebook", "codebook.csv", "schema.toml", "-o", "labelled.toml")
    assert done.stdout == "labelled.toml: 2 columns and 2 values labelled\n"
    assert done.stderr.splitlines() == [
        "Without an entry in codebook.csv: PLACE, TENURE",
        "In codebook.csv, but not in the schema: WEIGHT",
        "SEX does not list these values of codebook.csv: 3",
        "AGE does not list these values of codebook.csv: 18",
    ]
    again = call("--codebook", "codebook.csv", "schema.toml", "-o", "labelled.toml", "--force", "--json")
    facts = {"columns": ["SEX", "AGE"], "values": 2, "without_entry": ["PLACE", "TENURE"]}
    assert json.loads(again.stdout).items() >= facts.items()
    made = Schema.load("labelled.toml")
    assert made == SCHEMA
    assert made["SEX"].labels == {"1": "male", "2": "female"}
    assert (made["AGE"].title, made["AGE"].unit) == ("Age", "years")


def test_a_file_is_replaced_with_force_only(files: Path) -> None:
    before = Path("schema.toml").read_text("utf-8")
    assert "schema.toml exists already" in call("--codebook", "codebook.csv", "schema.toml", code=1).stderr
    Path("contradiction.csv").write_text("column,title\nSEX,Sex\nSEX,Gender\n", encoding="utf-8")
    refused = call("--codebook", "contradiction.csv", "schema.toml", "--force", code=1)
    assert "contradiction.csv: column 'SEX' has two texts for the title" in refused.stderr
    Path("contradiction.csv").unlink()
    assert Path("schema.toml").read_text("utf-8") == before
    call("--codebook", "codebook.csv", "schema.toml", "--force")
    assert Schema.load("schema.toml")["SEX"].label_of(2) == "female"
    assert sorted(path.name for path in files.iterdir()) == ["codebook.csv", "schema.toml"]


def test_a_release_is_labelled_after_the_fact(files: Path) -> None:
    plan = plan_of(SCHEMA, Level("PLACE", Workload.all_marginals(SCHEMA, 1)), groups={"PLACE": ["a", "b"]})
    write_folder(files / "release", plan, invented(plan).noisy)
    before = Release.load("release")
    done = call("--codebook", "codebook.csv", "release")
    assert done.stdout == "release/labels.toml: 2 columns and 2 values labelled\n"
    found = Release.load("release")
    assert found.plan.schema["SEX"].label_of(2) == "female"
    assert (found.plan.hash, found.fingerprint) == (before.plan.hash, before.fingerprint)
    assert found.labels == hashlib.sha256((files / "release" / "labels.toml").read_bytes()).hexdigest()
    assert before.labels is None
    assert "exists already" in call("--codebook", "codebook.csv", "release", code=1).stderr
    (files / "release" / "labels.toml").unlink()
    assert Release.load("release").plan.schema["SEX"].labels == {}


@pytest.mark.parametrize("text", [SCHEMA.select(["SEX", "AGE"]).to_toml(), "columns = [", "\0\xff"])
def test_labels_that_cannot_be_used_block_nothing_and_are_remarked_on(files: Path, text: str) -> None:
    plan = plan_of(SCHEMA, Level("PLACE", Workload.all_marginals(SCHEMA, 1)), groups={"PLACE": ["a", "b"]})
    write_folder(files / "release", plan, invented(plan).noisy)
    (files / "release" / "labels.toml").write_text(text, encoding="latin-1")
    with pytest.warns(LabelsNotUsed, match=r"labels.toml cannot be used .* the plan's own: repair the file, or remove"):
        found = Release.load("release")
    assert (found.plan.schema["SEX"].labels, found.labels) == ({}, None)
    done = call("--codebook", "codebook.csv", "release", "--force")
    assert done.stderr.startswith("release/labels.toml cannot be used (")
    assert "LabelsNotUsed" not in done.stderr  # a remark for people, not a warning with a line of code
    assert Release.load("release").plan.schema["SEX"].label_of(2) == "female"


def test_codebooks_of_other_encodings_and_delimiters(files: Path) -> None:
    Path("codebook.csv").write_text("column;value;label\nTENURE;own;propriété\n", encoding="latin-1")
    assert "--delimiter" in call("--codebook", "codebook.csv", "schema.toml", "--force", code=1).stderr
    given = ["--codebook", "codebook.csv", "schema.toml", "--force", "--delimiter", ";"]
    assert "--encoding latin-1" in call(*given, code=1).stderr
    call(*given, "--encoding", "latin-1")
    assert Schema.load("schema.toml")["TENURE"].label_of("own") == "propriété"
