"""Rows of SQLite tables, read cell by cell, because SQLite does not enforce a column's declared type.

Any cell of any column may be a number, text or bytes, and text need not be Unicode, so each cell has its own type.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from prade.data.cells import object_cells, text_of_bytes
from prade.measuring import streams
from prade.measuring.streams import Batch, Stream


def sqlite_stream(path: str, table: str) -> Stream:
    """A table of a SQLite file, which is opened for each reading; without columns if there is no such table."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        statement = f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"
        with closing(_connect(path)) as connection:
            cursor = connection.execute(statement)
            for rows in iter(lambda: cursor.fetchmany(streams.ROWS_PER_BATCH), []):
                yield {name: object_cells(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}

    with closing(_connect(path)) as connection:
        columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1", [table])
        return Stream(tuple(str(name) for (name,) in columns), read)


def sqlite_tables(path: str) -> list[str]:
    """The names of the tables and views of a SQLite file."""
    with closing(_connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        return [str(name) for (name,) in names]


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    connection.text_factory = text_of_bytes  # text that is not UTF-8 would otherwise end the run
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
