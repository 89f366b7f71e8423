"""Releases: totals against means worked by hand, measurements, the file as other tools read it, and damaged folders."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Ask, Budget, Column, DataError, EstimationError, Level, Release, Schema, Workload
from prade.data.read.tables import write_table
from prade.measuring.run import measure
from prade.planning.questions import TOTAL
from prade.privacy.noise_law import LAPLACE
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from prade.release.release import MEASUREMENTS, Measurement, measurement_table, read_measurements
from worlds.plans import ledger_for, plan_of
from worlds.releases import answered

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=(18, 65), integer=True, min=0, missing=True),
        Column("SEX", "categorical", values=("m", "f")),
    ]
)
GROUPS = {"STATE": [17, 17, 39], "PUMA": ["01", "02", "01"]}
COLUMNS = ["level", "group", "part", "cell", "label", "law", "scale", "noisy"]


def make(levels, budget=None):
    return plan_of(SCHEMA, *levels, groups=GROUPS, budget=budget or 1)


def filled(plan, start=0):
    """A release whose counts are start, start + 1, ... in the order of the file."""
    following = itertools.count(start)

    def answer(question, part, groups):
        return np.fromiter(following, np.int64, groups * part.n_cells).reshape(groups, part.n_cells)

    return answered(plan, answer)


@pytest.fixture(scope="module")
def plan():
    old = Predicate(parse("AGE >= 65 and SEX == 'f'", SCHEMA))
    known = Cells(["AGE"], [0, 0, 0, 1], 1, ['known, "so" to say\n'])
    return make(
        [
            Level("STATE", [Ask(Workload.marginals(SCHEMA, ["SEX"]), 2), Ask(Workload(SCHEMA, [old, known]), 4)], 1),
            Level("PUMA", Workload.marginals(SCHEMA, [("AGE", "SEX"), "SEX"]), 0),
        ]
    )


@pytest.fixture(scope="module")
def folder(plan, tmp_path_factory):
    """A real release, with noise."""
    home = tmp_path_factory.mktemp("release")
    rows = {"AGE": [3, 70, None, 40] * 50, "SEX": ["m", "f"] * 100, "STATE": [17, 39] * 100, "PUMA": ["01"] * 200}
    return measure(plan, pa.table(rows), home / "survey-2026", ledger_for(plan, home / "ledger")).path


def test_totals_by_hand(plan):
    release = filled(plan)
    # shares of 8 by state: 1 for totals (b = 8), 2 for SEX (b = 4), 4 for two parts of which a row is in both (b = 4)
    assert [float(question.scale) for question in plan.questions] == [8, 4, 4, 16]
    totals, deviation = release.totals(0)
    # totals 0, 1 with variance v(8), about 128; sums of SEX 2 + 3, 4 + 5 with 2 v(4); the others cover not everybody
    v = {b: 2 * np.exp(-1 / b) / (1 - np.exp(-1 / b)) ** 2 for b in (4, 8, 16)}
    weights = np.array([1 / v[8], 1 / (2 * v[4])])
    expected = [(0 * weights[0] + 5 * weights[1]) / weights.sum(), (1 * weights[0] + 9 * weights[1]) / weights.sum()]
    assert totals == pytest.approx(expected)
    assert deviation == pytest.approx(weights.sum() ** -0.5)
    # by PUMA no total was asked: AGE x SEX has 8 cells, SEX has 2, of the same noise, so the weights are 1 : 4
    joint, sex = release.noisy[3]
    totals, deviation = release.totals(1)
    assert totals == pytest.approx((joint.sum(axis=1) + 4 * sex.sum(axis=1)) / 5)
    assert deviation == pytest.approx((1 / (8 * v[16]) + 1 / (2 * v[16])) ** -0.5)


def test_a_level_without_any_total_says_so():
    partial = Workload(SCHEMA, [Cells(["SEX"], [0, 1], 1)])
    with pytest.raises(DataError, match="level STATE has no total, and none of its parts covers all rows"):
        filled(make([Level("STATE", partial, 0)])).totals(0)


def test_measurements_of_a_group(plan):
    release = filled(plan)
    found = release.measurements(0, 1)
    assert [measurement.part for measurement in found] == [*plan.questions[1].parts, *plan.questions[2].parts]
    assert [measurement.counts.tolist() for measurement in found] == [[4, 5], [7], [9]]  # totals 0, 1 are left out
    assert [measurement.scale.tolist() for measurement in found] == [[4, 4], [4], [4]]
    assert {measurement.law for measurement in found} == {"laplace"}
    joint, sex = release.measurements(1, 2)
    assert joint.counts.tolist() == list(range(10 + 16, 10 + 24))
    assert sex.counts.tolist() == [10 + 24 + 4, 10 + 24 + 5]
    gaussian = make([Level("STATE", Workload.marginals(SCHEMA, ["SEX"]), 0)], Budget.zcdp("1/8"))
    (measurement,) = filled(gaussian).measurements(0, 0)
    assert (measurement.law, measurement.variance.tolist()) == ("gaussian", [4, 4])
    for level in (-1, 2):
        with pytest.raises(DataError, match="levels 0 to 1"):
            filled(plan).measurements(level, 0)


def test_one_row_a_count_by_question_part_group_cell(plan):
    table = measurement_table(plan, filled(plan).noisy)
    assert table.column_names == COLUMNS
    assert table["noisy"].to_pylist() == list(range(len(table))) == list(range(2 * (1 + 2 + 1 + 1) + 3 * (8 + 2)))
    rows = table.to_pylist()
    assert tuple(rows[0].values()) == ("STATE", "STATE 17", TOTAL, 0, TOTAL, "laplace", 8.0, 0)
    cells = [(f"STATE {state}", cell, f"SEX {sex}") for state in (17, 39) for cell, sex in enumerate("mf")]
    assert [(row["group"], row["cell"], row["label"]) for row in rows[2:6]] == cells
    assert rows[8]["label"] == 'known, "so" to say\n'
    assert rows[10]["label"] == "AGE [0, 18), SEX m"
    assert {row["group"] for row in rows[10:]} == {"STATE 17, PUMA 01", "STATE 17, PUMA 02", "STATE 39, PUMA 01"}


def test_what_was_written_is_read(plan, tmp_path):
    release = filled(plan, start=-20)
    write_table(measurement_table(plan, release.noisy), tmp_path / MEASUREMENTS)
    found = read_measurements(tmp_path / MEASUREMENTS, plan)
    for mine, theirs in zip(release.noisy, found, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert one.tolist() == other.tolist()
    with pytest.raises(DataError, match="has 40 counts, but its plan asks for 2"):
        read_measurements(tmp_path / MEASUREMENTS, make([Level("STATE", [], 1)]))


def test_load(plan, folder):
    release = Release.load(str(folder))
    assert (release.plan, release.path) == (plan, folder)
    shapes = [[counts.shape for counts in answers] for answers in release.noisy]
    assert shapes == [[(2, 1)], [(2, 2)], [(2, 1), (2, 1)], [(3, 8), (3, 2)]]
    assert repr(release) == f"Release({str(folder)!r}, {plan!r})"
    again = Release.load(folder)
    assert again.totals(1)[0].tolist() == release.totals(1)[0].tolist()
    # 100 rows a state; beyond 20 deviations noise does not come in a lifetime
    totals, deviation = release.totals(0)
    assert np.abs(totals - 100).max() < 20 * deviation
    assert "STATE: number of rows: epsilon = 0.125, Laplace noise of scale 8" in release.account()


@pytest.fixture
def damaged(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_changed_files_are_noticed(damaged):
    noisy = pq.read_table(damaged / MEASUREMENTS)
    place = noisy.column_names.index("noisy")
    pq.write_table(noisy.set_column(place, "noisy", pa.array(range(len(noisy)))), damaged / MEASUREMENTS)
    with pytest.raises(DataError, match=r"measurements\.parquet has changed since the release was made"):
        Release.load(damaged)
    plan = damaged / "plan.toml"
    plan.write_text(plan.read_text(encoding="utf-8").replace('epsilon = "1"', 'epsilon = "2"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"plan\.toml has changed"):
        Release.load(damaged)


def test_a_manifest_that_says_something_else_is_noticed(damaged):
    path = damaged / "release.json"
    other = json.dumps({**json.loads(path.read_text(encoding="utf-8")), "dataset": "another"})
    for text in (other, "", "{", "[]", "5", "{}", '{"format": "1"}', "\x00"):
        path.write_text(text)
        with pytest.raises(DataError, match=r"release\.json is damaged"):
            Release.load(damaged)


PART = Marginal.of(Schema.from_mbi({"a": 3, "b": 2}), ["a"])


def test_counts_and_scales_are_copied_as_floats():
    counts, scale = np.array([1.0, -2.0, 3.0]), np.array([0.0, 1.0, 2.0])
    measured = Measurement(PART, counts, scale, "gaussian")
    counts[0], scale[0] = np.nan, -1.0
    assert (measured.counts.tolist(), measured.scale.tolist()) == ([1.0, -2.0, 3.0], [0.0, 1.0, 2.0])
    measured = Measurement(PART, [1, -2, 3], 2)
    assert measured.counts.dtype == np.float64
    assert (measured.scale.tolist(), measured.law) == ([2.0, 2.0, 2.0], "laplace")
    with pytest.raises(AttributeError):
        measured.counts = np.zeros(3)


SHAPES, NUMBERS = "counts have shape", "counts that are numbers, and scales that are at least 0"


@pytest.mark.parametrize(
    ("counts", "scale", "law", "words"),
    [
        ([1, 2], 1.0, "laplace", SHAPES),
        ([1, 2, 3], [1.0, 1.0], "laplace", SHAPES),
        ([1, np.nan, 3], 1.0, "laplace", NUMBERS),
        ([1, 2, -np.inf], 1.0, "gaussian", NUMBERS),
        ([1, 2, 3], [1.0, 0.0, -1e-9], "laplace", NUMBERS),
        ([1, 2, 3], np.nan, "laplace", NUMBERS),
        ([1, 2, 3], 1.0, "Laplace", "'Laplace'; it is 'laplace' or 'gaussian'"),
    ],
)
def test_what_is_refused(counts, scale, law, words):
    with pytest.raises(EstimationError, match=f"^a: .*{words}"):
        Measurement(PART, counts, scale, law)
    if np.shape(counts) == (3,) and np.shape(scale) != () and words == NUMBERS:
        with pytest.raises(EstimationError, match=words):
            Measurement.of_parts([PART], np.array(counts, float), np.broadcast_to(scale, 3), LAPLACE)
