"""Rows of SQLite tables, read cell by cell, because SQLite does not enforce a column's declared type.

Any cell of any column may be a number, text or bytes, and text need not be Unicode, so each cell has its own type.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from prade.data.cells import text_of_bytes
from prade.measuring.streams import ROWS_PER_BATCH, Stream, cursor_stream


def sqlite_file(path: str, table: str) -> Stream:
    """A table of a SQLite file, which is opened for each reading; without columns if there is no such table."""

    def rows(names: Sequence[str]) -> Iterator[list[Any]]:
        statement = f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"
        with closing(_connect(path)) as connection:
            yield from _fetched(connection, statement)

    with closing(_connect(path)) as connection:
        columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table])
        return cursor_stream([str(name) for (name,) in columns], rows)


def sqlite_tables(path: str) -> list[str]:
    """The names of the tables and views of a SQLite file."""
    with closing(_connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return [str(name) for (name,) in names]


def _connect(path: str) -> sqlite3.Connection:
    # Any thread of the counting engine may ask for the next rows, but only one at a time does.
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


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
    """Read text that is not UTF-8 as a text that no schema lists; otherwise it would end the run."""
    before = connection.text_factory
    connection.text_factory = text_of_bytes
    try:
        yield
    finally:
        connection.text_factory = before


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
