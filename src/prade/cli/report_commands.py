"""The commands that read a release: `answer`, `score`, `report` and `diagnose`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import prade
from prade.cli import options as shared
from prade.cli.main import FILE, WRONG, examples, need_file, program, remark, result, text_table, wants_json
from prade.cli.options import Paths, Working, columns_of
from prade.cli.release_commands import estimates_for_reading, release_folder
from prade.core.errors import DataError, PradeError, Remark

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.scoring.evaluation import Evaluation

ASKED = ("name", "query", "of", "by")  # columns of a file of questions
FIGURES = ("count", "share", "value", "sd", "low", "high", "basis")


@program.command()
@release_folder
@click.argument("query", required=False)
@click.option("--of", metavar="QUERY", help="Divide by the number of rows that satisfy this query.")
@click.option("--by", default="", metavar="COLUMNS", help="Group columns to break it down by, as in STATE+PUMA.")
@click.option("--queries", type=FILE, help="Answer a file of questions: columns query, name, of, by.")
@click.option("-o", "--output", type=FILE, help="File to write the answers to, .csv or .parquet.")
@click.option("--labels", is_flag=True, help="In the file or JSON, add the labels of values, as in STATE_label.")
@shared.public_again
@examples(
    '  prade answer release "AGEP >= 65 and SEX == 2" --by PUMA\n'
    '  prade answer release "mean(WAGP) where AGEP >= 18" --by STATE\n'
    '  prade answer release "DPHY == 1 and AGEP >= 65" --of "AGEP >= 65"\n'
    "  prade answer release --queries questions.csv -o answers.csv"
)
def answer(
    folder: str, query: str | None, queries: str | None, output: str | None, labels: bool, public: Paths, **parts: Any
) -> None:
    """Answer a QUERY from a RELEASE, with a 95 % interval.

    A query such as "AGEP >= 65 and SEX == 2" is answered by the number of rows that satisfy it, and their share. A
    numeric column has mean(WAGP), sum(WAGP), median(WAGP), quantile(WAGP, 0.9) and histogram(WAGP), each also with a
    query after it: "mean(WAGP) where SEX == 2". Queries use codes; the printed table has the schema's titles and
    labels. This command spends nothing.
    """
    from prade.data.read.tables import file_format, write_table

    if (query is None) == (queries is None):
        raise click.UsageError("give a QUERY, or a file of them with --queries")
    if queries is not None and any(parts.values()):
        raise click.UsageError("--of and --by belong to one QUERY: in a file of questions, give the columns of and by")
    if output is not None:
        need_file(output)
        file_format(output)  # fail before the work
    questions = {"": {"query": query, **parts}} if queries is None else _questions(Path(queries))
    estimates = estimates_for_reading(folder, public)
    answers = []
    for where, question in questions.items():
        try:
            answers.append(_answered(estimates, question, labels, to_read=output is None and not wants_json()))
        except PradeError as error:
            if queries is None:
                raise
            remark(f"prade: {where}: {error.worded('shell')}")
    table = _together(answers) if answers else None
    rows = [] if table is None else table.to_pylist()
    if output is None:
        if rows and not wants_json():
            remark(
                "low to high is a 95 % interval for the count or value; sd is the standard error of the share or value"
            )
        result(rows, text_table(rows))
    else:
        if table is not None:
            write_table(table, output)
        facts = {"file": output if rows else None, "rows": len(rows)}
        result(facts, f"{output}: {len(rows):,} rows" if rows else "no answers, so no file was written")
    if failed := len(questions) - len(answers):
        remark(f"prade: {failed} of {len(questions)} questions could not be answered")
        click.get_current_context().exit(WRONG)


def _questions(path: Path) -> dict[str, dict[str, str]]:
    """The questions in a file, by the row in which they are asked."""
    from prade.data.read.tables import read_table

    table = read_table(path, guess=False)
    names = table.column_names
    if "query" not in names or (unknown := [name for name in names if name not in ASKED]):
        wrong = "has no column 'query'" if "query" not in names else f"has a column {unknown[0]!r}"
        raise DataError(f"{path} {wrong}: a file of questions has the columns query and, if you like, name, of and by")
    if not table.num_rows:
        raise DataError(f"{path} has no questions: write one in each line after the header")
    return {
        f"{path} row {number}": {name: str(row.get(name) or "").strip() for name in ASKED}
        for number, row in enumerate(table.to_pylist(), 1)
    }


def _answered(estimates: prade.Estimates, question: Mapping[str, Any], labels: bool, *, to_read: bool) -> pa.Table:
    """The answer, with the question before it if it comes from a file; for a reader with words in place of values."""
    import pyarrow as pa

    from prade.estimating.levels.answer_tables import described_by, for_readers

    query, by = question["query"], columns_of(question["by"])
    table = estimates.answer(query, by, of=question["of"] or None, labels=labels and not to_read)
    if to_read:
        table = for_readers(table, described_by(estimates.plan, query, by), ASKED)
    if "name" not in question:
        return table
    if taken := [name for name in table.column_names if name in ASKED]:
        raise DataError(f"the table of answers would have two columns {taken[0]!r}: ask this question by itself")
    texts = {name: pa.array([question[name] or None] * table.num_rows, pa.string()) for name in ASKED}
    return pa.table({**texts, **{name: table[name] for name in table.column_names}})


def _together(answers: list[pa.Table]) -> pa.Table:
    """All answers in one table, with the columns of all; those of other questions are null."""
    import pyarrow as pa

    from prade.data.read.cells import texts_of

    if len(answers) == 1:
        return answers[0]
    kinds: dict[str, set[Any]] = {}
    for field in (field for table in answers for field in table.schema):
        kinds.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, types in kinds.items() if len(types) > 1 and any(map(pa.types.is_temporal, types))}
    alike = [
        pa.table({name: texts_of(table[name]) if name in mixed else table[name] for name in table.column_names})
        for table in answers
    ]
    whole = pa.concat_tables(alike, promote_options="permissive")
    order = dict.fromkeys(whole.column_names, 1) | dict.fromkeys(ASKED, 0) | dict.fromkeys(FIGURES, 2)
    empty = {name for name in ASKED if whole[name].null_count == whole.num_rows}
    return whole.select([name for name in sorted(whole.column_names, key=order.__getitem__) if name not in empty])


@program.command()
@click.argument("truth", type=FILE)
@click.argument("synthetic", type=FILE)
@click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file.")
@click.option("--by", required=True, metavar="COLUMNS", help="Columns that define the groups, as in STATE+PUMA.")
@click.option("--groups", type=FILE, help="File with the public list of groups. [default: the groups in the tables]")
@click.option("--pairs", default="50", show_default=True, help="How many pairs of columns to draw at random, or all.")
@click.option("--seed", type=int, help="Seed for drawing pairs. [default: the contest's]")
@click.option("--metrics", is_flag=True, help="Also compute k-marginals, propensity, regressions and other metrics.")
@click.option("--public", multiple=True, type=FILE, help="Public file, whose rows are scored too; may be repeated.")
@shared.weight
@click.option("--linear", metavar="FORMULA", help='Linear regression to compare, as in "INCOME ~ AGE + SEX".')
@click.option("--logistic", metavar="FORMULA", help='Logistic regression to compare, as in "AGE >= 65 ~ SEX + RACE".')
@shared.csv_options("truth")
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
    groups: str | None,
    pairs: str,
    seed: int | None,
    metrics: bool,
    public: Paths,
    weight: str | None,
    **regressions: str | None,
) -> None:
    """Score SYNTHETIC rows against the TRUTH.

    This is the score of the NIST contest, and with --metrics what SDNist and others measure. It is computed from true
    rows, so it is not private.
    """
    from prade.scoring.evaluation import evaluate
    from prade.scoring.metrics.measures import Choices, need_installed
    from prade.scoring.metrics.regressions import Formula
    from prade.scoring.score import CONTEST_SEED

    if pairs != "all" and not (pairs.isascii() and pairs.isdigit() and len(pairs) < 10):
        raise click.UsageError(f"--pairs is {pairs!r}: give a number, or all")
    if weight is not None and not public:
        raise click.UsageError("--weight names a column of the public files: also give them with --public")
    chosen: dict[str, Any] = {name: Formula.read(text) for name, text in regressions.items() if text is not None}
    if chosen and not metrics:
        raise click.UsageError("--linear and --logistic are for the metrics: also give --metrics")
    if metrics:
        need_installed()
    if seed is not None:
        chosen["seed"] = seed
    outcome = evaluate(
        truth,
        synthetic,
        prade.Schema.load(schema_file),
        columns_of(by),
        groups=groups,
        pairs="all" if pairs == "all" else int(pairs),
        seed=CONTEST_SEED if seed is None else seed,
        public=shared.public_files(public, weight) if public else None,
        choices=Choices(**chosen) if metrics else None,
    )
    remark("This score comes from true rows and is not differentially private: do not publish it for private rows.")
    result(outcome.to_dict(), _in_words(outcome))


def _in_words(outcome: Evaluation) -> str:
    """The score; below it, where they were computed, the public table's and the metrics."""
    head = "\n".join(map(str, filter(None, [outcome.score, outcome.public])))
    if outcome.metrics is None:
        return head
    tables = ("synthetic", "public") if outcome.metrics["rows"]["public"] is not None else ("synthetic",)
    metrics = [
        {
            "metric": line["title"],
            **{name: "-" if line[name] is None else f"{line[name]:.{line['digits']}f}" for name in tables},
            "how to read it": line["why"] or line["read"],
        }
        for line in outcome.metrics["summary"]
    ]
    return f"{head}\n\n{text_table(metrics)}"


