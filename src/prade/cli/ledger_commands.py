"""The commands of the ledger, and how the commands that spend come to theirs: enter, raise, import, list, show."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.console import FILE, need_folder, text_table
from prade.cli.main import Command, examples, prade, remark, result
from prade.cli.planning_commands import as_json, budget_of, ledger_option

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.planning.task import Task
    from prade.privacy.budget import Budget
    from prade.privacy.ledger import Ledger


# ---------------------------------------------------------------------- the ledger of a run that spends


@dataclass(frozen=True)
class Paying:
    """The ledger that pays for a run, and the cap for a data set that it does not know yet."""

    ledger: Ledger
    cap: Budget | None


def paying_for(plan: Plan, output: str, ledger_file: str | None, as_json: bool) -> Paying:
    """The ledger for a plan's run; the cap of a data set that it does not know is asked for, or refused elsewhere."""
    from prade.privacy.ledger import Ledger
    from prade.release.unrecorded_releases import need_on_record, not_entered

    if not Path(output).exists():
        need_folder(output)
    ledger = Ledger.of(ledger_file)
    if ledger.knows(plan.dataset):
        return Paying(ledger, None)
    need_on_record(plan, Path(output).resolve(), ledger)
    if not as_json and at_a_terminal():
        return Paying(ledger, asked_cap(plan, ledger))
    raise not_entered(plan, ledger)


def at_a_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked_cap(plan: Plan | Task, ledger: Ledger) -> Budget:
    """Ask the person at the terminal for the cap."""
    from prade.privacy.budget import Budget

    remark(
        f"Data set {plan.dataset!r} is not in the ledger {ledger.path} yet.\n{plan.unit.promise()}\n"
        f"This plan costs {plan.budget}. Give the most that may ever be spent on these people, in all releases:"
    )
    amounts = {name: amount for name, amount in plan.budget.to_dict().items() if name != "kind"}
    typed = {name: click.prompt(f"most {name} ever", err=True) for name in amounts}
    return Budget.from_dict({"kind": plan.budget.kind, **typed})


# ---------------------------------------------------------------------- commands


