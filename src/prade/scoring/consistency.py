"""Consistency of rows: pairs of numbers that are ordered in nearly all true rows, as wages and income are.

A rule "low <= high" is taken from the true rows where it holds for at least 99 % of those that have both values and
would often be broken if each column were drawn alone (`prade.data.declare.draft`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.data.declare.draft import MOST_ROWS, ordered_pairs
from prade.scoring.sides import NotAvailable, Side


def consistency(truth: Side, others: dict[str, Side | None], seed: int) -> dict[str, Any]:
    """For every rule of the true rows, how many rows of each table break it."""
    numeric = [truth.schema[name] for name in truth.columns if name in truth.numbers]
    if len(numeric) < 2:
        raise NotAvailable("there are fewer than 2 numeric columns")
    few = truth.drawn(MOST_ROWS, seed)
    pairs = ordered_pairs(numeric, few.numbers, few.codes)
    if not pairs:
        raise NotAvailable("no two numeric columns are ordered in nearly all true rows")
    sides = {"truth": truth, **others}
    rules = []
    for low, high in pairs:
        broken = {name: None if side is None else _broken(side, low, high) for name, side in sides.items()}
        both = ~np.isnan(truth.numbers[low]) & ~np.isnan(truth.numbers[high])
        rules.append({"low": low, "high": high, "rows": int(both.sum()), **broken})
    return {"rules": rules}


def _broken(side: Side, low: str, high: str) -> float | None:
    """The share of the rows with both values in which the lower one is above; None if no row has both."""
    one, other = side.numbers[low], side.numbers[high]
    both: Floats = np.where(np.isnan(one) | np.isnan(other), 0.0, side.coded.weights)
    return float(both[one > other].sum() / both.sum()) if both.any() else None
