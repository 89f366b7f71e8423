"""Parts: sets of disjoint 0/1 queries, so that a row j is in one cell c(j) of a part, or in none.

In the paper, a part is a partial workload W_s whose columns sum to at most 1. It has column names and lookup tables,
not rows: the same part can be applied to a support or a domain.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.errors import WorkloadError, names_of
from prade.core.numbers import whole
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes, joint_codes
from prade.queries.query import Mask, Query, backticked, column_of, possible, shorten

MAX_CELLS = 2**31
MAX_ENUMERATED = 2**24  # (queries) x (cells of their joint domain): up to here, queries are compared cell by cell


class Part(ABC):
    """Disjoint 0/1 queries, called cells: `cells(schema, codes)` gives the cell of each row.

    Parts are immutable values: parts with equal content are equal and have the same name.
    """

    columns: tuple[str, ...]  #: the columns that the part uses
    n_cells: int  #: number of cells
    covers: bool  #: whether every possible row is known to be in some cell

    @property
    @abstractmethod
    def name(self) -> str:
        """A readable name; parts with different content have different names."""

    @abstractmethod
    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        """The cell of each row, `n_cells` for a row in none, in the smallest unsigned type that can hold them."""

    def inside(self, schema: Schema) -> Mask:
        """Which points of the domain are in some cell, one axis per column: all, unless a kind of part says less."""
        return np.ones(schema.shape(self.columns), np.bool_)

    @abstractmethod
    def labels(self, schema: Schema) -> list[str]:
        """One readable text per cell."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Raise a WorkloadError if the part was made for another schema."""

    @abstractmethod
    def _content(self) -> tuple[Any, ...]:
        """The values that determine whether two parts are equal."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        return type(self) is type(other) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, n_cells={self.n_cells}, covers={self.covers})"


class Cells(Part):
    """Cells given by a lookup table, flat or with one axis per column: `table[joint code of columns]` is the cell.

    The entry `n_cells` means no cell. A cell to which no code leads is allowed: its answer is always 0.

    >>> Cells(["age"], table=[0, 0, 1, 2], n_cells=2).covers
    False
    """

    table: NDArray[Any]
    cell_labels: tuple[str, ...]

    def __init__(self, columns: Sequence[str], table: ArrayLike, n_cells: int, labels: Sequence[str] = ()) -> None:
        self.columns, self.n_cells = _column_names(columns), n_cells
        if not whole(n_cells, 1) or n_cells > MAX_CELLS:
            raise WorkloadError(f"n_cells is {n_cells!r}; expected a whole number from 1 to {MAX_CELLS:,}")
        values = np.asarray(table)
        if not values.size or values.dtype.kind not in "iu" or values.min() < 0 or values.max() > n_cells:
            raise WorkloadError(
                f"the table over {', '.join(self.columns)} must hold whole numbers from 0 to {n_cells}, the last of "
                f"which means no cell; got {shorten(str(values))}"
            )
        self.table = values.ravel().astype(np.min_scalar_type(int(n_cells)), copy=True)
        self.table.flags.writeable = False
        self.covers = bool((self.table < n_cells).all())
        self.cell_labels = tuple(map(str, labels)) or tuple(f"cell {cell}" for cell in range(n_cells))
        if len(self.cell_labels) != n_cells:
            raise WorkloadError(f"there are {len(labels)} labels for {n_cells} cells; give one per cell, or none")

    @property
    def name(self) -> str:
        pieces = [*(repr(item).encode() for item in self._content()[:-1]), self.table.tobytes()]
        digest = hashlib.sha256(b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)).hexdigest()[:12]
        return f"{self.n_cells} cell{'s' * (self.n_cells > 1)} on {' x '.join(map(backticked, self.columns))} #{digest}"

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        return np.asarray(self.table[joint_codes(schema, codes, self.columns)])

    def inside(self, schema: Schema) -> Mask:
        self.check(schema)
        return (self.table < self.n_cells).reshape(schema.shape(self.columns))

    def labels(self, schema: Schema) -> list[str]:
        return list(self.cell_labels)

    def check(self, schema: Schema) -> None:
        now = math.prod(column_of(schema, name).size for name in self.columns)
        if now != len(self.table):
            raise WorkloadError(
                f"the table over {', '.join(self.columns)} has {len(self.table):,} entries, but the schema has "
                f"{now:,} combinations of these columns; give one entry for each combination"
            )

    def _content(self) -> tuple[Any, ...]:
        return self.columns, self.n_cells, self.cell_labels, self.table.tobytes()


def everybody(schema: Schema, column: str, label: str = "all rows") -> Cells:
    """The part with one cell that every row is in: its count is the number of rows. It needs a column to look at."""
    return Cells([column], np.zeros(schema.size(column), np.int64), 1, [label])


class Predicate(Part):
    """One cell per query; several queries are allowed only if provably no row satisfies two of them.

    It covers the domain if the joint domain of their columns can be enumerated, and each of its cells is in one.
    """

    queries: tuple[Query, ...]

    def __init__(self, *queries: Query) -> None:
        if not queries or not all(isinstance(query, Query) for query in queries):
            raise WorkloadError(f"expected queries made by prade.queries.query.parse, got {shorten(repr(queries))}")
        if overlaps(queries).any():
            texts = shorten("; ".join(query.text for query in queries), 300)
            raise WorkloadError(
                f"a row may satisfy two of the queries of one part ({texts}); use Workload.queries, which distributes "
                "them over as many parts as they need"
            )
        sizes = _joint_sizes(queries)
        self.queries, self.columns, self.n_cells = queries, tuple(sizes), len(queries)
        small = len(queries) * math.prod(sizes.values()) <= MAX_ENUMERATED
        self.covers = small and bool(_any_of(queries, sizes).all())

    @property
    def name(self) -> str:
        return " | ".join(query.text for query in self.queries)

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        rows, sizes = len(next(iter(codes.values()))), _joint_sizes(self.queries)
        # A table of the domain is cheaper than a pass for each query.
        by_table = self.n_cells > 1 and schema.domain_size(self.columns) <= rows
        shape = tuple(sizes.values()) if by_table else (rows,)
        cells = np.full(shape, self.n_cells, dtype=np.min_scalar_type(self.n_cells))
        for cell, query in enumerate(self.queries):
            cells[_enumerated(query, sizes) if by_table else query.mask(codes)] = cell
        return cells.ravel()[joint_codes(schema, codes, self.columns)] if by_table else cells

    def inside(self, schema: Schema) -> Mask:
        self.check(schema)
        return _any_of(self.queries, _joint_sizes(self.queries))

    def labels(self, schema: Schema) -> list[str]:
        return [query.text for query in self.queries]

    def check(self, schema: Schema) -> None:
        for query in self.queries:
            query.check(schema)

    def _content(self) -> tuple[Any, ...]:
        return self.queries


def _column_names(columns: Sequence[str]) -> tuple[str, ...]:
    names = names_of(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise WorkloadError(f"a part needs the names of one or more columns, got {columns!r}")
    if len(set(names)) < len(names):
        raise WorkloadError(f"the columns {names} contain a name twice; give each name once")
    return names


class Marginal(Part):
    """One cell for every combination of codes of some columns, numbered in C order (the last column varies fastest).

    >>> from prade.data.declare.schema import Schema
    >>> part = Marginal.of(Schema.from_mbi({"age": 3, "sex": 2}), ["age", "sex"])
    >>> part
    Marginal('age x sex', n_cells=6, covers=True)
    """

    sizes: tuple[int, ...]

    def __init__(self, columns: Sequence[str], sizes: Sequence[int]) -> None:
        self.columns, self.sizes, self.covers = _column_names(columns), tuple(map(int, sizes)), True
        self.n_cells = math.prod(self.sizes)
        if self.n_cells > MAX_CELLS:
            raise WorkloadError(
                f"the marginal of {', '.join(self.columns)} has {self.n_cells:,} cells, but a part may have at most "
                f"{MAX_CELLS:,}; use fewer columns or coarser bins"
            )

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str]) -> Marginal:
        names = _column_names(columns)
        return cls(names, [column_of(schema, name).size for name in names])

    @property
    def name(self) -> str:
        return " x ".join(backticked(column) for column in self.columns)

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        return joint_codes(schema, codes, self.columns)

    def labels(self, schema: Schema) -> list[str]:
        self.check(schema)
        each = [[f"{name} {label}" for label in schema[name].cell_texts()] for name in self.columns]
        return [", ".join(combination) for combination in itertools.product(*each)]

    def check(self, schema: Schema) -> None:
        for name, size in zip(self.columns, self.sizes, strict=True):
            if (now := column_of(schema, name).size) != size:
                raise WorkloadError(
                    f"part {self.name!r} was made for {size} codes in column {name!r}, but this schema has {now}; "
                    "make the part again with Marginal.of(schema, columns)"
                )

    def _content(self) -> tuple[Any, ...]:
        return self.columns, self.sizes


def overlaps(queries: Sequence[Query], most: int = MAX_ENUMERATED) -> Mask:
    """Which pairs of queries might have a row in common: False is a proof.

    True is one too if their joint domain has at most `most` numbers. Otherwise two queries are disjoint if in some
    column no code is possible for both (`prade.queries.query.possible`).
    """
    sizes = _joint_sizes(queries)
    overlap = np.ones((len(queries), len(queries)), dtype=np.bool_)
    if len(queries) * math.prod(sizes.values()) <= most:
        cells = np.stack([_enumerated(query, sizes).ravel() for query in queries]).astype(np.float32)
        overlap = cells @ cells.T > 0
    else:
        limits = [possible(query.expression) for query in queries]
        for name, size in sizes.items():
            codes = np.stack([each.get(name, np.ones(size, np.bool_)) for each in limits]).astype(np.float32)
            overlap &= codes @ codes.T > 0
    np.fill_diagonal(overlap, False)
    return overlap


def _enumerated(query: Query, sizes: Mapping[str, int]) -> Mask:
    return np.broadcast_to(query.over(list(sizes)), tuple(sizes.values()))


def _any_of(queries: Sequence[Query], sizes: Mapping[str, int]) -> Mask:
    return reduce(np.logical_or, (_enumerated(query, sizes) for query in queries))


def _joint_sizes(queries: Sequence[Query]) -> dict[str, int]:
    return {name: size for query in queries for name, size in query.sizes.items()}
