"""The ledger on disk: one SQLite file, opened for one transaction at a time.

Everything read has been checked, and everything written is durable when the transaction ends. A kill, a full disk or a
power cut leaves the file in the state before the transaction or in the state after it.
"""

from __future__ import annotations

import secrets
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.privacy.ledger import format_1
from prade.privacy.ledger.chain import FIRST, BrokenChain, Chain

FILE_FORMAT = 4  # 2 and 3 are chains too, without budgets that are divided over years, and without failures
# Written to the header of the SQLite file ("prad"), to tell a ledger from other SQLite files.
APPLICATION_ID = 0x70726164

# The triggers apply to every program that opens the file, not only to this one. The last one also stops REPLACE, which
# deletes a conflicting row without firing the DELETE trigger.
TABLES = """
CREATE TABLE event (number INTEGER PRIMARY KEY, before TEXT NOT NULL, content TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN SELECT RAISE (ABORT, 'an event is never removed'); END;
CREATE TRIGGER event_is_fixed BEFORE UPDATE ON event BEGIN SELECT RAISE (ABORT, 'an event is never changed'); END;
CREATE TRIGGER event_is_last BEFORE INSERT ON event
    WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM event)
        OR NEW.before IS NOT coalesce((SELECT hash FROM event ORDER BY number DESC LIMIT 1), '')
    BEGIN SELECT RAISE (ABORT, 'an event goes to the end of the chain'); END;
"""


class LedgerFile:
    """The ledger file `path`; `patience` is how many seconds to wait while another process writes."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def transaction(self, writes: str | None, *, create: bool = False) -> Iterator[Chain]:
        """One transaction on the chain of events. `writes` names the operation that writes; None means read only.

        All events are checked every time, because an event whose data set name was changed would otherwise not be
        counted. SQLite does not notice a changed byte inside a value; the hashes do.
        """
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
        try:
            if not create and not self.path.is_file():
                raise DataError(f"there is no ledger at {self.path}", remedy="new_ledger")
            connection = sqlite3.connect(address, uri=True, timeout=self.patience, isolation_level=None)
        except (sqlite3.Error, OSError) as failure:
            raise self._explained(failure) from failure
        try:
            # EXTRA is FULL and also syncs the folder after deleting the journal. Otherwise a power cut could bring the
            # journal back, and it would undo a reservation whose noise has already been drawn.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA trusted_schema = OFF")
            _reached(writes, "opened")
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            _reached(writes, "begun")
            chain = self._chain(connection, writes, create)
            yield chain
            _reached(writes, "recorded")
            connection.execute("COMMIT")
            _reached(writes, "durable")
        except (sqlite3.Error, OSError, UnicodeError) as failure:
            raise self._explained(failure) from failure
        finally:
            # Closing rolls back what was not committed. If even that fails, the next process to open the file does it.
            with suppress(sqlite3.Error):
                connection.close()

    def damaged(self) -> DataError:
        """The error for a file that cannot be trusted."""
        return DataError(
            f"{self.path} is damaged, or is not a ledger. It no longer shows what was spent, so nothing more may be "
            "spent; restore it from a copy that has all entries"
        )

    def _chain(self, connection: sqlite3.Connection, writes: str | None, create: bool) -> Chain:
        """The checked events. A new file gets its first event; a file of format 1 is converted on the first write."""

        def write(number: int, before: str, content: str, digest: str) -> None:
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?)", (number, before, content, digest))
            connection.execute(f"PRAGMA user_version = {FILE_FORMAT}")  # so that earlier versions refuse the file

        version = self._format(connection, create)
        try:
            if version > 1:
                return Chain.read(connection.execute("SELECT * FROM event ORDER BY number"), write)
            chain, earlier = Chain(write), format_1.events(connection) if version else []
            if not writes:
                chain.events = earlier
                return chain
        except (BrokenChain, ValueError, LookupError, AttributeError, TypeError, RecursionError) as damage:
            raise self.damaged() from damage
        for statement in (*(format_1.DROPPED if version else ()), *_statements(TABLES)):
            connection.execute(statement)  # not executescript, which would commit first: this must be one transaction
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        chain.add({"event": FIRST, "time": now(), "ledger": secrets.token_hex(16)})
        for event in earlier:
            chain.add(event)
        return chain

    def _format(self, connection: sqlite3.Connection, create: bool) -> int:
        """The file's format, 0 for an empty file. Refuses other files, newer formats and corrupt pages."""
        # Look at the size on disk, because within the transaction an empty file already has its first page.
        if self.path.stat().st_size == 0:
            if not create:
                raise DataError(f"{self.path} is empty: restore it from a copy", remedy="new_ledger")
            return 0
        if _pragma(connection, "application_id") != APPLICATION_ID:
            raise DataError(
                f"{self.path} is an SQLite file but not a ledger; give the path of a ledger, or of a new file"
            )
        version = int(_pragma(connection, "user_version"))
        if version > FILE_FORMAT:
            raise DataError(
                f"{self.path} has ledger format {version}, but this version of prade reads formats up to "
                f"{FILE_FORMAT}; update prade"
            )
        if version < 1 or _pragma(connection, "integrity_check(1)") != "ok":
            raise self.damaged()
        return version

    def _explained(self, failure: Exception) -> PradeError:
        """An error from SQLite or the operating system, with what it means and what to do."""
        # The lowest eight bits are SQLite's primary code. Errors without one are invalid text or denied access.
        unknown = sqlite3.SQLITE_CANTOPEN if isinstance(failure, OSError) else sqlite3.SQLITE_CORRUPT
        code = getattr(failure, "sqlite_errorcode", unknown) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return PradeError(
                f"{self.path} was locked by another process for {self.patience:g} s, so nothing was recorded; "
                "run this again when the other process has finished, or increase patience"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return PradeError(
                f"You don't have permission to write to {self.path}, so nothing was recorded; get write access to the "
                "file and its folder, or choose another ledger"
            )
        if code == sqlite3.SQLITE_CANTOPEN:
            return PradeError(
                f"{self.path} cannot be opened; check that it is a file and that you have permission to write to it "
                "and its folder"
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
            return PradeError(
                f"{self.path} could not be read or written ({failure}), so no noise may be drawn for this step; free "
                "some disk space or repair the disk, then run this again"
            )
        return self.damaged()


def now() -> str:
    """The time of an event: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _reached(operation: str | None, step: str) -> None:
    # An audit event does nothing unless a listener is installed, so the tests run the same code as everybody else.
    # The fault tests listen, and kill the process at the step they name.
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
