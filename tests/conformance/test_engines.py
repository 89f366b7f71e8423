"""Every kind of source counts every type of column under every kind of schema as an independent reader does.

The reader below knows neither Arrow nor SQL: it takes the cells as Python values, one by one. Databases refuse a type
that cannot fit the schema's column, with rows or without; files and tables in memory, whose types follow their rows,
never do.
"""

import csv
import datetime
import decimal
import math
import re
import sqlite3
import warnings
from contextlib import contextmanager

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, Schema
from prade.core.errors import DataError
from prade.measuring.source import open_source
from prade.queries.parts import Marginal
from worlds.counting import count

DAY, MOMENT = datetime.date, datetime.datetime
D = decimal.Decimal
LISTED = ("1", "2", "37.5", "1.5", "true", "2020-01-01", "2020-01-01 08:30:00", "x", "1234567890123456")
COLUMNS = {
    "bins": {"kind": "numeric", "edges": (1.5, 20, 38), "missing": True},
    "bounded": {"kind": "numeric", "edges": (1, 10), "min": 0, "max": 60, "integer": True},
    "strict": {"kind": "numeric", "edges": (1, 10), "min": 0, "max": 60, "missing": True, "unknown": "missing"},
    "list": {"kind": "categorical", "values": (1, 2, 65), "missing": True},
    "halves": {"kind": "categorical", "values": (1.0, 1.5, 37.5), "other": 1.5},
    "texts": {"kind": "categorical", "values": LISTED, "missing": True},
    "codes": {"kind": "categorical", "values": ("00001", "00065", "x"), "missing": True},
    "truths": {"kind": "categorical", "values": (False, True), "missing": True},
}
BOUNDS = {"edges": (DAY(2020, 1, 1), DAY(2020, 7, 1)), "max": DAY(2020, 12, 31)}
COLUMNS["dates"] = {"kind": "numeric", **BOUNDS, "missing": True}
INTEGERS = [0, 1, 2, 10, 37, 65, -7, None]
FLOATS = [1.0, 1.5, 37.5, 65.0, -0.0, 1e300, math.inf, -math.inf, math.nan, None]
DECIMALS = [D("1.00"), D("1.50"), D("37.50"), D("65.00"), D("-7.25"), None]
WORDS = ["1", "2", "37.5", "1.50", " 1 ", "true", "TRUE", "0", "x", "2020-01-01", "2020-06-30T08:30", "1e1", "", "nan"]
WORDS += [None]
DATES = [DAY(2020, 1, 1), DAY(2019, 12, 31), DAY(2020, 12, 31), DAY(1900, 1, 1), DAY(9999, 12, 31), None]
MOMENTS = [MOMENT(2020, 1, 1), MOMENT(2020, 1, 1, 8, 30), MOMENT(2019, 12, 31, 23, 59, 59), MOMENT(2020, 12, 31, 12)]
MOMENTS += [None]
SINGLES = [cell if cell != 1e300 else 1e30 for cell in FLOATS]
NUMERICS = [1, 1.5, 37.5, 65, -7.25, None]
LARGE = [1234567890123456, 2**53, 2**62, -(2**62), None]


def reference(column, cell):
    """The code of one cell."""
    if cell is None or cell != cell:
        return column.present if column.missing else column.fallback
    if column.numeric:
        number = day_of(cell) if column.dates else number_of(cell)
        return column.fallback if number is None else bin_of(column, number)
    if column.value_type == "str":
        return place_in(column, text_of(column, cell))
    if column.value_type == "bool" and isinstance(cell, str):
        return place_in(column, {"false": False, "0": False, "true": True, "1": True}.get(cell.strip().lower()))
    return place_in(column, number_of(cell))


def bin_of(column, number):
    outside = (column.min is not None and number < column.min) or (column.max is not None and number > column.max)
    return column.size - 1 if outside and column.unknown == "missing" else sum(number >= cut for cut in column.cuts)


def place_in(column, value):
    return column.values.index(value) if value is not None and value in column.values else column.fallback


def number_of(cell):
    if isinstance(cell, str):
        written = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", cell.strip(), re.ASCII)
        return float(cell) if written else None
    return float(cell) if isinstance(cell, (bool, int, float, D)) else None


def day_of(cell):
    if isinstance(cell, str):
        found = re.match(r"\s*(\d{4}-\d{2}-\d{2})", cell)
        cell = DAY.fromisoformat(found[1]) if found else None
    if isinstance(cell, MOMENT):
        return (cell - MOMENT(1970, 1, 1)) / datetime.timedelta(days=1)
    return (cell - DAY(1970, 1, 1)).days if isinstance(cell, DAY) else None


def text_of(column, cell):
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, (int, float, D)):
        if abs(cell) >= 2**53:
            return None
        short = str(int(cell)) if cell == int(cell) else f"{float(cell)!r}"
        widths = {len(value) for value in column.values if value.isdigit()}
        padded = short.zfill(widths.pop()) if len(widths) == 1 else short
        return padded if padded in column.values else short
    if isinstance(cell, MOMENT):
        return cell.isoformat(" ").removesuffix(" 00:00:00")
    return cell.isoformat() if isinstance(cell, DAY) else cell if isinstance(cell, str) else None


