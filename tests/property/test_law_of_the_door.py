"""The law of the door over every engine and every type that it declares, with extreme cells and extreme schemas.

Whatever a cell holds, a run with it ends as the run without it: with the same words, and with the codes of all other
rows unchanged. A type may be refused, in words that name the column, and then for a table without rows, too. Every
cell is tried in a table with all others, in one with half of them, and in none (`worlds/extremes.py`).

Files and tables in memory, whose types follow their rows, are also tried in `test_one_person.py`.
"""

import decimal
import math
import sqlite3
from contextlib import contextmanager, nullcontext
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade.measuring.source import open_source
from worlds.extremes import CELLS, EVERY, SUBSETS, WORLDS, check_law, chosen, copies

opened = partial(open_source, rows_per_batch=16)  # so that rows, all of which are few, are in several batches


def padded(cells):
    """The cells of all worlds: the rest is missing."""
    return [*cells, *[None] * (WORLDS - len(cells))]


def views(execute, types):
    """Of the table `given`, a view of each subset of its rows, with the copies of each column."""
    columns = ", ".join(f"{name} AS {own}" for name in types for own in copies(name))
    for number, worlds in enumerate(SUBSETS):
        listed = ", ".join(map(str, (-1, *worlds)))
        execute(f'CREATE VIEW rows_{number} AS SELECT "WORLD", "ONE", {columns} FROM given WHERE "WORLD" IN ({listed})')


def law(address, types):
    """The law of the tables rows_0 and so on at an address."""
    check_law(types, lambda worlds: opened(f"{address}/rows_{SUBSETS.index(worlds)}"), r"rows_\d+")


DUCKDB_NESTED = [
    *("DECIMAL(4, 1)", "DECIMAL(9, 9)", "DECIMAL(18, 0)", "DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(38, 10)"),
    *("ENUM ('a', 'b', '1', '2020-01-01')", "INTEGER[]", "VARCHAR[]", "INTEGER[3]", "MAP(VARCHAR, INTEGER)"),
    *("STRUCT(a INTEGER)", "UNION(n INTEGER, s VARCHAR)", "UNION(d DATE, s VARCHAR)", "TIMESTAMP_NS[]"),
]


def duckdb_types(database):
    """Every type that a column of this version may have."""
    named = "SELECT DISTINCT type_name FROM duckdb_types() ORDER BY type_name"
    declared = {}
    for (name,) in [*database.execute(named).fetchall(), *((each,) for each in DUCKDB_NESTED)]:
        try:
            database.execute(f"CREATE OR REPLACE TABLE tried (x {name})")
        except Exception:  # types that need arguments, which are in the list above, and those of no column
            continue
        described = "SELECT data_type FROM duckdb_columns() WHERE table_name = 'tried'"
        declared[database.execute(described).fetchall()[0][0]] = name
    database.execute("DROP TABLE tried")
    return list(declared.values())


def duckdb_cells(database, name):
    """The literals that can be cast to a type, and their texts."""
    found = []
    for cell in CELLS:
        try:
            ((text,),) = database.execute(f"SELECT CAST(TRY_CAST(? AS {name}) AS VARCHAR)", [cell]).fetchall()
        except Exception:
            continue
        if text is not None:
            found.append((cell, text))
    return found


