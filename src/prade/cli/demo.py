"""`prade demo`: every stage, on invented people.

The demonstration shows and runs the commands that a data custodian would run, and keeps every file in its folder. At
the end it compares the result with the public table alone and with the published algorithm, at the same budget. This
comparison needs the true rows, which may be shown only because they are invented.

A second run in the same folder uses the files that are there, so it continues an interrupted demonstration. For a new
one, choose another folder or delete this one.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path

import click

from prade.cli.main import FILE, examples, prade
from prade.cli.options import QUARTERS, Where, worker_options

EPSILON, MOST_EVER = "4", "8"  # the cap covers the release and the published algorithm's, which costs the same
REHEARSED = ("1/2", "2", EPSILON, "8")
EFFORT = 6.0  # for the rehearsals of one budget
BY = ("STATE", "PLACE")
SYNTHETIC = "synthetic.parquet"  # in the release
LEDGER = "prade.ledger"  # in the folder: the user's own ledger is for real people
DATABASE = "private.sqlite"
PAGE = "explore.html"


@prade.command()
@click.option(
    "-o", "--output", default="demo", show_default=True, metavar="FOLDER", type=FILE, help="Folder for all files."
)
@click.option("--persons", default=60_000, show_default=True, help="Number of people in each of the two tables.")
@click.option("--effort", default=EFFORT, show_default=True, help="Work that the rehearsals of a budget may be.")
@click.option("--seconds", type=float, help="Seconds that the rehearsals of a budget may take at most.")
@worker_options
@click.pass_context
@examples("  prade demo -o demo")
def demo(context: click.Context, output: str, persons: int, effort: float, seconds: float | None, where: Where) -> None:
    """Run every stage on invented people.

    The demonstration invents a public and a private table, then plans, measures, estimates, samples and reports, and
    scores the result against the truth. It shows each command that it runs.
    """
    from prade.reporting.report import report_path

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    names = "schema.toml", "public.parquet", "places.csv", "plan.toml", f"plan-{EPSILON}.toml"
    files = {name: str(folder / name) for name in names}
    plan = files[names[-1]]
    release, truth, account = (str(folder / name) for name in ("release", "private.parquet", LEDGER))
    if (folder / DATABASE).exists():
        click.echo(f"Using the tables in {folder}; for new tables, choose another folder or delete this one")
    else:
        click.echo("All stages take about a minute on two idle cores with the usual options")
        click.echo(f"Inventing {persons:,} people for each of the two tables, with up to 4 years each, in {folder}")
    most_rows = invent(folder, persons)
    steps: list[tuple[str, Sequence[str]]] = [
        ("Rehearse several budgets, and decide what to measure with each, from public data alone:", [
            "plan", "--schema", files["schema.toml"], "--public", files["public.parquet"],
            "--groups", files["places.csv"], "--levels", ",".join(BY), "--epsilon", ",".join(REHEARSED),
            "--max-rows-per-person", str(most_rows), "--person-id", "PERSON", "--dataset", "census",
            "--effort", f"{effort:g}", *([] if seconds is None else ["--seconds", f"{seconds:g}"]),
            "-o", files["plan.toml"], "--page", str(folder / PAGE), "--force",
        ]),
        ("Set the most that may ever be spent on these people, as their data's custodian would:", [
            "ledger", "open", "census", "--cap", MOST_EVER, "--max-rows-per-person", str(most_rows),
            "--person-id", "PERSON", "--ledger", account,
        ]),
        ("Measure the private table, which is in a database. Only this command spends:", [
            "measure", plan, f"sqlite://{folder / DATABASE}/people", "-o", release, "--ledger", account,
        ]),
        ("Estimate the distribution of every place:", ["estimate", release]),
        ("Draw synthetic rows from the estimates:", ["sample", release]),
        ("Answer a question from the estimates:", [
            "answer", release, "AGE >= 65 and TENURE == 'rented'", "--by", BY[0],
        ]),
        ("Write a page that explains the release:", ["report", release]),
        ("Score the rows against the truth (the score is not private: do this with invented people only):", [
            "score", truth, str(folder / "release" / SYNTHETIC), "--schema", files["schema.toml"],
            "--by", "+".join(BY), "--groups", files["places.csv"],
        ]),
        ("Write the same page, compared with the truth:", ["report", release, "--truth", truth]),
    ]  # fmt: skip
    for purpose, command in steps:
        if command[0] == "plan" and os.path.exists(plan):
            continue  # the tuner might choose another plan, which the release would not fit
        if command[0] in ("plan", "estimate", "sample", "report"):
            command = [*command, *where.options()]
        click.echo(f"\n{purpose}\n$ {shlex.join(['prade', *command])}")
        if code := prade.main(args=list(command), prog_name="prade", standalone_mode=False, obj=QUARTERS):
            context.exit(code)
    click.echo("\nComparing with the published algorithm, at the same budget")
    click.echo("\n".join(["", *comparison(folder, release, truth), ""]))
    click.echo(f"What epsilon buys:     {folder / PAGE}\nSynthetic rows:        {Path(release) / SYNTHETIC}")
    click.echo(
        f"Report:                {report_path(release)}\nReport with the truth: {report_path(release, truth=True)}"
    )
    click.echo(f"All other files:       {folder}")


def invent(folder: Path, persons: int) -> int:
    """Write the tables, the schema and the list of places unless they exist. Return the most rows per person."""
    from prade.examples import census_like

    data = census_like(persons=persons, places_per_state=15)
    database = folder / DATABASE
    if not database.exists():
        data.save(folder)
        unfinished = database.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        with closing(sqlite3.connect(unfinished)) as connection, connection:
            names = ", ".join(f'"{name}"' for name in data.private.column_names)
            connection.execute(f"CREATE TABLE people ({names})")
            rows = zip(*(column.to_pylist() for column in data.private.columns), strict=True)
            texts = ([str(cell) if isinstance(cell, date) else cell for cell in row] for row in rows)
            marks = ", ".join("?" * data.private.num_columns)
            connection.executemany(f"INSERT INTO people VALUES ({marks})", texts)
        unfinished.rename(database)  # last: the database marks a complete folder
    return data.max_rows


def comparison(folder: Path, release: str, truth: str) -> list[str]:
    """Compare the mean errors of the public table alone, the published algorithm and the release."""
    from prade.baselines.algorithm_2 import Algorithm2
    from prade.data.public.public import Public
    from prade.pipeline import measure
    from prade.release.release import Release
    from prade.reporting.truth import coded_rows
    from prade.scoring.evaluation import public_errors
    from prade.scoring.score import chosen_pairs, score

    plan = Release.load(release).plan
    public = Public.of(plan.schema, folder / "public.parquet", plan.groups.names)
    their_plan = Algorithm2().plan(plan.task, public)
    published = measure(their_plan, str(folder / "private.parquet"), folder / "published", folder / LEDGER)
    true_rows = coded_rows(plan, truth)
    pairs = chosen_pairs(plan.schema.coded, "all")
    baseline = float(public_errors(true_rows, public, plan.groupings[-1], pairs).mean(axis=1).mean())

    def error(rows: object) -> float:
        return score(true_rows, rows, plan.schema, plan.groupings[-1].by, groups=plan.groups, pairs="all").mean

    theirs = error(Algorithm2().rows(published, public, 0))
    ours = error(coded_rows(plan, folder / "release" / SYNTHETIC))
    return [
        f"Mean error of all two-way tables in {len(plan.groupings[-1])} places, from 0 (no error) to 2:",
        f"  the public table alone   {baseline:.3f}   (no private data)",
        f"  the published algorithm  {theirs:.3f}   ({theirs / baseline:.0%} of the public table's, {plan.budget})",
        f"  prade                    {ours:.3f}   ({ours / baseline:.0%} of the public table's, {plan.budget})",
    ]
