"""The five stages, plan, measure, estimate, sample and report, and the one way to run them after each other.

    task, public table -> plan -> measure (spends, once) -> estimate -> sample -> report

The command line, `Synthesizer` and the demonstration call these functions and nothing below them, so the same task,
tables, seed and noise give the same release, however it is made. Each stage takes what the one before returned: a table
is read once, a plan is built once. Only `measure` reads private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.numbers import exact
from prade.core.progress import Progress
from prade.core.threads import cores
from prade.data.decode import Like
from prade.data.public_table import PublicTable
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.kept_estimates import estimates_of, kept_estimates
from prade.measuring.public_overlap import refuse_public
from prade.measuring.run import measure as run_measure
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.protection import refuse_weak
from prade.release.derived_files import KEPT_ESTIMATES, is_kept, write_rows
from prade.release.file_names import SYNTHETIC
from prade.release.release import MANIFEST, PLAN, Release
from prade.release.unrecorded_releases import need_on_record, not_entered
from prade.reporting.report import write_report
from prade.sampling.improve import PASSES
from prade.sampling.sizes import resized
from prade.sampling.table import drawn_table
from prade.tuning.tune import tune as tuned

PathName = str | PathLike[str]
NOT_REHEARSED = "The plan was not rehearsed: which error to expect is not known."


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
    """Decide what to ask of the private table, from public data only; nothing is spent.

    `public` is the table, file or files that the estimates will start from, `weight` a column of its weights. With
    `tune` the plan is chosen by rehearsal on the public table, in about `seconds`, and ``plan.expected`` says which
    error to expect; without, it asks for all one-way tables of the last level.

    >>> from prade import Task
    >>> from prade.data.invented import census_like
    >>> data = census_like(persons=400, places_per_state=2)
    >>> task = Task("census", data.schema, 4, levels=["STATE", "PLACE"], groups=data.groups)
    >>> plan(task, data.public, tune=False)
    Plan('census', 4 groups, 2 levels, Budget.pure('4'))
    """
    table = PublicTable.of(public, weight)
    rows = table.rows(task.schema, task.groups)  # says what does not fit before anything takes long
    made = tuned(task, rows, seconds=seconds, progress=progress).plan if tune else Plan.simplest(task)
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
    threads: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Ask the private table what the plan says, once, and keep the noisy answers in `folder`: this spends the budget.

    `private` is a pandas, polars or pyarrow table, a file or a glob of files, or a database address. The ledger is the
    custodian's own where none is given; it must know the data set, or `cap` (the most that may ever be spent on it)
    enters it. A folder that has this plan's release already is read, and nothing is spent. `again` pays once more for a
    plan whose release was lost. `public` is the table that the estimates will start from, where the plan does not name
    its files: a private table that is public is refused. `weak_protection` allows a budget that hardly protects.
    """
    account, most = Ledger.of(ledger), _cap(cap, plan.budget)
    if most is None and not account.knows(plan.dataset):
        need_on_record(plan, Path(folder).resolve(), account)
        raise not_entered(plan, account)
    public = public.source if isinstance(public, PublicTable) else public
    terms = {"public": public, "again": again, "weak_protection": weak_protection}
    return run_measure(plan, private, folder, account, cap=most, threads=threads, progress=progress, **terms)


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
    """The distribution of every group of a release; nothing is spent.

    The estimates are kept in the release's folder and found there again. `public` is the public table that they start
    from; without it, the folder's own estimates are used, or the public files that the plan names. `settings` say how
    to estimate, the plan's own when None. `anew` makes new estimates without a look at those that are kept.
    """
    found = _release(release)
    if public is None and settings is None and not anew and is_kept(found, KEPT_ESTIMATES):
        return kept_estimates(found)
    rows = public_of(found, public, weight).rows(found.plan.schema, found.plan.groups)
    threads = cores() if threads is None else threads
    return estimates_of(found, rows, settings, threads=threads, anew=anew, progress=progress)


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
) -> Any:
    """Synthetic rows with values like the public table's; nothing is spent, and the same seed draws the same rows.

    Every group gets its estimated number of rows; `rows` asks for another number in all, `groups` for some groups only
    (``{"STATE": 17, "PUMA": [100, 200]}``). `public` is needed where the plan does not name its files. The result is a
    table of the public table's kind; `like` ("pandas", "polars", "pyarrow") asks for another. `passes` of improvement
    bring the rows' two-way tables nearer to the estimates'.
    """
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

    The page goes into the release's folder where no `path` is given. With `truth`, the true rows, it also says how good
    the release is; that page is not private and goes beside the folder. `geojson` has the groups' outlines for a map.
    """
    outlines: dict[str, Any] = {"geojson": geojson, "geojson_key": geojson_key}
    return write_report(_release(release), path, truth=truth, threads=threads, progress=progress, **outlines)


# ---------------------------------------------------------------------- one after the other


@dataclass(frozen=True)
class Fitted:
    """What planning, measuring and estimating gave; `spent` is False where the release was there already."""

    plan: Plan
    release: Release
    estimates: Estimates
    public: PublicTable
    spent: bool


@dataclass(frozen=True)
class Terms:
    """How a run is made, apart from its task and tables: who pays, how the plan is chosen, what is allowed."""

    ledger: Ledger | PathName | None = None
    cap: Number | Budget | None = None
    tune: bool = True
    seconds: float = 120
    again: bool = False
    weak_protection: bool = False
    against_advice: bool = False
    ask_cap: Callable[[Task, Ledger], Budget] | None = None  # asks a person for the cap of a new data set


Told = Callable[[str, Any], None]


def _nothing(stage: str, result: Any) -> None:
    pass


def kept_or_new_plan(task: Task, table: PublicTable, folder: PathName, terms: Terms, progress: Progress | None) -> Plan:
    """The plan in or beside the folder, or a new one, which is kept beside it.

    A tuned plan depends on how far the tuner came. If a run that goes on made another one, the ledger would not know
    it, and would be charged a second time.
    """
    if (kept := kept_plan(task, folder)) is not None:
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
    told: Told = _nothing,
    progress: Progress | None = None,
) -> Fitted:
    """Plan, measure and estimate. A run that broke off goes on where it was, and pays once.

    ``told(stage, result)`` hears of each stage when it is done: "plan", "measure", "estimate".
    """
    terms, table = terms or Terms(), PublicTable.of(public)
    account = Ledger.of(terms.ledger)
    if not (Path(folder) / MANIFEST).exists():  # what measuring would refuse, before rehearsals read a private file
        refuse_weak(task.budget, terms.weak_protection)
        refuse_public(private, table.source)
        terms = _with_cap(terms, task, folder, account)
    made = kept_or_new_plan(task, table, folder, terms, progress)
    told("plan", made)
    if made.expected is not None and made.expected.harmful and not terms.against_advice:
        raise DataError(
            f"nothing was measured: the rehearsal expects an error of {made.expected.error:.3f}, and the public table "
            f"alone has {made.expected.prior:.3f}",
            remedy="against_advice",
        )
    paid = account.times_paid(made.dataset, made.hash)
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
    spent = account.times_paid(made.dataset, made.hash) > paid
    told("measure", (release, spent))
    estimates = estimate(release, table, progress=progress)
    told("estimate", estimates)
    return Fitted(made, release, estimates, table, spent)


def synthesize(
    task: Task,
    private: Any,
    public: Any,
    folder: PathName,
    terms: Terms | None = None,
    *,
    seed: int = 0,
    told: Told = _nothing,
    progress: Progress | None = None,
) -> Path:
    """All five stages; the folder then has the release, its estimates, synthetic rows and the page, which is returned.

    `told` hears of "plan", "measure", "estimate" and "sample".
    """
    fitted = fit(task, private, public, folder, terms, told=told, progress=progress)
    rows = sample(fitted.estimates, fitted.public, seed=seed, like="pyarrow", progress=progress)
    keep_rows(rows, fitted.release)
    told("sample", rows)
    return report(fitted.release, progress=progress)


def keep_rows(rows: Any, release: Release) -> Path:
    """Write synthetic rows into the release's folder, with their checksum; where they are then."""
    path = release.path / SYNTHETIC
    write_rows(rows, path, release)
    return path


