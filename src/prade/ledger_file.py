"""The ledger on disk: one SQLite file, opened for one checked transaction at a time.

What is read has been checked, and what was written is durable when the transaction is left: a kill, a full disk or a
power cut leaves the state before or the state after, and the next one to open the file finds that state.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prade.errors import DataError, PradeError

FILE_FORMAT = 1
# In the header of the SQLite file: "prad". It tells a ledger from any other SQLite file.
APPLICATION_ID = 0x70726164

FIELDS = {
    "dataset": ("name", "unit", "cap", "created"),
    "entry": ("id", "dataset", "plan_hash", "cost", "note", "created", "state", "measurements_hash", "committed"),
}

# The triggers hold for every program that opens the file, not only for this one.
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
"""

Row = dict[str, Any]


class LedgerFile:
    """The file `path`; `patience` is how many seconds to wait while another process writes."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def transaction(self, writes: str | None, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction; `writes` names the operation that writes, None is for reading."""
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        try:
            if not create and not self.path.is_file():
                raise DataError(
                    f"there is no ledger at {self.path}: check the path, or enter a data set with open_dataset"
                )
            connection = sqlite3.connect(address, uri=True, timeout=self.patience, isolation_level=None)
        except (sqlite3.Error, OSError) as failure:
            raise self._explained(failure) from failure
        try:
            # EXTRA is FULL and, besides, a synced folder after the journal is gone: without it a power cut could
            # bring the journal back, and the journal would undo a reservation whose noise is already drawn.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            _reached(writes, "opened")
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            _reached(writes, "begun")
            self._check(connection, create)
            yield connection
            _reached(writes, "recorded")
            connection.execute("COMMIT")
            _reached(writes, "durable")
        except (sqlite3.Error, OSError, UnicodeError) as failure:
            raise self._explained(failure) from failure
        finally:
            # Closing rolls back what was not committed. If even that fails, the next one to open the file does it.
            with suppress(sqlite3.Error):
                connection.close()

    def rows(self, connection: sqlite3.Connection, table: str) -> list[Row]:
        """All rows of a table, in the order of their first field, each with its seal unbroken.

        SQLite does not notice a changed byte inside a value, hence the seals. All rows are looked at every time,
        because a changed name would hide an entry from its data set. Seals are against failing disks, not against
        people who may write to the file.
        """
        fields = FIELDS[table]
        rows = []
        for *values, seal in connection.execute(f"SELECT {', '.join(fields)}, seal FROM {table} ORDER BY {fields[0]}"):
            row = dict(zip(fields, values, strict=True))
            if seal != _seal(table, row):
                raise self.damaged()
            rows.append(row)
        return rows

    def put(self, connection: sqlite3.Connection, table: str, row: Row) -> None:
        """Write a new row with its seal, or the new state of the entry with that id."""
        fields = FIELDS[table]
        marks = ", ".join(f":{field}" for field in fields)
        # An upsert, because REPLACE would delete first, past the trigger that keeps entries.
        changes = ", ".join(f"{field} = excluded.{field}" for field in (*fields, "seal"))
        connection.execute(
            f"INSERT INTO {table} ({', '.join(fields)}, seal) VALUES ({marks}, :seal) "
            f"ON CONFLICT ({fields[0]}) DO UPDATE SET {changes}",
            {**row, "seal": _seal(table, row)},
        )

    def damaged(self) -> DataError:
        """The error for a file that cannot be trusted."""
        return DataError(
            f"{self.path} is damaged, or no ledger: what was spent can no longer be told from it, so nothing more may "
            "be. Bring it back from a copy that has all entries"
        )

    def _check(self, connection: sqlite3.Connection, create: bool) -> None:
        """Refuse what is no ledger, a newer one, and a file with broken pages; make the tables in an empty one."""
        # On disk, because in the transaction an empty file has its first page already.
        if self.path.stat().st_size == 0:
            if not create:
                raise DataError(
                    f"{self.path} is empty: bring it back from a copy, or enter a data set with open_dataset"
                )
            # Not executescript, which would commit first: the tables and the first data set come in one step.
            for statement in _statements(TABLES):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FILE_FORMAT}")
            return
        if _pragma(connection, "application_id") != APPLICATION_ID:
            raise DataError(f"{self.path} is a SQLite file but no ledger: give the path of a ledger, or of a new file")
        version = _pragma(connection, "user_version")
        if version > FILE_FORMAT:
            raise DataError(
                f"{self.path} has ledger format {version}, this version reads up to {FILE_FORMAT}: update prade"
            )
        if version < 1 or _pragma(connection, "integrity_check(1)") != "ok":
            raise self.damaged()

    def _explained(self, failure: Exception) -> PradeError:
        """What an error of SQLite or the system means for the reader, and what to do."""
        # The lowest eight bits tell the kind. Without any: text that is none, or a system that does not let us look.
        unknown = sqlite3.SQLITE_CANTOPEN if isinstance(failure, OSError) else sqlite3.SQLITE_CORRUPT
        code = getattr(failure, "sqlite_errorcode", unknown) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return PradeError(
                f"{self.path} was locked by another process for {self.patience:g} s: nothing was recorded; "
                "run again when the other one is done, or wait longer with a larger patience"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return PradeError(
                f"{self.path} may not be written: nothing was recorded; get write access to it and its folder"
            )
        if code == sqlite3.SQLITE_CANTOPEN:
            return PradeError(
                f"{self.path} cannot be opened: check that it is a file, and that you may write to it and its folder"
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
            return PradeError(
                f"{self.path} could not be read or written ({failure}): draw no noise for this step; make room or mend "
                "the disk, then run again"
            )
        return self.damaged()


def _reached(operation: str | None, step: str) -> None:
    # An audit event is how Python lets an observer follow a program without a second path through it: without a
    # listener it does nothing. The fault tests listen, and kill the process at the step that they name.
    if operation is not None:
        sys.audit("prade.step", f"ledger.{operation}.{step}")


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _seal(table: str, row: Row) -> str:
    """SHA-256 of the table's name and the row as canonical JSON."""
    # repr is for what damage may turn a text into: bytes, which JSON does not know
    text = json.dumps([table, row], sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
