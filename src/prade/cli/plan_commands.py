"""The commands of `schema`, `check` and `plan`.

One budget gives one plan; several give one plan each, a table, and a page to compare them. Heavy modules are imported
where they are used, so that `prade --help` starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import prade
from prade.cli import options as shared
from prade.cli.main import FILE, examples, need_new_file, program, remark, result, text_table
from prade.cli.options import Paths, Working
from prade.core.errors import many

SHOWN = 5  # values to list, of those that do not fit a column
TOO_SMALL = "The public table is too small for a rehearsal. This is the simplest plan, and its error is unknown."
PAGE = "explore.html"


def facts_of(plan: prade.Plan) -> dict[str, Any]:
    """Return a plan's cost, promise and expected error, for JSON."""
    from prade.planning.plan import columns_left_out

    return {
        "plan": plan.hash,
        "dataset": plan.dataset,
        "cost": plan.budget.to_dict(),
        "promise": plan.promise(),
        "groups": len(plan.groupings[-1]),
        "not_measured": columns_left_out(plan),
        "levels": [level.name for level in plan.levels],
        "expected": None if plan.expected is None else asdict(plan.expected),
    }


def _in_texts(outside: dict[str, dict[Any, int]]) -> dict[str, dict[str, int]]:
    """How often each value that does not fit its column occurs, with texts for keys, as JSON has them."""
    return {name: {str(value): number for value, number in cells.items()} for name, cells in outside.items()}


# ---------------------------------------------------------------------- schema


@program.group()
@examples("  prade schema infer public.parquet --groups STATE,PUMA -o schema.toml", with_json=False)
def schema() -> None:
    """Describe the columns of the tables."""


