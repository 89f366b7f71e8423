"""Joint distributions on coded rows: the small protocol that tables, priors and estimates share.

A joint distribution is a list of rows (one code per column) with weights that sum to one. Whatever has one
answers the same two questions, so a prior, an estimate and a coded table can stand for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError

if TYPE_CHECKING:
    from prade.data.schema import Schema
    from prade.queries.query import Query

Codes = Mapping[str, NDArray[Any]]


def smallest_unsigned(largest: int) -> np.dtype[Any]:
    """The smallest unsigned integer type that holds every number up to `largest`."""
    for candidate in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(candidate).max:
            return np.dtype(candidate)
    return np.dtype(np.uint64)


def joint_codes(schema: Schema, codes: Codes, columns: Sequence[str]) -> NDArray[Any]:
    """One number per row for its cell in the product of `columns`: mixed radix, the last column fastest."""
    absent = [name for name in columns if name not in codes]
    if absent:
        raise DataError(
            f"column {absent[0]!r} is not among the coded columns ({', '.join(codes)}); "
            "encode it or leave it out of the workload"
        )
    dtype = smallest_unsigned(schema.domain_size(columns))
    if len(columns) == 1:
        return np.ascontiguousarray(codes[columns[0]], dtype=dtype)
    rows = len(next(iter(codes.values())))
    result = np.zeros(rows, dtype=dtype)
    for name in columns:
        result *= dtype.type(schema.size(name))
        result += codes[name].astype(dtype, copy=False)
    return result


def mass_per_cell(cells: NDArray[Any], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum of the weights in each of `size` cells."""
    return np.bincount(cells, weights=weights, minlength=size).astype(np.float64, copy=False)


class Joint:
    """Rows in codes with weights that sum to one.

    `project(columns)` is the marginal q(columns); `expect(query)` is the mass of the rows that satisfy it.
    """

    schema: Schema
    codes: Codes
    weights: NDArray[np.float64]
    complete: bool = False  # whether the rows are the whole domain, each cell once

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coded columns."""
        return tuple(self.codes)

    def project(self, columns: Sequence[str]) -> NDArray[np.float64]:
        """The marginal distribution on `columns`, an array with one axis a column."""
        if isinstance(columns, str):
            columns = (columns,)
        shape = self.schema.shape(columns)
        cells = joint_codes(self.schema, self.codes, columns)
        return mass_per_cell(cells, self.weights, self.schema.domain_size(columns)).reshape(shape)

    def expect(self, query: str | Query) -> float:
        """The mass of the rows that satisfy `query`, e.g. ``"AGEP >= 65 and SEX == 2"``."""
        from prade.queries.query import parse

        parsed = parse(query, self.schema) if isinstance(query, str) else query
        return float(self.weights[parsed.mask(self.codes)].sum())
