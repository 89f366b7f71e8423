"""The commands that read a release: `answer`, `score`, `report` and `diagnose`."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from prade.cli.main import FILE, WRONG, as_json, examples, need_file, prade, remark, result, text_table, wants_json
from prade.cli.options import (
    Where,
    columns_of,
    csv_options,
    named_files,
    public_again,
    public_files,
    weight,
    worker_options,
)
from prade.cli.release_commands import estimates_for_reading, release_folder
from prade.core.errors import DataError, PradeError

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.estimating.levels.estimates import Estimates
    from prade.scoring.evaluation import Evaluation

ASKED = ("name", "query", "of", "by")  # columns of a file of questions
Style = Literal["codes", "labels", "words"]  # values alone, with labels beside them, or with words in their place
SHOWN = 5  # worst pairs and places
FIGURES = ("count", "share", "value", "sd", "low", "high", "basis")


@dataclass(frozen=True)
class Question:
    """A question, and where it was asked: in a line of a file, or None on the command line."""

    query: str
    of: str | None = None
    by: str = ""
    name: str | None = None
    where: str | None = None

    def answer(self, estimates: Estimates, style: Style) -> pa.Table:
        """Answer it."""
        from prade.estimating.levels.answer_tables import described_by, for_readers

        by = columns_of(self.by)
        table = estimates.answer(self.query, by, of=self.of, labels=style == "labels")
        return for_readers(table, described_by(estimates.plan, self.query, by), ASKED) if style == "words" else table


@prade.command()
@release_folder
@click.argument("query", required=False)
@click.option("--of", metavar="QUERY", help="Divide by the number of rows that satisfy this query.")
@click.option(
    "--by", default="", metavar="COLUMNS", help="Group columns to break the answer down by, as in STATE+PUMA."
)
@click.option(
    "--queries",
    "questions_file",
    type=FILE,
    help="Answer all questions in this file, .csv or .parquet: a column query, and if you like name, of and by.",
)
@click.option("-o", "--output", type=FILE, help="File to write the answers to, .csv or .parquet.")
@click.option("--labels", is_flag=True, help="In the file or JSON, add the labels of values, as in STATE_label.")
@public_again
@as_json
@examples(
    '  prade answer release "AGEP >= 65 and SEX == 2" --by PUMA\n'
    '  prade answer release "mean(WAGP) where AGEP >= 18" --by STATE\n'
    '  prade answer release "DPHY == 1 and AGEP >= 65" --of "AGEP >= 65"\n'
    "  prade answer release --queries questions.csv -o answers.csv"
)
def answer(
    release_folder: str,
    query: str | None,
    of: str | None,
    by: str,
    questions_file: str | None,
    output: str | None,
    labels: bool,
    public: tuple[str, ...],
) -> None:
    """Answer a QUERY from a RELEASE, with a 95 % interval.

    A query such as "AGEP >= 65 and SEX == 2" is answered by the number of rows that satisfy it, and their share. A
    numeric column has mean(WAGP), sum(WAGP), median(WAGP), quantile(WAGP, 0.9) and histogram(WAGP), each also with a
    query after it: "mean(WAGP) where SEX == 2". Queries use codes; the printed table has the schema's titles and
    labels. This command spends nothing.
    """
    from prade.data.read.tables import table_suffix, write_table

    if (query is None) == (questions_file is None):
        raise click.UsageError("give a QUERY, or a file of them with --queries")
    if questions_file is not None and (of is not None or by):
        raise click.UsageError("--of and --by belong to one QUERY: in a file of questions, give the columns of and by")
    if output is not None:
        need_file(output)
        table_suffix(Path(output))  # fail before the work
    questions = [Question(query, of, by)] if query is not None else list(_questions(Path(str(questions_file))))
    estimates = estimates_for_reading(release_folder, public)
    to_read = output is None and not wants_json()
    style: Style = "words" if to_read else "labels" if labels else "codes"
    answers, failed = [], 0
    for question in questions:
        try:
            answers.append(_described(question, question.answer(estimates, style)))
        except PradeError as error:
            if question.where is None:
                raise
            remark(f"prade: {question.where}: {error.worded('shell')}")
            failed += 1
    table = _together(answers) if answers else None
    if output is not None and table is not None:
        write_table(table, output)
    _show(table, output, _value_of(questions, estimates))
    if failed:
        remark(f"prade: {failed} of {len(questions)} questions could not be answered")
        click.get_current_context().exit(WRONG)


def _value_of(questions: Sequence[Question], estimates: Estimates) -> str:
    """Say of which column a single statistic is, if its name does not: " of Wages (US dollars a year)"."""
    from prade.queries.asked import statistic_of

    asked = statistic_of(questions[0].query, estimates.plan.schema) if len(questions) == 1 else None
    if asked is None or asked.kind == "histogram":
        return ""
    column = estimates.plan.schema[asked.column]
    return f" of {column.heading}" if column.title or column.unit else ""


def _show(table: pa.Table | None, output: str | None, value_of: str) -> None:
    """Print the answers, or say where they are."""
    rows = [] if table is None else table.to_pylist()
    if output is None:
        if not wants_json() and rows:
            what = [name for name in ("count", "value") if name in rows[0]]
            of = ["share" if name == "count" else name for name in what]
            interval, error = " or ".join(what), " or ".join(of)
            remark(
                f"low to high is a 95 % interval for the {interval}{value_of}; sd is the standard error of the {error}"
            )
        result(rows, text_table(rows))
    else:
        facts = {"file": output if rows else None, "rows": len(rows)}
        result(facts, f"{output}: {len(rows):,} rows" if rows else "no answers, so no file was written")


def _questions(path: Path) -> Iterator[Question]:
    """The questions in a file."""
    from prade.data.read.tables import read_table, table_suffix

    if table_suffix(path) == ".csv":
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                names = list(reader.fieldnames or [])
                rows = [(f"{path} line {reader.line_num}", dict(row)) for row in reader]
        except FileNotFoundError:
            raise DataError(f"there is no file {path}; check the path") from None
        except (UnicodeDecodeError, csv.Error):
            raise DataError(f"{path} is not a CSV file in UTF-8: save it as such") from None
    else:
        table = read_table(path)
        names = table.column_names
        rows = [(f"{path} row {number}", row) for number, row in enumerate(table.to_pylist(), 1)]
    if "query" not in names or (unknown := [name for name in names if name not in ASKED]):
        wrong = "has no column 'query'" if "query" not in names else f"has a column {unknown[0]!r}"
        raise DataError(f"{path} {wrong}: a file of questions has the columns query and, if you like, name, of and by")
    if not rows:
        raise DataError(f"{path} has no questions: write one in each line after the header")
    for where, row in rows:
        text = {name: str(row.get(name) or "").strip() for name in ASKED}
        yield Question(text["query"], text["of"] or None, text["by"], text["name"] or None, where)


def _described(question: Question, table: pa.Table) -> pa.Table:
    """The answer, with the question before it if it comes from a file."""
    import pyarrow as pa

    if question.where is None:
        return table
    given = {"name": question.name, "query": question.query, "of": question.of, "by": question.by or None}
    described = {name: pa.array([text] * table.num_rows, pa.string()) for name, text in given.items()}
    if taken := [name for name in table.column_names if name in described]:
        raise DataError(f"the table of answers would have two columns {taken[0]!r}: ask this question by itself")
    return pa.table({**described, **{name: table[name] for name in table.column_names}})


def _together(answers: list[pa.Table]) -> pa.Table:
    """All answers in one table, with the columns of all; those of other questions are null."""
    import pyarrow as pa

    from prade.data.read.cells import texts_of

    if len(answers) == 1:
        return answers[0]
    kinds: dict[str, set[Any]] = {}
    for table in answers:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, found in kinds.items() if len(found) > 1 and any(pa.types.is_temporal(k) for k in found)}
    alike = [
        pa.table({name: texts_of(table[name]) if name in mixed else table[name] for name in table.column_names})
        for table in answers
    ]
    whole = pa.concat_tables(alike, promote_options="permissive")
    first = [name for name in ASKED if name in whole.column_names]
    last = [name for name in FIGURES if name in whole.column_names]
    between = [name for name in whole.column_names if name not in (*first, *last)]
    empty = {name for name in ("name", "of", "by") if whole[name].null_count == whole.num_rows}
    return whole.select([name for name in (*first, *between, *last) if name not in empty])


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
) -> None:
    """Score SYNTHETIC rows against the TRUTH.

    This is the score of the NIST contest, and with --metrics what SDNist and others measure. It is computed from true
    rows, so it is not private.
    """
    from prade.data.declare.schema import Schema
    from prade.scoring.evaluation import evaluate
    from prade.scoring.metrics.measures import SAMPLE, SEED, Choices, need_installed
    from prade.scoring.metrics.regressions import Formula
    from prade.scoring.score import CONTEST_SEED

    if pairs != "all" and not (pairs.isascii() and pairs.isdigit() and len(pairs) < 10):
        raise click.UsageError(f"--pairs is {pairs!r}: give a number, or all")
    wanted = wants_json() if metrics is None else metrics
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
    result(outcome.to_dict(), evaluation_in_words(outcome))


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
) -> None:
    """Explain a RELEASE on one HTML page.

    The page states the promise, what was measured, where the public table was wrong, and how certain the results are.
    It works offline. This command spends nothing. With --truth the page is computed from true rows: it is not private,
    must not be published, and is not written into the release folder. With --json, what the page shows is printed
    instead, or written to the file of -o.
    """
    from prade.core.errors import Remark
    from prade.reporting.report import json_of, report_data, write_report

    if geojson_key is not None and geojson is None:
        raise click.UsageError("--geojson-key names a property of the outlines: also give the outlines with --geojson")
    with where.execution() as execution, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", Remark)
        asked: dict[str, Any] = {"truth": truth, "geojson": geojson, "geojson_key": geojson_key}
        if wants_json() and output is None:
            said = json_of(report_data(release_folder, execution=execution, **asked)).rstrip()
        else:
            path = write_report(release_folder, output, as_json=wants_json(), execution=execution, **asked)
            said = f"{path}: {path.stat().st_size / 1e6:.1f} MB"
    for each in warned:
        if issubclass(each.category, Remark):  # a warning of a library may quote a true row
            remark(str(each.message))
    if truth is not None:
        remark("This page is computed from true rows and is not differentially private: do not publish it.")
    click.echo(said)


@prade.command()
@release_folder
@click.option("--by-group", is_flag=True, help="List every group and column, instead of every column of a level.")
@click.option(
    "--sharp", is_flag=True, help="Count any difference beyond noise, even one that random sampling explains."
)
@click.option(
    "--design-effect",
    type=float,
    default=1.0,
    show_default=True,
    help="How much more samples vary than independent rows would: about 2 where rows come in households.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the simulated noise.")
@click.option("-o", "--output", type=FILE, help="File to write the table to, .csv or .parquet.")
@public_again
@as_json
@examples("  prade diagnose release\n  prade diagnose release --by-group -o diagnosis.csv")
def diagnose(
    release_folder: str,
    by_group: bool,
    sharp: bool,
    design_effect: float,
    seed: int,
    output: str | None,
    public: tuple[str, ...],
) -> None:
    """Say where the public table of a RELEASE is wrong.

    The noisy answers are compared with what the public rows predict, for every measured column, group and level. wrong
    is the number of groups where noise and random sampling do not explain the difference: the chance that any of these
    alarms is false is at most 5 %. distance is the total-variation distance without the noise, at_least the largest
    lower bound of any group, sampling what random sampling alone would lead to, and noise_units the difference in units
    of the noise. This command spends nothing.
    """
    from prade.data.read.tables import table_suffix, write_table
    from prade.release.release import Release

    if output is not None:
        need_file(output)
        table_suffix(Path(output))  # fail before the work
    found = Release.load(release_folder).diagnosis(
        named_files(public), sharp=sharp, design_effect=design_effect, seed=seed
    )
    table = found.groups() if by_group else found.columns()
    if output is not None:
        write_table(table, output)
        result({"file": output, "rows": len(table)}, f"{output}: {len(table):,} rows")
        return
    if not wants_json():
        for line in (*found.headlines(), *found.remarks()):
            remark(line)
    facts = {**found.to_dict(), **({"groups": table.to_pylist()} if by_group else {})}
    result(facts, text_table(table.to_pylist()))


def evaluation_in_words(found: Evaluation) -> str:
    """The score; below it, where they were computed, the public table's and the metrics."""
    blocks = [str(found.score)]
    if found.public is not None:
        blocks[0] += f"\n{found.public}"
    if found.metrics is not None:
        blocks += [_metrics(found.metrics), _pairs(found), _places(found)]
    return "\n\n".join(filter(None, blocks))