@schema.command()
@click.argument("public", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", default="schema.toml", show_default=True, type=FILE, help="File to write.")
@shared.force
@click.option("--groups", default="", metavar="COLUMNS", help="Columns that give the place or year, as in STATE,PUMA.")
@click.option("--skip", default="", metavar="COLUMNS", help="Columns to leave out, such as identifiers.")
@shared.weight
@click.option("--max-values", default=64, show_default=True, help="Most values that a categorical column may have.")
@click.option("--bins", default=20, show_default=True, help="Bins of a numeric column with more values than that.")
@shared.csv_options("public")
@examples("  prade schema infer public.parquet --groups STATE,PUMA --skip SERIALNO -o schema.toml")
def infer(public: Paths, output: str, force: bool, groups: str, skip: str, weight: str | None, **limits: int) -> None:
    """Draft a schema from PUBLIC files.

    Read the draft, and correct it from the codebook.
    """
    from prade.data.public.joint import outside

    need_new_file(output, force)
    source, columns = shared.public_files(public).source(), shared.columns_of
    draft = prade.Schema.infer(source, groups=columns(groups), weight=weight, skip=columns(skip), **limits)
    draft.save(output)
    unread = _in_texts(outside(draft, source))
    words = f"{output}: {len(draft.coded)} columns to estimate, {len(draft.groups)} group columns"
    result({"schema": output, "columns": draft.coded, "groups": draft.groups, "read_as_missing": unread}, words)
    for value in dict.fromkeys(value for cells in unread.values() for value in cells):
        names = [name for name, cells in unread.items() if value in cells]
        rows = sum(unread[name][value] for name in names)
        remark(f"{value!r} is not a number and was taken for missing ({rows:,} cells): {', '.join(names)}")
    remark(
        "Add the values that private rows may have but the public table lacks. A value that is not listed counts as "
        "`other` if you name one, else as missing, else as the last value of the list."
    )


@schema.command()
@click.argument("schema_file", metavar="SCHEMA", type=FILE)
@click.option("--codebook", required=True, type=FILE, help="CSV file with titles, descriptions, units and labels.")
@click.option(
    "-o", "--output", type=FILE, help="File to write.  [default: the schema file, with --force; RELEASE/labels.toml]"
)
@shared.force
@shared.csv_options("codebook")
@examples(
    "  prade schema label --codebook codebook.csv schema.toml -o labelled.toml\n"
    "  prade schema label --codebook codebook.csv release"
)
def label(schema_file: str, codebook: str, output: str | None, force: bool) -> None:
    """Label the columns and values of a SCHEMA, or of a release, from a codebook.

    The codebook is a CSV file with the columns column, title, description, unit, value and label; a line without a
    value is about the column itself. The Census Bureau's PUMS data dictionary, with lines NAME and VAL, is read too.
    Labels are for readers. A plan measures and costs the same with them and without. Give the folder of a release to
    label what was measured already.
    """
    from prade.data.declare.codebook import labelled
    from prade.release.release import LABELS

    is_release = Path(schema_file).is_dir()
    written = output or (str(Path(schema_file) / LABELS) if is_release else schema_file)
    need_new_file(written, force)
    unlabelled = prade.Release.load(schema_file).plan.schema if is_release else prade.Schema.load(schema_file)
    labels = labelled(unlabelled, codebook)
    labels.schema.save(written)
    words = f"{written}: {many(len(labels.columns), 'column')} and {many(labels.values, 'value')} labelled"
    result({**labels._asdict(), "schema": written}, words)
    if labels.without_entry:
        remark(f"Without an entry in {codebook}: {', '.join(labels.without_entry)}")
    if labels.unknown_columns:
        remark(f"In {codebook}, but not in the schema: {_some(labels.unknown_columns)}")
    for column, values in labels.unknown_values.items():
        remark(f"{column} does not list these values of {codebook}: {_some(values)}")


def _some(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


# ---------------------------------------------------------------------- check


@program.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="PLAN | PUBLIC...")
@click.option("--private", type=FILE, help="Private table to look at; it is compared with the PLAN.")
@click.option("--schema", "schema_file", type=FILE, help="Schema file, which the PUBLIC files are compared with.")
@click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups.")
@shared.weight
@shared.csv_options("files", "private", "groups_file")
@examples(
    "  prade check --schema schema.toml --groups places.csv public.parquet\n"
    "  prade check plan.toml --private people.csv"
)
def check(files: Paths, private: str | None, schema_file: str | None, **options: Any) -> None:
    """Check PUBLIC files against a schema, or a private table against a PLAN.

    With --schema, the command shows what the public files contain and which values do not fit the schema.

    With --private, it shows how a private table fits a plan: missing columns, cells outside the schema, groups that are
    not listed, rows without an id. This is for the custodian's eyes only. The exit code is 1 if a column is missing, if
    more than 10 % of its cells are outside the schema, or if more than 10 % of the rows are in groups that are not
    listed.

    Nothing is written, and nothing is spent.
    """
    given = click.get_current_context().get_parameter_source
    public_only = [name for name in options if given(name) is ParameterSource.COMMANDLINE]
    if private is not None and schema_file is None and len(files) == 1 and not public_only:
        fit = prade.check(prade.Plan.load(files[0]), private)
        result(fit.to_dict(), str(fit))
        if not fit.fits:
            click.get_current_context().exit(1)
    elif private is None and schema_file is not None:
        _check_public(files, schema_file, **options)
    else:
        raise click.UsageError("give one plan with --private alone, or public files with --schema")


def _check_public(files: Paths, schema_file: str, groups_file: str | None, weight: str | None) -> None:
    """Show how public files fit a schema. Published totals that do not fit the groups are refused."""
    from prade.data.public.joint import outside
    from prade.data.public.table import PublicTable
    from prade.planning.invariants import breaches, published_totals
    from prade.planning.plan import groups_with_public_rows, left_out_in_words, unlisted_groups
    from prade.planning.task import recurring_names

    declared, table = prade.Schema.load(schema_file), PublicTable(shared.public_files(files, weight))
    listed = prade.Groups.of(groups_file)
    rows = table.rows(declared, listed)
    if not listed.names and any(isinstance(each, prade.PublishedTotals) and each.level for each in declared.invariants):
        raise click.UsageError("the schema has published totals: give the list of groups with --groups")
    published_totals(declared.invariants, listed)
    broken, unfit = breaches(rows, declared.invariants), outside(declared, table.cells)
    unknown = sorted(set(table.cells.column_names) - set(declared.names) - set(listed.names) - {weight})
    shape = declared.shape(declared.coded)
    (occurring, in_words), unlisted = groups_with_public_rows(rows, listed), unlisted_groups(declared, listed)
    recurring = recurring_names(listed, [[name] for name in listed.names])
    facts = {
        "rows": len(rows),
        "columns": dict(zip(declared.coded, shape, strict=True)),
        "not_in_schema": unknown,
        "outside": _in_texts(unfit),
        "groups": len(listed),
        "public_groups": len(rows.groups),
        "groups_with_public_rows": occurring,
        "not_in_groups": unlisted,
        "recurring": recurring,
        "rules": [asdict(each) for each in broken],
    }
    words = [
        f"{len(rows):,} rows, {len(shape)} columns to estimate with {sum(shape):,} cells",
        f"{len(listed):,} groups to estimate, {len(rows.groups):,} groups in the public table",
        in_words,
        *left_out_in_words([], unlisted),
        *recurring,
        f"not in the schema, and ignored: {', '.join(unknown)}" if unknown else "",
        *(_unfit(name, cells, len(rows)) for name, cells in unfit.items()),
        "all values fit the schema" if not unfit else "each column's policy decides what happens to these rows",
        *map(str, broken),
    ]
    result(facts, "\n".join(filter(None, words)))


def _unfit(name: str, cells: dict[Any, int], rows: int) -> str:
    """Describe the values of a column that do not fit the schema, the most frequent first."""
    values = sorted(cells, key=lambda value: -cells[value])
    listed = _some(["missing" if value is None else str(value)[:30] for value in values])
    number = sum(cells.values())
    return f"{name}: {number:,} rows ({number / rows:.2%}) do not fit the schema: {listed}"


# ---------------------------------------------------------------------- plan


@program.command()
@shared.planning
@shared.csv_options("public", "groups_file")
@click.option("-o", "--output", default="plan.toml", show_default=True, type=FILE, help="File to write.")
@click.option("--page", type=FILE, help=f"Page to write about several budgets. [default: {PAGE} beside the plans]")
@shared.force
@shared.worker_options
@examples(
    "  prade plan --schema schema.toml --public public.parquet --groups places.csv --levels STATE,PUMA \\\n"
    "      --epsilon 1 -o plan.toml\n\n"
    "\b\nExample of several budgets, which writes plan-0.1.toml, plan-1.toml, plan-10.toml and explore.html:\n"
    "  prade plan --schema schema.toml --public public.parquet --groups places.csv --levels STATE,PUMA \\\n"
    "      --epsilon 0.1,1,10"
)
def plan(page: str | None, output: str, force: bool, tune: bool, work: Working, **options: Any) -> None:
    """Decide what to measure, from public data only.

    The tuner chooses the tables to measure and their noise by rehearsal, and states the error to expect. This command
    spends nothing.

    Several budgets, as in --epsilon 0.1,1,10 or --rho 0.1,1, are all rehearsed: the command prints what each would
    buy, writes one plan for each (plan-0.1.toml beside plan.toml), and a page that shows it. All of them together take
    twice the --effort of one. More workers end sooner.
    """
    several = "," in (options["epsilon"] or options["rho"] or "")
    if several and not tune:
        raise click.UsageError("several budgets are compared by rehearsal: leave out --no-tune, or give one budget")
    if not several and page:
        raise click.UsageError("--page is for several budgets, as in --epsilon 0.1,1,10")
    tuning = {name: options.pop(name) for name in shared.TUNING}
    if several:
        page = page or str(Path(output).with_name(PAGE))
        facts, lines = _several(page, output, force, work, tuning, **options)
    else:
        facts, lines = _one(output, force, tune, work, tuning, **options)
    result(facts, "\n".join(filter(None, lines)))


def _one(
    output: str, force: bool, tune: bool, work: Working, tuning: dict[str, Any], **options: Any
) -> tuple[dict[str, Any], list[str]]:
    from prade.planning.plan import columns_left_out, groups_with_public_rows, left_out_in_words, unlisted_groups

    need_new_file(output, force)
    task, table = shared.task_of(**options)
    _remark_on(task, [task.budget])
    with work as execution:
        made = prade.plan(task, table, tune=tune, execution=execution, **tuning)
    made.save(output)
    if tune:
        remark(made.advice if made.expected else TOO_SMALL)
    occurring, in_words = groups_with_public_rows(table.rows(task.schema, task.groups), task.groups)
    covered = [in_words, *left_out_in_words(columns_left_out(made), unlisted_groups(made.schema, made.groups))]
    facts = {"file": output, "advice": made.advice, **facts_of(made), "groups_with_public_rows": occurring}
    return facts, [made.describe(), *covered, made.promise(), f"The plan is in {output}."]


def _several(
    page: str, output: str, force: bool, work: Working, tuning: dict[str, Any], **options: Any
) -> tuple[dict[str, Any], list[str]]:
    """Rehearse several budgets; all that can be refused is refused before the work starts."""
    from prade.reporting.html import write_explore
    from prade.tuning.explore import budgets_of, explore, plan_file

    kind = "epsilon" if options["epsilon"] else "rho"
    amounts = [amount.strip() for amount in options[kind].split(",")]
    task, table = shared.task_of(**{**options, kind: amounts[0]})
    budgets = budgets_of(task, amounts)
    plans = [plan_file(output, budget) for budget in budgets]
    for path in plans:
        need_new_file(path, force)
    need_new_file(page, force, "--page")
    if Path(page).absolute() in [path.absolute() for path in plans]:
        raise click.UsageError(f"--page {page} is also the name of a plan: choose another")
    _remark_on(task, budgets)
    with work as execution:
        explored = explore(task, table, budgets, execution=execution, **tuning)
    facts = explored.to_dict(output)
    write_explore(facts, page)
    files = [str(path) for path in explored.save_plans(output)]  # last: who finds the plans finds the page too
    return {**facts, "files": files, "page": page}, [
        text_table(explored.table()),
        facts["elbow"],
        facts["rehearsal"],
        *facts["caveats"],
        "Nothing private was read, and nothing was spent.",
        f"The plans are in {', '.join(files)}.",
        f"The page is {page}.",
    ]


def _remark_on(task: prade.Task, budgets: list[prade.Budget]) -> None:
    """Say which budgets hardly protect, and which names recur."""
    from prade.planning.task import recurring_names
    from prade.privacy.protection import weakness

    for budget in budgets:
        if why := weakness(budget):
            at = f" at {budget}" if len(budgets) > 1 else ""
            remark(f"Weak protection{at}: {why}. Measuring this plan requires --yes-weak-protection.")
    for sentence in recurring_names(task.groups, task.levels):
        remark(sentence)
