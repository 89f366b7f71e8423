"""Tables with one column, with hardly any rows, and with a column that is always missing go all the way."""

import numpy as np
import pyarrow as pa
import pytest

import prade
from prade import Column, Schema, Task
from prade.core.errors import SchemaError
from prade.data.public.joint import encode
from prade.data.read.tables import read_table
from prade.examples import census_like
from prade.pipeline import write_sample

DATA = census_like(persons=600, places_per_state=3, years=(2023, 2024), seed=5)
PLACES = DATA.groups.group_by(["STATE", "PLACE"]).aggregate([])


def way(tmp_path, schema, public, private):
    """The five stages, and the score."""
    task = Task("people", schema, 4, levels=["STATE", "PLACE"], groups=PLACES)
    plan = prade.plan(task, public, seconds=0.0)
    release = prade.measure(plan, private, tmp_path / "release", tmp_path / "ledger", cap=4, public=public)
    estimates = prade.estimate(release, public)
    rows = prade.sample(estimates, public, seed=1, like="pyarrow")
    write_sample(estimates, None, public, seed=1)
    page = prade.report(release, tmp_path / "report.html")
    return plan, estimates, rows, page, prade.score(private, rows, schema, ["STATE", "PLACE"])


def test_a_schema_of_one_column_goes_all_the_way(tmp_path):
    names = ["STATE", "PLACE", "AGE"]
    public, private = DATA.public.select(names), DATA.private.select(names)
    plan, estimates, rows, page, score = way(tmp_path, DATA.schema.select(names), public, private)
    assert plan.expected is not None
    assert 0 < plan.expected.error < plan.expected.prior < 2
    assert rows.column_names == names
    assert score.pair_names == (("AGE", "AGE"),)
    assert 0 < score.mean < 0.2  # noise of scale 1/4 in counts of about 30 rows
    assert "the one-way table of AGE" in str(score)
    assert estimates.answer("AGE >= 65", "STATE").num_rows == 2
    assert page.stat().st_size > 10_000
    assert prade.report(estimates.release, tmp_path / "true.html", truth=private).exists()


ALWAYS_MISSING = Column("GONE", "categorical", missing=True)


def test_a_column_without_values_needs_missing():
    with pytest.raises(SchemaError, match="missing = true if all are"):
        Column("GONE", "categorical")
    schema = Schema([ALWAYS_MISSING])
    assert (ALWAYS_MISSING.size, ALWAYS_MISSING.cell_texts()) == (1, ["missing"])
    assert Schema.from_toml(schema.to_toml()) == schema
    cells = [None, 1, "x", 2.5, True]
    assert encode(schema, {"GONE": cells}).codes["GONE"].tolist() == [0] * 5


def test_a_column_that_is_always_missing_goes_all_the_way(tmp_path):
    names = ["STATE", "PLACE", "AGE", "SEX"]
    public, private = (
        table.select(names).append_column("GONE", pa.nulls(table.num_rows, pa.float64()))
        for table in (DATA.public, DATA.private)
    )
    schema = Schema([*DATA.schema.select(names).columns, ALWAYS_MISSING])
    _, estimates, rows, _, score = way(tmp_path, schema, public, private)
    assert rows["GONE"].null_count == rows.num_rows
    assert rows["GONE"].type == pa.float64()
    assert np.allclose(estimates.answer("GONE is missing")["share"].to_numpy(), 1)
    assert score.mean < 0.5
    assert read_table(tmp_path / "release" / "synthetic.parquet").column_names == [*names, "GONE"]
