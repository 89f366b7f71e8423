"""The commands that make and use a release: `measure`, `estimate`, `sample` and `synthesize`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import prade
from prade.cli import options as shared
from prade.cli.main import FILE, examples, need_file, program, remark, result, wants_json
from prade.cli.options import Paths, Working
from prade.cli.plan_commands import facts_of
from prade.core.errors import DataError
from prade.core.files import need_folder

if TYPE_CHECKING:
    from prade.data.public.table import PublicTable
    from prade.planning.settings import EstimatorName
    from prade.sampling.row_files import RowFiles

TERMS = ("again", "weak_protection", "against_advice", "method", "tune", *shared.TUNING)  # of `synthesize`
OWN = ("previous", "targets_file", "tune", *shared.TUNING, "against_advice", "workers", "cluster")
EMPTY = 4  # a total within this many standard deviations of its noise may well be 0

release_folder = click.argument("folder", metavar="RELEASE", type=FILE)


# ---------------------------------------------------------------------- measure


@program.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.argument("private", type=FILE)
@click.option("-o", "--output", required=True, metavar="RELEASE", type=FILE, help="Folder to create.")
@shared.csv_options("private")
@shared.public_again
@shared.spending
@examples("  prade measure plan.toml private.parquet -o release")
def measure(plan_file: str, private: str, output: str, public: Paths, ledger_file: str | None, **terms: Any) -> None:
    """Measure the PRIVATE table once: this spends the budget.

    The command enters the cost in the ledger, counts what the PLAN lists, adds noise, and writes the RELEASE folder.
    The ledger must have the data set and its cap: see `prade ledger open`. A second run finds the release and spends
    nothing. PRIVATE is a file, a quoted pattern of files, duckdb://file.db/table, sqlite://file.db/table,
    postgres://user@host/database/table or sc://host:port/database.table.
    """
    from prade.core.execution import progress_bar
    from prade.planning.plan import plan_with_checked_files
    from prade.release.terms import spending_stated

    with spending_stated() as spending, progress_bar() as progress:
        named = shared.named_files(public)
        plan = plan_with_checked_files(prade.Plan.load(plan_file), named)
        used = shared.said_paths(plan.public or named)
        if not Path(output).exists():
            need_folder(output)
        ledger, execution = prade.Ledger.of(ledger_file), prade.Execution(progress=progress)
        release = prade.measure(plan, private, output, ledger, public=named, execution=execution, **terms)
        facts, words = _measured(release, output, ledger, spending.paid)
        result({**facts, "public": used}, words)


def _measured(release: prade.Release, output: str, ledger: prade.Ledger, spent: bool) -> tuple[dict[str, Any], str]:
    """Describe a release and its cost, as JSON and in words."""
    plan, statement = release.plan, ledger.statement(release.plan.dataset)
    if _looks_empty(release):
        remark("All groups look empty: no total differs from 0 by more than the noise. Was this the right table?")
    left = statement.remaining
    facts = {
        "release": output,
        "dataset": plan.dataset,
        "plan": release.plan.hash,
        "spent": plan.budget.to_dict() if spent else None,
        "private_table_read": spent,
        "remaining": left.to_dict(),
        "ledger": str(ledger.path),
        "head": statement.head.to_dict(),
        "promise": plan.promise(),
    }
    price = f"spent {plan.budget}"
    if not spent:
        price = (
            "nothing was spent, because this folder has the release of this plan. That release was used; the private "
            "table given now was not looked at"
        )
    return facts, f"{output}: {price}\n{left} left for {plan.dataset!r} in {ledger.path}\n{plan.promise()}"


def _looks_empty(release: prade.Release) -> bool:
    """Whether the noise could explain the total of every level. This reads raw answers only, so it costs nothing."""
    explained = []
    for level, grouping in enumerate(release.plan.groupings):
        with suppress(DataError):  # the totals of this level were not measured
            totals, sd = release.totals(level)
            explained.append(totals.sum() <= EMPTY * sd * len(grouping) ** 0.5)
    return bool(explained) and all(explained)


# ---------------------------------------------------------------------- estimate, sample


@program.command()
@release_folder
@shared.public_again
@click.option(
    "--estimator",
    type=click.Choice(["map", "two-stage", "ide"]),
    help="map weights answers by their noise; two-stage and ide are the paper's. [default: the plan's]",
)
@shared.worker_options
@examples(
    "  prade estimate release\n  prade estimate release --workers 8\n"
    "  prade estimate release --cluster tcp://10.0.0.1:8786"
)
def estimate(folder: str, public: Paths, estimator: EstimatorName | None, work: Working) -> None:
    """Estimate every group of a RELEASE.

    The estimates replace any earlier ones in the release folder, and `sample` and `answer` use them. A run that was
    killed goes on where it was. This command spends nothing.
    """
    from collections import Counter

    release = prade.Release.load(folder)
    table, used = shared.public_table(release.plan, public)
    estimates = _estimates(release, table, work, estimator, anew=_damaged(release))
    level, groups, rows = estimates.plan.levels[-1].name, len(estimates.totals), float(estimates.totals.sum())
    status = dict(Counter(each.status for each in estimates.made).most_common())
    groups_by_status = ", ".join(f"{number} {name}" for name, number in status.items())
    figures = {"level": level, "groups": groups, "rows": rows, "status": status}
    result(
        {"release": folder, "public": used, **figures},
        f"{level}: {groups:,} groups, {rows:,.0f} rows ({groups_by_status})",
    )


def _damaged(release: prade.Release) -> bool:
    """Whether the folder's estimates have changed since they were written; if so, remark that they are replaced."""
    from prade.release.derived_files import KEPT_ESTIMATES, check_kept, is_kept

    try:
        if is_kept(release, KEPT_ESTIMATES):
            check_kept(release, KEPT_ESTIMATES)
    except DataError:
        remark("The estimates in the folder are damaged; they will be replaced.")
        return True
    return False


