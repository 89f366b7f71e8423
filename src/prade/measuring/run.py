"""Measure: the only stage that spends budget. It takes eight steps, always in this order.

    check     the plan fits the ledger, the folder can be made, the source has the columns; no row is read
    prepare   make a hidden folder next to the release's, with the plan in it; whatever can fail should fail here
    reserve   the cost is in the ledger, durably, before the first private row is read
    count     true counts, which never leave this module's memory
    draw      the ledger records that noise is drawn; from here on there is something to release
    write     the noisy counts, then the manifest with their hashes, which seals the folder
    commit    the ledger records the hash of the noisy counts
    rename    the folder gets its final name: it is the release, complete

Whether a run fails after `reserve` may depend on one person's row, so its entry records the step and the kind of the
error. The next run of the plan into the same folder goes on with that entry, until `draw`; or it completes what was
saved, after `write`. In between, the budget is lost, so Ctrl-C is deferred from `draw` to `rename`: some moments.

Each step is announced to audit hooks as ("prade.step", "measure.<step>"), which tests use to stop a run there.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prade.core.errors import BudgetError, DataError, PradeError, Remedy
from prade.core.execution import Execution, Progress
from prade.core.files import locked, need_folder, new_locked_folder, remove_locked, replace_file
from prade.core.interrupts import held_back
from prade.data.public.table import PublicTable
from prade.data.read.tables import write_table
from prade.measuring.noise import add_noise
from prade.measuring.refusals import refuse_same_contents, refuse_same_files
from prade.measuring.source import EngineError, counts_of, open_source, planned_tally
from prade.measuring.streams import Stream
from prade.measuring.tally import Counts, Tally
from prade.planning.plan import Plan, plan_with_checked_files
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Entry
from prade.privacy.protection import refuse_weak
from prade.release.payment import Spending, need_cap, need_on_record, spending_stated
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
    sealed_text,
)
from prade.release.terms import cap_of

LIBRARIES = ("prade", "opendp", "duckdb", "numpy", "pyarrow")


def measure(
    plan: Plan,
    private: Any,
    folder: str | PathLike[str],
    ledger: Ledger | str | PathLike[str] | None = None,
    *,
    cap: Number | Budget | None = None,
    public: Any = None,
    again: bool = False,
    weak_protection: bool = False,
    execution: Execution = Execution(),
) -> Release:
    """Measure what the plan lists, once, and write the raw answers to `folder`. This spends the budget.

    `private` is a pandas, polars or pyarrow table, a file or a pattern of files, or a database address. Without
    `ledger`, the custodian's own ledger pays. If the ledger does not know the data set, `cap` (the most that may ever
    be spent on it) enters it. Other releases of the data set next to the folder must be on the ledger's record. If the
    folder already has this plan's release, the release is read and nothing is spent. `again` pays once more for a plan
    whose release was lost. `public` is the table that the estimates will start from: give it if the plan names no
    files, so that a private table that is also the public one is refused, or if the plan's files have moved or lie
    outside its folder. `weak_protection` allows a budget that hardly protects.

    >>> import pyarrow
    >>> from prade import Budget, Column, Ledger, Level, Plan, Schema, Unit, Workload
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> ages = Level("TOWN", Workload.all_marginals(schema, 1))
    >>> plan = Plan("people", schema, Budget.pure(1), Unit(1), [ages], groups={"TOWN": ["a", "b"]})
    >>> rows = pyarrow.table({"AGE": [3, 70, 80], "TOWN": ["a", "b", "elsewhere"]})
    >>> release = measure(plan, rows, "people-2026", "people.ledger", cap=1)
    >>> release.noisy[-1][0].shape, Ledger("people.ledger").remaining("people") == Budget.pure(0)
    ((2, 3), True)
    """
    with spending_stated() as spending:
        plan = plan_with_checked_files(plan, public)
        ledger, target, cap = Ledger.of(ledger), Path(folder).resolve(), cap_of(cap, plan.budget)
        public = public.source if isinstance(public, PublicTable) else public
        if cap is None:
            need_cap(plan, folder, ledger)
        if (existing := _existing(plan, target, ledger, again)) is not None:
            return existing
        told = partial(_tell, execution.progress)
        _check(plan, target, ledger, cap, again, weak_protection)
        with ExitStack() as stack:
            source = stack.enter_context(open_source(private))
            refuse_same_files(private, plan.public, public)
            tally = planned_tally(source, plan)
            staging = stack.enter_context(staging_folder(target))
            trace = stack.enter_context(traced(ledger))
            makers = _prepare(plan, staging, source.engine, execution.threads)
            with held_back():
                entry = _reserve(plan, ledger, cap, again, target, spending, trace)
            refuse_same_contents(private, plan.public, public)
            counts = _counted(plan, source, tally, told)
            with held_back():
                if (other := _start_drawing(plan, target, ledger, trace, spending)) is not None:
                    return other
                spending.pay(plan.budget, f"{ledger.path} as entry {entry.id}", target, staging)
                failure = _draw_and_write(plan, counts, staging, target, trace, makers, execution.threads, told)
                if failure is not None:  # raised here, where neither its context nor a frame leads back to a count
                    raise failure
                release = _finish(staging, target, plan, ledger)
                trace.entry = None  # an interrupt that was postponed until now does not make the run fail
                return release


# ---------------------------------------------------------------------- a release that is already paid for


def _existing(plan: Plan, target: Path, ledger: Ledger, again: bool) -> Release | None:
    """The release in the folder, or the complete one that an interrupted run left next to it."""
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            release = _released(plan, target, ledger)
            if again:
                raise DataError(f"{target} already holds a release of this plan, which is kept; choose another folder")
            return release
        sealed = [staging for staging in unfinished(target) if is_sealed(staging)]
    except OSError as error:
        raise DataError(f"{target} cannot be read ({reason(error)}): ask for permission to read it") from None
    for staging in sealed:
        try:
            manifest = read_manifest(staging)
        except DataError as error:
            raise _stuck(staging, target, plan, error) from None
        if manifest["plan"] == plan.hash:
            return _finish(staging, target, plan, ledger)
    return None


def _released(plan: Plan, target: Path, ledger: Ledger) -> Release:
    """The release in a folder, if it answers this plan and the ledger paid for it."""
    release = Release.load(target)
    if release.plan != plan:
        raise DataError(f"{target} holds the release of another plan; choose a separate folder for this one")
    _paid(read_manifest(target), target, plan, ledger)
    return replace(release, plan=plan)  # the same questions, but its settings may be newer


def _paid(manifest: Mapping[str, Any], where: Path, plan: Plan, ledger: Ledger) -> Entry:
    """The entry that paid for a folder's noisy counts; an error if the ledger has none."""
    claim = claim_of(manifest)
    entry = ledger.paid(plan.dataset, claim)
    if entry is None or entry.plan_hash != plan.hash:
        raise DataError(
            f"{ledger.path} did not pay for the noisy counts in {where}: {claim.origin} did, and if that is this "
            "ledger, then this is an old copy of it. Use the ledger that has the entry, or a new folder"
        )
    return entry


