"""Private tables with the same columns and nothing else in common, the sources that they come in, and a small plan."""

import datetime
import decimal
import gzip
import itertools
import math
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from prade import Budget, Column, Schema, Unit, Workload
from prade.core.execution import Execution
from prade.measuring.run import measure
from prade.measuring.source import open_source
from prade.measuring.streams import Stream
from prade.planning.plan import Plan
from prade.planning.questions import Level
from worlds.counting import count, duckdb_file, sqlite_file
from worlds.observation import observing
from worlds.plans import ledger_for

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


def typed(rows):
    """Rows as a table of the usual types."""
    columns = zip(*rows, strict=True) if rows else [[]] * len(TYPES)
    arrays = [pa.array(list(cells), kind) for cells, kind in zip(columns, TYPES.values(), strict=True)]
    return pa.table(arrays, names=NAMES)


def many(rows, place=("a", "b", "c", "elsewhere")):
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


def parquet(table, folder):
    pq.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_files(table, folder):
    """Three files of one pattern, the rows shared out unevenly."""
    ends = [0, table.num_rows // 10, table.num_rows // 2, table.num_rows]
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        pq.write_table(table.slice(start, end - start), folder / f"rows{number}.parquet")
    return str(folder / "rows*.parquet")


def csv(table, folder):
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    return folder / "rows.csv"


def csv_gz(table, folder):
    place = folder / "rows.csv.gz"
    place.write_bytes(gzip.compress(csv(table, folder).read_bytes()))
    (folder / "rows.csv").unlink()
    return place


def pandas(table, folder):
    return table.to_pandas()


def pandas_objects(table, folder):
    """Every cell a Python object."""
    return pd.DataFrame({name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names})


def pyarrow_table(table, folder):
    return table


def polars(table, folder):
    return pl.from_arrow(table)


def duckdb(table, folder):
    return duckdb_file(folder / "rows.duckdb", people=table)


def sqlite(table, folder):
    cells = zip(*(table[name].to_pylist() for name in NAMES), strict=True)
    return sqlite_file(folder / "rows.sqlite", "AGE INTEGER, SEX TEXT, HOURS REAL, PLACE TEXT, ID INTEGER", cells)


ALL = [*[parquet, parquet_files, csv, csv_gz, pandas, pandas_objects, pyarrow_table, polars, duckdb, sqlite]]


SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=[18, 65], missing=True),
        Column("SEX", "categorical", values=["f", "m"], missing=True),
        Column("HOURS", "numeric", edges=[20, 38]),
    ]
)
GROUPS = {"PLACE": ["a", "b", "nobody"]}
LEVELS = [Level((), Workload.all_marginals(SCHEMA, 1), total=1), Level("PLACE", Workload.all_marginals(SCHEMA, 2))]
PERSONS = Unit(2, person_id="ID", per_group=1)
PLAN = Plan("people", SCHEMA, Budget.pure(1), PERSONS, LEVELS, GROUPS)
EMPTY = TABLES["empty"]
LEDGER = "budget.ledger"


def plan_for(unit=PERSONS, budget=PLAN.budget):
    return Plan("people", SCHEMA, budget, unit, LEVELS, GROUPS)


def counts_of(private, unit=None):
    """The counts of every column, pair and place, of a source or of what is to be opened as one."""
    parts = Workload.all_marginals(SCHEMA, 2).parts
    with private if isinstance(private, Stream) else open_source(private) as source:
        return [each.tolist() for each in count(source, SCHEMA, parts, GROUPS, unit)]


class Runs:
    """Runs in one folder, with their private files in another: names are in messages, so both are always the same."""

    def __init__(self, folder):
        self.home, self.private = folder / "home", folder / "private"

    def measured(self, kind, table, plan=PLAN, *, broken=""):
        """`measure`, in Python; what it returns and tells its caller's `progress` is observed, too."""
        with self.given(kind, table) as private, observing(self.home, broken=broken) as found:
            release = measure(
                plan, private, "release", ledger_for(plan, LEDGER), execution=Execution(1, progress=self.told(found))
            )
            found["release"] = repr(release), [each.tolist() for part in release.noisy for each in part]
        return found

    @contextmanager
    def given(self, kind, table):
        self.private.mkdir()
        yield kind(table, self.private)
        for path in self.private.iterdir():
            path.unlink()
        self.private.rmdir()

    @staticmethod
    def told(found):
        return lambda *arguments: found["progress"].append(arguments)


def succeeded(found):
    """Two runs that fail alike would show nothing."""
    assert found["outcome"] == "returned", found["outcome"]
    assert found["file release/release.json"][1] > 0
    return found
