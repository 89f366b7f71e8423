"""Measure: the only step that spends. Check, count, prepare, reserve, draw, write, commit, in this order and no other.

    check     the plan fits the ledger, the folder can be made; nothing is spent, no row is read
    count     true counts, in memory of this function only
    prepare   a folder beside the release's place, with the plan in it: whatever can fail shall fail here
    reserve   the cost is in the ledger, durably, before any noise is drawn
    draw      noise; from here on there is something to release
    write     noisy counts, and the manifest with their hashes, which seals the folder
    commit    the ledger knows the noisy counts' hash
    rename    the folder is the release, whole

Whatever breaks off before `reserve` costs nothing. What breaks off after `write` is completed by the next run, from
the noisy counts that were saved. In between, the budget is spent and the next run says so: Ctrl-C and a request to
terminate are held back there, from `reserve` to `rename`, which takes moments.

Each step is announced to audit hooks as ("prade.step", "measure.<step>"): that is how tests stop it there.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError, PradeError
from prade.core.interrupts import held_back
from prade.core.progress import Progress
from prade.data.tables import write_table
from prade.measuring.counts import count
from prade.measuring.identity import refuse_public
from prade.measuring.noise import add_noise
from prade.measuring.source import Source, open_source
from prade.measuring.staging import is_sealed, reason, staging_folder, sweep, sync, unfinished, unwritable, write_sealed
from prade.planning.plan import Plan
from prade.privacy.budget import Budget
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Entry
from prade.privacy.protection import refuse_weak
from prade.release.beside import need_on_record
from prade.release.release import (
    EXTRACT,
    FORMAT,
    HASHED,
    MANIFEST,
    MEASUREMENTS,
    PLAN,
    Noisy,
    Release,
    claim_of,
    file_hash,
    measurement_table,
    note_of,
    read_manifest,
)

if TYPE_CHECKING:
    from prade.measuring.counts import Counts

BYTES_A_COUNT = 32  # more than a row of the file takes
SPARE_BYTES = 2**20
LIBRARIES = ("prade", "opendp", "ibis-framework", "duckdb", "numpy", "pyarrow")


def measure(
    plan: Plan,
    private: Any,
    folder: str | PathLike[str],
    ledger: Ledger | str | PathLike[str],
    *,
    cap: Budget | None = None,
    again: bool = False,
    public: Any = None,
    weak_protection: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Ask the private table what the plan says, once, and keep the noisy answers in the folder.

    `private` is whatever `open_source` takes. The ledger must know ``plan.dataset`` (`Ledger.open_dataset`) with the
    plan's unit; or `cap`, the most that may ever be spent on it, enters it together with this expense. Other releases
    of the data set that lie beside the folder must be on the ledger's record. A folder that has this plan's release
    already is read and nothing is spent (nor is `private` looked at, whatever has changed in it); a plan that was paid
    for but has no release here is refused, unless `again` says that it shall be paid for once more. `progress(what,
    done, all)` is told of levels counted, questions given their noise and files written: what the plan alone says.
    Errors of its own are passed over: no bar shall cost a budget.

    Refused, besides: a private table that is one of the plan's public files, or the table or files `public` that the
    estimates will start from, for its rows would be published; and a budget that hardly protects (see
    `prade.privacy.protection`), unless `weak_protection` says that this is known.

    >>> import pyarrow
    >>> from prade import Budget, Column, Ledger, Schema, Unit, Workload
    >>> from prade.planning.plan import Level, Plan
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> ages = Level("TOWN", Workload.all_marginals(schema, 1))
    >>> plan = Plan("people", schema, Budget.pure(1), Unit(1), [ages], groups={"TOWN": ["a", "b"]})
    >>> ledger = Ledger("people.ledger")
    >>> dataset = ledger.open_dataset("people", plan.unit, cap=Budget.pure(1))
    >>> rows = pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})
    >>> release = measure(plan, rows, "people-2026", ledger)
    >>> release.noisy[-1][0].shape, ledger.remaining("people") == Budget.pure(0)
    ((2, 3), True)
    """
    ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    place = Path(folder).resolve()
    found = _existing(plan, place, ledger, again)
    if found is not None:
        return found
    refuse_weak(plan.budget, weak_protection)
    _check(plan, place, ledger, cap, again)
    _step("checked")
    told = partial(_tell, progress)
    source = open_source(private)
    try:
        refuse_public(source, plan.public, public)
        counts = _counted(plan, source, told)
    finally:
        if source is not private:
            source.close()
    _step("counted")
    with staging_folder(place) as staging:
        makers = _try_out(plan, staging, source, threads)
        _step("prepared")
        with held_back():
            terms = plan.dataset, plan.hash, plan.budget, note_of(plan)
            entry = ledger.reserve(*terms, unit=plan.unit, cap=cap, again=again)
            _step("reserved")
            failure: DataError | KeyboardInterrupt | None = None
            try:
                noisy = _draw(plan, counts, threads, told)
                del counts
                _step("drawn")
                _write(staging, plan, noisy, entry, makers)
                told("writing", 1, 1)
            except (Exception, KeyboardInterrupt) as error:
                failure = _broken_off(staging, place, plan, ledger, entry, error)
            if failure is not None:  # raised out here, so that not even the error's context leads back to a count
                raise failure
            return _finish(staging, place, plan, ledger)


