"""Tables: read column by column they have the same cells, types and errors; spreadsheets get no formulas."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from prade import Column, DataError, Schema
from prade.data.public.joint import outside
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.data.read.cells import Columns
from prade.data.read.tables import csv_cells, read_table, table_columns, write_table

SCHEMA = Schema(
    [
        Column("STATE", "group", values=["06", "17"]),
        Column("PAY", "numeric", edges=[100, 1000], integer=True, min=0, missing=True),
        Column("WORK", "categorical", values=["full", "part"], other="part", missing=True),
    ]
)


def frame(rows=500, seed=0):
    generator = np.random.default_rng(seed)
    pay = pd.array(generator.integers(0, 5000, rows), dtype="Int32")
    pay[generator.random(rows) < 0.2] = pd.NA
    return pd.DataFrame(
        {
            "WORK": pd.Series(generator.choice(["full", "part", "odd"], rows)).astype("category"),
            "STATE": generator.choice(["06", "17"], rows),
            "PAY": pay,
            "W": generator.integers(0, 3, rows),
        }
    )


def alike(one, other):
    assert one.prior.weights.tolist() == other.prior.weights.tolist()
    assert one.group.tolist() == other.group.tolist()
    assert one.groups.values == other.groups.values
    for name, codes in one.prior.codes.items():
        assert np.array_equal(codes, other.prior.codes[name])
    for name, numbers in one.numbers.items():
        assert np.array_equal(numbers, other.numbers[name], equal_nan=True)


@pytest.mark.parametrize("kind", ["parquet", "two parquet", "csv"])
@pytest.mark.parametrize("weight", [None, "W"])
def test_codes_values_and_types_are_those_of_the_whole_table(tmp_path, kind, weight):
    halves = [frame(300), frame(200, 1)]
    suffix = kind.split()[-1]
    files = [tmp_path / f"{number}.{suffix}" for number in range(2 if kind == "two parquet" else 1)]
    for file, rows in zip(files, halves, strict=False):
        rows.to_parquet(file) if suffix == "parquet" else write_table(rows, file)
    whole = read_table(files[0]) if len(files) == 1 else pa.Table.from_pandas(pd.concat(halves), preserve_index=False)
    table = PublicTable([str(file) for file in files], weight)
    assert isinstance(table.cells, Columns)
    alike(table.rows(SCHEMA, None), Public.of(SCHEMA, whole, ["STATE"], weight=weight))
    alike(Public.of(SCHEMA, files[0], ["STATE"]), Public.of(SCHEMA, read_table(files[0]), ["STATE"]))
    coded = table.rows(SCHEMA, None).prior
    made = table.decoder(SCHEMA).decode(coded, seed=1, drawn=np.arange(len(coded)))
    if suffix == "parquet":
        found = made.to_pandas()
        assert str(found["PAY"].dtype) == "Int32"
        assert str(found["WORK"].dtype) == "category"
    assert made["PAY"].type == whole["PAY"].type
    assert made["PAY"].to_pylist() == [
        pay for pay, w in zip(whole["PAY"].to_pylist(), whole["W"].to_pylist(), strict=True) if weight is None or w
    ]


def test_what_is_outside_is_found_in_columns_too(tmp_path):
    frame().to_parquet(tmp_path / "public.parquet")
    columns = table_columns(tmp_path / "public.parquet")
    assert isinstance(columns, Columns)
    assert outside(SCHEMA, columns) == outside(SCHEMA, read_table(tmp_path / "public.parquet"))
    assert read_table(columns, ["PAY"]).column_names == ["PAY"]
    with pytest.raises(DataError, match="has no column 'PAYS'; did you mean 'PAY'"):
        read_table(columns, ["PAYS"])
    frame().drop(columns="PAY").to_parquet(tmp_path / "public.parquet")
    for act in (lambda table: table.rows(SCHEMA), lambda table: table.decoder(SCHEMA)):
        with pytest.raises(DataError, match="no column 'PAY'"):
            act(PublicTable(tmp_path / "public.parquet"))


MEMORY = """
import resource, sys
import pyarrow as pa
from prade import Column, Schema
from prade.data.public.public import Public
schema = Schema([Column(f"c{k}", "categorical", values=[0, 1]) for k in range(60)])
pa.set_memory_pool(pa.system_memory_pool())
Public.of(schema, sys.argv[1])
print(pa.default_memory_pool().max_memory())
"""


def test_a_file_of_many_columns_is_not_in_memory_whole(tmp_path):
    """60 columns of 200,000 whole numbers take 96 MB; one takes 1.6, and its codes a byte for each row."""
    zeros = pa.array(np.zeros(200_000, np.int64))
    pq.write_table(pa.table({f"c{k}": zeros for k in range(60)}), tmp_path / "wide.parquet")
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "wide.parquet")]
    most = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(most) < 20e6


class Elsewhere:
    """A table of a library that prade does not know, with Arrow's interface."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_table_of_any_library_with_arrows_interface():
    table = pa.table({"A": [1, 2], "B": ["x", None]})
    assert read_table(Elsewhere(table)).equals(table)
    assert read_table(Elsewhere(table), ["B"]).column_names == ["B"]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "=cmd|' /C calc'!A0"]
HARMLESS = ["a", "1=1", " =1", "'=1", "", "a\n=1", "é"]


def test_texts_that_run_are_quoted_and_nothing_else_is(tmp_path):
    numbers = list(range(-5, len(FORMULAS + HARMLESS) - 5))
    table = pa.table({"T": FORMULAS + HARMLESS, "N": numbers, "=F": [-0.5] * len(numbers)})
    safe = csv_cells(table, spreadsheet_safe=True).to_pylist()
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        changed = table.set_column(0, "T", table["T"].cast(kind))
        assert csv_cells(changed, spreadsheet_safe=True).to_pylist() == safe
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
    write_table(table, tmp_path / "b.csv")
    assert read_table(tmp_path / "b.csv")["T"].to_pylist() == [text or None for text in FORMULAS + HARMLESS]


def test_a_parquet_file_needs_none(tmp_path):
    with pytest.raises(DataError, match="spreadsheet-safe is for CSV files"):
        write_table(pa.table({"A": ["=1"]}), tmp_path / "a.parquet", spreadsheet_safe=True)
    assert not (tmp_path / "a.parquet").exists()
