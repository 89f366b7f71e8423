"""Rows of PostgreSQL tables, by COPY in its binary format. The server evaluates nothing on a cell but writes text.

    natively    Boolean, integers to 64 bits, floats, dates, times, text: the bytes that the server stores
    as text     everything else, by the type's own output function (not by a cast, which anybody may define)

The server sends one message per row: the number of cells, and for each cell its length (-1: NULL) and its bytes. Text
comes in the encoding of the database, without a conversion that could fail, and is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.data.cells import FARTHEST, decimal_cells, decoded_text, plain_array
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring import streams
from prade.measuring.connections import connected, table_named
from prade.measuring.streams import Batch, Stream

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
TEXTS = ("text", "varchar", "name")
WRITTEN_TEXTS = ("bpchar", "char", "citext", "uuid")  # text, once the server has written it
DECIMALS = ("numeric", "oid")
SIGNATURE, END = b"PGCOPY\n\xff\r\n\0", b"\xff\xff"
HEADER = len(SIGNATURE) + 8  # flags, and the length of an extension that no server sends
PADDING = bytes(8)  # so that the place of a number can be read even where NULL is the last cell
BYTES_PER_BATCH = 2**26
EPOCH_DAYS = 10_957  # from 1970-01-01 to 2000-01-01, from which the server counts
EPOCH_MICROSECONDS = EPOCH_DAYS * 86_400_000_000

SETTINGS = "SET datestyle = ISO; SET timezone = UTC; SET intervalstyle = postgres; SET extra_float_digits = 1; "
SETTINGS += "SET bytea_output = hex; SET default_transaction_read_only = on"
TABLES = """
SELECT relname::text, nspname::text, pg_catalog.pg_table_is_visible(pg_class.oid), pg_class.oid
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""
COLUMNS = """
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
        """What cells of the type can be."""
        kind: Kind = "other"
        if self.name in DATES:
            kind = "date"
        elif self.name == "bool":
            kind = "boolean"
        elif self.name in SENT or self.name in DECIMALS:
            kind = "number"
        elif self.name in (*TEXTS, *WRITTEN_TEXTS, "enum"):
            kind = "text"
        return DeclaredType(self.words, kind)

    def selected(self, column: str) -> str:
        """What is selected: the column, or its cells written as text by their type."""
        if self.name in SENT or self.name in TEXTS:
            return _quoted(column)
        if self.name == "bpchar":
            return f"CAST({_quoted(column)} AS text)"  # without the spaces that fill it up
        return f"CASE WHEN {_quoted(column)} IS DISTINCT FROM NULL THEN pg_catalog.format('%s', {_quoted(column)}) END"


def postgres_stream(name: str, address: str, database: str, table: str) -> Stream:
    """A table or view at an address; each reading opens a connection of its own. Messages call it `name`."""
    with closing(_connection(name, address, database)) as connection:
        found, types = _columns(connection, table)
        encoding = _encoding(connection)

    def read(names: Sequence[str]) -> Iterator[Batch]:
        statement = f"SELECT {', '.join(types[each].selected(each) for each in names)} FROM {found}"
        with closing(_connection(name, address, database)) as connection, connection.cursor() as cursor:
            if _columns(connection, table) != (found, types):
                raise DataError(f"the columns of {name} have changed since it was opened; open it again")
            connection.execute("SET client_encoding = SQL_ASCII")  # the server converts nothing
            copy = f"COPY ({statement}) TO STDOUT (FORMAT BINARY)".encode(encoding)
            for rows in _batches(cursor, copy):
                yield _cells(rows, {each: types[each] for each in names}, encoding)

    return Stream(tuple(types), read, {column: kind.declared for column, kind in types.items()})


# ---------------------------------------------------------------------- connections


def _connection(name: str, address: str, database: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise DataError(f'{name} needs the driver of PostgreSQL: pip install "prade[postgres]"') from None
    connection = connected(name, address, lambda: psycopg.connect(database, autocommit=True, client_encoding="utf8"))
    connection.execute(SETTINGS)
    return connection


def _columns(connection: Any, name: str) -> tuple[str, dict[str, Type]]:
    """The quoted name of the table, and the types of its columns."""
    tables = connection.execute(TABLES).fetchall()
    spelled = [
        ((schema, table, number), {f"{schema}.{table}", *([table] if visible else [])})
        for table, schema, visible, number in tables
    ]
    schema, table, number = table_named(name, spelled)
    columns = connection.execute(COLUMNS, [number]).fetchall()
    return f"{_quoted(schema)}.{_quoted(table)}", {column: Type(words, kind) for column, words, kind in columns}


def _encoding(connection: Any) -> str:
    """Python's name of the encoding of the database."""
    (encoding,) = connection.execute("SELECT pg_catalog.getdatabaseencoding()").fetchone()
    if encoding == "SQL_ASCII":  # any bytes
        return "utf-8"
    try:
        connection.execute(f"SET client_encoding = {encoding}")
        return str(connection.info.encoding)
    except Exception:
        raise DataError(
            f"the database has the encoding {encoding}, which Python does not know; export the rows to parquet"
        ) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------------- rows


