"""Private tables with the same column names and nothing else in common, and the kinds of sources they come in."""

from __future__ import annotations

import datetime
import decimal
import gzip
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from worlds.counting import duckdb_file, sqlite_file

TYPES = {"AGE": pa.int64(), "SEX": pa.string(), "HOURS": pa.float64(), "PLACE": pa.string(), "ID": pa.int64()}
NAMES = list(TYPES)
LONG = "long" * 5_000
WILD = [
    (2**63 - 1, "", math.inf, "a", 1),
    (-(2**63), "f\x00m", -math.inf, "a", 1),
    (0, "\U0001f600\u202e", math.nan, "b", -1),
    (3, '"f","m"\r\n', 5e-324, "a", 2**63 - 1),
    (70, LONG, -0.0, " a", 2),
    (None, "=1+1", 1e308, "A", None),
]


def typed(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows as a table of the usual types."""
    columns = zip(*rows, strict=True) if rows else [[]] * len(TYPES)
    arrays = [pa.array(list(cells), kind) for cells, kind in zip(columns, TYPES.values(), strict=True)]
    return pa.table(arrays, names=NAMES)


def many(rows: int, place: tuple[str, ...] = ("a", "b", "c", "elsewhere")) -> list[tuple[Any, ...]]:
    """That many rows that are nothing special."""
    generator = np.random.default_rng(rows)
    ages, hours, people = (generator.integers(0, high, rows).tolist() for high in (100, 80, rows))
    sexes, places = (generator.choice(values, rows).tolist() for values in (("f", "m"), place))
    return list(zip(ages, sexes, (hour / 2 for hour in hours), places, people, strict=True))


TABLES = {
    "empty": typed([]),
    "one row": typed([(3, "f", 20.0, "a", 1)]),
    "thousands": typed(many(3_000)),
    "all elsewhere": typed(many(500, ("elsewhere", "", "c "))),
    "all missing": typed([(None,) * len(NAMES)] * 700),
    "wild": typed(WILD * 3),
}


DAY = datetime.date(2020, 2, 29)
OTHER_CELLS = [
    pa.array(["a", "b", "70"]),
    pa.array([1, 0, None], pa.int8()),
    pa.array([2**64 - 1, 0, None], pa.uint64()),
    pa.array([0.5, math.nan, None], pa.float32()),
    pa.array([decimal.Decimal("1.50"), None, None], pa.decimal128(38, 2)),
    pa.array([True, False, None]),
    pa.array([DAY, DAY, None]),
    pa.array([datetime.datetime(1, 1, 1), None, None], pa.timestamp("us")),
    pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
    pa.array(["a", "b", None]).dictionary_encode(),
    pa.array([None, None, None]),
    pa.array([b"\xff", b"a", None], pa.binary()),
    pa.array([[1], [], None], pa.list_(pa.int64())),
    pa.array([{"a": 1}, None, None]),
    pa.array([datetime.timedelta(days=1), None, None]),
]
# Each kind of cell in a column of its own, so that a few tables have them all.
OTHER_TYPES = [
    pa.table(OTHER_CELLS[start : start + len(NAMES)], names=NAMES) for start in range(0, len(OTHER_CELLS), len(NAMES))
]


# ---------------------------------------------------------------------- sources


def parquet(table: pa.Table, folder: Path) -> Path:
    """One file."""
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_files(table: pa.Table, folder: Path) -> str:
    """Three files of one pattern, the rows shared out unevenly."""
    ends = [0, table.num_rows // 10, table.num_rows // 2, table.num_rows]
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        pq.write_table(table.slice(start, end - start), folder / f"rows{number}.parquet")
    return str(folder / "rows*.parquet")


def csv(table: pa.Table, folder: Path) -> Path:
    """One file."""
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def csv_gz(table: pa.Table, folder: Path) -> Path:
    """One compressed file."""
    place = folder / "rows.csv.gz"
    place.write_bytes(gzip.compress(csv(table, folder).read_bytes()))
    (folder / "rows.csv").unlink()
    return place


def pandas(table: pa.Table, folder: Path) -> pd.DataFrame:
    """With the types that pandas chooses."""
    return table.to_pandas()


def pandas_objects(table: pa.Table, folder: Path) -> pd.DataFrame:
    """Every cell a Python object."""
    return pd.DataFrame({name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names})


def pyarrow_table(table: pa.Table, folder: Path) -> pa.Table:
    """As it is."""
    return table


def polars(table: pa.Table, folder: Path) -> pl.DataFrame:
    """A polars frame."""
    return pl.from_arrow(table)


def duckdb(table: pa.Table, folder: Path) -> str:
    """A database file of DuckDB."""
    return duckdb_file(folder / "rows.duckdb", people=table)


def sqlite(table: pa.Table, folder: Path) -> str:
    """A database file of SQLite."""
    cells = zip(*(table[name].to_pylist() for name in NAMES), strict=True)
    return sqlite_file(folder / "rows.sqlite", "AGE INTEGER, SEX TEXT, HOURS REAL, PLACE TEXT, ID INTEGER", cells)


ALL: list[Callable[[pa.Table, Path], Any]] = [
    *[parquet, parquet_files, csv, csv_gz, pandas, pandas_objects, pyarrow_table, polars, duckdb, sqlite]
]
