"""What a ledger's events amount to: data sets with their caps, entries with their costs, and the remaining budget.

Reading and writing compute these values in the same way: by applying the events one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from prade.core.errors import BudgetError, PradeError
from prade.core.numbers import exact
from prade.privacy.budget import Budget
from prade.privacy.ledger.file import FIRST, BrokenChain, Chain, Event, Head, now
from prade.privacy.protection import Unit

MOST_YEARS = 1000


@dataclass(frozen=True)
class Division:
    """A budget for several years: what was left of a cap is divided, so that no year spends what later years need.

        before + left * (share of year 1 + ... + share of this year)

    is the most that may have been spent at any moment of this year: what a year leaves over stays for the next ones. A
    year begins when somebody says so (`Ledger.next_year`), not with the calendar. What is given back, also of what was
    spent before the division, may be spent from that year on; no year loses by it. The shares add up to 1.

    >>> division = Division(Budget.pure(1), Budget.pure(3), (Fraction(1, 3), Fraction(2, 3)))
    >>> str(division.open), str(division.of_year(2))
    ('epsilon = 2 (pure differential privacy)', 'epsilon = 2 (pure differential privacy)')
    """

    before: Budget
    left: Budget
    shares: tuple[Fraction, ...]
    year: int = 1

    def __post_init__(self) -> None:
        if sum(self.shares) != 1 or min(self.shares) <= 0 or not 1 <= self.year <= len(self.shares):
            raise ValueError(f"shares must be positive and add up to 1, got {self.shares}")

    @property
    def open(self) -> Budget:
        """The most that may have been spent by the end of this year."""
        return self.before + self.left * sum(self.shares[: self.year])

    def of_year(self, year: int) -> Budget:
        """What a year adds, the first being 1."""
        return self.left * self.shares[year - 1]

    def left_this_year(self, spent: Budget) -> Budget:
        """What may still be spent this year, given all that was spent so far."""
        return self.open - spent if spent <= self.open else spent * 0

    def refuse(self, spent: Budget, cost: Budget, what: str) -> None:
        """Refuse a cost that takes from the years to come; `what` names the data set and its ledger."""
        if not spent + cost <= self.open:
            left = self.left_this_year(spent)
            raise BudgetError(
                f"{what} is in {self.words()} and has {left} left for it, but {cost} was requested; request less",
                left,
                cost,
                remedy="next_year",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with exact fractions."""
        each = [self.of_year(year).to_dict() for year in range(1, len(self.shares) + 1)]
        return {"year": self.year, "years": each}

    def words(self) -> str:
        """The division in one line."""
        each = ", ".join(str(self.of_year(year)).partition(" (")[0] for year in range(1, len(self.shares) + 1))
        return f"year {self.year} of {len(self.shares)} ({each})"


def shares_of(years: int, parts: Sequence[Any] | None = None) -> tuple[Fraction, ...]:
    """The share of each year: equal ones, or in proportion to the `parts`, of which there is one for each year.

    >>> shares_of(2), shares_of(2, ["2", 1])
    ((Fraction(1, 2), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 3)))
    """
    if isinstance(years, bool) or not isinstance(years, int) or not 1 <= years <= MOST_YEARS:
        raise PradeError(f"years is {years!r}; give a whole number from 1 to {MOST_YEARS}")
    numbers = [Fraction(1)] * years if parts is None else [exact(part, "a share") for part in parts]
    if len(numbers) != years or min(numbers) <= 0:
        raise PradeError(
            f"shares are {', '.join(map(str, parts or ()))} for {years} years; give one positive number for each year"
        )
    return tuple(number / sum(numbers) for number in numbers)


# ---------------------------------------------------------------------- records


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

    Where 0.9 imported a release of version 0.1, identity and hash are None.
    """

    ledger: str | None
    entry: int
    hash: str | None

    def __str__(self) -> str:
        return f"entry {self.entry} of " + (f"ledger {self.ledger}" if self.ledger else "a ledger of version 0.1")


@dataclass(frozen=True)
class Failure:
    """A run that failed: its stage, the class of the error (never its text, which could quote rows), and when."""

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
    in every state but the last. `drawn` says whether noise may have been drawn. `failures` and `resumed`, the times
    when a run resumed the entry, stay listed whatever happens later. `head` is the head of the ledger's chain right
    after this entry (None in a file of version 0.1 that 0.9 has converted). `folder` is the whole path of the release,
    if the run named it. Times are UTC.
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
    """What a release states about the entry that paid for it, and the ledger's head right after that entry."""

    plan_hash: str
    entry: int
    measurements_hash: str
    head: Head

    @property
    def origin(self) -> Origin:
        """The entry, as another ledger refers to it."""
        return Origin(self.head.ledger, self.entry, self.head.hash)

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
    """The state of a ledger after all its events; `heads` lists the head of the chain after each event.

    With a `chain`, in a transaction, `record` writes to it; without, what it records is only a trial.
    """

    datasets: dict[str, Dataset] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    remaining: dict[str, Budget] = field(default_factory=dict)  # of each data set: cap minus entries not given back
    heads: list[Head] = field(default_factory=list)
    lost: set[Head] = field(default_factory=set)  # heads that the chain had lost, known from imported releases
    chain: Chain | None = None

    @classmethod
    def of(cls, chain: Chain) -> Records:
        """Apply all events of a chain; BrokenChain if one of them cannot follow those before it."""
        records = cls(heads=chain.heads, chain=chain)
        for event, head in zip(chain.events, chain.heads, strict=True):
            records.apply(event, head)
        return records

    def record(self, event: Event, dataset: Dataset | None = None) -> None:
        """Record an event, about a data set or an entry that it names."""
        event = {"time": now(), **({} if dataset is None else {"dataset": dataset.name}), **event}
        if self.chain is not None:
            self.chain.add(event)
        self.apply(event, self.heads[-1] if self.heads else None)

    def apply(self, event: Event, head: Head | None) -> None:
        """Apply one event."""
        try:
            _EVENTS[event["event"]](self, event, head)
        except (ValueError, LookupError, TypeError, AttributeError) as damage:
            raise BrokenChain from damage

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


def spending(records: Records, plan_hash: str, cost: Budget, folder: str | None) -> dict[str, Any]:
    """What an event says about spending: the number of the next entry, the plan, the cost, and where."""
    where = {} if folder is None else {"folder": folder}
    return {"entry": len(records.entries) + 1, "plan": plan_hash, "cost": cost.to_dict(), **where}


def whole_path(folder: str | PathLike[str] | None) -> str | None:
    """The path of a release as an event names it; None stays None."""
    return None if folder is None else str(Path(folder).absolute())


# ---------------------------------------------------------------------- statements


@dataclass(frozen=True)
class Statement:
    """Everything a ledger records about one data set at one moment; `head` is the head of its chain then."""

    dataset: Dataset
    entries: tuple[Entry, ...]
    remaining: Budget
    head: Head

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
            "head": self.head.to_dict(),
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
            f"  head       {self.head}",
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
