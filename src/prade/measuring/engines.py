"""Rows of DuckDB, PostgreSQL and SQLite. No engine evaluates anything on a cell but writes it as text.

The page of the privacy promise lists what is delivered natively. Other types of DuckDB are delivered as the text of a
cast, which exists for every value of every type; those of PostgreSQL as text by the type's own output function, and not
by a cast, which anybody may define.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.read.cells import (
    FARTHEST,
    cells_between,
    decimal_cells,
    decoded_text,
    object_cells,
    plain_array,
    text_of_bytes,
)
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring.streams import ROWS_PER_BATCH, Batch, Stream, connected, no_table, table_named

# ---------------------------------------------------------------------- DuckDB

DUCKDB_NATIVE: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), "number"),
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint"), "number"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), "date"),
    "timestamp with time zone": "date",
    "boolean": "boolean",
    **dict.fromkeys(("varchar", "null"), "text"),
}
DUCKDB_LONG_NUMBERS = ("hugeint", "uhugeint", "bignum")  # more digits than an Arrow decimal may have
DUCKDB_KINDS: dict[str, Kind] = {
    **DUCKDB_NATIVE,
    **dict.fromkeys(DUCKDB_LONG_NUMBERS, "number"),
    **dict.fromkeys(("enum", "uuid"), "text"),
    **dict.fromkeys(("array", "bit", "blob", "geometry", "interval", "list", "map", "struct", "tuple"), "other"),
    **dict.fromkeys(("union", "time", "time with time zone", "time_ns", "timestamptz_ns"), "other"),
}
DUCKDB_TABLES = "SELECT table_schema, table_name, table_schema = 'main' FROM information_schema.tables"


def duckdb_stream(path: str, name: str, rows_per_batch: int = ROWS_PER_BATCH) -> Stream:
    """A table or view of a DuckDB file, which is opened for each reading."""
    with ExitStack() as stack:
        connection = _duckdb_connected(stack, path)
        table = ".".join(map(_quoted, table_named(name, connection.execute(DUCKDB_TABLES).fetchall())))
        relation = connection.sql(f"SELECT * FROM {table}")
        kinds = {str(column): kind for column, kind in zip(relation.columns, relation.types, strict=True)}
    declared = {
        column: DeclaredType(str(kind), DUCKDB_KINDS.get(str(kind.id), "unreadable")) for column, kind in kinds.items()
    }

    def read(names: Sequence[str]) -> Iterator[Batch]:
        long = {each for each in names if str(kinds[each].id) in DUCKDB_LONG_NUMBERS}
        native = {each for each in names if str(kinds[each].id) in DUCKDB_NATIVE}
        cells = (_quoted(each) if each in native else f"CAST({_quoted(each)} AS VARCHAR)" for each in names)
        with ExitStack() as stack:
            connection = _duckdb_connected(stack, path)
            for batch in _duckdb_batches(connection, f"SELECT {', '.join(cells)} FROM {table}", rows_per_batch):
                columns = zip(names, batch.columns, strict=True)
                yield {each: decimal_cells(cells) if each in long else cells for each, cells in columns}

    return Stream(tuple(declared), read, declared)


def _duckdb_batches(connection: Any, statement: str, rows_per_batch: int) -> Iterator[Any]:
    """Batches that are read in another thread: DuckDB would keep Ctrl-C from this one until it has a row to deliver."""
    with ThreadPoolExecutor(1, thread_name_prefix="prade-duckdb") as pool:
        try:
            rows = pool.submit(lambda: connection.sql(statement).to_arrow_reader(rows_per_batch)).result()
            while (batch := pool.submit(next, rows, None).result()) is not None:
                yield batch
        finally:
            connection.interrupt()


def _duckdb_connected(stack: ExitStack, path: str) -> Any:
    """A connection that only reads, and spills to a private folder, never to the current one."""
    try:
        import duckdb
    except ImportError:
        raise DataError(f'{path} needs DuckDB: pip install "prade[duckdb]"') from None

    folder = str(stack.enter_context(spill_folder()))
    options = {"temp_directory": folder, "arrow_large_buffer_size": "true"}
    try:
        connection = duckdb.connect(path, read_only=True, config={**options})
    except Exception as error:  # no row has been read yet, so this message is about settings and files
        raise DataError(f"DuckDB does not open {path}: {str(error).splitlines()[0]}") from None
    return stack.enter_context(closing(connection))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------------- PostgreSQL

SENT = {  # types that are sent natively, and how
    "bool": "?",
    "int2": ">i2",
    "int4": ">i4",
    "int8": ">i8",
    "float4": ">f4",
    "float8": ">f8",
    "date": ">i4",
    "timestamp": ">i8",
    "timestamptz": ">i8",
}
DATES = ("date", "timestamp", "timestamptz")
POSTGRES_TEXTS = ("text", "varchar", "name")
DECIMALS = ("numeric", "oid")
POSTGRES_KINDS: dict[str, Kind] = {
    **dict.fromkeys((*SENT, *DECIMALS), "number"),
    **dict.fromkeys(DATES, "date"),
    "bool": "boolean",
    **dict.fromkeys((*POSTGRES_TEXTS, "bpchar", "char", "citext", "uuid", "enum"), "text"),
}
SIGNATURE, END = b"PGCOPY\n\xff\r\n\0", b"\xff\xff"
HEADER = len(SIGNATURE) + 8  # flags, and the length of an extension that no server sends
PADDING = bytes(8)  # so that the place of a number can be read even where NULL is the last cell
BYTES_PER_BATCH = 2**26
EPOCH_DAYS = 10_957  # from 1970-01-01 to 2000-01-01, from which the server counts
EPOCH_MICROSECONDS = EPOCH_DAYS * 86_400_000_000

POSTGRES_SETTINGS = (
    "SET datestyle = ISO; SET timezone = UTC; SET intervalstyle = postgres; SET extra_float_digits = 1; "
)
POSTGRES_SETTINGS += "SET bytea_output = hex; SET default_transaction_read_only = on"
POSTGRES_TABLES = """
SELECT nspname::text, relname::text, pg_catalog.pg_table_is_visible(pg_class.oid), pg_class.oid
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""
POSTGRES_COLUMNS = """
WITH RECURSIVE columns AS (
    SELECT attnum, attname, pg_catalog.format_type(atttypid, atttypmod) AS words, atttypid AS kind
    FROM pg_catalog.pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, words, typbasetype
    FROM columns JOIN pg_catalog.pg_type ON pg_type.oid = kind AND typtype = 'd'
)
SELECT attname::text, words, CASE
    WHEN typtype = 'e' THEN 'enum'
    WHEN typnamespace = 'pg_catalog'::regnamespace OR typname = 'citext' THEN typname::text
    ELSE 'a type of the database' END
FROM columns JOIN pg_catalog.pg_type ON pg_type.oid = kind AND typtype <> 'd' ORDER BY attnum
"""


