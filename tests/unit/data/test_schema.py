"""What a schema is, what it refuses, and the files it is read from."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path

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


def toml(body: str) -> Schema:
    return Schema.from_toml("version = 1\n[[column]]\n" + body)


class TestCodes:
    def test_categorical_codes_are_places_and_missing_is_last(self) -> None:
        column = Column("ENG", "categorical", values=(1, 2, 3), missing=True)
        assert column.size == 4
        assert column.cell_texts() == ["1", "2", "3", "missing"]

    def test_an_edge_at_the_minimum_is_no_cut(self) -> None:
        assert HOURS.cuts == (10.0, 40.0)
        assert HOURS.size == 4
        assert HOURS.cell_texts() == ["[1, 10)", "[10, 40)", "[40, 99]", "missing"]

    def test_an_edge_at_the_maximum_is_a_cut_and_one_above_is_not(self) -> None:
        column = Column("X", "numeric", edges=(0, 5, 10, 11), min=0, max=10)
        assert column.cuts == (5.0, 10.0)

    def test_open_ends_are_shown_as_such(self) -> None:
        assert Column("X", "numeric", edges=(0.5, 2)).cell_texts() == ["(-inf, 0.5)", "[0.5, 2)", "[2, inf)"]

    @pytest.mark.parametrize(
        ("column", "fallback"),
        [
            (Column("X", "categorical", values=("a", "b", "c")), 2),
            (Column("X", "categorical", values=("a", "b", "c"), other="b"), 1),
            (Column("X", "categorical", values=("a", "b"), missing=True), 2),
            (Column("X", "categorical", values=("a", "b"), missing=True, other="a"), 0),
            (Column("X", "categorical", values=("a", "b"), missing=True, other="a", unknown="missing"), 2),
            (Column("X", "numeric", edges=(1,)), 0),
            (Column("X", "numeric", edges=(1,), missing=True), 2),
        ],
    )
    def test_fallback(self, column: Column, fallback: int) -> None:
        assert column.fallback == fallback

    def test_dates_are_binned_by_day(self) -> None:
        column = Column("D", "numeric", edges=(datetime.date(1970, 1, 2), datetime.date(1970, 2, 1)))  # type: ignore[arg-type]
        assert column.cuts == (1.0, 31.0)
        assert column.integer
        assert column.cell_texts() == ["(-inf, 1970-01-02)", "[1970-01-02, 1970-02-01)", "[1970-02-01, inf)"]


class TestSplit:
    @pytest.mark.parametrize(
        ("op", "value", "expected"),
        [
            (">=", 10, [0, 1, 1, 0]),
            (">", 9, [0, 1, 1, 0]),
            (">", 9.5, [0, 1, 1, 0]),
            ("<", 40, [1, 1, 0, 0]),
            ("<=", 39, [1, 1, 0, 0]),
            (">=", 1, [1, 1, 1, 0]),
            ("<", 1, [0, 0, 0, 0]),
            (">", 99, [0, 0, 0, 0]),
            ("<=", 99, [1, 1, 1, 0]),
            (">=", -math.inf, [1, 1, 1, 0]),
            ("==", 100, [0, 0, 0, 0]),
            ("!=", 0, [1, 1, 1, 0]),
        ],
    )
    def test_numeric(self, op: str, value: float, expected: list[int]) -> None:
        assert HOURS.satisfying(op, value).tolist() == [bool(each) for each in expected]

    def test_cuts_of_whole_numbers_are_compared_rounded_up(self) -> None:
        income = Column("PINCP", "numeric", edges=(0.5, 5000), integer=True)
        assert income.satisfying(">", 0).tolist() == [False, True, True]
        assert income.satisfying(">=", 1).tolist() == [False, True, True]

    def test_equality_needs_a_bin_of_one_value(self) -> None:
        rooms = Column("NP", "numeric", edges=(2, 3, 5), integer=True, min=1)
        assert rooms.satisfying("==", 1).tolist() == [True, False, False, False]
        assert rooms.satisfying("!=", 2).tolist() == [True, False, True, True]
        with pytest.raises(WorkloadError, match=r"the bin \[3, 5\) contains other values"):
            rooms.satisfying("==", 3)

    def test_off_the_edge_names_the_nearest(self) -> None:
        with pytest.raises(WorkloadError, match=r"WKHP >= 36 .*nearest edges are 10 and 40"):
            HOURS.satisfying(">=", 36)

    def test_floats_tell_above_from_at_least(self) -> None:
        column = Column("X", "numeric", edges=(20.0,))
        assert column.satisfying(">=", 20).tolist() == [False, True]
        with pytest.raises(WorkloadError, match="edge of a bin"):
            column.satisfying(">", 20)

    def test_dates(self) -> None:
        column = Column("D", "numeric", edges=(datetime.date(2020, 1, 1),))  # type: ignore[arg-type]
        for value in ("2020-01-01", datetime.date(2020, 1, 1)):
            assert column.satisfying(">=", value).tolist() == [False, True]
        with pytest.raises(WorkloadError, match="2020-12-31"):
            column.satisfying(">=", "New Year")
        with pytest.raises(WorkloadError, match="a date such as"):
            column.satisfying(">=", 5)

    @pytest.mark.parametrize("value", ["5", True, math.nan, None])
    def test_a_number_must_be_one(self, value: object) -> None:
        with pytest.raises(WorkloadError, match="with a number"):
            HOURS.satisfying(">=", value)

    def test_categorical(self) -> None:
        column = Column("X", "categorical", values=(3, 1, 2), missing=True)
        assert column.satisfying("==", 1).tolist() == [False, True, False, False]
        assert column.satisfying("!=", 1.0).tolist() == [True, False, True, False]
        assert column.satisfying("<=", 2.5).tolist() == [False, True, True, False]

    def test_categorical_refuses_the_unlisted_and_the_wrong_type(self) -> None:
        with pytest.raises(WorkloadError, match="one of the values of SEX, 1, 2"):
            SEX.satisfying("==", 3)
        with pytest.raises(WorkloadError, match="are numbers, but this is text; write it like 1, 2"):
            SEX.satisfying("==", "2")
        named = Column("C", "categorical", values=("a", "b"))
        with pytest.raises(WorkloadError, match='are text, but this is not text; write it like "a", "b"'):
            named.satisfying("==", 2)
        with pytest.raises(WorkloadError, match="no order"):
            named.satisfying("<", "b")
        with pytest.raises(WorkloadError, match="not a comparison"):
            named.satisfying("=", "b")

    def test_true_and_false(self) -> None:
        column = Column("B", "categorical", values=(False, True))
        assert column.satisfying("==", True).tolist() == column.satisfying("==", 1).tolist() == [False, True]


class TestRefused:
    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ('name = "A"\nkind = "numeric"\nedgs = [1]', "column 'A': unknown key 'edgs'; did you mean 'edges'"),
            ('name = "A"\nkind = "numeric"\nzzzz = [1]', "the keys are name, kind"),
            (
                'name = "A"\nkind = "ordinal"\nedges = [1]',
                "column 'A': kind is 'ordinal'; use one of categorical, numeric, group",
            ),
            ('name = "A"\nkind = 3\nedges = [1]', "column 'A': kind is 3; use one of"),
            ('name = 3\nkind = "numeric"\nedges = [1]', "a column needs a name, got 3"),
            ('kind = "numeric"\nedges = [1]', "column 1 of the file: name is missing"),
            ('name = "A"\nedges = [1]', "column 'A': kind is missing"),
            ('name = "A"\nkind = "numeric"', "column 'A': a numeric column needs edges"),
            ('name = "A"\nkind = "numeric"\nedges = [5, 1]', "edge 1 comes after 5; list .* in ascending order"),
            ('name = "A"\nkind = "numeric"\nedges = [1, 1]', "edge 1 is listed twice"),
            ('name = "A"\nkind = "numeric"\nedges = [1, inf]', "edges must be finite"),
            ('name = "A"\nkind = "numeric"\nedges = [1, 1e301]', "edges must be at most 1e300"),
            (
                'name = "A"\nkind = "numeric"\nedges = [1, "b"]',
                r"column 'A': edges must be numbers or dates, got 'b'; write e.g. edges = \[",
            ),
            ('name = "A"\nkind = "numeric"\nedges = ["2020-01-01"]', "got '2020-01-01'; .*without quotes"),
            (
                'name = "A"\nkind = "numeric"\nedges = [1]\nmin = "b"',
                "min must be a number .*; write e.g. min = 10",
            ),
            ('name = "A"\nkind = "numeric"\nedges = 5', "column 'A': edges is 5; give a list"),
            ('name = "A"\nkind = "numeric"\nedges = [5]\nmin = 10', "column 'A': no edge is above min 10, .*add an"),
            ('name = "A"\nkind = "numeric"\nedges = [5, 30]\nmin = 10\nmax = 20', "above min 10 and not above max 20"),
            ('name = "A"\nkind = "numeric"\nedges = [2020-01-01]\nmin = 2020-01-01', "no edge is above min 2020-01-01"),
            ('name = "A"\nkind = "numeric"\nedges = [1]\nmin = 5\nmax = 2', "min 5 is above max 2"),
            ('name = "A"\nkind = "numeric"\ninteger = true\nedges = [0.2, 0.7]', "there is no whole number in"),
            ('name = "A"\nkind = "numeric"\ninteger = true\nedges = [1]\nmin = 0.5', "min .* must be a whole number"),
            ('name = "A"\nkind = "numeric"\nedges = [1]\nvalues = [1]', "a numeric column has no values"),
            ('name = "A"\nkind = "numeric"\nedges = [1, 2020-01-01]', "all be dates"),
            ('name = "A"\nkind = "numeric"\nedges = [1]\nother = 1', "other is for categorical"),
            ('name = "A"\nkind = "categorical"', "list of values is empty; give at least one"),
            ('name = "A"\nkind = "categorical"\nvalues = [1, 1]', "value 1 is listed twice"),
            ('name = "A"\nkind = "categorical"\nvalues = [1, 1.0]', "value 1 is listed twice"),
            ('name = "A"\nkind = "categorical"\nvalues = [1, "1"]', 'mix int and str; .*"1", "1"'),
            ('name = "A"\nkind = "categorical"\nvalues = [1, true]', "mix bool and int"),
            ('name = "A"\nkind = "categorical"\nvalues = [[1]]', "values must be numbers, text"),
            ('name = "A"\nkind = "categorical"\nvalues = [nan]', "finite"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nother = 9', "other is 9, which is not among"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nother = [1]', "other is .*, which is not among"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nunknown = "drop"', "unknown is 'drop'; use one of"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nedges = [9]', "a categorical column has no edges"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nmin = 9', "min and max are for numeric"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nunknown = "other"', "give it as other ="),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nunknown = "missing"', "needs missing = true"),
            ('name = "A"\nkind = "categorical"\nvalues = [1]\nunknown = "clip"', "for numeric columns"),
            (
                'name = "A"\nkind = "categorical"\nvalues = [1]\nmissing = 1',
                "column 'A': missing is 1; use true or false",
            ),
            ('name = "A"\nkind = "categorical"\nvalues = 1', "column 'A': values is 1; give a list"),
        ],
    )
    def test_column(self, body: str, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            toml(body)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "begin the file with `version = 1`"),
            ("version = 2", "version is 2, but this version of prade reads `version = 1`"),
            ("version = 1", r"write a \[\[column\]\] table"),
            ("version = 1\ncolumns = 3", "unknown key 'columns'; did you mean 'column'"),
            ("version = 1\n[column]\nname = 'A'", "double brackets"),
            ("version = ", "not valid TOML"),
        ],
    )
    def test_file(self, text: str, message: str) -> None:
        with pytest.raises(SchemaError, match=message):
            Schema.from_toml(text)

    def test_schema(self) -> None:
        with pytest.raises(SchemaError, match="'SEX' is declared twice"):
            Schema([SEX, SEX])
        with pytest.raises(SchemaError, match="at least one column"):
            Schema([])
        with pytest.raises(SchemaError, match=r"no column 'SEXX'.*did you mean 'SEX'"):
            Schema([SEX])["SEXX"]

    def test_files_that_are_not_there_or_not_ours(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="no schema file at"):
            Schema.load(tmp_path / "none.toml")
        (tmp_path / "list.json").write_text("[1]")
        with pytest.raises(SchemaError, match="contains a list"):
            Schema.from_mbi(tmp_path / "list.json")
        (tmp_path / "bad.json").write_text("{")
        with pytest.raises(SchemaError, match="not valid JSON"):
            Schema.load(tmp_path / "bad.json")
        (tmp_path / "bad.toml").write_text("version = 1")
        with pytest.raises(SchemaError, match=r"bad\.toml: the schema has no columns"):
            Schema.load(tmp_path / "bad.toml")


class TestSchema:
    def test_shapes(self) -> None:
        schema = Schema([SEX, HOURS])
        assert schema.names == ("SEX", "WKHP")
        assert schema.shape(["WKHP", "SEX"]) == (4, 2)
        assert schema.domain_size(["WKHP", "SEX"]) == 8
        assert schema.select(["WKHP"]) == Schema([HOURS])
        assert "SEX" in schema
        assert len(schema) == 2

    def test_equality_tells_types_apart(self) -> None:
        ones, truths = (Column("X", "categorical", values=values) for values in ((0, 1), (False, True)))
        assert ones != truths
        assert Schema([ones]) != Schema([truths])
        assert Schema([ones]).fingerprint() != Schema([truths]).fingerprint()
        assert hash(Schema([SEX])) == hash(Schema([Column("SEX", "categorical", values=[1, 2])]))  # type: ignore[arg-type]

    def test_groups_come_from_a_list_that_may_nest(self) -> None:
        schema = Schema([Column("STATE", "group"), Column("PUMA", "group"), SEX])
        assert schema.groups == ("STATE", "PUMA")
        assert schema.coded == ("SEX",)
        with pytest.raises(SchemaError, match=r"'PUMA'.*schema\.with_groups"):
            schema.size("PUMA")
        filled = schema.with_groups({"STATE": [36, 36, 42], "PUMA": ["a", "b", "c"]})
        assert filled["STATE"].values == (36, 42)
        assert filled.size("PUMA") == 3
        with pytest.raises(SchemaError, match=r"'PUMA'.*no such column; did you mean 'PUMAS'"):
            schema.with_groups({"STATE": [1], "PUMAS": [1]})
        with pytest.raises(SchemaError, match="empty cell"):
            schema.with_groups({"STATE": [1], "PUMA": [None]})
        with pytest.raises(DataError, match="no file"):
            schema.with_groups("nowhere.csv")

    def test_save_and_load(self, tmp_path: Path) -> None:
        schema = Schema(
            [
                HOURS,
                Column("NAME", "categorical", values=('quote " = [', "back\\slash", "line\nbreak", "]"), other="]"),
                Column("FLAG", "categorical", values=(True, False), missing=True, unknown="missing"),
                Column("D", "numeric", edges=(datetime.date(2020, 1, 1),), min=datetime.date(1999, 1, 1)),  # type: ignore[arg-type]
                Column("F", "numeric", edges=(0.1, 1e300), unknown="clip"),
                Column("G", "group"),
            ]
        )
        schema.save(tmp_path / "schema.toml")
        assert Schema.load(tmp_path / "schema.toml") == schema
        assert [path.name for path in tmp_path.iterdir()] == ["schema.toml"]

    def test_toml_dates_in_a_value_list_become_text(self) -> None:
        schema = toml('name = "D"\nkind = "categorical"\nvalues = [2020-01-01, 2020-01-02]')
        assert schema["D"].values == ("2020-01-01", "2020-01-02")

    def test_arrays_are_written_on_one_line(self) -> None:
        assert "values = [1, 2]\n" in Schema([SEX]).to_toml()

    def test_mbi_domain(self, tmp_path: Path) -> None:
        (tmp_path / "domain.json").write_text(json.dumps({"sex": 2, "race": 5}))
        schema = Schema.load(tmp_path / "domain.json")
        assert schema == Schema.from_mbi({"sex": 2, "race": 5})
        assert schema["race"].values == (0, 1, 2, 3, 4)
        with pytest.raises(SchemaError, match=r"'sex'.*from 1 to"):
            Schema.from_mbi({"sex": 0})

    def test_the_contest_closes_its_bins_above(self, tmp_path: Path) -> None:
        declared = {
            "runs": [{"epsilon": 1.0, "delta": 1e-9, "max_records_per_individual": 7}],
            "schema": {
                "PUMA": {"dtype": "str", "values": ["17-1", "17-2"]},
                "SEX": {"dtype": "uint8", "values": [1, 2]},
                "INCTOT": {"dtype": "int32"},
                "PERWT": {"dtype": "float"},
            },
        }
        (tmp_path / "parameters.json").write_text(json.dumps(declared))
        schema = Schema.load(tmp_path / "parameters.json")
        assert schema == Schema.from_contest(tmp_path / "parameters.json")
        assert schema.groups == ("PUMA",)
        assert schema.size("PUMA") == 2
        income, weight = schema["INCTOT"], schema["PERWT"]
        assert income.satisfying("<=", 0).tolist() == [True] + [False] * 21
        assert weight.cell_texts()[:2] == ["(-inf, 0]", "(0, 20]"]
        assert weight.satisfying(">", 20).sum() == weight.size - 2
        assert Schema.from_toml(schema.to_toml()) == schema

    def test_the_contest_names_what_it_cannot_bin(self, tmp_path: Path) -> None:
        for entry, message in (({"dtype": "int32"}, "no bins"), ({"vals": [1]}, "did you mean 'values'")):
            (tmp_path / "parameters.json").write_text(json.dumps({"schema": {"HEIGHT": entry}}))
            with pytest.raises(SchemaError, match=f"'HEIGHT'.*{message}"):
                Schema.load(tmp_path / "parameters.json")

    def test_the_real_files(self, shared_data: Path) -> None:
        schema = Schema.load(shared_data / "acs2024.schema.toml")
        assert len(schema.coded) == 36
        assert schema.shape(["AGEP", "WKHP", "PINCP"]) == (19, 10, 23)
        filled = schema.with_groups(shared_data / "acs2024_ny_pa_geography.csv")
        assert filled.shape(filled.groups) == (2, 239)
        assert Schema.from_toml(filled.to_toml()) == filled
        contest = Schema.load(shared_data / "contest_sprint2_parameters.json")
        assert contest.shape(contest.groups) == (181, 7)
        assert contest.shape(["AGE", "DEPARTS", "POVERTY"]) == (18, 97, 27)


PUBLIC = {
    "PLACE": ["a", "b"] * 50,
    "WEIGHT": [1.5] * 100,
    "AGE": list(range(100)),
    "CODE": ["N", "1", "2", "3"] * 25,
    "ZIP": ["01", "02"] * 50,
    "FLAG": [True, None] * 50,
    "PAY": np.arange(100) * 1234.5,
    "DAY": [datetime.date(2020, 1, 1) + datetime.timedelta(days=day) for day in range(100)],
}


class TestInfer:
    def test_kinds(self) -> None:
        schema = Schema.infer(PUBLIC, groups=["PLACE"], weight="WEIGHT")
        assert schema.names == ("PLACE", "AGE", "CODE", "ZIP", "FLAG", "PAY", "DAY")
        assert schema["PLACE"] == Column("PLACE", "group", values=("a", "b"))
        assert schema["CODE"] == Column("CODE", "categorical", values=(1, 2, 3), missing=True)
        assert schema["ZIP"].values == ("01", "02")
        assert schema["FLAG"] == Column("FLAG", "categorical", values=(True,), missing=True)
        assert schema["AGE"].integer
        assert (schema["AGE"].min, schema["AGE"].max) == (0, 99)
        assert not schema["PAY"].integer
        assert schema["DAY"].dates
        assert Schema.from_toml(schema.to_toml()) == schema

    def test_bins_are_round_and_hold_about_as_many_rows_each(self) -> None:
        rng = np.random.default_rng(0)
        incomes = np.round(np.exp(rng.normal(10, 1, 20_000)), 2)
        column = Schema.infer({"PAY": incomes}, bins=10)["PAY"]
        assert 7 <= column.size <= 10
        held = np.bincount(np.searchsorted(column.cuts, incomes, side="right")) / len(incomes)
        assert held.max() < 0.25
        digits = [f"{cut:g}".rstrip("0") for cut in column.cuts]
        assert all(len(each) <= 3 for each in digits), digits

    def test_times_in_a_csv_are_binned_by_day_and_groups_keep_their_text(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text("WEEK,T\n2020-01-06T00:00:00,2020-01-06T05:00:00\n2020-01-13T00:00:00,2020-01-14 05:00:00\n")
        schema = Schema.infer(path, groups="WEEK")
        assert schema["T"].dates
        assert schema["T"].cell_texts() == ["[2020-01-06, 2020-01-14)", "[2020-01-14, 2020-01-14]"]
        assert encode(schema, path).codes["T"].tolist() == [0, 1]
        assert schema["WEEK"].values == ("2020-01-06T00:00:00", "2020-01-13T00:00:00")
        listed = Schema([Column("WEEK", "group", missing=True)]).with_groups(path)
        assert encode(listed, path, columns=["WEEK"]).codes["WEEK"].tolist() == [0, 1]
        typed = pa.table({"WEEK": [datetime.datetime(2020, 1, 6), datetime.datetime(2020, 1, 6, 5)]})
        listed = Schema([Column("WEEK", "group", missing=True)]).with_groups(typed)
        assert encode(listed, typed, columns=["WEEK"]).codes["WEEK"].tolist() == [0, 1]

    def test_one_day_only_leaves_room_for_others(self) -> None:
        days = {"D": [datetime.date(2020, 1, 1)] * 3}
        schema = Schema.infer(days)
        assert schema["D"].cell_texts() == ["(-inf, 2020-01-01)", "[2020-01-01, inf)"]
        assert encode(schema, days).codes["D"].tolist() == [1, 1, 1]

    def test_few_values_are_a_list(self) -> None:
        assert Schema.infer({"X": [3, 1, 2, 2]})["X"].values == (1, 2, 3)

    def test_few_fractions_are_bins_and_not_a_list(self) -> None:
        """Other places have other densities: as a list, all of them would count as the last one."""
        densities = {"DENSITY": [16.3, 73.0, 90.7, 2674.3]}
        schema = Schema.infer(densities)
        assert schema["DENSITY"] == Column(
            "DENSITY", "numeric", edges=(50, 80, 1000), integer=False, min=16.3, max=2674.3
        )
        assert encode(schema, densities).codes["DENSITY"].tolist() == [0, 1, 2, 3]
        assert encode(schema, {"DENSITY": [357.4, 1338.4, 2.0]}).codes["DENSITY"].tolist() == [2, 3, 0]

    def test_one_fraction_is_a_list(self) -> None:
        assert Schema.infer({"RATE": [0.5, 0.5]})["RATE"].values == (0.5,)

    @given(st.lists(st.floats(-1e300, 1e300, allow_subnormal=False), min_size=2, max_size=20, unique=True))
    def test_few_fractions_have_a_bin_each(self, numbers: list[float]) -> None:
        numbers = [*numbers, 0.5]  # so that they are not all whole
        distinct = sorted(set(numbers))
        codes = encode(Schema.infer({"X": numbers}, bins=30), {"X": distinct}).codes["X"]
        assert codes.tolist() == list(range(len(distinct)))

    def test_names_too_many_are_refused_by_name(self) -> None:
        table = {"NAME": [f"n{place}x" for place in range(100)], "SEX": [1, 2] * 50}
        with pytest.raises(SchemaError, match=r"at all: NAME; .*skip="):
            Schema.infer(table)
        assert Schema.infer(table, skip=["NAME"]).names == ("SEX",)
        with pytest.raises(SchemaError, match="no column 'SEXX'; did you mean"):
            Schema.infer(table, groups=["SEXX"])


class TestUsualEdges:
    """Questions can only be asked at edges, so a draft has edges at the numbers that people ask about."""

    @pytest.mark.parametrize("name", ["AGE", "AGEP", "age", "age_years", "Person_Age"])
    def test_ages_have_the_usual_edges(self, name: str) -> None:
        column = Schema.infer({name: list(range(96)) * 2})[name]
        assert {18, 25, 65} <= set(column.edges)
        assert len(column.edges) < 20

    @pytest.mark.parametrize("name", ["WAGE", "AGENCY", "PAGES", "VILLAGE"])
    def test_what_is_no_age_has_quantiles(self, name: str) -> None:
        edges = Schema.infer({name: list(range(96)) * 2})[name].edges
        assert edges == tuple(range(5, 95, 5))

    def test_few_bins_are_kept_to(self) -> None:
        edges = Schema.infer({"AGE": list(range(96))}, bins=5)["AGE"].edges
        assert edges == (20, 40, 50, 80)  # 19, 38, 57 and 76, rounded

    @given(
        st.lists(
            st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 3)), min_size=70, max_size=200, unique=True
        )
    )
    def test_edges_stay_in_order_and_within_the_values(self, numbers: list[float]) -> None:
        column = Schema.infer({"X": numbers}, max_values=10)["X"]
        assert list(column.edges) == sorted(set(column.edges))
        assert min(numbers) < column.edges[0]
        assert column.edges[-1] <= max(numbers)
        assert column.size >= 10  # of 20: rounding never merges more than neighbours

    def test_edges_are_multiples_of_round_numbers(self) -> None:
        pay = np.random.default_rng(1).lognormal(10, 1, 5_000).round(2)
        edges = Schema.infer({"PAY": pay})["PAY"].edges
        assert sum(edge % 1000 == 0 for edge in edges) >= 0.8 * len(edges)
