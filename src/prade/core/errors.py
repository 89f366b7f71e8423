"""The errors that prade raises, and the wording of messages: a remedy is worded differently for Python and the shell.

No message contains a value of a private row: code that may see such rows raises only errors that depend on the schema,
the plan and column names.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

Language = Literal["python", "shell"]


@dataclass(frozen=True)
class Remedy:
    """An argument to change, by its Python name, and a value that would work."""

    name: str
    value: Any = None


# `{value}` stands for the remedy's value, [Python|shell] for what differs between the languages.
_WORDS = {
    "again": "to spend {value} once more, [pass again=True|add --again]",
    "against_advice": "give a larger [|--]epsilon or coarser [|--]levels and another folder[| with -o], or "
    "[pass against_advice=True|add --against-advice]",
    "cap": "[give cap=, the most that may ever be spent on these people, or run|"
    "enter it with the most that may ever be spent on these people]: {value}",
    "delimiter": '[give CsvFile(path, delimiter="{value}")|add --delimiter "{value}"]',
    "divide": "divide it with [Ledger.divide|`prade ledger plan DATASET --years N`]",
    "draft": "list such columns in [skip=|--skip], list places and years in [groups=|--groups], or increase "
    "[max_values|--max-values]",
    "encoding": 'name the encoding of the file, as in [CsvFile(path, encoding="latin-1")|--encoding latin-1]',
    "geojson_key": "give the property that names the groups [as geojson_key=|with --geojson-key], or outlines of these "
    "groups",
    "give_back": "to give it back, use [Ledger.give_back({value}, reason)|"
    "`prade ledger return {value} --reason REASON`]",
    "max_rows": "write [Unit(max_rows={value})|--max-rows-per-person {value}]",
    "max_values": "give [max_values and bins|--max-values and --bins] of 2 or more",
    "new_ledger": "check the path, or start a new ledger with [Ledger.open_dataset|`prade ledger open`]",
    "next_year": "begin the next year with [Ledger.next_year|`prade ledger next-year`], or divide the rest anew with "
    "[Ledger.divide|`prade ledger plan`]",
    "open_dataset": "record the data set with [Ledger.open_dataset|`prade ledger open`]",
    "other_people": "[use|leave out the option to take] the release's {value}, or [pass other_people=True|"
    "add --other-people] if these are other people",
    "public": "give the public [table as public=|files with --public]",
    "public_named": "look at it, and [give it as public=|name it with --public FILE] if it is public",
    "raise_cap": "to raise the cap, use [Ledger.raise_cap|`prade ledger raise-cap`]",
    "rows": "[ask for fewer with rows=, or |]give the plan a larger budget",
    "weak_protection": "to accept weak protection, [pass weak_protection=True|add --yes-weak-protection]",
}
_EITHER = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")


def in_words(remedy: Remedy, language: Language) -> str:
    """What to do, as part of a sentence."""
    words = _EITHER.sub(r"\1" if language == "python" else r"\2", _WORDS[remedy.name])
    return words.replace("{value}", str(remedy.value))


class PradeError(ValueError):
    """Base class of every error that prade raises deliberately."""

    def __init__(self, message: str, *values: Any, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, *values)
        self.remedy = Remedy(remedy) if isinstance(remedy, str) else remedy

    def worded(self, language: Language) -> str:
        """The message and the remedy, worded for Python or for the shell."""
        message = str(self.args[0])
        return message if self.remedy is None else f"{message}; {in_words(self.remedy, language)}"

    def __str__(self) -> str:
        return self.worded("python")

    def within(self, where: str) -> Self:
        """The same error with a prefix that says where it occurred."""
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
    """A request exceeds the `remaining` budget, or would pay twice for a plan (`asked`). Nothing was spent."""

    def __init__(self, message: str, remaining: Any, asked: Any, *, remedy: str | Remedy | None = None) -> None:
        super().__init__(message, remaining, asked, remedy=remedy)
        self.remaining = remaining
        self.asked = asked


class Remark(UserWarning):
    """A warning of prade's own, which the command line prints as a remark. It has no value of a private row."""


@contextmanager
def within(where: str) -> Iterator[None]:
    """Begin the message of every error of the block with where it arose, such as the name of a file."""
    try:
        yield
    except PradeError as error:
        raise error.within(where) from None


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
