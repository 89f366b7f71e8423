"""What a ledger's events amount to: data sets with their caps, entries with their costs, and the remaining budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from prade.core.errors import PradeError
from prade.core.numbers import exact, whole
from prade.privacy.budget import Budget
from prade.privacy.ledger.file import FIRST, BrokenChain, Chain, Event, Head, now
from prade.privacy.protection import Unit

MOST_YEARS = 1000


@dataclass(frozen=True)
class Division:
    """A budget for several years: what was left of a cap is divided by shares that add up to 1.

        before + left * (share of year 1 + ... + share of this year)

    is the most that may have been spent at any moment of this year: what a year leaves over stays for the next ones.
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

    @property
    def of_years(self) -> list[Budget]:
        return [self.left * share for share in self.shares]

    def left_this_year(self, spent: Budget) -> Budget:
        """What may still be spent this year, given all that was spent so far."""
        return self.open - spent if spent <= self.open else spent * 0

    def to_dict(self) -> dict[str, Any]:
        return {"year": self.year, "years": [budget.to_dict() for budget in self.of_years]}

    def words(self) -> str:
        each = ", ".join(str(budget).partition(" (")[0] for budget in self.of_years)
        return f"year {self.year} of {len(self.shares)} ({each})"


def shares_of(years: int, parts: Sequence[Any] | None = None) -> tuple[Fraction, ...]:
    """The share of each year: equal ones, or in proportion to the `parts`, of which there is one for each year."""
    if not whole(years, 1) or years > MOST_YEARS:
        raise PradeError(f"years is {years!r}; give a whole number from 1 to {MOST_YEARS}")
    numbers = [exact(part, "a share") for part in ([1] * years if parts is None else parts)]
    if len(numbers) != years or min(numbers) <= 0:
        raise PradeError(f"shares are {', '.join(map(str, numbers))} for {years} years; give a positive one for each")
    return tuple(number / sum(numbers) for number in numbers)


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
    """The ledger that paid for an imported entry, the entry's number there, and the hash of its event."""

    ledger: str
    entry: int
    hash: str

    def __str__(self) -> str:
        return f"entry {self.entry} of ledger {self.ledger}"


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

    `state` is "reserved" (the run is in progress or was interrupted), "failed", "drawing" (noise is being drawn, or
    was), "committed" (the measurements with the hash `measurements_hash` were written), "imported" (paid for by another
    ledger, see `origin`) or "returned" (given back: nothing is spent). `drawn`: noise may have been drawn. `head` is
    that of the chain right after this entry. `folder` is the release's, if the run named it. Times are UTC.
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
        """The same for readers of a release, without paths and failures: no noise protects what these tell."""
        own = ("folder", "failures", "resumed", "returned")
        return {name: value for name, value in self.to_dict().items() if name not in own}

    def whereabouts(self) -> str:
        """Whether the measurements were written, and where to find them."""
        ended = "failed" if self.state == "failed" else "is in progress or was interrupted"
        if self.resumable:
            into = "" if self.folder is None else f"; measuring into {self.folder} resumes it without paying again"
            return f"no noise was drawn for it, because its run {ended}{into}"
        if self.measurements_hash is None:
            return (
                f"no measurements are recorded, so its run {ended} (if it saved its measurements, measuring into "
                f"{self.folder or 'the same folder'} will find them)"
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
        return Origin(self.head.ledger, self.entry, self.head.hash)

    def names(self, entry: Entry) -> bool:
        """Whether it is this entry. One without recorded measurements can only have paid for its own run's."""
        if entry.returned is not None:
            return False
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

    def record(self, event: Event, dataset: str) -> Dataset:
        """Record an event of a data set, which is returned; a new entry gets its number."""
        number = {"entry": len(self.entries) + 1} if event["event"] in ("reserved", "imported") else {}
        self._write({"dataset": dataset, **number, **event})
        return self.datasets[dataset]

    def record_of(self, entry: Entry, event: Event) -> Entry:
        """Record an event of an entry, which is returned as it is then."""
        self._write({**event, "entry": entry.id})
        return self.entries[entry.id - 1]

    def _write(self, event: Event) -> None:
        event = {"time": now(), **{name: value for name, value in event.items() if value is not None}}
        if self.chain is not None:
            self.chain.add(event)
        self.apply(event, self.heads[-1] if self.heads else None)

    def apply(self, event: Event, head: Head | None) -> None:
        """Apply one event; BrokenChain if it cannot follow those before it."""
        try:
            if event["event"] in ("raised", "divided", "year"):
                self._change_dataset(event, self.datasets[event["dataset"]])
            elif event["event"] in ("opened", "reserved", "imported"):
                self._add(event, head)
            elif event["event"] != FIRST:
                _require(event["entry"] >= 1)
                self._change_entry(event, self.entries[event["entry"] - 1])
        except (ValueError, LookupError, TypeError, AttributeError) as damage:
            raise BrokenChain from damage

    def payer(self, dataset: str, claim: Claim) -> Entry | None:
        """The entry of a data set that a release names, or that imported it. One without noise has not paid."""
        return next((entry for entry in self.of_dataset(dataset) if claim.names(entry)), None)

    def of_dataset(self, dataset: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.dataset == dataset]

    def has(self, head: Head) -> bool:
        """Whether the chain has passed through this head, or is known to have lost it."""
        return head in self.heads or head in self.lost

    def _add(self, event: Event, head: Head | None) -> None:
        name, time = event["dataset"], event["time"]
        if event["event"] == "opened":
            _require(name not in self.datasets)
            self.remaining[name] = cap = Budget.from_dict(event["cap"])
            self.datasets[name] = Dataset(name, Unit.from_dict(event["unit"]), cap, time)
            return
        origin = event.get("origin")
        entry = Entry(
            *(event["entry"], name, event["plan"], Budget.from_dict(event["cost"]), event["note"], time),
            "reserved" if origin is None else "imported",
            event.get("measurements"),
            origin=origin and Origin(**origin),
            head=head,
            folder=event.get("folder"),
            drawn=origin is not None or event.get("drawn", True),
        )
        _require(entry.id == len(self.entries) + 1)  # entries are numbered without gaps
        self.remaining[entry.dataset] -= entry.cost  # an error if the cost exceeds the cap, or is of another kind
        self.entries.append(entry)

    def _change_entry(self, event: Event, entry: Entry) -> None:
        kind, time = event["event"], event["time"]
        if kind in ("resumed", "drawing", "returned"):
            _require(entry.resumable)
        if kind == "resumed":
            entry = replace(entry, state="reserved", resumed=(*entry.resumed, time))
        elif kind == "drawing":
            entry = replace(entry, state="drawing", drawn=True)
        elif kind == "returned":
            entry = replace(entry, state="returned", returned=Return(event["reason"], time))
            self.remaining[entry.dataset] += entry.cost
        elif kind == "failed":
            failure = Failure(event["stage"], event["kind"], time)
            _require(entry.state != "imported")
            # of two runs of one entry, one may fail after the other has committed, or after the entry was given back
            state = entry.state if entry.state in ("committed", "returned") else "failed"
            entry = replace(entry, state=state, failures=(*entry.failures, failure))
        elif kind == "committed" or (kind == "found" and entry.measurements_hash is None):
            _require(entry.drawn or kind == "found", entry.measurements_hash is None, entry.returned is None)
            changes = {"drawn": True, "measurements_hash": event["measurements"], "committed": time}
            entry = replace(entry, state="committed", **changes)
        else:
            _require(kind == "found")
        if kind == "found":
            self.lost.add(Head.from_dict(event["head"]))
        self.entries[entry.id - 1] = entry

    def _change_dataset(self, event: Event, dataset: Dataset) -> None:
        if event["event"] == "raised":
            cap = Budget.from_dict(event["cap"])
            _require(dataset.cap < cap)
            self.remaining[dataset.name] += cap - dataset.cap
            increase = CapRaise(dataset.cap, cap, event["reason"], event["time"])
            dataset = replace(dataset, cap=cap, raises=(*dataset.raises, increase))
        elif event["event"] == "divided":
            left = self.remaining[dataset.name]
            shares = tuple(map(Fraction, event["shares"]))
            dataset = replace(dataset, division=Division(dataset.cap - left, left, shares))
        else:
            if (division := dataset.division) is None or event["year"] != division.year + 1:
                raise BrokenChain
            dataset = replace(dataset, division=replace(division, year=event["year"]))
        self.datasets[dataset.name] = dataset


def _require(*facts: bool) -> None:
    if not all(facts):
        raise BrokenChain


@dataclass(frozen=True)
class Statement:
    """Everything a ledger records about one data set at one moment; `head` is the head of its chain then."""

    dataset: Dataset
    entries: tuple[Entry, ...]
    remaining: Budget
    head: Head

    @property
    def spent(self) -> Budget:
        return self.dataset.cap - self.remaining

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with budgets as exact fractions."""
        recorded = self.dataset
        raises = [{**vars(each), "was": each.was.to_dict(), "cap": each.cap.to_dict()} for each in recorded.raises]
        return {
            "dataset": recorded.name,
            "unit": recorded.unit.to_dict(),
            "promise": recorded.unit.promise(),
            "cap": recorded.cap.to_dict(),
            "raises": raises,
            **({} if recorded.division is None else {"division": recorded.division.to_dict()}),
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "head": self.head.to_dict(),
        }

    def words(self, where: str | None = None) -> str:
        """The account as text: the promise, what was asked, what it cost and what remains.

        With `where`, the path of the ledger, it is the custodian's own account: no noise protects what folders,
        failures and returns tell.
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
                *([f"  folder     {entry.folder}"] if where and entry.folder else []),
                *(f"  failure    {each.time}, stage {each.stage}, {each.kind}" for each in entry.failures if where),
                *(f"  resumed    {time}" for time in entry.resumed if where),
                f"  {_outcome(entry, bool(where))}",
            ]
        return "\n".join(lines if entries else [*lines, "No entries: nothing has been released."])


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
