"""The errors that prade raises, sorted by what has to be corrected, and the wording of messages.

Every message says what was expected and what was given. If the remedy is to change an argument, it is data: a `Remedy`,
which is worded differently for Python and for the shell. No message contains a value from a private row: code that may
see private rows raises only errors that depend on the schema, the plan and the table's column names.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

Language = Literal["python", "shell"]


@dataclass(frozen=True)
class Remedy:
    """An argument to change, by its Python name, and a value that would work."""

    name: str
    value: Any = None


# The wording for each language; `{value}` is replaced by the remedy's value.
_WORDS: dict[str, dict[Language, str]] = {
    "again": {
        "python": "to spend {value} once more, pass again=True",
        "shell": "to spend {value} once more, add --again",
    },
    "against_advice": {
        "python": "give a larger epsilon or coarser levels and another folder, or pass against_advice=True",
        "shell": "give a larger --epsilon or coarser --levels and another folder with -o, or add --against-advice",
    },
    "cap": {
        "python": "give cap=, the most that may ever be spent on these people, or run: {value}",
        "shell": "enter it with the most that may ever be spent on these people: {value}",
    },
    "delimiter": {
        "python": 'give CsvFile(path, delimiter="{value}")',
        "shell": 'add --delimiter "{value}"',
    },
    "divide": {
        "python": "divide it with Ledger.divide",
        "shell": "divide it with `prade ledger plan DATASET --years N`",
    },
    "draft": {
        "python": "list such columns in skip=, list places and years in groups=, or increase max_values",
        "shell": "list such columns in --skip, list places and years in --groups, or increase --max-values",
    },
    "encoding": {
        "python": 'name the encoding of the file, as in CsvFile(path, encoding="latin-1")',
        "shell": "name the encoding of the file, as in --encoding latin-1",
    },
    "geojson_key": {
        "python": "give the property that names the groups as geojson_key=, or outlines of these groups",
        "shell": "give the property that names the groups with --geojson-key, or outlines of these groups",
    },
    "give_back": {
        "python": "to give it back, use Ledger.give_back({value}, reason)",
        "shell": "to give it back, use `prade ledger return {value} --reason REASON`",
    },
    "max_rows": {"python": "write Unit(max_rows={value})", "shell": "write --max-rows-per-person {value}"},
    "max_values": {
        "python": "give max_values and bins of 2 or more",
        "shell": "give --max-values and --bins of 2 or more",
    },
    "new_ledger": {
        "python": "check the path, or start a new ledger with Ledger.open_dataset",
        "shell": "check the path, or start a new ledger with `prade ledger open`",
    },
    "next_year": {
        "python": "begin the next year with Ledger.next_year, or divide the rest anew with Ledger.divide",
        "shell": "begin the next year with `prade ledger next-year`, or divide the rest anew with `prade ledger plan`",
    },
    "open_dataset": {
        "python": "record the data set with Ledger.open_dataset",
        "shell": "record the data set with `prade ledger open`",
    },
    "other_people": {
        "python": "use the release's {value}, or pass other_people=True if these are other people",
        "shell": "leave out the option to take the release's {value}, or add --other-people if these are other people",
    },
    "public": {"python": "give the public table as public=", "shell": "give the public files with --public"},
    "public_named": {
        "python": "look at it, and give it as public= if it is public",
        "shell": "look at it, and name it with --public FILE if it is public",
    },
    "raise_cap": {
        "python": "to raise the cap, use Ledger.raise_cap",
        "shell": "to raise the cap, use `prade ledger raise-cap`",
    },
    "rows": {
        "python": "ask for fewer with rows=, or give the plan a larger budget",
        "shell": "give the plan a larger budget",
    },
    "weak_protection": {
        "python": "to accept weak protection, pass weak_protection=True",
        "shell": "to accept weak protection, add --yes-weak-protection",
    },
}


def in_words(remedy: Remedy, language: Language) -> str:
    """What to do, as part of a sentence.

    >>> in_words(Remedy("max_rows", 4), "python"), in_words(Remedy("max_rows", 4), "shell")
    ('write Unit(max_rows=4)', 'write --max-rows-per-person 4')
    """
    return _WORDS[remedy.name][language].replace("{value}", str(remedy.value))


class PradeError(ValueError):
    """Base class of every error that prade raises deliberately."""

    def __init__(self, message: str, *values: Any, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, *values)
        self.remedy = Remedy(remedy) if isinstance(remedy, str) else remedy

    def told(self, language: Language) -> str:
        """The message and the remedy, worded for Python or for the shell."""
        message = str(self.args[0])
        return message if self.remedy is None else f"{message}; {in_words(self.remedy, language)}"

    def __str__(self) -> str:
        return self.told("python")

    def within(self, where: str) -> Self:
        """The same error with a prefix that says where it occurred, such as the name of a file."""
        error = copy.copy(self)
        error.args = (f"{where}: {self.args[0]}", *self.args[1:])
        return error


class SchemaError(PradeError):
    """A schema, a domain or a list of groups contradicts itself."""


class DataError(PradeError):
    """A table or file is not what was declared."""


class WorkloadError(PradeError):
    """A part, a query or a workload cannot be built."""


class EstimationError(PradeError):
    """Answers, noise scales, weights or settings that no estimator can use."""


class BudgetError(PradeError):
    """A request exceeds the remaining privacy budget, or would pay a second time for the same plan. Nothing was spent.

    `remaining` and `asked` are instances of `prade.Budget`.
    """

    def __init__(self, message: str, remaining: Any, asked: Any, *, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, remaining, asked, remedy=remedy)
        self.remaining = remaining
        self.asked = asked


class Remark(UserWarning):
    """A warning of prade's own, which the command line prints as a remark. It has no value of a private row."""


def closest(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name: ``"; did you mean 'AGEP'?"``, or nothing."""
    matches = difflib.get_close_matches(str(name), [str(each) for each in names], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def names_of(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several as a tuple; a single string is one name, not a sequence of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def many(number: int, noun: str) -> str:
    """A number with its noun: ``"1 group"``, ``"1,200 groups"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
