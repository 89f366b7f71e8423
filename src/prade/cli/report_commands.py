"""The commands that score synthetic rows and report on a release: `score` and `report`."""

from __future__ import annotations

import warnings
from typing import Any

import click

from prade.cli.console import FILE
from prade.cli.csv_options import csv_options
from prade.cli.evaluation_words import evaluation_in_words, whys
from prade.cli.main import examples, prade, remark, result
from prade.cli.planning_commands import as_json, columns_of, weight
from prade.cli.public_options import public_files
from prade.cli.worker_options import Where, worker_options


@prade.command()
@click.argument("truth", type=FILE)
@click.argument("synthetic", type=FILE)
@click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file.")
@click.option("--by", required=True, metavar="COLUMNS", help="Columns that define the groups, as in STATE+PUMA.")
@click.option(
    "--groups",
    "groups_file",
    type=FILE,
    help="File with the public list of groups. [default: the groups in the tables]",
)
@click.option("--pairs", default="50", show_default=True, help="How many pairs of columns to draw at random, or all.")
@click.option("--seed", type=int, help="Seed for drawing pairs. [default: the contest's]")
@click.option(
    "--metrics/--no-metrics",
    default=None,
    help="Also compute k-marginals, propensity, regressions and other metrics. [default: only with --json]",
)
@click.option(
    "--public",
    multiple=True,
    type=FILE,
    help="Public file to compare with: what its rows would score in place of SYNTHETIC; may be given several times.",
)
@weight
@click.option(
    "--sample", type=int, metavar="ROWS", help="Most rows of a table that sampled metrics take. [default: 10,000]"
)
@click.option("--linear", metavar="FORMULA", help='Linear regression to compare, as in "INCOME ~ AGE + SEX".')
@click.option("--logistic", metavar="FORMULA", help='Logistic regression to compare, as in "AGE >= 65 ~ SEX + RACE".')
@csv_options("truth")
@as_json
@examples(
    "  prade score truth.parquet release/synthetic.parquet --schema schema.toml --by STATE+PUMA --pairs all\n"
    "  prade score truth.parquet release/synthetic.parquet --schema schema.toml --by STATE+PUMA --metrics \\\n"
    '      --public public.parquet --linear "PINCP ~ AGEP + SEX + SCHL"'
)
def score(
    truth: str,
    synthetic: str,
    schema_file: str,
    by: str,
    groups_file: str | None,
    pairs: str,
    seed: int | None,
    metrics: bool | None,
    public: tuple[str, ...],
    weight: str | None,
    sample: int | None,
    linear: str | None,
    logistic: str | None,
    as_json: bool,
) -> None:
    """Score SYNTHETIC rows against the TRUTH.

    This is the score of the NIST contest, and with --metrics what SDNist and others measure. It is computed from true
    rows, so it is not private.
    """
    from prade.data.schema import Schema
    from prade.scoring.evaluation import evaluate
    from prade.scoring.metrics.measures import SAMPLE, SEED, Choices, need_installed
    from prade.scoring.metrics.regressions import Formula
    from prade.scoring.score import CONTEST_SEED

    if pairs != "all" and not (pairs.isascii() and pairs.isdigit() and len(pairs) < 10):
        raise click.UsageError(f"--pairs is {pairs!r}: give a number, or all")
    wanted = as_json if metrics is None else metrics
    if weight is not None and not public:
        raise click.UsageError("--weight names a column of the public files: also give them with --public")
    if not wanted and (sample is not None or linear is not None or logistic is not None):
        raise click.UsageError("--sample, --linear and --logistic are for the metrics: also give --metrics")
    if metrics:
        need_installed()
    choices = Choices(
        SAMPLE if sample is None else sample,
        SEED if seed is None else seed,
        None if linear is None else Formula.read(linear),
        None if logistic is None else Formula.read(logistic),
    )
    outcome = evaluate(
        truth,
        synthetic,
        Schema.load(schema_file),
        columns_of(by),
        groups=groups_file,
        pairs="all" if pairs == "all" else int(pairs),
        seed=CONTEST_SEED if seed is None else seed,
        public=public_files(public, weight) if public else None,
        choices=choices if wanted else None,
    )
    remark(
        "This score is computed from true rows and is not differentially private: do not publish it for private rows."
    )
    if outcome.metrics is not None:
        for line in whys(outcome.metrics):
            remark(line)
    result(outcome.to_dict(), evaluation_in_words(outcome), as_json)


@prade.command()
@click.argument("release_folder", metavar="RELEASE", type=click.Path())
@click.option(
    "--truth",
    metavar="FILES",
    type=click.Path(),
    help="The true rows, to compare the release with: a parquet or CSV file or a quoted pattern, not a database.",
)
@click.option("--geojson", metavar="FILE", type=click.Path(), help="Outlines of the groups, for a map.")
@click.option(
    "--geojson-key", metavar="NAME", help="Property that identifies the group; join several with +, as in STATE+PUMA."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="File to write. [default: RELEASE/report.html; with --truth, RELEASE-not-private.html]",
)
@csv_options("truth")
@worker_options
@as_json
@examples(
    "  prade report release --geojson places.geojson -o report.html\n  prade report release --json -o report.json"
)
def report(
    release_folder: str,
    truth: str | None,
    geojson: str | None,
    geojson_key: str | None,
    output: str | None,
    where: Where,
    as_json: bool,
) -> None:
    """Explain a RELEASE on one HTML page.

    The page states the promise, what was measured, where the public table was wrong, and how certain the results are.
    It works offline. This command spends nothing. With --truth the page is computed from true rows: it is not private,
    must not be published, and is not written into the release folder. With --json, what the page shows is printed
    instead, or written to the file of -o.
    """
    from prade.core.errors import Remark
    from prade.core.progress import progress_bar
    from prade.core.workers import Workers
    from prade.reporting.report import json_of, report_data, write_report

    if geojson_key is not None and geojson is None:
        raise click.UsageError("--geojson-key names a property of the outlines: also give the outlines with --geojson")
    with where.arguments() as how, progress_bar() as progress, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", Remark)
        asked: dict[str, Any] = {"truth": truth, "geojson": geojson, "geojson_key": geojson_key, "progress": progress}
        asked["workers"] = Workers.of(**how)
        if as_json and output is None:
            said = json_of(report_data(release_folder, **asked)).rstrip()
        else:
            path = write_report(release_folder, output, as_json=as_json, **asked)
            said = f"{path}: {path.stat().st_size / 1e6:.1f} MB"
    for each in warned:
        if issubclass(each.category, Remark):  # a warning of a library may quote a true row
            remark(str(each.message))
    if truth is not None:
        remark("This page is computed from true rows and is not differentially private: do not publish it.")
    click.echo(said)
