"""`Joint`, a joint distribution on coded rows: the base class of coded tables, priors and estimates.

A joint distribution is a list of rows (one code per column) with weights that sum to one. Coded tables, priors and
estimates all have `project(columns)`, which gives a marginal distribution, and all can be passed to
`prade.queries.query.expect`, so each can be used in place of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import mass_per_cell, smallest_unsigned
from prade.core.errors import DataError, names_of

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

Codes = Mapping[str, NDArray[Any]]


def joint_codes(schema: Schema, codes: Codes, columns: Sequence[str]) -> NDArray[Any]:
    """The number of each row's cell in the product of `columns`, in C order (the last column varies fastest)."""
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
