"""The five stages (plan, measure, estimate, sample, report), and the functions that run them in sequence.

    task, public table -> plan -> measure (spends once) -> estimate -> sample -> report

The command line, `Synthesizer` and the demonstration all call these functions, so the same task, tables, seed and noise
give the same release whichever of them is used. Each stage takes the result of the one before, so each table is read
once and the plan is built once. Only `measure` reads private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.numbers import exact
from prade.core.progress import Progress
from prade.core.threads import cores
from prade.data.declared_types import Frame, Like, check_like
from prade.data.public_table import PublicTable
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.kept_estimates import estimates_of, kept_estimates
from prade.measuring.public_overlap import refuse_public
from prade.measuring.run import measure as run_measure
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.protection import refuse_weak
from prade.release.derived_files import KEPT_ESTIMATES, is_kept, write_rows
from prade.release.file_names import SYNTHETIC
from prade.release.release import PLAN, Release
from prade.release.spending import spending_stated
from prade.release.unrecorded_releases import need_on_record, not_entered
from prade.reporting.report import write_report
from prade.sampling.improve import PASSES
from prade.sampling.sizes import resized
from prade.sampling.table import drawn_table
from prade.tuning.stand_ins import TooSmall
from prade.tuning.tune import tune as tuned

PathName = str | PathLike[str]
NOT_REHEARSED = (
    "The plan was not rehearsed: nobody asked for it, or there are too few public rows. Its error is unknown."
)


# ---------------------------------------------------------------------- the five stages


def plan(
    task: Task,
    public: Any,
    *,
    weight: str | None = None,
    tune: bool = True,
    seconds: float = 120,
    progress: Progress | None = None,
) -> Plan:
    """Decide what to measure, from public data only. This spends nothing.

    `public` is the table, file or files that the estimates will start from, and `weight` names the column with its
    weights. With `tune`, the tuner chooses the plan by rehearsal on the public table, in about `seconds`, and
    ``plan.expected`` has the expected error. Without it, or if the public table is too small for a rehearsal, the plan
    measures all one-way tables at the last level, and ``plan.expected`` is None.

    >>> from prade import Task
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=400, places_per_state=2)
    >>> task = Task("census", data.schema, 4, levels=["STATE", "PLACE"], groups=data.groups)
    >>> plan(task, data.public, tune=False)
    Plan('census', 4 groups, 2 levels, Budget.pure('4'))
    """
    table = PublicTable.of(public, weight)
    # before long rehearsals: a table that does not fit fails here, and so does one that `sample` takes no values from
    rows = obeying(table.rows(task.schema, task.groups), task.invariants)
    table.decoder(task.schema)
    made = Plan.simplest(task)
    if tune:
        with suppress(TooSmall):
            made = tuned(task, rows, seconds=seconds, progress=progress).plan
    return made.with_public(table.hashed_files)


def measure(
    plan: Plan,
    private: Any,
    folder: PathName,
    ledger: Ledger | PathName | None = None,
    *,
    cap: Number | Budget | None = None,
    public: Any = None,
    again: bool = False,
    weak_protection: bool = False,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Measure what the plan lists, once, and write the raw answers to `folder`. This spends the budget.

    `private` is a pandas, polars or pyarrow table, a file or a pattern of files, or a database address. Without
    `ledger`, the custodian's own ledger pays. If the ledger does not know the data set, `cap` (the most that may ever
    be spent on it) enters it. If the folder already has this plan's release, the release is read and nothing is spent.
    `again` pays once more for a plan whose release was lost. `public` is the table that the estimates will start from;
    give it if the plan does not name its files, so that a private table that is also the public one is refused.
    `weak_protection` allows a budget that hardly protects. `memory_limit` (such as "1GiB") is how much memory the
    embedded DuckDB may take to count files; rows beyond it go to a private temporary folder.
    """
    with spending_stated():
        account, cap_budget = Ledger.of(ledger), _cap(cap, plan.budget)
        if cap_budget is None and not account.knows(plan.dataset):
            need_on_record(plan, Path(folder).resolve(), account)
            raise not_entered(plan, account)
        public = public.source if isinstance(public, PublicTable) else public
        terms = {"public": public, "again": again, "weak_protection": weak_protection, "memory_limit": memory_limit}
        return run_measure(plan, private, folder, account, cap=cap_budget, threads=threads, progress=progress, **terms)


