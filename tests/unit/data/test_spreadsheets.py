"""CSV files that people open in spreadsheets: texts that would run are quoted when asked for, and only then."""

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import DataError
from prade.data.read.tables import csv_cells, read_table, write_table

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "=cmd|' /C calc'!A0"]
HARMLESS = ["a", "1=1", " =1", "'=1", "", "a\n=1", "é"]


def test_texts_that_run_are_quoted_and_nothing_else_is(tmp_path):
    numbers = list(range(-5, len(FORMULAS + HARMLESS) - 5))
    table = pa.table({"T": FORMULAS + HARMLESS, "N": numbers, "=F": [-0.5] * len(numbers)})
    write_table(table, tmp_path / "a.csv", spreadsheet_safe=True)
    raw = pa.csv.read_csv(
        tmp_path / "a.csv",
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(strings_can_be_null=False),
    )
    assert raw.column_names == ["T", "N", "'=F"]
    assert raw["T"].to_pylist() == [f"'{text}" for text in FORMULAS] + HARMLESS
    assert raw["N"].to_pylist() == numbers
    assert raw["'=F"].to_pylist() == [-0.5] * len(numbers)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_without_the_option_a_file_reads_back_as_it_was(tmp_path, name):
    table = pa.table({"T": FORMULAS, "=F": FORMULAS})
    write_table(table, tmp_path / name)
    assert read_table(tmp_path / name).equals(table)
    write_table(table, tmp_path / name, spreadsheet_safe=True)
    assert read_table(tmp_path / name).to_pylist() == csv_cells(table, spreadsheet_safe=True).to_pylist()


@pytest.mark.parametrize(
    "change",
    [
        lambda cells: cells,
        lambda cells: cells.cast(pa.large_string()),
        lambda cells: cells.cast(pa.string_view()),
        lambda cells: cells.dictionary_encode(),
    ],
    ids=["text", "large", "view", "dictionary"],
)
def test_every_kind_of_text(tmp_path, change):
    cells = change(pa.array(["=1", None, "b"]))
    write_table(pa.table({"A": cells, "B": [1, 2, 3]}), tmp_path / "a.csv", spreadsheet_safe=True)
    assert read_table(tmp_path / "a.csv")["A"].to_pylist() == ["'=1", None, "b"]


def test_a_parquet_file_needs_none(tmp_path):
    with pytest.raises(DataError, match="spreadsheet-safe is for CSV files"):
        write_table(pa.table({"A": ["=1"]}), tmp_path / "a.parquet", spreadsheet_safe=True)
    assert not (tmp_path / "a.parquet").exists()


@given(st.lists(st.text(), max_size=5))
def test_whatever_the_text_no_cell_begins_as_a_formula_and_the_rest_is_kept(texts):
    found = csv_cells(pa.table({"A": pa.array(texts, pa.string())}), spreadsheet_safe=True)["A"].to_pylist()
    assert not any(text.startswith(tuple("=+-@\t\r\n")) for text in found)
    assert all(new in (old, f"'{old}") for new, old in zip(found, texts, strict=True))