# ---------------------------------------------------------------------- before anything is spent


def _existing(plan: Plan, place: Path, ledger: Ledger, again: bool) -> Release | None:
    """The release that the folder has, or the one that a broken-off run left complete beside it."""
    try:
        if place.exists() and not (place.is_dir() and not any(place.iterdir())):
            release = _released(plan, place, ledger)
            if again:
                raise DataError(
                    f"{place} holds a release of this plan, which is kept; a second one needs another folder"
                )
            return release
        sealed = [staging for staging in unfinished(place) if is_sealed(staging)]
    except OSError as error:
        raise DataError(f"{place} cannot be looked into ({reason(error)}): get access to it") from None
    for staging in sealed:
        try:
            manifest = read_manifest(staging)
        except DataError as error:
            raise _stuck(staging, place, plan, error) from None
        if manifest["plan"] == plan.hash:
            return _finish(staging, place, plan, ledger)
    return None


def _released(plan: Plan, place: Path, ledger: Ledger) -> Release:
    """The release in a folder, if it is this plan's and the ledger knows it."""
    release = Release.load(place)
    if release.plan != plan:
        raise DataError(f"{place} holds the release of another plan; give a folder of its own to this one")
    _paid(read_manifest(place), place, plan, ledger)
    return replace(release, plan=plan)  # the same questions, but its settings may be newer


def _paid(manifest: Mapping[str, Any], where: Path, plan: Plan, ledger: Ledger) -> Entry:
    """The entry that paid for a folder's noisy counts; another ledger's would be credited with what it has not."""
    claim = claim_of(manifest)
    entry = ledger.paid(plan.dataset, claim)
    if entry is None or entry.plan_hash != plan.hash:
        raise DataError(
            f"{ledger.path} did not pay for the noisy counts in {where}: {claim.origin} did, and if that is this "
            "ledger, then this is an old copy of it. Give the ledger that has the entry, or a new folder"
        )
    return entry


def _check(plan: Plan, place: Path, ledger: Ledger, cap: Budget | None, again: bool) -> None:
    """Everything that can be refused without reading a row."""
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
        raise DataError(f"there is no folder {place.parent} that can be written to; make it first")
    need_on_record(plan, place, ledger)
    ledger.check(plan.dataset, plan.hash, plan.budget, unit=plan.unit, cap=cap, again=again)


def _try_out(plan: Plan, staging: Path, source: Source, threads: int | None) -> dict[str, Any]:
    """Write the plan, and try all else that could fail, while it costs nothing; which programs make the release."""
    for question in plan.questions:
        add_noise(np.zeros(1, np.int64), question.law, question.scale, threads=threads)
    try:
        _need_room(plan, staging)
        plan.save(staging / PLAN)
    except OSError as error:
        raise unwritable(staging, error) from None
    except UnicodeError:
        raise PradeError("a text in the plan is no valid Unicode: nothing was spent; correct its names") from None
    if Plan.load(staging / PLAN) != plan:
        raise PradeError("the plan changes when it is written and read again: nothing was spent; please report this")
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {"engine": source.engine, "versions": versions}


def _need_room(plan: Plan, staging: Path) -> None:
    """A full disk is better noticed before the budget is spent."""
    counts = sum(
        len(plan.groupings[question.level]) * part.n_cells for question in plan.questions for part in question.parts
    )
    needed, free = counts * BYTES_A_COUNT + SPARE_BYTES, shutil.disk_usage(staging).free
    if free < needed:
        raise DataError(
            f"{staging.parent} has {free:,} bytes free, the release may need {needed:,}: nothing was spent; free some"
        )


# ---------------------------------------------------------------------- counts


