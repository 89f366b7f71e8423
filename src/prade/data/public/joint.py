"""Joint distributions on coded rows: coded tables, priors and estimates.

`encode` may be used on private rows: no error, warning or log message depends on a cell, and no code depends on another
row's cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.errors import DataError, many, names_of
from prade.core.execution import finishing
from prade.data.declare.column import Column
from prade.data.declare.schema import Schema
from prade.data.read.cells import Columns, one_piece, plain_cells, python_values
from prade.data.read.coding import code_cells, numbers_of
from prade.data.read.tables import read_table

Codes = Mapping[str, NDArray[Any]]
LARGEST_FULL_DOMAIN = 2**22


def joint_codes(schema: Schema, codes: Codes, columns: Sequence[str]) -> NDArray[Any]:
    """The number of each row's cell in the product of `columns`, in C order (the last column varies fastest)."""
    if absent := [name for name in columns if name not in codes]:
        raise DataError(f"column {absent[0]!r} is not among the coded columns ({', '.join(codes)}); encode it")
    dtype = np.min_scalar_type(schema.domain_size(columns))
    if len(columns) == 1:
        return np.ascontiguousarray(codes[columns[0]], dtype=dtype)
    result = np.zeros(len(next(iter(codes.values()))), dtype=dtype)
    for name in columns:
        result *= dtype.type(schema.size(name))
        result += codes[name].astype(dtype, copy=False)
    return result