def test_duckdb(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    place = tmp_path / "rows.duckdb"
    with duckdb.connect(place) as database:
        names = duckdb_types(database)
        types = {f"c{number}": name for number, name in enumerate(names)}
        cells = {column: padded(chosen(name, duckdb_cells(database, name))) for column, name in types.items()}
        database.register(
            "raw", pa.table({"WORLD": list(EVERY), **{c: pa.array(each, pa.string()) for c, each in cells.items()}})
        )
        casts = ", ".join(
            f"CASE WHEN {column} IS NOT NULL THEN TRY_CAST({column} AS {name}) END AS {column}"
            for column, name in types.items()
        )
        types["nothing"] = "NULL"
        database.execute(f"CREATE TABLE given AS SELECT WORLD, 1 AS ONE, {casts}, NULL AS nothing FROM raw")
        views(database.execute, types)
    assert len(types) > 40
    # A file that is open already, with the same settings, is opened at once.
    monkeypatch.setattr("prade.measuring.engines.spill_folder", lambda: nullcontext(tmp_path))
    config = {"temp_directory": str(tmp_path), "arrow_large_buffer_size": "true"}
    with duckdb.connect(place, read_only=True, config=config):
        law(f"duckdb://{place}", types)


MADE = {  # types that a database defines itself
    "mood": "CREATE TYPE mood AS ENUM ('a', 'b', '1', '2020-01-01')",
    "pair": "CREATE TYPE pair AS (x integer, y text)",
    "narrow": "CREATE DOMAIN narrow AS numeric(4, 1)",
    "words": "CREATE DOMAIN words AS text CHECK (length(VALUE) < 100000)",
    "spans": "CREATE TYPE spans AS RANGE (SUBTYPE = float8)",
}
POSTGRES_MORE = [
    *("numeric(9, 2)", "numeric(1000, 500)", "numeric(38, 10)", "char(3)", "varchar(5000)", "bit(6)", "varbit"),
    *("timestamp(0)", "timestamptz(3)", "time(0)", "interval year", "integer[]", "text[]", "date[]", "mood[]"),
    *('text COLLATE "C"', "text COLLATE anycase", "varchar(5000) COLLATE anycase", "words COLLATE anycase"),
]
ANYCASE = "CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
BASE_TYPES = """
    SELECT format_type(t.oid, NULL) FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE n.nspname = 'pg_catalog' AND t.typtype IN ('b', 'r', 'm') AND t.typelem = 0 AND t.typisdefined
    ORDER BY 1
"""
TRY_CAST = """
    CREATE FUNCTION text_of(cell text, kind text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE found text;
    BEGIN
        EXECUTE format('SELECT (%L::%s)::text', cell, kind) INTO found;
        RETURN found;
    EXCEPTION WHEN OTHERS THEN RETURN NULL;
    END $$
"""


def postgres_types(database):
    """Every type that a column may have."""
    names = [name for (name,) in database.execute(BASE_TYPES).fetchall()]
    database.execute(TRY_CAST)
    try:
        database.execute(ANYCASE)
        database.execute("CREATE EXTENSION citext")
        names.append("citext")
    except Exception:  # this server has no ICU, or no extensions
        names = [name for name in names if "anycase" not in name]
    for made in MADE.values():
        database.execute(made)
    found = []
    for name in [*names, *MADE, *POSTGRES_MORE]:
        try:
            database.execute(f"CREATE TABLE tried (x {name})")
        except Exception:  # pseudo-types
            continue
        database.execute("DROP TABLE tried")
        found.append(name)
    return found


@contextmanager
def own_database(url, encoding):
    """The address of a new database of this server."""
    import psycopg

    name = f"law_{encoding.lower()}"
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0")
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        database.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_postgres(postgres_url):
    import psycopg

    with own_database(postgres_url, "UTF8") as url:
        with psycopg.connect(url, autocommit=True) as database:
            types = {f"c{number}": name for number, name in enumerate(postgres_types(database))}
            casts = {}
            for column, name in types.items():
                bare = name.partition(" COLLATE")[0]
                tried = "SELECT cell, text_of(cell, %s) FROM unnest(%s::text[]) AS cell"
                known = [row for row in database.execute(tried, [bare, CELLS]).fetchall() if row[1] is not None]
                cells = padded(chosen(name, known))
                casts[column] = [None if cell is None else f"{sql(cell)}::{bare}" for cell in cells]
            columns = ", ".join(f'"{column}" {name}' for column, name in types.items())
            database.execute(f'CREATE TABLE given ("WORLD" bigint, "ONE" integer, {columns})')
            for world in EVERY:
                cells = ", ".join(each[world] or "NULL" for each in casts.values())
                database.execute(f"INSERT INTO given VALUES ({world}, 1, {cells})".encode())
            views(database.execute, types)
        assert len(types) > 60
        law(url, types)


def sql(text):
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


RAW = [b"a", b"\xff", b"\xff\\xff", b"\\xff\xff", b"\xc3\xa9", b"\xe9", b"1", b"\x80", b"\xed\xa0\x80", b"v50\xfe"]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_postgres_databases_that_are_not_unicode(encoding, postgres_url):
    """Their text may have any bytes, or bytes that mean something else."""
    import psycopg

    types = {"c0": "text", "c1": "varchar(20)", "c2": "char(9)", "c3": "name", "c4": "bytea", "c5": "text[]"}
    with own_database(postgres_url, encoding) as url:
        with psycopg.connect(f"{url}?client_encoding={encoding}", autocommit=True) as database:
            columns = ", ".join(f"{column} {name}" for column, name in types.items())
            database.execute(f'CREATE TABLE given ("WORLD" bigint, "ONE" integer, {columns})')
            kept = []
            for raw in RAW:
                escaped = "".join(f"\\x{byte:02x}" for byte in raw)
                cell, bits = f"E'{escaped}'", f"'\\x{raw.hex()}'"
                cells = f"{len(kept)}, 1, {cell}, {cell}, {cell}, {cell}, {bits}, ARRAY[{cell}]"
                try:
                    database.execute(f"INSERT INTO given VALUES ({cells})".encode())
                except psycopg.errors.CharacterNotInRepertoire:
                    continue
                kept.append(raw.hex())
            for world in range(len(kept), WORLDS):
                database.execute(f'INSERT INTO given ("WORLD", "ONE") VALUES ({world}, 1)')
            views(database.execute, types)
        assert len(kept) > 2
        law(url, types)


STORED = [
    *(0, 1, -1, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), 37.5, 1e300, -1e300, 5e-324, math.inf, -math.inf),
    *("", "a", "A", "é", "x", "2020-01-01", "9999-12-31", "true", "1e999", "9" * 400, "a\x00b", "x" * 5000),
    *(b"", b"\xff", b"\x00", b"b", b"\xff" * 900),
]
SQLITE_TYPES = [
    *("INTEGER", "REAL", "TEXT", "NUMERIC", "BLOB", "", "DATE", "DATETIME", "BOOLEAN", "DECIMAL(10, 2)", "VARCHAR(3)"),
    *("TINYINT", "UNSIGNED BIG INT", "DOUBLE PRECISION", "FLOAT", "CLOB", "JSON", "whatever you like"),
]


