"""Which 0/1 queries can share a part: colouring, so that no two queries of one colour have a row in common.

The fewer the colours, the fewer the parts that have to be measured and fitted. Every function returns one colour
per query; colours are numbered by first appearance.
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

MAX_ENUMERATED = 2**24  # queries x cells of their joint domain that are worth writing out to compare them exactly
_ALL_TAKEN = 2**64 - 1


def colour_intervals(starts: Sequence[int], stops: Sequence[int]) -> Colours:
    """Colour half-open intervals [start, stop) with as few colours as the most crowded point needs.

    Taken by left end, an interval gets the colour that has been free for longest, and a new one only when every
    colour is in use at that very point: no colouring can do with fewer.

    >>> colour_intervals([0, 2, 1], [2, 3, 3])
    array([0, 0, 1])
    """
    colours = np.zeros(len(starts), dtype=np.int64)
    in_use: list[tuple[int, int]] = []  # (where it becomes free, colour)
    for query in sorted(range(len(starts)), key=lambda each: (starts[each], stops[each])):
        if starts[query] >= stops[query]:
            continue  # an empty interval meets nothing
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

    First fit in two orders, the better one wins: by first point, which is optimal for intervals, and by how much a
    set overlaps all others, which suits the rest. The most crowded point is a bound from below: once it is met,
    nothing is left to gain.
    """
    sizes = np.diff(indptr)
    crowd = np.bincount(indices, minlength=n_points)
    overlap = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights=crowd[indices], minlength=len(sizes))
    first = np.where(sizes > 0, np.append(indices, 0)[indptr[:-1]], 0)
    best = _first_fit(np.argsort(first, kind="stable"), indptr, indices, n_points)
    if best.max() >= crowd.max(initial=1):
        other = _first_fit(np.argsort(-overlap, kind="stable"), indptr, indices, n_points)
        best = other if other.max() < best.max() else best
    return _renumbered(best)


def _first_fit(order: NDArray[Any], indptr: NDArray[Any], indices: NDArray[Any], n_points: int) -> Colours:
    """Give each set the first colour that none of its points has yet; 64 colours of a point are one word."""
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
    """Colour predicates so that those of one colour are disjoint, as far as that can be shown."""
    sizes = joint_sizes(queries)
    cells = math.prod(sizes.values())
    if len(queries) * cells > MAX_ENUMERATED:
        return _colour_conflicts(may_overlap(queries))
    columns, shape = list(sizes), tuple(sizes.values())
    points = [np.flatnonzero(np.broadcast_to(query.over(columns), shape)) for query in queries]
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in points])])
    return colour_sets(indptr, np.concatenate(points), cells)


def _colour_conflicts(conflicts: Mask) -> Colours:
    """First fit on a graph, the queries with most conflicts first."""
    colours = np.full(len(conflicts), -1, dtype=np.int64)
    for query in np.argsort(-conflicts.sum(axis=1), kind="stable"):
        met = colours[conflicts[query]]
        taken = np.zeros(len(met) + 1, dtype=np.bool_)  # one of the first len(met) + 1 colours must be free
        taken[met[(met >= 0) & (met < len(taken))]] = True
        colours[query] = int(np.argmin(taken))
    return _renumbered(colours)


def may_overlap(queries: Sequence[Query]) -> Mask:
    """Which pairs of queries could have a row in common, judged column by column: false is a proof, true is not.

    A pair is disjoint when in some column no code is possible for both (see `Query.possible`).
    """
    possible = [query.possible() for query in queries]
    overlap = np.ones((len(queries), len(queries)), dtype=np.bool_)
    for name, size in joint_sizes(queries).items():
        codes = np.ones((len(queries), size), dtype=np.float32)  # float32: products go through the fast library
        for query, limits in enumerate(possible):
            if name in limits:
                codes[query] = limits[name]
        overlap &= codes @ codes.T > 0
    np.fill_diagonal(overlap, False)
    return overlap


def times_satisfied(queries: Sequence[Query]) -> NDArray[np.int64] | None:
    """How many of the queries each cell of their joint domain satisfies; None when that is too large to write out."""
    sizes = joint_sizes(queries)
    if len(queries) * math.prod(sizes.values()) > MAX_ENUMERATED:
        return None
    counts = np.zeros(tuple(sizes.values()), dtype=np.int64)
    for query in queries:
        counts += query.over(list(sizes))
    return counts


def joint_sizes(queries: Sequence[Query]) -> dict[str, int]:
    """The columns that any of the queries looks at, in order of appearance, and their numbers of codes."""
    return {name: size for query in queries for name, size in query.sizes.items()}


def _renumbered(colours: Colours) -> Colours:
    """The same colouring with colours numbered by first appearance."""
    _, first, number = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Colours = rank[number]
    return renumbered
