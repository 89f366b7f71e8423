"""A marginal: the table of counts of one or more columns, with one cell for every combination of their codes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import WorkloadError
from prade.data.declare.schema import Schema
from prade.data.joint import Codes, joint_codes
from prade.queries.expression import Mask
from prade.queries.parts import MAX_CELLS, Part, column_names_of
from prade.queries.query import column_of
from prade.queries.query_text import backticked


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
