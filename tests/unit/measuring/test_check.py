"""`prade check PLAN --private TABLE`: what the custodian sees before anything is spent, and that nothing is written."""

import json

import pyarrow as pa
import pyarrow.csv as pc
import pytest

import prade
from prade import Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.measuring.check import WARNING, check
from worlds.commands import call
from worlds.counting import duckdb_file
from worlds.plans import plan_of

SCHEMA = Schema([Column("SEX", "categorical", values=[1, 2]), Column("AGE", "numeric", edges=[18, 65], missing=True)])
GROUPS = {"STATE": ["x", "x", "y"], "TOWN": ["a", "b", "c"]}
LEVELS = [Level("STATE"), Level("TOWN", Workload.all_marginals(SCHEMA, 1))]
PLAN = Plan("people", SCHEMA, Budget.pure(1), Unit(2, person_id="ID", per_group=1), LEVELS, groups=GROUPS)
ROWS = {
    "SEX": ["M", "F", "1", "2", "M", "1"],
    "AGE": [3, 40, None, 20, 70, 30],
    "STATE": ["x", "x", "x", "y", "z", "x"],
    "TOWN": ["a", "a", "b", "d", "a", "a"],
    "ID": [7, 7, 7, 8, None, 9],
    "NOTE": ["hush"] * 6,
}

SEXES = Schema([Column("SEX", "categorical", values=[1, 2])])
SEX_PLAN = plan_of(SEXES, Level((), Workload.all_marginals(SEXES, 1)))


def test_everything_that_a_custodian_may_want_to_know():
    found = check(PLAN, pa.table(ROWS))
    assert found.rows == 6
    assert found.outside == {"SEX": (0.5, {"M": 2, "F": 1}), "STATE": (1 / 6, {"z": 1}), "TOWN": (1 / 6, {"d": 1})}
    assert (found.unlisted_rows, found.unlisted) == (2, {"STATE y, TOWN d": 1, "STATE z, TOWN a": 1})
    assert (found.persons, found.over_bound, found.without_id) == (2, 1, 1)
    assert not found.fits
    assert str(found).startswith(WARNING)
    assert prade.check is check


@pytest.mark.parametrize(("without", "fits"), [(1, True), (2, False)])
def test_a_tenth_of_the_rows_may_lack_an_id(without, fits):
    plan = plan_of(SEXES, Level((), Workload.all_marginals(SEXES, 1)), unit=Unit(1, person_id="ID"))
    found = check(plan, {"SEX": [1] * 10, "ID": [None] * without + list(range(10 - without))})
    assert (found.persons, found.without_id, found.fits) == (10 - without, without, fits)


@pytest.mark.parametrize(("odd", "fits"), [(10, True), (11, False)])
def test_a_tenth_of_the_cells_may_be_outside(odd, fits):
    found = check(SEX_PLAN, {"SEX": ["M"] * odd + ["1"] * (100 - odd)})
    assert found.outside["SEX"] == (odd / 100, {"M": odd})
    assert found.fits is fits


def test_a_table_that_cannot_be_measured_is_not_read(tmp_path):
    dated = "CREATE TABLE people AS SELECT * REPLACE (DATE '2020-01-01' AS AGE) FROM given"
    for private, problem in (
        (pa.table(ROWS).drop_columns(["SEX", "ID"]), "no column 'SEX'"),
        (pa.table(ROWS).drop_columns(["TOWN"]), "no column 'TOWN'"),
        (duckdb_file(tmp_path / "db", dated, given=ROWS), "column 'AGE': the schema has numbers, but the table has"),
    ):
        found = check(PLAN, private)
        assert problem in found.problem
        assert "No row was looked at" in str(found)
        assert (found.rows, found.fits) == (0, False)


def test_many_different_values_are_counted_by_the_commonest():
    found = check(SEX_PLAN, {"SEX": [f"w{number}" for number in range(70_000)] + ["often"] * 500})
    share, values = found.outside["SEX"]
    assert share == 1
    assert max(values, key=lambda value: values[value]) == "often"


def test_the_command_prints_writes_nothing_and_its_exit_code_tells(tmp_path):
    PLAN.save(tmp_path / "plan.toml")
    pc.write_csv(pa.table(ROWS), tmp_path / "people.csv")
    before = sorted(tmp_path.iterdir())
    given = "check", tmp_path / "plan.toml", "--private", tmp_path / "people.csv"
    done = call(*given, code=1)
    assert done.stdout.splitlines()[0] == WARNING
    assert "SEX: 50.0% of the cells are outside the schema (M 2, F 1): is this column coded" in done.stdout
    facts = json.loads(call(*given, "--json", code=1).stdout)
    assert facts["outside"]["SEX"] == {"share": 0.5, "values": {"M": 2, "F": 1}}
    assert facts["warning"] == WARNING
    fitting = {"SEX": [1, 2, 1, 2, 1, 2], "STATE": ["x"] * 6, "TOWN": ["a"] * 6, "ID": range(6)}
    pc.write_csv(pa.table({**ROWS, **fitting}), tmp_path / "people.csv")
    call(*given)
    assert sorted(tmp_path.iterdir()) == before


def test_groups_that_are_coded_in_another_way_are_said():
    """Else all rows would be left out, and the budget spent on zeros."""
    schema = Schema([Column("AGE", "numeric", edges=[18])])
    ages = Workload.all_marginals(schema, 1)
    found = check(
        plan_of(schema, Level("STATE", ages), groups={"STATE": [17, 39]}),
        {"AGE": [3] * 100, "STATE": ["Illinois", "Ohio"] * 50},
    )
    assert found.outside["STATE"] == (1, {"Illinois": 50, "Ohio": 50})
    assert "100 rows (100.0%) in groups that are not listed, which do not count" in str(found)
    assert not found.fits
    crossed = plan_of(schema, Level(["A", "B"], ages), groups={"A": [1, 2], "B": [1, 2]})
    found = check(crossed, {"AGE": [3] * 10, "A": [1] * 10, "B": [2] * 10})
    assert (found.outside, found.unlisted_rows, found.fits) == ({}, 10, False)


def test_a_cell_cannot_move_the_cursor():
    shown = str(check(SEX_PLAN, {"SEX": ["\x1b[31mred\nall cells fit the schema", "1"]}))
    assert "\x1b" not in shown
    assert "\\x1b[31mred\\nall cells" in shown


@pytest.mark.parametrize("words", [["p.toml"], ["p.toml", "--private", "x.csv", "--schema", "s.toml"]])
def test_a_plan_goes_with_a_private_table_and_a_schema_with_public_ones(words):
    said = call("check", *words, code=2).stderr
    assert "give one plan with --private alone, or public files with --schema" in said
