"""Rows from a distribution: as many as wanted, with as little sampling error as whole rows allow.

`draw` is systematic sampling along an order in which neighbours are alike; `improve` then replaces rows by similar
ones until the sample's one- and two-way tables are close to the distribution's. Only rows with weight are ever
taken, so what cannot occur does not. Everything here is post-processing: seeded, free of privacy cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, smallest_unsigned
from prade.core.errors import EstimationError
from prade.data.joint import Codes, Joint
from prade.sampling import kernels as sample_kernels
from prade.sampling.kernels import Lines, Tally

if TYPE_CHECKING:
    from prade.data.encode import Coded
    from prade.data.schema import Schema

Pairs = Literal["all"] | Sequence[tuple[str, str]]

PASSES = 4
CANDIDATES = 14  # rows that a visit to a slot looks at
DETAIL = 32  # rows in the pool for each row of the sample
NEARBY = 64  # how many distinct rows away in the pool a candidate is, but for one of them
LARGEST_POOL = 2**22  # rows drawn for the pool, whatever the size of the sample
LARGEST_TABLES = 2**23  # cells of all tables together: 14 bytes each, 26 while they are filled
ROWS_FOR_ORDER = 20_000
BLOCK = 2**14  # rows or visits that are prepared together


def sample(
    joint: Joint, n: int, seed: int, *, order: Ints | None = None, pairs: Pairs = "all", passes: int = PASSES
) -> Coded:
    """n rows of a distribution: `draw`, then `improve`; with no passes `draw` alone.

    >>> from prade import Schema
    >>> from prade.data.prior import Prior
    >>> sample(Prior.uniform(Schema.from_mbi({"a": 2, "b": 3})), 12, seed=1).project(["a", "b"]) * 12
    array([[2., 2., 2.],
           [2., 2., 2.]])
    """
    from prade.data.encode import Coded

    if order is None:
        order = ordering(joint.codes, joint.schema, pairs=pairs)
    rows = draw(joint.weights, n, seed, order=order)
    rows = improve(joint.codes, joint.schema, joint.weights, rows, order=order, pairs=pairs, seed=seed, passes=passes)
    return Coded(joint.schema, {name: code[rows] for name, code in joint.codes.items()})


def draw(weights: NDArray[Any], n: int, seed: int, *, order: Ints | None = None) -> Ints:
    """Systematic sample: n row numbers, row j floor(n q_j) or ceil(n q_j) times, n q_j on average.

    The rows are laid end to end in `order` (see `ordering`; as they come when None), each as long as its weight, and
    n equally spaced marks with a random start pick theirs. Any stretch of the order gets its share to within one row:
    the nearer alike rows are, the less the sample's tables vary. The result is in random order.

    >>> sorted(draw([0.5, 0.0, 0.25, 0.25], 4, seed=7).tolist())
    [0, 0, 2, 3]
    """
    q = _checked_weights(weights)
    _check_whole(n=n, seed=seed)
    generator = np.random.default_rng(seed)
    rows = _systematic(q, n, generator, None if order is None else _checked_order(order, len(q)))
    generator.shuffle(rows)
    return rows


def ordering(codes: Codes, schema: Schema, *, pairs: Pairs = "all") -> Ints:
    """An order of the rows in which neighbours are alike: sorted column after column, the most telling column first.

    A column tells sum_b I(a; b), its mutual information with all others, counted on some 20,000 rows. The order
    does not depend on weights: calculate it once for all distributions on the same rows. With `pairs`, only they and
    their columns count.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 3, "b": 2, "c": 2})
    >>> rows = {"a": np.array([2, 0, 1, 0]), "b": np.array([0, 1, 0, 1]), "c": np.array([1, 0, 0, 1])}
    >>> ordering(rows, schema)       # a tells b, b tells less of a, c is told by nothing
    array([1, 3, 2, 0])
    """
    table = _Tables(schema, codes, pairs)
    sparse = np.arange(0, table.rows, max(1, table.rows // ROWS_FOR_ORDER))
    keys: list[NDArray[np.uint64]] = []
    room = 0
    for a in np.argsort(-table.information(sparse), kind="stable"):
        name = table.names[a]
        size, code = schema[name].size, codes[name].astype(np.uint64)
        if room < size:  # columns share a 64-bit key as long as they fit: few keys sort faster than many columns
            keys.append(code)
            room = 2**64
        else:
            keys[-1] = keys[-1] * np.uint64(size) + code
        room //= size
    return np.lexsort(keys[::-1])


def improve(
    codes: Codes,
    schema: Schema,
    weights: NDArray[Any],
    rows: NDArray[Any],
    *,
    seed: int,
    order: Ints | None = None,
    pairs: Pairs = "all",
    passes: int = PASSES,
    candidates: int = CANDIDATES,
    detail: int = DETAIL,
) -> Ints:
    """A sample of the same size whose one- and two-way tables are nearer to the distribution's.

        minimise  sum over cells c of all tables  H_c(x_c - m_c),    m_c = n q(c)

    x_c is the sample's count in cell c. H_c is quadratic up to h_c = max(1/2, sqrt(pi m_c / 2)) and has slope one
    beyond: close to E|x_c - X| when the true count X varies about m_c as counts do (Poisson). That is the expected
    L1 error against the truth rather than the L1 distance from an estimate, and it is smoother to search on.

    Each of `passes` visits every slot of the sample in random order, empties it, and fills it with the cheapest of the
    row that was there and `candidates` others. These come from a pool of detail * n rows drawn from the distribution
    (of 4 million, where that is less) and sorted by `order` (see `ordering`): one from anywhere, to mend what no alike
    row can, the others near the old row, the logarithm of their distance uniform. The tables to be met are the pool's
    too; they are exact where the rows with weight, or those of the pool, are fewer than detail * n. The objective never
    rises. The result is in random order; it depends on the arguments only.

    `pairs` are the pairs of columns to count ("all" of them by default); the columns in them are counted singly too.
    Tables have 8 million cells at most. Where they would have more, the columns with the most codes are counted in runs
    of neighbouring codes, as many runs as there is room for; what differs within a run is then left as it was drawn.

    The price is a small bias: a cell that expects less than half a row is nearest to its expectation when empty, so
    rare combinations become somewhat rarer. Who needs every row to get its share on average keeps what `draw` gave.

    >>> from prade import Schema
    >>> from prade.data.prior import Prior
    >>> prior = Prior.uniform(Schema.from_mbi({"a": 2, "b": 2}))
    >>> rows = improve(prior.codes, prior.schema, prior.weights, np.array([0, 0, 0, 1]), seed=1)
    >>> sorted(rows.tolist())
    [0, 1, 2, 3]
    """
    q = _checked_weights(weights)
    _check_whole(seed=seed, passes=passes, candidates=candidates, detail=detail)
    if detail == 0:
        raise EstimationError("detail is 0: the pool needs at least one row for each of the sample, 32 is usual")
    table = _Tables(schema, codes, pairs)
    if table.rows != len(q):
        raise EstimationError(f"there are {len(q)} weights for {table.rows} coded rows: give one weight a row")
    given = _checked_rows(rows, q)
    generator = np.random.default_rng([seed, 1])  # not the stream of `draw`, which may have the same seed
    n = len(given)
    if n == 0 or passes == 0 or candidates == 0:
        return generator.permutation(given)
    along = ordering(codes, schema, pairs=pairs) if order is None else _checked_order(order, len(q))
    pool, slots, chosen, drawn = _pool(q, given, along, min(detail * n, LARGEST_POOL), generator)
    found = table.coded(chosen)
    positive = np.flatnonzero(q)
    if len(positive) <= detail * n or drawn.sum() < detail * n:
        wanted = table.masses(positive, n * q[positive] / q.sum()).astype(np.float32)
    else:
        wanted = (table.counts(found, drawn) / detail).astype(np.float32)
    times = np.bincount(pool[slots], minlength=len(chosen)).astype(np.int32)
    filled = np.flatnonzero(times)
    tally = Tally(
        wanted,
        1 / np.maximum(np.float32(0.5), np.sqrt(np.float32(np.pi / 2) * wanted)),
        table.counts(found[filled], times[filled]),
        np.empty(table.cells, np.int16),
    )
    sample_kernels.all_slopes(tally)
    copies = len(pool) / len(chosen)
    for _ in range(passes):
        for visits in _blocks(generator.permutation(n)):
            shape = len(visits), candidates
            distances = (copies * NEARBY ** generator.random(shape)).astype(np.int64)
            offsets = np.where(generator.random(shape) < 0.5, -distances, distances)
            offsets[:, 0] = generator.integers(len(pool), size=len(visits))
            sample_kernels.search(found, pool, slots, visits, offsets, table.lines, tally)
    return generator.permutation(chosen[pool[slots]])


class _Tables:
    """The tables of single columns and of pairs, laid out as `sample_kernels` wants them.

    Columns that would make them too large are counted in runs of neighbouring codes.
    """

    def __init__(self, schema: Schema, codes: Codes, pairs: Pairs) -> None:
        wanted = _checked_pairs(codes, pairs)
        names = [name for name in codes if wanted is None or any(name in pair for pair in wanted)]
        # the largest first: they have the long lines, and what a row looks up lies closer together
        self.names = sorted(names, key=schema.size, reverse=True)
        self.codes = codes
        lengths = {len(codes[name]) for name in self.names}
        if len(lengths) != 1:
            raise EstimationError(
                f"the coded columns have {len(lengths)} different lengths: give at least one column, all equally long"
            )
        self.rows = lengths.pop()
        at = {name: a for a, name in enumerate(self.names)}
        chosen = combinations(self.names, 2) if wanted is None else wanted
        self.links = sorted({(min(at[x], at[y]), max(at[x], at[y])) for x, y in chosen})
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
        found = (
            self.line - self.start * length,
            length,
            np.searchsorted(one[new], np.arange(len(self.names) + 1)),
            other[new],
            other[ends - 1] + 1,
            self.offset[new] - self.start[other[new]],
        )
        self.lines = Lines(*(each.astype(np.int64).view(np.uint64) for each in found))

    def coded(self, rows: Ints) -> NDArray[Any]:
        """The places of some rows in the tables, a line a row."""
        found = np.empty((len(rows), len(self.names)), smallest_unsigned(int(self.sizes.sum())))
        for block, into in zip(_blocks(rows), _blocks(found), strict=True):
            columns = np.empty((len(self.names), len(block)), found.dtype)
            for a, name in enumerate(self.names):
                code, full, size = self.codes[name][block], int(self.full[a]), int(self.sizes[a])
                # the compiled loops do not look: a code outside its column would write outside the tables
                if code.min(initial=0) < 0 or code.max(initial=0) >= full:
                    raise EstimationError(
                        f"column {name!r} has codes outside 0 to {full - 1}: see prade.data.encode.encode"
                    )
                kept = code if size == full else code.astype(np.int64) * size // full
                np.add(kept, self.start[a], out=columns[a], casting="unsafe")
            into[:] = columns.T
        return found

    def masses(self, rows: Ints, weights: Floats) -> Floats:
        """The mass of weighted rows in every cell."""
        mass = np.zeros(self.cells)
        for block, each in zip(_blocks(rows), _blocks(weights), strict=True):
            sample_kernels.tables(self.coded(block), each, self.lines, mass)
        return mass

    def counts(self, coded: NDArray[Any], times: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many rows are in every cell, each of some coded rows so many times."""
        number = np.zeros(self.cells, np.int32)
        sample_kernels.tables(coded, times, self.lines, number)
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
    """How many codes of each column are told apart: all, or as many as the tables of these pairs have room for."""

    def cells(most: int) -> int:
        kept = np.minimum(sizes, most)
        return int(kept.sum()) + sum(int(kept[a]) * int(kept[b]) for a, b in links)

    low, high = 1, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cells(middle) <= LARGEST_TABLES else (low, middle - 1)
    return np.minimum(sizes, low)


