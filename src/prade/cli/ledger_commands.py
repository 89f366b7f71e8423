"""The `ledger` commands, and the choice of the ledger that pays for a release."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prade.cli.main import FILE, as_json, examples, prade, remark, result, text_table, wants_json
from prade.cli.options import budget_of, giving, ledger_option, person_id_option, rows_per_person
from prade.core.files import need_folder

if TYPE_CHECKING:
    from prade.planning.plan import Plan
    from prade.planning.task import Task
    from prade.privacy.budget import Budget
    from prade.privacy.ledger import Ledger
    from prade.privacy.protection import Unit


# ---------------------------------------------------------------------- the ledger that pays for a release


def payer_for(plan: Plan, output: str, ledger_file: str | None) -> tuple[Ledger, Budget | None]:
    """Return the ledger that pays for a plan, and the cap for a data set that it does not know yet.

    Ask a person for the cap, or refuse a script.
    """
    from prade.privacy.ledger import Ledger
    from prade.release.payment import new_cap

    if not Path(output).exists():
        need_folder(output)
    ledger = Ledger.of(ledger_file)
    return ledger, new_cap(plan, output, ledger, ask_cap if at_a_terminal() and not wants_json() else None)


def at_a_terminal() -> bool:
    """Whether there is a person who can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_cap(plan: Plan | Task, ledger: Ledger) -> Budget:
    """Ask the person at the terminal for the cap."""
    from prade.privacy.budget import Budget

    remark(
        f"Data set {plan.dataset!r} is not in the ledger {ledger.path} yet.\n{plan.unit.promise()}\n"
        f"This plan costs {plan.budget}. Enter the most that may ever be spent on these people, over all releases:"
    )
    amounts = {name: amount for name, amount in plan.budget.to_dict().items() if name != "kind"}
    typed = {name: click.prompt(f"most {name} ever", err=True) for name in amounts}
    return Budget.from_dict({"kind": plan.budget.kind, **typed})


# ---------------------------------------------------------------------- commands


def _cap(cap: str | None, delta: str | None, rho: str | None) -> Budget:
    from prade.privacy.protection import weakness

    budget = budget_of(cap, delta, rho, option="--cap")
    if why := weakness(budget):  # prade checks each plan alone, but what several releases reveal adds up
        remark(f"A cap of {budget} is weak protection once it is spent, in one release or in several: {why}.")
    return budget


def _cap_or_none(cap: str | None, delta: str | None, rho: str | None) -> Budget | None:
    return None if (cap, delta, rho) == (None, None, None) else _cap(cap, delta, rho)


def _unit(max_rows_per_person: int, person_id: str | None, max_rows_per_group: int | None, neighbours: Any) -> Unit:
    from prade.privacy.protection import Unit

    return Unit(max_rows_per_person, person_id, max_rows_per_group, neighbours)


def _ledger(ledger_file: str | None) -> Ledger:
    from prade.privacy.ledger import Ledger

    return Ledger.of(ledger_file)


OF_A_CAP = (
    click.option("--cap", metavar="EPSILON", help="The most epsilon that may ever be spent, as in 4 or 1/3."),
    click.option("--delta", help="With --cap: the most delta, for (epsilon, delta) differential privacy."),
    click.option("--rho", help="Instead of --cap: the most rho, for zero-concentrated differential privacy."),
)
with_ledger = giving("book", _ledger, ledger_option)
with_unit = giving(
    "unit",
    _unit,
    rows_per_person,
    person_id_option,
    click.option("--max-rows-per-group", type=int, help="Most rows of one person in one group; needs --person-id."),
    click.option(
        "--neighbours",
        type=click.Choice(["add-remove", "replace"]),
        default="add-remove",
        show_default=True,
        help="How neighbouring tables differ: one person added or removed, or one replaced by another.",
    ),
)


@prade.group()
@examples("  prade ledger show")
def ledger() -> None:
    """Record what may be spent and what was spent on each data set.

    The ledger is the file that --ledger names. Without this option, it is the file that the environment variable
    PRADE_LEDGER names; without that variable, it is a file in your data folder.
    """


@ledger.command("open")
@click.argument("dataset")
@giving("cap", _cap, *OF_A_CAP)
@with_unit
@with_ledger
@as_json
@examples("  prade ledger open census --cap 4 --max-rows-per-person 7 --person-id PERSON")
def open_(dataset: str, cap: Budget, unit: Unit, book: Ledger) -> None:
    """Enter a DATASET, with its unit and its cap.

    The unit of protection is what is protected as a whole. The cap is the most that may ever be spent on the data set.
    Plans for it must have the same unit of protection. Entering the same data set again changes nothing.
    """
    entered = book.open_dataset(dataset, unit, cap)
    words = f"{book.path}: data set {entered.name!r} with the cap {entered.cap}\n{entered.unit.promise()}"
    result(_facts(book, entered.name), words)


@ledger.command("raise-cap")
@click.argument("dataset")
@giving("cap", _cap, *OF_A_CAP)
@click.option(
    "--reason", required=True, help="Why more may be spent; the reason stays on record and appears in every account."
)
@with_ledger
@as_json
@examples('  prade ledger raise-cap census --cap 6 --reason "second wave, approved by the board on 12 May"')
def raise_cap(dataset: str, cap: Budget, reason: str, book: Ledger) -> None:
    """Raise the cap of a DATASET, and record why.

    A cap cannot be lowered, and its kind of budget cannot change.
    """
    raised = book.raise_cap(dataset, cap, reason)
    left = book.remaining(dataset)
    words = f"{book.path}: data set {raised.name!r} now has the cap {raised.cap}, and {left} is left"
    result(_facts(book, raised.name), words)


