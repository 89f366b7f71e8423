"""The commands `schema infer`, `schema label` and `plan`.

One budget gives one plan; several give one plan each, a table, and a page to compare them. Each command imports heavy
modules itself, so that `prade --help` starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.main import FILE, as_json, examples, need_new_file, prade, remark, result, text_table
from prade.cli.options import (
    TUNING,
    Where,
    columns_of,
    csv_options,
    force,
    planning,
    public_files,
    task_of,
    weight,
    worker_options,
)
from prade.core.errors import DataError, many

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.planning.task import Task
    from prade.privacy.budget import Budget
    from prade.tuning.explore import Exploration

SHOWN = 5  # values to list, of those that do not fit a column
TOO_SMALL = "The public table is too small for a rehearsal. This is the simplest plan, and its error is unknown."
PAGE = "explore.html"


def facts_of(plan: Plan) -> dict[str, Any]:
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


# ---------------------------------------------------------------------- schema


@prade.group()
@examples("  prade schema infer public.parquet --groups STATE,PUMA -o schema.toml")
def schema() -> None:
    """Describe the columns of the tables."""


@schema.command()
@click.argument("public", nargs=-1, required=True, type=FILE)
@click.option("-o", "--output", default="schema.toml", show_default=True, type=FILE, help="File to write.")
@force
@click.option("--groups", default="", metavar="COLUMNS", help="Columns that give the place or year, as in STATE,PUMA.")
@click.option("--skip", default="", metavar="COLUMNS", help="Columns to leave out, such as identifiers.")
@weight
@click.option("--max-values", default=64, show_default=True, help="Most values that a categorical column may have.")
@click.option("--bins", default=20, show_default=True, help="Bins of a numeric column with more values than that.")
@csv_options("public")
@as_json
@examples("  prade schema infer public.parquet --groups STATE,PUMA --skip SERIALNO -o schema.toml")
def infer(
    public: tuple[str, ...], output: str, force: bool, groups: str, skip: str, weight: str | None, **limits: int
) -> None:
    """Draft a schema from PUBLIC files.

    Read the draft, and correct it from the codebook.
    """
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import outside

    need_new_file(output, force)
    source = public_files(public).source()
    draft = Schema.infer(source, groups=columns_of(groups), weight=weight, skip=columns_of(skip), **limits)
    draft.save(output)
    unread = {
        name: {str(value): number for value, number in cells.items()} for name, cells in outside(draft, source).items()
    }
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


# ---------------------------------------------------------------------- plan


@prade.command()
@planning
@csv_options("public", "groups_file")
@click.option("-o", "--output", default="plan.toml", show_default=True, type=FILE, help="File to write.")
@click.option("--page", type=FILE, help=f"Page to write about several budgets. [default: {PAGE} beside the plans]")
@click.option("--no-page", is_flag=True, help="Write no page about several budgets.")
@force
@worker_options
@as_json
@examples(
    "  prade plan --schema schema.toml --public public.parquet --groups places.csv --levels STATE,PUMA \\\n"
    "      --epsilon 1 -o plan.toml\n\n"
    "\b\nExample of several budgets, which writes plan-0.1.toml, plan-1.toml, plan-10.toml and explore.html:\n"
    "  prade plan --schema schema.toml --public public.parquet --groups places.csv --levels STATE,PUMA \\\n"
    "      --epsilon 0.1,1,10"
)
def plan(page: str | None, no_page: bool, **options: Any) -> None:
    """Decide what to measure, from public data only.

    The tuner chooses the tables to measure and their noise by rehearsal, and states the error to expect. This command
    spends nothing.

    Several budgets, as in --epsilon 0.1,1,10 or --rho 0.1,1, are all rehearsed: the command prints what each would
    buy, writes one plan for each (plan-0.1.toml beside plan.toml), and a page that shows it. All of them together take
    twice the --effort of one. More workers end sooner.
    """
    several = "," in (options["epsilon"] or options["rho"] or "")
    if several and not options.pop("tune"):
        raise click.UsageError("several budgets are compared by rehearsal: leave out --no-tune, or give one budget")
    if not several and (page or no_page):
        raise click.UsageError("--page and --no-page are for several budgets, as in --epsilon 0.1,1,10")
    if several:
        beside = str(Path(options["output"]).with_name(PAGE))
        _several(None if no_page else page or beside, **options)
    else:
        _one(**options)


def _one(output: str, force: bool, tune: bool, where: Where, **options: Any) -> None:
    from prade.pipeline import plan as make_plan
    from prade.planning.plan import columns_left_out, groups_with_public_rows, left_out_in_words, unlisted_groups

    need_new_file(output, force)
    tuning = {name: options.pop(name) for name in TUNING}
    task, table = task_of(**options)
    _remark_on(task, [task.budget])
    with where.execution() as execution:
        made = make_plan(task, table, tune=tune, execution=execution, **tuning)
    made.save(output)
    if tune:
        remark(made.advice if made.expected else TOO_SMALL)
    occurring, in_words = groups_with_public_rows(table.rows(task.schema, task.groups), task.groups)
    covered = [in_words, *left_out_in_words(columns_left_out(made), unlisted_groups(made.schema, made.groups))]
    lines = [made.describe(), *filter(None, covered), made.promise(), f"The plan is in {output}."]
    facts = {"file": output, "advice": made.advice, **facts_of(made), "groups_with_public_rows": occurring}
    result(facts, "\n".join(lines))


def _several(page: str | None, output: str, force: bool, where: Where, **options: Any) -> None:
    """Rehearse several budgets; all that can be refused is refused before the work starts."""
    from prade.reporting.html import packed, write_explore
    from prade.tuning.explore import budgets_of, explore, plan_file

    kind = "epsilon" if options["epsilon"] else "rho"
    amounts = [amount.strip() for amount in options[kind].split(",")]
    tuning = {name: options.pop(name) for name in TUNING}
    task, table = task_of(**{**options, kind: amounts[0]})
    budgets = budgets_of(task, amounts)
    plans = [plan_file(output, budget) for budget in budgets]
    for path in plans:
        need_new_file(path, force)
    if page is not None:
        need_new_file(page, force, "--page")
        if Path(page).absolute() in [path.absolute() for path in plans]:
            raise click.UsageError(f"--page {page} is also the name of a plan: choose another")
    _remark_on(task, budgets)
    with where.execution() as execution:
        explored = explore(task, table, budgets, execution=execution, **tuning)
    if page is not None:
        write_explore(explored.to_dict(output, array=lambda values: packed(values, unit=1, type="f32")), page)
    files = [str(path) for path in explored.save_plans(output)]  # last: who finds the plans finds the page too
    facts = explored.to_dict(output)
    lines = [
        text_table(explored.table()),
        text_table(targets) if (targets := _targets(explored)) else None,
        facts["elbow"],
        facts["rehearsal"],
        *facts["caveats"],
        "Nothing private was read, and nothing was spent.",
        f"The plans are in {', '.join(files)}.",
        None if page is None else f"The page is {page}.",
    ]
    result({**facts, "files": files, "page": page}, "\n".join(filter(None, lines)))


def _remark_on(task: Task, budgets: list[Budget]) -> None:
    """Say which budgets hardly protect, and which names recur."""
    from prade.privacy.protection import weakness

    for budget in budgets:
        if why := weakness(budget):
            at = f" at {budget}" if len(budgets) > 1 else ""
            remark(f"Weak protection{at}: {why}. Measuring this plan requires --yes-weak-protection.")
    for sentence in task.recurring_names():
        remark(sentence)


def _targets(explored: Exploration) -> list[dict[str, Any]]:
    """The expected error of every target at each budget, one row per target and level."""
    amounts = [str(next(iter(row.values()))) for row in explored.table()]
    rows = []
    for errors in zip(*(each.tuned.expected.targets for each in explored.rehearsed), strict=True):
        at = {f"at {amount}": f"{error.error:.4f}" for amount, error in zip(amounts, errors, strict=True)}
        rows.append({"target": errors[0].what, "by": errors[0].by, "public table": f"{errors[0].prior:.4f}", **at})
    return rows


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
    "  prade schema label --codebook codebook.csv schema.toml --force\n"
    "  prade schema label --codebook codebook.csv release"
)
def label(schema_file: str, codebook: str, output: str | None, force: bool) -> None:
    """Label the columns and values of a SCHEMA, or of a release, from a codebook.

    The codebook is a CSV file with the columns column, title, description, unit, value and label; a line without a
    value is about the column itself.
    Labels are for readers. A plan measures and costs the same with them and without. Give the folder of a release to
    label what was measured already.
    """
    from prade.data.declare.display import labelled
    from prade.data.declare.schema import Schema
    from prade.release.release import LABELS, Release

    is_release = Path(schema_file).is_dir()
    written = output or (str(Path(schema_file) / LABELS) if is_release else schema_file)
    if not written.endswith(".toml"):
        raise DataError(f"{written} is not a .toml file, but one will be written: give its name with -o")
    need_new_file(written, force)
    unlabelled = Release.load(schema_file).plan.schema if is_release else Schema.load(schema_file)
    labels = labelled(unlabelled, codebook)
    with_comments = not is_release and "\n#" in "\n" + Path(schema_file).read_text("utf-8-sig")
    labels.schema.save(written)
    words = f"{written}: {many(len(labels.columns), 'column')} and {many(labels.values, 'value')} labelled"
    result({**labels._asdict(), "schema": written}, words)
    if labels.without_entry:
        remark(f"Without an entry in {codebook}: {', '.join(labels.without_entry)}")
    if labels.unknown_columns:
        remark(f"In {codebook}, but not in the schema: {_some(labels.unknown_columns)}")
    for column, values in labels.unknown_values.items():
        remark(f"{column} does not list these values of {codebook}: {_some(values)}")
    if with_comments:
        remark(f"Comments in {schema_file} are not in what was written.")


def _some(names: Sequence[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
