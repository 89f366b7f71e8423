"""Measure: the only stage that spends budget: check, prepare, reserve, count, draw, write, commit, rename.

The page of the privacy promise says what each step does, what a run that breaks off there leaves, and how the next one
goes on ("A failure leaves a trace"). Ctrl-C is deferred from `draw` to `rename`: some moments. Each step is announced
to audit hooks as ("prade.step", "measure.<step>"), which tests use to stop a run there.
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
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prade.core.errors import BudgetError, DataError, PradeError, Remedy
from prade.core.execution import Execution
from prade.core.files import locked, need_folder, new_locked_folder, remove_locked, replace_file
from prade.core.interrupts import held_back
from prade.data.public.table import PublicTable
from prade.data.read.tables import write_table
from prade.measuring.noise import add_noise
from prade.measuring.source import (
    EngineError,
    counts_of,
    open_source,
    planned_tally,
    refuse_same_contents,
    refuse_same_files,
)
from prade.measuring.streams import Stream
from prade.measuring.tally import Counts, Tally
from prade.planning.plan import Plan, plan_with_checked_files
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.ledger.records import Claim, Entry
from prade.privacy.protection import refuse_weak
from prade.release.release import (
    EXTRACT,
    FORMAT,
    HASHED,
    MANIFEST,
    MEASUREMENTS,
    PLAN,
    Noisy,
    Release,
    file_hash,
    measurement_table,
    note_of,
    read_manifest,
    sealed_text,
)
from prade.release.terms import BEGINNING, NOTHING, Spending, cap_of, need_cap, need_on_record, spending_stated

RESERVED = (
    f"{BEGINNING}{{}} was reserved in {{}}, and nothing was released: measure the same plan into the same folder, "
    "which goes on without paying again, or give it back with `prade ledger return`"
)
LIBRARIES = ("prade", "opendp", "duckdb", "numpy", "pyarrow")  # a release names those that are installed


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
        ledger, cap = Ledger.of(ledger), cap_of(cap, plan.budget)
        run = _Run(plan, Path(folder).resolve(), ledger, spending, execution)
        public = public.source if isinstance(public, PublicTable) else public
        if cap is None:
            need_cap(plan, folder, ledger)
        if (existing := _existing(run, again)) is not None:
            return existing
        _check(run, cap, again, weak_protection)
        with ExitStack() as stack:
            source = stack.enter_context(open_source(private))
            refuse_same_files(private, plan.public, public)
            tally = planned_tally(source, plan)
            staging = stack.enter_context(staging_folder(run.target))
            stack.enter_context(_traced(run))
            makers = _prepare(run, staging, source.engine)
            with held_back():
                _reserve(run, cap, again)
            refuse_same_contents(private, plan.public, public)
            counts = _counted(run, source, tally)
            with held_back():
                if (other := _start_drawing(run, staging)) is not None:
                    return other
                failure = _draw_and_write(run, counts, staging, makers)
                if failure is not None:  # raised here, where neither its context nor a frame leads back to a count
                    raise failure
                release = _finish(run, staging)
                run.entry = None  # an interrupt that was postponed until now does not make the run fail
                return release


@dataclass
class _Run:
    """A run, and what the ledger records if it fails: its entry, the stage, and the kind of the error if known."""

    plan: Plan
    target: Path
    ledger: Ledger
    spending: Spending
    execution: Execution
    entry: Entry | None = None
    stage: str = "count"
    kind: str | None = None

    def tell(self, what: str, done: float, number: float) -> None:
        """Report progress. An error in there could lead back to true counts and would waste what is reserved."""
        with suppress(Exception):
            self.execution.tell(what, done, number)


@contextmanager
def _traced(run: _Run) -> Iterator[None]:
    """Record a failure of the block once it has an entry. A ledger that cannot be written has the reservation."""
    try:
        yield
    except BaseException as error:
        if run.entry is not None:
            kind = run.kind or (error.kind if isinstance(error, EngineError) else type(error).__name__)
            with suppress(PradeError), held_back():
                run.ledger.fail(run.entry.id, run.stage, kind if kind.isidentifier() else "Exception")
        raise


# ---------------------------------------------------------------------- a release that is already paid for


def _existing(run: _Run, again: bool = False) -> Release | None:
    """The release in the folder, or the complete one that an interrupted run left next to it."""
    target = run.target
    try:
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            release = _released(run)
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
            raise _stuck(run, staging, error) from None
        if manifest.plan == run.plan.hash:
            return _finish(run, staging)
    return None


def _released(run: _Run) -> Release:
    """The release in the folder, if it answers this plan and the ledger paid for it."""
    release = Release.load(run.target)
    if release.plan != run.plan:
        raise DataError(f"{run.target} holds the release of another plan; choose a separate folder for this one")
    _paid(run, read_manifest(run.target).claim, run.target)
    return replace(release, plan=run.plan)  # the same questions, but its settings may be newer


def _paid(run: _Run, claim: Claim, where: Path) -> Entry:
    """The entry that paid for a folder's noisy counts; an error if the ledger has none."""
    entry = run.ledger.paid(run.plan.dataset, claim)
    if entry is None or entry.plan_hash != run.plan.hash:
        raise DataError(
            f"{run.ledger.path} did not pay for the noisy counts in {where}: {claim.origin} did, and if that is this "
            "ledger, then this is an old copy of it. Use the ledger that has the entry, or a new folder"
        )
    return entry


