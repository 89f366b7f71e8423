"""The ledger: an exact record on disk of what has been spent on each data set.

For a data set with cap B and entries of cost c_1, ..., c_n that were not given back, the ledger guarantees at every
moment that

    c_1 + ... + c_n  <=  B        (exact fractions; costs add up: sequential composition)

An entry counts from the moment it is *reserved*, and it is reserved, durably, before a private row is read:

    reserve -> count -> start_drawing -> draw -> write the measurements -> commit

A run that fails on the way leaves its entry, marked by `fail` with the stage and the kind of the error: whether a run
fails may depend on one person, so the custodian pays for it and sees it. Until `start_drawing`, the same plan and
folder resume the entry without paying again, and the custodian may give it back, on the record. From then on noisy
answers may exist, so the entry is never refunded: that may be a loss, but answers that nobody recorded would be a
breach.

The ledger keeps a chain of events (`prade.privacy.ledger.chain`), and everything else is computed from it. Every
operation opens the file, works in one SQLite transaction and closes it. Processes, threads and forks can share a
ledger: the one that writes holds SQLite's write lock, and the others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from prade.core.errors import BudgetError, DataError, PradeError
from prade.privacy.budget import Budget
from prade.privacy.ledger.book import Book
from prade.privacy.ledger.chain import Head
from prade.privacy.ledger.location import custodian_ledger, user_ledger
from prade.privacy.ledger.records import Claim, Dataset, Entry, Records, spending, whole_path
from prade.privacy.ledger.required import (
    require_budget,
    require_failure,
    require_kind,
    require_text,
    require_undrawn,
    require_unit,
)
from prade.privacy.ledger.statement import Statement
from prade.privacy.ledger.years import shares_of
from prade.privacy.unit import Unit


class Ledger(Book):
    """The ledger in the file `path`, which `open_dataset` creates if it does not exist.

    `patience` is how many seconds to wait while another process writes. If `reserve` raises an error, no private row
    may be read, and if `start_drawing` does, no noise may be drawn. (If the disk fails at the very last moment, the
    event may have been recorded nevertheless: then budget is lost, but privacy is kept.)

    >>> from prade.privacy.budget import Budget
    >>> from prade.privacy.unit import Unit
    >>> ledger = Ledger("budget.ledger")
    >>> survey = ledger.open_dataset("survey", Unit(max_rows=1), cap=Budget.pure("1"))
    >>> entry = ledger.reserve("survey", "3f2a", Budget.pure("0.3"), note="age by county, Laplace scale 10/3")
    >>> ledger.start_drawing(entry.id).state
    'drawing'
    >>> ledger.commit(entry.id, "77c0").state
    'committed'
    >>> ledger.remaining("survey") == Budget.pure("0.7")
    True
    """

    @classmethod
    def of(cls, ledger: Ledger | str | PathLike[str] | None) -> Ledger:
        """A ledger as given, the ledger in a file, or, for None, the custodian's (`prade.privacy.ledger.location`)."""
        if isinstance(ledger, Ledger):
            return ledger
        if ledger is not None and not isinstance(ledger, (str, PathLike)):
            raise PradeError(f"ledger is {ledger!r}; give a Ledger or the path of its file")
        return cls(custodian_ledger() if ledger is None else ledger)

    # ------------------------------------------------------------------ writing

    def open_dataset(self, name: str, unit: Unit, cap: Budget) -> Dataset:
        """Record a data set with its unit and cap. If it is already recorded, unit and cap must be the same."""
        self._prepare_file(name, unit, cap)
        with self._file.transaction("open_dataset", create=True) as chain:
            return self._enter(chain, self._records_of(chain), name, unit, cap)

    def raise_cap(self, dataset: str, cap: Budget, reason: str) -> Dataset:
        """Raise a data set's cap, in the same kind of budget, and record the reason. A cap is never lowered."""
        require_budget(cap, "cap")
        require_text(reason, "the reason for raising a cap")
        with self._file.transaction("raise_cap") as chain:
            records = self._records_of(chain)
            recorded = self._find(records, dataset)
            require_kind(recorded, cap, "cap", self.path)
            if not recorded.cap < cap:
                raise PradeError(
                    f"data set {recorded.name!r} has the cap {recorded.cap} in {self.path}, and {cap} is not above it; "
                    "give a higher cap (it cannot be lowered, because that budget may already be spent)"
                )
            event = {"event": "raised", "dataset": recorded.name, "cap": cap.to_dict(), "reason": reason.strip()}
            self._record(chain, records, event)
            return records.datasets[recorded.name]

    def divide(self, dataset: str, years: int, shares: Sequence[Any] | None = None) -> Dataset:
        """Divide what is left of a data set's cap over that many years, equally or by `shares`; year 1 begins.

        An earlier division ends. What a year leaves over stays for the next ones (`prade.privacy.ledger.years`).
        """
        numbers = shares_of(years, shares)
        with self._file.transaction("divide") as chain:
            records = self._records_of(chain)
            recorded = self._find(records, dataset)
            event = {"event": "divided", "dataset": recorded.name, "shares": list(map(str, numbers))}
            self._record(chain, records, event)
            return records.datasets[recorded.name]

    def next_year(self, dataset: str) -> Dataset:
        """Begin the next year of a data set whose budget is divided over several."""
        with self._file.transaction("next_year") as chain:
            records = self._records_of(chain)
            recorded = self._find(records, dataset)
            if (division := recorded.division) is None or division.year == len(division.shares):
                state = "is not divided over years" if division is None else f"has no year after {division.year}"
                raise PradeError(f"the budget of data set {recorded.name!r} {state} in {self.path}", remedy="divide")
            self._record(chain, records, {"event": "year", "dataset": recorded.name, "year": division.year + 1})
            return records.datasets[recorded.name]

    def reserve(
        self,
        dataset: str,
        plan_hash: str,
        cost: Budget,
        note: str = "",
        *,
        unit: Unit | None = None,
        cap: Budget | None = None,
        again: bool = False,
        folder: str | PathLike[str] | None = None,
    ) -> Entry:
        """Spend `cost` on a plan, durably before this returns; BudgetError, and nothing spent, if it exceeds the cap.

        If the plan has an entry with the same `folder` for which no noise was drawn, that entry is resumed, and
        nothing more is spent. A plan with any other entry is refused unless `again` is true, so that two runs of one
        plan do not pay twice by mistake. `note` is copied into the account: what was asked, at which noise scale,
        nothing private. `unit` is the unit that the noise was calibrated for; if it is not the data set's, the call
        is refused. With a `cap` (and the unit), a data set that is not in the ledger yet is recorded in the same
        transaction, as by `open_dataset`. `folder` is where the release will be; its whole path is recorded.
        """
        if cap is not None:
            self._prepare_file(dataset, unit, cap)
        with self._file.transaction("reserve", create=cap is not None) as chain:
            records = self._records_of(chain)
            terms = plan_hash, cost, (where := whole_path(folder))
            recorded, resumed = self._admit(chain, records, dataset, *terms, unit, cap, again)
            if resumed is not None:
                self._record(chain, records, {"event": "resumed", "entry": resumed.id})
                return records.entries[resumed.id - 1]
            event = {"event": "reserved", "note": str(note), "drawn": False}
            self._record(chain, records, {**event, **spending(records, recorded, plan_hash, cost, where)})
            return records.entries[-1]

    def start_drawing(self, entry_id: int) -> Entry:
        """Record, durably before this returns, that noise is about to be drawn. Of two runs of an entry, one may."""

        def refuse(entry: Entry) -> None:
            require_undrawn(entry, "may not draw noise", self.path)

        return self._advance("start_drawing", entry_id, {"event": "drawing"}, refuse)

    def fail(self, entry_id: int, stage: str, kind: str) -> Entry:
        """Record that a run failed in the stage "count", "draw" or "write"; the amount stays spent.

        `kind` is the name of the error's class. Its text is not recorded, because it may depend on private rows.
        """
        require_failure(stage, kind)

        def refuse(entry: Entry) -> None:
            if entry.state == "imported":
                raise PradeError(f"entry {entry.id} of {self.path} is imported, so none of this ledger's runs made it")

        return self._advance("fail", entry_id, {"event": "failed", "stage": stage, "kind": kind}, refuse)

    def give_back(self, entry_id: int, reason: str) -> Entry:
        """Give back what an entry has spent, and record the reason; only if no noise was drawn for it."""
        require_text(reason, "the reason for giving an entry back")

        def refuse(entry: Entry) -> None:
            require_undrawn(entry, "cannot be given back", self.path)

        return self._advance("give_back", entry_id, {"event": "returned", "reason": reason.strip()}, refuse)

    def commit(self, entry_id: int, measurements_hash: str) -> Entry:
        """Record that an entry's measurements are written; repeating it with the same hash changes nothing."""
        require_text(measurements_hash, "the measurements' hash")
        with self._file.transaction("commit") as chain:
            records = self._records_of(chain)
            entry = self._entry(records, entry_id)
            if not entry.drawn:
                raise PradeError(
                    f"entry {entry_id} of {self.path} is {entry.state}, and no noise is recorded as drawn for it, so "
                    "it has no measurements; call start_drawing before noise is drawn"
                )
            if entry.measurements_hash is None:
                event = {"event": "committed", "entry": entry.id, "measurements": measurements_hash}
                self._record(chain, records, event)
            elif entry.measurements_hash != measurements_hash:
                raise PradeError(
                    f"entry {entry_id} of {self.path} is {entry.state} with the measurements "
                    f"{entry.measurements_hash}, not {measurements_hash}: an entry pays for one set of measurements; "
                    "reserve another entry for new ones"
                )
            return records.entries[entry.id - 1]

    def record_import(
        self, dataset: str, unit: Unit, cost: Budget, claim: Claim, after: Head | None, note: str, source: str
    ) -> Entry:
        """Record the cost of a release that another ledger paid for, or this one before it lost its last events.

        `prade.release.unrecorded_releases.import_release` reads the arguments from the folder `source`. The cost counts
        from now on. If the release is already recorded, nothing changes and its entry is returned.
        """
        with self._file.transaction("import_release") as chain:
            records = self._records_of(chain)
            recorded = self._find(records, dataset)
            if (known := records.payer(recorded.name, claim)) is not None:
                named = after or claim.head
                if known.origin is None and named is not None and not (known.drawn and records.has(named)):
                    event = {"event": "found", "entry": known.id, "measurements": claim.measurements_hash}
                    self._record(chain, records, {**event, "head": named.to_dict()})
                return records.entries[known.id - 1]
            require_unit(recorded, unit, self.path)
            require_kind(recorded, cost, "cost", self.path)
            if not cost <= records.remaining[recorded.name]:
                remaining = records.remaining[recorded.name]
                raise BudgetError(
                    f"{source} cost {cost}, but data set {recorded.name!r} has only {remaining} left of {recorded.cap} "
                    f"in {self.path}; raise the cap to cover what was spent, then import the release",
                    remaining,
                    cost,
                    remedy="raise_cap",
                )
            event = {
                "event": "imported",
                "note": note,
                "measurements": claim.measurements_hash,
                "origin": vars(claim.origin),
                **spending(records, recorded, claim.plan_hash, cost, whole_path(source)),
            }
            self._record(chain, records, event)
            return records.entries[-1]

    # ------------------------------------------------------------------ reading

    def check(
        self,
        dataset: str,
        plan_hash: str,
        cost: Budget,
        *,
        unit: Unit | None = None,
        cap: Budget | None = None,
        again: bool = False,
        folder: str | PathLike[str] | None = None,
    ) -> None:
        """Raise the error that `reserve` would raise now; spend nothing."""
        new = cap is not None and not self.path.exists()
        if new and self.path != user_ledger() and not self.path.absolute().parent.is_dir():
            raise DataError(f"the folder of the ledger {self.path} does not exist; create it first")
        records, where = Records() if new else self._records(), whole_path(folder)
        self._admit(None, records, dataset, plan_hash, cost, where, unit, cap, again)

    def knows(self, dataset: str) -> bool:
        """Whether the data set is recorded; False also if there is no ledger yet, an error for another spelling."""
        return self.path.exists() and self._look_up(self._records(), dataset) is not None

    def datasets(self) -> list[Dataset]:
        """All data sets, by name."""
        return sorted(self._records().datasets.values(), key=lambda dataset: dataset.name)

    def dataset(self, name: str) -> Dataset:
        """One data set: its unit and cap."""
        return self._find(self._records(), name)

    def entries(self, dataset: str) -> list[Entry]:
        """All entries of a data set, oldest first."""
        return list(self.statement(dataset).entries)

    def find(self, dataset: str, plan_hash: str) -> Entry | None:
        """The latest entry of a plan, whatever its state, or None."""
        return next((entry for entry in reversed(self.entries(dataset)) if entry.plan_hash == plan_hash), None)

    def times_paid(self, dataset: str, plan_hash: str) -> int:
        """How many entries of a plan were not given back; 0 also if the data set is not in the ledger."""
        entries = self.entries(dataset) if self.knows(dataset) else []
        return sum(entry.plan_hash == plan_hash and entry.returned is None for entry in entries)

    def remaining(self, dataset: str) -> Budget:
        """Cap minus the cost of every entry that was not given back."""
        return self.statement(dataset).remaining

    def statement(self, dataset: str) -> Statement:
        """Everything the ledger records about a data set at this moment."""
        records = self._records()
        recorded = self._find(records, dataset)
        entries = tuple(records.of_dataset(recorded.name))
        return Statement(recorded, entries, records.remaining[recorded.name], records.head)

    def account(self, dataset: str) -> str:
        """The account as text: the promise, what was asked, what it cost and what remains."""
        return self.statement(dataset).words(str(self.path))

    def head(self) -> Head | None:
        """The head of the chain: the ledger's identity and its last event; None if there is no ledger yet."""
        return self._records().head if self.path.exists() else None

    def paid(self, dataset: str, claim: Claim) -> Entry | None:
        """The entry that paid for a release, or that imported it; None if there is none."""
        records = self._records()
        entry = records.payer(self._find(records, dataset).name, claim)
        return entry if entry is not None and entry.drawn else None

    def has(self, head: Head) -> bool:
        """Whether the ledger's chain has passed through this head; False for an old copy or one that was cut off."""
        return self._records().has(head)
