"""The command `plan`: one budget gives one plan; several give one plan each, a table, and a page to compare them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.csv_options import csv_options
from prade.cli.main import FILE, examples, need_new_file, prade, remark, result, text_table
from prade.cli.options import Where, worker_options
from prade.cli.planning_commands import as_json, facts_of, force, planning, task_of

if TYPE_CHECKING:
    from prade.planning.task import Task
    from prade.privacy.budget import Budget
    from prade.tuning.explore import Exploration

TOO_SMALL = "The public table is too small for a rehearsal. This is the simplest plan, and its error is unknown."
PAGE = "explore.html"


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
def plan(
    output: str,
    page: str | None,
    no_page: bool,
    force: bool,
    tune: bool,
    effort: float,
    seconds: float | None,
    where: Where,
    as_json: bool,
    **options: Any,
) -> None:
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
    if not several and (page or no_page):
        raise click.UsageError("--page and --no-page are for several budgets, as in --epsilon 0.1,1,10")
    limits = {"effort": effort, "seconds": seconds}
    if several:
        named = str(Path(output).with_name(PAGE)) if page is None else page
        _several(output, None if no_page else named, force, limits, where, as_json, options)
    else:
        _one(output, force, tune, limits, where, as_json, options)


# ---------------------------------------------------------------------- one budget


def _one(
    output: str, force: bool, tune: bool, limits: dict[str, Any], where: Where, as_json: bool, options: dict[str, Any]
) -> None:
    from prade.pipeline import plan as make_plan
    from prade.planning.plan import columns_left_out, groups_with_public_rows, left_out_in_words, unlisted_groups

    need_new_file(output, force)
    task, table = task_of(**options)
    _remark_on(task, [task.budget])
    with where.execution() as execution:
        made = make_plan(task, table, tune=tune, execution=execution, **limits)
    made.save(output)
    if tune:
        remark(made.advice if made.expected else TOO_SMALL)
    occurring, in_words = groups_with_public_rows(table.rows(task.schema, task.groups), task.groups)
    covered = [in_words, *left_out_in_words(columns_left_out(made), unlisted_groups(made.schema, made.groups))]
    lines = [made.describe(), *filter(None, covered), made.promise(), f"The plan is in {output}."]
    facts = {"file": output, "advice": made.advice, **facts_of(made), "groups_with_public_rows": occurring}
    result(facts, "\n".join(lines), as_json)


def _remark_on(task: Task, budgets: list[Budget]) -> None:
    """Say which budgets hardly protect, and which names recur."""
    from prade.privacy.protection import weakness

    for budget in budgets:
        if why := weakness(budget):
            at = f" at {budget}" if len(budgets) > 1 else ""
            remark(f"Weak protection{at}: {why}. Measuring this plan requires --yes-weak-protection.")
    for sentence in task.recurring_names():
        remark(sentence)


# ---------------------------------------------------------------------- several budgets


def _several(
    output: str,
    page: str | None,
    force: bool,
    limits: dict[str, Any],
    where: Where,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Rehearse several budgets; all that can be refused is refused before the work starts."""
    from prade.reporting.explore_page import write_explore
    from prade.reporting.html import packed
    from prade.tuning.explore import budgets_of, explore, plan_file

    kind = "epsilon" if options["epsilon"] else "rho"
    amounts = [amount.strip() for amount in options[kind].split(",")]
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
        explored = explore(task, table, budgets, execution=execution, **limits)
    if page is not None:
        write_explore(explored.to_dict(output, array=lambda values: packed(values, unit=1, type="f32")), page)
    files = [str(path) for path in explored.save_plans(output)]  # last: who finds the plans finds the page too
    result({**explored.to_dict(output), "files": files, "page": page}, _in_words(explored, files, page), as_json)


def _targets(explored: Exploration) -> list[dict[str, Any]]:
    """The expected error of every target at each budget, one row per target and level."""
    said = [each.tuned.expected.targets for each in explored.rehearsed]
    amounts = [str(row[next(iter(row))]) for row in explored.table()]
    rows = []
    for errors in zip(*said, strict=True):
        at = {f"at {amount}": f"{error.error:.4f}" for amount, error in zip(amounts, errors, strict=True)}
        rows.append({"target": errors[0].what, "by": errors[0].by, "public table": f"{errors[0].prior:.4f}", **at})
    return rows


def _in_words(explored: Exploration, files: list[str], page: str | None) -> str:
    """The table of budgets, the elbow, and where the plans are."""
    facts = explored.to_dict()
    lines = [
        text_table(explored.table()),
        *([text_table(rows)] if (rows := _targets(explored)) else []),
        facts["elbow"],
        facts["rehearsal"],
        *facts["caveats"],
        "Nothing private was read, and nothing was spent.",
        f"The plans are in {', '.join(files)}.",
        None if page is None else f"The page is {page}.",
    ]
    return "\n".join(filter(None, lines))
