"""Estimates as objects and files, apart from any estimator."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import DataError, EstimationError, Schema, Workload
from prade.data.declare.column import Column
from prade.data.public.joint import Prior
from prade.estimating.estimate import Estimate, PartFit, Report, Status, TraceRow
from prade.estimating.layout import Layout

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
    settings={"n0": 17.3, "solver": "Newton"},
    certificate={"dual": -1e-17},
)


@pytest.fixture
def estimate() -> Estimate:
    codes = {"AGE": np.array([0, 1, 3], np.uint8), 'it\'s "odd"': np.array([1, 0, 1], np.uint8)}
    return Estimate(SCHEMA, codes, REPORT, weights=np.array([0.1, 0.2, 0.7]))


def test_file_keeps_everything(estimate, tmp_path):
    path = tmp_path / "e.parquet"
    estimate.save(path)
    again = Estimate.load(path)
    assert again.schema == SCHEMA
    assert repr(again.report) == repr(REPORT)  # NaN equals NaN in text
    assert again.report.unreachable == 0.5
    assert again.weights.tobytes() == estimate.weights.tobytes()
    for name, code in estimate.codes.items():
        assert again.codes[name].dtype == code.dtype
        assert again.codes[name].tolist() == code.tolist()


@pytest.mark.parametrize("status", Status)
def test_every_status_survives_the_file_and_has_advice(estimate, tmp_path, status):
    report = Report("IDE", status, 1.0, 0.0, 0.0, 0.0, ())
    Estimate(SCHEMA, estimate.codes, report, weights=estimate.weights).save(tmp_path / "e.parquet")
    again = Estimate.load(tmp_path / "e.parquet")
    assert again.status is status
    assert again.status.advice.endswith(".")
    assert again.report.unreachable == 0.0


def test_the_file_is_readable_by_others(estimate, tmp_path):
    estimate.save(tmp_path / "e.parquet")
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.num_rows == 3
    header = json.loads(table.schema.metadata[b"prade"])
    assert header["format"] == 1
    assert header["report"]["status"] == "stalled"


def rewrite(path, change):
    """The same file with another header."""
    table = pq.read_table(path)
    header = change(json.loads(table.schema.metadata[b"prade"]))
    text = header if isinstance(header, bytes) else json.dumps(header)
    pq.write_table(table.replace_schema_metadata({"prade": text}), path)


def test_a_newer_file_is_refused_with_advice(estimate, tmp_path):
    path = tmp_path / "e.parquet"
    estimate.save(path)
    rewrite(path, lambda header: {**header, "format": 2})
    with pytest.raises(DataError, match=r"e.parquet has file format 2.*up to 1; update prade"):
        Estimate.load(path)


def test_a_newer_file_is_refused_even_if_it_looks_nothing_like_ours(tmp_path):
    # a later format may name its columns and header otherwise; the advice is still to update
    path = tmp_path / "e.parquet"
    table = pa.table({"x": [1]}).replace_schema_metadata({"prade": json.dumps({"format": 99})})
    pq.write_table(table, path)
    with pytest.raises(DataError, match="update prade"):
        Estimate.load(path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda header: [1, 2], id="a list"),
        pytest.param(lambda header: {}, id="no fields"),
        pytest.param(lambda header: b"{not json", id="not JSON"),
        pytest.param(lambda header: {**header, "format": "one"}, id="format is text"),
        pytest.param(lambda header: {**header, "report": {}}, id="empty report"),
        pytest.param(lambda header: {k: v for k, v in header.items() if k != "schema"}, id="no schema"),
        pytest.param(
            lambda header: {**header, "report": {**header["report"], "status": "splendid"}}, id="unknown status"
        ),
    ],
)
def test_a_damaged_header_is_a_data_error(estimate, tmp_path, change):
    path = tmp_path / "e.parquet"
    estimate.save(path)
    rewrite(path, change)
    with pytest.raises(DataError, match=r"e\.parquet"):
        Estimate.load(path)


def test_what_is_not_an_estimate_is_refused(estimate, tmp_path):
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"AGE": [1, 2]}), plain)
    with pytest.raises(DataError, match=r"plain.parquet does not contain a saved estimate.*Estimate.save"):
        Estimate.load(plain)
    estimate.save(tmp_path / "e.parquet")
    pq.write_table(pq.read_table(tmp_path / "e.parquet").select(["AGE"]), plain)
    with pytest.raises(DataError, match="does not contain a saved estimate"):
        Estimate.load(plain)
    junk = tmp_path / "junk.parquet"
    junk.write_bytes(b"this is no parquet file at all")
    with pytest.raises(DataError):
        Estimate.load(junk)
    table = tmp_path / "table.csv"
    table.write_text("AGE\n1\n")
    with pytest.raises(DataError):
        Estimate.load(table)
    with pytest.raises((DataError, FileNotFoundError)):
        Estimate.load(tmp_path / "absent.parquet")


def test_saving_replaces_the_file_whole(estimate, tmp_path):
    path = tmp_path / "e.parquet"
    path.write_bytes(b"old")
    estimate.save(path)
    assert len(Estimate.load(path)) == 3
    assert [each.name for each in tmp_path.iterdir()] == ["e.parquet"]


def test_an_estimate_needs_weights_or_multipliers():
    codes = {"AGE": np.array([0], np.uint8)}
    prior = Prior(SCHEMA, codes, np.array([1.0]))
    layout = Layout(prior, Workload.marginals(SCHEMA, ["AGE"]))
    for given in ({}, {"layout": layout}, {"multipliers": np.zeros(4)}):
        with pytest.raises(EstimationError, match="weights, or multipliers with their layout"):
            Estimate(SCHEMA, codes, REPORT, **given)


def test_weights_come_from_the_multipliers_when_they_are_asked_for():
    codes = {"AGE": np.array([0, 1, 2], np.uint8)}
    prior = Prior(SCHEMA, codes, np.array([1.0, 1.0, 2.0]))
    layout = Layout(prior, Workload.marginals(SCHEMA, ["AGE"]))
    late = Estimate(SCHEMA, codes, REPORT, layout=layout, multipliers=np.array([np.log(4.0), 0.0, 0.0, 9.0]))
    assert len(late) == 3
    assert "weights" not in vars(late)
    assert late.weights == pytest.approx(np.array([4, 1, 2]) / 7)
    assert late.weights is late.weights


def test_sample_edges():
    codes = {"AGE": np.array([0, 1, 2, 3], np.uint8)}
    sure = Estimate(SCHEMA, codes, REPORT, weights=np.array([0.0, 1.0, 0.0, 0.0]))
    assert set(sure.sample(100, seed=0).codes["AGE"].tolist()) == {1}
    even = Estimate(SCHEMA, codes, REPORT, weights=np.full(4, 0.25))
    assert np.bincount(even.sample(400, seed=9).codes["AGE"]).tolist() == [100] * 4
    for seed in range(200):
        last = Estimate(SCHEMA, codes, REPORT, weights=np.array([0.5, 0.5 - 1e-16, 1e-16, 0.0]))
        assert 3 not in last.sample(3, seed=seed).codes["AGE"]


def test_sample_order_is_random():
    codes = {"AGE": np.arange(4, dtype=np.uint8)}
    even = Estimate(SCHEMA, codes, REPORT, weights=np.full(4, 0.25))
    drawn = even.sample(400, seed=0).codes["AGE"].astype(int)
    assert abs(np.corrcoef(drawn, np.arange(400))[0, 1]) < 0.2


def test_many_small_weights_add_up():
    # the sum of a million weights is not exactly one; no mark may fall behind the last row
    generator = np.random.default_rng(0)
    weights = generator.random(200_000)
    codes = {"AGE": np.zeros(200_000, np.uint8)}
    large = Estimate(SCHEMA, codes, REPORT, weights=weights / weights.sum())
    assert len(large.sample(300_000, seed=1)) == 300_000


def test_only_parquet_can_keep_an_estimate(estimate, tmp_path):
    with pytest.raises(DataError, match=r"ends in \.parquet"):
        estimate.save(tmp_path / "e.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_codes_or_weights_that_cannot_be_is_refused(estimate, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "e.parquet"
    estimate.save(path)
    table = pq.read_table(path)
    for name, values in (("AGE", [0, 1, 99]), ("prade:weight", [9.0, -9.0, 1.0])):
        at = table.column_names.index(name)
        pq.write_table(table.set_column(at, name, pa.array(values, table.schema.field(name).type)), path)
        with pytest.raises(DataError, match=r"outside|negative"):
            Estimate.load(path)