# ---------------------------------------------------------------------- check


def _check(plan: Plan, target: Path, ledger: Ledger, cap: Budget | None, again: bool, weak_protection: bool) -> None:
    """Refuse everything that can be refused without reading a row."""
    if plan.version == 1 and plan.public is not None and plan.public.sha256:
        raise DataError("the plan's hash leaves out its public files, as in version 0.9: make the plan again")
    refuse_weak(plan.budget, weak_protection)
    need_folder(target)
    need_on_record(plan, target, ledger)
    ledger.check(plan.dataset, plan.hash, plan.budget, unit=plan.unit, cap=cap, again=again, folder=target)
    _step("checked")


# ---------------------------------------------------------------------- prepare


def _prepare(plan: Plan, staging: Path, engine: str, threads: int | None) -> dict[str, Any]:
    """Write the plan and try everything else that could fail while it costs nothing; return which software was used."""
    for question in plan.questions:
        add_noise(np.zeros(1, np.int64), question.law, question.scale, threads=threads)
    try:
        counts = sum(len(plan.groupings[question.level]) * question.cells for question in plan.questions)
        need_room(counts, staging)
        plan.save(staging / PLAN)
    except OSError as error:
        raise unwritable(staging, error) from None
    except UnicodeError:
        raise PradeError("a text in the plan is not valid Unicode: correct its names") from None
    if Plan.load(staging / PLAN) != plan:
        raise PradeError("the plan changes when it is written and read again: please report this")
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    _step("prepared")
    return {"engine": engine, "versions": versions}


# ---------------------------------------------------------------------- reserve, count


def _reserve(
    plan: Plan, ledger: Ledger, cap: Budget | None, again: bool, target: Path, spending: Spending, trace: Trace
) -> Entry:
    """Spend the plan's budget in the ledger, or go on with what a run spent that failed before it drew noise."""
    terms = plan.dataset, plan.hash, plan.budget, note_of(plan)
    before = ledger.times_paid(plan.dataset, plan.hash)
    try:
        entry = ledger.reserve(*terms, unit=plan.unit, cap=cap, again=again, folder=target)
    except BudgetError:
        raise
    except BaseException:  # a disk that fails at the last moment may have recorded the entry nevertheless
        spending.doubt(plan.budget, ledger.path)
        with suppress(PradeError):
            if ledger.times_paid(plan.dataset, plan.hash) > before:
                spending.reserve(plan.budget, str(ledger.path))
            else:
                spending.pay_nothing()
        raise
    trace.entry = entry
    spending.reserve(plan.budget, f"{ledger.path} as entry {entry.id}")
    _step("reserved")
    return entry