def _estimates(
    release: prade.Release, public: PublicTable, work: Working, by: EstimatorName | None = None, anew: bool = False
) -> prade.Estimates:
    """Estimate every group, starting from this public table."""
    _need_writable_estimates(release, anew or by is not None)
    settings = release.plan.settings or prade.Settings()
    settings = settings if by is None else replace(settings, estimator=by)
    with work as execution:
        return prade.estimate(release, public, settings=settings, anew=anew, execution=execution)


def _need_writable_estimates(release: prade.Release, anew: bool = False) -> None:
    """Check that estimates can be written to the release folder, before they are made."""
    from prade.release.derived_files import ESTIMATES, KEPT_ESTIMATES, is_kept

    if anew or not is_kept(release, KEPT_ESTIMATES):
        need_file(release.path / ESTIMATES)


@program.command()
@release_folder
@shared.public_again
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same rows.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="File to write, .parquet or .csv, or a folder for a data set, with / at its end. "
    "[default: RELEASE/synthetic.parquet, with more than 5 million rows RELEASE/synthetic/]",
)
@click.option("--partitioned", is_flag=True, help="Write a data set with a folder for each group of the first level.")
@click.option("--spreadsheet-safe", is_flag=True, help="Put ' before CSV text that begins with = + - @: no formulas.")
@shared.worker_options
@examples("  prade sample release --seed 1 -o synthetic.csv\n  prade sample release --partitioned")
def sample(folder: str, public: Paths, seed: int, output: str | None, work: Working, **form: Any) -> None:
    """Draw synthetic rows from a RELEASE.

    Every group gets its estimated number of rows. Each row has values of public rows, and the command says how many
    have all values of one public row. A run that was killed goes on where it was. This command spends nothing.
    """
    from prade.pipeline import write_sample
    from prade.sampling.row_files import Output

    release = prade.Release.load(folder)
    target = Output.of(release, output, **form)
    need_folder(release.path / "synthetic" if target is None else target.path)  # fail before the work
    _need_writable_estimates(release)
    table, used = shared.public_table(release.plan, public)
    with work as execution:
        written = write_sample(release, output, table, seed=seed, execution=execution, **form)
    facts, words = _sampled(written)
    result({**facts, "public": used}, words)


