"""The k-marginal metric of NIST: how far the k-way tables of two sets of rows are apart.

    distance = mean over sets of k columns of sum over cells |P - Q|        score = 1000 (1 - distance / 2)

as in SDNist (usnistgov/SDNist, `sdnist/metrics/kmarginal.py`), where P and Q are the tables' shares. Three things
differ. Cells are those of the schema, with missing as a cell of its own; SDNist has bins of its own for its data. The k
columns are always different, and all sets of them are taken where there are at most 100; SDNist draws each column
anew, so that one can meet itself. And all rows are one group here: the distance by place is the contest's score.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.data.joint import Joint, joint_codes
from prade.scoring.sides import NotAvailable, Side

MOST_TABLES = 100
LARGEST_TABLE = 2**24  # cells; those of larger tables are counted by sorting the rows

Columns = tuple[str, ...]


def drawn_sets(columns: Columns, k: int, seed: int, most: int = MOST_TABLES) -> list[Columns]:
    """Different sets of k columns: all of them if there are at most `most`, or else that many, drawn at random.

    >>> drawn_sets(("A", "B", "C"), 2, 0)
    [('A', 'B'), ('A', 'C'), ('B', 'C')]
    """
    if comb(len(columns), k) <= most:
        return list(combinations(columns, k))
    generator = np.random.default_rng([seed, k])
    ordered, found = sorted(columns), dict[Columns, None]()  # by name: the schema's order does not matter
    while len(found) < most:
        found[tuple(ordered[c] for c in sorted(generator.choice(len(ordered), k, replace=False)))] = None
    return list(found)


def distance(p: Joint, q: Joint, columns: Columns) -> float:
    """The sum over the cells of a table of |P - Q|, 0 (the same) to 2 (nothing in common)."""
    cells = p.schema.domain_size(columns)
    one, other = (joint_codes(p.schema, each.codes, columns) for each in (p, q))
    if cells > LARGEST_TABLE:
        _, number = np.unique(np.concatenate([one, other]), return_inverse=True)
        one, other, cells = number[: len(one)], number[len(one) :], int(number.max()) + 1
    shares = [_shares(code.astype(np.int64), each, cells) for code, each in ((one, p), (other, q))]
    return float(np.abs(shares[0] - shares[1]).sum())


def _shares(cells: Ints, joint: Joint, size: int) -> Floats:
    """Share of each cell; rows of one weight are counted, so that equal tables of different lengths agree exactly."""
    if np.ptp(joint.weights) == 0.0:
        return np.asarray(np.bincount(cells, minlength=size) / len(cells))
    return mass_per_cell(cells, joint.weights, size)


def k_marginal(truth: Side, others: dict[str, Side | None], k: int, seed: int) -> dict[str, Any]:
    """The metric of each of the other tables, for one k."""
    sets = drawn_sets(truth.columns, k, seed)
    if not sets:
        raise NotAvailable(f"there are fewer than {k} columns")
    result: dict[str, Any] = {"k": k, "tables": len(sets), "of": comb(len(truth.columns), k)}
    for name, side in others.items():
        result[name] = None if side is None else _scored(truth, side, sets)
    return result


def _scored(truth: Side, side: Side, sets: list[Columns]) -> dict[str, float]:
    mean = float(np.mean([distance(truth.coded, side.coded, columns) for columns in sets]))
    return {"distance": mean, "score": 1000.0 * (1.0 - mean / 2.0)}
