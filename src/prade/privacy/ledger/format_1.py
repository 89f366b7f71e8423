"""Ledger files of version 0.1 (format 1): one row for each data set and entry, each with its own hash, and no chain.

Such a file is read as the events that must have led to its rows. When it is first written to, these events replace it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from prade.privacy.ledger.chain import BrokenChain, Event

FIELDS = {
    "dataset": ("name", "unit", "cap", "created"),
    "entry": ("id", "dataset", "plan_hash", "cost", "note", "created", "state", "measurements_hash", "committed"),
}
DROPPED = ("DROP TABLE entry", "DROP TABLE dataset")  # this drops their triggers too


def events(connection: sqlite3.Connection) -> list[Event]:
    """The events that led to the rows; BrokenChain if a row is not what was written."""
    entries = _rows(connection, "entry")
    if [row["id"] for row in entries] != list(range(1, len(entries) + 1)):
        raise BrokenChain  # entries are numbered without gaps, so one is lost
    return [*map(_opened, _rows(connection, "dataset")), *(event for row in entries for event in _spent(row))]


def _opened(row: dict[str, Any]) -> Event:
    unit, cap = json.loads(row["unit"]), json.loads(row["cap"])
    return {"event": "opened", "time": row["created"], "dataset": row["name"], "unit": unit, "cap": cap}


def _spent(row: dict[str, Any]) -> Iterator[Event]:
    yield {
        "event": "reserved",
        "time": row["created"],
        "entry": row["id"],
        "dataset": row["dataset"],
        "plan": row["plan_hash"],
        "cost": json.loads(row["cost"]),
        "note": row["note"],
        "version": "0.1",  # marks an entry whose release does not name a head
    }
    if row["state"] == "committed":
        measurements = row["measurements_hash"]
        yield {"event": "committed", "time": row["committed"], "entry": row["id"], "measurements": measurements}


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """All rows of a table, ordered by their first field, once their hashes are checked."""
    fields = FIELDS[table]
    rows = []
    for *values, seal in connection.execute(f"SELECT {', '.join(fields)}, seal FROM {table} ORDER BY {fields[0]}"):
        row = dict(zip(fields, values, strict=True))
        if seal != _seal(table, row):
            raise BrokenChain
        rows.append(row)
    return rows


def _seal(table: str, row: dict[str, Any]) -> str:
    text = json.dumps([table, row], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
