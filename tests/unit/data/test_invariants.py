"""Invariants in schema files: what may be written, what is read, and what is refused with a remedy."""

import pyarrow as pa
import pytest

from prade import Column, PublishedTotals, Rule, Schema
from prade.core.errors import PradeError, SchemaError
from prade.data.declare.schema import LARGEST_TOTAL
from prade.data.read.tables import write_table

COLUMNS = [
    Column("STATE", "group"),
    Column("AGE", "numeric", edges=[15, 65]),
    Column("MAR", "categorical", values=[1, 2, 5]),
]
HEAD = """\
version = 1

[[column]]
name = "AGE"
kind = "numeric"
edges = [15, 65]
"""
TOTALS = {"STATE": [17, 39], "persons": [1200, 800]}


def schema_with(tmp_path, text):
    file = tmp_path / "schema.toml"
    file.write_text(f"{HEAD}\n[[invariant]]\n{text}\n")
    return Schema.load(file)


def test_a_schema_file_states_rules_and_totals_and_round_trips(tmp_path):
    facts = [
        Rule("AGE < 15 -> MAR == 5"),
        Rule("not (AGE < 15 and MAR == 1)", "private"),
        PublishedTotals.of(TOTALS, "STATE", "persons"),
        PublishedTotals.of({"rows": [2000.0]}, []),  # a whole float is a whole number
        PublishedTotals.of({"rows": ["a"], "n": [2000]}, ["rows"], "n", source="private"),
    ]
    schema = Schema(COLUMNS, invariants=facts)
    schema.save(tmp_path / "schema.toml")
    loaded = Schema.load(tmp_path / "schema.toml")
    assert loaded.invariants == schema.invariants == tuple(facts)
    assert loaded.to_toml() == schema.to_toml()
    assert '[[invariant]]\nrule = "AGE < 15 -> MAR == 5"\n' in schema.to_toml()
    assert "[invariant.totals]\nSTATE = [17, 39]\nrows = [1200, 800]\n" in schema.to_toml()


def test_schemas_with_the_same_columns_are_equal_because_they_code_rows_alike():
    plain, ruled = Schema(COLUMNS), Schema(COLUMNS, invariants=[Rule("AGE < 15 -> MARRIED == 5")])
    assert "invariant" not in plain.to_toml()
    assert (plain, hash(plain), plain.fingerprint()) == (ruled, hash(ruled), ruled.fingerprint())
    assert ruled.with_groups({"STATE": [17]}).invariants == ruled.invariants
    assert ruled.with_invariants([]).invariants == ()
    assert ruled.invariants  # unchanged


@pytest.mark.parametrize("name", ["totals.csv", "totals.parquet"])
def test_totals_in_a_file_are_found_from_the_schema_file(tmp_path, monkeypatch, name):
    (tmp_path / "data").mkdir()
    write_table(pa.table({"note": ["x", "y"], **TOTALS}), tmp_path / "data" / name)
    monkeypatch.chdir(tmp_path / "data")  # the path is relative to the schema file, not to where the user is
    schema = schema_with(tmp_path, f'level = "STATE"\ntotals = "data/{name}"\ncolumn = "persons"')
    assert schema.invariants == (PublishedTotals.of(TOTALS, "STATE", "persons"),)
    assert name not in schema.to_toml()  # the numbers are in it, not the path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rule = 5", "rule is '5'; write a text"),
        ('rule = "AGE < 15"\nlevel = "STATE"', "unknown key 'level'; the keys are rule, source"),
        ('rul = "AGE < 15"', "unknown key 'rul'; did you mean 'rule'"),
        ('rule = "AGE < 15"\nsource = "secret"', 'source is \'secret\'; write "public" or "private"'),
        ('level = "STATE"', "level or totals is missing; write a rule, or the level"),
        ("level = 3\ntotals = {rows = [3]}", "level is '3'"),
        ('level = "rows"\ntotals = {rows = [3]}', "name the group columns of the totals, and the column of the num"),
        ('level = "STATE"\ntotals = 3', "totals is '3'; write the path of a file, or a table with a list"),
        ('level = "STATE"\ntotals = {STATE = 17, rows = 3}', "a table with a list of values for each column"),
        ('level = "STATE"\ntotals = {STATE = [17], rows = [-1]}', "rows is '-1' in some group; a number of rows is"),
        (f'level = "STATE"\ntotals = {{STATE = [17], rows = [{LARGEST_TOTAL + 1}]}}', "a table has at most"),
        ("level = []\ntotals = {rows = [3, 4]}", "the number of rows of the whole table is one number, got 2"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_message_says_where(tmp_path, text, words):
    with pytest.raises(PradeError) as refused:
        schema_with(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'schema.toml'}: invariant 1: ")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[invariant]\nrule = "AGE < 15"\n', r"write \[\[invariant\]\] tables \(double brackets\)"),
        ('[[invariant]]\nlevel = "STATE"\ntotals = "a.csv"\n', "totals is 'a.csv'; write a table with a list"),
    ],
)
def test_a_text_has_tables_in_double_brackets_and_names_no_file(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(f"{HEAD}\n{text}")


def test_only_invariants_are_invariants():
    with pytest.raises(SchemaError, match="an invariant is a Rule or PublishedTotals, got 'AGE < 15'"):
        Schema(COLUMNS, invariants=["AGE < 15"])
