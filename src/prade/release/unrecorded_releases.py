"""Releases that the ledger does not have on record: a run looks for them next to its own folder before it spends.

A ledger cannot know that it was deleted or replaced by an old copy. The releases can tell: each names the ledger that
paid for it and the head of that ledger's chain. So the ledger must have on record every release of the same data set
that lies next to the new one.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from prade.core.errors import DataError, Remedy
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import confusable
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.chain import Head
from prade.privacy.ledger.records import Claim, Entry
from prade.privacy.unit import Unit
from prade.release.release import MANIFEST, MEASUREMENTS, PLAN, Release, claim_of, head_after, note_of, read_manifest

_OPTIONS = {"epsilon": "--cap", "delta": "--delta", "rho": "--rho"}


class Terms(NamedTuple):
    """What a run without a plan spends, on which data set, with which unit of protection."""

    dataset: str
    budget: Budget
    unit: Unit


def need_on_record(plan: Plan | Task | Terms, target: Path, ledger: Ledger) -> None:
    """Refuse to spend if the ledger lacks a release of the data set that lies at `target` or next to it."""
    dataset = plan.dataset
    known, own = ledger.knows(dataset), ledger.head()
    missing = [each for each in _releases(dataset, target) if not (known and _recorded(dataset, each, ledger))]
    if not missing:
        return
    first = missing[0]
    if own is not None and first.claim.origin.ledger == own.ledger:
        trouble = (
            f"{ledger.path} is an old copy, or its end was cut off: entry {first.claim.entry} of this ledger paid for "
            f"{first.folder}, which names an event that the ledger does not have. Restore the newest copy"
        )
    else:
        trouble = (
            f"{first.folder} is a release of data set {dataset!r} that {ledger.path} does not have on record: "
            f"{first.claim.origin} paid for it. Use that ledger"
        )
    opening = "" if known else f"{open_command(plan, ledger.path)} && "
    folders = [str(each.folder) for each in missing]
    command = shlex.join(["prade", "ledger", "import", *folders, "--ledger", str(ledger.path)])
    cap = "" if known else " (with a cap that covers what was spent)"
    raise DataError(f"{trouble}; or, if it is lost, put what was spent on record{cap}: {opening}{command}")


def import_release(ledger: Ledger, folder: str | PathLike[str]) -> Entry:
    """Record in a ledger a release that another ledger paid for, or that this one paid for before it lost its end."""
    path = Path(folder)
    plan, claim, after = Release.load(path).plan, claim_of(read_manifest(path)), head_after(path)
    return ledger.record_import(plan.dataset, plan.unit, plan.budget, claim, after, note_of(plan), str(folder))


def not_entered(plan: Plan | Task, ledger: Ledger) -> DataError:
    """The error for a data set that the ledger does not know."""
    command = f"{open_command(plan, ledger.path)} (its cap is what this plan costs; you decide how much it should be)"
    message = f"{ledger.path} does not know data set {plan.dataset!r}, so nothing was measured"
    return DataError(message, remedy=Remedy("cap", command))


def open_command(plan: Plan | Task | Terms, ledger: Path) -> str:
    """The command that enters a run's data set in a ledger, with the run's cost as its cap."""
    unit, words = plan.unit, ["prade", "ledger", "open", plan.dataset]
    for name, amount in plan.budget.to_dict().items():
        if name != "kind":
            words += [_OPTIONS[name], amount]
    words += ["--max-rows-per-person", str(unit.max_rows)]
    if unit.person_id is not None:
        words += ["--person-id", unit.person_id]
    if unit.per_group is not None:
        words += ["--max-rows-per-group", str(unit.per_group)]
    if unit.neighbours != "add-remove":
        words += ["--neighbours", unit.neighbours]
    return shlex.join([*words, "--ledger", str(ledger)])


@dataclass(frozen=True)
class _Neighbour:
    """A release next to the new one: which entry paid for it and, if it is finished, the ledger's head after that."""

    folder: Path
    dataset: str
    claim: Claim
    after: Head | None


def _releases(dataset: str, target: Path) -> Iterator[_Neighbour]:
    """The releases of a data set at `target` and next to it, including those that a run left sealed and unfinished."""
    for folder in sorted(target.parent.iterdir()) if target.parent.is_dir() else ():
        release = _release(folder)
        if release is not None and (release.dataset == dataset or confusable(release.dataset, dataset)):
            yield release


def _release(folder: Path) -> _Neighbour | None:
    """What the release in a folder says about its ledger; None for a folder that is not a release.

    An unreadable release may belong to any data set. If it were skipped, a run might spend although the ledger lacks a
    release, so it is an error: someone who knows the folder can repair it or move it away. A folder that this user may
    not enter, such as lost+found, was not written by a run of this user and is skipped.
    """
    try:
        if not (folder / MANIFEST).is_file():  # opening a pipe of that name would block
            return None
        manifest = read_manifest(folder)
        # version 0.1 did not normalise names
        dataset = unicodedata.normalize("NFKC", str(manifest.get("dataset")))
        return _Neighbour(folder, dataset, claim_of(manifest), head_after(folder))
    except OSError:
        return None
    except DataError as error:
        # A run may have just renamed its folder, and other programs use files of that name.
        if not any((folder / name).exists() for name in (MEASUREMENTS, PLAN)):
            return None
        raise DataError(
            f"{error.args[0]}; or move {folder} elsewhere: prade spends nothing next to a release that it cannot read, "
            "which may be one of the same data set"
        ) from None


def _recorded(dataset: str, release: _Neighbour, ledger: Ledger) -> bool:
    """Whether the ledger imported a release, or paid for it and still has all events that the release names."""
    entry = ledger.paid(dataset, release.claim)
    if entry is None or entry.origin is not None:
        return entry is not None
    return release.after is None or ledger.has(release.after)
