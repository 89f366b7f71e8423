"""The five stages (plan, measure, estimate, sample, report), and the functions that run them in sequence.

    task, public table -> plan -> measure (spends once) -> estimate -> sample -> report

The command line, `Synthesizer` and the demonstration all call these functions, so the same task, tables, seed and noise
give the same release whichever of them is used. Each stage takes the result of the one before, so the public table is
read once and the plan is decided once. Only `measure`, which is in `prade.measuring.run`, reads private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from prade.baselines.algorithm_2 import Algorithm2
from prade.core.errors import DataError, PradeError
from prade.core.execution import EFFORT, Execution
from prade.data.public.table import PublicTable
from prade.data.read.frames import Frame, Like, check_like
from prade.estimating.levels.estimates import Estimates, estimates_of, kept_estimates
from prade.measuring.run import measure
from prade.measuring.source import refuse_early, refuse_unfit
from prade.planning.plan import Plan, public_of, rows_to_plan_with
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.ledger import Ledger
from prade.release.derived_files import KEPT_ESTIMATES, is_kept
from prade.release.release import Release
from prade.release.terms import Terms, kept_plan, need_cap, plan_beside, spending_stated
from prade.reporting.report import report
from prade.sampling.carried import carried_on, expecting_change
from prade.sampling.row_files import Output, RowFiles, write_drawn_rows
from prade.sampling.table import drawn_table, resized
from prade.tuning.stand_ins import TooSmall
from prade.tuning.tune import tune as tuned

PathName = str | PathLike[str]
OnStage = Callable[[str, Any], None]


# ---------------------------------------------------------------------- the stages


def plan(
    task: Task,
    public: Any,
    *,
    weight: str | None = None,
    tune: bool = True,
    effort: float = EFFORT,
    seconds: float | None = None,
    other_people: bool = False,
    execution: Execution = Execution(),
) -> Plan:
    """Decide what to measure, from public data only. This spends nothing.

    `public` is the table, file or files that the estimates will start from, and `weight` names the column with its
    weights; or it is the last `Release` of the same groups, whose estimates are then the prior. Its data set and unit
    must be the task's, unless `other_people` says that it is about other people. With `tune`, the tuner
    chooses the plan by rehearsal on the public table, and ``plan.expected`` has the expected error. Without it, or if
    the public table is too small for a rehearsal, the plan measures all one-way tables at the last level, and
    ``plan.expected`` is None. The tuner does as much work as `effort` says (1: what two idle cores do in a second).
    `seconds` is a safety net: neither a busy machine nor the workers of an executor change the plan before.

    >>> from prade import Task
    >>> from prade.examples import census_like
    >>> data = census_like(persons=400, places_per_state=2)
    >>> task = Task("census", data.schema, 4, levels=["STATE", "PLACE"], groups=data.groups)
    >>> plan(task, data.public, tune=False)
    Plan('census', 4 groups, 2 levels, Budget.pure('4'))
    """
    if isinstance(public, Release):
        public = carried_on(public, task, other_people=other_people)
    table = PublicTable.of(public, weight)
    rows = rows_to_plan_with(task, table)
    new = Plan.simplest(task)
    if tune:
        with suppress(TooSmall):
            new = tuned(task, rows, effort=effort, seconds=seconds, execution=execution).plan
    return expecting_change(new, table).with_public(table.hashed_files)


def estimate(
    release: Release | PathName,
    public: Any = None,
    *,
    weight: str | None = None,
    settings: Settings | None = None,
    anew: bool = False,
    execution: Execution = Execution(),
) -> Estimates:
    """Estimate the distribution of every group of a release. This spends nothing.

    The estimates are kept in the release folder, and later calls find them there. `public` is the public table that
    they start from; without it, the kept estimates are returned, or new ones start from the public files that the plan
    names. `settings` control the estimator; None means the plan's own. `anew` ignores kept estimates. A run that was
    killed goes on where it was. The workers of an executor must see the release folder.
    """
    release = _release(release)
    if public is None and settings is None and not anew and is_kept(release, KEPT_ESTIMATES):
        return kept_estimates(release)
    rows = public_of(release.plan, public, weight).rows(release.plan.schema, release.plan.groups)
    return estimates_of(release, rows, settings, anew=anew, execution=execution)


def sample(
    estimates: Estimates | Release | PathName,
    public: Any = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    groups: Mapping[str, Any] | None = None,
    weight: str | None = None,
    like: Like | None = None,
    execution: Execution = Execution(),
) -> Frame:
    """Draw synthetic rows with the values of public rows. This spends nothing.

    The same seed draws the same rows. Every group gets its estimated number of rows; `rows` sets another total, and
    `groups` selects some groups only, as in ``{"STATE": 17, "PUMA": [100, 200]}``. `public` is required if the plan
    does not name its files. The result is the same kind of table as the public one, or the kind that `like` names
    ("pandas", "polars", "pyarrow").
    """
    check_like(like or "pyarrow")
    estimates, table = _to_sample(estimates, public, weight, rows, groups, execution)
    return drawn_table(estimates, table, seed, like=like, execution=execution)


def write_sample(
    estimates: Estimates | Release | PathName,
    output: str | None = None,
    public: Any = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    groups: Mapping[str, Any] | None = None,
    weight: str | None = None,
    partitioned: bool = False,
    spreadsheet_safe: bool = False,
    execution: Execution = Execution(),
) -> RowFiles:
    """As `sample`, into a file or data set that is written batch by batch: the rows are never held whole.

    `output` is a parquet or CSV file, or a folder for a data set of parquet files: one that ends in a slash, or any
    with `partitioned`. Without it, the rows go to the release's folder, as a data set if they are more than 5 million.
    """
    release = estimates.release if isinstance(estimates, Estimates) else _release(estimates)
    where = Output.of(release, output, partitioned=partitioned, spreadsheet_safe=spreadsheet_safe)
    estimates, table = _to_sample(estimates, public, weight, rows, groups, execution)
    return write_drawn_rows(estimates, table, seed, where, execution=execution)


def _to_sample(
    estimates: Estimates | Release | PathName,
    public: Any,
    weight: str | None,
    rows: int | None,
    groups: Mapping[str, Any] | None,
    execution: Execution,
) -> tuple[Estimates, PublicTable]:
    """The estimates to draw from, with the numbers of rows asked for, and the public table that has the values."""
    release = estimates.release if isinstance(estimates, Estimates) else _release(estimates)
    table = public_of(release.plan, public, weight)
    if not isinstance(estimates, Estimates):
        estimates = estimate(release, table, execution=execution)
    return estimates if rows is None and groups is None else resized(estimates, rows, groups), table


# ---------------------------------------------------------------------- several stages in sequence


def kept_or_new_plan(
    task: Task, table: PublicTable, folder: PathName, terms: Terms, *, execution: Execution = Execution()
) -> Plan:
    """Load the plan in or beside the folder, or make a new plan and save it beside the folder.

    A tuned plan may depend on the version of prade and, where the time was up, on the machine. If a run that continues
    an interrupted one made another plan, the ledger would not recognise it and would charge for it again.
    """
    earlier = kept_plan(task, table, folder)
    if terms.method == "prade":
        if earlier is not None:
            return earlier
        new = plan(task, table, tune=terms.tune, effort=terms.effort, seconds=terms.seconds, execution=execution)
    else:
        table.decoder(task.schema)  # a table that rows cannot take values from fails here
        new = Algorithm2().plan(task, table.rows(task.schema, task.groups)).with_public(table.hashed_files)
        if earlier is not None and earlier.questions != new.questions:
            raise DataError(
                f"the plan in or beside {folder} is not Algorithm 2's: choose another folder, or the method that the "
                "plan was made with"
            )
    if earlier is None:
        new.save(plan_beside(folder))
    return earlier or new


def fit(
    task: Task,
    private: Any,
    public: Any,
    folder: PathName,
    terms: Terms,
    *,
    on_stage: OnStage = lambda stage, result: None,
    execution: Execution = Execution(),
) -> tuple[Estimates, bool]:
    """Plan, measure and estimate: the estimates, and whether the release was paid for now.

    A second call continues an interrupted one, and the ledger is charged once. ``on_stage(stage, result)`` is called
    after each stage: "plan", "measure" (with the release and whether it was paid for now) and "estimate".
    """
    if terms.method != "prade":
        raise PradeError(f"{terms.method} keeps no estimates: call synthesize, or take the method prade")
    with spending_stated():
        table = PublicTable.of(public)
        release, spent = _measured(task, private, table, folder, terms, on_stage, execution)
        estimates = estimate(release, table, execution=execution)
        on_stage("estimate", estimates)
        return estimates, spent


def _measured(
    task: Task,
    private: Any,
    table: PublicTable,
    folder: PathName,
    terms: Terms,
    on_stage: OnStage,
    execution: Execution,
) -> tuple[Release, bool]:
    """Plan and measure: the release, and whether it was paid for now."""
    with spending_stated() as spending:
        account = Ledger.of(terms.ledger)
        refuse_early(task.budget, private, table, folder, terms.weak_protection)
        refuse_unfit(task, private, folder)
        if terms.cap is None:
            need_cap(task, folder, account)
        new = kept_or_new_plan(task, table, folder, terms, execution=execution)
        on_stage("plan", new)
        if new.expected is not None and new.expected.harmful and not terms.against_advice:
            raise DataError(
                f"nothing was measured, because the rehearsal expects an error of {new.expected.error:.3f} and the "
                f"public table alone has {new.expected.prior:.3f}",
                remedy="against_advice",
            )
        release = measure(
            new,
            private,
            folder,
            account,
            cap=terms.cap,
            public=table,
            again=terms.again,
            weak_protection=terms.weak_protection,
            execution=execution,
        )
        on_stage("measure", (release, spending.paid))
        return release, spending.paid


def synthesize(
    task: Task,
    private: Any,
    public: Any,
    folder: PathName,
    terms: Terms,
    *,
    seed: int = 0,
    on_stage: OnStage = lambda stage, result: None,
    execution: Execution = Execution(),
) -> Path:
    """Run all five stages and return the path of the report.

    The folder then has the release, its estimates, the synthetic rows and the report. `on_stage` is called as in `fit`,
    and after "sample". With ``Terms(method="algorithm-2")``, the paper's Algorithm 2 plans and draws the rows; there is
    no report, because that is about prade's estimates, and the path is that of the rows.
    """
    with spending_stated():
        table = PublicTable.of(public)
        if terms.method == "algorithm-2":
            release, _ = _measured(task, private, table, folder, terms, on_stage, execution)
            drawn = Algorithm2().write_rows(release, table, seed, execution=execution)
            on_stage("sample", drawn)
            return drawn.path
        estimates, _ = fit(task, private, table, folder, terms, on_stage=on_stage, execution=execution)
        on_stage("sample", write_sample(estimates, None, table, seed=seed, execution=execution))
        return report(estimates, execution=execution)


def _release(release: Release | PathName) -> Release:
    return release if isinstance(release, Release) else Release.load(release)
