"""Turning codes back into a table like the public one: same types, same column order, missing cells where coded.

The numbers of a row are those of a public row with the same codes (`prade.data.public.donors`), if there is one. A
column that has no donor takes a public value of its bin, in proportion to how often it occurs (or to the weights of its
rows). Both preserve heaping at round numbers and the shape of the tails. If the public table has no value in a bin,
numbers are drawn uniformly from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Chances, Flags, Floats, Ints
from prade.core.errors import DataError
from prade.core.execution import cores, finishing
from prade.data.cells import one_piece
from prade.data.columns import AT_ONCE, Columns
from prade.data.declare.column import Column
from prade.data.matching import numbers_of
from prade.data.menus import Menu, menu_of_public, menu_of_schema
from prade.data.public.donors import Copies, Donors
from prade.data.read.frames import DeclaredTypes, Frame, Like, check_like
from prade.data.read.tables import plain_cells, read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.declare.schema import Schema
    from prade.data.joint import Joint


class Decoder:
    """Turns codes into a table; made by `Decoder.fit` from a public table or by `Decoder.plain` from a schema alone.

    >>> from prade.data.declare.schema import Column, Schema
    >>> from prade.data.encoding import encode
    >>> schema = Schema([Column("PAY", "numeric", edges=[1000, 2000], integer=True, min=0)])
    >>> public = {"PAY": [500, 1500, 1500, 9000]}
    >>> decoder = Decoder.fit(schema, public)
    >>> decoder.decode(encode(schema, {"PAY": [1, 1999]}), seed=0)["PAY"].to_pylist()
    [500, 1500]
    """

    def __init__(
        self, schema: Schema, menus: Sequence[Menu], types: DeclaredTypes, donors: Donors | None = None
    ) -> None:
        self.schema = schema
        self.types = types
        self._menus = {menu.column.name: menu for menu in menus}
        self._donors = donors

    @classmethod
    def fit(cls, schema: Schema, public: Any, *, weight: str | None = None) -> Decoder:
        """Learn the values of each bin, the types and the column order from a public table.

        `weight` names a column of row weights: donors are drawn in proportion to them, and never from rows of weight 0.
        """
        table = public if isinstance(public, Columns) else read_table(public)
        weights = np.ones(table.num_rows)
        if weight is not None:
            cells = one_piece(plain_cells(read_table(table, [weight])[weight]))
            weights = _checked_weights(numbers_of(Column(weight, "numeric", edges=(0,)), cells), weight)
        without_values = {name for name in schema.groups if not schema[name].values}
        read_table(table, [name for name in schema.coded if name not in table.column_names])  # an error names it
        names = [name for name in table.column_names if name in schema and name not in without_values]
        threads = min(cores(), AT_ONCE)
        menus = finishing(lambda name: menu_of_public(schema[name], table[name], weights), names, threads)
        codes = {menu.column.name: menu.codes for menu in menus}
        donors = Donors(schema, codes, weights[weights > 0]) if weights.any() else None
        return cls(schema, menus, DeclaredTypes.of(public, table), donors)

    @classmethod
    def plain(cls, schema: Schema) -> Decoder:
        """A decoder without public values: listed values as the schema lists them, numbers uniform within their bin."""
        columns = [column for column in schema.columns if column.kind != "group" or column.values]
        return cls(schema, [menu_of_schema(column) for column in columns], DeclaredTypes())

    def decode(self, coded: Joint, *, seed: int | Chances, like: Like = "pyarrow", drawn: Ints | None = None) -> Frame:
        """The rows of `coded` as a table; the same seed gives the same table.

        `drawn` are the numbers of the public rows (of those with weight) that the rows were drawn from, if known. With
        `Chances` for a seed, a row's cells do not depend on the rows that are decoded with it.
        """
        import pyarrow as pa

        check_like(like)
        for name in coded.columns:
            if name not in self._menus:
                raise DataError(
                    f"column {name!r} was not in the public table that the decoder was made from; leave it out, or "
                    "make the decoder from a table that has it"
                )
        chances = seed if isinstance(seed, Chances) else Chances.of_groups(seed, [0], [len(coded)])
        names = [name for name in self._menus if name in coded.codes]
        donors = {} if self._donors is None else self._donors.find(coded.codes, chances, drawn)
        cells = [self._menus[name].draw(coded.codes[name], chances, donors.get(name)) for name in names]
        return self.types.framed(self.types.of_table(pa.table(cells, names=names)), like)

    def listed(self, name: str) -> pa.Array:
        """The values of a column with listed values, in the order of its codes, as the public table writes them."""
        import pyarrow as pa

        return self.types.of_table(pa.table([self._menus[name].values], names=[name]))[name].combine_chunks()

    def copied(self, table: pa.Table, coded: Joint | None = None, drawn: Ints | None = None) -> Flags:
        """Whether each row of a table has, in every coded column, the values of one and the same public row.

        `coded` and `drawn` are what the table was decoded from, if known. A row that has the codes of the public row it
        was drawn from has its values, too, and is a copy if these are in the domain: nearly all rows need no look at
        their cells.
        """
        copied = np.zeros(table.num_rows, np.bool_)
        if coded is not None and drawn is not None and self._donors is not None:
            copied = self._donors.agree(coded.codes, drawn)
            copied[copied] = self._copies.whole[drawn[copied]]
        others = np.flatnonzero(~copied)
        if len(others):
            copied[others] = self._copies.flags(table.take(others))
        return copied

    @cached_property
    def _copies(self) -> Copies:
        return Copies([self._menus[name] for name in self.schema.coded])


def _checked_weights(weights: Floats, name: str) -> Floats:
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"the weights in {name!r} must be finite and not negative; remove such rows or set them to 0")
    return weights
