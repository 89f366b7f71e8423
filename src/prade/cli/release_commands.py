"""The commands that measure, and those that work on a release: estimate, sample, answer, synthesize."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.console import FILE, need_file, need_folder, text_table
from prade.cli.ledger_commands import Paying, asked_cap, at_a_terminal, paying_for
from prade.cli.main import examples, prade, remark, result
from prade.cli.planning_commands import (
    advice_of,
    as_json,
    columns_of,
    facts_of,
    planning,
    public_again,
    public_files,
    spending,
    task_of,
)
from prade.core.errors import DataError
from prade.release.file_names import SYNTHETIC

if TYPE_CHECKING:
    from prade.data.public_files import PublicFiles
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.planning.settings import EstimatorName
    from prade.privacy.ledger import Ledger
    from prade.release.release import Release

EMPTY = 4  # standard deviations of its noise that a number of people must exceed to be one

release_folder = click.argument("release_folder", metavar="RELEASE", type=FILE)


# ---------------------------------------------------------------------- measure


@prade.command()
@click.argument("plan_file", metavar="PLAN", type=FILE)
@click.argument("private", type=FILE)
@click.option("-o", "--output", required=True, metavar="RELEASE", type=FILE, help="Folder to make.")
@spending
@as_json
@examples("  prade measure plan.toml private.parquet -o release")
def measure(plan_file: str, private: str, output: str, ledger_file: str | None, as_json: bool, **terms: bool) -> None:
    """Ask the PRIVATE table, once: this spends.

    Counts what the PLAN says, adds noise, writes the RELEASE folder, and enters the cost in the ledger, which must know
    the data set and its cap (`prade ledger open`). Run again, it finds the release and spends nothing. PRIVATE is a
    file, a pattern of files in quotes, duckdb://file.db/table, or an Ibis address with /table at its end.
    """
    from prade.planning.plan import Plan

    plan = Plan.load(plan_file)
    paying = paying_for(plan, output, ledger_file, as_json)
    result(*_measured(plan, private, output, paying, **terms), as_json)


def _measured(plan: Plan, private: str, output: str, paying: Paying, **terms: bool) -> tuple[dict[str, Any], str]:
    """Measure; the outcome for a script and for a person."""
    from prade.core.progress import progress_bar
    from prade.pipeline import measure as run_measure

    ledger = paying.ledger
    before = ledger.times_paid(plan.dataset, plan.hash)
    with progress_bar() as progress:
        release = run_measure(plan, private, output, ledger, cap=paying.cap, progress=progress, **terms)
    if paying.cap is not None:
        remark(f"Data set {plan.dataset!r} is new in {ledger.path}: entered with the cap {paying.cap}")
    return measured(release, output, ledger, ledger.times_paid(plan.dataset, plan.hash) > before)


def measured(release: Release, output: str, ledger: Ledger, spent: bool) -> tuple[dict[str, Any], str]:
    """A release and what it cost, for a script and for a person."""
    plan, statement = release.plan, ledger.statement(release.plan.dataset)
    if _looks_empty(release):
        remark("All groups look empty: their numbers of people are within the noise of 0. Was this the right table?")
    left = statement.remaining
    found = {
        "release": output,
        "dataset": plan.dataset,
        "plan": release.plan.hash,
        "spent": plan.budget.to_dict() if spent else None,
        "remaining": left.to_dict(),
        "ledger": str(ledger.path),
        "head": statement.head and statement.head.to_dict(),
        "promise": plan.unit.promise(),
    }
    price = f"spent {plan.budget}" if spent else "nothing was spent, for this was measured before"
    return found, f"{output}: {price}\n{left} left for {plan.dataset!r} in {ledger.path}\n{plan.unit.promise()}"


def _looks_empty(release: Release) -> bool:
    """Whether at no level the noisy number of all people is beyond its noise; this asks nothing new."""
    found = []
    for level, grouping in enumerate(release.plan.groupings):
        with suppress(DataError):  # a level that does not tell its numbers of people
            totals, sd = release.totals(level)
            found.append(totals.sum() <= EMPTY * sd * len(grouping) ** 0.5)
    return bool(found) and all(found)


# ---------------------------------------------------------------------- from a release


@prade.command()
@release_folder
@public_again
@click.option(
    "--estimator",
    type=click.Choice(["map", "two-stage", "ide"]),
    help="map weighs answers by their noise, and is what plans ask for; the other two are the paper's.",
)
@as_json
@examples("  prade estimate release")
def estimate(release_folder: str, public: tuple[str, ...], estimator: EstimatorName | None, as_json: bool) -> None:
    """Estimate every group of a RELEASE.

    The estimates are kept in its folder, in place of earlier ones; `sample` and `answer` use those. Spends nothing.
    """
    from collections import Counter

    from prade.release.release import Release

    release = Release.load(release_folder)
    estimates = _estimates(release, public, estimator, anew=_damaged(release))
    levels, lines = [], []
    for level, found in zip(estimates.plan.levels, estimates.levels, strict=True):
        rows, status = float(found.totals.sum()), dict(Counter(found.status).most_common())
        levels.append({"level": level.name, "groups": len(found.totals), "rows": rows, "status": status})
        named = ", ".join(f"{number} {name}" for name, number in status.items())
        lines.append(f"{level.name}: {len(found.totals):,} groups, {rows:,.0f} rows ({named})")
    result({"release": release_folder, "levels": levels}, "\n".join(lines), as_json)


def _damaged(release: Release) -> bool:
    """Whether there are estimates that no longer are what was written; says so, for they are made again."""
    from prade.release.derived_files import KEPT_ESTIMATES, check_kept, is_kept

    if is_kept(release, KEPT_ESTIMATES):
        try:
            check_kept(release, KEPT_ESTIMATES)
        except DataError:
            remark("The estimates that the folder had are damaged: they are made again.")
            return True
    return False


def _estimates(
    release: Release, given: tuple[str, ...], estimator: EstimatorName | None = None, *, anew: bool = False
) -> Estimates:
    from dataclasses import replace

    from prade.core.progress import progress_bar
    from prade.pipeline import estimate as make_estimates
    from prade.planning.settings import Settings

    _need_place_for_estimates(release, anew or estimator is not None)
    wanted = release.plan.settings or Settings()
    if estimator is not None:
        wanted = replace(wanted, estimator=estimator)
    with progress_bar() as progress:
        return make_estimates(release, _given(given), settings=wanted, anew=anew, progress=progress)


def _need_place_for_estimates(release: Release, anew: bool = False) -> None:
    """Estimates are kept in the release's folder: complain before they are made."""
    from prade.release.derived_files import KEPT_ESTIMATES, is_kept
    from prade.release.file_names import ESTIMATES

    if anew or not is_kept(release, KEPT_ESTIMATES):
        need_file(release.path / ESTIMATES)


