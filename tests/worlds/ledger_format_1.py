"""Ledgers as version 0.1 wrote them, by its own statements: for tests that such files are still read and converted."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from prade.privacy.budget import Budget
from prade.privacy.unit import Unit

TABLES = """
CREATE TABLE dataset (
    name TEXT PRIMARY KEY NOT NULL, unit TEXT NOT NULL, cap TEXT NOT NULL, created TEXT NOT NULL, seal TEXT NOT NULL
);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL REFERENCES dataset (name), plan_hash TEXT NOT NULL,
    cost TEXT NOT NULL, note TEXT NOT NULL, created TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'committed')),
    measurements_hash TEXT, committed TEXT, seal TEXT NOT NULL,
    CHECK ((state = 'committed') = (measurements_hash IS NOT NULL)),
    CHECK ((state = 'committed') = (committed IS NOT NULL))
);
CREATE TRIGGER dataset_is_kept BEFORE DELETE ON dataset BEGIN SELECT RAISE (ABORT, 'a data set is never removed'); END;
CREATE TRIGGER dataset_is_fixed BEFORE UPDATE ON dataset BEGIN SELECT RAISE (ABORT, 'a cap is never changed'); END;
CREATE TRIGGER entry_is_kept BEFORE DELETE ON entry BEGIN SELECT RAISE (ABORT, 'an entry is never given back'); END;
CREATE TRIGGER entry_is_fixed BEFORE UPDATE ON entry
    WHEN OLD.state <> 'reserved' OR NEW.state <> 'committed' OR OLD.id <> NEW.id OR OLD.dataset <> NEW.dataset
        OR OLD.plan_hash <> NEW.plan_hash OR OLD.cost <> NEW.cost OR OLD.note <> NEW.note OR OLD.created <> NEW.created
    BEGIN SELECT RAISE (ABORT, 'an entry only goes from reserved to committed'); END;
PRAGMA application_id = 0x70726164;
PRAGMA user_version = 1;
"""
THEN = "2025-03-01T12:00:00+00:00"


def write_format_1(path: Path, datasets: list[dict[str, Any]], entries: list[dict[str, Any]]) -> None:
    """A ledger as version 0.1 wrote it."""
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    for table, rows in (("dataset", datasets), ("entry", entries)):
        for row in rows:
            text = json.dumps([table, row], sort_keys=True, separators=(",", ":"), default=repr)
            sealed = {**row, "seal": hashlib.sha256(text.encode()).hexdigest()}
            marks = ", ".join(f":{field}" for field in sealed)
            connection.execute(f"INSERT INTO {table} ({', '.join(sealed)}) VALUES ({marks})", sealed)
    connection.commit()
    connection.close()


def old_dataset(name: str, unit: Unit, cap: Budget) -> dict[str, Any]:
    """A data set's row."""
    values = {"unit": unit.to_dict(), "cap": cap.to_dict()}
    texts = {key: json.dumps(value, sort_keys=True) for key, value in values.items()}
    return {"name": name, **texts, "created": THEN}


def old_entry(number: int, dataset: str, plan: str, cost: Budget, made: str | None = None) -> dict[str, Any]:
    """A row of an entry; `made` is the hash of its measurements, once it is committed."""
    return {
        "id": number, "dataset": dataset, "plan_hash": plan, "cost": json.dumps(cost.to_dict(), sort_keys=True),
        "note": f"asked {number}", "created": THEN, "state": "committed" if made else "reserved",
        "measurements_hash": made, "committed": THEN if made else None,
    }  # fmt: skip