@program.command()
@release_folder
@click.option("--truth", metavar="FILES", type=FILE, help="The true rows, to compare with: files, not a database.")
@click.option("--geojson", metavar="FILE", type=FILE, help="Outlines of the groups, for a map.")
@click.option("--geojson-key", metavar="NAME", help="Property that identifies the group, or several: STATE+PUMA.")
@click.option(
    "-o", "--output", type=FILE, help="File to write. [default: RELEASE/report.html; RELEASE-not-private.html]"
)
@shared.csv_options("truth")
@shared.worker_options
@examples("  prade report release --geojson places.geojson -o report.html\n  prade report release --json -o data.json")
def report(folder: str, output: str | None, work: Working, **asked: Any) -> None:
    """Explain a RELEASE on one HTML page.

    The page states the promise, what was measured, where the public table was wrong, and how certain the results are.
    It works offline. This command spends nothing. With --truth the page is computed from true rows: it is not private,
    must not be published, and is not written into the release folder. With --json, what the page shows is printed
    instead, or written to the file of -o.
    """
    from prade.reporting.report import json_of, report_data
    from prade.reporting.report import report as write_page

    if asked["geojson_key"] is not None and asked["geojson"] is None:
        raise click.UsageError("--geojson-key names a property of the outlines: also give the outlines with --geojson")
    with work as execution, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", Remark)
        if wants_json() and output is None:
            said = json_of(report_data(folder, execution=execution, **asked)).rstrip()
        else:
            path = write_page(folder, output, as_json=wants_json(), execution=execution, **asked)
            said = f"{path}: {path.stat().st_size / 1e6:.1f} MB"
    for each in warned:
        if issubclass(each.category, Remark):  # a warning of a library may quote a true row
            remark(str(each.message))
    if asked["truth"] is not None:
        remark("This page is computed from true rows and is not differentially private: do not publish it.")
    click.echo(said)


