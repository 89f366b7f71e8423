"""What a ledger's events add up to: data sets with their caps, entries with their costs, and what remains.

Reading and writing come to their values in one way: by going through the events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from prade.privacy.budget import Budget, Unit
from prade.privacy.ledger.chain import FIRST, Broken, Chain, Event, Head

State = Literal["reserved", "committed", "imported"]


@dataclass(frozen=True)
class Raise:
    """A cap that was raised: from which to which, when, and why."""

    was: Budget
    cap: Budget
    reason: str
    time: str


@dataclass(frozen=True)
class Dataset:
    """A data set in the ledger: its name, what is protected, and the most that may ever be spent on it, as of now."""

    name: str
    unit: Unit
    cap: Budget
    created: str
    raises: tuple[Raise, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where an imported entry was paid: the other ledger's identity, its entry there, and the hash of that event.

    A ledger of version 0.1 has neither identity nor hashes: None.
    """

    ledger: str | None
    entry: int
    hash: str | None

    def __str__(self) -> str:
        return f"entry {self.entry} of " + (f"ledger {self.ledger}" if self.ledger else "a ledger of version 0.1")


@dataclass(frozen=True)
class Entry:
    """One release: the plan it followed, what it cost, and whether its measurements are known to be written.

    `state` is "reserved" (spent; the run is under way or broke off), "committed" (spent; the measurements with the
    hash `measurements_hash` were written) or "imported" (spent under another ledger, its `origin`). `head` is the end
    of the ledger's chain with this entry just made, None for one that version 0.1 made. Times are UTC.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the cost as exact fractions."""
        return {**asdict(self), "cost": self.cost.to_dict()}


@dataclass(frozen=True)
class Claim:
    """What noisy answers say of the entry that paid for them; `head` is None where a version 0.1 wrote them."""

    plan_hash: str
    entry: int
    measurements_hash: str
    head: Head | None

    @property
    def origin(self) -> Origin:
        """The entry, as other ledgers name it."""
        ledger, digest = (None, None) if self.head is None else (self.head.ledger, self.head.hash)
        return Origin(ledger, self.entry, digest)

    def paid_by(self, entry: Entry) -> bool:
        """Whether it was this entry. One without measurements yet pays for those of its own run, and for no others."""
        if entry.plan_hash != self.plan_hash or entry.measurements_hash not in (None, self.measurements_hash):
            return False
        if entry.origin is not None:
            return entry.origin == self.origin
        return (entry.id, entry.head) == (self.entry, self.head)


@dataclass(frozen=True)
class Statement:
    """All that a ledger says of one data set, at one moment; `head` is the end of its chain then."""

    dataset: Dataset
    entries: tuple[Entry, ...]
    remaining: Budget
    head: Head | None

    @property
    def spent(self) -> Budget:
        """The cap without what remains."""
        return self.dataset.cap - self.remaining

    def to_dict(self) -> dict[str, Any]:
        """Plain values: budgets as exact fractions."""
        home = self.dataset
        return {
            "dataset": home.name,
            "unit": home.unit.to_dict(),
            "promise": home.unit.promise(),
            "cap": home.cap.to_dict(),
            "raises": [{**vars(each), "was": each.was.to_dict(), "cap": each.cap.to_dict()} for each in home.raises],
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "head": self.head and self.head.to_dict(),
        }

    def words(self, where: str | None = None) -> str:
        """The account in words: under which promise, what was asked, what it cost, what remains."""
        home = self.dataset
        lines = [
            f"Data set {home.name}",
            *([f"  ledger     {where}"] if where else []),
            f"  head       {self.head or 'none: written by version 0.1, chained from the next entry on'}",
            f"  promise    {home.unit.promise()}",
            f"  cap        {home.cap}",
            *(f"  raised     {each.time}, from {each.was} to {each.cap}: {each.reason}" for each in home.raises),
            f"  spent      {self.spent}",
            f"  remaining  {self.remaining}",
        ]
        for entry in self.entries:
            lines += [
                f"Entry {entry.id}, {entry.created}",
                f"  asked      {entry.note or '(no note)'}",
                f"  plan       {entry.plan_hash}",
                f"  cost       {entry.cost}",
                f"  {_outcome(entry)}",
            ]
        return "\n".join(lines if self.entries else [*lines, "No entries: nothing has been asked."])


