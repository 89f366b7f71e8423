"""Workloads: the queries to be answered, as a list of parts over one schema.

Any set of 0/1 queries W can be split into parts in which each row is in at most one cell: queries are coloured so that
no row satisfies two of the same colour, and each colour becomes a part. The fewer the colours, the fewer the parts to
measure and fit. Nothing is lost: `origin` records which cell each of the caller's queries became, and `in_order` puts
answers back into the caller's order. How many queries one row can satisfy determines the sensitivity.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.arrays import mass_per_cell
from prade.core.errors import WorkloadError, names_of
from prade.privacy.protection import Unit
from prade.queries.parts import MAX_ENUMERATED, Cells, Marginal, Part, Predicate, joint_sizes, may_overlap
from prade.queries.query import Mask, Query, column_of, parse, shorten

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import Joint

Colours = NDArray[np.int64]  # one of each query, numbered in order of first appearance

_ALL_TAKEN = 2**64 - 1
LARGEST_JOINT = 2**20  # cells: larger joint domains are not enumerated


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


def _renumbered(colours: Colours) -> Colours:
    """The same colouring with colours numbered in order of first appearance."""
    _, first, number = np.unique(colours, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    renumbered: Colours = rank[number]
    return renumbered


def most_per_row(schema: Schema, parts: Sequence[Part]) -> int:
    """The largest number of queries that one row can satisfy: never too small, and exact where it can be enumerated.

    A row is in at most one cell of a part, and in exactly one if the part covers all rows. The other parts are grouped
    so that no two groups share a column. A row's codes in different groups are independent of each other, so the
    maxima of the groups add up. A group's maximum is exact if its joint domain has at most 2**20 cells; a larger group
    contributes its number of parts.
    """
    most = sum(part.covers for part in parts)
    for columns, members in _groups([part for part in parts if not part.covers]):
        shape = schema.shape(columns)
        if math.prod(shape) > LARGEST_JOINT:
            most += len(members)
            continue
        counts = np.zeros(shape, dtype=np.int64)
        for part in members:
            counts += _aligned(part.inside(schema), part.columns, columns)
        most += int(counts.max())
    return most


def _groups(parts: Sequence[Part]) -> list[tuple[tuple[str, ...], list[Part]]]:
    """Parts grouped so that different groups have no column in common; each group with its columns."""
    groups: list[tuple[tuple[str, ...], list[Part]]] = []
    for part in parts:
        touching = [group for group in groups if not set(group[0]).isdisjoint(part.columns)]
        apart = [group for group in groups if set(group[0]).isdisjoint(part.columns)]
        columns = dict.fromkeys([name for group in touching for name in group[0]] + list(part.columns))
        members = [member for group in touching for member in group[1]]
        groups = [*apart, (tuple(columns), [*members, part])]
    return groups


def _aligned(table: NDArray[Any], own: Sequence[str], columns: Sequence[str]) -> NDArray[Any]:
    """A table over the columns `own`, with one axis for each of `columns`: of length 1 for those it does not have."""
    axes = sorted(range(len(own)), key=lambda axis: columns.index(own[axis]))
    lengths = dict(zip(own, table.shape, strict=True))
    return table.transpose(axes).reshape([lengths.get(name, 1) for name in columns])


class Workload(Sequence[Part]):
    """A list of parts over a schema; W in the paper.

    `origin[i]` is the (part, cell) of query i, in the order in which the queries were given. Without `origin`, the
    order is that of the parts and, within a part, of its cells.

    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema.from_mbi({"age": 3, "sex": 2})
    >>> workload = Workload.marginals(schema, ["age", ("age", "sex")])
    >>> workload
    Workload(2 parts, 9 queries on age, sex)
    >>> workload.sensitivity(Unit(max_rows=3))
    6
    """

    def __init__(self, schema: Schema, parts: Iterable[Part], origin: ArrayLike | None = None) -> None:
        self._schema = schema
        self._parts = tuple(parts)
        for part in self._parts:
            if not isinstance(part, Part):
                raise WorkloadError(f"a workload is a list of Part objects, got {shorten(repr(part))}")
            part.check(schema)
        self._starts = np.cumsum([0, *(part.n_cells for part in self._parts)])
        # None stands for the natural order, because a marginal may have more cells than fit in memory.
        self._positions = None if origin is None else _positions(origin, self._starts)

    # ---------------------------------------------------------------- constructors

    @classmethod
    def marginals(cls, schema: Schema, columns: Iterable[str | Sequence[str]]) -> Workload:
        """One marginal for each entry of `columns`, which is a column's name or several names."""
        parts = [Marginal.of(schema, names) for names in columns]
        _require(parts, "columns")
        return cls(schema, parts)

    @classmethod
    def all_marginals(cls, schema: Schema, k: int, columns: str | Sequence[str] | None = None) -> Workload:
        """All marginals of k different columns, chosen from `columns` or from all coded columns of the schema."""
        names = names_of(schema.coded if columns is None else columns)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(names):
            raise WorkloadError(f"k is {k!r}; give a number of columns from 1 to {len(names)}")
        return cls.marginals(schema, itertools.combinations(names, k))

    @classmethod
    def queries(cls, schema: Schema, queries: Iterable[str | Query]) -> Workload:
        """Predicates such as "AGEP >= 65 and SEX == 2"; provably disjoint ones can share a part."""
        if isinstance(queries, str):
            raise WorkloadError(f"expected a list of queries, got a single text; write [{shorten(queries)!r}]")
        parsed = [query if isinstance(query, Query) else parse(query, schema) for query in queries]
        _require(parsed, "queries")
        return cls._coloured(
            schema, colour_queries(parsed), lambda members: Predicate(*(parsed[query] for query in members))
        )

    @classmethod
    def matrix(cls, schema: Schema, matrix: Any) -> Workload:
        """Any 0/1 matrix, dense or scipy sparse, with one row per query; a row of zeros has the answer 0.

        The matrix has one column for each cell of the full domain of the schema's coded columns (in C order).
        """
        width = schema.domain_size(schema.coded)
        rows = _zero_one(matrix, width)

        def part(members: NDArray[Any]) -> Part:
            chosen = rows[members]
            table = np.full(width, len(members))
            table[chosen.indices] = np.repeat(np.arange(len(members)), np.diff(chosen.indptr))
            return Cells(schema.coded, table, len(members), [f"query {query}" for query in members])

        return cls._coloured(schema, colour_sets(rows.indptr, rows.indices, width), part)

    @classmethod
    def _coloured(cls, schema: Schema, colours: NDArray[np.int64], part: Callable[[NDArray[Any]], Part]) -> Workload:
        """One part for each colour, made by `part(indices of its queries)`; the queries keep their order."""
        origin = np.empty((len(colours), 2), dtype=np.int64)
        origin[:, 0] = colours
        grouped = np.argsort(colours, kind="stable")
        parts = []
        for members in np.split(grouped, np.cumsum(np.bincount(colours))[:-1]):
            origin[members, 1] = np.arange(len(members))
            parts.append(part(members))
        return cls(schema, parts, origin)

    # ---------------------------------------------------------------- contents

    @property
    def schema(self) -> Schema:
        """The schema that all parts were made for."""
        return self._schema

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts, in order."""
        return self._parts

    @property
    def origin(self) -> NDArray[np.int64]:
        """The (part, cell) of each query, in the order in which the queries were given."""
        positions = np.arange(self.n_queries) if self._positions is None else self._positions
        part = np.searchsorted(self._starts, positions, side="right") - 1
        return np.stack([part, positions - self._starts[part]], axis=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that any part uses, in order of appearance."""
        return tuple(dict.fromkeys(name for part in self._parts for name in part.columns))

    @property
    def n_queries(self) -> int:
        """Number of queries in all parts together."""
        return int(self._starts[-1])

    def labels(self) -> list[str]:
        """One readable text per query, in the order in which the queries were given."""
        texts = [text for part in self._parts for text in part.labels(self._schema)]
        return texts if self._positions is None else [texts[position] for position in self._positions]

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    @overload
    def __getitem__(self, index: int) -> Part: ...
    @overload
    def __getitem__(self, index: slice) -> Workload: ...
    def __getitem__(self, index: int | slice) -> Part | Workload:
        if not isinstance(index, slice):
            return self._parts[index]
        if self._positions is None and (index.step or 1) > 0:
            return Workload(self._schema, self._parts[index])
        moved_to = np.full(len(self._parts), -1)
        moved_to[index] = np.arange(len(moved_to[index]))
        origin = self.origin
        origin[:, 0] = moved_to[origin[:, 0]]
        return Workload(self._schema, self._parts[index], origin[origin[:, 0] >= 0])

    def __add__(self, other: Workload) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        if other._schema != self._schema:
            raise WorkloadError("the two workloads were made for different schemas; make both with the same one")
        parts = self._parts + other._parts
        if self._positions is None and other._positions is None:
            return Workload(self._schema, parts)
        moved = other.origin + np.array([len(self._parts), 0])
        return Workload(self._schema, parts, np.concatenate([self.origin, moved]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        same = self._schema == other._schema and self._parts == other._parts
        if self._positions is None or other._positions is None:
            return same and self._positions is other._positions
        return same and np.array_equal(self._positions, other._positions)

    def __hash__(self) -> int:
        return hash((self._schema, self._parts))

    def __repr__(self) -> str:
        where = shorten(", ".join(self.columns))
        return f"Workload({len(self._parts)} parts, {self.n_queries} queries on {where})"

    # ---------------------------------------------------------------- answers

    def answer(self, joint: Joint) -> list[NDArray[np.float64]]:
        """The exact answers W q, one array per part: the total weight of the rows in each cell."""
        for name in self.columns:
            if column_of(joint.schema, name) != self._schema[name]:
                raise WorkloadError(
                    f"the schema of the rows declares column {name!r} differently from the workload's schema; "
                    "encode the rows with the workload's schema"
                )
        answers = []
        for part in self._parts:
            cells = part.cells(joint.schema, joint.codes)
            answers.append(mass_per_cell(cells, joint.weights, part.n_cells)[: part.n_cells])
        return answers

    def in_order(self, answers: Sequence[ArrayLike]) -> NDArray[Any]:
        """Answers per part, joined to one vector in the order in which the queries were given."""
        arrays = [np.asarray(answer) for answer in answers]
        expected = [(part.n_cells,) for part in self._parts]
        if (got := [array.shape for array in arrays]) != expected:
            raise WorkloadError(f"expected one array per part, of shapes {expected[:6]}, got {got[:6]}")
        if not arrays:
            return np.zeros(0)
        together: NDArray[Any] = np.concatenate(arrays)
        return together if self._positions is None else together[self._positions]

    def sensitivity(self, unit: Unit, norm: Literal[1, 2] = 1) -> float:
        """How much one person can change the counts: unit.rows * m in the L1 norm, unit.rows * sqrt(m) in the L2 norm.

        m is `per_row`. Proof: a row adds a 0/1 vector with at most m ones to the counts, so its L1 norm is at most m
        and its L2 norm at most sqrt(m). Neighbouring tables differ by at most unit.rows such vectors, and the norm of a
        sum is at most the sum of the norms. Equality holds if the person's rows are identical and satisfy m queries.
        """
        if not isinstance(unit, Unit):
            raise WorkloadError(f"expected a Unit such as Unit(max_rows=1), got {unit!r}")
        if norm not in (1, 2):
            raise WorkloadError(f"norm is {norm!r}; use 1 for Laplace noise, 2 for Gaussian noise")
        most = self.per_row
        return unit.rows * most if norm == 1 else unit.rows * math.sqrt(most)

    @property
    def per_row(self) -> int:
        """The largest number of queries that one row can satisfy (see `prade.queries.workload.most_per_row`)."""
        return most_per_row(self._schema, self._parts)


def _require(given: Sequence[Any], what: str) -> None:
    if not given:
        raise WorkloadError(f"the list of {what} is empty; give at least one")


def _positions(origin: ArrayLike, starts: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The position of each query's answer among the parts' answers joined together; None if they are in order."""
    part, cell = np.asarray(origin, dtype=np.int64).reshape(-1, 2).T
    known = (part >= 0) & (part < len(starts) - 1) & (cell >= 0)
    part = np.where(known, part, 0)
    positions = starts[part] + cell
    complete = known.all() and len(positions) == starts[-1] and bool(np.all(positions < starts[1:][part]))
    if not complete or not np.array_equal(np.sort(positions), np.arange(starts[-1])):
        raise WorkloadError(f"origin must list each of the {starts[-1]} cells of the parts once, as (part, cell)")
    if np.array_equal(positions, np.arange(len(positions))):
        return None
    return positions


def _zero_one(matrix: Any, width: int) -> Any:
    """The matrix as compressed sparse rows with sorted indices; refused unless it is 0/1 and of the right width."""
    from scipy import sparse

    what = "cells of the full domain"
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.dtype.kind not in "biuf":
            raise WorkloadError(f"the matrix must contain 0 and 1 only, got entries of type {matrix.dtype}")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise WorkloadError(f"expected a matrix of queries x {width} {what}, got one of shape {matrix.shape}")
    if matrix.shape[1] != width:
        raise WorkloadError(
            f"the matrix has {matrix.shape[1]} columns, but there are {width} {what}; give one column for each"
        )
    rows = sparse.csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if not bool(np.all(rows.data == 1)):
        raise WorkloadError("the matrix must contain 0 and 1 only; split other weights into 0/1 queries first")
    return rows
