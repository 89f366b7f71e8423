"""The one- and two-way tables that a sample is to meet: where their cells are in memory, and how to fill them.

All tables weigh alike, but those of a plan's targets are counted several times over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.errors import EstimationError
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes
from prade.planning.task import Target, Wanted, wanted_of
from prade.sampling import kernels
from prade.sampling.kernels import ONE, Hurdle, Lines

LARGEST_TABLES = 2**23  # cells of all tables together: 14 bytes each, 26 while they are filled
HURDLE = 1 / 3  # share of a row's cells that are looked at first
HEIGHT = 0.4  # of the hurdle, in slopes per root of the number of the other cells
BLOCK = 2**14  # rows or visits that are prepared together
# Weight of the targets' tables together, beside one for all two-way tables together. On public ACS rows with five
# targets, their error fell from 0.0677 to 0.0642 (the estimates' is 0.0635), and that of all pairs stayed at 0.260.
# With 0.5 it fell to 0.0638, and that of all pairs rose to 0.262.
TOGETHER = 0.2
MOST_COPIES = 32  # of one table


class PairTables:
    """The tables of all columns and of all pairs of columns, laid out as `prade.sampling.kernels` needs them.

    Columns that would make the tables too large are counted in runs of neighbouring codes. Tables that are to be met
    `first` are there once more for each time that they are listed; a column paired with itself is a one-way table.
    """

    def __init__(self, schema: Schema, codes: Codes, first: Sequence[tuple[str, str]] = ()) -> None:
        # the largest first: they have the long lines, and what a row looks up lies closer together
        self.names = sorted(codes, key=schema.size, reverse=True)
        self.codes = codes
        lengths = {len(code) for code in codes.values()}
        if len(lengths) != 1:
            raise EstimationError(
                f"the coded columns have {len(lengths)} different lengths: give at least one column, all equally long"
            )
        self.rows = lengths.pop()
        at = {name: a for a, name in enumerate(self.names)}
        again = [(min(at[x], at[y]), max(at[x], at[y])) for x, y in first]
        self.links = sorted([*combinations(range(len(self.names)), 2), *again])
        self.full = np.array(schema.shape(self.names))
        self.sizes = _coarse(self.full, self.links)
        self.start = np.cumsum(self.sizes) - self.sizes
        self._lay_out()

    def _lay_out(self) -> None:
        one, other = np.array(self.links, np.int64).reshape(-1, 2).T
        taken = np.cumsum(self.sizes[other]) - self.sizes[other]  # by earlier partners, those of other columns too
        begins = np.searchsorted(one, np.arange(len(self.names) + 1))
        bounds = np.append(taken, self.sizes[other].sum())[begins]
        length = 1 + np.diff(bounds)
        self.cells = int(self.sizes @ length)
        self.line = np.cumsum(self.sizes * length) - self.sizes * length
        self.length = length
        self.offset = 1 + taken - bounds[one]  # where each pair's cells begin in a line
        new = np.flatnonzero((np.diff(one, prepend=-1) != 0) | (np.diff(other, prepend=-1) != 1))
        ends = np.append(new[1:], len(one))[: len(new)]
        described = (
            self.line - self.start * length,
            length,
            np.searchsorted(one[new], np.arange(len(self.names) + 1)),
            other[new],
            other[ends - 1] + 1,
            self.offset[new] - self.start[other[new]],
        )
        self.lines = Lines(*(each.astype(np.int64).view(np.uint64) for each in described))

    @cached_property
    def hurdle(self) -> Hurdle:
        """The first lines with a third of a row's cells.

        What is left seldom makes up for more than the hurdle's height: after the first pass, some 5 % of the candidates
        that would be taken are lost.
        """
        of_column = 1 + np.bincount([a for a, _ in self.links], minlength=len(self.names))
        columns = int(np.searchsorted(np.cumsum(of_column), HURDLE * of_column.sum())) + 1
        left = int(of_column[columns:].sum())
        return Hurdle(columns, int(of_column[:columns].sum()), int(HEIGHT * np.sqrt(left) * ONE))

    def coded(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The codes of some rows as the tables number them: [rows, columns]."""
        coded = np.empty((len(rows), len(self.names)), np.min_scalar_type(int(self.sizes.sum())))
        for block, into in zip(in_blocks(rows), in_blocks(coded), strict=True):
            columns = np.empty((len(self.names), len(block)), coded.dtype)
            for a, name in enumerate(self.names):
                code, full, size = self.codes[name][block], int(self.full[a]), int(self.sizes[a])
                # compiled loops check nothing: a code outside its column would write outside the tables
                if code.min(initial=0) < 0 or code.max(initial=0) >= full:
                    raise EstimationError(f"column {name!r} has codes outside 0 to {full - 1}: see joint.encode")
                kept = code if size == full else code.astype(np.int64) * size // full
                np.add(kept, self.start[a], out=columns[a], casting="unsafe")
            into[:] = columns.T
        return coded

    def masses(self, rows: Ints, weights: Floats) -> Floats:
        """The mass of weighted rows in every cell."""
        mass = np.zeros(self.cells)
        for block, each in zip(in_blocks(rows), in_blocks(weights), strict=True):
            kernels.tables(self.coded(block), each, self.lines, mass)
        return mass

    def counts(self, coded: NDArray[Any], times: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many rows are in every cell, each of some coded rows `times` times."""
        number = np.zeros(self.cells, np.int32)
        kernels.tables(coded, times, self.lines, number)
        return number

    def information(self, rows: Ints) -> Floats:
        """Each column's mutual information with its partners, summed, in nats."""
        mass = self.masses(rows, np.full(len(rows), 1 / max(len(rows), 1)))
        lines = [
            mass[start : start + size * length].reshape(size, length)
            for start, size, length in zip(self.line, self.sizes, self.length, strict=True)
        ]
        told = np.zeros(len(self.names))
        for (a, b), start in zip(self.links, self.offset, strict=True):
            both = lines[a][:, start : start + int(self.sizes[b])]
            apart = np.outer(lines[a][:, 0], lines[b][:, 0])
            told[[a, b]] += np.sum(both * np.log(np.divide(both, apart, out=np.ones_like(both), where=both > 0)))
        return told


def _coarse(sizes: Ints, links: Sequence[tuple[int, int]]) -> Ints:
    """How many codes of each column are counted separately: all, or as many as the tables have room for."""

    def cells(most: int) -> int:
        kept = np.minimum(sizes, most)
        return int(kept.sum()) + sum(int(kept[a]) * int(kept[b]) for a, b in links)

    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cells(middle) <= LARGEST_TABLES else (low, middle - 1)
    return np.minimum(sizes, low)


def in_blocks(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Consecutive stretches of an array, small enough to be prepared together."""
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


# ---------------------------------------------------------------------- the tables of targets


def tables_first(targets: Sequence[Target], schema: Schema) -> tuple[tuple[str, str], ...]:
    """Pairs of columns, each as often as it counts more; a column paired with itself is its one-way table.

    >>> from collections import Counter
    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema.from_mbi({"age": 10, "sex": 2} | {f"column {k}": 2 for k in range(8)})
    >>> Counter(tables_first([Target(["age x sex"], by="all"), Target(["age"], by="all", weight=2)], schema))
    Counter({('age', 'age'): 6, ('age', 'sex'): 3})
    """
    weights: dict[tuple[str, str], float] = {}
    for each in wanted_of(targets, schema):
        pairs = _pairs(each)
        for pair in pairs:
            weights[pair] = weights.get(pair, 0.0) + each.weight / len(pairs)
    whole = TOGETHER * comb(len(schema.coded), 2) / max(sum(weights.values()), 1e-300)
    copies = {pair: min(max(round(whole * weight), 1), MOST_COPIES) for pair, weight in weights.items()}
    return tuple(pair for pair, number in copies.items() for _ in range(number))


def _pairs(wanted: Wanted) -> list[tuple[str, str]]:
    columns = wanted.part.columns
    if wanted.kind in ("mean", "quantile") and wanted.query is None:
        columns = columns[:1]
    return [(columns[0], columns[0])] if len(columns) == 1 else list(combinations(sorted(columns), 2))
