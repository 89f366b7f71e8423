"""The ledger's file of version 0.1, format 1: rows of data sets and entries with a seal each, and no chain.

It is read as the events that must have led to its rows, and replaced by them when it is first written to.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from prade.privacy.ledger.chain import Broken, Event

FIELDS = {
    "dataset": ("name", "unit", "cap", "created"),
    "entry": ("id", "dataset", "plan_hash", "cost", "note", "created", "state", "measurements_hash", "committed"),
}
DROPPED = ("DROP TABLE entry", "DROP TABLE dataset")  # with their triggers


def events(connection: sqlite3.Connection) -> list[Event]:
    """What happened, as the rows tell it; Broken if one of them is not what was written."""
    entries = _rows(connection, "entry")
    if [row["id"] for row in entries] != list(range(1, len(entries) + 1)):
        raise Broken  # entries are numbered without gaps: one is lost
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
        "version": "0.1",  # its release names no head of a chain
    }
    if row["state"] == "committed":
        made = row["measurements_hash"]
        yield {"event": "committed", "time": row["committed"], "entry": row["id"], "measurements": made}


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """All rows of a table, in the order of their first field, each with its seal unbroken."""
    fields = FIELDS[table]
    rows = []
    for *values, seal in connection.execute(f"SELECT {', '.join(fields)}, seal FROM {table} ORDER BY {fields[0]}"):
        row = dict(zip(fields, values, strict=True))
        if seal != _seal(table, row):
            raise Broken
        rows.append(row)
    return rows


def _seal(table: str, row: dict[str, Any]) -> str:
    text = json.dumps([table, row], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