def _batches(cursor: Any, statement: bytes) -> Iterator[list[bytes]]:
    """Messages with one row each, some thousands at a time."""
    rows: list[bytes] = []
    size = 0
    with cursor.copy(statement) as copy:
        for message in copy:
            row = bytes(message)
            row = row[HEADER:] if row.startswith(SIGNATURE) else row
            if row and row != END:
                rows.append(row)
                size += len(row)
            if len(rows) == streams.ROWS_PER_BATCH or size > BYTES_PER_BATCH:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def _cells(rows: Sequence[bytes], types: dict[str, Type], encoding: str) -> Batch:
    """The cells of each column, as Arrow arrays."""
    text = b"".join([*rows, PADDING])
    content = np.frombuffer(text, np.uint8)
    ends = np.cumsum([*map(len, rows)])
    place = np.append(0, ends[:-1]) + 2
    if (_numbers(content, place - 2, ">i2") != len(types)).any():
        raise DataError("the server does not send one row per message")
    columns = {}
    for name, kind in types.items():
        length = _numbers(content, place, ">i4").astype(np.int64)
        start, null = place + 4, length < 0
        place = start + np.maximum(length, 0)
        if kind.name in SENT:
            columns[name] = _native(kind.name, _numbers(content, start, SENT[kind.name]), null)
        else:
            cells = decoded_text(_slices(text, start, place, null), encoding)
            columns[name] = decimal_cells(plain_array(cells)) if kind.name in DECIMALS else cells
    if (place != ends).any():
        raise DataError("the server does not send one row per message")
    return columns


def _numbers(content: NDArray[np.uint8], places: NDArray[np.int64], kind: str) -> NDArray[Any]:
    """The number at each place."""
    width = np.dtype(kind).itemsize
    return np.asarray(content[places[:, None] + np.arange(width)].view(kind).reshape(-1))


def _native(name: str, numbers: NDArray[Any], null: NDArray[np.bool_]) -> Any:
    """Numbers, truth values, and dates and times since 1970; infinite ones are far away."""
    import pyarrow as pa

    if name == "date":
        limits = np.iinfo(np.int32)
        days = np.clip(numbers.astype(np.int64) + EPOCH_DAYS, limits.min, limits.max).astype(np.int32)
        return pa.array(days, mask=null).cast(pa.date32())
    if name in DATES:
        since = np.clip(numbers.astype(np.int64), -FARTHEST, FARTHEST) + EPOCH_MICROSECONDS
        return pa.array(since, mask=null).cast(pa.timestamp("us"))
    return pa.array(numbers.astype(numbers.dtype.newbyteorder("=")), mask=null)


def _slices(text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], null: NDArray[np.bool_]) -> Any:
    """The bytes from each start to its end."""
    import pyarrow as pa

    places = np.stack([starts, ends], axis=1)
    parts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), places.size - 1, [None, pa.py_buffer(places), pa.py_buffer(text)]
    )
    return parts.take(pa.array(np.arange(0, places.size, 2), mask=null))