def _outcome(entry: Entry) -> str:
    if entry.state == "committed":
        return f"committed  {entry.committed}, measurements {entry.measurements_hash}"
    if entry.state == "imported":
        return f"imported   {entry.origin}, measurements {entry.measurements_hash}"
    return "reserved   spent, but no measurements are recorded: under way, or broken off"


@dataclass
class Books:
    """The state of a ledger after all its events; `heads` are the chain's ends as of each of them."""

    datasets: dict[str, Dataset] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    left: dict[str, Budget] = field(default_factory=dict)  # of each data set: cap minus all of its entries
    heads: list[Head] = field(default_factory=list)
    lost: set[Head] = field(default_factory=set)  # heads of releases that were put on record again

    @classmethod
    def of(cls, chain: Chain) -> Books:
        """What the events of a chain add up to; Broken where they do not."""
        books = cls(heads=chain.heads)
        for number, event in enumerate(chain.events):
            books.go_on(event, chain.heads[number] if chain.heads else None)
        return books

    def go_on(self, event: Event, head: Head | None) -> None:
        """Take in one more event."""
        try:
            _EVENTS[event["event"]](self, event, head)
        except (ValueError, LookupError, TypeError, AttributeError) as damage:
            raise Broken from damage

    @property
    def head(self) -> Head | None:
        """The end of the chain; None where there is no chain yet."""
        return self.heads[-1] if self.heads else None

    def of_dataset(self, dataset: str) -> list[Entry]:
        """The entries of a data set, oldest first."""
        return [entry for entry in self.entries if entry.dataset == dataset]

    def has(self, head: Head) -> bool:
        """Whether the chain goes through this head, or it is on record as lost."""
        return head in self.heads or head in self.lost

    # ------------------------------------------------------------------ events

    def _opened(self, event: Event, head: Head | None) -> None:
        name, cap = event["dataset"], Budget.from_dict(event["cap"])
        if name in self.datasets:
            raise Broken
        self.datasets[name] = Dataset(name, Unit.from_dict(event["unit"]), cap, event["time"])
        self.left[name] = cap

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
        )
        if entry.id != len(self.entries) + 1:
            raise Broken  # the numbers have no gaps
        self.left[entry.dataset] -= entry.cost  # an error where it is beyond the cap, or of another kind
        self.entries.append(entry)

    def _committed(self, event: Event, head: Head | None) -> None:
        place, made = event["entry"] - 1, event["measurements"]
        if place < 0 or self.entries[place].state != "reserved" or not isinstance(made, str):
            raise Broken
        self.entries[place] = replace(
            self.entries[place], state="committed", measurements_hash=made, committed=event["time"]
        )

    def _found(self, event: Event, head: Head | None) -> None:
        if self.entries[event["entry"] - 1].state == "reserved":
            self._committed(event, head)
        self.lost.add(Head.from_dict(event["head"]))

    def _raised(self, event: Event, head: Head | None) -> None:
        home, cap = self.datasets[event["dataset"]], Budget.from_dict(event["cap"])
        if not home.cap < cap:
            raise Broken
        step = Raise(home.cap, cap, event["reason"], event["time"])
        self.datasets[home.name] = replace(home, cap=cap, raises=(*home.raises, step))
        self.left[home.name] += cap - home.cap


_EVENTS: Mapping[str, Callable[[Books, Event, Head | None], None]] = {
    FIRST: lambda books, event, head: None,
    "opened": Books._opened,
    "reserved": Books._spent,
    "imported": Books._spent,
    "committed": Books._committed,
    "found": Books._found,
    "raised": Books._raised,
}
