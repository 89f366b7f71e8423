"""The whole job on invented people: `prade demo`.

It runs the commands that a data steward would run, and shows each of them; every file stays in the folder. At the end
it compares with the public table as it is and with the paper's algorithm as published, at the same budget: that takes
the true rows, which only an invented world may show.

What is in the folder is used again, so that an interrupted demonstration goes on where it was; for a new one give
another folder, or remove this one.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from prade.cli.console import FILE
from prade.cli.main import examples, prade
from prade.release.file_names import SYNTHETIC

EPSILON, MOST_EVER = "4", "8"  # for the release, and as much again for the one to compare with
TUNING = 40  # seconds
BY = ("STATE", "PLACE")
LEDGER = "prade.ledger"  # of its own: invented people are nobody's account
DATABASE = "private.duckdb"


@prade.command()
@click.option(
    "-o", "--output", default="demo", show_default=True, metavar="FOLDER", type=FILE, help="Folder for all files."
)
@click.option("--persons", default=60_000, show_default=True, help="People in each of the two tables.")
@click.option("--seconds", default=TUNING, show_default=True, help="Time for the rehearsals.")
@click.pass_context
@examples("  prade demo -o demo")
def demo(context: click.Context, output: str, persons: int, seconds: float) -> None:
    """Do the whole job on invented people.

    Makes a public and a private table, plans, measures, estimates, samples, scores, and writes a report.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: str(folder / name) for name in ("schema.toml", "public.parquet", "places.csv", "plan.toml")}
    release, truth, account = (str(folder / name) for name in ("release", "private.parquet", LEDGER))
    if (folder / DATABASE).exists():
        click.echo(f"Using the tables in {folder}; for other people give another folder, or remove this one")
    else:
        click.echo(f"Inventing {persons:,} people on either side, seen in up to 4 years, in {folder}")
    most_rows = invent(folder, persons)
    steps: list[tuple[str, Sequence[str]]] = [
        ("What to ask, from public data alone:", [
            "plan", "--schema", files["schema.toml"], "--public", files["public.parquet"],
            "--groups", files["places.csv"], "--levels", ",".join(BY), "--epsilon", EPSILON,
            "--max-rows-per-person", str(most_rows), "--person-id", "PERSON", "--dataset", "census",
            "--seconds", f"{seconds:g}", "-o", files["plan.toml"],
        ]),
        ("The most that may ever be spent on these people, by whoever keeps the data:", [
            "ledger", "open", "census", "--cap", MOST_EVER, "--max-rows-per-person", str(most_rows),
            "--person-id", "PERSON", "--ledger", account,
        ]),
        ("The private table, in a database, is asked once; only this spends:", [
            "measure", files["plan.toml"], f"duckdb://{folder / DATABASE}/people", "-o", release, "--ledger", account,
        ]),
        ("A distribution for every place:", ["estimate", release]),
        ("Rows drawn from them:", ["sample", release]),
        ("Any question, from the distributions themselves:", [
            "answer", release, "AGE >= 65 and TENURE == 'rented'", "--by", BY[0],
        ]),
        ("A page that explains the release:", ["report", release]),
        ("How good it is (not private: for invented people only):", [
            "score", truth, str(folder / "release" / SYNTHETIC), "--schema", files["schema.toml"],
            "--by", "+".join(BY), "--groups", files["places.csv"],
        ]),
        ("The same page with the truth in it:", ["report", release, "--truth", truth]),
    ]  # fmt: skip
    for words, command in steps:
        if command[0] == "plan" and os.path.exists(files["plan.toml"]):
            continue  # another one might be chosen, for which the release would not be the answer
        click.echo(f"\n{words}\n$ {shlex.join(['prade', *command])}")
        if code := prade.main(args=list(command), prog_name="prade", standalone_mode=False):
            context.exit(code)
    click.echo("\nBeside it, the paper's algorithm as published, for the same budget")
    click.echo("\n".join(["", *outcome(folder, release, truth), "", *where(folder, release)]))


def invent(folder: Path, persons: int) -> int:
    """Write the tables, the schema and the list of places, unless they are there; the most rows of a person."""
    import duckdb

    from prade.data.invented import census_like
    from prade.data.tables import write_table

    data = census_like(persons=persons, places_per_state=15)
    database = folder / DATABASE
    if not database.exists():
        data.schema.save(folder / "schema.toml")
        write_table(data.public, folder / "public.parquet")
        write_table(data.private, folder / "private.parquet")
        write_table(data.groups.group_by(list(BY)).aggregate([]), folder / "places.csv")
        beside = database.with_suffix(".new")
        beside.unlink(missing_ok=True)
        with duckdb.connect(str(beside)) as connection:
            connection.register("invented", data.private)
            connection.execute("CREATE TABLE people AS SELECT * FROM invented")
        beside.rename(database)
    return data.max_rows


def outcome(folder: Path, release: str, truth: str) -> list[str]:
    """Three lines: the mean error of two-way tables of the public table as it is, as published, and of the release."""
    from prade.baselines.algorithm_2 import published_plan, published_rows
    from prade.data.public import Public
    from prade.pipeline import measure
    from prade.release.release import Release
    from prade.reporting.truth import coded_rows
    from prade.scoring.public_baseline import public_errors
    from prade.scoring.score import score

    plan = Release.load(release).plan
    public = Public.of(plan.schema, folder / "public.parquet", plan.groups.names)
    theirs = published_plan(plan.task, public)
    published = measure(theirs, str(folder / "private.parquet"), folder / "published", folder / LEDGER)
    true_rows = coded_rows(plan, truth)
    prior = float(public_errors(true_rows, public, plan.groupings[-1], "all").mean())

    def error(rows: object) -> float:
        return score(true_rows, rows, plan.schema, plan.groupings[-1].by, groups=plan.groups, pairs="all").mean

    paper = error(published_rows(published, public, 0))
    ours = error(coded_rows(plan, folder / "release" / SYNTHETIC))
    return [
        f"Mean error of all two-way tables of {len(plan.groupings[-1])} places, 0 to 2, small is good:",
        f"  the public table as it is           {prior:.3f}   (no private data)",
        f"  the paper's algorithm as published  {paper:.3f}   ({paper / prior:.0%} of that, {plan.budget})",
        f"  prade                               {ours:.3f}   ({ours / prior:.0%} of that, {plan.budget})",
    ]


def where(folder: Path, release: str) -> list[str]:
    """Where the files are."""
    from prade.reporting.report import report_path

    return [
        f"Synthetic table: {Path(release) / SYNTHETIC}",
        f"Report:          {report_path(release)}",
        f"With the truth:  {report_path(release, truth=True)}",
        f"All the rest:    {folder}",
    ]
