"""Which columns to ask about together, chosen from the public table alone.

    I(a; b) = sum over cells q(a, b) log( q(a, b) / (q(a) q(b)) )      mutual information, in nats
    I(a; a) = H(a)                                                     entropy

Pairs with much of it are the edges of a graph. Its cliques are columns to ask about jointly (W_S of the paper's
Algorithm 2); columns with little of it between them are asked about one by one (W_G).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from prade.data.declare.schema import Schema
from prade.data.public.joint import Information

Pair = tuple[str, str]
Columns = tuple[str, ...]

# Every cell gets noise: in shares of n rows, a table of m cells gets L1 noise m b / n. With 1,000 cells that is 0.2 at
# b = 20 and n = 100,000, a state of the paper at epsilon 10: less than public and private tables differ by.
MOST_CELLS = 1_000
# The share of a column's entropy that another may tell for the two to count as independent: at a tenth, asking for
# both one-way tables leaves little out.
MOST_TOLD = 0.1


def strongest_pairs(information: Information, number: int | None = None) -> list[Pair]:
    """The pairs of columns that tell most about each other, the strongest first: `number` of them, or all.

    >>> strongest_pairs(Information(("a", "b", "c"), np.array([[1, 0.2, 0.7], [0.2, 1, 0.3], [0.7, 0.3, 1]])), 2)
    [('a', 'c'), ('b', 'c')]
    """
    pairs = combinations(information.columns, 2)
    return sorted(pairs, key=lambda pair: -information.between(*pair))[:number]


def cliques(
    schema: Schema, information: Information, pairs: Iterable[Pair], *, most_cells: int = MOST_CELLS
) -> list[Columns]:
    """The maximal cliques of the graph whose edges are `pairs`; a column without an edge is one of its own.

    A clique whose table would have more than `most_cells` cells is broken up into smaller ones, so that every pair of
    it that fits is still in one of them: begin with its strongest pair that is in none yet, and add the column that
    brings in most such pairs (of equals, the one that tells most) while the table fits. A pair that does not fit is not
    asked about, its columns are; a single column is, whatever its size.

    >>> schema = Schema.from_mbi({"a": 10, "b": 10, "c": 10, "d": 2})
    >>> known = Information(("a", "b", "c", "d"), np.array([
    ...     [2.0, 0.9, 0.8, 0.0], [0.9, 2.0, 0.7, 0.0], [0.8, 0.7, 2.0, 0.0], [0.0, 0.0, 0.0, 0.6]]))
    >>> cliques(schema, known, strongest_pairs(known, 3))
    [('a', 'b', 'c'), ('d',)]
    >>> cliques(schema, known, strongest_pairs(known, 3), most_cells=100)
    [('a', 'b'), ('a', 'c'), ('b', 'c'), ('d',)]
    """
    edges = [(information.index(a), information.index(b)) for a, b in pairs]
    maximal = sorted(maximal_cliques(len(information.columns), edges))
    named = [tuple(information.columns[k] for k in clique) for clique in maximal]
    small = [clique for clique in named if schema.domain_size(clique) <= most_cells]
    joined = {pair for clique in small for pair in combinations(clique, 2)}
    for clique in named:
        if clique not in small and len(clique) > 1:
            small += _broken_up(schema, information, clique, joined, most_cells)
    largest = [clique for clique in small if not any(set(clique) < set(other) for other in small)]
    alone: list[Columns] = [(name,) for name in information.columns if not any(name in clique for clique in largest)]
    return sorted(largest + alone, key=lambda clique: [information.index(name) for name in clique])


def maximal_cliques(vertices: int, edges: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """The maximal cliques of a graph on the vertices 0, 1, ... (Bron and Kerbosch's search, with Tomita's pivots).

    >>> sorted(maximal_cliques(4, [(0, 1), (1, 2), (0, 2)]))
    [[0, 1, 2], [3]]
    """
    neighbours = [set[int]() for _ in range(vertices)]
    for a, b in edges:
        if a != b:
            neighbours[a].add(b)
            neighbours[b].add(a)

    def extended(clique: list[int], candidates: set[int], excluded: set[int]) -> Iterator[list[int]]:
        if clique and not candidates and not excluded:
            yield sorted(clique)
        if not candidates:
            return
        # A clique without the pivot has one of its strangers: only they need to be tried.
        pivot = max(candidates | excluded, key=lambda vertex: len(neighbours[vertex] & candidates))
        for vertex in candidates - neighbours[pivot]:
            near = neighbours[vertex]
            yield from extended([*clique, vertex], candidates & near, excluded & near)
            candidates, excluded = candidates - {vertex}, excluded | {vertex}

    return extended([], set(range(vertices)), set())


def independent_columns(information: Information, number: int | None = None) -> Columns:
    """Columns that tell next to nothing about each other, the most telling first: at most `number`, or all there are.

    Columns are taken greedily by what they tell of all columns, sum_b I(a; b) with H(a) among it, unless one already
    taken has I(a; b) > min(H(a), H(b)) / 10 with them. A constant column is never taken.

    >>> known = Information(("a", "b", "c"), np.array([[1, 0.8, 0.01], [0.8, 1, 0.02], [0.01, 0.02, 0.5]]))
    >>> independent_columns(known)
    ('b', 'c')
    """
    entropy = np.diag(information.nats)
    close = information.nats > MOST_TOLD * np.minimum.outer(entropy, entropy)
    taken: list[int] = []
    for a in np.argsort(-information.nats.sum(axis=0), kind="stable"):
        if entropy[a] > 0 and not close[a, taken].any():
            taken.append(int(a))
    return tuple(information.columns[a] for a in taken[:number])


def _broken_up(
    schema: Schema, information: Information, clique: Columns, joined: set[Pair], most_cells: int
) -> list[Columns]:
    """Smaller cliques that have all pairs of a clique that fit and are not in `joined`, to which theirs are added."""

    def gain(name: str, members: Columns) -> tuple[int, float]:
        new = [pair for pair in combinations(_in_order(clique, {name, *members}), 2) if pair not in joined]
        return sum(name in pair for pair in new), sum(information.between(name, other) for other in members)

    def fitting(members: Columns) -> list[str]:
        others = [name for name in clique if name not in members and gain(name, members)[0]]
        return [name for name in others if schema.domain_size([*members, name]) <= most_cells]

    smaller = []
    for pair in sorted(combinations(clique, 2), key=lambda pair: -information.between(*pair)):
        if pair in joined or schema.domain_size(pair) > most_cells:
            continue
        members: Columns = pair
        while candidates := fitting(members):
            gains = {name: gain(name, members) for name in candidates}
            members = _in_order(clique, {*members, max(candidates, key=gains.__getitem__)})
        joined.update(combinations(members, 2))
        smaller.append(members)
    return smaller


def _in_order(columns: Columns, members: set[str]) -> Columns:
    return tuple(name for name in columns if name in members)
