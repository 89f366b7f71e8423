"""The ledger: what has been spent on which data set, on disk, exact, never given back.

For a data set with cap B and entries of cost c_1, ..., c_n the ledger keeps, at every moment and for every reader,

    c_1 + ... + c_n  <=  B        (exact fractions; costs add up: sequential composition)

An entry counts from the moment it is *reserved*, and it is reserved, durably, before any noise is drawn:

    reserve -> draw -> write the measurements -> commit

So a run that breaks off has spent its budget, which is a pity; noisy answers that nobody recorded would be a breach.

What happened is kept as a chain of events (`prade.privacy.ledger_chain`), and all else is worked out from it. Every
operation opens the file, works in one SQLite transaction and closes it. Processes, threads and forks may share a
ledger: whoever writes holds SQLite's write lock, the others wait.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import BudgetError, DataError, PradeError
from prade.core.words import closest
from prade.privacy.budget import Budget, Unit
from prade.privacy.dataset_names import dataset_name, same_to_a_reader
from prade.privacy.ledger_books import Books, Claim, Dataset, Entry, Statement
from prade.privacy.ledger_chain import Broken, Chain, Head
from prade.privacy.ledger_file import LedgerFile, now
from prade.privacy.ledger_place import custodian_ledger, users_own


class Ledger:
    """The ledger in the file `path`, which `open_dataset` makes when there is none.

    `patience` is how many seconds to wait while another process writes. An error from `reserve` means that nothing
    may be drawn. (When a disk fails in the very last moment, the entry may be recorded nevertheless: budget lost,
    privacy kept.)

    >>> from prade.privacy.budget import Budget, Unit
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
        """A ledger, the one in a file, or the custodian's own (`prade.privacy.ledger_place`) where None is given."""
        if isinstance(ledger, Ledger):
            return ledger
        if ledger is not None and not isinstance(ledger, (str, PathLike)):
            raise PradeError(f"ledger is {ledger!r}; give a Ledger or the path of its file")
        return cls(custodian_ledger() if ledger is None else ledger)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    # ------------------------------------------------------------------ writing

    def open_dataset(self, name: str, unit: Unit, cap: Budget) -> Dataset:
        """Enter a data set with its unit and cap; a second time they must be the same, for a promise is kept."""
        self._make_home(name, unit, cap)
        with self._file.transaction("open_dataset", create=True) as chain:
            return self._enter(chain, self._books_of(chain), name, unit, cap)

    def raise_cap(self, dataset: str, cap: Budget, reason: str) -> Dataset:
        """Allow more to be spent on a data set: only upwards, in the same kind of budget, and the reason is kept."""
        _need_budget(cap, "cap")
        _need_text(reason, "the reason for raising a cap")
        with self._file.transaction("raise_cap") as chain:
            books = self._books_of(chain)
            home = self._home(books, dataset)
            self._need_kind(home, cap, "cap")
            if not home.cap < cap:
                raise PradeError(
                    f"data set {home.name!r} has the cap {home.cap} in {self.path}, and {cap} is not above it: a cap "
                    "is only raised, for what was allowed may have been spent"
                )
            event = {"event": "raised", "dataset": home.name, "cap": cap.to_dict(), "reason": reason.strip()}
            self._record(chain, books, event)
            return books.datasets[home.name]

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
    ) -> Entry:
        """Spend `cost` on a plan, durable before this returns; BudgetError, and nothing spent, if it exceeds the cap.

        A plan that has an entry already is refused unless `again` is true, so that two runs of one plan do not pay
        twice by mistake. `note` goes into the account as it is: what was asked, at which scale, nothing private. `unit`
        is what the noise was made for: another one than the data set's is refused. With a `cap` (and the unit), a data
        set that the ledger does not know is entered in the same step, as `open_dataset` would.
        """
        if cap is not None:
            self._make_home(dataset, unit, cap)
        with self._file.transaction("reserve", create=cap is not None) as chain:
            books = self._books_of(chain)
            home = self._admit(chain, books, dataset, plan_hash, cost, unit, cap, again)
            event = {"event": "reserved", "note": str(note), **_spending(books, home, plan_hash, cost)}
            self._record(chain, books, event)
            return books.entries[-1]

    def commit(self, entry_id: int, measurements_hash: str) -> Entry:
        """Record that the measurements of a reserved entry are written; the same hash again changes nothing."""
        _need_text(measurements_hash, "the measurements' hash")
        with self._file.transaction("commit") as chain:
            books = self._books_of(chain)
            entry = next((entry for entry in books.entries if entry.id == entry_id), None)
            if entry is None:
                raise PradeError(f"{self.path} has no entry {entry_id!r}: commit with the id that reserve gave")
            if entry.state == "reserved":
                event = {"event": "committed", "entry": entry.id, "measurements": measurements_hash}
                self._record(chain, books, event)
            elif entry.measurements_hash != measurements_hash:
                raise PradeError(
                    f"entry {entry_id} of {self.path} is {entry.state} with the measurements "
                    f"{entry.measurements_hash}, not {measurements_hash}: an entry pays for one set of measurements; "
                    "reserve another for new ones"
                )
            return books.entries[entry.id - 1]

    def record_import(
        self, dataset: str, unit: Unit, cost: Budget, claim: Claim, after: Head | None, note: str, source: str
    ) -> Entry:
        """Put what a release cost on record (see `prade.release.unrecorded_releases.import_release`).

        Another ledger paid for it, or this one before it lost its end. The cost counts from now on. A release that is
        on record already changes nothing, and its entry is returned.
        """
        with self._file.transaction("import_release") as chain:
            books = self._books_of(chain)
            home = self._home(books, dataset)
            if (known := _payer(books, home, claim)) is not None:
                if known.origin is None and after is not None and not books.has(after):
                    event = {"event": "found", "entry": known.id, "measurements": claim.measurements_hash}
                    self._record(chain, books, {**event, "head": after.to_dict()})
                return books.entries[known.id - 1]
            self._need_unit(home, unit)
            self._need_kind(home, cost, "cost")
            if not cost <= books.left[home.name]:
                raise BudgetError(
                    f"{source} cost {cost}, and data set {home.name!r} has {books.left[home.name]} left of "
                    f"{home.cap} in {self.path}: raise the cap to what was spent with raise_cap, then import it",
                    books.left[home.name],
                    cost,
                )
            event = {
                "event": "imported",
                "note": note,
                "measurements": claim.measurements_hash,
                "origin": vars(claim.origin),
                **_spending(books, home, claim.plan_hash, cost),
            }
            self._record(chain, books, event)
            return books.entries[-1]

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
        """Raise what `reserve` would raise now, and spend nothing."""
        new = cap is not None and not self.path.exists()
        if new and self.path != users_own() and not self.path.absolute().parent.is_dir():
            raise DataError(f"there is no folder for the ledger {self.path}; make it first")
        self._admit(None, Books() if new else self._books(), dataset, plan_hash, cost, unit, cap, again)

    def knows(self, dataset: str) -> bool:
        """Whether the data set has been entered; False also where there is no ledger yet."""
        return self.path.exists() and _recorded_name(self._books(), dataset) is not None

    def datasets(self) -> list[Dataset]:
        """All data sets, by name."""
        return sorted(self._books().datasets.values(), key=lambda dataset: dataset.name)

    def dataset(self, name: str) -> Dataset:
        """One data set: its unit and cap."""
        return self._home(self._books(), name)

    def entries(self, dataset: str) -> list[Entry]:
        """All entries of a data set, oldest first."""
        return list(self.statement(dataset).entries)

    def find(self, dataset: str, plan_hash: str) -> Entry | None:
        """The latest entry of a plan, if it has one: what a new run of the plan looks up first."""
        return next((entry for entry in reversed(self.entries(dataset)) if entry.plan_hash == plan_hash), None)

    def times_paid(self, dataset: str, plan_hash: str) -> int:
        """How many entries a plan has; 0 also where the ledger does not know the data set."""
        entries = self.entries(dataset) if self.knows(dataset) else []
        return sum(entry.plan_hash == plan_hash for entry in entries)

    def remaining(self, dataset: str) -> Budget:
        """Cap minus everything reserved, committed or imported."""
        return self.statement(dataset).remaining

    def statement(self, dataset: str) -> Statement:
        """All that the ledger says of a data set, as of one moment."""
        books = self._books()
        home = self._home(books, dataset)
        return Statement(home, tuple(books.of_dataset(home.name)), books.left[home.name], books.head)

    def account(self, dataset: str) -> str:
        """The account in words: under which promise, what was asked, what it cost, what remains."""
        return self.statement(dataset).words(str(self.path))

    def head(self) -> Head | None:
        """The end of the chain: which ledger it is, and its last event; None where there is no ledger yet."""
        return self._books().head if self.path.exists() else None

    def paid(self, dataset: str, claim: Claim) -> Entry | None:
        """The entry that paid for noisy answers, or by which they were imported."""
        books = self._books()
        return _payer(books, self._home(books, dataset), claim)

    def has(self, head: Head) -> bool:
        """Whether the ledger's chain goes through this head: False in an old copy, and where its end was cut off."""
        return self._books().has(head)

    # ------------------------------------------------------------------ what is allowed

    def _enter(self, chain: Chain | None, books: Books, name: str, unit: Unit | None, cap: Budget) -> Dataset:
        """Record a new data set, or see that a known one is the same."""
        name, unit = _need_dataset(name, unit, cap)
        recorded = books.datasets.get(name)
        if recorded is None:
            for known in books.datasets:
                if same_to_a_reader(known, name):
                    raise PradeError(
                        f"{self.path} has a data set {known!r}, and {name!r} would have a budget of its own: use the "
                        "recorded name, or one that differs by more than case, blanks and letters that look alike"
                    )
            event = {"event": "opened", "dataset": name, "unit": unit.to_dict(), "cap": cap.to_dict()}
            self._record(chain, books, event)
            return books.datasets[name]
        if recorded.cap != cap:
            raise PradeError(
                f"data set {name!r} has the cap {recorded.cap} in {self.path}, not {cap}: a cap is set once; open it "
                "with the recorded one, or raise that on the record with raise_cap"
            )
        self._need_unit(recorded, unit)
        return recorded

    def _admit(
        self,
        chain: Chain | None,
        books: Books,
        dataset: str,
        plan_hash: str,
        cost: Budget,
        unit: Unit | None,
        cap: Budget | None,
        again: bool,
    ) -> Dataset:
        """Refuse what may not be spent: too much, the same twice by mistake, in another kind, under another promise."""
        _need_text(plan_hash, "a plan's hash")
        _need_budget(cost, "cost")
        home = self._home(books, dataset) if cap is None else self._enter(chain, books, dataset, unit, cap)
        if unit is not None:
            self._need_unit(home, unit)
        self._need_kind(home, cost, "cost")
        if cost == cost * 0:
            raise PradeError("the cost is zero, but every measurement costs something: give what it costs")
        left = books.left[home.name]
        earlier = [entry for entry in books.of_dataset(home.name) if entry.plan_hash == plan_hash]
        if earlier and not again:
            raise self._paid_already(earlier[-1], cost, left)
        if not cost <= left:
            raise BudgetError(
                f"data set {home.name!r} has {left} left of {home.cap} in {self.path}, but {cost} was asked for: "
                "nothing was spent; ask for less, or make do with what has been measured",
                left,
                cost,
            )
        return home

    def _paid_already(self, entry: Entry, cost: Budget, left: Budget) -> BudgetError:
        wrote = (
            "no measurements are recorded: its run is under way, or broke off (if it had saved them, measuring into "
            "the same folder finds them)"
            if entry.measurements_hash is None
            else f"its measurements {entry.measurements_hash} were written: find and use them, which is free"
        )
        return BudgetError(
            f"plan {entry.plan_hash} is paid for already on data set {entry.dataset!r} in {self.path} "
            f"(entry {entry.id}, {entry.state}); {wrote}. To spend {cost} once more, say again=True",
            left,
            cost,
        )

    def _need_unit(self, home: Dataset, unit: Unit) -> None:
        if home.unit != unit:
            raise PradeError(
                f"data set {home.name!r} is protected as {home.unit} in {self.path}, not as {unit}: costs add up under "
                "one promise only; use the recorded unit"
            )

    def _need_kind(self, home: Dataset, given: Budget, what: str) -> None:
        if given.kind != home.cap.kind:
            raise PradeError(
                f"data set {home.name!r} is accounted in {home.cap.kind} budget in {self.path}, but the {what} is "
                f"{given.kind}: give the {what} as {home.cap.kind}"
            )

    # ------------------------------------------------------------------ events as values

    def _books(self) -> Books:
        with self._file.transaction(None) as chain:
            return self._books_of(chain)

    def _books_of(self, chain: Chain) -> Books:
        try:
            return Books.of(chain)
        except Broken as damage:
            raise self._file.damaged() from damage

    def _home(self, books: Books, name: str) -> Dataset:
        if (recorded := _recorded_name(books, name)) is None:
            raise PradeError(
                f"{self.path} has no data set {name!r}{closest(str(name), list(books.datasets))}; enter it with "
                "open_dataset"
            )
        return books.datasets[recorded]

    def _record(self, chain: Chain | None, books: Books, event: dict[str, Any]) -> None:
        """Write an event to the chain, and take it into the books; without a chain it is only tried."""
        event = {"time": now(), **event}
        if chain is not None:
            chain.add(event)
        books.go_on(event, books.head)

    def _make_home(self, name: str, unit: Unit | None, cap: Budget) -> None:
        """Before the file is made: what would go into it is sound, and the user's own ledger has its folder.

        Anywhere else a missing folder may be a mistyped path.
        """
        _need_dataset(name, unit, cap)
        if self.path == users_own():
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(
                    f"there is no folder for the ledger {self.path}, and it cannot be made ({error.strerror}): make "
                    "it, or name another ledger in PRADE_LEDGER"
                ) from None


