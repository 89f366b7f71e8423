"""Rows of DuckDB files. DuckDB delivers them as Arrow batches; it evaluates nothing on a cell but casts to text.

natively    Boolean, integers to 64 bits, floats, decimals, dates, times of all units, text: copied bit by bit
as text     everything else. DuckDB writes a value of any type as text, whatever it is
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.cells import decimal_cells
from prade.data.read.frames import DeclaredType, Kind
from prade.measuring import streams
from prade.measuring.connections import table_named
from prade.measuring.streams import Batch, Stream

NUMBERS = (
    *("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal"),
)
TIMES = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone")
NATIVE: dict[str, Kind] = {
    **dict.fromkeys(NUMBERS, "number"),
    **dict.fromkeys(("date", *TIMES), "date"),
    "boolean": "boolean",
    "varchar": "text",
    "null": "text",
}
LONG_NUMBERS = ("hugeint", "uhugeint", "bignum")  # more digits than an Arrow decimal may have
TEXTS = ("enum", "uuid")
OTHERS = (
    *("array", "bit", "blob", "geometry", "interval", "list", "map", "struct", "tuple", "union"),
    *("time", "time with time zone", "time_ns", "timestamptz_ns"),
)
TABLES = "SELECT table_schema, table_name FROM information_schema.tables"


def duckdb_stream(path: str, name: str, memory_limit: str | None = None) -> Stream:
    """A table or view of a DuckDB file, which is opened for each reading."""
    with ExitStack() as stack:
        connection = _connected(stack, path, memory_limit)
        tables = [(str(schema), str(table)) for schema, table in connection.execute(TABLES).fetchall()]
        table = _found(name, tables)
        relation = connection.sql(f"SELECT * FROM {table}")
        kinds = {str(column): kind for column, kind in zip(relation.columns, relation.types, strict=True)}
    declared = {column: _declared(kind) for column, kind in kinds.items()}

    def read(names: Sequence[str]) -> Iterator[Batch]:
        long = {each for each in names if str(kinds[each].id) in LONG_NUMBERS}
        cells = (_quoted(each) if str(kinds[each].id) in NATIVE else _as_text(each) for each in names)
        with ExitStack() as stack:
            connection = _connected(stack, path, memory_limit)
            for batch in _batches(connection, f"SELECT {', '.join(cells)} FROM {table}"):
                columns = zip(names, batch.columns, strict=True)
                yield {each: decimal_cells(cells) if each in long else cells for each, cells in columns}

    return Stream(tuple(declared), read, declared)


def _batches(connection: Any, statement: str) -> Iterator[Any]:
    """Batches that are read in another thread: DuckDB would keep Ctrl-C from this one until it has a row to deliver."""
    with ThreadPoolExecutor(1, thread_name_prefix="prade-duckdb") as pool:
        try:
            rows = pool.submit(lambda: connection.sql(statement).to_arrow_reader(streams.ROWS_PER_BATCH)).result()
            while (batch := pool.submit(next, rows, None).result()) is not None:
                yield batch
        finally:
            connection.interrupt()


def _connected(stack: ExitStack, path: str, memory_limit: str | None) -> Any:
    """A connection that only reads, and spills to a private folder, never to the current one."""
    import duckdb

    options: dict[str, Any] = {
        "temp_directory": str(stack.enter_context(spill_folder())),
        "arrow_large_buffer_size": "true",
    }
    if memory_limit is not None:
        options["memory_limit"] = memory_limit
    try:
        connection = duckdb.connect(path, read_only=True, config=options)
    except Exception as error:  # no row has been read yet, so this message is about settings and files
        raise DataError(f"DuckDB does not open {path}: {str(error).splitlines()[0]}") from None
    return stack.enter_context(closing(connection))


def _found(name: str, tables: Sequence[tuple[str, str]]) -> str:
    """The quoted name of a table of the default schema, or of the one named before the dot."""
    spelled = [
        ((schema, table), {f"{schema}.{table}", *([table] if schema == "main" else [])}) for schema, table in tables
    ]
    return ".".join(map(_quoted, table_named(name, spelled)))


def _declared(kind: Any) -> DeclaredType:
    named, words = str(kind.id), str(kind)
    if named in NATIVE:
        return DeclaredType(words, NATIVE[named])
    if named in LONG_NUMBERS:
        return DeclaredType(words, "number")
    return DeclaredType(words, "text" if named in TEXTS else "other" if named in OTHERS else "unreadable")


def _as_text(column: str) -> str:
    return f"CAST({_quoted(column)} AS VARCHAR)"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
