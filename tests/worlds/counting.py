"""Counts of private rows in one line, and private rows in databases of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from prade import Column, Schema
from prade.data.declare.groups import Groups
from prade.measuring.source import counts_of, open_source, tally_of
from prade.measuring.streams import Stream
from prade.queries.parts import Marginal, Part


def count(
    source: Stream, schema: Schema, parts: Sequence[Part], groups: Any = None, unit: Any = None, by: Any = None
) -> list[Any]:
    """The number of rows in each cell of each part, by group; `by` names columns of the list of groups (None: all)."""
    listed = Groups.of(groups)
    return counts_of(source, tally_of(source, schema, [(listed.names if by is None else by, parts)], listed, unit))[0]


def counted(private: Any, column: Column, groups: Any = None, unit: Any = None, by: Any = None, **settings: Any) -> Any:
    """The counts of one column, by group, of a source or of what is to be opened as one."""
    schema = Schema([column])
    with open_source(private, **settings) as source:
        return count(source, schema, [Marginal.of(schema, [column.name])], groups, unit, by)[0]


def duckdb_file(place: Path, *statements: str, **tables: Any) -> str:
    """The address of the table `people` of a DuckDB file, which has these tables and ran these statements."""
    import duckdb

    with duckdb.connect(place) as database:
        for name, table in tables.items():
            database.register(f"given_{name}", table if hasattr(table, "columns") else pa.table(table))
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM given_{name}")
        for statement in statements:
            database.execute(statement)
    return f"duckdb://{place}/people"


def sqlite_file(place: Path, declared: str, rows: Iterable[Sequence[Any]], *statements: str) -> str:
    """The address of the table `people` of an SQLite file."""
    database = sqlite3.connect(place)
    database.execute(f"CREATE TABLE people ({declared})")
    database.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(declared.split(',')))})", rows)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return f"sqlite://{place}/people"
