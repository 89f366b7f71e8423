"""Turning a table into codes: compact unsigned integers, according to its schema.

How cells are matched depends on the column's list of values, never on the cells. If the list contains numbers, cells
are read as numbers (1, 1.0, "1" and "1.0" are the same). If it contains text, texts are compared (whole numbers are
written without a decimal point, dates as 2020-12-31). A list of true and false accepts these words, 1 and 0. Numeric
columns read cells as numbers, or as dates if their edges are dates. A cell that does not match is coded by the
column's declared policy. No error, warning or log message depends on a cell, and no code depends on another row's
cell, so `encode` may be used on private rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import smallest_unsigned
from prade.core.errors import DataError, many
from prade.core.execution import finishing
from prade.data.cell_types import python_values
from prade.data.cells import one_piece
from prade.data.columns import Columns
from prade.data.declare.column import Column
from prade.data.decoding import Decoder
from prade.data.joint import Joint
from prade.data.matching import code_cells, numbers_of
from prade.data.read.tables import plain_cells, read_table, write_table

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

__all__ = ["Coded", "Decoder", "encode", "outside", "read_table", "write_table"]


class Coded(Joint):
    """A table in codes: one array of unsigned integers per column, and weights that sum to one.

    `codes` maps each column's name to its codes (0 to size - 1). `weights` are scaled to sum to one; None gives every
    row the same weight.
    """

    def __init__(self, schema: Schema, codes: Mapping[str, NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        self.schema = schema
        self.codes: dict[str, NDArray[Any]] = {name: _checked(schema[name], column) for name, column in codes.items()}
        lengths = {len(column) for column in self.codes.values()}
        if len(lengths) != 1:
            raise DataError(
                f"the coded columns have {len(lengths)} different lengths; give at least one column, all of one length"
            )
        rows = lengths.pop()
        self.weights = normalised(np.ones(rows) if weights is None else weights, rows, "weights")

    def take(self, index: NDArray[Any]) -> Coded:
        """The rows at `index` (row numbers or a mask), with weights scaled to sum to one again."""
        picked = np.asarray(index)
        codes = {name: column[picked] for name, column in self.codes.items()}
        return Coded(self.schema, codes, self.weights[picked])

    def __repr__(self) -> str:
        return f"Coded({len(self)} rows, {len(self.codes)} columns)"


def encode(
    schema: Schema, table: Any, *, columns: Sequence[str] | None = None, weight: str | None = None, threads: int = 1
) -> Coded:
    """Encode a table, several columns at a time in `threads`.

    `table` is a pandas, polars or pyarrow table, a dict of arrays, or a parquet or CSV file. `columns` are the columns
    to encode (by default all but the group columns). It is an error if the table declares a column's type (parquet,
    Arrow, typed frames) and that type cannot match the schema. In CSV files and columns of Python objects, each cell is
    read on its own, and a cell of the wrong kind is a value outside the domain. `weight` names a column of row
    weights; it is for public tables only, because a negative or missing weight is an error.

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
        return code_cells(schema[name], cells[name])[0].astype(smallest_unsigned(sizes[name]))

    codes = dict(zip(names, finishing(coded, names, threads), strict=True))
    return Coded(schema, codes, None if weight is None else _weights(read_table(table, [weight])[weight], weight))


def outside(schema: Schema, table: Any) -> dict[str, dict[Any, int]]:
    """The values of a PUBLIC table that are outside the schema's domain: {column: {value: number of rows}}.

    The result contains cell values, so never use this on private rows. A missing cell is reported as None. Columns
    without such values are left out, and so are columns that the table does not have and group columns whose values
    are not known yet.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    public = table if isinstance(table, Columns) else read_table(table, guess=False)
    report: dict[str, dict[Any, int]] = {}
    for column in schema.columns:
        if column.name not in public.column_names or (column.kind == "group" and not column.values):
            continue
        cells = public[column.name]
        fits = code_cells(column, cells)[1]
        if fits.all():
            continue
        unfit = plain_cells(cells).filter(~fits)
        if pa.types.is_union(unfit.type):  # Arrow's value_counts does not support unions
            report[column.name] = dict(Counter(unfit.to_pylist()))
        else:
            counted = pc.value_counts(unfit)
            values, counts = python_values(counted.field("values")), counted.field("counts").to_pylist()
            report[column.name] = dict(zip(values, counts, strict=True))
    return report


def _checked(column: Column, codes: NDArray[Any]) -> NDArray[Any]:
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "ui":
        raise DataError(f"column {column.name!r}: codes must be a one-dimensional array of integers")
    if len(codes) and (int(codes.max()) >= column.size or int(codes.min()) < 0):
        raise DataError(f"column {column.name!r}: a code is outside the range from 0 to {column.size - 1}")
    return np.ascontiguousarray(codes, dtype=smallest_unsigned(column.size))


def _weights(column: Any, name: str) -> NDArray[np.float64]:
    """The weights of public rows; an error says which row has none."""
    cells = one_piece(plain_cells(column))
    weights = numbers_of(Column(name, "numeric", edges=(0,)), cells)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise DataError(
            f"column {name!r}: the weight of row {wrong[0] + 1:,} is {cells[int(wrong[0])].as_py()!r} "
            f"({many(len(wrong), 'such row')}); give a number that is not negative, or remove the row"
        )
    return weights


def normalised(weights: NDArray[Any], rows: int, name: str) -> NDArray[np.float64]:
    """Weights of this many rows, scaled to sum to one; `name` is theirs in errors."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (rows,):
        raise DataError(f"{rows} rows need {rows} weights, got an array of shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any():
        raise DataError(f"{name} must be finite and not negative; remove such rows or set their weight to 0")
    if rows == 0:
        return values
    with np.errstate(over="ignore"):
        total = values.sum()
    if total == 0:
        raise DataError(f"{name} are all zero; give at least one row a weight above 0")
    if np.isinf(total):
        return normalised(values / values.max(), rows, name)
    return np.ascontiguousarray(values / total)