class Joint:
    """Rows in codes with weights that sum to one; `project(columns)` is the marginal distribution q(columns)."""

    schema: Schema
    codes: Codes
    weights: NDArray[np.float64]
    complete: bool = False  # whether the rows are all cells of the domain, each once

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coded columns."""
        return tuple(self.codes)

    def project(self, columns: Sequence[str]) -> NDArray[np.float64]:
        """The marginal distribution on `columns`, an array with one axis per column."""
        names = names_of(columns)
        cells = joint_codes(self.schema, self.codes, names)
        return mass_per_cell(cells, self.weights, self.schema.domain_size(names)).reshape(self.schema.shape(names))


class Coded(Joint):
    """A table in codes: one array of unsigned integers per column, and weights that sum to one.

    None for `weights` gives every row the same weight.
    """

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        self.schema = schema
        self.codes: dict[str, NDArray[Any]] = {name: _checked(schema[name], column) for name, column in codes.items()}
        lengths = {len(column) for column in self.codes.values()}
        if len(lengths) != 1:
            raise DataError(f"the coded columns have {len(lengths)} different lengths; give one or more of one length")
        rows = lengths.pop()
        self.weights = normalised(np.ones(rows) if weights is None else weights, rows, "weights")

    def take(self, index: NDArray[Any]) -> Coded:
        """The rows at `index` (row numbers or a mask), with weights scaled to sum to one again."""
        picked = np.asarray(index)
        return Coded(self.schema, {name: code[picked] for name, code in self.codes.items()}, self.weights[picked])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows, {len(self.codes)} columns)"


def encode(
    schema: Schema, table: Any, *, columns: Sequence[str] | None = None, weight: str | None = None, threads: int = 1
) -> Coded:
    """Encode the `columns` of a table or file (by default all but the group columns), several at a time in `threads`.

    A declared type of a column that cannot match the schema is an error; in CSV files and columns of Python objects, a
    cell of the wrong kind is outside the domain. `weight` names a column of row weights, of public tables only.

    >>> from prade.data.declare.schema import Column, Schema
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65], missing=True)])
    >>> encode(schema, {"AGE": [3, 18, None, 70]}).codes["AGE"]
    array([0, 1, 3, 2], dtype=uint8)
    """
    names = list(schema.coded if columns is None else schema.select(columns).names)
    sizes = {name: schema.size(name) for name in names}  # a group column without values is refused here
    cells = table if isinstance(table, Columns) else read_table(table, names, guess=False)
    if isinstance(cells, Columns):
        read_table(cells, [name for name in names if name not in cells.column_names])  # an error names the column

    def coded(name: str) -> NDArray[Any]:
        return code_cells(schema[name], cells[name])[0].astype(np.min_scalar_type(sizes[name]))

    codes = dict(zip(names, finishing(coded, names, threads), strict=True))
    return Coded(schema, codes, None if weight is None else row_weights(table, weight))


def outside(schema: Schema, table: Any) -> dict[str, dict[Any, int]]:
    """The values of a PUBLIC table that are outside the schema's domain: {column: {value: number of rows}}.

    Columns that the table does not have and group columns whose values are not known yet are left out.
    """
    public = table if isinstance(table, Columns) else read_table(table, guess=False)
    report: dict[str, dict[Any, int]] = {}
    for column in schema.columns:
        if column.name not in public.column_names or (column.groups and not column.values):
            continue
        cells = public[column.name]
        unfit = plain_cells(cells).filter(~code_cells(column, cells)[1])
        if pa.types.is_union(unfit.type):  # Arrow's value_counts does not support unions
            counts = dict(Counter(unfit.to_pylist()))
        else:
            counted = pc.value_counts(unfit)
            values = python_values(counted.field("values"))
            counts = dict(zip(values, counted.field("counts").to_pylist(), strict=True))
        report |= {column.name: counts} if counts else {}
    return report


def _checked(column: Column, codes: NDArray[Any]) -> NDArray[Any]:
    codes = np.asarray(codes)
    whole = codes.ndim == 1 and codes.dtype.kind in "ui"
    if not whole or (len(codes) and not 0 <= codes.min() <= codes.max() < column.size):
        limits = f"integers in the range from 0 to {column.size - 1}"
        raise DataError(f"column {column.name!r}: codes are a one-dimensional array of {limits}")
    return np.ascontiguousarray(codes, dtype=np.min_scalar_type(column.size))


def row_weights(table: Any, name: str) -> NDArray[np.float64]:
    """The weights of public rows; an error says which row has none."""
    cells = one_piece(plain_cells(read_table(table, [name])[name]))
    weights = numbers_of(Column(name, "numeric", edges=(0,)), cells)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        row, others = int(wrong[0]), many(len(wrong), "such row")
        weight = f"column {name!r}: the weight of row {row + 1:,} is {cells[row].as_py()!r} ({others})"
        raise DataError(f"{weight}; give a number that is not negative, or remove the row")
    return weights


def normalised(weights: NDArray[Any], rows: int, name: str) -> NDArray[np.float64]:
    """Weights of this many rows, scaled to sum to one; `name` is theirs in errors."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (rows,):
        raise DataError(f"{rows} rows need {rows} weights, got an array of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any() or (rows and not values.any()):
        raise DataError(f"{name} must be finite, not negative and not all zero; remove rows, or set weights to 0")
    if rows == 0:
        return values
    with np.errstate(over="ignore"):
        total = values.sum()
    if np.isinf(total):
        return normalised(values / values.max(), rows, name)
    return np.ascontiguousarray(values / total)


class Prior(Coded):
    """A distribution p on distinct coded rows, the support.

    `complete` says that it has all cells of the domain; estimates give weight to no other rows.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 2, "b": 3})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 1], "b": [2, 2, 1]})
    >>> len(prior), prior.project(["a"])
    (2, array([0.66666667, 0.33333333]))
    """

    def __init__(self, schema: Schema, codes: Codes, weights: NDArray[np.float64], *, complete: bool = False) -> None:
        super().__init__(schema, codes, weights)
        if len(self) == 0:
            raise DataError("the prior has no rows; give a public table with at least one row")
        self.complete = complete

    def with_weights(self, weights: NDArray[np.float64]) -> Prior:
        """The same rows with other weights, which are scaled to sum to one; the codes are not checked again."""
        other = copy(self)
        other.weights = normalised(weights, len(self), "weights")
        return other

    @classmethod
    def from_joint(cls, joint: Joint) -> Prior:
        """The distribution of a coded table, prior or estimate on its distinct rows with a weight above 0."""
        positive = joint.weights > 0
        codes, weights = joint.codes, joint.weights[positive]
        if not positive.all():
            codes = {name: code[positive] for name, code in codes.items()}
        if len(weights) == 0:
            raise DataError("the prior has no rows with a weight above 0; give a public table that has some")
        first, number = distinct_rows(list(codes.values()))
        merged = mass_per_cell(number, weights, len(first))
        return cls(joint.schema, {name: code[first] for name, code in codes.items()}, merged)

    @classmethod
    def from_table(
        cls, schema: Schema, table: Any, *, columns: Sequence[str] | None = None, weight: str | None = None
    ) -> Prior:
        """The prior of a public table or file; `weight` names a column of survey weights."""
        return cls.from_joint(encode(schema, table, columns=columns, weight=weight))

    @classmethod
    def uniform(cls, schema: Schema, columns: str | Sequence[str] | None = None) -> Prior:
        """The uniform distribution on a small domain: a prior without any knowledge."""
        names = names_of(schema.coded if columns is None else columns)
        shape, size = schema.shape(names), schema.domain_size(names)
        if size > LARGEST_FULL_DOMAIN:
            large = f"the full domain of {len(names)} columns has {size:.3g} cells, more than {LARGEST_FULL_DOMAIN}"
            raise DataError(f"{large}; use fewer columns, coarser bins, or a prior from a public table")
        grid = np.unravel_index(np.arange(size), shape)
        codes = {name: code.astype(np.min_scalar_type(n - 1)) for name, n, code in zip(names, shape, grid, strict=True)}
        return cls(schema, codes, np.full(size, 1.0 / size), complete=True)

    def on_full_domain(self) -> Prior:
        """The same distribution with one row for every cell of its domain, most of them with weight zero."""
        uniform = Prior.uniform(self.schema, self.columns)
        return Prior(self.schema, uniform.codes, self.project(self.columns).ravel(), complete=True)


# ---------------------------------------------------------------------- equal rows


class RowIndex:
    """An index of rows, sorted by a random 64-bit sum of their codes (checked: different rows never share one).

    `order` has the numbers of the rows; equal rows are next to each other, in their own order.
    """

    def __init__(self, columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> None:
        generator = np.random.default_rng(0x9E3779B9)
        self._columns = columns
        while True:
            # one more than the codes there are: all that is larger is like no row
            self._values = [generator.integers(0, 2**64, size=size + 1, dtype=np.uint64) for size in sizes]
            key = np.zeros(len(columns[0]), np.uint64)
            for values, column in zip(self._values, columns, strict=True):
                key += values[column]
            order = np.argsort(key, kind="stable")
            self._sorted = key[order]
            self.order = order.astype(np.min_scalar_type(len(order)))
            self.begins = np.append(True, self._sorted[1:] != self._sorted[:-1])[: len(order)]  # rows like none before
            same = np.flatnonzero(~self.begins)
            if all(np.array_equal(column[self.order[same]], column[self.order[same - 1]]) for column in columns):
                return

    def runs(self, wanted: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
        """Where the rows that are equal to each of some others begin and end in `order`; an empty run for none."""
        keys = np.zeros(len(wanted[0]), np.uint64)
        for values, column in zip(self._values, wanted, strict=True):
            keys += values[np.where((column >= 0) & (column < len(values)), column, len(values) - 1)]
        first, stop = (np.searchsorted(self._sorted, keys, side=side) for side in ("left", "right"))
        run = np.flatnonzero(first < stop)
        rows = self.order[first[run]]
        equal = np.ones(len(run), np.bool_)
        for column, mine in zip(self._columns, wanted, strict=True):
            equal &= column[rows] == mine[run]
        stop[run[~equal]] = first[run[~equal]]
        return first, stop


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """The index at which each distinct row first appears, and for every row the number of its distinct row."""
    index = RowIndex(columns, [int(column.max(initial=0)) + 1 for column in columns])
    earliest = np.empty(len(index.order), np.int64)  # for each row, the first that is like it
    earliest[index.order] = index.order[index.begins][np.cumsum(index.begins) - 1]
    is_first = earliest == np.arange(len(earliest))
    return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[earliest]


# ---------------------------------------------------------------------- what columns tell about each other


@dataclass(frozen=True, eq=False)
class Information:
    """nats[a, b] = sum over cells q(a, b) log( q(a, b) / (q(a) q(b)) ): mutual information; its diagonal is entropy."""

    columns: tuple[str, ...]
    nats: Floats

    @classmethod
    def of(cls, joint: Joint, columns: Sequence[str] | None = None) -> Information:
        """Of the columns of a table, prior or estimate (all of them when None), by its weights."""
        names = joint.columns if columns is None else tuple(columns)
        nats = np.diag([_entropy(joint.project((name,))) for name in names])
        for (i, a), (j, b) in combinations(enumerate(names), 2):
            # H(a) + H(b) - H(a, b) would lose what little there is to rounding
            nats[i, j] = nats[j, i] = _shared(joint.project((a, b)))
        return cls(names, nats)

    def index(self, name: str) -> int:
        """The number of a column in `columns` and `nats`."""
        return self.columns.index(name)

    def between(self, a: str, b: str) -> float:
        """I(a; b)."""
        return float(self.nats[self.index(a), self.index(b)])

    def tree(self) -> list[tuple[int, int]]:
        """The links of the tree with most information (Chow and Liu), as numbers of columns: (known already, new).

        >>> Information(("a", "b", "c"), np.array([[1, 0.2, 0.7], [0.2, 1, 0.3], [0.7, 0.3, 1]])).tree()
        [(0, 2), (2, 1)]
        """
        links: list[tuple[int, int]] = []
        strength, nearest = self.nats[0].copy(), np.zeros(len(self.columns), np.int64)
        left = np.arange(len(self.columns)) > 0
        while left.any():
            new = int(np.argmax(np.where(left, strength, -1.0)))
            links.append((int(nearest[new]), new))
            left[new] = False
            closer = left & (self.nats[new] > strength)
            nearest[closer], strength[closer] = new, self.nats[new][closer]
        return links


def _entropy(mass: Floats) -> float:
    seen = mass[mass > 0]
    return float(-(seen * np.log(seen)).sum())


def _shared(both: Floats) -> float:
    apart = both.sum(axis=1, keepdims=True) * both.sum(axis=0, keepdims=True)
    seen = both > 0
    return float((both[seen] * np.log(both[seen] / apart[seen])).sum())
