"""`prade answer`: one question or a file of them, on the screen, as JSON, in a file."""

import csv
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Ask, Level, Release, Schema, Workload
from prade.data.public.public import Public
from prade.estimating.levels.estimates import estimates_of, kept_estimates
from worlds import commands
from worlds.plans import plan_of
from worlds.releases import invented, write_folder
from worlds.survey import FIVE_PLACES, PLACE, SEX, STATE, WORK, YEARS, people

SCHEMA = Schema([STATE, PLACE, YEARS, SEX, WORK])


def answered(folder, schema):
    """A release with public rows in two of its five places, and its estimates."""
    rows, ones = people(0, [1, 3], 300), Workload.all_marginals(schema, 1)
    plan = plan_of(schema, Level("STATE", ones), Level("PLACE", Ask(ones, 2)), groups=FIVE_PLACES, budget=3)
    release = write_folder(folder / "release", plan, invented(plan).noisy)
    estimates_of(Release.load(release), Public.of(schema, rows, ["STATE", "PLACE"]))
    return release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("answers"), SCHEMA)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("AGE > 1000000", ["at least 0 and at most 99"]),
        ("AGE >= 50", ["the nearest edges are 40 and 65; compare with an edge", "AGE >= 40: ", "AGE >= 65: "]),
        ("AGE >= 67", ["the nearest edge is 65; compare with it"]),
        ("WORK == full", ["did you mean 'full'"]),
    ],
)
def test_what_cannot_be_answered_is_explained(release, query, words):
    said = call(release, query, code=1).stderr
    assert all(each in said for each in words)


def call(*arguments, code=0):
    return commands.call("answer", *arguments, code=code)


def test_statistics_and_ratios_come_with_their_intervals(release):
    rows = json.loads(call(release, "mean(AGE) where SEX = 2", "--by", "STATE", "--json").stdout)
    assert [row["STATE"] for row in rows] == [1, 2]
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    said = call(release, "AGE >= 65 & SEX = 2", "--of", "AGE >= 65").stdout.splitlines()
    assert said[0].split() == ["value", "sd", "low", "high", "basis"]
    assert 0 < float(said[1].split()[0]) < 1


QUESTIONS = """name,query,of,by
old,AGE >= 65,,STATE

typo,AGEE >= 65,,
mean,mean(AGE),,
ratio,"WORK in ('part', 'full')",AGE >= 18,STATE+PLACE
bars,histogram(AGE),,
"""


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.csv"
    path.write_text(QUESTIONS)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_of_questions_is_answered_in_one_go(release, questions, tmp_path, suffix):
    """One fails: it is named with its line, the others are answered, and the exit code says that it was not all."""
    output = tmp_path / f"answers{suffix}"
    done = call(release, "--queries", questions, "-o", output, code=1)
    assert f"{questions} row 2: there is no column 'AGEE'" in done.stderr
    assert "1 of 5 questions could not be answered" in done.stderr
    assert f"{output}: 12 rows" in done.stdout
    text = output.read_text() if suffix == ".csv" else ""
    rows = list(csv.DictReader(text.splitlines())) if suffix == ".csv" else pq.read_table(output).to_pylist()
    assert [row["name"] for row in rows] == ["old"] * 2 + ["mean"] + ["ratio"] * 5 + ["bars"] * 4
    estimates = kept_estimates(Release.load(release))
    expected = estimates.answer("AGE >= 65", by="STATE")["count"].to_pylist()
    assert [float(row["count"]) for row in rows[:2]] == pytest.approx(expected)
    assert float(rows[2]["value"]) == pytest.approx(estimates.answer("mean(AGE)")["value"][0].as_py())
    assert [str(row["PLACE"]) for row in rows[3:8]] == FIVE_PLACES["PLACE"]
    assert [int(row["AGE_from"]) for row in rows[8:]] == [0, 18, 40, 65]


