"""The command `check`: how public files fit a schema, and how a private table fits a plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from prade.cli.main import FILE, as_json, examples, prade, result
from prade.cli.options import csv_options, public_files, rows_per_person, weight
from prade.cli.plan_commands import SHOWN

if TYPE_CHECKING:
    from prade.data.declare.groups import Groups
    from prade.data.declare.schema import Schema
    from prade.data.public.public import Public
    from prade.planning.invariants import Breach


@prade.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="PLAN | PUBLIC...")
@click.option("--private", type=FILE, help="Private table to look at; it is compared with the PLAN.")
@click.option("--schema", "schema_file", type=FILE, help="Schema file, which the PUBLIC files are compared with.")
@click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups.")
@weight
@click.option("--epsilon", default="1", show_default=True, help="Budget for which to compute the noise scale.")
@rows_per_person
@csv_options("files", "private", "groups_file", private=True)
@as_json
@examples(
    "  prade check --schema schema.toml --groups places.csv public.parquet\n"
    "  prade check plan.toml --private people.csv"
)
def check(files: tuple[str, ...], private: str | None, schema_file: str | None, **options: Any) -> None:
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
    public_only = [name for name in options if given(name) is ParameterSource.COMMANDLINE]
    if private is not None and schema_file is None and len(files) == 1 and not public_only:
        _check_private(files[0], private)
    elif private is None and schema_file is not None:
        _check_public(files, schema_file, **options)
    else:
        raise click.UsageError("give one plan with --private alone, or public files with --schema")


def _check_private(plan_file: str, private: str) -> None:
    """Show the custodian how a private table fits a plan."""
    from prade.measuring.check import check as look
    from prade.planning.plan import Plan

    fit = look(Plan.load(plan_file), private)
    result(fit.to_dict(), str(fit))
    if not fit.fits:
        click.get_current_context().exit(1)


def _check_public(
    public: tuple[str, ...],
    schema_file: str,
    *,
    groups_file: str | None,
    weight: str | None,
    epsilon: str,
    max_rows_per_person: int,
) -> None:
    """Show how public files fit a schema."""
    from prade.data.declare.groups import Groups
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import outside
    from prade.data.public.table import PublicTable
    from prade.planning.plan import groups_with_public_rows, left_out_in_words, unlisted_groups
    from prade.planning.task import recurring_names
    from prade.privacy.budget import Budget
    from prade.privacy.protection import Unit

    declared, table = Schema.load(schema_file), PublicTable(public_files(public, weight))
    listed = Groups.of(groups_file)
    rows = table.rows(declared, listed)
    broken = _broken_rules(declared, rows, listed)
    unknown = sorted(set(table.cells.column_names) - set(declared.names) - set(listed.names) - {weight})
    unfit = outside(declared, table.cells)
    parts, shape = len(declared.coded), declared.shape(declared.coded)
    (occurring, in_words), unlisted = groups_with_public_rows(rows, listed), unlisted_groups(declared, listed)
    unit, budget = Unit(max_rows_per_person), Budget.pure(epsilon)
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
        "recurring": recurring_names(listed, [[name] for name in listed.names]),
        "rules": [asdict(each) for each in broken],
        "one_way": {"parts": parts, "counts": sum(shape), "epsilon": epsilon, "laplace_scale": scale},
    }
    about_groups = [in_words, *left_out_in_words([], unlisted), *recurring_names(listed, [[n] for n in listed.names])]
    words = [
        f"{len(rows):,} rows, {parts} columns to estimate with {sum(shape):,} cells",
        f"{len(listed):,} groups to estimate, {len(rows.groups):,} groups in the public table",
        *filter(None, about_groups),
        *([f"not in the schema, and ignored: {', '.join(unknown)}"] if unknown else []),
        *(_unfit(name, cells, len(rows)) for name, cells in unfit.items()),
        "all values fit the schema" if not unfit else "each column's policy decides what happens to these rows",
        *map(str, broken),
        f"to measure all {parts} one-way tables of every group with {budget}, each count gets Laplace noise of scale "
        f"{scale:,.4g}",
    ]
    result(facts, "\n".join(words))


def _broken_rules(schema: Schema, rows: Public, listed: Groups) -> list[Breach]:
    """How often the public rows break each rule. Published totals that do not fit the groups are refused."""
    from prade.data.declare.schema import PublishedTotals
    from prade.planning.invariants import breaches, published_totals

    if not listed.names and any(isinstance(each, PublishedTotals) and each.level for each in schema.invariants):
        raise click.UsageError("the schema has published totals: give the list of groups with --groups")
    published_totals(schema.invariants, listed)
    return breaches(rows, schema.invariants)


def _unfit(name: str, cells: dict[Any, int], rows: int) -> str:
    """Describe the values of a column that do not fit the schema, the most frequent first."""
    values = sorted(cells, key=lambda value: -cells[value])
    listed = ", ".join("missing" if value is None else str(value)[:30] for value in values[:SHOWN])
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    number = sum(cells.values())
    return f"{name}: {number:,} rows ({number / rows:.2%}) do not fit the schema: {listed}{more}"
