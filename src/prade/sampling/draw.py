"""Rows from a distribution: drawn systematically along an order in which neighbours are alike, then improved.

Only rows with weight are ever taken. The improvement changes a sample row by row until its tables are close to the
distribution's:

    minimise  sum over cells c of all one- and two-way tables  H_c(x_c - m_c),    m_c = n q(c)

x_c is the sample's count in cell c. H_c is quadratic up to h_c = max(1/2, sqrt(pi m_c / 2)) and has slope one beyond:
close to E|x_c - X| when the true count X varies about m_c as counts do (Poisson).

The first pass visits every slot of the sample in random order, empties it, and fills it with the cheapest of the row
that was there and some others: one from anywhere, the rest from near that row in the order. Later passes visit the
slots whose rows cost most. Candidates come from a pool drawn systematically. One is dropped early if it is far behind
in its first cells (`PairTables.hurdle`). The objective never rises. The price is a small bias: rare combinations become
somewhat rarer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import marked
from prade.core.errors import EstimationError
from prade.core.numbers import whole
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes
from prade.planning.task import Target, Wanted, wanted_of
from prade.sampling import kernels
from prade.sampling.kernels import ONE, Hurdle, Lines, Tally

ROWS_FOR_ORDER = 20_000  # enough for mutual information: the order only needs to be good, not best
PASSES = 6  # the first visits every row of the sample, the others those that cost most
VISITED, FEWEST_VISITS = 0.3, 32  # of the slots, in a pass after the first
FEWEST_CHANGES = 0.005  # of the slots: a pass that changes fewer is the last
CANDIDATES = 12  # rows that a visit to a slot looks at
NEARBY = 64  # how many distinct rows away in the pool a candidate is at most, except one from anywhere
DETAIL = 32  # rows in the pool for each row of the sample
LARGEST_POOL = 2**22  # rows drawn for the pool, whatever the size of the sample


def ordering(codes: Codes, schema: Schema) -> Ints:
    """An order of the rows in which neighbours are alike: sorted column after column, the most telling column first.

    A column tells sum_b I(a; b), its mutual information with all others, counted on some 20,000 rows.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 3, "b": 2, "c": 2})
    >>> rows = {"a": np.array([2, 0, 1, 0]), "b": np.array([0, 1, 0, 1]), "c": np.array([1, 0, 0, 1])}
    >>> ordering(rows, schema)       # a determines b, b says less about a, c is independent
    array([1, 3, 2, 0])
    """
    tables = PairTables(schema, codes)
    sparse = np.arange(0, tables.rows, max(1, tables.rows // ROWS_FOR_ORDER))
    keys: list[NDArray[np.uint64]] = []
    room = 0
    for a in np.argsort(-tables.information(sparse), kind="stable"):
        name = tables.names[a]
        size, code = schema[name].size, codes[name].astype(np.uint64)
        if room < size:  # columns share a 64-bit key as long as they fit: few keys sort faster than many columns
            keys.append(code)
            room = 2**64
        else:
            keys[-1] = keys[-1] * np.uint64(size) + code
        room //= size
    return np.lexsort(keys[::-1])


def check_whole(**settings: int) -> None:
    """Refuse what is not a whole number, 0 or more."""
    for name, value in settings.items():
        if not whole(value, 0):
            raise EstimationError(f"{name} is {value!r}: give a whole number, 0 or more")


class SortedRows:
    """Rows in an order in which neighbours are alike: made once, then used for all distributions on these rows.

    A row's *rank* is its place in the order. `tables` are those that samples are to meet, some of them `first`.
    """

    def __init__(self, codes: Codes, schema: Schema, first: Sequence[tuple[str, str]] = ()) -> None:
        self.tables = PairTables(schema, codes, first)
        order = ordering(codes, schema)
        self.order: NDArray[Any] = order.astype(np.uint32 if len(order) <= 2**32 else np.uint64)
        self.coded = self.tables.coded(self.order)  # [rows, columns], along the order

    def edges(self, weights: NDArray[Any]) -> Floats:
        """The cumulative sum of the weights along the order."""
        q = np.asarray(weights, dtype=np.float64)
        if q.shape != self.order.shape or not np.isfinite(q).all() or (q < 0).any() or not q.sum() > 0:
            raise EstimationError("weights must be one finite number per row, none negative and not all zero")
        edges = np.empty(len(q))
        kernels.running_sum(q, self.order, edges)
        return edges


def sample(rows: SortedRows, weights: Floats, n: int, seed: int, passes: int = PASSES) -> Ints:
    """The numbers of n rows in random order, whose one- and two-way tables are close to the distribution's.

    First a systematic sample: the rows are laid end to end in their order, each as long as its weight, and n equally
    spaced marks with a random start each pick a row. So row j comes floor(n q_j) or ceil(n q_j) times, n q_j on
    average, and any stretch of the order gets its share to within one row. Then it is improved in some `passes`.

    >>> from prade import Schema
    >>> from prade.data.public.joint import Prior
    >>> prior = Prior.uniform(Schema.from_mbi({"a": 2, "b": 3}))
    >>> np.bincount(sample(SortedRows(prior.codes, prior.schema), prior.weights, 12, seed=1))
    array([2, 2, 2, 2, 2, 2])
    """
    check_whole(n=n, seed=seed, passes=passes)
    edges = rows.edges(weights)
    drawn = marked(edges, n, np.random.default_rng(seed).random())
    generator = np.random.default_rng([seed, 1])
    return generator.permutation(rows.order[improved(rows, weights, edges, drawn, generator, passes)])


def improved(
    rows: SortedRows, q: Floats, edges: Floats, given: Ints, generator: np.random.Generator, passes: int = PASSES
) -> Ints:
    """Ranks whose tables are nearer to the distribution's than those of the given ones; `edges` as `SortedRows` has."""
    if passes == 0 or len(given) == 0:
        return given
    pool = _Pool.of(marked(edges, min(DETAIL * len(given), LARGEST_POOL), generator.random()), np.sort(given))
    coded, tables = np.take(rows.coded, pool.ranks, axis=0), rows.tables
    tally = _tally(tables, coded, pool, _expected(tables, coded, pool, q))
    for number in range(passes):
        chosen = _dearest(coded, pool, tables, tally) if number else np.arange(len(given))
        changed = 0
        for visits in in_blocks(generator.permutation(chosen)):
            away = pool.offsets(len(visits), generator)
            changed += kernels.search(coded, pool.number, pool.slots, visits, away, tables.lines, tally, tables.hurdle)
        if number and changed < FEWEST_CHANGES * len(given):
            break
    return pool.ranks[pool.number[pool.slots]]


