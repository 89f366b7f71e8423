"""What a ledger's events amount to: data sets with their caps, entries with their costs, and the remaining budget.

Reading and writing compute these values in the same way: by applying the events one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from prade.privacy.budget import Budget
from prade.privacy.dataset_names import dataset_name
from prade.privacy.ledger.chain import FIRST, BrokenChain, Chain, Event, Head
from prade.privacy.ledger.years import Division
from prade.privacy.unit import Unit

State = Literal["reserved", "committed", "imported"]


@dataclass(frozen=True)
class CapRaise:
    """An increase of a cap: the old and the new cap, when, and why."""

    was: Budget
    cap: Budget
    reason: str
    time: str


@dataclass(frozen=True)
class Dataset:
    """A data set in the ledger: its name, its unit of protection, and the cap on what may be spent on it."""

    name: str
    unit: Unit
    cap: Budget
    created: str
    raises: tuple[CapRaise, ...] = ()
    division: Division | None = None


@dataclass(frozen=True)
class Origin:
    """The ledger that paid for an imported entry: its identity, the entry's number there, and the hash of that event.

    Identity and hash are None for a ledger of version 0.1, which has neither.
    """

    ledger: str | None
    entry: int
    hash: str | None

    def __str__(self) -> str:
        return f"entry {self.entry} of " + (f"ledger {self.ledger}" if self.ledger else "a ledger of version 0.1")


@dataclass(frozen=True)
class Entry:
    """One release: the plan it followed, what it cost, and whether its measurements are known to be written.

    `state` is "reserved" (spent; the run is in progress or was interrupted), "committed" (spent; the measurements with
    the hash `measurements_hash` were written) or "imported" (paid for by another ledger, see `origin`). `head` is the
    head of the ledger's chain right after this entry, or None if version 0.1 made the entry. `folder` is the whole path
    of the release, or None if an earlier version made the entry. Times are UTC.
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
    origin: Origin | None = None
    head: Head | None = None
    folder: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the cost as exact fractions."""
        return {**asdict(self), "cost": self.cost.to_dict()}

    def to_publish(self) -> dict[str, Any]:
        """The same without the folder: a release names no path of the custodian's machine."""
        return {name: value for name, value in self.to_dict().items() if name != "folder"}

    def whereabouts(self) -> str:
        """Whether the measurements were written, and where to find them."""
        if self.measurements_hash is None:
            same = "the same folder" if self.folder is None else self.folder
            return (
                "no measurements are recorded, so its run is in progress or was interrupted (if it had saved its "
                f"measurements, measuring into {same} will find them)"
            )
        where = "" if self.folder is None else f" to {self.folder}"
        return f"its measurements {self.measurements_hash} were written{where}; using them again costs nothing"


@dataclass(frozen=True)
class Claim:
    """What a release states about the entry that paid for it; `head` is None if version 0.1 wrote the release."""

    plan_hash: str
    entry: int
    measurements_hash: str
    head: Head | None

    @property
    def origin(self) -> Origin:
        """The entry, as another ledger refers to it."""
        ledger, digest = (None, None) if self.head is None else (self.head.ledger, self.head.hash)
        return Origin(ledger, self.entry, digest)

    def paid_by(self, entry: Entry) -> bool:
        """Whether this entry paid. An entry without recorded measurements can only have paid for its own run's."""
        if entry.plan_hash != self.plan_hash or entry.measurements_hash not in (None, self.measurements_hash):
            return False
        if entry.origin is not None:
            return entry.origin == self.origin
        return (entry.id, entry.head) == (self.entry, self.head)


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

        With `where`, the path of the ledger, it is the custodian's own account, which also names the releases' folders.
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
        for entry in self.entries:
            lines += [
                f"Entry {entry.id}, {entry.created}",
                f"  asked      {entry.note or '(no note)'}",
                f"  plan       {entry.plan_hash}",
                f"  cost       {entry.cost}",
                *([f"  folder     {entry.folder}"] if where and entry.folder else []),
                f"  {_outcome(entry)}",
            ]
        return "\n".join(lines if self.entries else [*lines, "No entries: nothing has been released."])


def _outcome(entry: Entry) -> str:
    if entry.state == "committed":
        return f"committed  {entry.committed}, measurements {entry.measurements_hash}"
    if entry.state == "imported":
        return f"imported   {entry.origin}, measurements {entry.measurements_hash}"
    return "reserved   spent, but no measurements are recorded: the run is in progress or was interrupted"


