"""The ledger: what has been spent on which data set, on disk, exact, never given back.

For a data set with cap B and entries of cost c_1, ..., c_n the ledger keeps, at every moment and for every reader,

    c_1 + ... + c_n  <=  B        (exact fractions; costs add up: sequential composition)

An entry counts from the moment it is *reserved*, and it is reserved, durably, before any noise is drawn:

    reserve -> draw -> write the measurements -> commit

So a run that breaks off has spent its budget, which is a pity; noisy answers that nobody recorded would be a breach.

Every operation opens the file, works in one SQLite transaction and closes it. Processes, threads and forks may share a
ledger: whoever writes holds SQLite's write lock, the others wait.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Literal

from prade.column import closest
from prade.errors import BudgetError, PradeError
from prade.ledger_file import LedgerFile
from prade.privacy import Budget, Unit

State = Literal["reserved", "committed"]


@dataclass(frozen=True)
class Dataset:
    """A data set in the ledger: its name, what is protected, and the most that may ever be spent on it."""

    name: str
    unit: Unit
    cap: Budget
    created: str


@dataclass(frozen=True)
class Entry:
    """One release: the plan it followed, what it cost, and whether its measurements are known to be written.

    `state` is "reserved" (spent; the run is under way or broke off) or "committed" (spent; the measurements with the
    hash `measurements_hash` were written). Times are UTC.
    """

    id: int
    dataset: str
    plan_hash: str
    cost: Budget
    note: str
    created: str
    state: State = "reserved"
    measurements_hash: str | None = None
    committed: str | None = None


class Ledger:
    """The ledger in the file `path`, which `open_dataset` makes when there is none.

    `patience` is how many seconds to wait while another process writes. An error from `reserve` means that nothing
    may be drawn. (When a disk fails in the very last moment, the entry may be recorded nevertheless: budget lost,
    privacy kept.)

    >>> from prade.privacy import Budget, Unit
    >>> ledger = Ledger("budget.ledger")
    >>> survey = ledger.open_dataset("survey", Unit(max_rows=1), cap=Budget.pure("1"))
    >>> entry = ledger.reserve("survey", "3f2a", Budget.pure("0.3"), note="age by county, Laplace scale 10/3")
    >>> ledger.commit(entry.id, "77c0").state
    'committed'
    >>> ledger.remaining("survey") == Budget.pure("0.7")
    True
    """

    def __init__(self, path: str | PathLike[str], *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._file = LedgerFile(self.path, patience)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    # ------------------------------------------------------------------ writing

    def open_dataset(self, name: str, unit: Unit, cap: Budget) -> Dataset:
        """Enter a data set with its unit and cap; a second time they must be the same, for a promise is kept."""
        _need_text(name, "the name of a data set")
        _need_budget(cap, "cap")
        with self._file.transaction("open_dataset", create=True) as connection:
            recorded = self._datasets(connection).get(name)
            for known in self._datasets(connection):
                if known != name and _alike(known) == _alike(name):
                    raise PradeError(
                        f"{self.path} has a data set {known!r}, and {name!r} would have a budget of its own: use the "
                        "recorded name, or one that differs by more than case and blanks"
                    )
            if recorded is None:
                recorded = Dataset(name, unit, cap, _now())
                self._file.put(connection, "dataset", {**vars(recorded), "unit": _json(unit), "cap": _json(cap)})
            if recorded.cap != cap:
                raise PradeError(
                    f"data set {name!r} has the cap {recorded.cap} in {self.path}, not {cap}: a cap is set once; "
                    "open it with the recorded one"
                )
            if recorded.unit != unit:
                raise PradeError(
                    f"data set {name!r} has {recorded.unit} in {self.path}, not {unit}: what was spent was spent under "
                    "that promise; open it with the recorded unit"
                )
            return recorded

    def reserve(self, dataset: str, plan_hash: str, cost: Budget, note: str = "", *, again: bool = False) -> Entry:
        """Spend `cost` on a plan, durable before this returns; BudgetError, and nothing spent, if it exceeds the cap.

        A plan that has an entry already is refused unless `again` is true, so that two runs of one plan do not pay
        twice by mistake. `note` goes into the account as it is: what was asked, at which scale, nothing private.
        """
        with self._file.transaction("reserve") as connection:
            everything = self._entries(connection)
            self._admit(self._dataset(connection, dataset), everything, plan_hash, cost, again)
            entry = Entry(len(everything) + 1, dataset, plan_hash, cost, str(note), _now())
            self._put(connection, entry)
            return entry

    def commit(self, entry_id: int, measurements_hash: str) -> Entry:
        """Record that the measurements of a reserved entry are written; the same hash again changes nothing."""
        _need_text(measurements_hash, "the measurements' hash")
        with self._file.transaction("commit") as connection:
            entry = next((entry for entry in self._entries(connection) if entry.id == entry_id), None)
            if entry is None:
                raise PradeError(f"{self.path} has no entry {entry_id!r}: commit with the id that reserve gave")
            if entry.state == "reserved":
                entry = replace(entry, state="committed", measurements_hash=measurements_hash, committed=_now())
                self._put(connection, entry)
            if entry.measurements_hash != measurements_hash:
                raise PradeError(
                    f"entry {entry_id} is committed with the measurements {entry.measurements_hash}, not "
                    f"{measurements_hash}: an entry pays for one set of measurements; reserve another for new ones"
                )
            return entry

    # ------------------------------------------------------------------ reading

    def check(self, dataset: str, plan_hash: str, cost: Budget, *, again: bool = False) -> None:
        """Raise what `reserve` would raise now, and spend nothing."""
        with self._file.transaction(None) as connection:
            self._admit(self._dataset(connection, dataset), self._entries(connection), plan_hash, cost, again)

    def datasets(self) -> list[Dataset]:
        """All data sets, by name."""
        with self._file.transaction(None) as connection:
            return list(self._datasets(connection).values())

    def dataset(self, name: str) -> Dataset:
        """One data set: its unit and cap."""
        with self._file.transaction(None) as connection:
            return self._dataset(connection, name)

    def entries(self, dataset: str) -> list[Entry]:
        """All entries of a data set, oldest first."""
        return self._read(dataset)[1]

    def find(self, dataset: str, plan_hash: str) -> Entry | None:
        """The latest entry of a plan, if it has one: what a new run of the plan looks up first."""
        return next((entry for entry in reversed(self.entries(dataset)) if entry.plan_hash == plan_hash), None)

    def remaining(self, dataset: str) -> Budget:
        """Cap minus everything reserved or committed."""
        return self._left(*self._read(dataset))

    def account(self, dataset: str) -> str:
        """The account in words: under which promise, what was asked, what it cost, what remains."""
        home, entries = self._read(dataset)
        left = self._left(home, entries)
        lines = [
            f"Data set {home.name}",
            f"  promise    {home.unit.promise()}",
            f"  cap        {home.cap}",
            f"  spent      {home.cap - left}",
            f"  remaining  {left}",
        ]
        for entry in entries:
            lines += [
                f"Entry {entry.id}, {entry.created}",
                f"  asked      {entry.note or '(no note)'}",
                f"  plan       {entry.plan_hash}",
                f"  cost       {entry.cost}",
            ]
            if entry.state == "committed":
                lines.append(f"  committed  {entry.committed}, measurements {entry.measurements_hash}")
            else:
                lines.append("  reserved   spent, but no measurements are recorded: under way, or broken off")
        if not entries:
            lines.append("No entries: nothing has been asked.")
        return "\n".join(lines)

    # ------------------------------------------------------------------ rows as values

    def _read(self, dataset: str) -> tuple[Dataset, list[Entry]]:
        with self._file.transaction(None) as connection:
            home = self._dataset(connection, dataset)
            return home, [entry for entry in self._entries(connection) if entry.dataset == dataset]

    def _datasets(self, connection: sqlite3.Connection) -> dict[str, Dataset]:
        rows = self._file.rows(connection, "dataset")
        try:
            return {
                row["name"]: Dataset(
                    row["name"],
                    Unit.from_dict(json.loads(row["unit"])),
                    Budget.from_dict(json.loads(row["cap"])),
                    row["created"],
                )
                for row in rows
            }
        except ValueError as damage:
            raise self._file.damaged() from damage

    def _dataset(self, connection: sqlite3.Connection, name: str) -> Dataset:
        known = self._datasets(connection)
        if name not in known:
            raise PradeError(
                f"{self.path} has no data set {name!r}{closest(str(name), list(known))}; enter it with open_dataset"
            )
        return known[name]

    def _entries(self, connection: sqlite3.Connection) -> list[Entry]:
        """The entries of all data sets, oldest first."""
        rows = self._file.rows(connection, "entry")
        if [row["id"] for row in rows] != list(range(1, len(rows) + 1)):
            raise self._file.damaged()  # entries are numbered without gaps: one is lost
        try:
            return [Entry(**{**row, "cost": Budget.from_dict(json.loads(row["cost"]))}) for row in rows]
        except ValueError as damage:
            raise self._file.damaged() from damage

    def _admit(self, home: Dataset, everything: list[Entry], plan_hash: str, cost: Budget, again: bool) -> None:
        """Refuse what may not be spent: too much, the same twice by mistake, or in another kind of budget."""
        _need_text(plan_hash, "a plan's hash")
        _need_budget(cost, "cost")
        own = [entry for entry in everything if entry.dataset == home.name]
        left = self._left(home, own)
        if cost.kind != left.kind:
            raise PradeError(
                f"data set {home.name!r} is accounted in {left.kind} budget, but the cost is {cost.kind}: "
                f"give the cost as {left.kind}"
            )
        if cost == cost * 0:
            raise PradeError("the cost is zero, but every measurement costs something: give what it costs")
        earlier = [entry for entry in own if entry.plan_hash == plan_hash]
        if earlier and not again:
            wrote = (
                f"its measurements {earlier[-1].measurements_hash} were written: find and use them, which is free"
                if earlier[-1].state == "committed"
                else "no measurements are recorded: its run is under way, or broke off (if it had saved them, "
                "measuring into the same folder finds them)"
            )
            raise BudgetError(
                f"plan {plan_hash} is paid for already on data set {home.name!r} (entry {earlier[-1].id}, "
                f"{earlier[-1].state}); {wrote}. To spend {cost} once more, say again=True",
                left,
                cost,
            )
        if not cost <= left:
            raise BudgetError(
                f"data set {home.name!r} has {left} left of {home.cap}, but {cost} was asked for: nothing was spent; "
                "ask for less, or make do with what has been measured",
                left,
                cost,
            )

    def _put(self, connection: sqlite3.Connection, entry: Entry) -> None:
        self._file.put(connection, "entry", {**vars(entry), "cost": _json(entry.cost)})

    def _left(self, home: Dataset, entries: Iterable[Entry]) -> Budget:
        left = home.cap
        for entry in entries:
            if entry.cost.kind != left.kind or not entry.cost <= left:
                raise self._file.damaged()  # more than reserve would ever let through
            left -= entry.cost
        return left


def _alike(name: str) -> str:
    """What is left of a name when one overlooks what people overlook."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _json(value: Unit | Budget) -> str:
    return json.dumps(value.to_dict(), sort_keys=True)


def _need_text(value: object, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise PradeError(f"{what} must be text that is not blank, got {value!r}")


def _need_budget(value: object, what: str) -> None:
    if not isinstance(value, Budget):
        raise PradeError(f"{what} must be a Budget, got {value!r}: write Budget.pure(...), .zcdp(...) or .approx(...)")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
