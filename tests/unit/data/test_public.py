"""Public rows and their groups: which group of a plan each is in, weights, cells of groups."""

import numpy as np
import pyarrow as pa
import pytest

from prade import Column, DataError, Groups, Schema
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Coded
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.data.read.files import write_with_header
from worlds.survey import SEX, STATE

SCHEMA = Schema([STATE, Column("PUMA", "group"), Column("AGE", "numeric", edges=[18, 65]), SEX])
TABLE = {
    "STATE": [17, 17, 39, 39, 39],
    "PUMA": ["a", "b", "a", "a", "c"],
    "AGE": [3, 40, 70, 20, 90],
    "SEX": [1, 2, 1, 1, 2],
}


def test_groups_are_those_of_the_rows():
    public = Public.of(SCHEMA, TABLE, ["STATE", "PUMA"])
    assert public.groups.by == ("STATE", "PUMA")
    assert public.groups.values == ((17, "a"), (17, "b"), (39, "a"), (39, "c"))
    assert public.group.tolist() == [0, 1, 2, 2, 3]
    np.testing.assert_allclose(public.group_weights, [0.2, 0.2, 0.4, 0.2])
    without = Public.of(SCHEMA, {name: TABLE[name] for name in ("PUMA", "AGE", "SEX")}, ["STATE", "PUMA"])
    assert without.groups.values == (("a",), ("b",), ("c",))
    alone = Public.of(SCHEMA, {name: TABLE[name] for name in ("AGE", "SEX")}, ["STATE", "PUMA"])
    assert (alone.groups.values, alone.group.any()) == (((),), False)
    with pytest.raises(DataError, match="2 public rows have no value in STATE, PUMA; remove these rows"):
        Public.of(SCHEMA, {**TABLE, "PUMA": ["a", None, "a", None, "c"]}, ["STATE", "PUMA"])


def test_weights_are_those_of_a_column_and_rows_without_are_left_out():
    public = Public.of(SCHEMA, {**TABLE, "W": [0, 2, 3, 3, 0]}, ["STATE", "PUMA"], weight="W")
    assert public.groups.values == ((17, "b"), (39, "a"))
    assert (public.group.tolist(), public.prior.codes["AGE"].tolist()) == ([0, 1, 1], [1, 2, 1])
    np.testing.assert_allclose(public.prior.weights, [0.25, 0.375, 0.375])
    np.testing.assert_allclose(public.group_weights, [0.25, 0.75])
    some = public.take(np.array([0, 2]))
    assert some.groups is public.groups
    assert (some.group.tolist(), some.prior.codes["AGE"].tolist()) == ([0, 1], [1, 1])
    np.testing.assert_allclose(some.prior.weights, [2 / 5, 3 / 5])


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_groups_survive_a_file_to_the_last_bit(tmp_path, seed):
    """Estimates know their public rows by a fingerprint: a bit off would be another table.

    Weights are divided by their sum, and a quarter of them would change if that were done once more.
    """
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, 100)
    table = {**{name: values * 20 for name, values in TABLE.items()}, "W": weights}
    public = Public.of(SCHEMA, table, ["STATE", "PUMA"], weight="W")
    public.save(tmp_path / "support.parquet")
    again = Public.load(tmp_path / "support.parquet")
    assert again.prior.weights.tobytes() == public.prior.weights.tobytes()
    assert all(np.array_equal(again.prior.codes[name], code) for name, code in public.prior.codes.items())
    assert np.array_equal(again.group, public.group)
    assert again.numbers["AGE"].tobytes() == public.numbers["AGE"].tobytes()
    listed = Groups.of({"STATE": [39, 17], "PUMA": ["a", "b"]})
    for by in (["STATE"], ["STATE", "PUMA"]):
        one, other = (RecurringGroups.of(each.groups, listed.level(by)) for each in (again, public))
        assert np.array_equal(one.keys, other.keys)
        assert np.array_equal(one.of_group, other.of_group)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "support.parquet"
    table, header = Public.of(SCHEMA, TABLE, ["STATE"]).as_table()
    for damaged in (table.slice(0, 0), table.set_column(0, table.column_names[0], pa.array(["x"] * 5))):
        write_with_header(damaged, header, path)
        with pytest.raises(DataError, match="does not contain saved public rows"):
            Public.load(path)
    for changed in ({"by": []}, {"groups": [["17"]]}, {"added": 5}, {"schema": 3}):
        write_with_header(table, {**header, **changed}, path)
        with pytest.raises(DataError, match="does not contain saved public rows"):
            Public.load(path)


def test_numbers_beside_a_text_for_missing_keep_their_type(tmp_path):
    """The issue's own case: 1000.0 came back as text, because other cells of the column are "N"."""
    rows = [f"{'N' if k % 4 == 0 else 1000.0 * k},{'N' if k % 5 == 0 else k % 3},{'abc'[k % 3]}" for k in range(160)]
    (tmp_path / "public.csv").write_text("\n".join(["PAY,KIND,NAME", *rows]) + "\n")
    table = PublicTable(tmp_path / "public.csv")
    schema = table.draft()
    assert schema["PAY"].numeric
    coded = Coded(schema, table.rows(schema).prior.codes)
    drawn = table.decoder(schema).decode(coded, seed=0)
    assert [str(drawn.schema.field(name).type) for name in ("PAY", "KIND", "NAME")] == ["double", "int64", "string"]
    assert drawn["PAY"].null_count == 40
    assert set(drawn["PAY"].drop_null().to_pylist()) <= {1000.0 * k for k in range(160)}


@pytest.mark.parametrize("kind", ["numbers", "text", "objects", "categories"])
def test_numbers_are_those_of_the_table_and_inside_their_bins(kind):
    """Outside the schema's range they are moved to the nearest bound, as their codes are."""
    import pandas as pd

    column = Column("AGE", "numeric", edges=[18, 65], integer=True, min=0, max=99, missing=True, unknown="clip")
    ages = {
        "numbers": pd.array([3, 18, 120, None, -5], "Int64"),
        "text": ["3", " 18 ", "120", None, "-5"],
        "objects": np.array([3, "18", 120.0, None, -5], object),
        "categories": pd.Categorical([3, 18, 120, None, -5]),
    }[kind]
    public = Public.of(Schema([column]), pd.DataFrame({"AGE": ages}))
    np.testing.assert_array_equal(public.numbers["AGE"], [3, 18, 99, np.nan, 0])
    assert public.take(np.array([2, 0])).numbers["AGE"].tolist() == [99, 3]
    alone = Column("AGE", "numeric", edges=[18, 65], integer=True, min=0, max=99)  # not a number: the middle of its bin
    assert Public.of(Schema([alone]), {"AGE": ["x", "70"]}).numbers["AGE"].tolist() == [8.5, 70]