@dataclass
class Records:
    """The state of a ledger after all its events; `heads` lists the head of the chain after each event."""

    datasets: dict[str, Dataset] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    remaining: dict[str, Budget] = field(default_factory=dict)  # for each data set: cap minus all of its entries
    heads: list[Head] = field(default_factory=list)
    lost: set[Head] = field(default_factory=set)  # heads that the chain had lost, known from imported releases

    @classmethod
    def of(cls, chain: Chain) -> Records:
        """Apply all events of a chain; BrokenChain if one of them cannot follow those before it."""
        records = cls(heads=chain.heads)
        for number, event in enumerate(chain.events):
            records.apply(event, chain.heads[number] if chain.heads else None)
        return records

    def apply(self, event: Event, head: Head | None) -> None:
        """Apply one event."""
        try:
            _EVENTS[event["event"]](self, event, head)
        except (ValueError, LookupError, TypeError, AttributeError) as damage:
            raise BrokenChain from damage

    @property
    def head(self) -> Head | None:
        """The head of the chain; None if there is no chain yet."""
        return self.heads[-1] if self.heads else None

    def find(self, name: str) -> Dataset | None:
        """The data set recorded under this name or its normal form; None if there is none."""
        # Look for the exact name first: version 0.1 accepted some names that are refused now.
        return self.datasets.get(name) or self.datasets.get(dataset_name(name))

    def of_dataset(self, dataset: str) -> list[Entry]:
        """The entries of a data set, oldest first."""
        return [entry for entry in self.entries if entry.dataset == dataset]

    def payer(self, dataset: str, claim: Claim) -> Entry | None:
        """The entry of a data set that paid for a release, or that imported it; None if there is none."""
        return next((entry for entry in self.of_dataset(dataset) if claim.paid_by(entry)), None)

    def has(self, head: Head) -> bool:
        """Whether the chain has passed through this head, or is known to have lost it."""
        return head in self.heads or head in self.lost

    # ------------------------------------------------------------------ events

    def _opened(self, event: Event, head: Head | None) -> None:
        name, cap = event["dataset"], Budget.from_dict(event["cap"])
        if name in self.datasets:
            raise BrokenChain
        self.datasets[name] = Dataset(name, Unit.from_dict(event["unit"]), cap, event["time"])
        self.remaining[name] = cap

    def _spent(self, event: Event, head: Head | None) -> None:
        origin = event.get("origin")
        entry = Entry(
            event["entry"],
            event["dataset"],
            event["plan"],
            Budget.from_dict(event["cost"]),
            event["note"],
            event["time"],
            "reserved" if origin is None else "imported",
            event.get("measurements"),
            origin=origin and Origin(**origin),
            head=None if "version" in event else head,
            folder=event.get("folder"),
        )
        if entry.id != len(self.entries) + 1 or not isinstance(entry.folder, str | None):
            raise BrokenChain  # entries are numbered without gaps
        self.remaining[entry.dataset] -= entry.cost  # an error if the cost exceeds the cap, or is of another kind
        self.entries.append(entry)

    def _committed(self, event: Event, head: Head | None) -> None:
        index, measurements = event["entry"] - 1, event["measurements"]
        if index < 0 or self.entries[index].state != "reserved" or not isinstance(measurements, str):
            raise BrokenChain
        self.entries[index] = replace(
            self.entries[index], state="committed", measurements_hash=measurements, committed=event["time"]
        )

    def _found(self, event: Event, head: Head | None) -> None:
        if self.entries[event["entry"] - 1].state == "reserved":
            self._committed(event, head)
        self.lost.add(Head.from_dict(event["head"]))

    def _raised(self, event: Event, head: Head | None) -> None:
        recorded, cap = self.datasets[event["dataset"]], Budget.from_dict(event["cap"])
        if not recorded.cap < cap:
            raise BrokenChain
        increase = CapRaise(recorded.cap, cap, event["reason"], event["time"])
        self.datasets[recorded.name] = replace(recorded, cap=cap, raises=(*recorded.raises, increase))
        self.remaining[recorded.name] += cap - recorded.cap

    def _divided(self, event: Event, head: Head | None) -> None:
        recorded, left = self.datasets[event["dataset"]], self.remaining[event["dataset"]]
        division = Division(recorded.cap - left, left, tuple(map(Fraction, event["shares"])))
        self.datasets[recorded.name] = replace(recorded, division=division)

    def _year(self, event: Event, head: Head | None) -> None:
        recorded = self.datasets[event["dataset"]]
        if recorded.division is None or event["year"] != recorded.division.year + 1:
            raise BrokenChain
        self.datasets[recorded.name] = replace(recorded, division=replace(recorded.division, year=event["year"]))


_EVENTS: Mapping[str, Callable[[Records, Event, Head | None], None]] = {
    FIRST: lambda records, event, head: None,
    "opened": Records._opened,
    "reserved": Records._spent,
    "imported": Records._spent,
    "committed": Records._committed,
    "found": Records._found,
    "raised": Records._raised,
    "divided": Records._divided,
    "year": Records._year,
}


def spending(
    records: Records, recorded: Dataset, plan_hash: str, cost: Budget, folder: str | PathLike[str] | None
) -> dict[str, Any]:
    """What an event says about spending: the number of the next entry, the data set, the plan, the cost."""
    number, where = len(records.entries) + 1, {} if folder is None else {"folder": str(Path(folder).absolute())}
    return {"entry": number, "dataset": recorded.name, "plan": plan_hash, "cost": cost.to_dict(), **where}
