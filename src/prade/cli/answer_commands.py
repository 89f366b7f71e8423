"""The command that answers questions from a release: `answer`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from prade.cli.console import FILE, need_file, text_table
from prade.cli.main import WRONG, examples, prade, remark, result
from prade.cli.planning_commands import as_json, columns_of
from prade.cli.public_options import public_again
from prade.cli.release_commands import estimates_for_reading, release_folder
from prade.core.errors import DataError, PradeError

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.estimating.levels.estimates import Estimates

ASKED = ("name", "query", "of", "by")  # columns of a file of questions
Style = Literal["codes", "labels", "words"]  # values alone, with labels beside them, or with words in their place
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
        from prade.estimating.levels.labelled_tables import described_by, for_readers

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
    as_json: bool,
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
    to_read = output is None and not as_json
    style: Style = "words" if to_read else "labels" if labels else "codes"
    answers, failed = [], 0
    for question in questions:
        try:
            answers.append(_described(question, question.answer(estimates, style)))
        except PradeError as error:
            if question.where is None:
                raise
            remark(f"prade: {question.where}: {error.told('shell')}")
            failed += 1
    table = _together(answers) if answers else None
    if output is not None and table is not None:
        write_table(table, output)
    _show(table, output, as_json, _value_of(questions, estimates))
    if failed:
        remark(f"prade: {failed} of {len(questions)} questions could not be answered")
        click.get_current_context().exit(WRONG)


def _value_of(questions: Sequence[Question], estimates: Estimates) -> str:
    """Say of which column a single statistic is, if its name does not: " of Wages (US dollars a year)"."""
    from prade.data.display import heading
    from prade.queries.asked import statistic_of

    asked = statistic_of(questions[0].query, estimates.plan.schema) if len(questions) == 1 else None
    if asked is None or asked.kind == "histogram":
        return ""
    column = estimates.plan.schema[asked.column]
    return f" of {heading(column)}" if column.title or column.unit else ""


def _show(table: pa.Table | None, output: str | None, as_json: bool, value_of: str) -> None:
    """Print the answers, or say where they are."""
    rows = [] if table is None else table.to_pylist()
    if output is None:
        if not as_json and rows:
            what = [name for name in ("count", "value") if name in rows[0]]
            of = ["share" if name == "count" else name for name in what]
            interval, error = " or ".join(what), " or ".join(of)
            remark(
                f"low to high is a 95 % interval for the {interval}{value_of}; sd is the standard error of the {error}"
            )
        result(rows, text_table(rows), as_json)
    else:
        facts = {"file": output if rows else None, "rows": len(rows)}
        result(facts, f"{output}: {len(rows):,} rows" if rows else "no answers, so no file was written", as_json)


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

    from prade.data.cells import texts_of

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