def test_if_nothing_could_be_answered_no_file_is_written(release, tmp_path):
    path, output = tmp_path / "q.csv", tmp_path / "a.csv"
    path.write_text("query\nSEX == 7\n")
    assert "no answers" in call(release, "--queries", path, "-o", output, code=1).stdout
    assert not output.exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("question\nSEX == 1\n", "has no column 'query'"),
        ("query,where\nSEX == 1,x\n", "has a column 'where'"),
        ("query\n", "has no questions"),
        ("", "is empty"),
        (b"query\n\xff\n", "row 1: in query"),
    ],
)
def test_a_file_that_is_not_one_of_questions_is_refused(release, tmp_path, content, named):
    path = tmp_path / "q.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = call(release, "--queries", path, code=1).stderr
    assert named in said
    assert str(path) in said


def test_what_does_not_go_together_is_refused(release, tmp_path):
    assert "give a QUERY, or a file" in call(release, code=2).stderr
    assert "give a QUERY, or a file" in call(release, "SEX == 1", "--queries", "q.csv", code=2).stderr
    assert "in a file of questions" in call(release, "--queries", "q.csv", "--by", "STATE", code=2).stderr
    assert "there is no file" in call(release, "--queries", tmp_path / "none.csv", code=1).stderr
    assert ".parquet" in call(release, "SEX == 1", "-o", tmp_path / "answers.xlsx", code=1).stderr


def test_dates_and_numbers_go_into_one_column_as_text():
    from prade.cli.report_commands import _together

    asked = {name: [None] for name in ("name", "of", "by")}
    one = pa.table({**asked, "query": ["a"], "value": [1.5]})
    other = pa.table({**asked, "query": ["b"], "value": pa.array([0], pa.date32())})
    assert _together([one, other]).to_pydict() == {"query": ["a", "b"], "value": ["1.5", "1970-01-01"]}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A release with titles, labels and units, and a title that is also the name of a figure."""
    schema = Schema(
        [
            replace(STATE, title="State", labels={1: "Alpha", 2: "Beta"}),
            replace(PLACE, title="count"),
            replace(YEARS, title="Age", unit="years"),
            replace(SEX, title="query", labels={1: "male", 2: "female"}),
            WORK,
        ]
    )
    return answered(tmp_path_factory.mktemp("labelled"), schema)


def test_the_printed_table_has_titles_and_labels(labelled):
    said = call(labelled, "SEX == 2", "--by", "STATE+PLACE").stdout.splitlines()
    assert said[0].split() == ["State", "PLACE", "count", "share", "sd", "low", "high", "basis"]
    assert [line.split()[:2] for line in said[1:]] == [
        ["Alpha", "p"], ["Alpha", "q"], ["Alpha", "r"], ["Beta", "p"], ["Beta", "s"]
    ]  # fmt: skip
    done = call(labelled, "histogram(AGE)")
    bins = ["Age (years)", "0 to 17", "18 to 39", "40 to 64", "65 to 99"]
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == bins
    assert "low to high is a 95 % interval" in done.stderr


def test_files_and_json_keep_codes_and_get_labels_on_request(labelled, tmp_path):
    rows = json.loads(call(labelled, "SEX == 2", "--by", "STATE", "--json").stdout)
    assert [row["STATE"] for row in rows] == [1, 2]
    assert not any(name.endswith("_label") for name in rows[0])
    rows = json.loads(call(labelled, "SEX == 2", "--by", "STATE", "--json", "--labels").stdout)
    assert [(row["STATE"], row["STATE_label"]) for row in rows] == [(1, "Alpha"), (2, "Beta")]
    output = tmp_path / "answers.parquet"
    call(labelled, "histogram(AGE)", "--by", "STATE", "--labels", "-o", output)
    table = pq.read_table(output)
    assert table.column_names[:5] == ["STATE", "STATE_label", "AGE_from", "AGE_to", "AGE_label"]
    assert table["AGE_from"].to_pylist()[:4] == [0, 18, 40, 65]
    assert table["AGE_label"].to_pylist()[:4] == ["0 to 17", "18 to 39", "40 to 64", "65 to 99"]
