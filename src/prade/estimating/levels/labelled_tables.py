"""Tables of answers with texts for readers: beside the values and bins, or in place of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from prade.core.errors import DataError, names_of
from prade.estimating.levels.answer_tables import cell_columns
from prade.estimating.levels.asked_rows import asked_schema
from prade.queries.asked import statistic_of

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.declare.column import Column
    from prade.planning.plan import Plan


def described_columns(plan: Plan, columns: Iterable[str], by: str | Sequence[str] = ()) -> list[Column]:
    """The columns that tell the rows of a table of answers apart: those of the groups, and some more."""
    schema = asked_schema(plan)
    return [schema[name] for name in (*names_of(by), *columns)]


def described_by(plan: Plan, query: str, by: str | Sequence[str] = ()) -> list[Column]:
    """The columns that tell the rows of the answer to a question apart."""
    asked = statistic_of(query, asked_schema(plan))
    bins = [asked.column] if asked is not None and asked.kind == "histogram" else []
    return described_columns(plan, bins, by)


def with_labels(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The table with a column NAME_label after each of these columns: the text for readers of its value or bin."""
    import pyarrow as pa

    for column in columns:
        texts, name = _texts(table, column), f"{column.name}_label"
        if name in table.column_names:
            raise DataError(f"the table of answers would have two columns {name!r}: rename the column of that name")
        table = table.add_column(table.column_names.index(_names(column)[-1]) + 1, name, pa.array(texts, pa.string()))
    return table


def for_readers(table: pa.Table, columns: Sequence[Column], taken: Collection[str] = ()) -> pa.Table:
    """The table with titles instead of names and labels instead of values; bins are in one column, in words.

    A title that another column of the table has, or that is among the names that are `taken`, gives way to the name.
    """
    import pyarrow as pa

    for column in columns:
        first, *others = _names(column)
        labelled = column.numeric or column.labels
        cells = pa.array(_texts(table, column), pa.string()) if labelled else table[first]
        kept = table.drop_columns(others)
        place = kept.column_names.index(first)
        title = column.heading
        table = kept.set_column(place, column.name if title in (*kept.column_names, *taken) else title, cells)
    return table


def _names(column: Column) -> list[str]:
    return [f"{column.name}_from", f"{column.name}_to"] if column.numeric else [column.name]


def _texts(table: pa.Table, column: Column) -> list[str]:
    """The text for readers of each row of a table."""
    listed = cell_columns([column])
    keys = zip(*(values.to_pylist() for values in listed.values()), strict=True)
    text_of = dict(zip(keys, column.display_texts(), strict=True))
    return [text_of[key] for key in zip(*(table[name].to_pylist() for name in listed), strict=True)]
