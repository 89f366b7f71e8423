"""Estimates as objects and files, apart from any estimator."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import DataError, Schema
from prade.data.declare.column import Column
from prade.estimating.estimate import Estimate, PartFit, Report, Status, TraceRow

SCHEMA = Schema(
    [
        Column("PLACE", "group", values=("x", "y")),
        Column("AGE", "numeric", edges=(18, 65), integer=True, min=0, max=99, missing=True),
        Column('it\'s "odd"', "categorical", values=("ä", "b b")),
    ]
)
REPORT = Report(
    estimator="MAP",
    status=Status.STALLED,
    total=1 / 3,
    kl=1e-300,
    objective=np.inf,
    gap=np.nan,
    parts=(PartFit("AGE", 0.1 + 0.2, np.inf, 0.25), PartFit("an 'odd' name", 0.0, 0.0, 0.5)),
    trace=(TraceRow(0, 1.0, 2.0, np.nan, np.nan), TraceRow(1, 2.5, -1.0, 0.1, 0.0)),
    settings={"n0": 17.3, "solver": "Newton", "max_steps": 500},
    certificate={"dual": -1e-17},
)


@pytest.fixture
def estimate() -> Estimate:
    codes = {"AGE": np.array([0, 1, 3], np.uint8), 'it\'s "odd"': np.array([1, 0, 1], np.uint8)}
    return Estimate(SCHEMA, codes, REPORT, weights=np.array([0.1, 0.2, 0.7]))


@pytest.fixture
def path(estimate, tmp_path):
    (tmp_path / "e.parquet").write_bytes(b"old")
    estimate.save(tmp_path / "e.parquet")
    assert [each.name for each in tmp_path.iterdir()] == ["e.parquet"]  # it replaces the file whole
    return tmp_path / "e.parquet"


def test_file_keeps_everything(estimate, path):
    again = Estimate.load(path)
    assert again.schema == SCHEMA
    assert repr(again.report) == repr(REPORT)  # NaN equals NaN in text
    assert again.report.unreachable == 0.5
    assert again.weights.tobytes() == estimate.weights.tobytes()
    for name, code in estimate.codes.items():
        assert (again.codes[name].dtype, again.codes[name].tolist()) == (code.dtype, code.tolist())
    table = pq.read_table(path)  # it is readable by others
    header = json.loads(table.schema.metadata[b"prade"])
    assert (table.num_rows, header["format"], header["report"]["status"]) == (3, 1, "stalled")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: [1, 2], "e.parquet does not contain a saved estimate"),
        (lambda header: b"{not json", "not valid JSON"),
        (lambda header: {**header, "format": 2}, r"e.parquet has file format 2.*up to 1; update prade"),
        (lambda header: {**header, "report": {**header["report"], "status": "splendid"}}, "splendid"),
    ],
)
def test_a_damaged_header_is_a_data_error(path, change, message):
    table = pq.read_table(path)
    header = change(json.loads(table.schema.metadata[b"prade"]))
    text = header if isinstance(header, bytes) else json.dumps(header)
    pq.write_table(table.replace_schema_metadata({"prade": text}), path)
    with pytest.raises(DataError, match=message):
        Estimate.load(path)


def test_what_is_not_an_estimate_is_refused(path):
    table = pq.read_table(path)
    for other in (pa.table({"AGE": [1, 2]}), table.select(["AGE"])):
        pq.write_table(other, path)
        with pytest.raises(DataError, match=r"e.parquet does not contain a saved estimate.*Estimate.save"):
            Estimate.load(path)
    for name, values in (("AGE", [0, 1, 99]), ("prade:weight", [9.0, -9.0, 1.0])):
        at = table.column_names.index(name)
        pq.write_table(table.set_column(at, name, pa.array(values, table.schema.field(name).type)), path)
        with pytest.raises(DataError, match=r"AGE|negative"):
            Estimate.load(path)


AGES = {"AGE": np.array([0, 1, 2, 3], np.uint8)}


def test_samples():
    sure = Estimate(SCHEMA, AGES, REPORT, weights=np.array([0.0, 1.0, 0.0, 0.0]))
    assert set(sure.sample(100, seed=0).codes["AGE"].tolist()) == {1}
    drawn = Estimate(SCHEMA, AGES, REPORT, weights=np.full(4, 0.25)).sample(400, seed=0).codes["AGE"].astype(int)
    assert np.bincount(drawn).tolist() == [100] * 4
    assert abs(np.corrcoef(drawn, np.arange(400))[0, 1]) < 0.2  # in random order
    for seed in range(200):
        last = Estimate(SCHEMA, AGES, REPORT, weights=np.array([0.5, 0.5 - 1e-16, 1e-16, 0.0]))
        assert 3 not in last.sample(3, seed=seed).codes["AGE"]
    # the sum of many weights is not exactly one; no mark may fall behind the last row
    weights = np.random.default_rng(0).random(200_000)
    large = Estimate(SCHEMA, {"AGE": np.zeros(200_000, np.uint8)}, REPORT, weights=weights / weights.sum())
    assert len(large.sample(300_000, seed=1)) == 300_000