def _sampled(written: RowFiles) -> tuple[dict[str, Any], str]:
    from prade.data.read.files import copies_in_words

    path = f"{written.path}/" if written.path.is_dir() else str(written.path)
    facts = {"file": path, "rows": written.rows, "columns": written.columns, "copied": written.copied}
    words = f"{path}: {written.rows:,} rows, {len(written.columns)} columns\n{copies_in_words(written.copied)}"
    return facts, words


def estimates_for_reading(folder: str, public: Paths) -> prade.Estimates:
    """Return the estimates in a release folder; make them if there are none, or if other public files are given."""
    from prade.release.derived_files import KEPT_ESTIMATES, is_kept

    release = prade.Release.load(folder)
    if is_kept(release, KEPT_ESTIMATES) and not public:
        return prade.estimate(release)
    return _estimates(release, shared.public_table(release.plan, public)[0], shared.working())


# ---------------------------------------------------------------------- all five stages


@program.command()
@click.argument("private", type=FILE)
@shared.planning
@click.option("-o", "--output", required=True, metavar="RELEASE", type=FILE, help="Folder to create.")
@shared.csv_options("private", "public", "groups_file")
@shared.spending
@click.option("--seed", default=0, show_default=True, help="Seed of the synthetic rows.")
@click.option("--against-advice", is_flag=True, help="Measure even if the public table alone is expected to be better.")
@click.option(
    "--method",
    type=click.Choice(["prade", "algorithm-2"]),
    default="prade",
    show_default=True,
    help="prade's own method, or the paper's Algorithm 2 as published, for comparison, without a report.",
)
@shared.worker_options
@examples(
    "  prade synthesize private.parquet --schema schema.toml --public public.parquet --groups places.csv \\\n"
    "      --levels STATE,PUMA --epsilon 1 -o release"
)
def synthesize(private: str, output: str, ledger_file: str | None, seed: int, work: Working, **options: Any) -> None:
    """Run all five stages: this spends the budget.

    The stages are plan, measure, estimate, sample and report. The plan is kept beside the folder as RELEASE.plan.toml.
    A run after an interruption continues with this plan, and the ledger is charged once.
    """
    from prade.pipeline import synthesize as run_all
    from prade.planning.task import recurring_names
    from prade.release.terms import Terms, spending_stated

    show = remark if wants_json() else click.echo  # with --json, standard output has one value only
    facts: dict[str, Any] = {}

    def show_stage(stage: str, outcome: Any) -> None:
        if stage == "plan":
            facts.update(facts_of(outcome))
            if terms.tune and own:
                remark(outcome.advice)
            show(outcome.describe())
        elif stage == "measure":
            release_facts, words = _measured(outcome[0], output, ledger, outcome[1])
            facts.update(release_facts)
            show(words)
        elif stage == "sample":
            facts["synthetic"], words = _sampled(outcome)
            show(words)

    with spending_stated():
        stated = {name: options.pop(name) for name in TERMS}
        own = stated["method"] == "prade"
        if not own:
            _need_no_option_of_prade()
        need_folder(output)
        task, table = shared.task_of(**options)
        for sentence in recurring_names(task.groups, task.levels):
            remark(sentence)
        ledger = prade.Ledger.of(ledger_file)
        terms = Terms(ledger, **stated)
        with work as execution:
            last = run_all(task, private, table, output, terms, seed=seed, on_stage=show_stage, execution=execution)
        facts |= {"method": terms.method, "report": str(last) if own else None}
        without = "Planned and drawn by Algorithm 2 of the paper, not by prade's own method, so there is no report"
        result(facts, str(last) if own else without)


def _need_no_option_of_prade() -> None:
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in OWN and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            name = (option.secondary_opts or option.opts)[0]
            raise click.UsageError(f"{name} is for prade's own method: leave it out, or leave out --method")