@program.command()
@release_folder
@click.option("--by-group", is_flag=True, help="List every group and column, instead of every column of a level.")
@click.option(
    "--design-effect",
    default=1.0,
    show_default=True,
    help="Variance of a sample over that of independent rows: about 2 for persons in households.",
)
@click.option("-o", "--output", type=FILE, help="File to write the table to, .csv or .parquet.")
@shared.public_again
@examples("  prade diagnose release\n  prade diagnose release --by-group -o diagnosis.csv")
def diagnose(folder: str, by_group: bool, output: str | None, public: Paths, **options: Any) -> None:
    """Say where the public table of a RELEASE is wrong.

    The noisy answers are compared with what the public rows predict, for every measured column, group and level. wrong
    is the number of groups where noise and random sampling do not explain the difference: the chance that any of these
    alarms is false is at most 5 %. distance is the total-variation distance without the noise, and at_least the
    largest lower bound of any group. This command spends nothing.
    """
    from prade.data.read.tables import file_format, write_table

    if output is not None:
        need_file(output)
        file_format(output)  # fail before the work
    diagnosis = prade.Release.load(folder).diagnosis(shared.named_files(public), **options)
    table = diagnosis.groups() if by_group else diagnosis.columns()
    if output is not None:
        write_table(table, output)
        result({"file": output, "rows": len(table)}, f"{output}: {len(table):,} rows")
        return
    if not wants_json():
        for line in (*diagnosis.headlines(), *diagnosis.remarks()):
            remark(line)
    rows = table.to_pylist()
    result({**diagnosis.to_dict(), **({"groups": rows} if by_group else {})}, text_table(rows))