def _pool(
    q: Floats, given: Ints, order: Ints, size: int, generator: np.random.Generator
) -> tuple[NDArray[np.int32], Ints, Ints, NDArray[np.int32]]:
    """Rows drawn and given, in the order's order.

    Returns the pool as numbers of its distinct rows, where the given ones stand in it, the distinct rows, and how
    often each was drawn.
    """
    place = np.empty(len(q), np.int64)
    place[order] = np.arange(len(q))
    drawn, mine = place[_systematic(q, size, generator, order)], np.sort(place[given])
    slots = np.searchsorted(drawn, mine) + np.arange(len(mine))
    from_given = np.zeros(len(drawn) + len(mine), np.bool_)
    from_given[slots] = True
    places = np.empty(len(from_given), np.int64)
    places[from_given], places[~from_given] = mine, drawn
    new = np.concatenate([[True], places[1:] != places[:-1]])
    pool = np.cumsum(new, dtype=np.int32) - np.int32(1)
    chosen = order[places[new]]
    return pool, slots, chosen, np.bincount(pool[~from_given], minlength=len(chosen)).astype(np.int32)


def _blocks(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def _systematic(q: Floats, n: int, generator: np.random.Generator, order: Ints | None) -> Ints:
    edges = np.cumsum(q if order is None else q[order])
    marks = (np.arange(n) + generator.random()) * (edges[-1] / max(n, 1))
    # rounding may carry the last mark to the end, where it would pick a row without weight
    found = np.searchsorted(edges, np.minimum(marks, np.nextafter(edges[-1], 0.0)), side="right")
    return np.asarray(found if order is None else order[found])


def _check_whole(**settings: int) -> None:
    for name, value in settings.items():
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
            raise EstimationError(f"{name} is {value!r}: give a whole number, 0 or more")


def _checked_weights(weights: NDArray[Any]) -> Floats:
    q = np.asarray(weights, dtype=np.float64)
    if q.ndim != 1 or not np.isfinite(q).all() or (q < 0).any() or not q.sum() > 0:
        raise EstimationError("weights must be one finite number a row, none negative and not all zero")
    return q


def _checked_order(order: Ints, rows: int) -> Ints:
    found = np.asarray(order)
    fits = found.shape == (rows,) and found.dtype.kind in "iu" and found.min() >= 0 and found.max() < rows
    if not fits or (np.bincount(found, minlength=rows) != 1).any():
        raise EstimationError(
            f"order must have each of the {rows} rows once: take it from prade.sampling.draw.ordering"
        )
    return found


def _checked_rows(rows: NDArray[Any], q: Floats) -> Ints:
    given = np.asarray(rows)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise EstimationError("rows must be a list of row numbers, as `draw` returns it")
    if len(given) and (given.min() < 0 or given.max() >= len(q)):
        raise EstimationError(f"rows must be numbers from 0 to {len(q) - 1}: draw them with the same weights")
    if (q[given.astype(np.int64)] == 0).any():
        raise EstimationError("some of the rows have no weight: draw them with the same weights")
    return given.astype(np.int64)


def _checked_pairs(codes: Codes, pairs: Pairs) -> Sequence[tuple[str, str]] | None:
    """The pairs, None for all."""
    if isinstance(pairs, str):
        if pairs != "all":
            raise EstimationError(f'pairs is {pairs!r}: give "all" or a list of pairs of columns')
        return None
    if len(pairs) == 0:
        raise EstimationError('pairs is empty: give "all" or a list of pairs of columns')
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1] or any(name not in codes for name in pair):
            raise EstimationError(f"{pair!r} is not a pair of two different columns among {', '.join(codes)}")
    return pairs
