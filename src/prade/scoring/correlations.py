"""Pairwise correlations of two tables, and how far they differ.

Two numeric columns have Pearson's correlation of the numbers, over the rows that have both, as in SDMetrics'
CorrelationSimilarity and SDNist. Any other pair has Cramer's V of its two-way table in the schema's cells, missing
among them, because codes of categories have no order: V^2 = chi^2 / (n min(r - 1, c - 1)) with r and c the numbers of
rows and columns that are not empty. Pearson's is between -1 and 1, V between 0 and 1.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.scoring.sides import NotAvailable, Side

PEARSON, CRAMER = "Pearson", "Cramer's V"
KINDS = "Pearson's correlation of the numbers of two numeric columns, Cramer's V of the two-way table otherwise"
WORST = 10


def pearson(x: Floats, y: Floats, weights: Floats) -> float:
    """The weighted correlation over the rows that have both; NaN if one of them does not vary there."""
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y, weights = x[both], y[both], weights[both]
    if len(x) < 2 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan")
    x, y = (each - np.average(each, weights=weights) for each in (x, y))
    spread = np.sqrt(float((weights * x * x).sum()) * float((weights * y * y).sum()))
    return float(np.clip((weights * x * y).sum() / spread, -1.0, 1.0)) if spread > 0.0 else float("nan")


def cramers_v(table: Floats) -> float:
    """The strength of dependence in a table of shares; NaN if one of its columns has a single value.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), cramers_v(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    table = table[table.sum(axis=1) > 0.0][:, table.sum(axis=0) > 0.0]
    degrees = min(table.shape) - 1
    if degrees < 1:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.sqrt(min(1.0, ((table - expected) ** 2 / expected).sum() / degrees)))


def correlations(side: Side) -> Floats:
    """The correlation of every pair of columns: symmetric, NaN on the diagonal and where there is none."""
    found = np.full((len(side.columns), len(side.columns)), np.nan)
    for a, b in combinations(range(len(side.columns)), 2):
        one, other = side.columns[a], side.columns[b]
        if kind_of(side, one, other) == PEARSON:
            found[a, b] = pearson(side.numbers[one], side.numbers[other], side.coded.weights)
        else:
            found[a, b] = cramers_v(side.coded.project((one, other)))
        found[b, a] = found[a, b]
    return found


def kind_of(side: Side, one: str, other: str) -> str:
    """How the correlation of a pair is measured."""
    return PEARSON if one in side.numbers and other in side.numbers else CRAMER


def correlation_differences(truth: Side, true: Floats, side: Side) -> dict[str, Any]:
    """How far a table's correlations are from the `true` ones, as a matrix and in a few numbers."""
    if len(truth.columns) < 2:
        raise NotAvailable("there are fewer than 2 columns")
    found = correlations(side)
    difference = found - true
    pairs = [(a, b) for a, b in combinations(range(len(truth.columns)), 2) if np.isfinite(difference[a, b])]
    if not pairs:
        raise NotAvailable("no pair of columns has two values or more in both tables")
    off = np.abs([difference[pair] for pair in pairs])
    worst = [pairs[k] for k in np.argsort(-off, kind="stable")[:WORST]]
    return {
        "mean": float(off.mean()),
        "largest": float(off.max()),
        "worst": [_described(truth, a, b, float(true[a, b]), float(found[a, b])) for a, b in worst],
        "matrix": difference,
    }


def _described(side: Side, a: int, b: int, true: float, found: float) -> dict[str, Any]:
    one, other = side.columns[a], side.columns[b]
    named = {"first": one, "second": other, "kind": kind_of(side, one, other)}
    return {**named, "truth": true, "found": found, "difference": found - true}