def test_sqlite(tmp_path):
    """Every storage class in every declared type, text that is not UTF-8 included: types bind no cell."""
    types = {f"c{number}": name for number, name in enumerate(SQLITE_TYPES)}
    types["raw"] = "TEXT"
    database = sqlite3.connect(tmp_path / "rows.sqlite")
    columns = ", ".join(f"{column} {name}" for column, name in types.items())
    database.execute(f"CREATE TABLE given (WORLD INTEGER, ONE INTEGER, {columns})")
    marks = ", ".join(["?"] * (len(types) + 1) + ["CAST(? AS TEXT)"])
    cells = padded(STORED)
    raw = padded(RAW)
    database.executemany(
        f"INSERT INTO given VALUES ({marks})",
        [[world, 1, *[cells[world]] * len(SQLITE_TYPES), raw[world]] for world in EVERY],
    )
    database.commit()
    views(database.execute, types)
    database.close()
    law(f"sqlite://{tmp_path / 'rows.sqlite'}", types)


MOMENTS = [0, 1, -1, 10**9, 2**31, 253402300799, -62135596800, 2**40, 2**53, 2**62, 2**63 - 1, -(2**63) + 1, -(2**62)]


def whole(bits, *, signed=True):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return sorted(
        {*(each for each in (0, 1, 2, 37, 2**53, 2**53 + 1, 10**17 + 1, 10**17 + 2) if each <= high), low, high}
    )


def fractions(bits):
    with np.errstate(over="ignore"):
        cells = np.array([1, 37.5, 0.1, 5e-324, 65504, 3e38, 1e300, -math.inf]).astype(f"float{bits}")
    return [float(cell) for cell in dict.fromkeys(cells.tolist())]


def arrays(kind, cells):
    """Cells, and how an array is made from some of them."""
    return padded(cells), lambda some: pa.array(some, kind)


def stored(raw, kind, cells):
    """As `arrays`, of a type that Python's objects cannot fill."""
    return padded(cells), lambda some: pa.array(some, raw).view(kind)