def _counted(plan: Plan, source: Stream, tally: Tally, told: Progress) -> list[list[Counts]]:
    """The true counts of every question's parts."""
    counts = iter([each for of_level in counts_of(source, tally) for each in of_level])
    told("counting", 1, 1)
    _step("counted")
    return [[next(counts) for _ in question.parts] for question in plan.questions]


# ---------------------------------------------------------------------- draw, write


def _start_drawing(plan: Plan, target: Path, ledger: Ledger, trace: Trace, spending: Spending) -> Release | None:
    """Record that noise will be drawn. If another run of the same entry was quicker, its release is returned."""
    assert trace.entry is not None
    trace.stage = "draw"
    try:
        ledger.start_drawing(trace.entry.id)
    except PradeError:
        with suppress(PradeError):  # a ledger that cannot be read
            now = next(each for each in ledger.entries(plan.dataset) if each.id == trace.entry.id)
            if not now.resumable:  # then this run leaves no trace in it
                trace.entry = None
                spending.lose(now, ledger.path)
        if (release := _existing(plan, target, ledger, again=False)) is not None:
            return release
        raise
    return None


def _draw_and_write(
    plan: Plan,
    counts: list[list[Counts]],
    staging: Path,
    target: Path,
    trace: Trace,
    makers: Mapping[str, Any],
    threads: int | None,
    told: Progress,
) -> DataError | KeyboardInterrupt | None:
    """Draw the noise and seal the noisy counts in the folder; the true ones are gone after that, whatever happens."""
    assert trace.entry is not None
    try:
        noisy = _draw(plan, counts, threads, told)
        _step("drawn")
        trace.stage = "write"
        _write(staging, plan, noisy, trace.entry, makers)
        told("writing", 1, 1)
    except (Exception, KeyboardInterrupt) as error:
        trace.kind = type(error).__name__
        return _broken_off(staging, target, plan, error)
    finally:
        counts.clear()
    return None


def _draw(plan: Plan, counts: Sequence[Sequence[Counts]], threads: int | None, told: Progress) -> list[list[Noisy]]:
    """The counts with noise of each question's law and scale."""
    noisy = []
    for question, answers in zip(plan.questions, counts, strict=True):
        noisy.append([add_noise(part, question.law, question.scale, threads=threads) for part in answers])
        told("adding noise", len(noisy), len(plan.questions))
    return noisy


def _write(
    staging: Path, plan: Plan, noisy: Sequence[Sequence[Noisy]], entry: Entry, makers: Mapping[str, Any]
) -> None:
    """Write the noisy counts and then the manifest, which seals the folder."""
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
    staging: Path, target: Path, plan: Plan, error: Exception | KeyboardInterrupt
) -> DataError | KeyboardInterrupt:
    """The error for a run that fails after the reservation; an interrupt remains an interrupt."""
    cause = error if isinstance(error, Exception) else DataError("interrupted")
    failure = (
        _stuck(staging, target, plan, cause)
        if is_sealed(staging)
        else DataError(
            f"the noisy counts could not be written to {staging} ({reason(cause)}). Fix the cause first",
            remedy=Remedy("again", plan.budget),
        )
    )
    return failure if isinstance(error, Exception) else KeyboardInterrupt(failure)


# ---------------------------------------------------------------------- commit, rename


def _finish(staging: Path, target: Path, plan: Plan, ledger: Ledger) -> Release:
    """Commit a sealed folder and give it its name. Another run may be doing the same; the first one succeeds."""
    try:
        manifest = read_manifest(staging)
        release = Release.load(staging)
        entry = ledger.commit(_paid(manifest, staging, plan, ledger).id, manifest["files"][MEASUREMENTS])
        _step("committed")
        write_sealed(staging / EXTRACT, _extract(ledger, entry))
        _step("extracted")
        os.replace(staging, target)
        sync(target.parent)
        _step("renamed")
    except (OSError, PradeError) as error:
        if staging.exists() or not target.is_dir():
            raise _stuck(staging, target, plan, error) from None
        release = _released(plan, target, ledger)
    sweep(target)
    return replace(release, path=target, plan=plan)


def _stuck(staging: Path, target: Path, plan: Plan, error: Exception) -> DataError:
    """The error for noisy counts that are paid for but not yet a release, with what can be done about it."""
    if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
        return DataError(
            f"{target} came into use in the meantime: the complete release is in {staging}; rename that folder"
        )
    return DataError(
        f"the noisy counts in {staging} are paid for, but could not be moved to {target} ({reason(error)}). Fix this "
        "and measure again, which spends nothing. Or give them up: remove that folder",
        remedy=Remedy("again", plan.budget),
    )


