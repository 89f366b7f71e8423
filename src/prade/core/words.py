"""Wording of messages: the closest match to a misspelt name, plurals, column names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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
