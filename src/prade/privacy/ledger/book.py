"""The inner part of a ledger: reads the records from its file, checks what would be recorded, and records it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError, closest
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import confusable
from prade.privacy.ledger.chain import BrokenChain, Chain
from prade.privacy.ledger.file import LedgerFile, now
from prade.privacy.ledger.location import user_ledger
from prade.privacy.ledger.records import Dataset, Entry, Records
from prade.privacy.ledger.required import (
    paid_already,
    require_affordable,
    require_budget,
    require_dataset,
    require_kind,
    require_text,
    require_unit,
)
from prade.privacy.unit import Unit


class Book:
    """The base of `prade.privacy.ledger.Ledger`, which has the operations."""

    def __init__(self, path: str | PathLike[str], *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._file = LedgerFile(self.path, patience)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    # ------------------------------------------------------------------ reading

    def _records(self) -> Records:
        with self._file.transaction(None) as chain:
            return self._records_of(chain)

    def _records_of(self, chain: Chain) -> Records:
        try:
            return Records.of(chain)
        except BrokenChain as damage:
            raise self._file.damaged() from damage

    def _entry(self, records: Records, entry_id: int) -> Entry:
        entry = next((entry for entry in records.entries if entry.id == entry_id), None)
        if entry is None:
            raise PradeError(f"{self.path} has no entry {entry_id!r}; `prade ledger show` lists all entries")
        return entry

    def _look_up(self, records: Records, name: str) -> Dataset | None:
        """The data set of this name; an error that states the recorded name if only the spelling differs."""
        if (recorded := records.find(name)) is not None:
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
            raise PradeError(
                f"{self.path} has no data set {name!r}{closest(str(name), list(records.datasets))}",
                remedy="open_dataset",
            )
        return recorded

    # ------------------------------------------------------------------ checks

    def _enter(self, chain: Chain | None, records: Records, name: str, unit: Unit | None, cap: Budget) -> Dataset:
        """Record a new data set, or check that a recorded one has the same unit and cap."""
        name, unit = require_dataset(name, unit, cap)
        recorded = self._look_up(records, name)
        if recorded is None:
            event = {"event": "opened", "dataset": name, "unit": unit.to_dict(), "cap": cap.to_dict()}
            self._record(chain, records, event)
            return records.datasets[name]
        if recorded.cap != cap:
            raise PradeError(
                f"data set {name!r} has the cap {recorded.cap} in {self.path}, not {cap}; give the recorded cap",
                remedy="raise_cap",
            )
        require_unit(recorded, unit, self.path)
        return recorded

    def _admit(
        self,
        chain: Chain | None,
        records: Records,
        dataset: str,
        plan_hash: str,
        cost: Budget,
        folder: str | None,
        unit: Unit | None,
        cap: Budget | None,
        again: bool,
    ) -> tuple[Dataset, Entry | None]:
        """Refuse what may not be spent: too much, twice for one plan, in another kind of budget, for another unit.

        The data set, and the entry that is resumed, if there is one.
        """
        require_text(plan_hash, "a plan's hash")
        require_budget(cost, "cost")
        recorded = self._find(records, dataset) if cap is None else self._enter(chain, records, dataset, unit, cap)
        if unit is not None:
            require_unit(recorded, unit, self.path)
        require_kind(recorded, cost, "cost", self.path)
        if cost == cost * 0:
            raise PradeError("the cost is zero, but every measurement costs something; give its cost")
        remaining = records.remaining[recorded.name]
        earlier = [each for each in records.of_dataset(recorded.name) if each.plan_hash == plan_hash]
        for entry in reversed(earlier):
            # the cost is compared, because what is resumed must have been paid for in full
            if entry.resumable and entry.cost == cost and folder is not None and entry.folder == folder:
                return recorded, entry
        if (paid := [entry for entry in earlier if entry.returned is None]) and not again:
            raise paid_already(paid[-1], cost, remaining, self.path)
        require_affordable(recorded, remaining, cost, self.path)
        return recorded, None

    # ------------------------------------------------------------------ recording

    def _advance(self, operation: str, entry_id: int, event: dict[str, Any], refuse: Callable[[Entry], None]) -> Entry:
        """Record what happened to an entry, unless that is refused."""
        with self._file.transaction(operation) as chain:
            records = self._records_of(chain)
            refuse(entry := self._entry(records, entry_id))
            self._record(chain, records, {**event, "entry": entry.id})
            return records.entries[entry.id - 1]

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