# ---------------------------------------------------------------------- what was given, as a value


def plan_beside(folder: PathName) -> Path:
    """Where the plan is kept before the folder is there: FOLDER.plan.toml."""
    return Path(f"{Path(folder).absolute()}.plan.toml")


def kept_plan(task: Task, folder: PathName) -> Plan | None:
    """The plan in or beside a release's folder, if there is one; it must be for the same task."""
    path = next((file for file in (Path(folder) / PLAN, plan_beside(folder)) if file.exists()), None)
    if path is None:
        return None
    made = Plan.load(path)
    if (different := made.task.differs_from(task)) is not None:
        raise DataError(f"{path} was made with another {different}: give what it was made with, or another folder")
    return made


def public_of(release: Release, public: Any = None, weight: str | None = None) -> PublicTable:
    """The public table that is given now, or the files that the release's plan names."""
    files = release.plan.public
    if public is None:
        if files is None:
            raise DataError("the release does not say where its public table is", remedy="public")
        return PublicTable(files, weight)
    table = PublicTable.of(public, weight or (None if files is None else files.weight))
    if files is not None and table.hashed_files is not None:
        files.moved_to(table.hashed_files)  # refuses other files
    return table


def _with_cap(terms: Terms, task: Task, folder: PathName, account: Ledger) -> Terms:
    """The terms with a cap for a data set that the ledger does not know yet: asked for, or refused."""
    if terms.cap is not None or account.knows(task.dataset):
        return terms
    need_on_record(task, Path(folder).resolve(), account)
    if terms.ask_cap is None:
        raise not_entered(task, account)
    return replace(terms, cap=terms.ask_cap(task, account))


def _release(release: Release | PathName) -> Release:
    return release if isinstance(release, Release) else Release.load(release)


def _cap(cap: Number | Budget | None, budget: Budget) -> Budget | None:
    """A cap in the kind of a budget; a number is one epsilon, or one rho."""
    if cap is None or isinstance(cap, Budget):
        return cap
    if budget.kind == "approx":
        raise PradeError(f"cap is {cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)")
    return Budget(budget.kind, (exact(cap, "the cap"),))
