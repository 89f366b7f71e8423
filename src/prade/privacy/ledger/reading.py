"""What a ledger says: its data sets, their entries, what remains, and which entry paid for a release."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from prade.core.errors import PradeError
from prade.core.words import closest
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import confusable
from prade.privacy.ledger.chain import BrokenChain, Chain, Head
from prade.privacy.ledger.file import LedgerFile
from prade.privacy.ledger.records import Claim, Dataset, Entry, Records
from prade.privacy.ledger.statement import Statement


class LedgerReader:
    """The part of `prade.privacy.ledger.Ledger` that records nothing."""

    def __init__(self, path: str | PathLike[str], *, patience: float = 30.0) -> None:
        self.path = Path(path)
        self._file = LedgerFile(self.path, patience)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

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
        return records.payer(self._find(records, dataset).name, claim)

    def has(self, head: Head) -> bool:
        """Whether the ledger's chain has passed through this head; False for an old copy or one that was cut off."""
        return self._records().has(head)

    # ------------------------------------------------------------------ records

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
            raise PradeError(f"{self.path} has no entry {entry_id!r}; give the id that reserve returned")
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
