"""How many queries of a workload one row can satisfy, which determines the sensitivity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.queries.parts import Part

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema

MAX_ENUMERATED = 2**20  # cells: larger joint domains are not enumerated


def most_per_row(schema: Schema, parts: Sequence[Part]) -> int:
    """The largest number of queries that one row can satisfy: never too small, and exact where it can be enumerated.

    A row is in at most one cell of a part, and in exactly one if the part covers all rows. The other parts are grouped
    so that no two groups share a column. A row's codes in different groups are independent of each other, so the
    maxima of the groups add up. A group's maximum is exact if its joint domain has at most 2**20 cells; a larger group
    contributes its number of parts. Parts bound to the rows of a support contribute their maximum over these rows: a
    row outside the support is in none of their cells.
    """
    free = [part for part in parts if part.rows is None]
    most = sum(part.covers for part in free)
    for columns, members in _groups([part for part in free if not part.covers]):
        shape = schema.shape(columns)
        if math.prod(shape) > MAX_ENUMERATED:
            most += len(members)
            continue
        counts = np.zeros(shape, dtype=np.int64)
        for part in members:
            counts += _aligned(part.inside(schema), part.columns, columns)
        most += int(counts.max())
    bound = [part for part in parts if part.rows is not None]
    if bound:
        per_row = np.zeros(len(bound[0].inside(schema)), dtype=np.int64)
        for part in bound:
            per_row += part.inside(schema)
        most += int(per_row.max())
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
