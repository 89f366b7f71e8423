"""The ledger: an exact record on disk of what has been spent on each data set.

At every moment, the costs of a data set's entries that were not given back add up to at most its cap (exact fractions;
costs add up: sequential composition). An entry counts from the moment it is *reserved*, durably, before a private row
is read, and stays spent if its run fails (the page of the privacy promise: "A failure leaves a trace").

Every operation is one SQLite transaction on the file (`prade.privacy.ledger.file`), so processes, threads and forks can
share a ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import BudgetError, DataError, PradeError, Remedy, closest
from prade.privacy.budget import Budget
from prade.privacy.ledger.file import BrokenChain, Head, LedgerFile
from prade.privacy.ledger.records import Claim, Dataset, Entry, Records, Statement, shares_of
from prade.privacy.protection import Unit, confusable, dataset_name

VARIABLE = "PRADE_LEDGER"
STAGES = ("count", "draw", "write")  # of a run, after its cost is reserved


def custodian_ledger() -> Path:
    """The data custodian's ledger: the path in the environment variable PRADE_LEDGER, or else `user_ledger`."""
    if not (named := os.environ.get(VARIABLE)):
        return user_ledger()
    if not Path(named).is_absolute():
        raise PradeError(f"{VARIABLE} is {named!r}, which is another ledger in every folder; give an absolute path")
    return Path(named)