def _extract(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    """The ledger's statement about this release's data set, for readers who do not have the ledger."""
    statement = ledger.statement(entry.dataset)
    return {**statement.to_dict(), "entry": entry.to_publish(), "account": statement.words().splitlines()}


def _tell(progress: Progress | None, what: str, done: float, number: float) -> None:
    """Report progress. An error in there could lead back to true counts and would waste what is reserved."""
    if progress is not None:
        with suppress(Exception):
            progress(what, done, number)


def _step(name: str) -> None:
    sys.audit("prade.step", f"measure.{name}")


# ---------------------------------------------------------------------- the hidden folder
# The manifest is written last and seals the folder. A sealed folder holds everything that was paid for, and any run may
# finish it. An unsealed folder is useless once its run has ended, and later runs remove it.


UNFINISHED = ".unfinished"
BYTES_PER_COUNT = 32  # more than a row of the file takes
SPARE_BYTES = 2**20


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A new folder next to `target`; it is removed when this block ends, unless it was sealed or renamed."""

    def make() -> Path:
        staging = target.with_name(f".{target.name}.{secrets.token_hex(8)}{UNFINISHED}")
        try:
            staging.mkdir()
        except OSError as error:
            raise unwritable(staging, error) from None
        return staging

    with ExitStack() as locks:
        staging, _ = new_locked_folder(locks, make)
        try:
            yield staging
        finally:
            if not is_sealed(staging):
                shutil.rmtree(staging, ignore_errors=True)


def need_room(counts: int, staging: Path) -> None:
    """Notice a full disk before the budget is spent."""
    needed, free = counts * BYTES_PER_COUNT + SPARE_BYTES, shutil.disk_usage(staging).free
    if free < needed:
        raise DataError(
            f"{staging.parent} has {free:,} bytes free, but the release may need {needed:,}: free some space"
        )


def unfinished(target: Path) -> list[Path]:
    """The staging folders next to `target`: real folders only, not links or pipes that have such a name."""
    if not target.parent.is_dir():
        return []
    pattern = re.compile(re.escape(f".{target.name}.") + "[0-9a-f]{16}" + re.escape(UNFINISHED))
    with os.scandir(target.parent) as entries:
        names = [each.name for each in entries if pattern.fullmatch(each.name) and each.is_dir(follow_symlinks=False)]
    return [target.with_name(name) for name in sorted(names)]


def is_sealed(staging: Path) -> bool:
    """Whether the folder holds everything that was paid for."""
    return (staging / MANIFEST).is_file()


def sweep(target: Path) -> None:
    """Remove incomplete files that killed or overtaken runs left in a release and next to it."""
    with suppress(OSError):  # leftovers do no harm
        for stray in target.glob(f".{EXTRACT}.*"):
            stray.unlink(missing_ok=True)
        for staging in unfinished(target):
            with suppress(OSError), locked(staging) as handle:
                if handle is not None and _is_abandoned(handle):
                    remove_locked(staging, handle)


def _is_abandoned(handle: int) -> bool:
    """Whether a locked folder belongs to this user and holds nothing but what a run writes before it seals."""
    starts = tuple(f".{name}." for name in (*HASHED, MANIFEST))  # names of files that are being written
    known = all(name in HASHED or name.startswith(starts) for name in os.listdir(handle))
    return known and os.fstat(handle).st_uid == os.geteuid()


def unwritable(staging: Path, error: OSError) -> DataError:
    """The error for a folder that cannot be written to, raised before any budget is spent."""
    return DataError(f"{staging} cannot be written ({reason(error)}): fix this, or choose another folder")


def reason(error: Exception) -> str:
    """The cause in a few words. Only the operating system's messages and our own are sure not to quote private data."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error.args[0]) if isinstance(error, PradeError) else type(error).__name__


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file of a release, completely or not at all, and durably: the commit that follows relies on it."""
    with replace_file(path) as temporary:
        temporary.write_text(sealed_text(content), encoding="utf-8")
    sync(path.parent)


def sync(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports it; the files themselves already are."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # some network file systems cannot; losing what was paid for would be worse
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


# ---------------------------------------------------------------------- the trace of a failure


@dataclass
class Trace:
    """What the ledger records of a run that fails: its entry, the stage, and the kind of the error if it is known."""

    entry: Entry | None = None
    stage: str = "count"
    kind: str | None = None


@contextmanager
def traced(ledger: Ledger) -> Iterator[Trace]:
    """Record a failure of the block once it has an entry. A ledger that cannot be written has the reservation."""
    trace = Trace()
    try:
        yield trace
    except BaseException as error:
        if trace.entry is not None:
            kind = trace.kind or (error.kind if isinstance(error, EngineError) else type(error).__name__)
            with suppress(PradeError), held_back():
                ledger.fail(trace.entry.id, trace.stage, kind if kind.isidentifier() else "Exception")
        raise