class Type(NamedTuple):
    """A column's type in the server's words, and the name of the type below its domains."""

    words: str
    name: str

    @property
    def declared(self) -> DeclaredType:
        return DeclaredType(self.words, POSTGRES_KINDS.get(self.name, "other"))

    def selected(self, column: str) -> str:
        """What is selected: the column, or its cells written as text by their type."""
        if self.name in SENT or self.name in POSTGRES_TEXTS:
            return _quoted(column)
        if self.name == "bpchar":
            return f"CAST({_quoted(column)} AS text)"  # without the spaces that fill it up
        return f"CASE WHEN {_quoted(column)} IS DISTINCT FROM NULL THEN pg_catalog.format('%s', {_quoted(column)}) END"


def postgres_stream(
    name: str,
    address: str,
    database: str,
    table: str,
    rows_per_batch: int = ROWS_PER_BATCH,
    bytes_per_batch: int = BYTES_PER_BATCH,
) -> Stream:
    """A table or view at an address; each reading opens a connection of its own. Messages call it `name`."""
    with closing(_postgres_connection(name, address, database)) as connection:
        found, types = _postgres_columns(connection, table)
        encoding = _postgres_encoding(connection)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        statement = f"SELECT {', '.join(types[each].selected(each) for each in names)} FROM {found}"
        with closing(_postgres_connection(name, address, database)) as connection, connection.cursor() as cursor:
            if _postgres_columns(connection, table) != (found, types):
                raise DataError(f"the columns of {name} have changed since it was opened; open it again")
            connection.execute("SET client_encoding = SQL_ASCII")  # the server converts nothing
            copy = f"COPY ({statement}) TO STDOUT (FORMAT BINARY)".encode(encoding)
            for rows in _messages(cursor, copy, rows_per_batch, bytes_per_batch):
                yield _cells(rows, {each: types[each] for each in names}, encoding)

    return Stream(tuple(types), read, {column: kind.declared for column, kind in types.items()})


