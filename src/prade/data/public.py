"""`Public`, the encoded public table: every row with its weight and its public group.

It differs from a `Prior` in that rows are not merged, so that the rows of each group can be told apart: estimates use
them as priors for the private groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.documents import Malformed
from prade.core.errors import DataError
from prade.data.cell_types import require_plain_type
from prade.data.encoding import encode
from prade.data.groups import Grouping, Groups
from prade.data.parquet_with_header import (
    WEIGHT_FIELD,
    damage_reported,
    floats,
    read_header,
    whole_numbers,
    write_with_header,
)
from prade.data.prior import Prior
from prade.data.schema import Schema
from prade.data.tables import plain_cells, read_table

FORMAT = 1
GROUP_FIELD = "prade:group"
AGAIN = "run `prade estimate` again, which spends nothing"


class _Header(msgspec.Struct):
    by: tuple[str, ...]
    groups: list[list[str]]
    schema: str


@dataclass(frozen=True, eq=False)
class Public:
    """Public rows with their weights (`prior`), the public groups (`groups`), and the number of each row's `group`.

    Identical rows are not merged, because they may be in different groups.

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
        """Encode a public table or file. `by` are group columns; those that the table does not have are ignored.

        Rows of weight 0 are left out.
        """
        import pyarrow as pa

        rows = read_table(table, guess=False)
        for index, name in enumerate(rows.column_names):
            if name in (*by, weight) and pa.types.is_union(rows[name].type):  # Python objects, each with its own type
                rows = rows.set_column(index, name, read_table(table, [name])[name])
        coded = encode(schema, rows, weight=weight)
        if weight is not None:
            with_weight = np.flatnonzero(coded.weights)
            coded, rows = coded.take(with_weight), rows.take(with_weight)
        prior = Prior(schema, coded.codes, coded.weights)
        present = [name for name in by if name in rows.column_names]
        if not present:
            return cls(prior, Groups.of().level(()), np.zeros(len(prior), np.int64))
        for name in present:
            require_plain_type(name, rows[name].type)
        plain = pa.table({name: plain_cells(rows[name]) for name in present})
        listed = plain.group_by(present).aggregate([]).drop_null()
        groups = Groups.of(listed.sort_by([(name, "ascending") for name in present]))
        level = groups.level(present)
        number = groups.keyed(present, level.number).numbers(rows)
        if (number < 0).any():
            raise DataError(
                f"{int((number < 0).sum()):,} public rows have no value in {', '.join(present)}; remove these rows"
            )
        return cls(prior, level, number)

    @cached_property
    def group_weights(self) -> Floats:
        """The total weight of each public group."""
        return mass_per_cell(self.group, self.prior.weights, len(self.groups))

    def __len__(self) -> int:
        return len(self.prior)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the coded rows, their weights and groups to a parquet file: all that estimates need."""
        import pyarrow as pa

        columns = {**self.prior.codes, WEIGHT_FIELD: self.prior.weights, GROUP_FIELD: self.group}
        if len(columns) < len(self.prior.codes) + 2:
            raise DataError(
                f"a column has the name {WEIGHT_FIELD!r} or {GROUP_FIELD!r}, which the file needs for itself; rename it"
            )
        values = [[str(value) for value in row] for row in self.groups.values]
        header = {"format": FORMAT, "by": self.groups.by, "groups": values, "schema": self.prior.schema.to_toml()}
        write_with_header(pa.table(columns), header, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Public:
        """Read a file that `save` wrote; the groups' values come back as text."""
        table = read_table(path)
        with damage_reported(path, "saved public rows", AGAIN):
            header = read_header(table, _Header, path, FORMAT)
            schema, names = Schema.from_toml(header.schema), [*table.column_names]
            if {*names} != {*schema.coded, WEIGHT_FIELD, GROUP_FIELD}:
                raise Malformed("the columns are not those of the schema")
            weights, group = floats(table, WEIGHT_FIELD), whole_numbers(table, GROUP_FIELD)
            prior = Prior(schema, {name: whole_numbers(table, name) for name in names[:-2]}, weights)
            if not np.allclose(prior.weights, weights, rtol=1e-9, atol=0):
                raise Malformed("the weights do not sum to one")
            prior.weights = weights  # exactly as saved: dividing by their sum again may change the last bit
            if any(len(row) != len(header.by) for row in header.groups) or not header.groups:
                raise Malformed("a group does not have one value for each of its columns")
            if group.min() < 0 or group.max() >= len(header.groups):
                raise Malformed("a row is in a group that is not listed")
            values = tuple(tuple(row) for row in header.groups)
            return cls(prior, Grouping(header.by, values, np.arange(len(values))), group.astype(np.int64))

    def take(self, rows: NDArray[Any]) -> Public:
        """Some of the rows; the groups keep their numbers."""
        codes = {name: code[rows] for name, code in self.prior.codes.items()}
        return Public(Prior(self.prior.schema, codes, self.prior.weights[rows]), self.groups, self.group[rows])


def kept(public: Public, rows: Ints) -> Public:
    """Some of the rows, and the groups that these are in, numbered anew."""
    taken = public.take(rows)
    known, group = np.unique(taken.group, return_inverse=True)
    values = tuple(public.groups.values[number] for number in known)
    groups = Grouping(public.groups.by, values, np.arange(len(known)))
    return replace(taken, groups=groups, group=group.astype(np.int64))


def group_columns(groups: Groups, schema: Schema) -> tuple[str, ...]:
    """The columns that define public groups: those of the list of groups, and the schema's own group columns."""
    return tuple(dict.fromkeys([*groups.names, *schema.groups]))
