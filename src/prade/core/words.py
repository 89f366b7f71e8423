"""Words in messages: a misspelt name's closest match, plurals, names of columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, names: Iterable[str]) -> str:
    """A hint for a misspelt name: ``"; did you mean 'AGEP'?"``, or nothing."""
    found = difflib.get_close_matches(str(name), [str(each) for each in names], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(each) for each in found)}?" if found else ""


def names_of(names: str | Iterable[str]) -> tuple[str, ...]:
    """One column's name, or several, as a tuple; a single name is one column, not a list of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def many(number: int, noun: str) -> str:
    """A number and what it counts: ``"1 group"``, ``"1,200 groups"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