def _given(public: tuple[str, ...]) -> PublicFiles | None:
    """The public files that are given now; None: those that the plan names."""
    return public_files(public) if public else None


@prade.command()
@release_folder
@public_again
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same rows.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help=f"File to write, parquet or CSV by its name; RELEASE/{SYNTHETIC} when not given.",
)
@click.option(
    "--spreadsheet-safe",
    is_flag=True,
    help="In a CSV file, put ' before texts that a spreadsheet would run as a formula: those that begin with = + - @.",
)
@as_json
@examples("  prade sample release --seed 1 -o synthetic.csv")
def sample(
    release_folder: str,
    public: tuple[str, ...],
    seed: int,
    output: str | None,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Draw synthetic rows from a RELEASE.

    For every group, with values like the public table's. Spends nothing.
    """
    from prade.core.progress import progress_bar
    from prade.data.tables import require_csv, table_suffix
    from prade.pipeline import sample as draw_rows
    from prade.release.derived_files import write_rows
    from prade.release.release import Release

    release = Release.load(release_folder)
    path = output or str(Path(release_folder) / SYNTHETIC)
    need_file(path)
    _need_place_for_estimates(release)
    require_csv(path) if spreadsheet_safe else table_suffix(Path(path))  # complain now, not when the work is done
    with progress_bar() as progress:
        table = draw_rows(release, _given(public), seed=seed, like="pyarrow", progress=progress)
    write_rows(table, path, release, spreadsheet_safe=spreadsheet_safe)
    result(*_sampled(table, path), as_json)


def _sampled(table: Any, path: str) -> tuple[dict[str, Any], str]:
    """Synthetic rows, for a script and for a person."""
    facts = {"file": path, "rows": table.num_rows, "columns": table.column_names}
    return facts, f"{path}: {table.num_rows:,} rows, {table.num_columns} columns"


@prade.command()
@release_folder
@click.argument("query")
@click.option("--by", default="", metavar="COLUMNS", help="Group columns to answer by, as in STATE+PUMA.")
@public_again
@as_json
@examples('  prade answer release "AGEP >= 65 and SEX == 2" --by PUMA')
def answer(release_folder: str, query: str, by: str, public: tuple[str, ...], as_json: bool) -> None:
    """Answer a QUERY from a RELEASE.

    How many rows satisfy it, and their share, from the estimates themselves. Spends nothing.
    """
    from prade.pipeline import estimate as make_estimates
    from prade.release.derived_files import KEPT_ESTIMATES, is_kept
    from prade.release.release import Release

    release = Release.load(release_folder)
    kept = is_kept(release, KEPT_ESTIMATES) and not public
    found = (make_estimates(release) if kept else _estimates(release, public)).answer(query, columns_of(by))
    rows = found.to_pylist()
    if not as_json:
        remark("95 %: the count from low to high; sd is of the share")
    result(rows, text_table(rows), as_json)


# ---------------------------------------------------------------------- all in one


@prade.command()
@click.argument("private", type=FILE)
@planning
@click.option("-o", "--output", required=True, metavar="RELEASE", type=FILE, help="Folder to make.")
@spending
@click.option("--seed", default=0, show_default=True, help="Seed of the synthetic rows.")
@click.option("--against-advice", is_flag=True, help="Measure even if the public table as it is would be better.")
@as_json
@examples(
    "  prade synthesize private.parquet --schema schema.toml --public public.parquet --groups places.csv \\\n"
    "      --levels STATE,PUMA --epsilon 1 -o release"
)
def synthesize(
    private: str,
    output: str,
    ledger_file: str | None,
    again: bool,
    weak_protection: bool,
    seed: int,
    against_advice: bool,
    tune: bool,
    seconds: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Plan, measure, estimate, sample and report: this spends.

    The plan is kept beside the folder, as RELEASE.plan.toml: a run that broke off goes on with it, and pays once.
    """
    from prade.core.progress import progress_bar
    from prade.pipeline import Terms
    from prade.pipeline import synthesize as run_all
    from prade.privacy.ledger import Ledger

    need_folder(output)
    say = remark if as_json else click.echo
    task, table = task_of(**options)
    for words in task.recurring_names():
        remark(words)
    ledger = Ledger.of(ledger_file)
    facts: dict[str, Any] = {}

    def told(stage: str, outcome: Any) -> None:
        if stage == "plan":
            facts.update(facts_of(outcome))
            if tune:
                remark(advice_of(outcome))
            say(outcome.describe())
        elif stage == "measure":
            found, words = measured(outcome[0], output, ledger, outcome[1])
            facts.update(found)
            say(words)
        elif stage == "sample":
            facts["synthetic"], words = _sampled(outcome, str(Path(output) / SYNTHETIC))
            say(words)

    ask = asked_cap if not as_json and at_a_terminal() else None
    terms = Terms(ledger, None, tune, seconds, again, weak_protection, against_advice, ask)
    with progress_bar() as progress:
        page = str(run_all(task, private, table, output, terms, seed=seed, told=told, progress=progress))
    result({**facts, "report": page}, page, as_json)