def estimate(
    release: Release | PathName,
    public: Any = None,
    *,
    weight: str | None = None,
    settings: Settings | None = None,
    anew: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Estimate the distribution of every group of a release. This spends nothing.

    The estimates are kept in the release folder, and later calls find them there. `public` is the public table that
    they start from; without it, the kept estimates are returned, or new ones start from the public files that the plan
    names. `settings` control the estimator; None means the plan's own. `anew` ignores kept estimates.
    """
    release = _release(release)
    if public is None and settings is None and not anew and is_kept(release, KEPT_ESTIMATES):
        return kept_estimates(release)
    rows = public_of(release, public, weight).rows(release.plan.schema, release.plan.groups)
    threads = cores() if threads is None else threads
    return estimates_of(release, rows, settings, threads=threads, anew=anew, progress=progress)


def sample(
    estimates: Estimates | Release | PathName,
    public: Any = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    groups: Mapping[str, Any] | None = None,
    weight: str | None = None,
    like: Like | None = None,
    passes: int = PASSES,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Frame:
    """Draw synthetic rows with the values of public rows. This spends nothing.

    The same seed draws the same rows. Every group gets its estimated number of rows; `rows` sets another total, and
    `groups` selects some groups only, as in ``{"STATE": 17, "PUMA": [100, 200]}``. `public` is required if the plan
    does not name its files. The result is the same kind of table as the public one, or the kind that `like` names
    ("pandas", "polars", "pyarrow"). Each of the `passes` brings the two-way tables of the rows closer to
    the estimated ones.
    """
    check_like(like or "pyarrow")
    release = estimates.release if isinstance(estimates, Estimates) else _release(estimates)
    table = public_of(release, public, weight)
    if not isinstance(estimates, Estimates):
        estimates = estimate(release, table, threads=threads, progress=progress)
    if rows is not None or groups is not None:
        estimates = resized(estimates, rows, groups)
    threads = cores() if threads is None else threads
    return drawn_table(estimates, table, seed, passes=passes, threads=threads, like=like, progress=progress)


def report(
    release: Release | PathName,
    path: PathName | None = None,
    *,
    truth: Any = None,
    geojson: PathName | None = None,
    geojson_key: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write one HTML page about a release that has estimates and synthetic rows, and return its path.

    Without `path`, the page is written to the release folder. With `truth`, the true rows, the page also compares the
    release with them; such a page is not private, and is written beside the folder. `geojson` is a file with outlines
    of the groups for a map, and `geojson_key` names the property that identifies the group.
    """
    outlines: dict[str, Any] = {"geojson": geojson, "geojson_key": geojson_key}
    return write_report(_release(release), path, truth=truth, threads=threads, progress=progress, **outlines)


# ---------------------------------------------------------------------- several stages in sequence


@dataclass(frozen=True)
class Fitted:
    """The results of planning, measuring and estimating; `spent` is False if the folder already had the release."""

    plan: Plan
    release: Release
    estimates: Estimates
    public: PublicTable
    spent: bool


@dataclass(frozen=True)
class Terms:
    """The options of a run other than its task and tables: who pays, how the plan is chosen, what is allowed."""

    ledger: Ledger | PathName | None = None
    cap: Number | Budget | None = None
    tune: bool = True
    seconds: float = 120
    again: bool = False
    weak_protection: bool = False
    against_advice: bool = False
    ask_cap: Callable[[Task, Ledger], Budget] | None = None  # to ask a person for the cap of a new data set


OnStage = Callable[[str, Any], None]


def _ignore(stage: str, result: Any) -> None:
    pass


def kept_or_new_plan(task: Task, table: PublicTable, folder: PathName, terms: Terms, progress: Progress | None) -> Plan:
    """Load the plan in or beside the folder, or make a new plan and save it beside the folder.

    A tuned plan depends on how much the tuner could try in its time. If a run that continues an interrupted one made
    another plan, the ledger would not recognise it and would charge for it again.
    """
    if (kept := kept_plan(task, table, folder)) is not None:
        return kept
    made = plan(task, table, tune=terms.tune, seconds=terms.seconds, progress=progress)
    made.save(plan_beside(folder))
    return made


def fit(
    task: Task,
    private: Any,
    public: Any,
    folder: PathName,
    terms: Terms | None = None,
    *,
    on_stage: OnStage = _ignore,
    progress: Progress | None = None,
) -> Fitted:
    """Plan, measure and estimate. A second call continues an interrupted one, and the ledger is charged once.

    ``on_stage(stage, result)`` is called after each stage: "plan", "measure" (with the release and whether it was paid
    for now) and "estimate".
    """
    with spending_stated() as spending:
        terms, table = terms or Terms(), PublicTable.of(public)
        account = Ledger.of(terms.ledger)
        refuse_early(task.budget, private, table, folder, terms.weak_protection)
        terms = _with_cap(terms, task, folder, account)
        made = kept_or_new_plan(task, table, folder, terms, progress)
        on_stage("plan", made)
        if made.expected is not None and made.expected.harmful and not terms.against_advice:
            raise DataError(
                f"nothing was measured, because the rehearsal expects an error of {made.expected.error:.3f} and the "
                f"public table alone has {made.expected.prior:.3f}",
                remedy="against_advice",
            )
        release = measure(
            made,
            private,
            folder,
            account,
            cap=terms.cap,
            public=table,
            again=terms.again,
            weak_protection=terms.weak_protection,
            progress=progress,
        )
        on_stage("measure", (release, spending.paid))
        estimates = estimate(release, table, progress=progress)
        on_stage("estimate", estimates)
        return Fitted(made, release, estimates, table, spending.paid)


def synthesize(
    task: Task,
    private: Any,
    public: Any,
    folder: PathName,
    terms: Terms | None = None,
    *,
    seed: int = 0,
    on_stage: OnStage = _ignore,
    progress: Progress | None = None,
) -> Path:
    """Run all five stages and return the path of the report.

    The folder then has the release, its estimates, the synthetic rows and the report. `on_stage` is called as in `fit`,
    and after "sample".
    """
    with spending_stated():
        fitted = fit(task, private, public, folder, terms, on_stage=on_stage, progress=progress)
        rows = sample(fitted.estimates, fitted.public, seed=seed, like="pyarrow", progress=progress)
        keep_rows(rows, fitted.release)
        on_stage("sample", rows)
        return report(fitted.release, progress=progress)


def keep_rows(rows: Any, release: Release) -> Path:
    """Write synthetic rows and their checksum to the release folder, and return the path of the rows."""
    path = release.path / SYNTHETIC
    write_rows(rows, path, release)
    return path


# ---------------------------------------------------------------------- plans, public tables and caps


def plan_beside(folder: PathName) -> Path:
    """Return the path where the plan is kept until the folder exists: FOLDER.plan.toml."""
    return Path(f"{Path(folder).absolute()}.plan.toml")


def saved_plan(folder: PathName) -> Path | None:
    """Return the path of the plan in or beside a release folder, if there is one."""
    return next((file for file in (Path(folder) / PLAN, plan_beside(folder)) if file.exists()), None)


def kept_plan(task: Task, table: PublicTable, folder: PathName) -> Plan | None:
    """Load the plan in or beside a release folder, if there is one. It must be for the same task and public files."""
    if (path := saved_plan(folder)) is None:
        return None
    made = Plan.load(path)
    if (different := made.task.differs_from(task)) is not None:
        raise DataError(
            f"{path} was made with another {different}: use the one it was made with, or choose another folder"
        )
    if made.public is not None and table.hashed_files is not None:
        made.public.moved_to(table.hashed_files)  # refuses other files
    return made.with_public(table.hashed_files)


def refuse_early(budget: Budget, private: Any, table: PublicTable, folder: PathName, weak_protection: bool) -> None:
    """Refuse what `measure` would refuse before anything reads the public table, which may be the private one.

    A run that continues with a kept plan does not rehearse, so `measure` refuses in time.
    """
    if saved_plan(folder) is None:
        refuse_weak(budget, weak_protection)
        refuse_public(private, table.source)


def public_of(release: Release, public: Any = None, weight: str | None = None) -> PublicTable:
    """Return the public table that the caller gives, or the one in the files that the release's plan names."""
    files = release.plan.public
    if public is None:
        if files is None:
            raise DataError("the release does not name its public files", remedy="public")
        return PublicTable(files, weight)
    table = PublicTable.of(public, weight or (None if files is None else files.weight))
    if files is not None and table.hashed_files is not None:
        moved = files.moved_to(table.hashed_files)  # raises an error if the files are not the plan's
        return table if table.hashed_files.csv == moved.csv else PublicTable(moved, table.weight)
    return table


def _with_cap(terms: Terms, task: Task, folder: PathName, account: Ledger) -> Terms:
    """Add a cap to the terms if the ledger does not know the data set: ask a person for it, or refuse."""
    if terms.cap is not None or account.knows(task.dataset):
        return terms
    need_on_record(task, Path(folder).resolve(), account)
    if terms.ask_cap is None:
        raise not_entered(task, account)
    return replace(terms, cap=terms.ask_cap(task, account))


def _release(release: Release | PathName) -> Release:
    return release if isinstance(release, Release) else Release.load(release)


def _cap(cap: Number | Budget | None, budget: Budget) -> Budget | None:
    """Convert a cap to the budget's kind; a number is an epsilon or a rho."""
    if cap is None or isinstance(cap, Budget):
        return cap
    if budget.kind == "approx":
        raise PradeError(f"cap is {cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)")
    return Budget(budget.kind, (exact(cap, "the cap"),))
