"""What a schema is, what it refuses, and the files it is read from."""

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade.core.errors import DataError, SchemaError, WorkloadError
from prade.data.declare.schema import Column, Schema
from prade.data.public.joint import encode

HOURS = Column("WKHP", "numeric", edges=(1, 10, 40), integer=True, min=1, max=99, missing=True)
SEX = Column("SEX", "categorical", values=(1, 2))
DAYS = Column("D", "numeric", edges=(datetime.date(1970, 1, 2), datetime.date(1970, 2, 1)))


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Column("ENG", "categorical", values=(1, 2, 3), missing=True), ["1", "2", "3", "missing"]),
        (HOURS, ["[1, 10)", "[10, 40)", "[40, 99]", "missing"]),  # an edge at the minimum is no cut
        (Column("X", "numeric", edges=(0, 5, 10, 11), min=0, max=10), ["[0, 5)", "[5, 10)", "[10, 10]"]),
        (Column("X", "numeric", edges=(0.5, 2)), ["(-inf, 0.5)", "[0.5, 2)", "[2, inf)"]),
        (DAYS, ["(-inf, 1970-01-02)", "[1970-01-02, 1970-02-01)", "[1970-02-01, inf)"]),
    ],
)
def test_the_cells_of_a_column(column, texts):
    assert column.cell_texts() == texts
    assert column.size == len(texts)


INCOME = Column("PINCP", "numeric", edges=(0.5, 5000), integer=True)
ROOMS = Column("NP", "numeric", edges=(2, 3, 5), integer=True, min=1)
LISTED = Column("X", "categorical", values=(3, 1, 2), missing=True)
TRUTHS = Column("B", "categorical", values=(False, True))


@pytest.mark.parametrize(
    ("column", "op", "value", "expected"),
    [
        (HOURS, ">=", -math.inf, [1, 1, 1, 0]),
        (INCOME, ">", 0, [0, 1, 1]),  # cuts of whole numbers are compared rounded up
        (INCOME, ">=", 1, [0, 1, 1]),
        (ROOMS, "==", 1, [1, 0, 0, 0]),
        (Column("X", "numeric", edges=(20.0,)), ">=", 20, [0, 1]),
        (DAYS, ">=", "1970-02-01", [0, 0, 1]),
        (DAYS, ">=", datetime.date(1970, 2, 1), [0, 0, 1]),
        (LISTED, "==", 1, [0, 1, 0, 0]),
        (LISTED, "<=", 2.5, [0, 1, 1, 0]),
        (TRUTHS, "==", True, [0, 1]),
    ],
)
def test_which_codes_satisfy_a_comparison(column, op, value, expected):
    assert column.satisfying(op, value).tolist() == [bool(each) for each in expected]


