"""The law of the door, for every kind of source: one more person, with any cells, changes at most that person's rows.

Types are not held fixed: they follow the rows, as the tool that makes the table infers them. Rows are split over files
in any way. The run with the new person fails if and only if the run without fails; here neither does.
"""

import csv
import datetime
import decimal
import itertools
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from prade import Column, CsvFile, Schema
from prade.measuring.counts import count
from prade.measuring.source import open_source
from prade.measuring.spark import WHILE_COUNTING
from prade.privacy.unit import Unit
from prade.queries.marginal import Marginal

DAY, MOMENT, HOURS = datetime.date, datetime.datetime, datetime.timedelta
TEXTS = ("1", "2", "37.5", "true", "2020-01-01", "2020-01-01 08:30:00", "x", "1234567890123456", "1.5", "00100")
SCHEMA = Schema(
    [
        Column("BINS", "numeric", edges=(20, 38, 60), missing=True),
        Column("CLIPPED", "numeric", edges=(1, 10), min=0, max=60, integer=True),
        Column("LIST", "categorical", values=(1, 2, 65), missing=True),
        Column("TEXT", "categorical", values=TEXTS, missing=True),
        Column("TRUTH", "categorical", values=(False, True), missing=True, unknown="missing"),
        Column("DATE", "numeric", edges=(DAY(2020, 1, 1), DAY(2020, 7, 1)), missing=True),
    ]
)
NAMES = (*SCHEMA.coded, "PLACE", "ID")
PARTS = [Marginal.of(SCHEMA, [name]) for name in SCHEMA.coded]
PLACES = {"PLACE": ["a", "b", "1", "2020-01-01"]}
law = settings(
    derandomize=True,
    deadline=None,
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
    phases=[Phase.explicit, Phase.generate],
)

EAST, WEST = (datetime.timezone(HOURS(hours=hours)) for hours in (9, -5))
NUMBERS = [0, 1, 2, 10, 37, 38, 65, 100, -7, 1234567890123456, 2**53 + 1, 2**62, 1.0, 37.5, 1.5, -0.0, 1e300, np.inf]
WORDS = ["a", "b", "x", "1", "2", "37.5", "true", "False", "2020-01-01", "1e999", " 1 ", "00100", "", "é", "a\nb", 'q"']
DATES = [DAY(2020, 1, 1), DAY(1, 1, 1), DAY(9999, 12, 31), DAY(2020, 6, 30)]
MOMENTS = [MOMENT(2020, 1, 1), MOMENT(2020, 1, 1, 8, 30), MOMENT(2019, 12, 31, 23, 59, 59, 999999), MOMENT(2262, 4, 12)]
DECIMALS = [
    decimal.Decimal(text)
    for text in ("1", "0", "0.0000001", "1.0000000001", "1.50", "37.5", "37.500", "65.0", "-7.25", "100")
]
FAMILIES = {
    "numbers": [*NUMBERS, None],
    "truths": [True, False, None],
    "words": [*WORDS, None],
    "dates": [*DATES, None],
    "moments": [*MOMENTS, None],
    "moments of a zone": [*(moment.replace(tzinfo=datetime.UTC) for moment in MOMENTS), None],
    "decimals": [*DECIMALS, None],
    "nothing": [None],
}
ODD = [
    *[b"1", b"\xff", 1j, (1,), [1], {"a": 1}, object, datetime.time(8), HOURS(days=1), "\ud800", 2**70, -(2**70)],
    *[float("nan"), decimal.Decimal("NaN"), decimal.Decimal("1e400"), pd.NaT, pd.NA, np.bool_(True), np.float32(37.5)],
    *[np.int8(1), np.datetime64("2020-01-01"), np.datetime64("2020-01-01T08:30:00.000000001"), np.datetime64("NaT")],
    *[
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01T08:30", tz="Europe/Berlin"),
        MOMENT(2020, 1, 1, tzinfo=EAST),
    ],
    *[
        MOMENT(2020, 6, 30, 20, tzinfo=WEST),
        pd.Timedelta(1),
        pd.Period("2020-01"),
        np.str_("x"),
        np.timedelta64(5, "ns"),
    ],
    *[decimal.Decimal("0.0000001"), decimal.Decimal("1.0000000001"), decimal.Decimal(0), np.datetime64("12000-01-01")],
]
ANY = [*itertools.chain(*FAMILIES.values()), *ODD]