DUCKDB = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), INTEGERS),
    "UTINYINT": [0, 1, 2, 65, None],
    "UHUGEINT": [0, 1, 2, 65, 2**100, None],
    "BIGINT large": LARGE,
    "DOUBLE": FLOATS,
    "FLOAT": SINGLES,
    **dict.fromkeys(("DECIMAL(9, 2)", "DECIMAL(18, 2)", "DECIMAL(38, 10)"), DECIMALS),
    "BOOLEAN": [True, False, None],
    "VARCHAR": WORDS,
    "ENUM ('x', '1', 'true')": ["x", "1", "true", None],
    "DATE": DATES,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"), MOMENTS),
}
POSTGRES = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), INTEGERS),
    "BIGINT large": LARGE,
    "DOUBLE PRECISION": FLOATS,
    "REAL": SINGLES,
    **dict.fromkeys(("NUMERIC", "NUMERIC(9, 2)", "NUMERIC(38, 10)"), DECIMALS),
    "BOOLEAN": [True, False, None],
    **dict.fromkeys(("TEXT", "VARCHAR(40)"), WORDS),
    "DATE": DATES,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ"), MOMENTS),
}
SPARK = {
    **dict.fromkeys(("TINYINT", "BIGINT"), INTEGERS),
    "BIGINT large": LARGE,
    "DOUBLE": FLOATS,
    "FLOAT": SINGLES,
    "DECIMAL(38, 10)": DECIMALS,
    "BOOLEAN": [True, False, None],
    **dict.fromkeys(("STRING", "STRING COLLATE UTF8_LCASE"), WORDS),
    "DATE": DATES,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), MOMENTS),
}
SQLITE = {
    **dict.fromkeys(("INTEGER", "INT", "BIGINT"), INTEGERS),
    "BIGINT large": LARGE,
    **dict.fromkeys(("REAL", "DOUBLE"), FLOATS),
    **dict.fromkeys(("NUMERIC", "DECIMAL(9, 2)"), NUMERICS),
    "BOOLEAN": [1, 0, None],
    **dict.fromkeys(("TEXT", "VARCHAR(40)"), WORDS),
    "DATE": ["2020-01-01", "2019-12-31", "2020-12-31", None],
    "": [1, 1.5, "x", "2020-01-01", None],
}
ARROW = {
    **{str(kind): (INTEGERS, kind) for kind in (pa.int8(), pa.int32(), pa.int64())},
    "unsigned": ([0, 1, 2, 65, 2**64 - 1, None], pa.uint64()),
    "large": (LARGE, pa.int64()),
    **{str(kind): (FLOATS, kind) for kind in (pa.float32(), pa.float64())},
    **{str(kind): (DECIMALS, kind) for kind in (pa.decimal128(9, 2), pa.decimal256(60, 4))},
    "truths": ([True, False, None], pa.bool_()),
    "words": (WORDS, pa.string()),
    "large words": (WORDS, pa.large_string()),
    "dates": (DATES, pa.date32()),
    "date64": (DATES, pa.date64()),
    **{f"moments {unit}": (MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "moments UTC": (MOMENTS, pa.timestamp("us", "UTC")),
    "nothing": ([None, None], pa.null()),
}


def declared(kinds, names=tuple(COLUMNS)):
    """One schema column for each declaration and type: its name says both."""
    return {
        f"{name} of {kind}": (Column(f"{name} of {kind}", **COLUMNS[name]), kind) for name in names for kind in kinds
    }


def sql_table(execute, name, kinds, mark, cell_of):
    """A table with a column of each type for each declaration."""
    columns = declared(kinds)
    sql = ", ".join(f'"{column}" {kind.removesuffix(" large")}' for column, (_, kind) in columns.items())
    execute(f"CREATE TABLE {name} ({sql})", ())
    for place in range(max(map(len, kinds.values()))):
        row = [cell_of(kinds[kind][place], kind) if place < len(kinds[kind]) else None for _, kind in columns.values()]
        execute(f"INSERT INTO {name} VALUES ({', '.join([mark] * len(row))})", row)


def counted(source, schema, names):
    """The counts of the columns that can be counted, and what is said about the others before anything is counted."""
    refused = {}
    while True:
        readable = [name for name in names if name not in refused]
        try:
            counts = count(source, schema, [Marginal.of(schema, [name]) for name in readable])
        except DataError as error:
            refused |= {name: str(error) for name in readable if f"column {name!r}" in str(error)} or pytest.fail(
                str(error)
            )
        else:
            return dict(zip(readable, counts, strict=True)), refused


def check(source, kinds, cells_of, empty=None, names=tuple(COLUMNS)):
    """Count what can be counted, and see that the rest is refused, also where there are no rows."""
    columns = declared(kinds, names)
    schema = Schema([column for column, _ in columns.values()])
    longest = max(len(cells_of(kind)) for kind in kinds)
    found, refused = counted(source, schema, columns)
    for name, counts in found.items():
        column, kind = columns[name]
        cells = [*cells_of(kind), *[None] * (longest - len(cells_of(kind)))]
        expected = [0] * column.size
        for cell in cells:
            expected[reference(column, cell)] += 1
        assert counts[0].tolist() == expected, (name, cells)
    if empty is not None:
        for name in refused:
            with pytest.raises(DataError):
                count(empty, schema, [Marginal.of(schema, [name])])
    for words in refused.values():
        assert re.search("can equal a listed value|cannot be coded|the schema has", words)
    assert len(found) > len(columns) / 2
    return list(refused)


def check_database(addresses, kinds, names=tuple(COLUMNS)):
    with open_source(addresses[0]) as rows, open_source(addresses[1]) as empty:
        refused = check(rows, kinds, kinds.__getitem__, empty, names)
    assert {"dates of BIGINT", "bins of DATE", "list of TIMESTAMP"} <= set(refused)


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    for name in ("people", "nobody"):
        with duckdb.connect(str(tmp_path / f"{name}.db")) as database:
            sql_table(lambda sql, row: database.execute(sql, row), "everybody", DUCKDB, "?", of_zone)
            if name == "nobody":
                database.execute("DELETE FROM everybody")
    check_database([f"duckdb://{tmp_path}/{each}.db/everybody" for each in ("people", "nobody")], DUCKDB)


def of_zone(cell, kind):
    return cell.replace(tzinfo=datetime.UTC) if kind == "TIMESTAMPTZ" and cell is not None else cell


def test_postgres(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as database:
        for name in ("people_of_all_types", "nobody_of_all_types"):
            sql_table(lambda sql, row: database.execute(sql, row or None), name, POSTGRES, "%s", of_zone)
        database.execute("DELETE FROM nobody_of_all_types")
    check_database([f"{postgres_url}/{each}_of_all_types" for each in ("people", "nobody")], POSTGRES)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # its sockets
def test_spark(spark):
    """Some declarations only: each column that is refused takes two queries."""
    names = ("bins", "list", "texts", "dates")
    columns = declared(SPARK, names)
    types = ", ".join(f"`{name}` {kind.removesuffix(' large')}" for name, (_, kind) in columns.items())
    longest = max(map(len, SPARK.values()))
    rows = [
        [SPARK[kind][place] if place < len(SPARK[kind]) else None for _, kind in columns.values()]
        for place in range(longest)
    ]
    for name, given in (("people_of_all_types", rows), ("nobody_of_all_types", [])):
        frame = spark.session.createDataFrame(given, types)
        frame.write.mode("overwrite").saveAsTable(f"default.{name}")
    check_database([spark.address(f"{each}_of_all_types") for each in ("people", "nobody")], SPARK, names)


def test_sqlite(tmp_path):
    """No type is refused: a SQLite column's type binds none of its cells."""
    database = sqlite3.connect(tmp_path / "rows.sqlite")
    sql_table(database.execute, "people", SQLITE, "?", lambda cell, kind: cell)
    database.commit()
    database.close()
    with open_source(f"sqlite://{tmp_path}/rows.sqlite/people") as source:
        assert check(source, SQLITE, SQLITE.__getitem__) == []


def arrow_columns():
    longest = max(len(cells) for cells, _ in ARROW.values())
    return {
        name: pa.array([*ARROW[kind][0], *[None] * (longest - len(ARROW[kind][0]))], ARROW[kind][1])
        for name, (_, kind) in declared(ARROW).items()
    }


@contextmanager
def arrow_sources(way, tmp_path):
    table = pa.table(arrow_columns())
    if way in ("parquet", "two files"):
        pq.write_table(table.slice(0, 4 if way == "two files" else None), tmp_path / "part-1.parquet")
        if way == "two files":
            pq.write_table(table.slice(4), tmp_path / "part-2.parquet")
        table = str(tmp_path / "part-*.parquet")
    elif way == "objects":
        table = pd.DataFrame(
            {name: pd.Series(column.to_pylist(), dtype=object) for name, column in arrow_columns().items()}
        )
    elif way == "pandas":
        table = table.to_pandas()
    elif way == "polars":  # which has no decimals of that length
        table = pl.from_arrow(table.select([name for name in table.column_names if "decimal256" not in name]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nanoseconds that are dropped
        with open_source(table) as source:
            yield source


@pytest.mark.parametrize("way", ["arrow", "parquet", "two files", "pandas", "objects", "polars"])
def test_types_of_tables(way, tmp_path):
    with arrow_sources(way, tmp_path) as source:
        kinds = {kind: cells for kind, cells in ARROW.items() if way != "polars" or "decimal256" not in kind}
        assert check(source, kinds, lambda kind: ARROW[kind][0]) == []


def test_csv(tmp_path):
    kinds = {"text": [word for word in WORDS if word != ""]}
    names = list(declared(kinds))
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *[[cell or ""] * len(names) for cell in kinds["text"]]])
    with open_source(tmp_path / "rows.csv") as source:
        assert check(source, kinds, kinds.__getitem__) == []
