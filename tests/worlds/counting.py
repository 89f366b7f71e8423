"""Counts of private rows in one line, and private rows in databases of their own."""

import sqlite3

import pyarrow as pa

from prade import Schema
from prade.data.declare.groups import Groups
from prade.measuring.source import counts_of, open_source, tally_of
from prade.queries.parts import Marginal


def count(source, schema, parts, groups=None, unit=None, by=None):
    """The number of rows in each cell of each part, by group; `by` names columns of the list of groups (None: all)."""
    listed = Groups.of(groups)
    return counts_of(source, tally_of(source, schema, [(listed.names if by is None else by, parts)], listed, unit))[0]


def counted(private, column, groups=None, unit=None, by=None, **settings):
    """The counts of one column, by group, of a source or of what is to be opened as one."""
    schema = Schema([column])
    with open_source(private, **settings) as source:
        return count(source, schema, [Marginal.of(schema, [column.name])], groups, unit, by)[0]


def duckdb_file(place, *statements, **tables):
    """The address of the table `people` of a DuckDB file, which has these tables and ran these statements."""
    import duckdb

    with duckdb.connect(place) as database:
        for name, table in tables.items():
            database.register(f"given_{name}", table if hasattr(table, "columns") else pa.table(table))
            database.execute(f"CREATE TABLE {name} AS SELECT * FROM given_{name}")
        for statement in statements:
            database.execute(statement)
    return f"duckdb://{place}/people"


def sqlite_file(place, declared, rows, *statements):
    """The address of the table `people` of an SQLite file."""
    database = sqlite3.connect(place)
    database.execute(f"CREATE TABLE people ({declared})")
    database.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(declared.split(',')))})", rows)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return f"sqlite://{place}/people"