def capped(command: Command) -> Command:
    """The options that say a cap."""
    options = [
        click.option("--cap", metavar="EPSILON", help="The most epsilon ever to be spent, as in 4 or 1/3."),
        click.option("--delta", help="With --cap: the most delta, for (epsilon, delta) differential privacy."),
        click.option("--rho", help="Instead of --cap: the most rho, for zero-concentrated differential privacy."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@prade.group()
@examples("  prade ledger show")
def ledger() -> None:
    """What may be spent and was spent, on which data set.

    The ledger is the file that --ledger names, else the environment variable PRADE_LEDGER, else one file in your data
    folder.
    """


@ledger.command("open")
@click.argument("dataset")
@capped
@click.option("--max-rows-per-person", default=1, show_default=True, help="Most rows that one person may have.")
@click.option("--person-id", metavar="COLUMN", help="Column that says whose row it is: the bound is enforced.")
@click.option("--max-rows-per-group", type=int, help="Most rows of one person in one group; with --person-id.")
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Whether a person is added or removed, or exchanged for another.",
)
@ledger_option
@as_json
@examples("  prade ledger open census --cap 4 --max-rows-per-person 7 --person-id PERSON")
def open_(
    dataset: str,
    cap: str | None,
    delta: str | None,
    rho: str | None,
    max_rows_per_person: int,
    person_id: str | None,
    max_rows_per_group: int | None,
    neighbours: Any,
    ledger_file: str | None,
    as_json: bool,
) -> None:
    """Enter a DATASET, with what is protected and the most that may ever be spent on it.

    Plans for it must have the same unit. Entered again as it is, nothing changes.
    """
    from prade.privacy.ledger import Ledger
    from prade.privacy.unit import Unit

    unit = Unit(max_rows_per_person, person_id, max_rows_per_group, neighbours)
    book = Ledger.of(ledger_file)
    home = book.open_dataset(dataset, unit, budget_of(cap, delta, rho, epsilon_option="--cap"))
    _remark_weak(home.cap)
    words = f"{book.path}: data set {home.name!r} with the cap {home.cap}\n{home.unit.promise()}"
    result(_facts(book, home.name), words, as_json)


@ledger.command("raise-cap")
@click.argument("dataset")
@capped
@click.option("--reason", required=True, help="Why more may be spent; it stays on the record, and in every account.")
@ledger_option
@as_json
@examples('  prade ledger raise-cap census --cap 6 --reason "second wave, approved by the board on 12 May"')
def raise_cap(
    dataset: str,
    cap: str | None,
    delta: str | None,
    rho: str | None,
    reason: str,
    ledger_file: str | None,
    as_json: bool,
) -> None:
    """Allow more to be spent on a DATASET, on the record.

    A cap is never lowered, and stays of its kind.
    """
    from prade.privacy.ledger import Ledger

    book = Ledger.of(ledger_file)
    home = book.raise_cap(dataset, budget_of(cap, delta, rho, epsilon_option="--cap"), reason)
    _remark_weak(home.cap)
    left = book.remaining(dataset)
    words = f"{book.path}: data set {home.name!r} now has the cap {home.cap}, of which {left} is left"
    result(_facts(book, home.name), words, as_json)


@ledger.command("import")
@click.argument("releases", nargs=-1, required=True, metavar="RELEASE...", type=FILE)
@ledger_option
@as_json
@examples("  prade ledger import release-2023 release-2024")
def import_(releases: tuple[str, ...], ledger_file: str | None, as_json: bool) -> None:
    """Put RELEASE folders on record that another ledger paid for, or a lost one.

    Their costs count from then on. A release that is on record already changes nothing.
    """
    from prade.privacy.ledger import Ledger
    from prade.release.unrecorded_releases import import_release

    book = Ledger.of(ledger_file)
    found, lines = [], []
    for release in releases:
        entry = import_release(book, release)
        found.append({"release": release, "ledger": str(book.path), **entry.to_dict()})
        lines.append(f"{release}: {entry.cost}, entry {entry.id} ({entry.state}) of {entry.dataset!r} in {book.path}")
    result(found, "\n".join(lines), as_json)


@ledger.command("list")
@ledger_option
@as_json
@examples("  prade ledger list --json")
def list_(ledger_file: str | None, as_json: bool) -> None:
    """The data sets: cap, spent, left."""
    from prade.privacy.ledger import Ledger

    book = Ledger.of(ledger_file)
    rows = [_facts(book, dataset.name) for dataset in book.datasets()]
    for row in rows:
        row["entries"] = len(row["entries"])
    budgets = ("cap", "spent", "remaining")
    shown = [{key: row[key] for key in ("dataset", "entries", *budgets, "ledger")} for row in rows]
    words = [
        {"dataset": row["dataset"], "entries": row["entries"], **{key: _amounts(row[key]) for key in budgets}}
        for row in shown
    ]
    result(shown, f"{book.path}\n{text_table(words)}", as_json)


@ledger.command()
@click.argument("dataset", required=False)
@ledger_option
@as_json
@examples("  prade ledger show census")
def show(dataset: str | None, ledger_file: str | None, as_json: bool) -> None:
    """The account of a DATASET, or of all: under which promise, what was asked, what it cost, what remains."""
    from prade.privacy.ledger import Ledger

    book = Ledger.of(ledger_file)
    names = [dataset] if dataset else [each.name for each in book.datasets()]
    words = "\n\n".join(book.account(name) for name in names)
    result([_facts(book, name) for name in names], words, as_json)


def _remark_weak(cap: Budget) -> None:
    """Say what a weak cap means: each plan is judged by itself, but what several releases tell adds up."""
    from prade.privacy.protection import weakness

    if why := weakness(cap):
        remark(f"Remark: a cap of {cap} is weak protection once it is spent, in one release or in several: {why}.")


def _facts(book: Ledger, name: str) -> dict[str, Any]:
    """The account of a data set, for a script."""
    statement = book.statement(name)
    entries = [entry.to_dict() for entry in statement.entries]
    return {**statement.to_dict(), "ledger": str(book.path), "entries": entries}


def _amounts(budget: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in budget.items() if name != "kind")