@st.composite
def neighbours(draw, families, most_files):
    """Rows of others and of one more person, dealt out to files; ids are numbers or texts, some missing."""
    cells = {name: st.sampled_from(draw(st.sampled_from(families))) for name in NAMES}
    others = draw(st.lists(st.fixed_dictionaries(cells), max_size=6))
    new = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=2))
    number = draw(st.booleans())
    for place, row in enumerate(others):
        row["ID"] = draw(st.sampled_from([place // 2, None])) if number else f"p{place // 2}"
    newcomer = draw(st.sampled_from([None, 77, 7.5] if number else [None, "new"]))
    for row in new:
        row["ID"] = newcomer
    unit = draw(st.sampled_from([None, Unit(1, person_id="ID"), Unit(2, person_id="ID", per_group=1)]))
    files = draw(st.lists(st.integers(0, most_files - 1), min_size=len(others), max_size=len(others)))
    homes = draw(st.lists(st.integers(0, most_files - 1), min_size=len(new), max_size=len(new)))
    return unit, others, new, files, homes


def dealt(rows, files, most):
    """The rows of each file that has any, and one file at least."""
    tables = [[row for row, file in zip(rows, files, strict=True) if file == each] for each in range(most)]
    return [table for table in tables if table] or [[]]


def in_columns(rows):
    return {name: [row[name] for row in rows] for name in NAMES}


def outcome(opened, unit):
    """The counts by place and in all; the secret that chooses a person's rows is held fixed."""
    with (
        opened as source,
        patch("prade.measuring.counts.secrets.token_hex", lambda size: "fixed"),
        patch("prade.measuring.streams.ROWS_PER_BATCH", 2),  # so that a few rows are several batches
        patch("prade.data.csv_records.BLOCK", 50),
    ):
        answers = [count(source, SCHEMA, PARTS, PLACES, unit), count(source, SCHEMA, PARTS, None, unit)]
    return [np.concatenate([answer.ravel() for answer in level]) for level in answers]


def check(unit, others, new, files, homes, opened_of):
    """One more person moves each level's counts by at most one count per part and row of theirs, all upwards."""
    before = outcome(opened_of(others, files), unit)
    after = outcome(opened_of([*others, *new], [*files, *homes]), unit)
    allowed = len(new) if unit is None else min(unit.max_rows, len(new))
    for without, within in zip(before, after, strict=True):
        change = within - without
        assert (change >= 0).all()
        assert change.sum() <= allowed * len(PARTS)
    if unit is None:  # without a bound every row counts, once in every part
        assert after[1].sum() - before[1].sum() == len(new) * len(PARTS)


# ---------------------------------------------------------------------- tables in memory

EVERYTHING = [ANY]
ONE_KIND = list(FAMILIES.values())
# Arrow infers no type that holds large whole numbers and floats.
ARROW_KINDS = [[cell for cell in family if not (isinstance(cell, int) and cell > 2**53)] for family in ONE_KIND]


def pandas_frame(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on times of several zones, and on nanoseconds that are dropped
        return pd.DataFrame(in_columns(rows))


def pandas_objects(rows):
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in in_columns(rows).items()})


def pandas_categories(rows):
    return pandas_objects(rows).apply(lambda column: column if _unhashable(column) else column.astype("category"))


def _unhashable(column):
    return any(isinstance(cell, (list, dict)) for cell in column)


def pandas_declared(rows):
    """With pandas' own nullable types, where the cells allow it: a type that does not change with a missing value."""
    return pandas_objects(rows).convert_dtypes()


def polars_frame(rows):
    return pl.DataFrame(in_columns(rows), strict=False)


def polars_objects(rows):
    return pl.DataFrame({name: pl.Series(name, cells, dtype=pl.Object) for name, cells in in_columns(rows).items()})


def arrow_table(rows):
    return pa.table({name: pa.array(cells, from_pandas=True) for name, cells in in_columns(rows).items()})


@pytest.mark.parametrize(
    ("table_of", "families"),
    [
        (pandas_frame, EVERYTHING),
        (pandas_frame, ONE_KIND),
        (pandas_objects, EVERYTHING),
        (pandas_categories, EVERYTHING),
        (pandas_declared, ONE_KIND),
        (in_columns, EVERYTHING),
        (polars_frame, ONE_KIND),
        (polars_objects, EVERYTHING),
        (arrow_table, ARROW_KINDS),
    ],
    ids=lambda value: getattr(value, "__name__", "mixed" if value is EVERYTHING else "kinds"),
)
@law
@given(st.data())
def test_tables_in_memory(table_of, families, data):
    people = data.draw(neighbours(families, 1))
    check(*people, lambda rows, _: open_source(table_of(rows)))


# ---------------------------------------------------------------------- files


def write_pandas_parquet(rows, path):
    pandas_frame(rows).to_parquet(path, index=False)


def write_arrow_parquet(rows, path):
    pq.write_table(arrow_table(rows), path)


def write_polars_parquet(rows, path):
    polars_frame(rows).write_parquet(path)


def write_csv(rows, path):
    """As a CSV writer does it: cells have line breaks, which the test declares."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows([["" if row[name] is None else str(row[name]) for name in NAMES] for row in rows])


@contextmanager
def opened_files(rows, files, most, write, suffix):
    with tempfile.TemporaryDirectory() as folder:
        for place, table in enumerate(dealt(rows, files, most)):
            write(table, Path(folder) / f"part-{place}{suffix}")
            # Rows of tests are few and alike; files that are equal byte for byte would be refused as one file twice.
            _tell_apart(Path(folder) / f"part-{place}{suffix}", place)
        with open_source(CsvFile(f"{folder}/*{suffix}", line_breaks=True)) as source:
            yield source


def _tell_apart(path, place):
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        pq.write_table(table.append_column("FILE", pa.array([place] * len(table))), path)
    else:
        lines = path.read_text(encoding="utf-8")
        path.write_text(lines + "\n" * place, encoding="utf-8", newline="")


@pytest.mark.parametrize("most", [1, 3], ids=["one file", "several files"])
@pytest.mark.parametrize(
    ("write", "suffix", "families"),
    [
        (write_pandas_parquet, ".parquet", ONE_KIND),
        (write_arrow_parquet, ".parquet", ARROW_KINDS),
        (write_polars_parquet, ".parquet", ONE_KIND),
        (write_csv, ".csv", [[*itertools.chain(*FAMILIES.values())]]),
    ],
    ids=["pandas parquet", "arrow parquet", "polars parquet", "csv"],
)
@law
@given(st.data())
def test_files(most, write, suffix, families, data):
    people = data.draw(neighbours(families, most))
    check(*people, lambda rows, homes: opened_files(rows, homes, most, write, suffix))


LINE = st.one_of(
    st.binary(max_size=30),
    st.lists(st.sampled_from([b'"', b",", b"1", b"a", b"2020-01-01", b"\xff", b"\r", b"\x00", b'""']), max_size=16).map(
        b"".join
    ),
).map(lambda line: line.replace(b"\n", b"") + b",")  # not empty: that would be no record


@contextmanager
def opened_lines(lines, encoding):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rows.csv").write_bytes(b"\n".join([",".join(NAMES).encode(), *lines, b""]))
        with open_source(CsvFile(f"{folder}/rows.csv", encoding)) as source:
            yield source


@law
@given(
    st.lists(LINE, max_size=6), st.lists(LINE, min_size=1, max_size=2), st.sampled_from(["utf-8", "cp1252"]), st.data()
)
def test_csv_lines_of_any_bytes(others, new, encoding, data):
    """Even one person's quotes and bytes that are not text: a line is a record, wherever it is."""
    place = data.draw(st.integers(0, len(others)))
    before = outcome(opened_lines(others, encoding), None)
    after = outcome(opened_lines([*others[:place], *new, *others[place:]], encoding), None)
    for without, within in zip(before, after, strict=True):
        assert (within >= without).all()
    by_place, in_all = (within.sum() - without.sum() for without, within in zip(before, after, strict=True))
    assert by_place <= in_all == len(new) * len(PARTS)


# ---------------------------------------------------------------------- databases

SQLITE = [
    None,
    1,
    2,
    0,
    37.5,
    1.0,
    1e300,
    2**62,
    1234567890123456,
    "1",
    "x",
    "a",
    "2020-01-01",
    "true",
    b"1",
    b"\xff\xfe",
]
SQLITE_TYPES = ["INTEGER", "REAL", "TEXT", "NUMERIC", "BLOB", "DATE", "BOOLEAN", "DECIMAL(10,2)", ""]


@pytest.fixture(scope="module")
def folder():
    made = tempfile.mkdtemp()
    yield Path(made)
    shutil.rmtree(made)


@contextmanager
def sqlite_table(rows, types, folder, through_ibis):
    path = folder / "rows.sqlite"
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
    marks = ", ".join("CAST(? AS TEXT)" if name == "TEXT" else "?" for name in NAMES)  # bytes as text: not UTF-8
    database.executemany(f"INSERT INTO people VALUES ({marks})", [[row[name] for name in NAMES] for row in rows])
    database.commit()
    database.close()
    with ExitStack() as closing:
        private = f"sqlite://{path}/people"
        if through_ibis:
            ibis = pytest.importorskip("ibis")
            connection = ibis.sqlite.connect(path)
            closing.callback(connection.disconnect)
            private = connection.table("people")
        yield closing.enter_context(open_source(private))


@pytest.mark.parametrize("through_ibis", [False, True], ids=["address", "ibis"])
@law
@given(st.data())
def test_sqlite(through_ibis, folder, data):
    """Its columns' types bind no cell; Ibis itself guesses the type of a column that has none from the first row."""
    declared = SQLITE_TYPES[:-1] if through_ibis else SQLITE_TYPES
    types = {name: data.draw(st.sampled_from(declared)) for name in NAMES}
    people = data.draw(neighbours([SQLITE], 1))
    check(*people, lambda rows, _: sqlite_table(rows, types, folder, through_ibis))


POSTGRES_TYPES = {
    "SMALLINT": [0, 1, 2, 65, -32768, None],
    "BIGINT": [1, 2, 37, 65, 2**62, -(2**63), None],
    "NUMERIC": ["1", "1.50", "37.5", "NaN", "1e400", "-1e-400", None],
    "DOUBLE PRECISION": [1.0, 37.5, float("nan"), float("inf"), -float("inf"), 1e300, None],
    "BOOLEAN": [True, False, None],
    "TEXT": [*WORDS, None],
    "DATE": ["2020-01-01", "infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", None],
    "TIMESTAMP": ["2020-01-01", "2020-01-01 08:30:00", "infinity", "-infinity", "294276-12-31 23:59:59", None],
    "TIMESTAMPTZ": ["2020-01-01 00:00:00+00", "infinity", "-infinity", "294276-12-31 00:00:00+00", None],
}
DUCKDB_TYPES = {
    "TINYINT": [0, 1, 2, 65, -128, 127, None],
    "BIGINT": [1, 2, 37, 65, 2**62, -(2**63), None],
    "HUGEINT": [1, 65, 2**100, -(2**100), None],
    "UBIGINT": [1, 65, 2**64 - 1, None],
    "DOUBLE": [1.0, 37.5, float("nan"), float("inf"), -float("inf"), 1e300, None],
    "FLOAT": [1.0, 37.5, float("nan"), float("inf"), None],
    "DECIMAL(38, 10)": DECIMALS,
    "BOOLEAN": [True, False, None],
    "VARCHAR": [*WORDS, None],
    "DATE": ["2020-01-01", "infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", None],
    "TIMESTAMP": ["2020-01-01", "2020-01-01 08:30:00", "infinity", "-infinity", "294247-01-10 04:00:54", None],
    "TIMESTAMP_S": ["2020-01-01", "2020-01-01 08:30:00", "290000-01-01", "290308-12-21 (BC) 00:00:00", None],
    "TIMESTAMP_MS": ["2020-01-01", "2020-01-01 08:30:00", "290000-01-01", None],
    "TIMESTAMP_NS": ["2020-01-01", "2020-01-01 08:30:00.000000001", "1677-09-22", "2262-04-11", None],
    "TIMESTAMPTZ": ["2020-01-01 00:00:00+00", "2020-01-01 08:30:00+09", "infinity", "294247-01-10 04:00:54+00", None],
}


@contextmanager
def duckdb_table(rows, types, folder):
    duckdb = pytest.importorskip("duckdb")
    path = folder / "rows.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as database:
        database.execute(f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
        for row in rows:
            database.execute(
                f"INSERT INTO people VALUES ({', '.join('?' * len(NAMES))})", [row[name] for name in NAMES]
            )
    with open_source(f"duckdb://{path}/people") as source:
        yield source


@contextmanager
def postgres_table(rows, types, url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS one_person")
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        database.execute(f"CREATE TABLE one_person ({columns})")
        for row in rows:
            marks = ", ".join(f"%s::{kind}" for kind in types.values())
            database.execute(f"INSERT INTO one_person VALUES ({marks})", [row[name] for name in NAMES])
    with open_source(f"{url}/one_person") as source:
        yield source


def readable(name, kind):
    """Whether a database's column of that type may be counted for a schema's column, whatever is in it."""
    dates = kind.startswith(("DATE", "TIMESTAMP"))
    if name in ("TEXT", "PLACE", "ID"):
        return True
    return kind in ("VARCHAR", "TEXT") or dates == (name == "DATE")


def database_rows(data, types, kinds):
    """Neighbours whose cells are of the declared types."""
    cells = st.fixed_dictionaries({name: st.sampled_from(kinds[kind]) for name, kind in types.items()})
    others, new = data.draw(st.lists(cells, max_size=6)), data.draw(st.lists(cells, min_size=1, max_size=2))
    for place, row in enumerate(others):
        row["ID"] = data.draw(st.sampled_from([str(place // 2), None]))
    newcomer = data.draw(st.sampled_from(["new", None]))
    unit = data.draw(st.sampled_from([None, Unit(1, person_id="ID"), Unit(2, person_id="ID", per_group=1)]))
    return unit, others, [{**row, "ID": newcomer} for row in new], [0] * len(others), [0] * len(new)


def types_of(data, kinds, text):
    """A type of the database for each column; those of the place and the id are text."""
    chosen = {name: data.draw(st.sampled_from([kind for kind in kinds if readable(name, kind)])) for name in NAMES}
    return chosen | {"PLACE": text, "ID": text, "TEXT": data.draw(st.sampled_from([text, "BIGINT", "DATE"]))}


@law
@given(st.data())
def test_postgres(postgres_url, data):
    types = types_of(data, POSTGRES_TYPES, "TEXT")
    check(*database_rows(data, types, POSTGRES_TYPES), lambda rows, _: postgres_table(rows, types, postgres_url))


@law
@given(st.data())
def test_duckdb(folder, data):
    types = types_of(data, DUCKDB_TYPES, "VARCHAR")
    check(*database_rows(data, types, DUCKDB_TYPES), lambda rows, _: duckdb_table(rows, types, folder))


# ---------------------------------------------------------------------- Spark, with all examples in one table

SPARK_WORDS = [
    *(
        "'1'",
        "'x'",
        "'37.5'",
        "'true'",
        "'False'",
        "'2020-01-01'",
        "' 1 '",
        "'00100'",
        "''",
        "'é'",
        "'a'",
        "'b'",
        "NULL",
    ),
    *("'1\\u2028'", "'2020-01-1\\u2028'", "'1\\u0085'", "'1d'", "'0x1p3'", "'NaN'", "'Infinity'", "'v1'", "'1e999'"),
    *("repeat('9', 400)", "CAST(x'FF' AS STRING)", "CAST(x'31FF' AS STRING)", "'2020-13-99'", "'9999-12-31'"),
]
SPARK_TYPES = {
    "TINYINT": ["0", "1", "2", "65", "-128", "127", "NULL"],
    "BIGINT": ["1", "2", "37", "65", "4611686018427387904", "-9223372036854775808", "NULL"],
    "DOUBLE": ["1", "37.5", "1e300", "-0.0D", "'NaN'", "'Infinity'", "'-Infinity'", "NULL"],
    "FLOAT": ["1", "37.5", "'NaN'", "'Infinity'", "NULL"],
    "DECIMAL(38, 10)": ["1", "0.0000001", "37.5", "-7.25", f"{'9' * 28}.{'9' * 10}BD", "NULL"],
    "BOOLEAN": ["TRUE", "FALSE", "NULL"],
    "STRING": SPARK_WORDS,
    "STRING COLLATE UTF8_LCASE": SPARK_WORDS,
    "DATE": ["'2020-01-01'", "'0001-01-01'", "'-4712-01-01'", "'+290000-01-01'", "NULL"],
    "TIMESTAMP": ["'2020-01-01 00:00:00'", "'0001-01-01 00:00:00'", "'2020-01-01 08:30:00'", "'+290000-01-01'", "NULL"],
    "TIMESTAMP_NTZ": ["'2020-01-01 00:00:00'", "'0001-01-01 00:00:00'", "'+290000-01-01 00:00:00'", "NULL"],
}
PAIRS = 20


def spark_worlds(generator, types):
    """Rows of worlds in pairs, as SQL: the second world of a pair is the first with one more person; and their rows."""
    rows, added = [], []

    def row(world, person):
        cells = {name: generator.choice(SPARK_TYPES[kind]) for name, kind in types.items()}
        cells["ID"] = "NULL" if person is None else f"'{world // 2}:{person}'"
        return cells

    for pair in range(PAIRS):
        others = [row(2 * pair, generator.choice([place // 2, None])) for place in range(generator.integers(7))]
        newcomer = generator.choice(["new", None])
        new = [row(2 * pair, newcomer) for _ in range(generator.integers(1, 3))]
        rows += [(2 * pair, each) for each in others] + [(2 * pair + 1, each) for each in [*others, *new]]
        added.append(len(new))
    lines = [
        f"({world}, {', '.join(f'CAST({cells[name]} AS {kind})' for name, kind in types.items())})"
        for world, cells in rows
    ]
    return ", ".join(lines), added


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("unit", "ansi"),
    [(None, "true"), (Unit(1, person_id="ID"), "false"), (Unit(2, person_id="ID", per_group=1), "true")],
    ids=["rows", "one row", "one row in each group"],
)
def test_spark(spark, unit, ansi):
    """Also in the mode in which casts may fail: prade turns it off, but its expressions need not rely on that.

    A pair's persons have the same names in both of its worlds, which are never counted together.
    """
    generator = np.random.default_rng([len(str(unit)), len(ansi)])
    text = generator.choice(["STRING", "STRING COLLATE UTF8_LCASE"])
    types = {name: generator.choice([k for k in SPARK_TYPES if spark_readable(name, k)]) for name in NAMES}
    types |= {"PLACE": text, "ID": "STRING", "TEXT": generator.choice([text, "BIGINT", "DATE"]), "BINS": text}
    values, added = spark_worlds(generator, types)
    spark.session.sql("DROP TABLE IF EXISTS one_person")
    columns = ", ".join(["WORLD", *NAMES])
    spark.session.sql(f"CREATE TABLE one_person USING parquet AS SELECT * FROM VALUES {values} AS t({columns})")
    found = []
    for side in range(2):
        table = pytest.importorskip("ibis").pyspark.connect(spark.session).table("one_person")
        worlds = {"WORLD": [2 * pair + side for pair in range(PAIRS)]}
        with (
            open_source(table.filter(side == table.WORLD % 2)) as source,
            patch("prade.measuring.counts.secrets.token_hex", lambda size: "fixed"),
            patch.dict(WHILE_COUNTING, {"spark.sql.ansi.enabled": ansi}),
        ):
            found.append(np.concatenate(count(source, SCHEMA, PARTS, worlds, unit), axis=1))
    change = found[1] - found[0]
    assert (change >= 0).all()
    for moved, new in zip(change, added, strict=True):
        assert moved.sum() <= len(PARTS) * (new if unit is None else min(new, unit.max_rows))
        if unit is None:  # without a bound every row counts, once in every part
            assert moved.sum() == len(PARTS) * new
    assert change.sum() > 0


def spark_readable(name, kind):
    return readable(name, "TEXT" if kind.startswith("STRING") else kind)