# ---------------------------------------------------------------------- the steps


def _check(run: _Run, cap: Budget | None, again: bool, weak_protection: bool) -> None:
    """Refuse everything that can be refused without reading a row."""
    plan, target = run.plan, run.target
    if plan.version == 1 and plan.public is not None and plan.public.sha256:
        raise DataError("the plan's hash leaves out its public files, as in version 0.9: make the plan again")
    refuse_weak(plan.budget, weak_protection)
    need_folder(target)
    need_on_record(plan, target, run.ledger)
    run.ledger.check(plan.dataset, plan.hash, plan.budget, unit=plan.unit, cap=cap, again=again, folder=target)
    _step("checked")


def _prepare(run: _Run, staging: Path, engine: str) -> dict[str, Any]:
    """Write the plan and try everything else that could fail while it costs nothing; return which software was used."""
    plan = run.plan
    for question in plan.questions:
        add_noise(np.zeros(1, np.int64), question.law, question.scale, threads=run.execution.threads)
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
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):  # DuckDB is an extra
            versions[name] = version(name)
    _step("prepared")
    return {"engine": engine, "versions": versions}


def _reserve(run: _Run, cap: Budget | None, again: bool) -> None:
    """Spend the plan's budget in the ledger, or go on with what a run spent that failed before it drew noise."""
    plan, ledger, spending = run.plan, run.ledger, run.spending
    terms = plan.dataset, plan.hash, plan.budget, note_of(plan)
    before = ledger.times_paid(plan.dataset, plan.hash)
    try:
        run.entry = ledger.reserve(*terms, unit=plan.unit, cap=cap, again=again, folder=run.target)
    except BudgetError:
        raise
    except BaseException:  # a disk that fails at the last moment may have recorded the entry nevertheless
        spending.words = f"{BEGINNING}{plan.budget} may have been spent: {ledger.path} will tell, once it can be read"
        with suppress(PradeError):
            paid = ledger.times_paid(plan.dataset, plan.hash) > before
            spending.words = RESERVED.format(plan.budget, ledger.path) if paid else NOTHING
        raise
    spending.words = RESERVED.format(plan.budget, f"{ledger.path} as entry {run.entry.id}")
    _step("reserved")


def _counted(run: _Run, source: Stream, tally: Tally) -> list[list[Counts]]:
    counts = iter([each for of_level in counts_of(source, tally) for each in of_level])
    run.tell("counting", 1, 1)
    _step("counted")
    return [[next(counts) for _ in question.parts] for question in run.plan.questions]


def _start_drawing(run: _Run, staging: Path) -> Release | None:
    """Record that noise will be drawn. If another run of the same entry was quicker, its release is returned."""
    assert run.entry is not None
    run.stage = "draw"
    where = f"{run.ledger.path} as entry {run.entry.id}"
    try:
        run.ledger.start_drawing(run.entry.id)
    except PradeError:
        with suppress(PradeError):  # a ledger that cannot be read
            now = next(each for each in run.ledger.entries(run.plan.dataset) if each.id == run.entry.id)
            if not now.resumable:  # then this run leaves no trace in it
                run.entry = None
                overtaken = (
                    f"{BEGINNING}{now.cost} was reserved in {where}, for which another run draws noise: measure the "
                    "same plan into the same folder to get its release"
                )
                run.spending.words = overtaken if now.returned is None else NOTHING
        if (release := _existing(run)) is not None:
            return release
        raise
    run.spending.pay(run.plan.budget, where, run.target, staging)
    return None


