"""The ledger on disk: a chain of events in one SQLite file, opened for one transaction at a time.

Each event has the hash of the one before, so none can be changed without changing all later ones. The last number and
hash, the *head*, stand for everything before them. A release keeps a copy of the head: a ledger without that event is
an old copy or has lost its end. A kill, a full disk or a power cut leaves the file as it was before the transaction or
after it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prade.core.documents import structured
from prade.core.errors import DataError, PradeError

Event = Mapping[str, Any]
FIRST = "made"  # the type of the first event, which contains the ledger's identity
FILE_FORMAT = 4  # 2 and 3, which 0.9 wrote too, lack the events of 4: divided budgets, failures
APPLICATION_ID = 0x70726164  # "prad" in the header of the SQLite file, to tell a ledger from other SQLite files

# The triggers apply to every program that opens the file, not only to this one. The last one also stops REPLACE, which
# deletes a conflicting row without firing the DELETE trigger.
TABLES = (
    "CREATE TABLE event (number INTEGER PRIMARY KEY, before TEXT NOT NULL, content TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TRIGGER event_is_kept BEFORE DELETE ON event BEGIN SELECT RAISE (ABORT, 'an event is never removed'); END",
    "CREATE TRIGGER event_is_fixed BEFORE UPDATE ON event BEGIN SELECT RAISE (ABORT, 'an event is never changed'); END",
    """CREATE TRIGGER event_is_last BEFORE INSERT ON event
    WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM event)
        OR NEW.before IS NOT coalesce((SELECT hash FROM event ORDER BY number DESC LIMIT 1), '')
    BEGIN SELECT RAISE (ABORT, 'an event goes to the end of the chain'); END""",
)


@dataclass(frozen=True)
class Head:
    """The end of a ledger's chain at some moment: the ledger's identity, the last event's number and its hash."""

    ledger: str
    number: int
    hash: str

    def to_dict(self) -> dict[str, Any]:
        return vars(self).copy()

    @classmethod
    def from_dict(cls, values: Any) -> Head:
        return structured(values, cls, DataError)

    def __str__(self) -> str:
        return f"event {self.number} of ledger {self.ledger}, hash {self.hash}"


class BrokenChain(Exception):
    """The chain is inconsistent: an event was changed, or is missing."""


class Chain:
    """All events of a ledger, oldest first, checked, with the head after each; `add` writes one more.

    An event includes a random string, so that copies of a ledger never continue alike.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.events: list[Event] = []
        self.heads: list[Head] = []
        self._connection = connection

    def read(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Read rows (number, before, content, hash); BrokenChain if a row is not what was written."""
        for number, before, content, digest in rows:
            expected = (len(self.events) + 1, self.heads[-1].hash if self.heads else "")
            if (number, before) != expected or digest != _hash(number, before, content):
                raise BrokenChain
            self._append(json.loads(content), digest)
        if [event["event"] == FIRST for event in self.events] != [True] + [False] * (len(self.events) - 1):
            raise BrokenChain  # only the first event may give the ledger's identity

    def add(self, event: Event) -> None:
        number, before = len(self.events) + 1, self.heads[-1].hash if self.heads else ""
        content = json.dumps({**event, "random": secrets.token_hex(8)}, sort_keys=True, separators=(",", ":"))
        digest = _hash(number, before, content)
        self._connection.execute("INSERT INTO event VALUES (?, ?, ?, ?)", (number, before, content, digest))
        self._connection.execute(f"PRAGMA user_version = {FILE_FORMAT}")  # so that earlier versions refuse the file
        self._append(json.loads(content), digest)

    def _append(self, event: Any, digest: str) -> None:
        ledger = self.heads[0].ledger if self.heads else event.get("ledger")
        self.events.append(event)
        self.heads.append(Head(ledger, len(self.events), digest))


def _hash(number: int, before: str, content: str) -> str:
    # repr: in a damaged file a text may be read as bytes, which JSON cannot encode
    text = json.dumps([number, before, content], separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


class LedgerFile:
    """The ledger file `path`; `patience` is how many seconds to wait while another process writes."""

    def __init__(self, path: Path, patience: float) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def transaction(self, writes: str | None, *, create: bool = False) -> Iterator[Chain]:
        """One transaction on the chain of events. `writes` names the operation that writes; None means read only."""
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
            chain = self._chain(connection, create)
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

    def _chain(self, connection: sqlite3.Connection, create: bool) -> Chain:
        """The checked events; a new file gets its first event."""
        chain = Chain(connection)
        # Look at the size on disk, because within the transaction an empty file already has its first page.
        if self.path.stat().st_size == 0:
            if not create:
                raise DataError(f"{self.path} is empty: restore it from a copy", remedy="new_ledger")
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            chain.add({"event": FIRST, "time": now(), "ledger": secrets.token_hex(16)})
            return chain
        self._check_format(connection)
        try:
            chain.read(connection.execute("SELECT * FROM event ORDER BY number"))
        except (BrokenChain, ValueError, LookupError, AttributeError, TypeError, RecursionError) as damage:
            raise self.damaged() from damage
        return chain

    def _check_format(self, connection: sqlite3.Connection) -> None:

        def pragma(name: str) -> Any:
            return connection.execute(f"PRAGMA {name}").fetchone()[0]

        if pragma("application_id") != APPLICATION_ID:
            raise DataError(
                f"{self.path} is an SQLite file but not a ledger; give the path of a ledger or of a new one"
            )
        version = int(pragma("user_version"))
        if version > FILE_FORMAT or version == 1:  # 1: version 0.1's, without a chain
            raise DataError(
                f"{self.path} has ledger format {version}, but this version of prade reads formats 2 to {FILE_FORMAT}; "
                "use the version that wrote it"
            )
        if version < 1 or pragma("integrity_check(1)") != "ok":
            raise self.damaged()

    def _explained(self, failure: Exception) -> PradeError:
        # The lowest eight bits are SQLite's primary code. Errors without one are invalid text or denied access.
        unknown = sqlite3.SQLITE_CANTOPEN if isinstance(failure, OSError) else sqlite3.SQLITE_CORRUPT
        code = getattr(failure, "sqlite_errorcode", unknown) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            what = (
                f"was locked by another process for {self.patience:g} s, so nothing was recorded; run this again when "
                "the other process has finished, or increase patience"
            )
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            what = "may not be written, so nothing was recorded; get write access to the file and its folder"
        elif code == sqlite3.SQLITE_CANTOPEN:
            what = "cannot be opened; check that it is a file, and get write access to the file and its folder"
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
            what = (
                f"could not be read or written ({failure}), so no noise may be drawn for this step; free some disk "
                "space or repair the disk, then run this again"
            )
        else:
            return self.damaged()
        return PradeError(f"{self.path} {what}")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _reached(operation: str | None, step: str) -> None:
    # an audit event does nothing unless a listener is installed: the fault tests listen, and kill the process there
    if operation is not None:
        sys.audit("prade.step", f"ledger.{operation}.{step}")
