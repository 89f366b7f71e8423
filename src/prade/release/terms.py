"""The terms of a run: who pays, how its plan is chosen, what is allowed, and what it has spent.

Every failure of a run states what it has spent, as a note of the exception. A ledger cannot know that it was deleted or
replaced by an old copy, but releases name the head of the chain of the ledger that paid for them. So before a run
spends, the ledger must have on record every release of the same data set that lies next to the new one.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from prade.core.errors import DataError, PradeError, Remedy
from prade.core.execution import EFFORT
from prade.core.numbers import exact
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.table import PublicTable
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.records import Claim, Entry
from prade.privacy.protection import Unit, confusable
from prade.release.release import MANIFEST, MEASUREMENTS, PLAN, Release, head_after, note_of, read_manifest

PathName = str | PathLike[str]
Method = Literal["prade", "algorithm-2"]


@dataclass(frozen=True)
class Terms:
    """The options of a run other than its task and tables: who pays, how the plan is chosen, what is allowed."""

    ledger: Ledger | PathName | None = None
    cap: Number | Budget | None = None
    tune: bool = True
    effort: float = EFFORT
    seconds: float | None = None
    again: bool = False
    weak_protection: bool = False
    against_advice: bool = False
    method: Method = "prade"


def cap_of(cap: Number | Budget | None, budget: Budget) -> Budget | None:
    """A cap in the budget's kind; a number is an epsilon or a rho."""
    if cap is None or isinstance(cap, Budget):
        return cap
    if budget.kind == "approx":
        raise PradeError(f"cap is {cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)")
    return Budget(budget.kind, (exact(cap, "the cap"),))


def plan_beside(folder: PathName) -> Path:
    """Return the path where the plan is kept until the folder exists: FOLDER.plan.toml."""
    return Path(f"{Path(folder).absolute()}.plan.toml")


def saved_plan(folder: PathName) -> Path | None:
    return next((file for file in (Path(folder) / PLAN, plan_beside(folder)) if file.exists()), None)


def kept_plan(task: Task, table: PublicTable, folder: PathName) -> Plan | None:
    """Load the plan in or beside a release folder, if there is one. It must be for the same task and public files."""
    if (path := saved_plan(folder)) is None:
        return None
    plan = Plan.load(path)
    if (different := plan.task.differs_from(task)) is not None:
        raise DataError(f"{path} was made with another {different}: use the one it was made with, or another folder")
    if plan.public is None or table.hashed_files is None:
        return plan
    return plan.with_public(plan.public.moved_to(table.hashed_files))  # refuses other files


def drafted_schema(folder: str | PathLike[str], table: PublicTable, groups: Groups, unit: Unit) -> Schema:
    """Draft a schema from the public table and keep it beside the folder; a kept plan has its own."""
    if (path := saved_plan(folder)) is not None:
        plan = Plan.load(path)
        return plan.schema.with_invariants(plan.invariants)
    path = Path(f"{Path(folder).absolute()}.schema.toml")
    names = table.typed.column_names
    identifiers = [name for name in names if name == unit.person_id]
    drafted = table.draft([name for name in groups.names if name in names], identifiers)
    if path.exists() and Schema.load(path) != drafted:
        raise PradeError(
            f"{path} is not the draft of this public table; if you corrected it, give it as schema=, otherwise "
            "remove it"
        )
    drafted.save(path)
    warnings.warn(
        f"no schema was given, so {path} was drafted from the public table, with {len(drafted.coded)} columns. "
        "Read it, add the values that private rows may have but the public table lacks, and give it as schema=",
        stacklevel=4,
    )
    return drafted


# ---------------------------------------------------------------------- what a run has spent

BEGINNING = "In this run "
NOTHING = f"{BEGINNING}nothing was spent"


@dataclass
class Spending:
    """What a run has spent so far, by the ledger's record, and where to find what it paid for."""

    words: str = NOTHING  # until a place has a complete release
    cost: Budget | None = None
    places: tuple[Path, ...] = ()

    @property
    def paid(self) -> bool:
        """Whether the run has paid for a release that is, or will be, in one of the places."""
        return self.cost is not None

    @property
    def sentence(self) -> str:
        """What was spent. It is in the first place with a complete release, or else only in the ledger."""
        place = next((each for each in self.places if (each / MANIFEST).is_file()), None)
        return self.words if place is None else f"{BEGINNING}{self.cost} was spent; it is in {place}"

    def pay(self, cost: Budget, ledger: str, *places: Path) -> None:
        """The ledger has recorded the cost of a release that is, or will be, in one of the places."""
        self.cost, self.places = cost, places
        self.words = f"{BEGINNING}{cost} was spent; it is in {ledger}, and no noisy counts were saved"


_current: ContextVar[Spending | None] = ContextVar("spending", default=None)


