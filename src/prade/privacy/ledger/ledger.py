"""The ledger: an exact record on disk of what has been spent on each data set. Spent budget is never refunded.

For a data set with cap B and entries of cost c_1, ..., c_n, the ledger guarantees at every moment that

    c_1 + ... + c_n  <=  B        (exact fractions; costs add up: sequential composition)

An entry counts from the moment it is *reserved*, and it is reserved, durably, before any noise is drawn:

    reserve -> draw -> write the measurements -> commit

So an interrupted run has spent its budget. That is a loss, but noisy answers that nobody recorded would be a breach.

The ledger keeps a chain of events (`prade.privacy.ledger.chain`), and everything else is computed from it. Every
operation opens the file, works in one SQLite transaction and closes it. Processes, threads and forks can share a
ledger: the one that writes holds SQLite's write lock, and the others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import BudgetError, DataError, PradeError
from prade.core.remedies import Remedy
from prade.core.words import closest
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import confusable
from prade.privacy.ledger.chain import BrokenChain, Chain, Head
from prade.privacy.ledger.file import LedgerFile, now
from prade.privacy.ledger.location import custodian_ledger, user_ledger
from prade.privacy.ledger.records import Claim, Dataset, Entry, Records, Statement, spending
from prade.privacy.ledger.required import require_budget, require_dataset, require_text
from prade.privacy.ledger.years import shares_of
from prade.privacy.unit import Unit


class Ledger:
    """The ledger in the file `path`, which `open_dataset` creates if it does not exist.

    `patience` is how many seconds to wait while another process writes. If `reserve` raises an error, no noise may be
    drawn. (If the disk fails at the very last moment, the entry may have been recorded nevertheless: then budget is
    lost, but privacy is kept.)

    >>> from prade.privacy.budget import Budget
    >>> from prade.privacy.unit import Unit
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

    @classmethod
    def of(cls, ledger: Ledger | str | PathLike[str] | None) -> Ledger:
        """A ledger as given, the ledger in a file, or, for None, the custodian's (`prade.privacy.ledger.location`)."""
        if isinstance(ledger, Ledger):
            return ledger
        if ledger is not None and not isinstance(ledger, (str, PathLike)):
            raise PradeError(f"ledger is {ledger!r}; give a Ledger or the path of its file")
        return cls(custodian_ledger() if ledger is None else ledger)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

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
            self._require_kind(recorded, cap, "cap")
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
        with self._file.transaction("divide", newest=True) as chain:
            records = self._records_of(chain)
            recorded = self._find(records, dataset)
            event = {"event": "divided", "dataset": recorded.name, "shares": list(map(str, numbers))}
            self._record(chain, records, event)
            return records.datasets[recorded.name]

    def next_year(self, dataset: str) -> Dataset:
        """Begin the next year of a data set whose budget is divided over several."""
        with self._file.transaction("next_year", newest=True) as chain:
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

        A plan that already has an entry is refused unless `again` is true, so that two runs of one plan do not pay
        twice by mistake. `note` is copied into the account: what was asked, at which noise scale, nothing private.
        `unit` is the unit that the noise was calibrated for; if it is not the data set's, the call is refused. With a
        `cap` (and the unit), a data set that is not in the ledger yet is recorded in the same transaction, as by
        `open_dataset`. `folder` is where the release will be; its whole path is recorded.
        """
        if cap is not None:
            self._prepare_file(dataset, unit, cap)
        with self._file.transaction("reserve", create=cap is not None) as chain:
            records = self._records_of(chain)
            recorded = self._admit(chain, records, dataset, plan_hash, cost, unit, cap, again)
            event = {"event": "reserved", "note": str(note), **spending(records, recorded, plan_hash, cost, folder)}
            self._record(chain, records, event)
            return records.entries[-1]

    def commit(self, entry_id: int, measurements_hash: str) -> Entry:
        """Record that a reserved entry's measurements are written; repeating it with the same hash changes nothing."""
        require_text(measurements_hash, "the measurements' hash")
        with self._file.transaction("commit") as chain:
            records = self._records_of(chain)
            entry = next((entry for entry in records.entries if entry.id == entry_id), None)
            if entry is None:
                raise PradeError(f"{self.path} has no entry {entry_id!r}; commit with the id that reserve returned")
            if entry.state == "reserved":
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
                if known.origin is None and after is not None and not records.has(after):
                    event = {"event": "found", "entry": known.id, "measurements": claim.measurements_hash}
                    self._record(chain, records, {**event, "head": after.to_dict()})
                return records.entries[known.id - 1]
            self._require_unit(recorded, unit)
            self._require_kind(recorded, cost, "cost")
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
                **spending(records, recorded, claim.plan_hash, cost, source),
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
    ) -> None:
        """Raise the error that `reserve` would raise now; spend nothing."""
        new = cap is not None and not self.path.exists()
        if new and self.path != user_ledger() and not self.path.absolute().parent.is_dir():
            raise DataError(f"the folder of the ledger {self.path} does not exist; create it first")
        self._admit(None, Records() if new else self._records(), dataset, plan_hash, cost, unit, cap, again)

    def knows(self, dataset: str) -> bool:
        """Whether the data set is recorded; False also if there is no ledger yet."""
        return self.path.exists() and self._records().find(dataset) is not None

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
        """The latest entry of a plan, or None; a new run of the plan looks this up first."""
        return next((entry for entry in reversed(self.entries(dataset)) if entry.plan_hash == plan_hash), None)

    def times_paid(self, dataset: str, plan_hash: str) -> int:
        """How many entries a plan has; 0 also if the data set is not in the ledger."""
        entries = self.entries(dataset) if self.knows(dataset) else []
        return sum(entry.plan_hash == plan_hash for entry in entries)

    def remaining(self, dataset: str) -> Budget:
        """Cap minus everything reserved, committed or imported."""
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
        return records.payer(self._find(records, dataset).name, claim)

    def has(self, head: Head) -> bool:
        """Whether the ledger's chain has passed through this head; False for an old copy or one that was cut off."""
        return self._records().has(head)

    # ------------------------------------------------------------------ checks

    def _enter(self, chain: Chain | None, records: Records, name: str, unit: Unit | None, cap: Budget) -> Dataset:
        """Record a new data set, or check that a recorded one has the same unit and cap."""
        name, unit = require_dataset(name, unit, cap)
        recorded = records.datasets.get(name)
        if recorded is None:
            for known in records.datasets:
                if confusable(known, name):
                    raise PradeError(
                        f"{self.path} already has a data set {known!r}, and {name!r} would get its own budget; use the "
                        "recorded name, or one that differs in more than case, spaces and similar characters"
                    )
            event = {"event": "opened", "dataset": name, "unit": unit.to_dict(), "cap": cap.to_dict()}
            self._record(chain, records, event)
            return records.datasets[name]
        if recorded.cap != cap:
            raise PradeError(
                f"data set {name!r} has the cap {recorded.cap} in {self.path}, not {cap}; give the recorded cap",
                remedy="raise_cap",
            )
        self._require_unit(recorded, unit)
        return recorded

    def _admit(
        self,
        chain: Chain | None,
        records: Records,
        dataset: str,
        plan_hash: str,
        cost: Budget,
        unit: Unit | None,
        cap: Budget | None,
        again: bool,
    ) -> Dataset:
        """Refuse what may not be spent: too much, twice for one plan, in another kind of budget, for another unit."""
        require_text(plan_hash, "a plan's hash")
        require_budget(cost, "cost")
        recorded = self._find(records, dataset) if cap is None else self._enter(chain, records, dataset, unit, cap)
        if unit is not None:
            self._require_unit(recorded, unit)
        self._require_kind(recorded, cost, "cost")
        if cost == cost * 0:
            raise PradeError("the cost is zero, but every measurement costs something; give its cost")
        remaining = records.remaining[recorded.name]
        earlier = [entry for entry in records.of_dataset(recorded.name) if entry.plan_hash == plan_hash]
        if earlier and not again:
            raise self._paid_already(earlier[-1], cost, remaining)
        if not cost <= remaining:
            raise BudgetError(
                f"data set {recorded.name!r} has {remaining} left of {recorded.cap} in {self.path}, but {cost} was "
                "requested; request less, or use what has already been measured",
                remaining,
                cost,
            )
        if recorded.division is not None:
            recorded.division.refuse(recorded.cap - remaining, cost, f"data set {recorded.name!r} in {self.path}")
        return recorded

    def _paid_already(self, entry: Entry, cost: Budget, remaining: Budget) -> BudgetError:
        return BudgetError(
            f"plan {entry.plan_hash} has already been paid for on data set {entry.dataset!r} in {self.path} "
            f"(entry {entry.id}, {entry.state}): {entry.whereabouts()}",
            remaining,
            cost,
            remedy=Remedy("again", cost),
        )

    def _require_unit(self, recorded: Dataset, unit: Unit) -> None:
        if recorded.unit != unit:
            raise PradeError(
                f"data set {recorded.name!r} has {recorded.unit} in {self.path}, not {unit}; use the recorded unit, "
                "because costs add up for one unit only"
            )

    def _require_kind(self, recorded: Dataset, given: Budget, what: str) -> None:
        if given.kind != recorded.cap.kind:
            raise PradeError(
                f"data set {recorded.name!r} has a budget of kind {recorded.cap.kind!r} in {self.path}, but the {what} "
                f"is of kind {given.kind!r}; give Budget.{recorded.cap.kind}(...)"
            )

    # ------------------------------------------------------------------ records

    def _records(self) -> Records:
        with self._file.transaction(None) as chain:
            return self._records_of(chain)

    def _records_of(self, chain: Chain) -> Records:
        try:
            return Records.of(chain)
        except BrokenChain as damage:
            raise self._file.damaged() from damage

    def _find(self, records: Records, name: str) -> Dataset:
        if (recorded := records.find(name)) is None:
            raise PradeError(
                f"{self.path} has no data set {name!r}{closest(str(name), list(records.datasets))}",
                remedy="open_dataset",
            )
        return recorded

    def _record(self, chain: Chain | None, records: Records, event: dict[str, Any]) -> None:
        """Write an event to the chain and apply it to the records; without a chain it is only applied, as a trial."""
        event = {"time": now(), **event}
        if chain is not None:
            chain.add(event)
        records.apply(event, records.head)

    def _prepare_file(self, name: str, unit: Unit | None, cap: Budget) -> None:
        """Before the file is created: check what would be recorded, and create the folder of the default ledger.

        Any other missing folder may be a mistyped path, so it is not created.
        """
        require_dataset(name, unit, cap)
        if self.path == user_ledger():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(
                    f"the folder of the ledger {self.path} does not exist and cannot be created ({error.strerror}); "
                    "create it, or name another ledger in PRADE_LEDGER"
                ) from None
