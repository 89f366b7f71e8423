"""The `ledger` commands."""

from __future__ import annotations

from typing import Any

import click

import prade
from prade.cli.main import FILE, examples, program, remark, result, text_table
from prade.cli.options import Paths, budget_of, giving, ledger_option, person_id_option


def _cap(cap: str | None, delta: str | None, rho: str | None) -> prade.Budget:
    """Build the cap, and say when it protects so little that spending all of it would need an option."""
    from prade.privacy.protection import weakness

    budget = budget_of(cap, delta, rho, option="--cap")
    if why := weakness(budget):  # prade checks each plan alone, but what several releases reveal adds up
        remark(f"A cap of {budget} is weak protection once it is spent, in one release or in several: {why}.")
    return budget


def _unit(max_rows_per_person: int, person_id: Any, max_rows_per_group: int | None, neighbours: Any) -> prade.Unit:
    return prade.Unit(max_rows_per_person, person_id, max_rows_per_group, neighbours)


with_ledger = giving("book", lambda ledger_file: prade.Ledger.of(ledger_file), ledger_option)
with_cap = giving(
    "cap",
    _cap,
    click.option("--cap", metavar="EPSILON", help="The most epsilon that may ever be spent, as in 4 or 1/3."),
    click.option("--delta", help="With --cap: the most delta, for (epsilon, delta) differential privacy."),
    click.option("--rho", help="Instead of --cap: the most rho, for zero-concentrated differential privacy."),
)
with_unit = giving(
    "unit",
    _unit,
    click.option("--max-rows-per-person", default=1, show_default=True, help="Most rows that one person may have."),
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

# ---------------------------------------------------------------------- commands


@program.group()
@examples("  prade ledger show", with_json=False)
def ledger() -> None:
    """Record what may be spent and what was spent on each data set.

    The ledger is the file that --ledger names. Without this option, it is the file that the environment variable
    PRADE_LEDGER names; without that variable, it is a file in your data folder.
    """


@ledger.command("open")
@click.argument("dataset")
@with_cap
@with_unit
@with_ledger
@examples("  prade ledger open census --cap 4 --max-rows-per-person 7 --person-id PERSON")
def open_(dataset: str, cap: prade.Budget, unit: prade.Unit, book: prade.Ledger) -> None:
    """Enter a DATASET, with its unit and its cap.

    The unit of protection is what is protected as a whole. The cap is the most that may ever be spent on the data set.
    Plans for it must have the same unit of protection. Entering the same data set again changes nothing.
    """
    entered = book.open_dataset(dataset, unit, cap)
    words = f"{book.path}: data set {entered.name!r} with the cap {entered.cap}\n{entered.unit.promise()}"
    result(_facts(book, entered.name), words)


@ledger.command("raise-cap")
@click.argument("dataset")
@with_cap
@click.option("--reason", required=True, help="Why more may be spent; the reason stays on record.")
@with_ledger
@examples('  prade ledger raise-cap census --cap 6 --reason "second wave, approved by the board on 12 May"')
def raise_cap(dataset: str, cap: prade.Budget, reason: str, book: prade.Ledger) -> None:
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
@with_ledger
@examples("  prade ledger plan census --years 5")
def plan_years(dataset: str, years: int, shares: str | None, book: prade.Ledger) -> None:
    """Divide the budget of a DATASET over several years.

    No release may then spend more than this year and those before it have; what a year leaves over stays for the next
    ones. `prade ledger next-year` begins the next year. Dividing again divides what is left.
    """
    from prade.privacy.ledger.records import shares_of

    numbers = shares_of(years, None if shares is None else [each.strip() for each in shares.split(",")])
    _show_year(book, book.divide(dataset, years, numbers).name)


@ledger.command("next-year")
@click.argument("dataset")
@with_ledger
@examples("  prade ledger next-year census")
def next_year(dataset: str, book: prade.Ledger) -> None:
    """Begin the next year of a DATASET whose budget is divided over several."""
    _show_year(book, book.next_year(dataset).name)


def _show_year(book: prade.Ledger, name: str) -> None:
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
@examples("  prade ledger import release-2023 release-2024")
def import_(releases: Paths, book: prade.Ledger) -> None:
    """Record the cost of RELEASE folders.

    Use this for releases that another ledger, or a lost one, paid for. Their costs count from then on. Importing a
    release that is already on record changes nothing.
    """
    from prade.release.terms import import_release

    facts, lines = [], []
    for release in releases:
        entry = import_release(book, release)
        facts.append({"release": release, "ledger": str(book.path), **entry.to_dict()})
        lines.append(f"{release}: {entry.cost}, entry {entry.id} ({entry.state}) of {entry.dataset!r} in {book.path}")
    result(facts, "\n".join(lines))


@ledger.command("return")
@click.argument("entry", type=int)
@click.option("--reason", required=True, help="Why; the reason stays on record in the ledger, not in releases.")
@with_ledger
@examples('  prade ledger return 3 --reason "the database was down; no noise was drawn"')
def return_(entry: int, reason: str, book: prade.Ledger) -> None:
    """Give back what an ENTRY has spent, and record why.

    Only an entry whose run failed, or was interrupted, before it drew noise can be given back. `prade ledger show`
    lists the entries and their failures. Look at these first: whether a run fails may tell something about a person.
    """
    returned = book.give_back(entry, reason)
    left = book.remaining(returned.dataset)
    cost = f"entry {entry} of data set {returned.dataset!r} ({returned.cost})"
    facts = {**returned.to_dict(), "ledger": str(book.path), "remaining": left.to_dict()}
    result(facts, f"{book.path}: {cost} is given back; {left} is left")


@ledger.command("list")
@with_ledger
@examples("  prade ledger list --json")
def list_(book: prade.Ledger) -> None:
    """List the data sets: cap, spent, remaining."""
    facts, words = [], []
    for statement in (book.statement(each.name) for each in book.datasets()):
        row = {"dataset": statement.dataset.name, "entries": len(statement.entries)}
        amounts = {"cap": statement.dataset.cap, "spent": statement.spent, "remaining": statement.remaining}
        facts.append({**row, **{name: budget.to_dict() for name, budget in amounts.items()}})
        words.append({**row, **{name: str(budget) for name, budget in amounts.items()}})
    result(facts, f"{book.path}\n{text_table(words)}")


@ledger.command()
@click.argument("dataset", required=False)
@with_ledger
@examples("  prade ledger show census")
def show(dataset: str | None, book: prade.Ledger) -> None:
    """Show the account of a DATASET, or of all.

    An account has the promise, what was measured, what it cost, what remains, and which runs failed.
    """
    names = [dataset] if dataset else [each.name for each in book.datasets()]
    result([_facts(book, name) for name in names], "\n\n".join(book.account(name) for name in names))


def _facts(book: prade.Ledger, name: str) -> dict[str, Any]:
    statement = book.statement(name)
    entries = [entry.to_dict() for entry in statement.entries]
    return {**statement.to_dict(), "ledger": str(book.path), "entries": entries}