@contextmanager
def spending_stated() -> Iterator[Spending]:
    """State what was spent with every exception that leaves the block. A block inside another shares its spending."""
    if (outer := _current.get()) is not None:
        yield outer
        return
    spending = Spending()
    token = _current.set(spending)
    try:
        yield spending
    except BaseException as error:
        error.add_note(spending.sentence)
        raise
    finally:
        _current.reset(token)


def spending_of(error: BaseException) -> str | None:
    """What the run that ended with this exception spent; None if it was not a run."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith(BEGINNING)), None)


# ---------------------------------------------------------------------- releases that a ledger lacks

_OPTIONS = {"epsilon": "--cap", "delta": "--delta", "rho": "--rho"}


def need_on_record(plan: Plan | Task, target: Path, ledger: Ledger) -> None:
    """Refuse to spend if the ledger lacks a release of the data set that lies at `target` or next to it."""
    dataset = plan.dataset
    known, own = ledger.knows(dataset), ledger.head()
    missing: dict[Path, Claim] = {}
    for place in sorted(target.parent.iterdir()) if target.parent.is_dir() else ():
        if (release := _release(place)) is not None and confusable(release[0], dataset):
            _, claim, after = release
            entry = ledger.paid(dataset, claim) if known else None
            imported = entry is not None and entry.origin is not None
            complete = entry is not None and (after is None or ledger.has(after))  # with all events that it names
            if not (imported or complete):
                missing[place] = claim
    if not missing:
        return
    folder, claim = next(iter(missing.items()))
    if own is not None and claim.origin.ledger == own.ledger:
        trouble = (
            f"{ledger.path} is an old copy, or its end was cut off: entry {claim.entry} of this ledger paid for "
            f"{folder}, which names an event that the ledger does not have. Restore the newest copy"
        )
    else:
        trouble = (
            f"{folder} is a release of data set {dataset!r} that {ledger.path} does not have on record: "
            f"{claim.origin} paid for it. Use that ledger"
        )
    opening = "" if known else f"{_open_command(plan, ledger.path)} && "
    command = shlex.join(["prade", "ledger", "import", *map(str, missing), "--ledger", str(ledger.path)])
    cap = "" if known else " (with a cap that covers what was spent)"
    raise DataError(f"{trouble}; or, if it is lost, put what was spent on record{cap}: {opening}{command}")


def import_release(ledger: Ledger, folder: str | PathLike[str]) -> Entry:
    """Record in a ledger a release that another one paid for, or this one before it lost its end."""
    path = Path(folder)
    plan, claim, after = Release.load(path).plan, read_manifest(path).claim, head_after(path)
    return ledger.record_import(plan.dataset, plan.unit, plan.budget, claim, after, note_of(plan), str(folder))


def need_cap(plan: Plan | Task, folder: str | PathLike[str], ledger: Ledger) -> None:
    """Refuse a data set that the ledger does not know, and say how to enter it."""
    if ledger.knows(plan.dataset):
        return
    need_on_record(plan, Path(folder).resolve(), ledger)
    command = f"{_open_command(plan, ledger.path)} (its cap is what this plan costs; you decide how much it should be)"
    message = f"{ledger.path} does not know data set {plan.dataset!r}, so nothing was measured"
    raise DataError(message, remedy=Remedy("cap", command))


def _open_command(plan: Plan | Task, ledger: Path) -> str:
    """The command that enters a run's data set in a ledger, with the run's cost as its cap."""
    unit, amounts = plan.unit, plan.budget.to_dict()
    options = {
        **{_OPTIONS[name]: amounts[name] for name in plan.budget.names},
        "--max-rows-per-person": unit.max_rows,
        "--person-id": unit.person_id,
        "--max-rows-per-group": unit.per_group,
        "--neighbours": None if unit.neighbours == "add-remove" else unit.neighbours,
        "--ledger": ledger,
    }
    words = [str(word) for option in options.items() if option[1] is not None for word in option]
    return shlex.join(["prade", "ledger", "open", plan.dataset, *words])


def _release(folder: Path) -> tuple[str, Claim, Head | None] | None:
    """A release's data set, which entry paid for it and, if it is finished, the ledger's head after that; or None.

    An unreadable release may be one that the ledger lacks, so it is an error. A folder that this user may not enter is
    skipped.
    """
    try:
        if not (folder / MANIFEST).is_file():  # opening a pipe of that name would block
            return None
        manifest = read_manifest(folder)
        return manifest.dataset, manifest.claim, head_after(folder)
    except OSError:
        return None
    except DataError as error:
        # A run may have just renamed its folder, and other programs use files of that name.
        if not any((folder / name).exists() for name in (MEASUREMENTS, PLAN)):
            return None
        raise DataError(f"{error.args[0]}; or move {folder} elsewhere: prade spends nothing beside it") from None
