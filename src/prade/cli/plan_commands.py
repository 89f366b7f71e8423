"""The commands `schema infer` and `plan`, and the options that they share with other commands.

One budget gives one plan; several give one plan each, a table, and a page to compare them. Each command imports heavy
modules itself, so that `prade --help` starts fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.csv_options import csv_options
from prade.cli.main import FILE, Command, examples, need_new_file, prade, remark, result, text_table
from prade.cli.options import Where, public_files, worker_options
from prade.core.execution import EFFORT

if TYPE_CHECKING:
    from prade.data.public.table import PublicTable
    from prade.planning.plan import Plan
    from prade.planning.task import Task
    from prade.privacy.budget import Budget
    from prade.tuning.explore import Exploration

SHOWN = 5  # values to list, of those that do not fit a column
TOO_SMALL = "The public table is too small for a rehearsal. This is the simplest plan, and its error is unknown."
PAGE = "explore.html"

# ---------------------------------------------------------------------- options that commands share


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
rows_per_person = click.option(
    "--max-rows-per-person", default=1, show_default=True, help="Most rows that one person may have."
)
person_id_option = click.option(
    "--person-id",
    metavar="COLUMN",
    help="Column that identifies the person, so that prade can enforce the bound on rows.",
)
weight = click.option("--weight", metavar="COLUMN", help="Column with the weights of the public rows.")
force = click.option("--force", is_flag=True, help="Replace the file if it exists.")
ledger_option = click.option(
    "--ledger", "ledger_file", type=FILE, help="Ledger file. [default: PRADE_LEDGER, or the file in your data folder]"
)
spending = together(
    ledger_option,
    click.option(
        "--again", is_flag=True, help="Pay once more for a plan that has been paid for, and write to a new folder."
    ),
    click.option(
        "--yes-weak-protection",
        "weak_protection",
        is_flag=True,
        help="Accept a budget that hardly protects: an epsilon above 20, or a delta of 1/1000 or more.",
    ),
)
planning = together(
    click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file."),
    click.option(
        "--public",
        multiple=True,
        type=FILE,
        help="File of public rows; may be given several times. With --previous: a public file of that release that "
        "has moved, or lies outside the release's parent folder.",
    ),
    weight,
    click.option(
        "--previous",
        metavar="RELEASE",
        type=FILE,
        help="Folder of the last release of the same groups, whose estimates are the prior instead of public rows. "
        "Its data set and unit are the plan's.",
    ),
    click.option(
        "--other-people",
        is_flag=True,
        help="The --previous release is about other people, so the data set and the unit may differ.",
    ),
    click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups, one row per group."),
    click.option("--levels", default="", help="Levels from coarse to fine, as in STATE,PUMA+YEAR."),
    click.option("--targets", "targets_file", type=FILE, help="File of the tables that must be right first."),
    click.option("--epsilon", help="Privacy budget, as in 1 or 0.1 or 1/3."),
    click.option("--delta", help="With --epsilon: (epsilon, delta) differential privacy."),
    click.option("--rho", help="Instead of --epsilon: zero-concentrated differential privacy, Gaussian noise."),
    click.option(
        "--max-rows-per-person",
        type=int,
        help="Most rows that one person may have. [default: that of --previous, or 1]",
    ),
    person_id_option,
    click.option(
        "--dataset", help='Name of the private table in the ledger. [default: that of --previous, or "private"]'
    ),
    click.option(
        "--tune/--no-tune",
        default=True,
        help="Choose the plan by rehearsal on public rows, or take the simplest plan.",
    ),
    click.option(
        "--effort",
        default=EFFORT,
        show_default=True,
        help="Work that the rehearsals of a budget may be: 1 is about what two idle cores do in a second. The plan "
        "is the same however busy the machine is. W workers do W times the effort in the same time.",
    ),
    click.option(
        "--seconds",
        type=float,
        help="Seconds that the rehearsals of a budget may take at most; the plan then says that the time was up. "
        "[default: 600, or 5 for each 1 of effort]",
    ),
)


def columns_of(text: str) -> list[str]:
    """Split names that are joined by commas or plus signs, as in "STATE,PUMA" or "STATE+PUMA"."""
    return [name.strip() for name in re.split("[,+]", text) if name.strip()]


def levels_of(text: str) -> list[list[str]]:
    """Read levels from text: commas separate levels, plus signs separate the columns of a level.

    >>> levels_of("STATE,PUMA+YEAR")
    [['STATE'], ['PUMA', 'YEAR']]
    """
    return [columns_of(level) for level in text.split(",") if level.strip()]


def budget_of(epsilon: str | None, delta: str | None, rho: str | None, *, epsilon_option: str = "--epsilon") -> Budget:
    """Build the budget from the options: epsilon, epsilon with delta, or rho."""
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
    previous: str | None,
    other_people: bool,
    groups_file: str | None,
    levels: str,
    targets_file: str | None,
    epsilon: str | None,
    delta: str | None,
    rho: str | None,
    max_rows_per_person: int | None,
    person_id: str | None,
    dataset: str | None,
) -> tuple[Task, PublicTable]:
    """Build the task and the public table from the options."""
    from prade.data.public.table import PublicTable
    from prade.planning.task import Task
    from prade.privacy.protection import Unit
    from prade.release.release import Release

    if (not public and previous is None) or (previous is not None and weight is not None):
        raise click.UsageError(
            "give the public rows that estimates start from: files with --public (and --weight), or the last release "
            "with --previous"
        )
    if other_people and previous is None:
        raise click.UsageError("--other-people says whom the --previous release is about: also give --previous")
    budget, level_columns = budget_of(epsilon, delta, rho), levels_of(levels)
    if bool(level_columns) != bool(groups_file):
        raise click.UsageError(
            "--groups and --levels go together: give both, or neither to treat everybody as one group"
        )
    release = None if previous is None else Release.load(previous)
    name, unit = ("private", Unit()) if release is None else (release.plan.dataset, release.plan.unit)
    unit = unit if max_rows_per_person is None else replace(unit, max_rows=max_rows_per_person)
    unit = unit if person_id is None else replace(unit, person_id=person_id)
    name = name if dataset is None else dataset
    task = Task(name, schema_file, budget, unit, level_columns, groups_file, targets=targets_file or ())
    if release is not None:
        from prade.sampling.carried import carried_on

        return task, carried_on(release, task, public_files(public) if public else None, other_people=other_people)
    return task, PublicTable(public_files(public, weight))


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
@click.option(
    "--bins", default=20, show_default=True, help="Number of bins for a numeric column with more values than that."
)
@csv_options("public")
@as_json
@examples("  prade schema infer public.parquet --groups STATE,PUMA --skip SERIALNO -o schema.toml")
def infer(
    public: tuple[str, ...],
    output: str,
    force: bool,
    groups: str,
    skip: str,
    weight: str | None,
    max_values: int,
    bins: int,
    as_json: bool,
) -> None:
    """Draft a schema from PUBLIC files.

    Read the draft, and correct it from the codebook.
    """
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import outside

    need_new_file(output, force)
    source = public_files(public).source()
    draft = Schema.infer(
        source, groups=columns_of(groups), weight=weight, skip=columns_of(skip), max_values=max_values, bins=bins
    )
    draft.save(output)
    unread = {
        name: {str(value): number for value, number in cells.items()} for name, cells in outside(draft, source).items()
    }
    words = f"{output}: {len(draft.coded)} columns to estimate, {len(draft.groups)} group columns"
    facts = {"schema": output, "columns": draft.coded, "groups": draft.groups, "read_as_missing": unread}
    result(facts, words, as_json)
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
    if several and not options["tune"]:
        raise click.UsageError("several budgets are compared by rehearsal: leave out --no-tune, or give one budget")
    if not several and (page or no_page):
        raise click.UsageError("--page and --no-page are for several budgets, as in --epsilon 0.1,1,10")
    if several:
        del options["tune"]
        beside = str(Path(options["output"]).with_name(PAGE))
        _several(None if no_page else page or beside, **options)
    else:
        _one(**options)


def _one(
    output: str,
    force: bool,
    tune: bool,
    effort: float,
    seconds: float | None,
    where: Where,
    as_json: bool,
    **options: Any,
) -> None:
    from prade.pipeline import plan as make_plan
    from prade.planning.plan import columns_left_out, groups_with_public_rows, left_out_in_words, unlisted_groups

    need_new_file(output, force)
    task, table = task_of(**options)
    _remark_on(task, [task.budget])
    with where.execution() as execution:
        made = make_plan(task, table, tune=tune, effort=effort, seconds=seconds, execution=execution)
    made.save(output)
    if tune:
        remark(made.advice if made.expected else TOO_SMALL)
    occurring, in_words = groups_with_public_rows(table.rows(task.schema, task.groups), task.groups)
    covered = [in_words, *left_out_in_words(columns_left_out(made), unlisted_groups(made.schema, made.groups))]
    lines = [made.describe(), *filter(None, covered), made.promise(), f"The plan is in {output}."]
    facts = {"file": output, "advice": made.advice, **facts_of(made), "groups_with_public_rows": occurring}
    result(facts, "\n".join(lines), as_json)


def _several(
    page: str | None,
    output: str,
    force: bool,
    effort: float,
    seconds: float | None,
    where: Where,
    as_json: bool,
    **options: Any,
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
        explored = explore(task, table, budgets, effort=effort, seconds=seconds, execution=execution)
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
    result({**facts, "files": files, "page": page}, "\n".join(filter(None, lines)), as_json)


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
