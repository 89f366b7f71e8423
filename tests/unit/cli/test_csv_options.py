"""--encoding and --delimiter: CSV files in other formats, from the schema to the score."""

import json

import numpy as np
import pytest

from prade import Plan
from prade.data.read.tables import read_table
from worlds.commands import call

FORMAT = ["--encoding", "latin-1", "--delimiter", ";"]
TOWNS = ["Zürich", "Málaga", "Bern"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A public and a private table in Latin-1 with semicolons, as spreadsheets write them, and a schema."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name, rows in (("public.csv", 900), ("private.csv", 1_200)):
        lines = [f"{TOWNS[rng.integers(3)]};{rng.integers(90)};{rng.integers(1, 3)}" for _ in range(rows)]
        (tmp_path / name).write_text("\n".join(["TOWN;AGE;SEX", *lines, ""]), encoding="latin-1")
    (tmp_path / "towns.csv").write_text("\n".join(["TOWN", *TOWNS]), encoding="latin-1")
    call("schema", "infer", "public.csv", "--groups", "TOWN", *FORMAT)
    return tmp_path


PLANNING = ["--schema", "schema.toml", "--public", "public.csv", "--groups", "towns.csv", "--levels", "TOWN"]
PLANNING += ["--epsilon", "10", "--no-tune", *FORMAT]


def test_from_latin_1_files_to_synthetic_rows(folder):
    call("plan", *PLANNING)
    plan = Plan.load("plan.toml")
    assert 'encoding = "iso8859-1"\ndelimiter = ";"' in (folder / "plan.toml").read_text()
    assert (plan.public.csv.encoding, plan.public.csv.delimiter) == ("iso8859-1", ";")
    call("ledger", "open", "private", "--cap", "20", "--max-rows-per-person", "1")
    call("measure", "plan.toml", "private.csv", "-o", "release", *FORMAT)
    call("estimate", "release")
    (folder / "moved").mkdir()
    (folder / "public.csv").rename(folder / "moved" / "public.csv")
    call("sample", "release", "--public", "moved/public.csv")
    rows = read_table("release/synthetic.parquet")
    assert set(rows["TOWN"].to_pylist()) == set(TOWNS)
    assert abs(rows.num_rows - 1_200) < 30
    given = ["--schema", "schema.toml", "--by", "TOWN", "--pairs", "all", "--json"]
    scored = call("score", "private.csv", "release/synthetic.parquet", *given, *FORMAT)
    assert len(json.loads(scored.stdout)["groups"]) == len(TOWNS)
    call("report", "release", "--truth", "private.csv", *FORMAT)


def test_a_public_file_in_another_encoding_names_the_line(folder):
    given = ["--schema", "schema.toml", "public.csv"]
    assert '--delimiter ";"' in call("check", *given, code=1).stderr
    said = call("check", *given, "--delimiter", ";", code=1).stderr
    lines = (folder / "public.csv").read_bytes().split(b"\n")
    first = 1 + next(number for number, line in enumerate(lines) if not line.isascii())
    assert f"public.csv is not text in the encoding utf-8: line {first} is the first that is not" in said
    assert "--encoding" in said
    plan = [each for each in PLANNING if each not in ("--encoding", "latin-1")]
    assert "towns.csv is not text in the encoding utf-8: line 2 is the first" in call("plan", *plan, code=1).stderr
    call("check", *given, *FORMAT)
    everybody = ["--schema", "schema.toml", "--public", "public.csv", "--epsilon", "1", "--no-tune"]
    assert f"line {first} is the first that is not" in call("plan", *everybody, "--delimiter", ";", code=1).stderr


def test_wrong_headers_name_the_option_and_nothing_is_spent(folder):
    call("plan", *PLANNING)
    call("ledger", "open", "private", "--cap", "20", "--max-rows-per-person", "1")
    said = call("measure", "plan.toml", "private.csv", "-o", "release", code=1).stderr
    assert 'look separated by ";", not by ","' in said
    assert 'add --delimiter ";". In this run nothing was spent' in said
    (folder / "accent.csv").write_bytes("TOWN;ÂGE;SEX\nBern;3;1\n".encode("latin-1"))
    said = call("measure", "plan.toml", "accent.csv", "-o", "release", "--delimiter", ";", code=1).stderr
    assert "not text in the encoding utf-8; name the encoding of the file, as in --encoding latin-1" in said
    (folder / "empty.csv").touch()
    assert "empty.csv is empty" in call("measure", "plan.toml", "empty.csv", "-o", "release", code=1).stderr
    for encoding in ("utf-16", "klingon"):
        said = call("measure", "plan.toml", "private.csv", "-o", "release", "--encoding", encoding, code=1).stderr
        assert f"encoding is '{encoding}'" in said
    assert "epsilon = 0 " in call("ledger", "show", "private").stdout
