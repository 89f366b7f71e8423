"""Workloads: the queries to be answered, as a list of parts over one schema.

Queries are coloured so that no row satisfies two of the same colour; each colour becomes a part. How many queries one
row can satisfy determines the sensitivity.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import mass_per_cell
from prade.core.errors import WorkloadError, names_of
from prade.core.numbers import whole
from prade.data.declare.schema import Schema
from prade.data.public.joint import Joint
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal, Part, Predicate, overlaps
from prade.queries.query import Query, column_of, parse, shorten

LARGEST_JOINT = 2**20  # cells: larger joint domains are not enumerated


def _coloured(queries: Sequence[Query]) -> list[list[Query]]:
    """The queries in groups of which no row satisfies two: first fit, those that overlap most others first."""
    overlap = overlaps(queries)
    groups: list[list[int]] = []
    for number in np.argsort(-overlap.sum(axis=1), kind="stable").tolist():
        group = next((group for group in groups if not overlap[number, group].any()), [])
        if not group:
            groups.append(group)
        group.append(number)
    return [[queries[number] for number in group] for group in sorted(map(sorted, groups))]


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


@dataclass(frozen=True, init=False, repr=False)
class Workload:
    """A list of parts over a schema; W in the paper.

    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema.from_mbi({"age": 3, "sex": 2})
    >>> workload = Workload.marginals(schema, ["age", ("age", "sex")])
    >>> workload
    Workload(2 parts, 9 queries on age, sex)
    >>> workload.sensitivity(Unit(max_rows=3))
    6
    """

    schema: Schema
    parts: tuple[Part, ...]

    def __init__(self, schema: Schema, parts: Iterable[Part]) -> None:
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "parts", tuple(parts))
        for part in self.parts:
            if not isinstance(part, Part):
                raise WorkloadError(f"a workload is a list of Part objects, got {shorten(repr(part))}")
            part.check(self.schema)

    @classmethod
    def marginals(cls, schema: Schema, columns: Iterable[str | Sequence[str]]) -> Workload:
        """One marginal for each entry of `columns`, which is a column's name or several names."""
        parts = [Marginal.of(schema, names) for names in columns]
        if not parts:
            raise WorkloadError("the list of columns is empty; give at least one")
        return cls(schema, parts)

    @classmethod
    def all_marginals(cls, schema: Schema, k: int, columns: str | Sequence[str] | None = None) -> Workload:
        """All marginals of k different columns, chosen from `columns` or from all coded columns of the schema."""
        names = names_of(schema.coded if columns is None else columns)
        if not whole(k, 1) or k > len(names):
            raise WorkloadError(f"k is {k!r}; give a number of columns from 1 to {len(names)}")
        return cls.marginals(schema, itertools.combinations(names, k))

    @classmethod
    def queries(cls, schema: Schema, queries: Iterable[str | Query]) -> Workload:
        """Predicates such as "AGEP >= 65 and SEX == 2"; provably disjoint ones can share a part."""
        if isinstance(queries, str):
            raise WorkloadError(f"expected a list of queries, got a single text; write [{shorten(queries)!r}]")
        parsed = [query if isinstance(query, Query) else parse(query, schema) for query in queries]
        if not parsed:
            raise WorkloadError("the list of queries is empty; give at least one")
        return cls(schema, [Predicate(*group) for group in _coloured(parsed)])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that any part uses, in order of appearance."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __getitem__(self, index: int) -> Part:
        return self.parts[index]

    def __add__(self, other: Workload) -> Workload:
        if other.schema != self.schema:
            raise WorkloadError("the two workloads were made for different schemas; make both with the same one")
        return Workload(self.schema, self.parts + other.parts)

    def __repr__(self) -> str:
        cells = sum(part.n_cells for part in self.parts)
        return f"Workload({len(self.parts)} parts, {cells} queries on {shorten(', '.join(self.columns))})"

    def answer(self, joint: Joint) -> list[NDArray[np.float64]]:
        """The exact answers W q, one array per part: the total weight of the rows in each cell."""
        for name in self.columns:
            if column_of(joint.schema, name) != self.schema[name]:
                raise WorkloadError(
                    f"the schema of the rows declares column {name!r} differently from the workload's schema; "
                    "encode the rows with the workload's schema"
                )
        return [
            mass_per_cell(part.cells(joint.schema, joint.codes), joint.weights, part.n_cells)[: part.n_cells]
            for part in self.parts
        ]

    def sensitivity(self, unit: Unit, norm: Literal[1, 2] = 1) -> float:
        """How much one person can change the counts: unit.rows * m in the L1 norm, unit.rows * sqrt(m) in the L2 norm.

        m is `per_row`. Proof: a row adds a 0/1 vector with at most m ones, whose norm is at most m or sqrt(m).
        Neighbouring tables differ by at most unit.rows such vectors, and norms of sums are at most sums of norms.
        Equality holds if the person's rows are identical and satisfy m queries.
        """
        if not isinstance(unit, Unit):
            raise WorkloadError(f"expected a Unit such as Unit(max_rows=1), got {unit!r}")
        if norm not in (1, 2):
            raise WorkloadError(f"norm is {norm!r}; use 1 for Laplace noise, 2 for Gaussian noise")
        return unit.rows * (self.per_row if norm == 1 else math.sqrt(self.per_row))

    @property
    def per_row(self) -> int:
        """The largest number of queries that one row can satisfy: never too small, and exact where enumerated.

        A row is in at most one cell of a part, and in exactly one if the part covers all rows. The other parts are
        grouped so that no two groups share a column: then a row's codes are independent, and the groups' maxima add up.
        A group of more than 2**20 cells contributes its number of parts.
        """
        most = sum(part.covers for part in self.parts)
        for columns, members in _groups([part for part in self.parts if not part.covers]):
            shape = self.schema.shape(columns)
            if math.prod(shape) > LARGEST_JOINT:
                most += len(members)
                continue
            counts = np.zeros(shape, dtype=np.int64)
            for part in members:
                counts += _aligned(part.inside(self.schema), part.columns, columns)
            most += int(counts.max())
        return most
