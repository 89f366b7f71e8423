"""Parts: sets of disjoint 0/1 queries, so that a row satisfies at most one query of a part.

In the paper, a part is a partial workload W_s whose columns sum to at most 1: row j is in one cell c(j) or in none. A
part consists of column names and lookup tables, not of rows, so the same part can be applied to a support or a domain,
or turned into counts in a database.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.errors import WorkloadError, names_of
from prade.data.declare.schema import Schema
from prade.data.public.joint import Codes, joint_codes
from prade.queries.query import Mask, Query, backticked, column_of, shorten

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

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

    @abstractmethod
    def inside(self, schema: Schema) -> Mask:
        """Which points of the domain are in some cell: one axis per column."""

    @abstractmethod
    def labels(self, schema: Schema) -> list[str]:
        """One readable text per cell."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Raise a WorkloadError if the part was made for another schema."""

    @abstractmethod
    def _content(self) -> tuple[Any, ...]:
        """The values that determine whether two parts are equal."""

    def _settle(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"parts are immutable; make a new {type(self).__name__} instead of setting {name}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        return type(self) is type(other) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, n_cells={self.n_cells}, covers={self.covers})"


class Cells(Part):
    """Cells given by a lookup table: `table[joint code of columns]` is the cell, or `n_cells` for none.

    `table` is flat or has one axis per column (C order). It gives one cell for each row, so a row cannot be in two
    cells. A cell to which no code leads is allowed: its answer is always 0.

    >>> Cells(["age"], table=[0, 0, 1, 2], n_cells=2).covers
    False
    """

    table: NDArray[Any]
    cell_labels: tuple[str, ...]

    def __init__(self, columns: Sequence[str], table: ArrayLike, n_cells: int, labels: Sequence[str] = ()) -> None:
        columns = column_names_of(columns)
        lookup = _lookup(table, n_cells, f"the table over {', '.join(columns)}")
        self._settle(
            columns=columns,
            table=lookup,
            n_cells=int(n_cells),
            covers=bool((lookup < n_cells).all()),
            cell_labels=_cell_labels(labels, n_cells),
        )

    @property
    def name(self) -> str:
        shown = f"{self.n_cells} cells" if self.n_cells > 1 else "1 cell"
        return f"{shown} on {' x '.join(map(backticked, self.columns))} #{_digest(*self._content())}"

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        cells: NDArray[Any] = self.table[joint_codes(schema, codes, self.columns)]
        return cells

    def inside(self, schema: Schema) -> Mask:
        self.check(schema)
        inside: Mask = (self.table < self.n_cells).reshape(schema.shape(self.columns))
        return inside

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

    If the joint domain of their columns is small, it is enumerated. Otherwise every two queries must have a column in
    which no code is possible for both; then it is not known whether they cover the domain, and `covers` is False.
    """

    queries: tuple[Query, ...]

    def __init__(self, *queries: Query) -> None:
        if not queries or not all(isinstance(query, Query) for query in queries):
            raise WorkloadError(f"expected queries made by prade.queries.query.parse, got {shorten(repr(queries))}")
        counts = times_satisfied(queries)
        overlap = bool(may_overlap(queries).any()) if counts is None else bool((counts > 1).any())
        if overlap:
            texts = "; ".join(shorten(query.text) for query in queries[:4])
            raise WorkloadError(
                f"a row may satisfy two of the {len(queries)} queries of one part ({texts} ...); "
                "use Workload.queries, which distributes them over as many parts as they need"
            )
        self._settle(
            queries=queries,
            columns=tuple(joint_sizes(queries)),
            n_cells=len(queries),
            covers=counts is not None and bool((counts > 0).all()),
        )

    @property
    def name(self) -> str:
        return " | ".join(query.text for query in self.queries)

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        no_cell, dtype = self.n_cells, np.min_scalar_type(self.n_cells)
        domain = schema.domain_size(self.columns)
        rows = len(next(iter(codes.values())))
        if self.n_cells > 1 and domain <= rows:  # a table of the domain is cheaper than a pass for each query
            table = np.full(schema.shape(self.columns), no_cell, dtype=dtype)
            for cell, query in enumerate(self.queries):
                table[np.broadcast_to(query.over(self.columns), table.shape)] = cell
            looked_up: NDArray[Any] = table.ravel()[joint_codes(schema, codes, self.columns)]
            return looked_up
        cells = np.full(rows, no_cell, dtype=dtype)
        for cell, query in enumerate(self.queries):
            cells[query.mask(codes)] = cell
        return cells

    def inside(self, schema: Schema) -> Mask:
        self.check(schema)
        inside = np.zeros(schema.shape(self.columns), dtype=np.bool_)
        for query in self.queries:
            inside |= query.over(self.columns)
        return inside

    def labels(self, schema: Schema) -> list[str]:
        return [query.text for query in self.queries]

    def check(self, schema: Schema) -> None:
        for query in self.queries:
            query.check(schema)

    def _content(self) -> tuple[Any, ...]:
        return self.queries


def column_names_of(columns: Sequence[str]) -> tuple[str, ...]:
    names = names_of(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise WorkloadError(f"a part needs the names of one or more columns, got {columns!r}")
    if len(set(names)) < len(names):
        raise WorkloadError(f"the columns {names} contain a name twice; give each name once")
    return names


def _lookup(table: ArrayLike, n_cells: int, what: str) -> NDArray[Any]:
    """A checked, flat, read-only copy of a table of cells."""
    if isinstance(n_cells, bool) or not isinstance(n_cells, (int, np.integer)) or not 1 <= n_cells <= MAX_CELLS:
        raise WorkloadError(f"n_cells is {n_cells!r}; expected a whole number from 1 to {MAX_CELLS:,}")
    given = np.asarray(table)
    if given.size == 0 or given.dtype.kind not in "iu":
        raise WorkloadError(f"{what} must hold whole numbers, got {given.size} entries of type {given.dtype}")
    if given.min() < 0 or given.max() > n_cells:
        raise WorkloadError(
            f"{what} has entries from {given.min()} to {given.max()}; expected cells from 0 to {n_cells - 1}, "
            f"or {n_cells} for a row that is in no cell"
        )
    lookup = given.ravel().astype(np.min_scalar_type(int(n_cells)), copy=True)
    lookup.flags.writeable = False
    return lookup


def _cell_labels(labels: Sequence[str], n_cells: int) -> tuple[str, ...]:
    texts = tuple(labels) or tuple(f"cell {cell}" for cell in range(n_cells))
    if len(texts) != n_cells:
        raise WorkloadError(f"there are {len(texts)} labels for {n_cells} cells; give one per cell, or none at all")
    return texts


def _digest(*content: Any) -> str:
    digest = hashlib.sha256()
    for item in content:
        piece = item if isinstance(item, bytes) else repr(item).encode()
        digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.hexdigest()[:12]


# ---------------------------------------------------------------------- marginals


class Marginal(Part):
    """One cell for every combination of codes of some columns, numbered in C order (the last column varies fastest).

    >>> from prade.data.declare.schema import Schema
    >>> part = Marginal.of(Schema.from_mbi({"age": 3, "sex": 2}), ["age", "sex"])
    >>> part
    Marginal('age x sex', n_cells=6, covers=True)
    """

    sizes: tuple[int, ...]

    def __init__(self, columns: Sequence[str], sizes: Sequence[int]) -> None:
        columns, sizes = column_names_of(columns), tuple(int(size) for size in sizes)
        if len(columns) != len(sizes) or min(sizes) < 1:
            raise WorkloadError(f"each of the columns {columns} needs a size of at least 1, got {sizes}")
        n_cells = math.prod(sizes)
        if n_cells > MAX_CELLS:
            raise WorkloadError(
                f"the marginal of {', '.join(columns)} has {n_cells:,} cells ({' x '.join(map(str, sizes))}), but a "
                f"part may have at most {MAX_CELLS:,}; use fewer columns or coarser bins"
            )
        self._settle(columns=columns, sizes=sizes, n_cells=n_cells, covers=True)

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str]) -> Marginal:
        """The marginal of these columns of a schema."""
        names = column_names_of(columns)
        return cls(names, [column_of(schema, name).size for name in names])

    @property
    def name(self) -> str:
        return " x ".join(backticked(column) for column in self.columns)

    def cells(self, schema: Schema, codes: Codes) -> NDArray[Any]:
        self.check(schema)
        return joint_codes(schema, codes, self.columns)

    def inside(self, schema: Schema) -> Mask:
        return np.ones(self.sizes, dtype=np.bool_)

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
