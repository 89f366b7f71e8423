"""Unique exact matches: rows that are unique in the truth and occur exactly, with all their values, in another table.

As in SDNist (`sdnist/metrics/unique_exact_matches.py`), with two differences: columns of groups are left out, so that a
match in another place counts too, and a numeric value outside its column's range is moved into it. The public table's
share is what can be matched without any private row: a release can be expected to match about as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, distinct_rows, smallest_unsigned
from prade.scoring.sides import NotAvailable, Side


def numbered(sides: Sequence[Side]) -> list[Ints]:
    """A number for each row of each table; rows have equal numbers exactly if all their values are equal."""
    columns = []
    for name in sides[0].columns:
        if name in sides[0].numbers:
            columns.append(_ranks(np.concatenate([side.numbers[name] for side in sides])))
        else:
            columns.append(np.concatenate([side.codes[name] for side in sides]))
    number = distinct_rows(columns)[1]
    return np.split(number, np.cumsum([len(side) for side in sides])[:-1])


def _ranks(numbers: Floats) -> Any:
    """A number for each distinct value; all missing ones have the same."""
    values, rank = np.unique(numbers, return_inverse=True)
    return rank.astype(smallest_unsigned(len(values)))


def among(rows: Ints, other: Ints) -> Flags:
    """Which rows occur in another table, by their numbers."""
    known = np.zeros(max(int(each.max(initial=-1)) for each in (rows, other)) + 1, np.bool_)
    known[other] = True
    return np.asarray(known[rows])


def unique_matches(truth: Ints, others: dict[str, Ints | None]) -> dict[str, Any]:
    """How many rows are unique in the truth, and how many of these occur in each of the other tables."""
    unique = truth[np.bincount(truth)[truth] == 1]
    if not len(unique):
        raise NotAvailable("no row is unique in the truth")
    result: dict[str, Any] = {"unique": len(unique), "of": len(truth)}
    for name, rows in others.items():
        matched = None if rows is None else int(among(unique, rows).sum())
        result[name] = None if matched is None else {"matched": matched, "share": matched / len(unique)}
    return result


def copies(truth: Ints, synthetic: Ints, public: Ints) -> dict[str, float]:
    """The share of synthetic rows, and of true ones, that have all values of one public row."""
    return {"synthetic": float(among(synthetic, public).mean()), "truth": float(among(truth, public).mean())}