@dataclass(frozen=True, eq=False)
class _Pool:
    """Rows drawn from the distribution and the rows of the sample, sorted so that neighbours are alike.

    `ranks` are the distinct rows, `drawn` how often each was drawn; `number` are the pool's rows as indices into
    `ranks`, `slots` are where the rows of the sample are in it.
    """

    ranks: Ints
    drawn: NDArray[np.int32]
    number: NDArray[np.int32]
    slots: Ints

    @classmethod
    def of(cls, drawn: Ints, mine: Ints) -> _Pool:
        """Join drawn ranks with those of the sample; both are in rising order."""
        slots = np.searchsorted(drawn, mine) + np.arange(len(mine))
        from_given = np.zeros(len(drawn) + len(mine), np.bool_)
        from_given[slots] = True
        ranks = np.empty(len(from_given), np.int64)
        ranks[from_given], ranks[~from_given] = mine, drawn
        new = np.concatenate([[True], ranks[1:] != ranks[:-1]])
        number = np.cumsum(new, dtype=np.int32) - np.int32(1)
        times = np.bincount(number[~from_given], minlength=int(number[-1]) + 1).astype(np.int32)
        return cls(ranks[new], times, number, slots)

    def offsets(self, visits: int, generator: np.random.Generator) -> Ints:
        """How far away in the pool the candidates of each visit are: [visits, candidates]."""
        copies, shape = len(self.number) / len(self.ranks), (visits, CANDIDATES)
        parts = (np.arange(CANDIDATES) - 1 + generator.random(shape)) / (CANDIDATES - 1)  # the first is elsewhere
        distances = (copies * NEARBY**parts).astype(np.int64)
        offsets = np.where(generator.random(shape) < 0.5, -distances, distances)
        offsets[:, 0] = generator.integers(len(self.number), size=visits)
        return offsets


def _dearest(coded: NDArray[Any], pool: _Pool, tables: PairTables, tally: Tally) -> Ints:
    """The slots whose rows cost most: hardly any other changes after the first pass."""
    gain = np.empty(len(pool.slots), np.int64)
    kernels.prices(coded, pool.number, pool.slots, tables.lines, tally, gain)
    return np.argsort(-gain, kind="stable")[: max(FEWEST_VISITS, math.ceil(VISITED * len(gain)))]


def _expected(tables: PairTables, coded: NDArray[Any], pool: _Pool, q: Floats) -> NDArray[np.float32]:
    """The counts that the sample is to meet: exact ones where that is little work, or else the pool's."""
    n = len(pool.slots)
    if np.count_nonzero(q) <= DETAIL * n or pool.drawn.sum() < DETAIL * n:
        positive = np.flatnonzero(q)
        return tables.masses(positive, n * q[positive] / q.sum()).astype(np.float32)
    return (tables.counts(coded, pool.drawn) / DETAIL).astype(np.float32)


def _tally(tables: PairTables, coded: NDArray[Any], pool: _Pool, expected: NDArray[np.float32]) -> Tally:
    """What the search keeps up to date: the sample's counts, and what one more row in each cell would cost."""
    times = np.bincount(pool.number[pool.slots], minlength=len(pool.ranks)).astype(np.int32)
    filled = np.flatnonzero(times)
    steepness = 1 / np.maximum(np.float32(0.5), np.sqrt(np.float32(np.pi / 2) * expected))
    slopes, gains = np.empty((2, tables.cells), np.int16)
    tally = Tally(expected, steepness, tables.counts(coded[filled], times[filled]), slopes, gains)
    kernels.all_slopes(tally)
    return tally


# ---------------------------------------------------------------------- the tables that a sample is to meet
# All tables weigh alike, but those of a plan's targets are counted several times over.


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
