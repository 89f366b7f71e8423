"""The command that labels a schema: `schema label`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prade.cli.csv_options import csv_options
from prade.cli.main import FILE, examples, need_new_file, remark, result
from prade.cli.plan_commands import SHOWN, as_json, force, schema
from prade.core.errors import DataError, many

if TYPE_CHECKING:
    from prade.data.declare.display import Labelling
    from prade.data.declare.schema import Schema


@schema.command()
@click.argument("schema_file", metavar="SCHEMA", type=FILE)
@click.option("--codebook", required=True, type=FILE, help="CSV file with titles, descriptions, units and labels.")
@click.option(
    "-o", "--output", type=FILE, help="File to write.  [default: the schema file, with --force; RELEASE/labels.toml]"
)
@force
@csv_options("codebook")
@as_json
@examples(
    "  prade schema label --codebook codebook.csv schema.toml -o labelled.toml\n"
    "  prade schema label --codebook PUMS_Data_Dictionary_2024.csv schema.toml --force\n"
    "  prade schema label --codebook codebook.csv release"
)
def label(schema_file: str, codebook: str, output: str | None, force: bool, as_json: bool) -> None:
    """Label the columns and values of a SCHEMA, or of a release, from a codebook.

    The codebook is a CSV file with the columns column, title, description, unit, value and label; a line without a
    value is about the column itself. The Census Bureau's PUMS data dictionary, with lines NAME and VAL, is read too.
    Labels are for readers. A plan measures and costs the same with them and without. Give the folder of a release to
    label what was measured already.
    """
    from prade.data.declare.display import Codebook
    from prade.release.release import LABELS

    is_release = Path(schema_file).is_dir()
    written = output or (str(Path(schema_file) / LABELS) if is_release else schema_file)
    if not written.endswith(".toml"):
        raise DataError(f"{written} is not a .toml file, but one will be written: give its name with -o")
    need_new_file(written, force)
    made = Codebook.read(codebook).label(_schema_of(schema_file))
    with_comments = not is_release and "\n#" in "\n" + Path(schema_file).read_text("utf-8-sig")
    made.schema.save(written)
    facts = {
        "schema": written,
        "columns": made.columns,
        "values": made.values,
        "without_entry": made.without_entry,
        "unknown_columns": made.unknown_columns,
        "unknown_values": made.unknown_values,
        "of_bins": made.of_bins,
    }
    words = f"{written}: {many(len(made.columns), 'column')} and {many(made.values, 'value')} labelled"
    result(facts, words, as_json)
    _remark_on_the_rest(made, str(codebook))
    if with_comments:
        remark(f"Comments in {schema_file} are not in what was written.")


def _schema_of(path: str) -> Schema:
    """Return the schema in a file, or that of the release in a folder."""
    from prade.data.declare.schema import Schema
    from prade.release.release import Release

    return Release.load(path).plan.schema if Path(path).is_dir() else Schema.load(path)


def _remark_on_the_rest(made: Labelling, codebook: str) -> None:
    """Say what has no label, and what of the codebook was not used."""
    if made.without_entry:
        remark(f"Without an entry in {codebook}: {', '.join(made.without_entry)}")
    if made.unknown_columns:
        remark(f"In {codebook}, but not in the schema: {_some(made.unknown_columns)}")
    for column, values in made.unknown_values.items():
        remark(f"{column} does not have these values of {codebook}: {_some(values)}")
    if made.of_bins:
        remark(f"Not used, because only single values have labels: {many(made.of_bins, 'label')} of ranges or bins")


def _some(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
