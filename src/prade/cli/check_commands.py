"""The command `check`: how public files fit a schema, and how a private table fits a plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from prade.cli.main import FILE, as_json, examples, prade, result
from prade.cli.options import csv_options, public_files, rows_per_person, weight
from prade.cli.plan_commands import SHOWN


@prade.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="PLAN | PUBLIC...")
@click.option("--private", type=FILE, help="Private table to look at; it is compared with the PLAN.")
@click.option("--schema", "schema_file", type=FILE, help="Schema file, which the PUBLIC files are compared with.")
@click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups.")
@weight
@click.option("--epsilon", default="1", show_default=True, help="Budget for which to compute the noise scale.")
@rows_per_person
@csv_options("files", "private", "groups_file")
@as_json
@examples(
    "  prade check --schema schema.toml --groups places.csv public.parquet\n"
    "  prade check plan.toml --private people.csv"
)
def check(
    files: tuple[str, ...], private: str | None, schema_file: str | None, max_rows_per_person: int, **options: Any
) -> None:
    """Check PUBLIC files against a schema, or a private table against a PLAN.

    With --schema, the command shows what the public files contain, which values do not fit the schema, and how much
    noise a budget would add to each count.

    With --private, it shows how a private table fits a plan: missing and superfluous columns, cells outside the schema,
    groups that are not listed, persons with too many rows, empty groups. This is for the custodian's eyes only. The
    exit code is 1 if a column is missing, if more than 10 % of its cells are outside the schema, or if more than 10 %
    of the rows are in groups that are not listed.

    Nothing is written, and nothing is spent.
    """
    given = click.get_current_context().get_parameter_source
    names = ("max_rows_per_person", *options)
    public_only = [name for name in names if given(name) is ParameterSource.COMMANDLINE]
    if private is not None and schema_file is None and len(files) == 1 and not public_only:
        from prade.measuring.check import check as look
        from prade.planning.plan import Plan

        fit = look(Plan.load(files[0]), private)
        result(fit.to_dict(), str(fit))
        if not fit.fits:
            click.get_current_context().exit(1)
    elif private is None and schema_file is not None:
        _check_public(files, schema_file, max_rows=max_rows_per_person, **options)
    else:
        raise click.UsageError("give one plan with --private alone, or public files with --schema")


def _check_public(
    files: tuple[str, ...], schema_file: str, groups_file: str | None, weight: str | None, epsilon: str, max_rows: int
) -> None:
    """Show how public files fit a schema. Published totals that do not fit the groups are refused."""
    from prade.data.declare.groups import Groups
    from prade.data.declare.schema import PublishedTotals, Schema
    from prade.data.public.joint import outside
    from prade.data.public.table import PublicTable
    from prade.planning.invariants import breaches, published_totals
    from prade.planning.plan import groups_with_public_rows, left_out_in_words, unlisted_groups
    from prade.planning.task import recurring_names
    from prade.privacy.budget import Budget
    from prade.privacy.protection import Unit

    declared, table = Schema.load(schema_file), PublicTable(public_files(files, weight))
    listed = Groups.of(groups_file)
    rows = table.rows(declared, listed)
    if not listed.names and any(isinstance(each, PublishedTotals) and each.level for each in declared.invariants):
        raise click.UsageError("the schema has published totals: give the list of groups with --groups")
    published_totals(declared.invariants, listed)
    broken, unfit = breaches(rows, declared.invariants), outside(declared, table.cells)
    unknown = sorted(set(table.cells.column_names) - set(declared.names) - set(listed.names) - {weight})
    parts, shape = len(declared.coded), declared.shape(declared.coded)
    (occurring, in_words), unlisted = groups_with_public_rows(rows, listed), unlisted_groups(declared, listed)
    recurring = recurring_names(listed, [[name] for name in listed.names])
    unit, budget = Unit(max_rows), Budget.pure(epsilon)
    scale = float(budget.noise_scale(unit.rows * parts, unit.rows**2 * parts))
    facts = {
        "rows": len(rows),
        "columns": dict(zip(declared.coded, shape, strict=True)),
        "not_in_schema": unknown,
        "outside": {name: {str(value): number for value, number in cells.items()} for name, cells in unfit.items()},
        "groups": len(listed),
        "public_groups": len(rows.groups),
        "groups_with_public_rows": occurring,
        "not_in_groups": unlisted,
        "recurring": recurring,
        "rules": [asdict(each) for each in broken],
        "one_way": {"parts": parts, "counts": sum(shape), "epsilon": epsilon, "laplace_scale": scale},
    }
    words = [
        f"{len(rows):,} rows, {parts} columns to estimate with {sum(shape):,} cells",
        f"{len(listed):,} groups to estimate, {len(rows.groups):,} groups in the public table",
        in_words,
        *left_out_in_words([], unlisted),
        *recurring,
        f"not in the schema, and ignored: {', '.join(unknown)}" if unknown else "",
        *(_unfit(name, cells, len(rows)) for name, cells in unfit.items()),
        "all values fit the schema" if not unfit else "each column's policy decides what happens to these rows",
        *map(str, broken),
        f"to measure all {parts} one-way tables of every group with {budget}, each count gets Laplace noise of scale "
        f"{scale:,.4g}",
    ]
    result(facts, "\n".join(filter(None, words)))


def _unfit(name: str, cells: dict[Any, int], rows: int) -> str:
    """Describe the values of a column that do not fit the schema, the most frequent first."""
    values = sorted(cells, key=lambda value: -cells[value])
    listed = ", ".join("missing" if value is None else str(value)[:30] for value in values[:SHOWN])
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    number = sum(cells.values())
    return f"{name}: {number:,} rows ({number / rows:.2%}) do not fit the schema: {listed}{more}"
