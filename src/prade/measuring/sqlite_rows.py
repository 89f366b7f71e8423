"""Rows of SQLite tables, handed out cell by cell: a column's declared type binds none of its cells.

Any cell of any column may be a number, text or bytes, and text need not be Unicode, so that each cell has its own type.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from prade.measuring.streams import ROWS_PER_BATCH, Stream, cursor_stream


def sqlite_file(path: str, table: str) -> Stream:
    """A table of a SQLite file, which is opened for each reading; without columns where there is no such table."""

    def connect() -> sqlite3.Connection:
        # Whichever thread of the counting engine asks for the next rows, it is one at a time.
        return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)

    def rows(names: Sequence[str]) -> Iterator[list[Any]]:
        statement = f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"
        with closing(connect()) as connection:
            yield from _fetched(connection, statement)

    with closing(connect()) as connection:
        found = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table])
        return cursor_stream([str(name) for (name,) in found], rows)


def sqlite_expression(table: Any, connection: Any) -> Stream:
    """An Ibis table on the caller's own connection, which only the caller's thread may use."""

    def rows(names: Sequence[str]) -> Iterator[list[Any]]:
        yield from _fetched(connection.con, connection.compile(table.select(*names)))

    return cursor_stream(table.columns, rows, at_once=True)


def _fetched(connection: sqlite3.Connection, statement: str) -> Iterator[list[Any]]:
    with _bytes_as_text(connection):
        cursor = connection.execute(statement)
        yield from iter(lambda: cursor.fetchmany(ROWS_PER_BATCH), [])


@contextmanager
def _bytes_as_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Text that is not UTF-8 comes out with escapes such as \\xff, where it would otherwise end the run."""
    before = connection.text_factory
    connection.text_factory = lambda raw: raw.decode(errors="backslashreplace")
    try:
        yield
    finally:
        connection.text_factory = before


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
