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
from collections.abc import Sequence
from pathlib import Path

import click

import prade
from prade.cli.main import FILE, examples, program

EPSILON, MOST_EVER = "4", "8"  # the cap covers the release and the published algorithm's, which costs the same
REHEARSED = ("1/2", "2", EPSILON, "8")
EFFORT = 6.0  # for the rehearsals of one budget
BY = ("STATE", "PLACE")
SYNTHETIC = "synthetic.parquet"  # in the release
LEDGER = "prade.ledger"  # in the folder: the user's own ledger is for real people
PAGE = "explore.html"


@program.command()
@click.option(
    "-o", "--output", default="demo", show_default=True, metavar="FOLDER", type=FILE, help="Folder for all files."
)
@click.option("--persons", default=60_000, show_default=True, help="Number of people in each of the two tables.")
@click.option("--effort", default=EFFORT, show_default=True, help="Work that the rehearsals of a budget may be.")
@click.pass_context
@examples("  prade demo -o demo", with_json=False)
def demo(context: click.Context, output: str, persons: int, effort: float) -> None:
    """Run every stage on invented people.

    The demonstration invents a public and a private table, then plans, measures, estimates, samples and reports, and
    scores the result against the truth. It shows each command that it runs.
    """
    from prade.examples import census_like
    from prade.reporting.report import report_path

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    names = "schema.toml", "public.parquet", "places.csv", "plan.toml", f"plan-{EPSILON}.toml"
    schema, public, places, plans, plan = (str(folder / name) for name in names)
    release, truth, account = (str(folder / name) for name in ("release", "private.parquet", LEDGER))
    if os.path.exists(schema):
        click.echo(f"Using the tables in {folder}; for new tables, choose another folder or delete this one")
    else:
        click.echo("All stages take about a minute on two idle cores with the usual options")
        click.echo(f"Inventing {persons:,} people for each of the two tables, with up to 4 years each, in {folder}")
        census_like(persons=persons, places_per_state=15).save(folder)  # the schema last: it marks a complete folder
    unit = ["--max-rows-per-person", "4", "--person-id", "PERSON"]
    steps: list[tuple[str, Sequence[str]]] = [
        ("Rehearse several budgets, and decide what to measure with each, from public data alone:", [
            "plan", "--schema", schema, "--public", public, "--groups", places, "--levels", ",".join(BY),
            "--epsilon", ",".join(REHEARSED), *unit, "--dataset", "census", "--effort", f"{effort:g}",
            "-o", plans, "--page", str(folder / PAGE), "--force",
        ]),
        ("Set the most that may ever be spent on these people, as their data's custodian would:", [
            "ledger", "open", "census", "--cap", MOST_EVER, *unit, "--ledger", account,
        ]),
        ("Measure the private table. Only this command spends:", [
            "measure", plan, truth, "-o", release, "--ledger", account,
        ]),
        ("Estimate the distribution of every place:", ["estimate", release]),
        ("Draw synthetic rows from the estimates:", ["sample", release]),
        ("Answer a question from the estimates:", [
            "answer", release, "AGE >= 65 and TENURE == 'rented'", "--by", BY[0],
        ]),
        ("Write a page that explains the release:", ["report", release]),
        ("Score the rows against the truth (the score is not private: do this with invented people only):", [
            "score", truth, str(folder / "release" / SYNTHETIC), "--schema", schema, "--by", "+".join(BY),
            "--groups", places,
        ]),
        ("Write the same page, compared with the truth:", ["report", release, "--truth", truth]),
    ]  # fmt: skip
    for purpose, command in steps:
        if command[0] == "plan" and os.path.exists(plan):
            continue  # the tuner might choose another plan, which the release would not fit
        click.echo(f"\n{purpose}\n$ {shlex.join(['prade', *command])}")
        if code := program.main(args=list(command), prog_name="prade", standalone_mode=False):
            context.exit(code)
    click.echo("\nComparing with the published algorithm, at the same budget")
    click.echo("\n".join(["", *comparison(folder, release, truth), ""]))
    click.echo(f"What epsilon buys:     {folder / PAGE}\nSynthetic rows:        {Path(release) / SYNTHETIC}")
    click.echo(
        f"Report:                {report_path(release)}\nReport with the truth: {report_path(release, truth=True)}"
    )
    click.echo(f"All other files:       {folder}")


def comparison(folder: Path, release: str, truth: str) -> list[str]:
    """Compare the mean errors of the public table alone, the published algorithm and the release."""
    from prade.baselines.algorithm_2 import Algorithm2
    from prade.data.public.public import Public
    from prade.scoring.evaluation import evaluate

    plan, synthetic, files = prade.Release.load(release).plan, folder / "release" / SYNTHETIC, folder / "public.parquet"
    by, public = plan.groupings[-1].by, Public.of(plan.schema, files, plan.groups.names)
    published = prade.measure(Algorithm2().plan(plan.task, public), truth, folder / "published", folder / LEDGER)
    ours = evaluate(truth, synthetic, plan.schema, by, groups=plan.groups, pairs="all", public=files, choices=None)
    rows = Algorithm2().rows(published, public, 0)
    theirs = prade.score(truth, rows, plan.schema, by, groups=plan.groups, pairs="all")
    assert ours.public is not None
    baseline = ours.public.error
    lines = [
        f"Mean error of all two-way tables in {len(plan.groupings[-1])} places, from 0 (no error) to 2:",
        f"  the public table alone   {baseline:.3f}   (no private data)",
    ]
    for name, error in (("the published algorithm", theirs.mean), ("prade", ours.score.mean)):
        lines.append(f"  {name:23}  {error:.3f}   ({error / baseline:.0%} of the public table's, {plan.budget})")
    return lines