def user_ledger() -> Path:
    """The default ledger, in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("prade", appauthor=False) / "ledger.sqlite"


class Ledger:
    """The ledger in the file `path`, which `open_dataset` creates if it does not exist.

    `patience` is how many seconds to wait while another process writes. If `reserve` raises an error, no private row
    may be read, and if `start_drawing` does, no noise may be drawn.

    >>> from prade.privacy.budget import Budget
    >>> from prade.privacy.protection import Unit
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

    def __init__(self, path: str | PathLike[str], *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._file = LedgerFile(self.path, patience)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @classmethod
    def of(cls, ledger: Ledger | str | PathLike[str] | None) -> Ledger:
        """A ledger as given, the ledger in a file, or, for None, the custodian's (`custodian_ledger`)."""
        if isinstance(ledger, Ledger):
            return ledger
        if not isinstance(ledger, str | PathLike | None):
            raise PradeError(f"ledger is of type {type(ledger).__name__}; give a Ledger or the path of its file")
        return cls(custodian_ledger() if ledger is None else ledger)

    def open_dataset(self, name: str, unit: Unit, cap: Budget) -> Dataset:
        """Record a data set with its unit and cap. If it is already recorded, unit and cap must be the same."""
        self._prepare_file(name, unit, cap)
        with self._open("open_dataset", create=True) as records:
            return self._enter(records, name, unit, cap)

    def raise_cap(self, dataset: str, cap: Budget, reason: str) -> Dataset:
        """Raise a data set's cap, in the same kind of budget, and record the reason. A cap is never lowered."""
        _require_budget(cap, "cap")
        _require_text(reason, "the reason for raising a cap")
        with self._open("raise_cap") as records:
            recorded = self._find(records, dataset)
            self._require_kind(recorded, cap, "cap")
            if not recorded.cap < cap:
                raise PradeError(
                    f"data set {recorded.name!r} has the cap {recorded.cap} in {self.path}, and {cap} is not above it; "
                    "give a higher cap (it cannot be lowered)"
                )
            return records.record({"event": "raised", "cap": cap.to_dict(), "reason": reason.strip()}, recorded.name)

    def divide(self, dataset: str, years: int, shares: Sequence[Any] | None = None) -> Dataset:
        """Divide what is left of a data set's cap over that many years, equally or by `shares`; year 1 begins.

        An earlier division ends. What a year leaves over stays for the next ones (`Division`).
        """
        numbers = shares_of(years, shares)
        with self._open("divide") as records:
            event = {"event": "divided", "shares": list(map(str, numbers))}
            return records.record(event, self._find(records, dataset).name)

    def next_year(self, dataset: str) -> Dataset:
        """Begin the next year of a data set whose budget is divided over several."""
        with self._open("next_year") as records:
            recorded = self._find(records, dataset)
            if (division := recorded.division) is None or division.year == len(division.shares):
                state = "is not divided over years" if division is None else f"has no year after {division.year}"
                raise PradeError(f"the budget of data set {recorded.name!r} {state} in {self.path}", remedy="divide")
            return records.record({"event": "year", "year": division.year + 1}, recorded.name)

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

        If the plan has an entry with the same `folder`, where the release will be, and no noise was drawn for it, that
        entry is resumed, and nothing more is spent. A plan with any other entry is refused unless `again` is true.
        `note` is copied into the account: what was asked, at which noise scale, nothing private. `unit`, for which the
        noise was calibrated, must be the data set's. With a `cap`, a data set that is not in the ledger yet is recorded
        in the same transaction, as by `open_dataset`.
        """
        if cap is not None:
            self._prepare_file(dataset, unit, cap)
        with self._open("reserve", create=cap is not None) as records:
            recorded = self._payer(records, dataset, cost, unit, cap)
            return self._reserve(records, recorded, plan_hash, cost, note, again, _whole(folder))

    def start_drawing(self, entry_id: int) -> Entry:
        """Record, durably before this returns, that noise is about to be drawn. Of two runs of an entry, one may."""
        return self._end_of_reservation(entry_id, "start_drawing", "may not draw noise", {"event": "drawing"})

    def give_back(self, entry_id: int, reason: str) -> Entry:
        """Give back what an entry has spent, and record the reason; only if no noise was drawn for it."""
        _require_text(reason, "the reason for giving an entry back")
        event = {"event": "returned", "reason": reason.strip()}
        return self._end_of_reservation(entry_id, "give_back", "cannot be given back", event)

    def fail(self, entry_id: int, stage: str, kind: str) -> Entry:
        """Record that a run failed in the stage "count", "draw" or "write"; the amount stays spent.

        `kind` is the name of the error's class. Its text is not recorded, because it may depend on private rows.
        """
        if stage not in STAGES or not isinstance(kind, str) or not kind.isidentifier():
            raise PradeError(
                f"a failure has a stage ({', '.join(STAGES)}) and the name of the error's class, such as DataError, "
                "but not its text, which may contain private values; give these two"
            )
        with self._open("fail") as records:
            entry = self._entry(records, entry_id)
            if entry.state == "imported":
                raise PradeError(f"entry {entry.id} of {self.path} is imported, so none of this ledger's runs made it")
            return records.record_of(entry, {"event": "failed", "stage": stage, "kind": kind})

    def commit(self, entry_id: int, measurements_hash: str) -> Entry:
        """Record that an entry's measurements are written; repeating it with the same hash changes nothing."""
        with self._open("commit") as records:
            entry = self._entry(records, entry_id)
            if not entry.drawn:
                raise PradeError(
                    f"entry {entry_id} of {self.path} is {entry.state}, and no noise is recorded as drawn for it; call "
                    "start_drawing before noise is drawn"
                )
            if entry.measurements_hash is None:
                return records.record_of(entry, {"event": "committed", "measurements": measurements_hash})
            if entry.measurements_hash != measurements_hash:
                raise PradeError(
                    f"entry {entry_id} of {self.path} is {entry.state} with the measurements "
                    f"{entry.measurements_hash}, not {measurements_hash}; reserve another entry for new ones"
                )
            return entry

    def record_import(
        self, dataset: str, unit: Unit, cost: Budget, claim: Claim, after: Head | None, note: str, source: str
    ) -> Entry:
        """Record the cost of a release that another ledger paid for, or this one before it lost its end; once only."""
        with self._open("import_release") as records:
            recorded = self._find(records, dataset)
            if (known := records.payer(recorded.name, claim)) is not None:
                named = after or claim.head
                if known.origin is not None or (known.drawn and records.has(named)):
                    return known
                found = {"event": "found", "measurements": claim.measurements_hash, "head": named.to_dict()}
                return records.record_of(known, found)
            self._require_unit(recorded, unit)
            self._require_kind(recorded, cost, "cost")
            if not cost <= (remaining := records.remaining[recorded.name]):
                raise BudgetError(
                    f"{source} cost {cost}, but data set {recorded.name!r} has only {remaining} left of {recorded.cap} "
                    f"in {self.path}; raise the cap to cover what was spent, then import the release",
                    remaining,
                    cost,
                    remedy="raise_cap",
                )
            event: dict[str, Any] = {"event": "imported", "plan": claim.plan_hash, "cost": cost.to_dict(), "note": note}
            event |= {"folder": _whole(source), "measurements": claim.measurements_hash, "origin": vars(claim.origin)}
            records.record(event, recorded.name)
            return records.entries[-1]

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
        """Raise the error that `reserve` would raise now with the same arguments; spend nothing."""
        new = cap is not None and not self.path.exists()
        if new and self.path != user_ledger() and not self.path.absolute().parent.is_dir():
            raise DataError(f"the folder of the ledger {self.path} does not exist; create it first")
        records = Records() if new else self._records()
        recorded = self._payer(records, dataset, cost, unit, cap)
        self._reserve(records, recorded, plan_hash, cost, "", again, _whole(folder))

    def knows(self, dataset: str) -> bool:
        """Whether the data set is recorded; False also if there is no ledger yet, an error for another spelling."""
        return self.path.exists() and self._look_up(self._records(), dataset) is not None

    def datasets(self) -> list[Dataset]:
        """All data sets, by name."""
        return sorted(self._records().datasets.values(), key=lambda dataset: dataset.name)

    def dataset(self, name: str) -> Dataset:
        return self._find(self._records(), name)

    def entries(self, dataset: str) -> list[Entry]:
        """All entries of a data set, oldest first."""
        return list(self.statement(dataset).entries)

    def times_paid(self, dataset: str, plan_hash: str) -> int:
        """How many entries of a plan were not given back; 0 also if the data set is not in the ledger."""
        entries = self.entries(dataset) if self.knows(dataset) else []
        return sum(entry.plan_hash == plan_hash and entry.returned is None for entry in entries)

    def remaining(self, dataset: str) -> Budget:
        """Cap minus the cost of every entry that was not given back."""
        return self.statement(dataset).remaining

    def statement(self, dataset: str) -> Statement:
        """All that the ledger records about a data set at this moment."""
        records = self._records()
        recorded = self._find(records, dataset)
        entries = tuple(records.of_dataset(recorded.name))
        return Statement(recorded, entries, records.remaining[recorded.name], records.heads[-1])

    def account(self, dataset: str) -> str:
        """The account as text: the promise, what was asked, what it cost and what remains."""
        return self.statement(dataset).words(str(self.path))

    def head(self) -> Head | None:
        """The head of the chain: the ledger's identity and its last event; None if there is no ledger yet."""
        return self._records().heads[-1] if self.path.exists() else None

    def paid(self, dataset: str, claim: Claim) -> Entry | None:
        """The entry that paid for a release, or that imported it; None if there is none."""
        records = self._records()
        entry = records.payer(self._find(records, dataset).name, claim)
        return entry if entry is not None and entry.drawn else None

    def has(self, head: Head) -> bool:
        """Whether the ledger's chain has passed through this head; False for an old copy or one that was cut off."""
        return self._records().has(head)

    @contextmanager
    def _open(self, writes: str | None, *, create: bool = False) -> Iterator[Records]:
        """The records, in one transaction; `writes` names the operation that records events."""
        with self._file.transaction(writes, create=create) as chain:
            try:
                records = Records.of(chain)
            except BrokenChain as damage:
                raise self._file.damaged() from damage
            yield records

    def _records(self) -> Records:
        with self._open(None) as records:
            records.chain = None  # what is recorded after the transaction is a trial
            return records

    def _entry(self, records: Records, entry_id: int) -> Entry:
        if entry_id not in range(1, len(records.entries) + 1):
            raise PradeError(f"{self.path} has no entry {entry_id!r}; `prade ledger show` lists all entries")
        return records.entries[entry_id - 1]

    def _look_up(self, records: Records, name: str) -> Dataset | None:
        """The data set of this name; an error that states the recorded name if only the spelling differs."""
        # The exact name first: version 0.9 took names that differ in punctuation only.
        recorded = records.datasets.get(name) or records.datasets.get(dataset_name(name))
        if recorded is not None:
            return recorded
        for known in records.datasets:
            if confusable(known, name):
                raise PradeError(
                    f"{self.path} has a data set {known!r}, and {name!r} differs from it only in case, spaces, "
                    "punctuation or similar characters; use the recorded name, or for other people another one"
                )
        return None

    def _find(self, records: Records, name: str) -> Dataset:
        if (recorded := self._look_up(records, name)) is None:
            hint = closest(name, records.datasets)
            raise PradeError(f"{self.path} has no data set {name!r}{hint}", remedy="open_dataset")
        return recorded

    def _enter(self, records: Records, name: str, unit: Unit | None, cap: Budget) -> Dataset:
        """Record a new data set, or check that a recorded one has the same unit and cap."""
        _require_budget(cap, "cap")
        if not isinstance(unit, Unit):
            raise PradeError(f"to record a data set, give its Unit, got {type(unit).__name__}")
        if (recorded := self._look_up(records, name)) is None:
            return records.record({"event": "opened", "unit": unit.to_dict(), "cap": cap.to_dict()}, dataset_name(name))
        if recorded.cap != cap:
            raise PradeError(
                f"data set {name!r} has the cap {recorded.cap} in {self.path}, not {cap}; give the recorded cap",
                remedy="raise_cap",
            )
        self._require_unit(recorded, unit)
        return recorded

    def _payer(self, records: Records, dataset: str, cost: Budget, unit: Unit | None, cap: Budget | None) -> Dataset:
        """The data set that pays a cost, entered if there is a cap; an error if the unit or the kind differs."""
        _require_budget(cost, "cost")
        recorded = self._find(records, dataset) if cap is None else self._enter(records, dataset, unit, cap)
        if unit is not None:
            self._require_unit(recorded, unit)
        self._require_kind(recorded, cost, "cost")
        return recorded

    def _reserve(
        self, records: Records, recorded: Dataset, plan: str, cost: Budget, note: str, again: bool, where: str | None
    ) -> Entry:
        """Record a new entry, or that an earlier one is resumed; an error if this may not be spent."""
        if cost == cost * 0:
            raise PradeError("the cost is zero, but every measurement costs something; give its cost")
        remaining = records.remaining[recorded.name]
        earlier = [each for each in records.of_dataset(recorded.name) if each.plan_hash == plan]
        for entry in reversed(earlier):
            # the cost is compared, because what is resumed must have been paid for in full
            if entry.resumable and entry.cost == cost and where is not None and entry.folder == where:
                return records.record_of(entry, {"event": "resumed"})
        if (paid := [entry for entry in earlier if entry.returned is None]) and not again:
            entry = paid[-1]
            raise BudgetError(
                f"plan {plan} has already been paid for on data set {entry.dataset!r} in {self.path} "
                f"(entry {entry.id}, {entry.state}): {entry.whereabouts()}",
                remaining,
                cost,
                remedy=Remedy("give_back", entry.id) if entry.resumable else Remedy("again", cost),
            )
        if not cost <= remaining:
            raise BudgetError(
                f"data set {recorded.name!r} has {remaining} left of {recorded.cap} in {self.path}, but {cost} was "
                "requested; request less, or use what has already been measured",
                remaining,
                cost,
            )
        division, spent = recorded.division, recorded.cap - remaining
        if division is not None and not spent + cost <= division.open:
            left = division.left_this_year(spent)
            raise BudgetError(
                f"data set {recorded.name!r} in {self.path} is in {division.words()} and has {left} left for it, but "
                f"{cost} was requested; request less",
                left,
                cost,
                remedy="next_year",
            )
        event = {"event": "reserved", "plan": plan, "cost": cost.to_dict(), "note": str(note)}
        records.record({**event, "folder": where, "drawn": False}, recorded.name)
        return records.entries[-1]

    def _end_of_reservation(self, entry_id: int, operation: str, refusal: str, event: dict[str, Any]) -> Entry:
        """Record an event of an entry, unless noise may have been drawn for it, or it was given back."""
        with self._open(operation) as records:
            entry = self._entry(records, entry_id)
            if not entry.resumable:
                if entry.returned is not None:
                    why = f"was given back on {entry.returned.time} ({entry.returned.reason})"
                elif entry.measurements_hash is not None:
                    why = f"is {entry.state}: its measurements {entry.measurements_hash} were written"
                else:
                    why = f"is {entry.state}, and its noise was drawn, or may have been"
                raise PradeError(
                    f"entry {entry.id} of {self.path} {why}, so it {refusal}; `prade ledger show` lists all entries"
                )
            return records.record_of(entry, event)

    def _prepare_file(self, name: str, unit: Unit | None, cap: Budget) -> None:
        """Check what would be recorded, and create the folder of the default ledger: any other may be mistyped."""
        self._enter(Records(), name, unit, cap)
        if self.path == user_ledger():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(
                    f"the folder of the ledger {self.path} cannot be created ({error.strerror}); create it, or name "
                    "another ledger in PRADE_LEDGER"
                ) from None

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


def _whole(folder: str | PathLike[str] | None) -> str | None:
    return None if folder is None else str(Path(folder).absolute())


def _require_text(value: object, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise PradeError(f"{what} is {value!r}: give a text that is not empty")


def _require_budget(value: object, what: str) -> None:
    if not isinstance(value, Budget):
        raise PradeError(
            f"{what} must be a Budget, got {type(value).__name__}; use Budget.pure(...), .zcdp(...) or .approx(...)"
        )
