"""`prade score`: the contest's score, the metrics as a table and as JSON, the public baseline, and what is refused."""

import json
from functools import partial

import pytest

from prade.data.read.tables import write_table
from prade.scoring.metrics.measures import INSTALL
from worlds import commands
from worlds.workers import SCHEMA, workers


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")
    write_table(workers(400, 1), folder / "truth.parquet")
    write_table(workers(400, 2, tilt=0.1), folder / "synthetic.csv")
    write_table(workers(300, 3, tilt=0.9).append_column("W", [[1.0] * 300]), folder / "public.parquet")
    SCHEMA.save(folder / "schema.toml")
    return folder


@pytest.fixture
def call(home):
    given = ["score", home / "truth.parquet", home / "synthetic.csv", "--schema", home / "schema.toml", "--by", "TOWN"]
    return partial(commands.call, *given)


def test_without_metrics_it_is_the_contests_score(call):
    done = call()
    first, *others = done.stdout.splitlines()
    assert first.startswith("NIST score ")
    assert len(others) == 3
    assert "k-marginal" not in done.stdout
    assert "do not publish" in done.stderr


def test_metrics_as_a_table(call, home):
    done = call("--metrics", "--public", home / "public.parquet", "--weight", "W")
    assert "of the public table's error." in done.stdout
    for words in ("metric ", "Three-way tables (k-marginal, k = 3)", "AUC"):
        assert words in done.stdout
    header = next(line for line in done.stdout.splitlines() if line.startswith("metric "))
    assert header.split() == ["metric", "synthetic", "public", "how", "to", "read", "it"]
    alone = call("--metrics").stdout
    header = next(line for line in alone.splitlines() if line.startswith("metric "))
    assert header.split()[:3] == ["metric", "synthetic", "how"]


def test_json_has_them_all(call, home):
    found = json.loads(call("--json", "--metrics", "--public", home / "public.parquet").stdout)
    assert {"mean", "nist", "groups", "pairs", "worst_pairs", "worst_places", "public", "metrics"} <= set(found)
    metrics = "summary rows kmarginal propensity linear logistic correlations unique consistency"
    assert set(found["metrics"]) == set(metrics.split())
    assert found["metrics"]["propensity"]["synthetic"]["auc"] >= 0.5
    assert 0 < found["public"]["ratio"] < 1
    assert [each["k"] for each in found["metrics"]["kmarginal"]] == [1, 2, 3]
    assert json.loads(call("--json").stdout)["metrics"] is None


def test_what_to_install_is_said(call, monkeypatch):
    monkeypatch.setattr("prade.scoring.metrics.measures.find_spec", lambda name: None)
    refused = call("--metrics", code=1)
    assert refused.stdout == ""
    assert INSTALL in refused.stderr
    call("--json")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--linear", "INCOME ~ AGE"], 2, "also give --metrics"),
        (["--weight", "W"], 2, "also give them with --public"),
        (["--metrics", "--linear", "INCOME on AGE"], 1, "as in Y ~ A + B"),
        (["--metrics", "--logistic", "AGE = 66 ~ SEX"], 1, "AGE"),
        (["--metrics", "--public", "nowhere.parquet"], 1, "there is no public file"),
    ],
)
def test_what_is_refused(call, options, code, message):
    said = call(*options, code=code).stderr
    assert message in said
    assert "This is a bug" not in said
