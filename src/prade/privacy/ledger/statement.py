"""The account of a data set: what a ledger records about it at one moment, as plain values and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prade.privacy.budget import Budget
from prade.privacy.ledger.chain import Head
from prade.privacy.ledger.records import Dataset, Entry


@dataclass(frozen=True)
class Statement:
    """Everything a ledger records about one data set at one moment; `head` is the head of its chain then."""

    dataset: Dataset
    entries: tuple[Entry, ...]
    remaining: Budget
    head: Head | None

    @property
    def spent(self) -> Budget:
        """The cap minus the remaining budget."""
        return self.dataset.cap - self.remaining

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with budgets as exact fractions."""
        recorded = self.dataset
        return {
            "dataset": recorded.name,
            "unit": recorded.unit.to_dict(),
            "promise": recorded.unit.promise(),
            "cap": recorded.cap.to_dict(),
            "raises": [
                {**vars(each), "was": each.was.to_dict(), "cap": each.cap.to_dict()} for each in recorded.raises
            ],
            **({} if recorded.division is None else {"division": recorded.division.to_dict()}),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "head": self.head and self.head.to_dict(),
        }

    def words(self, where: str | None = None) -> str:
        """The account as text: the promise, what was asked, what it cost and what remains.

        With `where`, the path of the ledger, it is the custodian's own account, which also names the releases' folders
        and lists failures and what was given back. Without, it is for everybody, and no noise protects what these tell.
        """
        recorded = self.dataset
        lines = [
            f"Data set {recorded.name}",
            *([f"  ledger     {where}"] if where else []),
            f"  head       {self.head or 'none: written by version 0.1; the chain starts with the next entry'}",
            f"  promise    {recorded.unit.promise()}",
            f"  cap        {recorded.cap}",
            *(f"  raised     {each.time}, from {each.was} to {each.cap}: {each.reason}" for each in recorded.raises),
            *([] if recorded.division is None else [f"  years      {recorded.division.words()}"]),
            f"  spent      {self.spent}",
            f"  remaining  {self.remaining}",
        ]
        entries = [entry for entry in self.entries if where or entry.returned is None]
        for entry in entries:
            lines += [
                f"Entry {entry.id}, {entry.created}",
                f"  asked      {entry.note or '(no note)'}",
                f"  plan       {entry.plan_hash}",
                f"  cost       {entry.cost}",
                *(_of_the_run(entry) if where else []),
                f"  {_outcome(entry, bool(where))}",
            ]
        return "\n".join(lines if entries else [*lines, "No entries: nothing has been released."])


def _of_the_run(entry: Entry) -> list[str]:
    """What only the custodian learns."""
    return [
        *([f"  folder     {entry.folder}"] if entry.folder else []),
        *(f"  failure    {each.time}, stage {each.stage}, {each.kind}" for each in entry.failures),
        *(f"  resumed    {time}" for time in entry.resumed),
    ]


def _outcome(entry: Entry, own: bool) -> str:
    if entry.state == "committed":
        return f"committed  {entry.committed}, measurements {entry.measurements_hash}"
    if entry.state == "imported":
        return f"imported   {entry.origin}, measurements {entry.measurements_hash}"
    if entry.returned is not None:
        return f"returned   {entry.returned.time}, nothing is spent: {entry.returned.reason}"
    if own and entry.resumable:
        why = "the last run failed" if entry.state == "failed" else "the run is in progress or was interrupted"
        return f"{entry.state:<11}spent, but no noise was drawn: {why}; it can be resumed or given back"
    state = entry.state if own else "reserved"
    return f"{state:<11}spent, but no measurements are recorded: the run is in progress or was interrupted"
