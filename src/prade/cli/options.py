"""The options that commands share, and what they stand for: budgets, tasks, public files, formats of CSV, workers.

Heavy modules are imported where they are used, so that `prade --help` starts fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import click

import prade
from prade.cli.main import FILE, Command, remark
from prade.core.errors import DataError
from prade.core.execution import EFFORT

if TYPE_CHECKING:
    from prade.data.public.table import PublicFiles, PublicTable

Paths = tuple[str, ...]
Working = AbstractContextManager["prade.Execution"]


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def giving(name: str, make: Callable[..., Any], *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add options whose values are the arguments of `make`, and give the command what it returns by this name."""

    def add(command: Command) -> Command:
        @wraps(command)
        def with_value(**arguments: Any) -> Any:
            given = {option: arguments.pop(option) for option in signature(make).parameters}
            return command(**{name: make(**given)}, **arguments)

        return together(*options)(cast(Command, with_value))

    return add


person_id_option = click.option(
    "--person-id", metavar="COLUMN", help="Column that identifies the person; prade then enforces the bound on rows."
)
weight = click.option("--weight", metavar="COLUMN", help="Column with the weights of the public rows.")
force = click.option("--force", is_flag=True, help="Replace the file if it exists.")
ledger_option = click.option(
    "--ledger", "ledger_file", type=FILE, help="Ledger file. [default: PRADE_LEDGER, or the file in your data folder]"
)
spending = together(
    ledger_option,
    click.option("--again", is_flag=True, help="Pay once more for a plan that has been paid for, into a new folder."),
    click.option("--yes-weak-protection", "weak_protection", is_flag=True, help="Accept budgets that hardly protect."),
)
# The options that the tuner takes, by their names there.
TUNING = {
    "effort": click.option(
        "--effort",
        default=EFFORT,
        show_default=True,
        help="Work that the rehearsals of a budget may be: 1 is about what two idle cores do in a second.",
    ),
    "seconds": click.option(
        "--seconds", type=float, help="Seconds that they may take at most. [default: 600, or 5 for each 1 of effort]"
    ),
}
planning = together(
    click.option("--schema", "schema_file", required=True, type=FILE, help="Schema file."),
    click.option(
        "--public", multiple=True, type=FILE, help="Public file; may be repeated. With --previous: one that has moved."
    ),
    weight,
    click.option("--previous", metavar="RELEASE", type=FILE, help="Last release of these groups, to start from."),
    click.option("--other-people", is_flag=True, help="The --previous release is about other people."),
    click.option("--groups", "groups_file", type=FILE, help="File with the public list of groups, one row per group."),
    click.option("--levels", default="", help="Levels from coarse to fine, as in STATE,PUMA+YEAR."),
    click.option("--targets", "targets_file", type=FILE, help="File of the tables that must be right first."),
    click.option("--epsilon", help="Privacy budget, as in 1 or 0.1 or 1/3."),
    click.option("--delta", help="With --epsilon: (epsilon, delta) differential privacy."),
    click.option("--rho", help="Instead of --epsilon: zero-concentrated differential privacy, Gaussian noise."),
    click.option("--max-rows-per-person", type=int, help="Most rows of one person. [default: of --previous, or 1]"),
    person_id_option,
    click.option("--dataset", help='Name of the data set in the ledger. [default: that of --previous, or "private"]'),
    click.option("--tune/--no-tune", default=True, help="Choose a plan by rehearsal on public rows, or the simplest."),
    *TUNING.values(),
)


def columns_of(text: str) -> list[str]:
    """Split names that are joined by commas or plus signs, as in "STATE,PUMA" or "STATE+PUMA"."""
    return [name.strip() for name in re.split("[,+]", text) if name.strip()]


def budget_of(epsilon: str | None, delta: str | None, rho: str | None, *, option: str = "--epsilon") -> prade.Budget:
    """Build the budget from the options: epsilon, epsilon with delta, or rho."""
    if rho is not None and epsilon is None and delta is None:
        return prade.Budget.zcdp(rho)
    if epsilon is None or rho is not None:
        raise click.UsageError(f"give the budget as {option}, as {option} with --delta, or as --rho")
    return prade.Budget.pure(epsilon) if delta is None else prade.Budget.approx(epsilon, delta)


