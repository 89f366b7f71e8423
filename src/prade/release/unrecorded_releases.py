"""What lies beside a new release: other releases of the same data set, all of which the ledger must have on record.

A ledger cannot know that it was removed, or replaced by an old copy. The releases know: each names the ledger that
paid for it, and the head of that ledger's chain. So a run looks at them before it spends.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from prade.core.errors import DataError
from prade.planning.plan import Plan
from prade.privacy.budget import Budget, Unit
from prade.privacy.ledger import Ledger
from prade.privacy.ledger_books import Claim, Entry
from prade.privacy.ledger_chain import Head
from prade.release.release import MANIFEST, MEASUREMENTS, PLAN, Release, claim_of, head_after, note_of, read_manifest

_OPTIONS = {"epsilon": "--cap", "delta": "--delta", "rho": "--rho"}


class Terms(NamedTuple):
    """What a run that has no plan spends, on which data set, under which promise."""

    dataset: str
    budget: Budget
    unit: Unit


def need_on_record(plan: Plan | Terms, place: Path, ledger: Ledger) -> None:
    """Refuse to spend where a release of the data set, at `place` or beside it, is not on the ledger's record."""
    dataset = plan.dataset
    known, own = ledger.knows(dataset), ledger.head()
    missing = [each for each in _releases(dataset, place) if not (known and _recorded(dataset, each, ledger))]
    if not missing:
        return
    found = missing[0]
    if own is not None and found.claim.origin.ledger == own.ledger:
        trouble = (
            f"{ledger.path} is an old copy, or its end was cut off: {found.folder} was paid for by entry "
            f"{found.claim.entry} of this ledger, and names an event that it does not have. Bring the newest copy back"
        )
    else:
        trouble = (
            f"{found.folder} is a release of data set {dataset!r} that {ledger.path} does not have on record: "
            f"{found.claim.origin} paid for it. Use that ledger"
        )
    first = "" if known else f"{open_command(plan, ledger.path)} && "
    folders = [str(each.folder) for each in missing]
    command = shlex.join(["prade", "ledger", "import", *folders, "--ledger", str(ledger.path)])
    cap = "" if known else " (with a cap that covers what was spent)"
    raise DataError(f"{trouble}; or, if it is lost, put what was spent on record{cap}: {first}{command}")


def import_release(ledger: Ledger, folder: str | PathLike[str]) -> Entry:
    """Put a release on a ledger's record that another ledger paid for, or this one before it lost its end."""
    place = Path(folder)
    plan, claim, after = Release.load(place).plan, claim_of(read_manifest(place)), head_after(place)
    return ledger.record_import(plan.dataset, plan.unit, plan.budget, claim, after, note_of(plan), str(folder))


def not_entered(plan: Plan, ledger: Ledger, other: str = "") -> DataError:
    """The error for a data set that the ledger does not know; `other` is a way to enter it besides the command."""
    return DataError(
        f"{ledger.path} does not know data set {plan.dataset!r}, so nothing was measured. Enter it with the most that "
        f"may ever be spent on these people: {other}{open_command(plan, ledger.path)} (the number there is what this "
        "plan costs; the cap is yours to decide)"
    )


def open_command(plan: Plan | Terms, ledger: Path) -> str:
    """The command that enters a run's data set in a ledger, with the run's cost for a cap."""
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
class _Found:
    """A release: what it says of who paid for it, and the ledger's head after that, where it is finished."""

    folder: Path
    dataset: str
    claim: Claim
    after: Head | None


def _releases(dataset: str, place: Path) -> Iterator[_Found]:
    """The releases of a data set at a place and beside it, also those that a run left sealed and unfinished."""
    for folder in sorted(place.parent.iterdir()) if place.parent.is_dir() else ():
        found = _release(folder)
        if found is not None and found.dataset == dataset:
            yield found


def _release(folder: Path) -> _Found | None:
    """What a release in a folder says of its ledger, None for a folder that is not a release.

    A release that cannot be read may be of any data set. To pass over it would be to spend although a release may be
    missing in the ledger, so it is refused: whoever knows it can mend it or move it away. A folder that this user may
    not enter, such as lost+found, no run of this user has written: it is passed over.
    """
    try:
        if not (folder / MANIFEST).is_file():  # a pipe of that name would be waited for
            return None
        manifest = read_manifest(folder)
        dataset = unicodedata.normalize(
            "NFKC", str(manifest.get("dataset"))
        )  # version 0.1 kept names as they were typed
        return _Found(folder, dataset, claim_of(manifest), head_after(folder))
    except OSError:
        return None
    except DataError as error:
        # A run may have given its folder the final name meanwhile; and other programs have files of that name.
        if not any((folder / name).exists() for name in (MEASUREMENTS, PLAN)):
            return None
        raise DataError(
            f"{error}; or move {folder} elsewhere: nothing is spent beside a release that cannot be read, for it may "
            "be one of the same data set"
        ) from None


def _recorded(dataset: str, release: _Found, ledger: Ledger) -> bool:
    """Whether the ledger has imported a release; or has paid for it and still has all events that the release names."""
    entry = ledger.paid(dataset, release.claim)
    if entry is None or entry.origin is not None:
        return entry is not None
    return release.after is None or ledger.has(release.after)