def _draw_and_write(
    run: _Run, counts: list[list[Counts]], staging: Path, makers: Mapping[str, Any]
) -> DataError | KeyboardInterrupt | None:
    """Draw the noise and seal the noisy counts in the folder; the true ones are gone after that, whatever happens."""
    try:
        noisy = _draw(run, counts)
        _step("drawn")
        run.stage = "write"
        _write(run, noisy, staging, makers)
        run.tell("writing", 1, 1)
    except (Exception, KeyboardInterrupt) as error:
        run.kind = type(error).__name__
        return _broken_off(run, staging, error)
    finally:
        counts.clear()
    return None


def _draw(run: _Run, counts: Sequence[Sequence[Counts]]) -> list[list[Noisy]]:
    """The counts with noise of each question's law and scale."""
    noisy, threads = [], run.execution.threads
    for question, answers in zip(run.plan.questions, counts, strict=True):
        noisy.append([add_noise(part, question.law, question.scale, threads=threads) for part in answers])
        run.tell("adding noise", len(noisy), len(run.plan.questions))
    return noisy


def _write(run: _Run, noisy: Sequence[Sequence[Noisy]], staging: Path, makers: Mapping[str, Any]) -> None:
    """Write the noisy counts and then the manifest, which seals the folder."""
    assert run.entry is not None
    write_table(measurement_table(run.plan, noisy), staging / MEASUREMENTS)
    _step("written")
    manifest = {
        "format": FORMAT,
        "plan": run.plan.hash,
        "dataset": run.plan.dataset,
        "entry": run.entry.id,
        "head": run.entry.head and run.entry.head.to_dict(),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {name: file_hash(staging / name) for name in HASHED},
        **makers,
    }
    sync(staging)
    write_sealed(staging / MANIFEST, manifest)
    sync(staging.parent)
    _step("sealed")


def _broken_off(run: _Run, staging: Path, error: Exception | KeyboardInterrupt) -> DataError | KeyboardInterrupt:
    """The error for a run that fails after the reservation; an interrupt remains an interrupt."""
    cause = error if isinstance(error, Exception) else DataError("interrupted")
    failure = (
        _stuck(run, staging, cause)
        if is_sealed(staging)
        else DataError(
            f"the noisy counts could not be written to {staging} ({reason(cause)}). Fix the cause first",
            remedy=Remedy("again", run.plan.budget),
        )
    )
    return failure if isinstance(error, Exception) else KeyboardInterrupt(failure)


def _finish(run: _Run, staging: Path) -> Release:
    """Commit a sealed folder and give it its name. Another run may be doing the same; the first one succeeds."""
    try:
        claim = read_manifest(staging).claim
        release = Release.load(staging)
        entry = run.ledger.commit(_paid(run, claim, staging).id, claim.measurements_hash)
        _step("committed")
        statement = run.ledger.statement(entry.dataset)  # for readers who do not have the ledger
        account = {"entry": entry.to_publish(), "account": statement.words().splitlines()}
        write_sealed(staging / EXTRACT, {**statement.to_dict(), **account})
        _step("extracted")
        os.replace(staging, run.target)
        sync(run.target.parent)
        _step("renamed")
    except (OSError, PradeError) as error:
        if staging.exists() or not run.target.is_dir():
            raise _stuck(run, staging, error) from None
        release = _released(run)
    sweep(run.target)
    return replace(release, path=run.target, plan=run.plan)


def _stuck(run: _Run, staging: Path, error: Exception) -> DataError:
    """The error for noisy counts that are paid for but not yet a release, with what can be done about it."""
    if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
        return DataError(
            f"{run.target} came into use in the meantime: the complete release is in {staging}; rename that folder"
        )
    return DataError(
        f"the noisy counts in {staging} are paid for, but could not be moved to {run.target} ({reason(error)}). Fix "
        "this and measure again, which spends nothing. Or give them up: remove that folder",
        remedy=Remedy("again", run.plan.budget),
    )


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
