"""Who pays for a run: what it has spent, and the releases beside it that the ledger does not have on record.

Every failure of a run states what it has spent, as a note of the exception. A ledger cannot know that it was deleted or
replaced by an old copy, but releases name the head of the chain of the ledger that paid for them. So before a run
spends, the ledger must have on record every release of the same data set that lies next to the new one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path

from prade.core.errors import DataError, Remedy
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import confusable
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.file import Head
from prade.privacy.ledger.records import Claim, Entry
from prade.release.release import MANIFEST, MEASUREMENTS, PLAN, Release, claim_of, head_after, note_of, read_manifest

BEGINNING = "In this run "
NOTHING = f"{BEGINNING}nothing was spent"


class Spending:
    """What a run has spent so far, by the ledger's record, and where to find what it paid for."""

    def __init__(self) -> None:
        self._cost: Budget | None = None
        self._places: tuple[Path, ...] = ()
        self._words = NOTHING

    @property
    def paid(self) -> bool:
        """Whether the ledger has recorded the run's cost."""
        return self._cost is not None

    @property
    def sentence(self) -> str:
        """What was spent. It is in the first place with a complete release, or else only in the ledger."""
        if self._cost is None:
            return self._words
        folders = (str(place) for place in self._places if (place / MANIFEST).is_file())
        return f"{BEGINNING}{self._cost} was spent; it is in {next(folders, self._words)}"

    def reserve(self, cost: Budget, ledger: str) -> None:
        """The ledger has recorded the cost, and no noise is drawn yet: nothing has been released."""
        self._words = (
            f"{BEGINNING}{cost} was reserved in {ledger}, and nothing was released: measure the same plan into the "
            "same folder, which goes on without paying again, or give it back with `prade ledger return`"
        )

    def lose(self, entry: Entry, ledger: Path) -> None:
        """While this run counted, another one drew the entry's noise, or the custodian gave the entry back."""
        words = (
            f"{BEGINNING}{entry.cost} was reserved in {ledger} as entry {entry.id}, for which another run draws noise: "
            "measure the same plan into the same folder to get its release"
        )
        self._words = words if entry.returned is None else NOTHING

    def pay(self, cost: Budget, ledger: str, *places: Path) -> None:
        """The ledger has recorded the cost of a release that is, or will be, in one of the places."""
        self._cost, self._places, self._words = cost, places, f"{ledger}, and no noisy counts were saved"

    def doubt(self, cost: Budget, ledger: Path) -> None:
        """The ledger failed while it recorded the cost, and cannot be read now."""
        self._words = f"{BEGINNING}{cost} may have been spent: {ledger} will tell, once it can be read"

    def pay_nothing(self) -> None:
        """The ledger failed, but it can be read, and it did not record the cost."""
        self._words = NOTHING


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


_OPTIONS = {"epsilon": "--cap", "delta": "--delta", "rho": "--rho"}


def need_on_record(plan: Plan | Task, target: Path, ledger: Ledger) -> None:
    """Refuse to spend if the ledger lacks a release of the data set that lies at `target` or next to it."""
    dataset = plan.dataset
    known, own, missing = ledger.knows(dataset), ledger.head(), dict[Path, Claim]()
    for place in sorted(target.parent.iterdir()) if target.parent.is_dir() else ():
        if (release := _release(place)) is not None and confusable(release[0], dataset):
            _, claim, after = release
            entry = ledger.paid(dataset, claim) if known else None
            # on record: imported, or paid for by a ledger that still has all events that the release names
            if entry is None or not (entry.origin is not None or (after is None or ledger.has(after))):
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
    plan, claim, after = Release.load(path).plan, claim_of(read_manifest(path)), head_after(path)
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
        return str(manifest["dataset"]), claim_of(manifest), head_after(folder)
    except OSError:
        return None
    except DataError as error:
        # A run may have just renamed its folder, and other programs use files of that name.
        if not any((folder / name).exists() for name in (MEASUREMENTS, PLAN)):
            return None
        raise DataError(f"{error.args[0]}; or move {folder} elsewhere: prade spends nothing beside it") from None
