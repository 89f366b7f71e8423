"""Answers with the types of the synthetic table, so that the two can be joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prade.data.public.table import PublicTable
from prade.data.read.frames import Frame, Like
from prade.planning.plan import Plan
from prade.sampling.table import typed_as_public

if TYPE_CHECKING:
    import pyarrow as pa


def like_public(table: pa.Table, plan: Plan, public: PublicTable, like: Like | None = None) -> Frame:
    """A table of answers whose columns have the types that they have in the synthetic table.

    It is a table like the public one, or of the kind that `like` names.
    """
    decoder = public.decoder(plan.schema)
    for column in plan.groups.columns:
        if column.name in table.column_names and column.name in public.typed.column_names:
            table = _replaced(table, column.name, typed_as_public(column, public.typed[column.name]), column.values)
    for column in plan.schema:
        if column.name in table.column_names and column.kind == "categorical":
            table = _replaced(table, column.name, decoder.listed(column.name), column.values)
    return decoder.types.framed(table, like or public.like)


def _replaced(table: pa.Table, name: str, written: Any, values: tuple[Any, ...]) -> pa.Table:
    """The table with each of these values of a column as the public table writes it."""
    import pyarrow as pa

    code = {value: number for number, value in enumerate(values)}
    codes = pa.array([None if cell is None else code[cell] for cell in table[name].to_pylist()], pa.int64())
    return table.set_column(table.column_names.index(name), name, written.take(codes))