@pytest.mark.parametrize(
    ("column", "op", "value", "message"),
    [
        (ROOMS, "==", 3, r"the bin \[3, 5\) contains other values"),
        (HOURS, ">=", 36, "WKHP >= 36 .*nearest edges are 10 and 40"),
        (Column("X", "numeric", edges=(20.0,)), ">", 20, "edge of a bin: the nearest edge is 20"),
        (DAYS, ">=", "New Year", "a date such as '2020-12-31'"),
        *((HOURS, ">=", value, "with a number") for value in ("5", True, math.nan, None)),
        (SEX, "==", 3, "one of the values of SEX, written as 1, 2"),
        (Column("C", "categorical", values=("a", "b")), "==", 2, 'written as "a", "b"'),
        (Column("C", "categorical", values=("a", "b")), "<", "b", "no order"),
        (Column("C", "categorical", values=("a", "b")), "=", "b", "not a comparison"),
    ],
)
def test_what_codes_cannot_decide_is_refused(column, op, value, message):
    with pytest.raises(WorkloadError, match=message):
        column.satisfying(op, value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('name = "A"\nkind = [3]', r"column 'A': kind is \[3\]; use one of"),
        ('name = 3\nkind = "numeric"', "a column's name is a text.*, got 3"),
        ('kind = "numeric"', "column 1 of the file: name is missing"),
        ('name = "A"\nedges = [1]', "column 'A': kind is missing"),
    ],
)
def test_a_column_without_a_name_or_kind_is_refused(body, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml("version = 1\n[[column]]\n" + body)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("numeric", "edgs = [1]", "column 'A': unknown key 'edgs'; did you mean 'edges'.*the keys are name, kind"),
        ("numeric", "", "column 'A': a numeric column needs edges"),
        ("numeric", "edges = [5, 1]", "edge 1 follows 5; list .* in ascending order"),
        ("numeric", 'edges = [1, "b"]', r"column 'A': edges must be numbers or dates .*, got 'b'"),
        ("numeric", "edges = 5", "column 'A': edges is 5; give a list"),
        ("numeric", "edges = [5]\nmin = 10", "column 'A': no edge is within min 10, .*add an"),
        ("numeric", "integer = true\nedges = [0.2, 0.7]", "there is no whole number from"),
        ("numeric", "integer = true\nedges = [1e16]", "edges must be whole numbers up to"),
        ("numeric", "edges = [1]\nvalues = [1]", "values is for categorical or group columns, not for numeric"),
        ("numeric", "edges = [1, 2020-01-01]", "all be dates"),
        ("categorical", "", "list of values is empty; give at least one"),
        ("categorical", "values = [1, 1]", "value 1 is listed twice"),
        ("categorical", 'values = [1, "1"]', 'mix int and str; .*"1", "1"'),
        ("categorical", "values = [[1]]", "values must be text, true/false"),
        ("categorical", "values = [9223372036854775808]", "at most 64 bits"),
        ("categorical", "values = [1]\nother = 9", "other is 9, which is not among"),
        ("categorical", 'values = [1]\nunknown = "drop"', "unknown is 'drop'; use one of"),
        ("categorical", 'values = [1]\nunknown = "other"', "needs a value to use"),
        ("categorical", 'values = [1]\nunknown = "clip"', "needs a numeric column"),
        ("categorical", "values = [1]\nmissing = 1", "column 'A': missing is 1; use true or false"),
    ],
)
def test_a_column_that_contradicts_itself_is_refused(kind, body, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(f'version = 1\n[[column]]\nname = "A"\nkind = "{kind}"\n{body}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = 2", "version is 2, but this version of prade reads `version = 1`"),
        ("version = 1", r"write a \[\[column\]\] table"),
        ("version = 1\ncolumns = 3", "unknown key 'columns'; did you mean 'column'"),
        ("version = ", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(text)


def test_refusals_of_a_schema_and_its_file(tmp_path):
    for columns, message in (([SEX, SEX], "'SEX' is declared twice"), ([], "at least one column")):
        with pytest.raises(SchemaError, match=message):
            Schema(columns)
    with pytest.raises(SchemaError, match=r"no column 'SEXX'.*did you mean 'SEX'"):
        Schema([SEX])["SEXX"]
    with pytest.raises(SchemaError, match="no schema file at"):
        Schema.load(tmp_path / "none.toml")
    (tmp_path / "a.toml").write_text("version = 1")
    with pytest.raises(SchemaError, match=r"a\.toml: the schema has"):
        Schema.load(tmp_path / "a.toml")


def test_equality_tells_types_apart():
    ones, truths = (Column("X", "categorical", values=values) for values in ((0, 1), (False, True)))
    assert ones != truths
    assert Schema([ones]) != Schema([truths])
    assert Schema([ones]).fingerprint() != Schema([truths]).fingerprint()
    assert hash(Schema([SEX])) == hash(Schema([Column("SEX", "categorical", values=[1, 2])]))


def test_groups_come_from_a_list_that_may_nest():
    schema = Schema([Column("STATE", "group"), Column("PUMA", "group"), SEX])
    assert (schema.groups, schema.coded) == (("STATE", "PUMA"), ("SEX",))
    with pytest.raises(SchemaError, match=r"'PUMA'.*schema\.with_groups"):
        schema.size("PUMA")
    filled = schema.with_groups({"STATE": [36, 36, 42], "PUMA": ["a", "b", "c"]})
    assert (filled["STATE"].values, filled.size("PUMA")) == ((36, 42), 3)
    for table, message in (
        ({"STATE": [1], "PUMAS": [1]}, r"'PUMA'.*no such column; did you mean 'PUMAS'"),
        ({"STATE": [1], "PUMA": [None]}, "empty cell"),
        ("nowhere.csv", "no file"),
    ):
        with pytest.raises((SchemaError, DataError), match=message):
            schema.with_groups(table)


def test_save_and_load(tmp_path):
    values = ('quote " = [', "back\\slash", "line\nbreak", "]")
    columns = [
        Column("NAME", "categorical", values=values, other="]"),
        Column("Z", "categorical", values=(0, 1), other=0),
    ]
    real = Column("F", "numeric", edges=(0.1, 1e300), min=0, unknown="clip")
    schema = Schema([*columns, real, Column("G", "group")])
    schema.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == schema
    assert [path.name for path in tmp_path.iterdir()] == ["schema.toml"]
    assert "values = [1, 2]\n" in Schema([SEX]).to_toml()
    body = 'version = 1\n[[column]]\nname = "D"\nkind = "categorical"\nvalues = [2020-01-01, 2020-01-02]'
    assert Schema.from_toml(body)["D"].values == ("2020-01-01", "2020-01-02")


DAY = datetime.date(2020, 1, 1)
PUBLIC = {
    "PLACE": ["a", "b"] * 50,
    "WEIGHT": [1.5] * 100,
    "AGE": list(range(100)),
    "CODE": ["N", "1", "2", "3"] * 25,
    "ZIP": ["01", "02"] * 50,
    "FLAG": [True, None] * 50,
    "PAY": np.arange(100) * 1234.5,
    "DAY": [DAY + datetime.timedelta(days=day) for day in range(100)],
    "RATE": [0.5] * 100,
}


def test_a_draft_has_a_column_of_each_kind():
    schema = Schema.infer(PUBLIC, groups=["PLACE"], weight="WEIGHT")
    assert schema.names == ("PLACE", "AGE", "CODE", "ZIP", "FLAG", "PAY", "DAY", "RATE")
    for listed in (
        Column("PLACE", "group", values=("a", "b")),
        Column("CODE", "categorical", values=(1, 2, 3), missing=True),
        Column("ZIP", "categorical", values=("01", "02")),
        Column("FLAG", "categorical", values=(True,), missing=True),
        Column("RATE", "categorical", values=(0.5,)),
    ):
        assert schema[listed.name] == listed
    assert (schema["AGE"].integer, schema["AGE"].min, schema["AGE"].max) == (True, 0, 99)
    assert (schema["PAY"].integer, schema["DAY"].dates) == (False, True)
    assert Schema.from_toml(schema.to_toml()) == schema


def test_bins_are_round_and_hold_about_as_many_rows_each():
    incomes = np.round(np.exp(np.random.default_rng(0).normal(10, 1, 20_000)), 2)
    column = Schema.infer({"PAY": incomes}, bins=10)["PAY"]
    assert 7 <= column.size <= 10
    held = np.bincount(np.searchsorted(column.cuts, incomes, side="right")) / len(incomes)
    assert held.max() < 0.25
    assert all(len(f"{cut:g}".rstrip("0")) <= 3 for cut in column.cuts)


def test_times_in_a_csv_are_binned_by_day_and_groups_keep_their_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("WEEK,T\n2020-01-06T00:00:00,2020-01-06T05:00:00\n2020-01-13T00:00:00,2020-01-14 05:00:00\n")
    schema = Schema.infer(path, groups="WEEK")
    assert schema["T"].dates
    assert schema["T"].cell_texts() == ["[2020-01-06, 2020-01-14)", "[2020-01-14, 2020-01-14]"]
    assert encode(schema, path).codes["T"].tolist() == [0, 1]
    assert schema["WEEK"].values == ("2020-01-06T00:00:00", "2020-01-13T00:00:00")
    typed = pa.table({"WEEK": [datetime.datetime(2020, 1, 6), datetime.datetime(2020, 1, 6, 5)]})
    for table in (path, typed):
        listed = Schema([Column("WEEK", "group", missing=True)]).with_groups(table)
        assert encode(listed, table, columns=["WEEK"]).codes["WEEK"].tolist() == [0, 1]
    days = {"D": [DAY] * 3}  # one day only leaves room for others
    assert Schema.infer(days)["D"].cell_texts() == ["(-inf, 2020-01-01)", "[2020-01-01, inf)"]


@given(st.lists(st.floats(-1e300, 1e300, allow_subnormal=False), min_size=2, max_size=20, unique=True))
def test_few_fractions_have_a_bin_each(numbers):
    numbers = [*numbers, 0.5]  # so that they are not all whole
    distinct = sorted(set(numbers))
    codes = encode(Schema.infer({"X": numbers}, bins=30), {"X": distinct}).codes["X"]
    assert codes.tolist() == list(range(len(distinct)))


def test_names_too_many_are_refused_by_name():
    table = {"NAME": [f"n{place}x" for place in range(100)], "SEX": [1, 2] * 50}
    with pytest.raises(SchemaError, match=r"at all: NAME; .*skip="):
        Schema.infer(table)
    assert Schema.infer(table, skip=["NAME"]).names == ("SEX",)
    with pytest.raises(SchemaError, match="no column 'SEXX'; did you mean"):
        Schema.infer(table, groups=["SEXX"])


def test_ages_have_the_edges_that_people_ask_about_and_other_columns_quantiles():
    for name in ("AGE", "AGEP", "age_years", "Person_Age"):
        edges = Schema.infer({name: list(range(96)) * 2})[name].edges
        assert {18, 25, 65} <= set(edges)
        assert len(edges) < 20
    for name in ("WAGE", "AGENCY", "PAGES", "VILLAGE"):
        assert Schema.infer({name: list(range(96)) * 2})[name].edges == tuple(range(5, 95, 5))
    assert Schema.infer({"AGE": list(range(96))}, bins=5)["AGE"].edges == (20, 40, 50, 80)  # 19, 38, 57 and 76, rounded