@ledger.command("plan")
@click.argument("dataset")
@click.option("--years", type=int, required=True, help="Number of years that the budget is for.")
@click.option("--shares", help="Shares of the years, as in 2,1,1. [default: equal shares]")
@giving("cap", _cap_or_none, *OF_A_CAP)
@with_unit
@with_ledger
@as_json
@examples("  prade ledger plan census --years 5 --cap 4")
def plan_years(dataset: str, years: int, shares: str | None, cap: Budget | None, unit: Unit, book: Ledger) -> None:
    """Divide the budget of a DATASET over several years.

    No release may then spend more than this year and those before it have; what a year leaves over stays for the next
    ones. `prade ledger next-year` begins the next year. With a cap, a data set that is not in the ledger yet is
    entered. Dividing again divides what is left.
    """
    from prade.privacy.ledger.records import shares_of

    numbers = shares_of(years, None if shares is None else [each.strip() for each in shares.split(",")])
    if cap is not None:
        book.open_dataset(dataset, unit, cap)
    _show_year(book, book.divide(dataset, years, numbers).name)


@ledger.command("next-year")
@click.argument("dataset")
@with_ledger
@as_json
@examples("  prade ledger next-year census")
def next_year(dataset: str, book: Ledger) -> None:
    """Begin the next year of a DATASET whose budget is divided over several."""
    _show_year(book, book.next_year(dataset).name)


def _show_year(book: Ledger, name: str) -> None:
    """Show how a budget is divided, and what may be spent this year."""
    statement = book.statement(name)
    division = statement.dataset.division
    assert division is not None
    left = division.left_this_year(statement.spent)
    rows = [
        {"year": year, "adds": str(budget), "": "this year" if year == division.year else ""}
        for year, budget in enumerate(division.of_years, start=1)
    ]
    words = f"{book.path}: data set {name!r}\n{text_table(rows)}\n{left} may be spent this year."
    result({**_facts(book, name), "left_this_year": left.to_dict()}, words)


@ledger.command("import")
@click.argument("releases", nargs=-1, required=True, metavar="RELEASE...", type=FILE)
@with_ledger
@as_json
@examples("  prade ledger import release-2023 release-2024")
def import_(releases: tuple[str, ...], book: Ledger) -> None:
    """Record the cost of RELEASE folders.

    Use this for releases that another ledger, or a lost one, paid for. Their costs count from then on. Importing a
    release that is already on record changes nothing.
    """
    from prade.release.payment import import_release

    facts, lines = [], []
    for release in releases:
        entry = import_release(book, release)
        facts.append({"release": release, "ledger": str(book.path), **entry.to_dict()})
        lines.append(f"{release}: {entry.cost}, entry {entry.id} ({entry.state}) of {entry.dataset!r} in {book.path}")
    result(facts, "\n".join(lines))


@ledger.command("return")
@click.argument("entry", type=int)
@click.option(
    "--reason",
    required=True,
    help="Why it is given back; the reason stays on record in the ledger, and releases do not show it.",
)
@with_ledger
@as_json
@examples('  prade ledger return 3 --reason "the database was down; no noise was drawn"')
def return_(entry: int, reason: str, book: Ledger) -> None:
    """Give back what an ENTRY has spent, and record why.

    Only an entry whose run failed, or was interrupted, before it drew noise can be given back. `prade ledger show`
    lists the entries and their failures. Look at these first: whether a run fails may tell something about a person.
    """
    returned = book.give_back(entry, reason)
    left = book.remaining(returned.dataset)
    words = (
        f"{book.path}: entry {entry} of data set {returned.dataset!r} ({returned.cost}) is given back; {left} is left"
    )
    result({**returned.to_dict(), "ledger": str(book.path), "remaining": left.to_dict()}, words)


@ledger.command("list")
@with_ledger
@as_json
@examples("  prade ledger list --json")
def list_(book: Ledger) -> None:
    """List the data sets: cap, spent, remaining."""
    rows = [_facts(book, dataset.name) for dataset in book.datasets()]
    for row in rows:
        row["entries"] = len(row["entries"])
    budgets = ("cap", "spent", "remaining")
    listed = [{key: row[key] for key in ("dataset", "entries", *budgets, "ledger")} for row in rows]
    words = [
        {"dataset": row["dataset"], "entries": row["entries"], **{key: _amounts(row[key]) for key in budgets}}
        for row in listed
    ]
    result(listed, f"{book.path}\n{text_table(words)}")


@ledger.command()
@click.argument("dataset", required=False)
@with_ledger
@as_json
@examples("  prade ledger show census")
def show(dataset: str | None, book: Ledger) -> None:
    """Show the account of a DATASET, or of all.

    An account has the promise, what was measured, what it cost, what remains, and which runs failed.
    """
    names = [dataset] if dataset else [each.name for each in book.datasets()]
    words = "\n\n".join(book.account(name) for name in names)
    result([_facts(book, name) for name in names], words)


def _facts(book: Ledger, name: str) -> dict[str, Any]:
    statement = book.statement(name)
    entries = [entry.to_dict() for entry in statement.entries]
    return {**statement.to_dict(), "ledger": str(book.path), "entries": entries}


def _amounts(budget: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in budget.items() if name != "kind")
