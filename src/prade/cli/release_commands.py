"""The commands that measure, and those that work on a release: estimate, sample, answer, synthesize."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.console import FILE, need_file, need_folder, text_table
from prade.cli.ledger_commands import Paying, paying_for
from prade.cli.main import examples, prade, remark, result
from prade.cli.planning_commands import (
    Wanted,
    as_json,
    columns_of,
    facts_of,
    planning,
    public_again,
    public_files,
    spending,
)
from prade.core.errors import DataError
from prade.core.threads import cores
from prade.release.file_names import SYNTHETIC

if TYPE_CHECKING:
    from prade.data.public_files import PublicFiles
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.planning.settings import Kind
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
    from prade.measuring.run import measure as ask

    ledger = paying.ledger
    before = ledger.times_paid(plan.dataset, plan.hash)
    with progress_bar() as progress:
        release = ask(plan, private, output, ledger, cap=paying.cap, progress=progress, **terms)
    if paying.cap is not None:
        remark(f"Data set {plan.dataset!r} is new in {ledger.path}: entered with the cap {paying.cap}")
    if _looks_empty(release):
        remark("All groups look empty: their numbers of people are within the noise of 0. Was this the right table?")
    spent, statement = ledger.times_paid(plan.dataset, plan.hash) > before, ledger.statement(plan.dataset)
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
def estimate(release_folder: str, public: tuple[str, ...], estimator: Kind | None, as_json: bool) -> None:
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
    release: Release, given: tuple[str, ...], estimator: Kind | None = None, *, anew: bool = False
) -> Estimates:
    from dataclasses import replace

    from prade.core.progress import progress_bar
    from prade.data.public import Public, group_columns
    from prade.estimating.levels.kept_estimates import estimates_of
    from prade.planning.settings import Settings

    _need_place_for_estimates(release, anew or estimator is not None)
    files, plan = _public(release.plan, given), release.plan
    rows = Public.of(plan.schema, files.source(), group_columns(plan.groups, plan.schema), weight=files.weight)
    wanted = plan.settings or Settings()
    if estimator is not None:
        wanted = replace(wanted, estimator=estimator)
    with progress_bar() as progress:
        return estimates_of(release, rows, wanted, threads=cores(), anew=anew, progress=progress)


def _need_place_for_estimates(release: Release, anew: bool = False) -> None:
    """Estimates are kept in the release's folder: complain before they are made."""
    from prade.release.file_names import ESTIMATES
    from prade.release.derived_files import KEPT_ESTIMATES, is_kept

    if anew or not is_kept(release, KEPT_ESTIMATES):
        need_file(release.path / ESTIMATES)


def _public(plan: Plan, given: tuple[str, ...]) -> PublicFiles:
    """The public files: those given now, or those that the plan remembers."""
    if given:
        return plan.public.moved_to(public_files(given)) if plan.public else public_files(given)
    if plan.public is None:
        raise DataError("the release's plan does not say where the public table is: give it with --public")
    return plan.public


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
    from prade.release.release import Release

    release = Release.load(release_folder)
    place = output or str(Path(release_folder) / SYNTHETIC)
    result(*_sampled(release, _public(release.plan, public), seed, place, spreadsheet_safe), as_json)


def _sampled(
    release: Release, files: PublicFiles, seed: int, output: str, spreadsheet_safe: bool = False
) -> tuple[dict[str, Any], str]:
    """Draw rows; the outcome for a script and for a person."""
    from prade.core.progress import progress_bar
    from prade.data.tables import need_csv, table_suffix
    from prade.release.derived_files import write_rows
    from prade.sampling.table import synthesize as drawn

    need_file(output)
    _need_place_for_estimates(release)
    need_csv(output) if spreadsheet_safe else table_suffix(Path(output))  # complain now, not when the work is done
    with progress_bar() as progress:
        table = drawn(release, files.source(), seed=seed, weight=files.weight, progress=progress)
    write_rows(table, output, release, spreadsheet_safe=spreadsheet_safe)
    found = {"file": output, "rows": table.num_rows, "columns": table.column_names}
    return found, f"{output}: {table.num_rows:,} rows, {table.num_columns} columns"


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
    from prade.estimating.levels.kept_estimates import kept_estimates
    from prade.release.derived_files import KEPT_ESTIMATES, is_kept
    from prade.release.release import Release

    release = Release.load(release_folder)
    kept = is_kept(release, KEPT_ESTIMATES) and not public
    found = (kept_estimates(release) if kept else _estimates(release, public)).answer(query, columns_of(by))
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
    from prade.release.release import Release
    from prade.reporting.report import write_report
    from prade.tuning.choice import kept_plan, plan_beside

    need_folder(output)
    say = remark if as_json else click.echo
    wanted = Wanted.of(**options)
    simplest = wanted.simplest
    made = kept_plan(output, simplest)
    if made is None:
        wanted.refuse(private, weak_protection)
    paying = paying_for(simplest, output, ledger_file, as_json)
    if made is None:
        made, _ = wanted.plan(tune, seconds)
        made.save(plan_beside(output))
    say(made.describe())
    if made.expected is not None and made.expected.harmful and not against_advice:
        raise DataError(
            f"nothing was measured: the rehearsal expects an error of {made.expected.error:.3f}, and the public table "
            f"as it is has {made.expected.prior:.3f}; give a larger --epsilon or coarser --levels with another folder "
            "for -o, or --against-advice"
        )
    measured, words = _measured(made, private, output, paying, again=again, weak_protection=weak_protection)
    say(words)
    drawn, words = _sampled(Release.load(output), wanted.public, seed, str(Path(output) / SYNTHETIC))
    say(words)
    page = str(write_report(output))
    result({**facts_of(made), **measured, "synthetic": drawn, "report": page}, page, as_json)