WORDS = [text for text in CELLS if len(text) < 100]
DECIMALS = [decimal.Decimal(text) for text in ("0", "1", "-1", "37.5", "0.1", "-7.25")]
DIGITS = {"decimal32": 9, "decimal64": 18, "decimal128": 38, "decimal256": 76}
ARROW = {
    **{f"int{bits}": arrays(getattr(pa, f"int{bits}")(), whole(bits)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": arrays(getattr(pa, f"uint{bits}")(), whole(bits, signed=False)) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": arrays(getattr(pa, f"float{bits}")(), fractions(bits)) for bits in (16, 32, 64)},
    **{
        name: arrays(
            getattr(pa, name)(most, 2), [*DECIMALS, *(decimal.Decimal(sign + "9" * (most - 2)) for sign in "+-")]
        )
        for name, most in DIGITS.items()
    },
    **{
        f"timestamp({unit}, {zone})": arrays(pa.timestamp(unit, zone), MOMENTS)
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
    },
    "date32": stored(pa.int32(), pa.date32(), [0, 1, 18262, 2932896, -719162, 2**31 - 1, 2**31 - 2, -(2**31)]),
    "date64": stored(pa.int64(), pa.date64(), [0, 86_400_000, 2**62, 2**62 + 86_400_000, -(2**62)]),
    "time32": arrays(pa.time32("s"), [0, 86399]),
    "time64": arrays(pa.time64("ns"), [0, 1]),
    "duration": arrays(pa.duration("ns"), [0, 2**62]),
    "interval": arrays(pa.month_day_nano_interval(), [(1, 2, 3)]),
    "bool": arrays(pa.bool_(), [True, False]),
    "null": arrays(pa.null(), []),
    "string": arrays(pa.string(), WORDS[:30]),
    "large_string": arrays(pa.large_string(), CELLS[-30:]),
    "string_view": arrays(pa.string_view(), WORDS[30:60]),
    "binary": arrays(pa.binary(), RAW),
    "text that is not UTF-8": stored(pa.binary(), pa.string(), RAW),
    "binary(2)": arrays(pa.binary(2), [b"ab", b"\xff\xfe"]),
    "binary_view": arrays(pa.binary_view(), RAW),
    "dictionary of text": arrays(pa.dictionary(pa.int8(), pa.string()), WORDS[60:90]),
    "dictionary of numbers": arrays(pa.dictionary(pa.int8(), pa.int64()), whole(64)),
    "list": arrays(pa.list_(pa.int64()), [[1], [], [None]]),
    "struct": arrays(pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": None}]),
    "map": arrays(pa.map_(pa.string(), pa.int64()), [[("a", 1)], []]),
}
NOT_IN_PARQUET = ("interval", "text that is not UTF-8", "timestamp(s, None)", "timestamp(s, UTC)", "date64")


def arrow_law(opened, without=()):
    types = {f"c{number}": name for number, name in enumerate(name for name in ARROW if name not in without)}

    def table(worlds):
        columns = {"WORLD": pa.array(worlds, pa.int64()), "ONE": pa.array([1] * len(worlds), pa.int64())}
        for column, name in types.items():
            cells, made = ARROW[name]
            columns |= dict.fromkeys(copies(column), made([cells[world] for world in worlds]))
        return pa.table(columns)

    check_law(types, lambda worlds: opened(table(worlds)))


def test_tables_in_memory():
    arrow_law(opened)


def test_parquet(tmp_path):
    def written(rows):
        pq.write_table(rows, tmp_path / "rows.parquet")
        return opened(tmp_path / "rows.parquet")

    arrow_law(written, NOT_IN_PARQUET)


SPARK_TYPES = [
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 0)", "DECIMAL(38, 38)", "DECIMAL(10, 2)"),
    *("BOOLEAN", "STRING", "STRING COLLATE UTF8_LCASE", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"),
    *("INTERVAL YEAR TO MONTH", "INTERVAL DAY TO SECOND", "CHAR(3)", "VARCHAR(5000)"),
]
THOROUGHLY = ("BIGINT", "DOUBLE", "DECIMAL(38, 0)", "STRING", "BINARY", "DATE", "TIMESTAMP")
SPARK_MADE = {
    "VOID": "NULL",
    "ARRAY<INT>": "array(CAST(WORLD AS INT), NULL)",
    "MAP<STRING, INT>": "map('a', CAST(WORLD AS INT))",
    "STRUCT<a: INT>": "named_struct('a', CAST(WORLD AS INT))",
    "VARIANT": "parse_json(CAST(WORLD AS STRING))",
    "STRING that is not UTF-8": "CAST(unhex(raw) AS STRING)",
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_spark(spark):
    """In a session that the process has already, as temporary views, which may have types that no file has."""
    session = spark.session
    types, cells = {}, {}
    for name in SPARK_TYPES:
        rows = session.createDataFrame([(cell,) for cell in CELLS], "cell string")
        bare = "STRING" if name.startswith(("CHAR", "VARCHAR")) else name
        try:
            cast = rows.selectExpr("cell", f"CAST(try_cast(cell AS {bare}) AS STRING) AS text").collect()
        except Exception:  # Spark casts no text to this type
            continue
        column = f"c{len(types)}"
        types[column] = bare
        cells[column] = padded(chosen(name, [(row.cell, row.text) for row in cast if row.text is not None]))
    for number, name in enumerate(SPARK_MADE):
        types[f"m{number}"] = name
    given = pa.table({"WORLD": list(EVERY), "raw": padded([raw.hex() for raw in RAW]), **cells})
    session.createDataFrame(given).createOrReplaceTempView("law_raw")
    made = {column: f"try_cast({column} AS {types[column]})" for column in cells}
    made |= {f"m{number}": each for number, each in enumerate(SPARK_MADE.values())}
    once = ", ".join(f"{each} AS {column}" for column, each in made.items())
    often = ", ".join(f"{column} AS {own}" for column in made for own in copies(column))
    for number, worlds in enumerate(SUBSETS):
        rows = f"FROM law_raw WHERE WORLD IN ({', '.join(map(str, (-1, *worlds)))})"
        selected = f"SELECT WORLD, ONE, {often} FROM (SELECT WORLD, 1 AS ONE, {once} {rows})"
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW law_{number} AS {selected}")
    few = [column for column, name in types.items() if name in THOROUGHLY]
    check_law(types, lambda worlds: opened(f"spark://session/law_{SUBSETS.index(worlds)}"), r"law_\d+", few)