def _recorded_name(books: Books, name: str) -> str | None:
    """The name by which the books know a data set, None if they do not."""
    # the name as it is first: version 0.1 knew some that are refused now
    names = list(books.datasets)
    return name if name in names else next((known for known in names if known == dataset_name(name)), None)


def _payer(books: Books, home: Dataset, claim: Claim) -> Entry | None:
    return next((entry for entry in books.of_dataset(home.name) if claim.paid_by(entry)), None)


def _spending(books: Books, home: Dataset, plan_hash: str, cost: Budget) -> dict[str, Any]:
    return {"entry": len(books.entries) + 1, "dataset": home.name, "plan": plan_hash, "cost": cost.to_dict()}


def _need_dataset(name: str, unit: Unit | None, cap: Budget) -> tuple[str, Unit]:
    _need_budget(cap, "cap")
    if not isinstance(unit, Unit):
        raise PradeError(f"a data set is entered with what is protected, got {unit!r}: give its Unit")
    return dataset_name(name), unit


def _need_text(value: object, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise PradeError(f"{what} must be text that is not blank, got {value!r}")


def _need_budget(value: object, what: str) -> None:
    if not isinstance(value, Budget):
        raise PradeError(f"{what} must be a Budget, got {value!r}: write Budget.pure(...), .zcdp(...) or .approx(...)")