def whys(metrics: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why metrics are not available, with the metrics that it holds for."""
    reasons: dict[str, list[str]] = {}
    for line in metrics["summary"]:
        if line["why"]:
            reasons.setdefault(line["why"], []).append(line["title"])
    return [f"Not available: {', '.join(titles)}: {why}." for why, titles in reasons.items()]


def _metrics(metrics: Mapping[str, Any]) -> str:
    public = metrics["rows"]["public"] is not None
    rows = []
    for line in metrics["summary"]:
        numbers = {"synthetic": _number(line, "synthetic"), **({"public": _number(line, "public")} if public else {})}
        rows.append({"metric": line["title"], **numbers, "how to read it": line["read"]})
    return text_table(rows)


def _number(line: Mapping[str, Any], table: str) -> str:
    value = line[table]
    return "-" if value is None else f"{value:.{line['digits']}f}"


def _pairs(found: Evaluation) -> str:
    rows = [
        {"worst pairs": f"{pair['first']}, {pair['second']}", "distance": pair["distance"], **_public(pair, found)}
        for pair in found.worst_pairs()[:SHOWN]
    ]
    return text_table(rows)


def _places(found: Evaluation) -> str:
    rows = [
        {"worst places": place["label"], "score": place["score"], **_public(place, found)}
        for place in found.worst_places()[:SHOWN]
    ]
    return text_table(rows)


def _public(entry: Mapping[str, Any], found: Evaluation) -> dict[str, Any]:
    return {} if found.public is None else {"public": entry["public"]}
