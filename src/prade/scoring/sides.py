"""One table as the metrics see it, and the k-marginal metric of NIST: how far the k-way tables of two tables are apart.

    d = mean over sets of k columns of  sum over cells |P - Q|          score = 1000 (1 - d / 2)

with P and Q the shares of the two tables' rows. All sets of k columns count, or 100 of them, drawn with the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.compiled import systematic
from prade.data.declare.schema import Schema
from prade.data.public.joint import Coded, Joint, encode, joint_codes
from prade.data.public.public import binned_numbers
from prade.data.read.tables import table_columns

MOST_TABLES = 100
LARGEST_TABLE = 2**24  # cells; those of larger tables are counted by sorting the rows

Columns = tuple[str, ...]


class NotAvailable(Exception):
    """Why a metric cannot be computed from these tables, as a sentence for the reader."""


class Side(Coded):
    """The true, the synthetic or the public rows. `numbers` has NaN where a numeric column is missing.

    >>> from prade import Column, Schema
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65], missing=True)])
    >>> side = Side.of(schema, {"AGE": [3, None, 70]})
    >>> side.numbers["AGE"], side.codes["AGE"]
    (array([ 3., nan, 70.]), array([0, 3, 2], dtype=uint8))
    """

    def __init__(self, rows: Coded, numbers: Mapping[str, Floats]) -> None:
        self.schema, self.codes, self.weights, self.numbers = rows.schema, rows.codes, rows.weights, numbers

    @classmethod
    def of(cls, schema: Schema, table: Any) -> Side:
        rows = table_columns(table)
        coded = encode(schema, rows)
        numeric = [name for name in schema.coded if schema[name].numeric]
        return cls(coded, {name: binned_numbers(schema[name], rows[name], coded.codes[name]) for name in numeric})

    @classmethod
    def joined(cls, sides: Sequence[Side]) -> Side:
        """The rows of several tables of one schema, one table after the other; every row counts once."""
        codes = {name: np.concatenate([side.codes[name] for side in sides]) for name in sides[0].columns}
        numbers = {name: np.concatenate([side.numbers[name] for side in sides]) for name in sides[0].numbers}
        return cls(Coded(sides[0].schema, codes), numbers)

    def take(self, index: NDArray[Any]) -> Side:
        return Side(super().take(index), {name: each[index] for name, each in self.numbers.items()})

    def only(self, columns: tuple[str, ...]) -> Side:
        codes = {name: self.codes[name] for name in columns}
        numbers = {name: each for name, each in self.numbers.items() if name in columns}
        return Side(Coded(self.schema, codes, self.weights), numbers)

    def drawn(self, rows: int, seed: int) -> Side:
        """At most this number of rows, each of which counts once: drawn in proportion to their weights, if need be."""
        weights = self.weights
        if len(self) <= rows and np.ptp(weights) == 0.0:
            return self
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(self))
        index: Ints = order[systematic(weights[order], min(rows, len(self)), generator.random())]
        index.sort()
        drawn = self.take(index)
        return Side(Coded(self.schema, drawn.codes), drawn.numbers)


def each(compute: Callable[[Side], Any], sides: Mapping[str, Side | None]) -> dict[str, Any]:
    """What is computed for each table, {"not_available": why}, or None where there is no such table."""
    return {name: None if side is None else or_why(partial(compute, side)) for name, side in sides.items()}


def or_why(metric: Callable[[], Any]) -> Any:
    """The metric, or why it is not available."""
    try:
        return metric()
    except NotAvailable as why:
        return {"not_available": str(why)}


# ---------------------------------------------------------------------- k-marginals


def drawn_sets(columns: Columns, k: int, seed: int) -> list[Columns]:
    """Different sets of k columns: all of them, or 100, drawn at random.

    >>> drawn_sets(("A", "B", "C"), 2, 0)
    [('A', 'B'), ('A', 'C'), ('B', 'C')]
    """
    if comb(len(columns), k) <= MOST_TABLES:
        return list(combinations(columns, k))
    generator = np.random.default_rng([seed, k])
    ordered, sets = sorted(columns), dict[Columns, None]()  # by name: the schema's order does not matter
    while len(sets) < MOST_TABLES:
        sets[tuple(ordered[c] for c in sorted(generator.choice(len(ordered), k, replace=False)))] = None
    return list(sets)


def distance(p: Joint, q: Joint, columns: Columns, largest: int = LARGEST_TABLE) -> float:
    """The sum over the cells of a table of |P - Q|, 0 (the same) to 2 (nothing in common)."""
    cells = p.schema.domain_size(columns)
    one, other = (joint_codes(p.schema, each.codes, columns) for each in (p, q))
    if cells > largest:
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
    result: dict[str, Any] = {"k": k, "tables": len(sets), "of": comb(len(truth.columns), k)} | dict.fromkeys(others)
    for name, side in others.items():
        if side is not None:
            mean = float(np.mean([distance(truth, side, columns) for columns in sets]))
            result[name] = {"distance": mean, "score": 1000.0 * (1.0 - mean / 2.0)}
    return result