def _postgres_connection(name: str, address: str, database: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise DataError(f'{name} needs the driver of PostgreSQL: pip install "prade[postgres]"') from None

    connect = partial(psycopg.connect, database, autocommit=True, client_encoding="utf8")
    connection = connected(name, address, connect)
    connection.execute(POSTGRES_SETTINGS)
    return connection


def _postgres_columns(connection: Any, name: str) -> tuple[str, dict[str, Type]]:
    tables = connection.execute(POSTGRES_TABLES).fetchall()
    schema, table = table_named(name, [each[:3] for each in tables])
    number = next(each[3] for each in tables if each[:2] == (schema, table))
    columns = connection.execute(POSTGRES_COLUMNS, [number]).fetchall()
    return f"{_quoted(schema)}.{_quoted(table)}", {column: Type(words, kind) for column, words, kind in columns}


def _postgres_encoding(connection: Any) -> str:
    (encoding,) = connection.execute("SELECT pg_catalog.getdatabaseencoding()").fetchone()
    if encoding == "SQL_ASCII":  # any bytes
        return "utf-8"
    connection.execute(f"SET client_encoding = {encoding}")
    return str(connection.info.encoding)  # an error if Python does not know it


def _messages(cursor: Any, statement: bytes, rows_per_batch: int, bytes_per_batch: int) -> Iterator[list[bytes]]:
    """Messages with one row each, some thousands at a time.

    A row is the number of its cells, and for each cell its length (-1: NULL) and its bytes. Text comes in the encoding
    of the database, without a conversion that could fail, and is decoded here.
    """
    rows: list[bytes] = []
    size = 0
    with cursor.copy(statement) as copy:
        for message in copy:
            row = bytes(message)
            row = row[HEADER:] if row.startswith(SIGNATURE) else row
            if row and row != END:
                rows.append(row)
                size += len(row)
            if len(rows) == rows_per_batch or size > bytes_per_batch:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def _cells(rows: Sequence[bytes], types: dict[str, Type], encoding: str) -> Batch:
    text = b"".join([*rows, PADDING])
    content = np.frombuffer(text, np.uint8)
    ends = np.cumsum([*map(len, rows)])
    place = np.append(0, ends[:-1]) + 2
    columns = {}
    for name, kind in types.items():
        length = _numbers(content, place, ">i4").astype(np.int64)
        start, null = place + 4, length < 0
        place = start + np.maximum(length, 0)
        if kind.name in SENT:
            columns[name] = _native(kind.name, _numbers(content, start, SENT[kind.name]), null)
        else:
            cells = decoded_text(cells_between(text, start, place, null), encoding)
            columns[name] = decimal_cells(plain_array(cells)) if kind.name in DECIMALS else cells
    if (place != ends).any():
        raise DataError("the server does not send one row per message")
    return columns


def _numbers(content: NDArray[np.uint8], places: NDArray[np.int64], kind: str) -> NDArray[Any]:
    width = np.dtype(kind).itemsize
    return np.asarray(content[places[:, None] + np.arange(width)].view(kind).reshape(-1))


def _native(name: str, numbers: NDArray[Any], null: NDArray[np.bool_]) -> Any:
    """Numbers, truth values, and dates and times since 1970; infinite ones are far away."""
    if name == "date":
        limits = np.iinfo(np.int32)
        days = np.clip(numbers.astype(np.int64) + EPOCH_DAYS, limits.min, limits.max).astype(np.int32)
        return pa.array(days, mask=null).cast(pa.date32())
    if name in DATES:
        since = np.clip(numbers.astype(np.int64), -FARTHEST, FARTHEST) + EPOCH_MICROSECONDS
        return pa.array(since, mask=null).cast(pa.timestamp("us"))
    return pa.array(numbers.astype(numbers.dtype.newbyteorder("=")), mask=null)


# ---------------------------------------------------------------------- SQLite


def sqlite_stream(path: str, table: str, rows_per_batch: int = ROWS_PER_BATCH) -> Stream:
    """A table or view of a SQLite file, which is opened for each reading."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        statement = f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"
        with closing(_sqlite_connected(path)) as connection:
            cursor = connection.execute(statement)
            for rows in iter(lambda: cursor.fetchmany(rows_per_batch), []):
                yield {name: object_cells(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}

    with closing(_sqlite_connected(path)) as connection:
        columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table]).fetchall()
        if not columns:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            raise no_table(table, [name for (name,) in tables], path)
    return Stream(tuple(str(name) for (name,) in columns), read)


def _sqlite_connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    connection.text_factory = text_of_bytes  # text that is not UTF-8 would otherwise end the run
    return connection