def _counted(plan: Plan, source: Source, told: Progress) -> list[list[Counts]]:
    """True counts of every question's parts."""
    answers: list[list[Counts]] = []
    for place, found in enumerate(_count(plan, source)):
        answers += found
        told("counting", place + 1, len(plan.levels))
    return answers


def _count(plan: Plan, source: Source) -> Iterator[list[list[Counts]]]:
    """True counts of each level's questions; one statement, where the engine can, for each level."""
    for place, level in enumerate(plan.levels):
        questions = [question for question in plan.questions if question.level == place]
        parts = [part for question in questions for part in question.parts]
        counted = iter(count(source, plan.schema, parts, plan.groups, plan.unit, level.by) if parts else ())
        yield [[next(counted) for _ in question.parts] for question in questions]


# ---------------------------------------------------------------------- after the reservation


def _draw(plan: Plan, counts: Sequence[Sequence[Counts]], threads: int | None, told: Progress) -> list[list[Noisy]]:
    noisy = []
    for question, answers in zip(plan.questions, counts, strict=True):
        noisy.append([add_noise(part, question.law, question.scale, threads=threads) for part in answers])
        told("adding noise", len(noisy), len(plan.questions))
    return noisy


def _write(
    staging: Path, plan: Plan, noisy: Sequence[Sequence[Noisy]], entry: Entry, makers: Mapping[str, Any]
) -> None:
    """The noisy counts, and then the manifest, which says that the folder is whole."""
    write_table(measurement_table(plan, noisy), staging / MEASUREMENTS)
    _step("written")
    manifest = {
        "format": FORMAT,
        "plan": plan.hash,
        "dataset": plan.dataset,
        "entry": entry.id,
        "head": entry.head and entry.head.to_dict(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {name: file_hash(staging / name) for name in HASHED},
        **makers,
    }
    sync(staging)
    write_sealed(staging / MANIFEST, manifest)
    sync(staging.parent)
    _step("sealed")


def _broken_off(
    staging: Path, place: Path, plan: Plan, ledger: Ledger, entry: Entry, error: Exception | KeyboardInterrupt
) -> DataError | KeyboardInterrupt:
    """What to say when something breaks off after the reservation; an interrupt that got through stays one."""
    cause = error if isinstance(error, Exception) else DataError("interrupted")
    words = (
        str(_stuck(staging, place, plan, cause))
        if is_sealed(staging)
        else f"the noisy counts could not be written to {staging} ({reason(cause)}): entry {entry.id} of data set "
        f"{plan.dataset!r} is spent in {ledger.path}. Mend that, then measure with again=True, which spends "
        f"{plan.budget} once more"
    )
    return DataError(words) if isinstance(error, Exception) else KeyboardInterrupt(words)


def _finish(staging: Path, place: Path, plan: Plan, ledger: Ledger) -> Release:
    """Commit what is whole and give it its name. Another run may be doing the same: whoever is first, is."""
    try:
        manifest = read_manifest(staging)
        release = Release.load(staging)
        entry = _paid(manifest, staging, plan, ledger)
        entry = ledger.commit(entry.id, manifest["files"][MEASUREMENTS])
        _step("committed")
        write_sealed(staging / EXTRACT, _extract(ledger, entry))
        _step("extracted")
        os.replace(staging, place)
        sync(place.parent)
        _step("renamed")
    except (OSError, PradeError) as error:
        if staging.exists() or not place.is_dir():
            raise _stuck(staging, place, plan, error) from None
        release = _released(plan, place, ledger)
    sweep(place)
    return replace(release, path=place)


def _stuck(staging: Path, place: Path, plan: Plan, error: Exception) -> DataError:
    """What to do with noisy counts that are paid for but not yet a release."""
    if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
        return DataError(f"{place} was taken meanwhile: the release is {staging}, whole; give that folder a name")
    return DataError(
        f"the noisy counts in {staging} are paid for, but could not become {place} ({reason(error)}). Mend that and "
        "measure again, which spends nothing. Or give them up: remove that folder and measure with again=True, which "
        f"spends {plan.budget} once more"
    )


def _extract(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    """What the ledger says of this release's data set, for those who do not have the ledger."""
    statement = ledger.statement(entry.dataset)
    return {**statement.to_dict(), "entry": entry.to_dict(), "account": statement.words().splitlines()}


def _tell(progress: Progress | None, what: str, done: float, number: float) -> None:
    """Tell how far it is. An error in there would lead back to true counts, and would waste what is reserved."""
    if progress is not None:
        with suppress(Exception):
            progress(what, done, number)


def _step(name: str) -> None:
    sys.audit("prade.step", f"measure.{name}")
