"""Rows from a distribution: drawn systematically along an order in which neighbours are alike, then improved.

Only rows with weight are ever taken, so what cannot occur does not. Everything here is post-processing: seeded, free of
privacy cost. The improvement changes a sample row by row until its tables are close to the distribution's:

    minimise  sum over cells c of all one- and two-way tables  H_c(x_c - m_c),    m_c = n q(c)

x_c is the sample's count in cell c. H_c is quadratic up to h_c = max(1/2, sqrt(pi m_c / 2)) and has slope one beyond:
close to E|x_c - X| when the true count X varies about m_c as counts do (Poisson). That is the expected L1 error against
the truth rather than the L1 distance from an estimate, and it is smoother to search on.

The first pass visits every slot of the sample in random order, empties it, and fills it with the cheapest of the row
that was there and `candidates` others: one from anywhere, the rest from near that row in the order. Later passes visit
the slots whose rows cost most. Candidates come from a pool: `detail` rows for each of the sample, drawn systematically.
m_c is counted in the pool as well, or taken from the distribution itself where that is less work. A candidate is
dropped early if it is far behind in its first cells (`PairTables.hurdle`). The objective never rises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import marked, systematic
from prade.core.errors import EstimationError
from prade.data.public.joint import Codes, Joint
from prade.sampling import kernels
from prade.sampling.kernels import Tally
from prade.sampling.pair_tables import Clusters, PairTables, in_blocks

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import Coded

ROWS_FOR_ORDER = 20_000  # enough for mutual information: the order only needs to be good, not best
FEWEST_ROWS = 4096  # with fewer, to add up the clusters' tables takes longer than to look at every pair of columns
PASSES = 6  # the first visits every row of the sample, the others those that cost most
FEWEST_CHANGES = 0.005  # of the slots: a pass that changes fewer is the last
FEWEST_VISITS = 32
NEARBY = 64  # how many distinct rows away in the pool a candidate is at most, except one from anywhere
LARGEST_POOL = 2**22  # rows drawn for the pool, whatever the size of the sample


def draw(weights: NDArray[Any], n: int, seed: int, *, order: Ints | None = None) -> Ints:
    """Systematic sample: n row numbers, row j floor(n q_j) or ceil(n q_j) times, n q_j on average.

    The rows are laid end to end in `order` (see `ordering`; None keeps their own order), each as long as its weight,
    and n equally spaced marks with a random start each pick a row. Any stretch of the order gets its share to within
    one row: the closer alike rows are together, the less the sample's tables vary. The result is in random order.

    >>> sorted(draw([0.5, 0.0, 0.25, 0.25], 4, seed=7).tolist())
    [0, 0, 2, 3]
    """
    q = _checked_weights(weights)
    check_whole(n=n, seed=seed)
    generator = np.random.default_rng(seed)
    if order is None:
        rows = systematic(q, n, generator.random())
    else:
        along = _checked_order(order, len(q))
        rows = np.asarray(along[systematic(q[along], n, generator.random())])
    generator.shuffle(rows)
    return rows


def ordering(codes: Codes, schema: Schema) -> Ints:
    """An order of the rows in which neighbours are alike: sorted column after column, the most telling column first.

    A column tells sum_b I(a; b), its mutual information with all others, counted on some 20,000 rows. The order
    does not depend on weights: calculate it once for all distributions on the same rows.

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
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
            raise EstimationError(f"{name} is {value!r}: give a whole number, 0 or more")


def _checked_weights(weights: NDArray[Any]) -> Floats:
    q = np.asarray(weights, dtype=np.float64)
    if q.ndim != 1 or not np.isfinite(q).all() or (q < 0).any() or not q.sum() > 0:
        raise EstimationError("weights must be one finite number per row, none negative and not all zero")
    return q


def _checked_order(order: Ints, rows: int) -> Ints:
    given = np.asarray(order)
    fits = given.shape == (rows,) and given.dtype.kind in "iu" and given.min() >= 0 and given.max() < rows
    if not fits or (np.bincount(given, minlength=rows) != 1).any():
        raise EstimationError(
            f"order must have each of the {rows} rows once: take it from prade.sampling.draw.ordering"
        )
    return given


# ---------------------------------------------------------------------- rows in an order


