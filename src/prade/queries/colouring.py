"""Colouring 0/1 queries so that no row satisfies two queries of the same colour; each colour becomes a part.

The fewer the colours, the fewer the parts to measure and fit. Every function returns one colour per query; colours are
numbered in order of first appearance.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.queries.expression import Mask
from prade.queries.query import Query

Colours = NDArray[np.int64]

MAX_ENUMERATED = 2**24  # (queries) x (cells of their joint domain): up to here, queries are compared cell by cell
_ALL_TAKEN = 2**64 - 1


def colour_intervals(starts: Sequence[int], stops: Sequence[int]) -> Colours:
    """Colour half-open intervals [start, stop) with the fewest possible colours.

    Intervals are taken in order of their starts. Each gets the colour that has been free for longest, and a new colour
    only if every colour is in use at its start: then that many intervals overlap there, so no colouring needs fewer.

    >>> colour_intervals([0, 2, 1], [2, 3, 3])
    array([0, 0, 1])
    """
    colours = np.zeros(len(starts), dtype=np.int64)
    in_use: list[tuple[int, int]] = []  # (the point where the colour becomes free, colour)
    for query in sorted(range(len(starts)), key=lambda each: (starts[each], stops[each])):
        if starts[query] >= stops[query]:
            continue  # an empty interval overlaps nothing
        if in_use and in_use[0][0] <= starts[query]:
            colour = in_use[0][1]
            heapq.heapreplace(in_use, (stops[query], colour))
        else:
            colour = len(in_use)
            heapq.heappush(in_use, (stops[query], colour))
        colours[query] = colour
    return _renumbered(colours)


def colour_sets(indptr: NDArray[Any], indices: NDArray[Any], n_points: int) -> Colours:
    """Colour sets of points, given as the sorted rows of a compressed sparse matrix (`indptr`, `indices`).

    First fit is tried in two orders, and the better result is kept: by first point, which is optimal for intervals, and
    by how much a set overlaps all others, which suits other sets. The number of sets that contain the most crowded
    point is a lower bound, so the second order is skipped if the first one reaches it.
    """
    sizes = np.diff(indptr)
    sets_at = np.bincount(indices, minlength=n_points)
    overlap = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights=sets_at[indices], minlength=len(sizes))
    first = np.where(sizes > 0, np.append(indices, 0)[indptr[:-1]], 0)
    best = _first_fit(np.argsort(first, kind="stable"), indptr, indices, n_points)
    if best.max() >= sets_at.max(initial=1):
        other = _first_fit(np.argsort(-overlap, kind="stable"), indptr, indices, n_points)
        best = other if other.max() < best.max() else best
    return _renumbered(best)


def _first_fit(order: NDArray[Any], indptr: NDArray[Any], indices: NDArray[Any], n_points: int) -> Colours:
    """Give each set the first colour that none of its points has yet; a word holds 64 colours of a point as bits."""
    colours = np.zeros(len(order), dtype=np.int64)
    taken = [np.zeros(n_points, dtype=np.uint64)]
    for query in order:
        points = indices[indptr[query] : indptr[query + 1]]
        word, free = -1, 0
        while not free:
            word += 1
            if word == len(taken):
                taken.append(np.zeros(n_points, dtype=np.uint64))
            free = _ALL_TAKEN ^ int(np.bitwise_or.reduce(taken[word][points]))
        lowest = free & -free
        taken[word][points] |= np.uint64(lowest)
        colours[query] = 64 * word + lowest.bit_length() - 1
    return colours


def colour_queries(queries: Sequence[Query]) -> Colours:
    """Colour predicates so that those of one colour are provably disjoint."""
    sizes = joint_sizes(queries)
    cells = math.prod(sizes.values())
    if len(queries) * cells > MAX_ENUMERATED:
        return _colour_conflicts(may_overlap(queries))
    columns, shape = list(sizes), tuple(sizes.values())
    points = [np.flatnonzero(np.broadcast_to(query.over(columns), shape)) for query in queries]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in points])])
    return colour_sets(indptr, np.concatenate(points), cells)


def _colour_conflicts(conflicts: Mask) -> Colours:
    """First fit on the graph of conflicts, starting with the queries that have the most conflicts."""
    colours = np.full(len(conflicts), -1, dtype=np.int64)
    for query in np.argsort(-conflicts.sum(axis=1), kind="stable"):
        nearby = colours[conflicts[query]]
        taken = np.zeros(len(nearby) + 1, dtype=np.bool_)  # one of the first len(nearby) + 1 colours must be free
        taken[nearby[(nearby >= 0) & (nearby < len(taken))]] = True
        colours[query] = int(np.argmin(taken))
    return _renumbered(colours)


def may_overlap(queries: Sequence[Query]) -> Mask:
    """Which pairs of queries might have a row in common, judged column by column: False is a proof, True is not.

    Two queries are disjoint if in some column no code is possible for both (see `Query.possible`).
    """
    possible = [query.possible() for query in queries]
    overlap = np.ones((len(queries), len(queries)), dtype=np.bool_)
    for name, size in joint_sizes(queries).items():
        codes = np.ones((len(queries), size), dtype=np.float32)  # float32, so that BLAS computes the product
        for query, limits in enumerate(possible):
            if name in limits:
                codes[query] = limits[name]
        overlap &= codes @ codes.T > 0
    np.fill_diagonal(overlap, False)
    return overlap


def times_satisfied(queries: Sequence[Query]) -> NDArray[np.int64] | None:
    """How many of the queries each cell of their joint domain satisfies; None if the domain is too large."""
    sizes = joint_sizes(queries)
    if len(queries) * math.prod(sizes.values()) > MAX_ENUMERATED:
        return None
    counts = np.zeros(tuple(sizes.values()), dtype=np.int64)
    for query in queries:
        counts += query.over(list(sizes))
    return counts


def joint_sizes(queries: Sequence[Query]) -> dict[str, int]:
    """The number of codes of every column that any of the queries uses, in order of appearance."""
    return {name: size for query in queries for name, size in query.sizes.items()}


def _renumbered(colours: Colours) -> Colours:
    """The same colouring with colours numbered in order of first appearance."""
    _, first, number = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Colours = rank[number]
    return renumbered
