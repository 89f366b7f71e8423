"""Remedies: what to change after an error, worded for Python and for the shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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