class SortedRows:
    """Rows in an order in which neighbours are alike: made once, then used for all distributions on these rows.

    A row's *rank* is its place in the order. Samples are drawn and improved as ranks, because what lies close together
    in the order also lies close together in memory. `tables` are those that samples are to meet, some of them `first`.
    """

    def __init__(
        self, codes: Codes, schema: Schema, *, order: Ints | None = None, first: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.tables = PairTables(schema, codes, first)
        order = ordering(codes, schema) if order is None else _checked_order(order, self.tables.rows)
        self.order: NDArray[Any] = order.astype(np.uint32 if len(order) <= 2**32 else np.uint64)
        self._clusters: Clusters | None = None

    def __len__(self) -> int:
        return len(self.order)

    def edges(self, weights: NDArray[Any]) -> Floats:
        """The cumulative sum of the weights along the order."""
        edges = np.empty(len(self.order))
        kernels.running_sum(_checked_weights(weights), self.order, edges)
        return edges

    def coded(self, ranks: Ints) -> NDArray[Any]:
        """The codes of the rows with these ranks, as the tables number them: [rows, columns]."""
        coded = np.empty((len(ranks), len(self.tables.names)), self.tables.number_type)
        kernels.numbered(self._codes, ranks, self.tables.start.astype(coded.dtype), coded)
        return coded

    def cluster(self) -> None:
        """Have columns counted together from now on: worth the while where many large pools are counted."""
        if not self.tables.repeated:
            self._clusters = Clusters(self.tables, self._codes)

    def counts(self, ranks: Ints, coded: NDArray[Any], times: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many rows are in every cell, each of those with some ranks `times` times; `coded` are their codes."""
        if self._clusters is None or len(ranks) < FEWEST_ROWS:
            return self.tables.counts(coded, times)
        return self._clusters.counts(ranks, times)

    @cached_property
    def _codes(self) -> NDArray[Any]:
        """The codes of all rows along the order, a row's codes side by side, in the narrowest type."""
        return self.tables.side_by_side(self.order)


def drawn_ranks(edges: Floats, n: int, generator: np.random.Generator) -> Ints:
    """A systematic sample of n ranks, in rising order, from cumulative weights."""
    return marked(edges, n, generator.random())


# ---------------------------------------------------------------------- better rows


@dataclass(frozen=True)
class Search:
    """How long to search, and among how many rows: see the module.

    A pass after the first visits the share `visited` of the slots. `height` is that of the hurdle that a candidate must
    pass before all its cells are looked at (`PairTables.hurdle`); infinite for none.
    """

    passes: int = PASSES
    candidates: int = 12  # rows that a visit to a slot looks at
    detail: int = 32  # rows in the pool for each row of the sample
    visited: float = 0.3
    height: float = 0.4

    def __post_init__(self) -> None:
        check_whole(passes=self.passes, candidates=self.candidates, detail=self.detail)
        if self.detail == 0:
            raise EstimationError("detail is 0: the pool needs at least one row for each of the sample, 32 is usual")


USUAL = Search()


def sample(joint: Joint, n: int, seed: int, *, order: Ints | None = None) -> Coded:
    """n rows of a distribution: `draw`, then `improve`.

    >>> from prade import Schema
    >>> from prade.data.public.joint import Prior
    >>> sample(Prior.uniform(Schema.from_mbi({"a": 2, "b": 3})), 12, seed=1).project(["a", "b"]) * 12
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    from prade.data.public.joint import Coded

    order = ordering(joint.codes, joint.schema) if order is None else order
    rows = draw(joint.weights, n, seed, order=order)
    rows = improve(joint.codes, joint.schema, joint.weights, rows, order=order, seed=seed)
    return Coded(joint.schema, {name: code[rows] for name, code in joint.codes.items()})


def improve(
    codes: Codes,
    schema: Schema,
    weights: NDArray[Any],
    rows: Ints,
    *,
    seed: int,
    order: Ints | None = None,
    search: Search = USUAL,
) -> Ints:
    """A sample of the same size whose one- and two-way tables are nearer to the distribution's.

    The result is in random order; it depends on the arguments only. The price is a small bias: a cell that expects less
    than half a row is nearest to its expectation when empty, so rare combinations become somewhat rarer. If every row
    must get its share on average, keep what `draw` gave.

    >>> from prade import Schema
    >>> from prade.data.public.joint import Prior
    >>> prior = Prior.uniform(Schema.from_mbi({"a": 2, "b": 2}))
    >>> rows = improve(prior.codes, prior.schema, prior.weights, np.array([0, 0, 0, 1]), seed=1)
    >>> sorted(rows.tolist())
    [0, 1, 2, 3]
    """
    q, sorted_rows = _checked_weights(weights), SortedRows(codes, schema, order=order)
    check_whole(seed=seed)
    if len(sorted_rows) != len(q):
        raise EstimationError(f"there are {len(q)} weights for {len(sorted_rows)} coded rows: give one weight per row")
    if not (q[rows] > 0).all():
        raise EstimationError("some of the rows have no weight: draw them with the same weights")
    ranks = np.argsort(sorted_rows.order)[rows]
    generator = np.random.default_rng([seed, 1])  # not the stream of `draw`, which may have the same seed
    better = improved_ranks(sorted_rows, q, sorted_rows.edges(q), ranks, generator, search)
    return generator.permutation(sorted_rows.order[better].astype(np.int64))


def improved_ranks(
    rows: SortedRows,
    q: Floats,
    edges: Floats,
    given: Ints,
    generator: np.random.Generator,
    search: Search,
    largest: int = LARGEST_POOL,
) -> Ints:
    """As `improve`, for ranks; `edges` are the cumulative weights along the order."""
    if search.passes == 0 or search.candidates == 0 or len(given) == 0:
        return given
    pool = _Pool.of(drawn_ranks(edges, min(search.detail * len(given), largest), generator), np.sort(given))
    coded = rows.coded(pool.ranks)
    tally = _tally(rows.tables, coded, pool, _expected(rows, coded, pool, q, search.detail))
    hurdle, lines = rows.tables.hurdle(search.height), rows.tables.lines
    for number in range(search.passes):
        share = search.visited if number else 1.0
        chosen = np.arange(len(given)) if share == 1.0 else _dearest(coded, pool, rows.tables, tally, share)
        changed = 0
        for visits in in_blocks(generator.permutation(chosen)):
            offsets = pool.offsets(len(visits), search.candidates, generator)
            changed += kernels.search(coded, pool.number, pool.slots, visits, offsets, lines, tally, hurdle)
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

    def offsets(self, visits: int, candidates: int, generator: np.random.Generator) -> Ints:
        """How far away in the pool the candidates of each visit are: [visits, candidates]."""
        copies = len(self.number) / len(self.ranks)
        shape = visits, candidates
        parts = (np.arange(candidates) - 1 + generator.random(shape)) / max(candidates - 1, 1)  # the first is elsewhere
        distances = (copies * NEARBY**parts).astype(np.int64)
        offsets = np.where(generator.random(shape) < 0.5, -distances, distances)
        offsets[:, 0] = generator.integers(len(self.number), size=visits)
        return offsets


def _dearest(coded: NDArray[Any], pool: _Pool, tables: PairTables, tally: Tally, share: float) -> Ints:
    """The share of the slots whose rows cost most: hardly any other changes after the first pass."""
    gain = np.empty(len(pool.slots), np.int64)
    kernels.prices(coded, pool.number, pool.slots, tables.lines, tally, gain)
    return np.argsort(-gain, kind="stable")[: max(FEWEST_VISITS, math.ceil(share * len(gain)))]


def _expected(rows: SortedRows, coded: NDArray[Any], pool: _Pool, q: Floats, detail: int) -> NDArray[np.float32]:
    """The counts that the sample is to meet: exact ones where that is little work, or else the pool's."""
    n = len(pool.slots)
    if np.count_nonzero(q) <= detail * n or pool.drawn.sum() < detail * n:
        positive = np.flatnonzero(q)
        return rows.tables.masses(positive, n * q[positive] / q.sum()).astype(np.float32)
    return (rows.counts(pool.ranks, coded, pool.drawn) / detail).astype(np.float32)


def _tally(tables: PairTables, coded: NDArray[Any], pool: _Pool, expected: NDArray[np.float32]) -> Tally:
    """What the search keeps up to date: the sample's counts, and what one more row in each cell would cost."""
    times = np.bincount(pool.number[pool.slots], minlength=len(pool.ranks)).astype(np.int32)
    filled = np.flatnonzero(times)
    steepness = 1 / np.maximum(np.float32(0.5), np.sqrt(np.float32(np.pi / 2) * expected))
    slopes, gains = np.empty((2, tables.cells), np.int16)
    tally = Tally(expected, steepness, tables.counts(coded[filled], times[filled]), slopes, gains)
    kernels.all_slopes(tally)
    return tally
