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

State = Literal["reserved", "failed", "drawing", "committed", "imported", "returned"]


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
class Failure:
    """A run that failed: the stage it was in, the kind of the error (the name of its class, never its text), and when.

    The text of an error could contain what the custodian's rows contain.
    """

    stage: str
    kind: str
    time: str


@dataclass(frozen=True)
class Return:
    """That an entry was given back: why, and when."""

    reason: str
    time: str


@dataclass(frozen=True)
class Entry:
    """One release: the plan it followed, what it cost, and how far its run came.

    `state` is "reserved" (the run is in progress or was interrupted), "failed" (a run stated that it failed), "drawing"
    (noise is being drawn, or was), "committed" (the measurements with the hash `measurements_hash` were written),
    "imported" (paid for by another ledger, see `origin`) or "returned" (given back, see `returned`). An entry is spent
    in every state but the last. `drawn` says whether noise may have been drawn; earlier versions drew it right after
    reserving. `failures` and `resumed`, the times when a run resumed the entry, stay listed whatever happens later.
    `head` is the head of the ledger's chain right after this entry, or None if version 0.1 made the entry. `folder` is
    the whole path of the release, or None if the run named none or an earlier version made the entry. Times are UTC.
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
    drawn: bool = False
    failures: tuple[Failure, ...] = ()
    resumed: tuple[str, ...] = ()
    returned: Return | None = None

    @property
    def resumable(self) -> bool:
        """Whether a run may still resume the entry, or the custodian give it back: no noise was drawn for it."""
        return not self.drawn and self.returned is None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the cost as exact fractions."""
        return {**asdict(self), "cost": self.cost.to_dict()}

    def to_publish(self) -> dict[str, Any]:
        """The same for readers of a release, who learn no path of the custodian's machine and nothing about failures.

        No noise protects what a failure tells about the private rows.
        """
        own = ("folder", "failures", "resumed", "returned")
        return {name: value for name, value in self.to_dict().items() if name not in own}

    def whereabouts(self) -> str:
        """Whether the measurements were written, and where to find them."""
        if self.resumable:
            into = "" if self.folder is None else f"; measuring into {self.folder} resumes it without paying again"
            why = "its run failed" if self.state == "failed" else "its run is in progress or was interrupted"
            return f"no noise was drawn for it, because {why}{into}"
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

    def names(self, entry: Entry) -> bool:
        """Whether it is this entry. One without recorded measurements can only have paid for its own run's."""
        if entry.returned is not None:
            return False  # its amount may be spent on something else by now
        if entry.plan_hash != self.plan_hash or entry.measurements_hash not in (None, self.measurements_hash):
            return False
        if entry.origin is not None:
            return entry.origin == self.origin
        return (entry.id, entry.head) == (self.entry, self.head)


@dataclass
class Records:
    """The state of a ledger after all its events; `heads` lists the head of the chain after each event."""

    datasets: dict[str, Dataset] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    remaining: dict[str, Budget] = field(default_factory=dict)  # of each data set: cap minus entries not given back
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
        """The entry of a data set that a release names, or that imported it; None if there is none.

        If no noise was drawn for it, it has not paid: either the release is forged, or the ledger is an old copy.
        """
        return next((entry for entry in self.of_dataset(dataset) if claim.names(entry)), None)

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
            drawn=origin is not None or event.get("drawn", True),
        )
        if (
            entry.id != len(self.entries) + 1
            or not isinstance(entry.folder, str | None)
            or type(entry.drawn) is not bool
        ):
            raise BrokenChain  # entries are numbered without gaps
        self.remaining[entry.dataset] -= entry.cost  # an error if the cost exceeds the cap, or is of another kind
        self.entries.append(entry)

    def _resumed(self, event: Event, head: Head | None) -> None:
        entry = self._undrawn(event)
        self._change(entry, state="reserved", resumed=(*entry.resumed, event["time"]))

    def _drawing(self, event: Event, head: Head | None) -> None:
        self._change(self._undrawn(event), state="drawing", drawn=True)

    def _failed(self, event: Event, head: Head | None) -> None:
        entry, failure = self._entry(event), Failure(event["stage"], event["kind"], event["time"])
        if entry.state == "imported" or not isinstance(failure.stage, str) or not isinstance(failure.kind, str):
            raise BrokenChain
        # of two runs of one entry, one may fail after the other has committed, or after the entry was given back
        state = entry.state if entry.state in ("committed", "returned") else "failed"
        self._change(entry, state=state, failures=(*entry.failures, failure))

    def _returned(self, event: Event, head: Head | None) -> None:
        entry = self._undrawn(event)
        if not isinstance(event["reason"], str):
            raise BrokenChain
        self.remaining[entry.dataset] += entry.cost
        self._change(entry, state="returned", returned=Return(event["reason"], event["time"]))

    def _committed(self, event: Event, head: Head | None) -> None:
        entry, measurements = self._entry(event), event["measurements"]
        if not entry.drawn or entry.measurements_hash is not None or not isinstance(measurements, str):
            raise BrokenChain
        self._change(entry, state="committed", measurements_hash=measurements, committed=event["time"])

    def _found(self, event: Event, head: Head | None) -> None:
        entry = self._entry(event)
        if entry.returned is not None:
            raise BrokenChain
        if entry.measurements_hash is None:
            self._change(entry, drawn=True)
            self._committed(event, head)
        self.lost.add(Head.from_dict(event["head"]))

    def _entry(self, event: Event) -> Entry:
        number: int = event["entry"]
        if number < 1:
            raise BrokenChain
        return self.entries[number - 1]

    def _undrawn(self, event: Event) -> Entry:
        if not (entry := self._entry(event)).resumable:
            raise BrokenChain
        return entry

    def _change(self, entry: Entry, **values: Any) -> None:
        self.entries[entry.id - 1] = replace(entry, **values)

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
    "resumed": Records._resumed,
    "drawing": Records._drawing,
    "failed": Records._failed,
    "returned": Records._returned,
    "committed": Records._committed,
    "found": Records._found,
    "raised": Records._raised,
    "divided": Records._divided,
    "year": Records._year,
}


def spending(records: Records, recorded: Dataset, plan_hash: str, cost: Budget, folder: str | None) -> dict[str, Any]:
    """What an event says about spending: the number of the next entry, the data set, the plan, the cost."""
    number, where = len(records.entries) + 1, {} if folder is None else {"folder": folder}
    return {"entry": number, "dataset": recorded.name, "plan": plan_hash, "cost": cost.to_dict(), **where}


def whole_path(folder: str | PathLike[str] | None) -> str | None:
    """The path of a release as an event names it; None stays None."""
    return None if folder is None else str(Path(folder).absolute())
