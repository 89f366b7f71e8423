"""The public side: rows that estimates may be made of, and the public group that each of them is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.codec import encode
from prade.errors import DataError
from prade.groups import Grouping, Groups
from prade.joint import mass_per_cell
from prade.prior import Prior
from prade.schema import Schema
from prade.tables import plain_cells, read_table

if TYPE_CHECKING:
    from prade.layout import Layout
    from prade.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Public:
    """Public rows with their weights (`prior`), and for each row its place in `groups`, the public groups.

    Rows are kept as they are, one by one, so that each knows where it is from.

    >>> from prade import Column, Schema
    >>> schema = Schema([Column("PLACE", "group"), Column("AGE", "numeric", edges=[18, 65])])
    >>> public = Public.of(schema, {"PLACE": ["a", "b", "a"], "AGE": [3, 40, 70]}, by=["PLACE"])
    >>> public.groups.values, public.group
    ((('a',), ('b',)), array([0, 1, 0]))
    """

    prior: Prior
    groups: Grouping
    group: Ints

    @classmethod
    def of(cls, schema: Schema, table: Any, by: Sequence[str] = (), *, weight: str | None = None) -> Public:
        """From a public table or file. `by` are group columns; those that the table does not have are passed over."""
        import pyarrow as pa

        found = read_table(table, guess=False)
        coded = encode(schema, found, weight=weight)
        prior = Prior(schema, coded.codes, coded.weights)
        present = [name for name in by if name in found.column_names]
        if not present:
            return cls(prior, Groups.of().level(()), np.zeros(len(prior), np.int64))
        plain = pa.table({name: plain_cells(found[name]) for name in present})
        listed = plain.group_by(present).aggregate([]).drop_null()
        groups = Groups.of(listed.sort_by([(name, "ascending") for name in present]))
        level = groups.level(present)
        number = groups.keyed(present, level.number).numbers(found)
        if (number < 0).any():
            raise DataError(
                f"{int((number < 0).sum()):,} public rows have no value in {', '.join(present)}; remove them"
            )
        return cls(prior, level, number)

    @cached_property
    def group_weights(self) -> Floats:
        """Weight of each public group."""
        return mass_per_cell(self.group, self.prior.weights, len(self.groups))

    def masses(self, layout: Layout) -> Floats:
        """Cells of every public group as shares: [cells, public groups]. `layout` is one of these rows."""
        if layout.workload not in self._masses:
            columns = [
                layout.masses_of(layout.collapsed(np.where(self.group == number, self.prior.weights, 0.0)))
                for number in range(len(self.groups))
            ]
            self._masses[layout.workload] = np.stack(columns, axis=1) / self.group_weights
        return self._masses[layout.workload]

    @cached_property
    def _masses(self) -> dict[Workload, Floats]:
        return {}

    def __len__(self) -> int:
        return len(self.prior)

    def take(self, rows: NDArray[Any]) -> Public:
        """Some of the rows; the groups stay numbered as they are."""
        codes = {name: code[rows] for name, code in self.prior.codes.items()}
        return Public(Prior(self.prior.schema, codes, self.prior.weights[rows]), self.groups, self.group[rows])

    def within(self, level: Grouping) -> Ints:
        """For each public row, the group of a plan's level that it is in: that of the same name. -1 for none."""
        if not level.by or any(name not in self.groups.by for name in level.by):
            return np.full(len(self), -1 if level.by else 0, np.int64)
        places = [self.groups.by.index(name) for name in level.by]
        known = {tuple(map(str, values)): number for number, values in enumerate(level.values)}
        own = [known.get(tuple(str(values[place]) for place in places), -1) for values in self.groups.values]
        return np.array(own, np.int64)[self.group]