def task_of(**options: Any) -> tuple[prade.Task, PublicTable]:
    """Build the task and the public table from the options `planning`."""
    from prade.data.public.table import PublicTable
    from prade.sampling.carried import carried_on

    given = SimpleNamespace(**options)
    if (not given.public and given.previous is None) or (given.previous is not None and given.weight is not None):
        raise click.UsageError(
            "give the public rows that estimates start from: files with --public (and --weight), or the last release "
            "with --previous"
        )
    if given.other_people and given.previous is None:
        raise click.UsageError("--other-people says whom the --previous release is about: also give --previous")
    budget = budget_of(given.epsilon, given.delta, given.rho)
    levels = [columns_of(level) for level in given.levels.split(",") if level.strip()]
    if bool(levels) != bool(given.groups_file):
        raise click.UsageError("--groups and --levels go together: give both, or neither for one group of everybody")
    release = None if given.previous is None else prade.Release.load(given.previous)
    name, unit = ("private", prade.Unit()) if release is None else (release.plan.dataset, release.plan.unit)
    changes = {"max_rows": given.max_rows_per_person, "person_id": given.person_id}
    unit = replace(unit, **{field: value for field, value in changes.items() if value is not None})
    name, targets = name if given.dataset is None else given.dataset, given.targets_file or ()
    task = prade.Task(name, given.schema_file, budget, unit, levels, given.groups_file, targets=targets)
    if release is None:
        return task, PublicTable(public_files(given.public, given.weight))
    return task, carried_on(release, task, named_files(given.public), other_people=given.other_people)


public_again = click.option(
    "--public",
    multiple=True,
    type=FILE,
    help="A public file that has moved, lies outside the plan's folder, or has no hash in the plan: look at it first.",
)


def public_files(paths: Paths, weight: str | None = None) -> PublicFiles:
    """Return the public files at these paths, which must exist."""
    from prade.data.public.table import PublicFiles

    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"there is no public file {path}; check the path")
    return PublicFiles.at(paths, weight)


def named_files(paths: Paths) -> PublicFiles | None:
    """Return the public files that the option names; None if it names none."""
    return public_files(paths) if paths else None


def public_table(plan: prade.Plan, paths: Paths) -> tuple[PublicTable, list[str]]:
    """Return the public table in the files that the option or the plan names, and their paths, after saying them."""
    from prade.planning.plan import public_of

    table = public_of(plan, named_files(paths))
    return table, said_paths(table.files)


def said_paths(files: PublicFiles | None) -> list[str]:
    """Say which public files a command uses, and return their paths."""
    if files is None:
        return []
    remark(f"Public files: {', '.join(files.files)}")
    return list(files.files)


@contextmanager
def working(workers: int | None = None, cluster: str | None = None) -> Iterator[prade.Execution]:
    """The execution that the options ask for, with a progress bar, for as long as the block lasts."""
    from prade.core import execution

    with ExitStack() as stack:
        executor = None
        if cluster is not None:
            executor = stack.enter_context(execution.cluster(cluster))
        elif workers is not None and workers > 1:
            executor = stack.enter_context(execution.processes(workers))
        progress = stack.enter_context(execution.progress_bar())
        yield prade.Execution(1 if workers == 1 else execution.cores(), executor, progress)


def _working(workers: int | None, cluster: str | None) -> Working:
    if workers is not None and cluster is not None:
        raise click.UsageError("--workers starts processes on this machine, and --cluster uses others: give one")
    return working(workers, cluster)


worker_options = giving(
    "work",
    _working,
    click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Processes, as in --workers 8. [default: threads only]"
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on a Dask cluster, as in --cluster tcp://10.0.0.1:8786; its workers must see the same folders.",
    ),
)


def csv_options(*names: str) -> Callable[[Command], Command]:
    """Add the options, and give the command the named paths together with the format that the options declare."""
    options = [
        click.option("--encoding", default="utf-8", show_default=True, help="Encoding of CSV files."),
        click.option("--delimiter", default=",", show_default=True, help="Between the cells of CSV files; or tab."),
    ]

    def add(command: Command) -> Command:
        @wraps(command)
        def with_format(encoding: str, delimiter: str, **arguments: Any) -> Any:
            from prade.data.read.csv import DEFAULT_FORMAT, CsvFormat

            form = CsvFormat(encoding, delimiter)

            def formatted(path: str | None) -> Any:
                return path if path is None or "://" in path else form.file(path)  # not of a database's address

            for name in names if form != DEFAULT_FORMAT else ():
                paths = arguments[name]
                arguments[name] = tuple(map(formatted, paths)) if isinstance(paths, tuple) else formatted(paths)
            return command(**arguments)

        return together(*options)(cast(Command, with_format))

    return add
