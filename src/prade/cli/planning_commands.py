"""The commands before anything is measured: a schema, a check of the public table, a plan.

Whatever is heavy is imported by the command that needs it, so that `prade --help` answers at once.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.console import FILE, need_file
from prade.cli.main import Command, examples, prade, remark, result
from prade.core.errors import DataError

if TYPE_CHECKING:
    from prade.data.public_files import PublicFiles
    from prade.data.public_table import PublicTable
    from prade.planning.plan import Plan
    from prade.planning.task import Task
    from prade.privacy.budget import Budget

SHOWN = 5  # values that are named of those that do not fit

as_json = click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
weight = click.option("--weight", metavar="COLUMN", help="Column of the public rows' weights.")
public_again = click.option(
    "--public", multiple=True, type=FILE, help="Where the public files are now, if they are not where the plan says."
)


def columns_of(text: str) -> list[str]:
    """Names joined by commas or plus signs: "STATE,PUMA" or "STATE+PUMA"."""
    return [name.strip() for name in re.split("[,+]", text) if name.strip()]


def public_files(paths: tuple[str, ...], weight: str | None = None) -> PublicFiles:
    """The public files as they were typed."""
    from prade.data.public_files import PublicFiles

    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"there is no public file {path}; check the path")
    return PublicFiles.at(paths, weight)


def levels_of(text: str) -> list[list[str]]:
    """Levels are separated by commas, the columns of a level by plus signs.

    >>> levels_of("STATE,PUMA+YEAR")
    [['STATE'], ['PUMA', 'YEAR']]
    """
    return [columns_of(level) for level in text.split(",") if level.strip()]


# ---------------------------------------------------------------------- schema


@prade.group()
@examples("  prade schema infer public.parquet --groups STATE,PUMA -o schema.toml")
def schema() -> None:
    """What the columns are."""


@schema.command()
@click.argument("public", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", default="schema.toml", show_default=True, type=FILE, help="File to write.")
@click.option("--groups", default="", metavar="COLUMNS", help="Columns that say the place or year, as in STATE,PUMA.")
@click.option("--skip", default="", metavar="COLUMNS", help="Columns to leave out, such as identifiers.")
@weight
@click.option("--max-values", default=64, show_default=True, help="Most values of a categorical column.")
@click.option("--bins", default=20, show_default=True, help="Bins of a column of many numbers.")
@as_json
@examples("  prade schema infer public.parquet --groups STATE,PUMA --skip SERIALNO -o schema.toml")
def infer(
    public: tuple[str, ...],
    output: str,
    groups: str,
    skip: str,
    weight: str | None,
    max_values: int,
    bins: int,
    as_json: bool,
) -> None:
    """Propose a schema from PUBLIC files.

    Read the proposal, and correct it from the codebook.
    """
    from prade.data.schema import Schema

    need_file(output)
    source = public_files(public).source()
    found = Schema.infer(
        source, groups=columns_of(groups), weight=weight, skip=columns_of(skip), max_values=max_values, bins=bins
    )
    found.save(output)
    words = f"{output}: {len(found.coded)} columns to estimate, {len(found.groups)} group columns"
    result({"schema": output, "columns": found.coded, "groups": found.groups}, words, as_json)
    remark("Values that the public table happens not to have, but a private row may have, belong in the lists.")


# ---------------------------------------------------------------------- check


@prade.command()
@click.argument("public", nargs=-1, required=True, type=FILE)
@click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file.")
@click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups.")
@weight
@click.option("--epsilon", default="1", show_default=True, help="Budget for which the noise is worked out.")
@click.option("--max-rows-per-person", default=1, show_default=True, help="Most rows that one person may have.")
@as_json
@examples("  prade check --schema schema.toml --groups places.csv public.parquet")
def check(
    public: tuple[str, ...],
    schema_file: str,
    groups_file: str | None,
    weight: str | None,
    epsilon: str,
    max_rows_per_person: int,
    as_json: bool,
) -> None:
    """Check PUBLIC files against a schema.

    Says what is in them, what does not fit, and how much noise a budget would put into counts. Spends nothing.
    """
    from prade.data.encode import outside
    from prade.data.groups import Groups
    from prade.data.public import Public, group_columns
    from prade.data.schema import Schema
    from prade.data.tables import read_table
    from prade.planning.task import recurring_names
    from prade.privacy.budget import Budget
    from prade.privacy.unit import Unit

    declared, source = Schema.load(schema_file), public_files(public).source()
    listed = Groups.of(groups_file)
    rows = Public.of(declared, source, group_columns(listed, declared), weight=weight)
    unknown = sorted(set(read_table(source).column_names) - set(declared.names) - set(listed.names) - {weight})
    unfit = outside(declared, source)
    parts, shape = len(declared.coded), declared.shape(declared.coded)
    unit, budget = Unit(max_rows_per_person), Budget.pure(epsilon)
    scale = float(budget.noise_scale(unit.rows * parts, unit.rows**2 * parts))
    found = {
        "rows": len(rows),
        "columns": dict(zip(declared.coded, shape, strict=True)),
        "not_in_schema": unknown,
        "outside": {name: {str(value): number for value, number in cells.items()} for name, cells in unfit.items()},
        "groups": len(listed),
        "public_groups": len(rows.groups),
        "recurring": recurring_names(listed, [[name] for name in listed.names]),
        "one_way": {"parts": parts, "counts": sum(shape), "epsilon": epsilon, "laplace_scale": scale},
    }
    words = [
        f"{len(rows):,} rows, {parts} columns to estimate with {sum(shape):,} cells",
        f"groups: {len(listed):,} to estimate, {len(rows.groups):,} among the public rows",
        *recurring_names(listed, [[name] for name in listed.names]),
        *([f"not in the schema, and left out: {', '.join(unknown)}"] if unknown else []),
        *(_unfit(name, cells, len(rows)) for name, cells in unfit.items()),
        "everything fits the schema" if not unfit else "what does not fit follows the column's policy",
        f"all {parts} one-way tables of every group for {budget}: noise of Laplace scale {scale:,.4g} in each count",
    ]
    result(found, "\n".join(words), as_json)


def _unfit(name: str, cells: dict[Any, int], rows: int) -> str:
    most = sorted(cells.items(), key=lambda each: -each[1])
    named = ", ".join("missing" if value is None else str(value)[:30] for value, _ in most[:SHOWN])
    more = f" and {len(most) - SHOWN} more" if len(most) > SHOWN else ""
    number = sum(cells.values())
    return f"{name}: {number:,} rows ({number / rows:.2%}) do not fit the schema: {named}{more}"


# ---------------------------------------------------------------------- plan


def planning(command: Command) -> Command:
    """The options by which a plan is made."""
    options = [
        click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file."),
        click.option(
            "--public",
            multiple=True,
            required=True,
            type=FILE,
            help="File of public rows; may be given several times.",
        ),
        weight,
        click.option(
            "--groups", "groups_file", type=FILE, help="File with the public list of groups, one row a group."
        ),
        click.option("--levels", default="", help="Levels from coarse to fine, as in STATE,PUMA+YEAR."),
        click.option("--epsilon", help="Privacy budget, as in 1 or 0.1 or 1/3."),
        click.option("--delta", help="With it, (epsilon, delta) differential privacy and Gaussian noise."),
        click.option("--rho", help="Instead of --epsilon: zero-concentrated differential privacy, Gaussian noise."),
        click.option("--max-rows-per-person", default=1, show_default=True, help="Most rows that one person may have."),
        click.option("--person-id", metavar="COLUMN", help="Column that says whose row it is: the bound is enforced."),
        click.option(
            "--dataset",
            default="private",
            show_default=True,
            help="Name under which the ledger knows the private table.",
        ),
        click.option(
            "--tune/--no-tune", default=True, help="Choose by rehearsal on the public rows, or take the simplest."
        ),
        click.option("--seconds", default=120.0, show_default=True, help="Time for the rehearsals."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


ledger_option = click.option(
    "--ledger", "ledger_file", type=FILE, help="Ledger file; else PRADE_LEDGER, else the one in your data folder."
)


def spending(command: Command) -> Command:
    """The options of whatever spends."""
    options = [
        ledger_option,
        click.option("--again", is_flag=True, help="Pay once more for a plan that is paid for, into a new folder."),
        click.option(
            "--yes-weak-protection",
            "weak_protection",
            is_flag=True,
            help="Spend a budget that hardly protects: an epsilon above 20, or a delta of 1/1000 or more.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def budget_of(epsilon: str | None, delta: str | None, rho: str | None, *, epsilon_option: str = "--epsilon") -> Budget:
    """The budget as it was typed: epsilon, epsilon with delta, or rho."""
    from prade.privacy.budget import Budget

    if rho is not None and epsilon is None and delta is None:
        return Budget.zcdp(rho)
    if epsilon is None or rho is not None:
        raise click.UsageError(f"give the budget as {epsilon_option}, as {epsilon_option} with --delta, or as --rho")
    return Budget.pure(epsilon) if delta is None else Budget.approx(epsilon, delta)


def task_of(
    schema_file: str,
    public: tuple[str, ...],
    weight: str | None,
    groups_file: str | None,
    levels: str,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    max_rows_per_person: int,
    person_id: str | None,
    dataset: str,
) -> tuple[Task, PublicTable]:
    """The task and the public table that the options name."""
    from prade.data.public_table import PublicTable
    from prade.planning.task import Task
    from prade.privacy.unit import Unit

    budget, nest = budget_of(epsilon, delta, rho), levels_of(levels)
    if bool(nest) != bool(groups_file):
        raise click.UsageError("--groups and --levels go together: without either, everybody is one group")
    unit = Unit(max_rows_per_person, person_id=person_id)
    task = Task(dataset, schema_file, budget, unit, nest, groups_file)
    return task, PublicTable(public_files(public, weight))


def advice_of(plan: Plan) -> str:
    """What the rehearsals advise."""
    from prade.pipeline import NOT_REHEARSED

    return NOT_REHEARSED if plan.expected is None else plan.expected.advice


@prade.command()
@planning
@click.option("-o", "--output", default="plan.toml", show_default=True, type=FILE, help="File to write.")
@as_json
@examples(
    "  prade plan --schema schema.toml --public public.parquet --groups places.csv --levels STATE,PUMA \\\n"
    "      --epsilon 1 -o plan.toml"
)
def plan(output: str, tune: bool, seconds: float, as_json: bool, **options: Any) -> None:
    """Decide what to ask, from public data only.

    Chooses questions and their noise by rehearsal, and says which error to expect. Spends nothing.
    """
    from prade.core.progress import progress_bar
    from prade.pipeline import plan as make_plan
    from prade.privacy.protection import weakness

    need_file(output)
    task, table = task_of(**options)
    if why := weakness(task.budget):
        remark(f"Weak protection: {why}. To measure this plan takes --yes-weak-protection.")
    for words in task.recurring_names():
        remark(words)
    with progress_bar() as progress:
        made = make_plan(task, table, tune=tune, seconds=seconds, progress=progress)
    made.save(output)
    if tune:
        remark(advice_of(made))
    words = f"{made.describe()}\n{made.unit.promise()}\nwritten to {output}"
    result({"file": output, "advice": advice_of(made), **facts_of(made)}, words, as_json)


def facts_of(plan: Plan) -> dict[str, Any]:
    """What a plan costs and promises, for a script."""
    return {
        "plan": plan.hash,
        "dataset": plan.dataset,
        "cost": plan.budget.to_dict(),
        "promise": plan.unit.promise(),
        "groups": len(plan.groupings[-1]),
        "levels": [level.name for level in plan.levels],
        "expected": None if plan.expected is None else asdict(plan.expected),
    }
