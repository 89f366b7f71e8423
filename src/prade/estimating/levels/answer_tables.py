"""Answers as tables: the columns of the groups, those that describe a cell, and the figures."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError, names_of
from prade.data.declare.column import Column
from prade.data.declare.groups import Grouping
from prade.data.declare.kinds import EPOCH
from prade.estimating.levels.asked_rows import Basis, asked_schema
from prade.estimating.levels.cell_counts import CellCounts
from prade.estimating.levels.statistics import Values
from prade.queries.asked import statistic_of

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.planning.plan import Plan


def count_table(counts: CellCounts, basis: Basis, cells: Mapping[str, Any] | None = None) -> pa.Table:
    """Counts of cells: one row per group and cell. `cells` has the columns that tell a group's cells apart."""
    figures = {"count": counts.counts, "share": counts.shares, "sd": counts.sd, "low": counts.low, "high": counts.high}
    columns = {name: each.ravel() for name, each in figures.items()}
    return _table(counts.grouping, counts.counts.shape[1], cells or {}, columns, basis)


def value_table(values: Values, basis: Basis, column: Column | None = None) -> pa.Table:
    """One value per group; nulls where there are no rows to take it from. Values of a column of dates are dates."""
    columns: dict[str, Any] = {name: getattr(values, name) for name in ("value", "sd", "low", "high")}
    if column is not None and column.dates:
        columns |= {name: [_date(day) for day in columns[name].tolist()] for name in ("value", "low", "high")}
    return _table(values.grouping, 1, {}, columns, basis)


def cell_columns(columns: Sequence[Column], *, missing: bool = True) -> dict[str, pa.Array]:
    """Columns that tell the cells of a marginal apart, in the order of its cells.

    A column with listed values has its value, null for missing. A numeric column AGE has two, AGE_from and AGE_to: the
    bin has the numbers from AGE_from up to, but not including, AGE_to (including it where it is the schema's maximum).
    They are null at an open end, and both are null for missing. Without `missing`, that cell is left out.
    """
    import pyarrow as pa

    sizes = [column.size if missing else column.present for column in columns]
    codes = np.indices(sizes).reshape(len(sizes), -1)
    _need_distinct([name for column in columns for name in _names(column)])
    cells: dict[str, pa.Array] = {}
    for column, code in zip(columns, codes, strict=True):
        listed = {column.name: pa.array([*column.values, *[None] * column.missing], column.domain.natural_type())}
        for name, values in (_bounds(column) if column.numeric else listed).items():
            cells[name] = values.take(pa.array(code))
    return cells


def _need_distinct(names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise DataError(f"the table of answers would have two columns {name!r}: rename the column of that name")


def _bounds(column: Column) -> dict[str, pa.Array]:
    import pyarrow as pa

    missing = [None] * column.missing
    whole = column.integer and all(edge.is_integer() for edge in column.cuts)
    kind = column.domain.natural_type() if whole else pa.float64()
    plain = _date if column.dates else lambda edge: int(edge) if whole and edge is not None else edge
    bounds = [column.min, *column.cuts, *missing], [*column.cuts, column.max, *missing]
    return {name: pa.array(map(plain, edges), kind) for name, edges in zip(_names(column), bounds, strict=True)}


def _date(day: float | None) -> datetime.date | None:
    return None if day is None or np.isnan(day) else EPOCH + datetime.timedelta(days=day)


def _table(
    grouping: Grouping, size: int, cells: Mapping[str, Any], figures: Mapping[str, Any], basis: Basis
) -> pa.Table:
    import pyarrow as pa

    number = len(grouping) * size
    _need_distinct([*grouping.by, *cells, *figures, "basis"])
    columns: dict[str, Any] = {
        name: pa.array([values[k] for values in grouping.values for _ in range(size)])
        for k, name in enumerate(grouping.by)
    }
    columns |= {name: pa.concat_arrays([values] * len(grouping)) for name, values in cells.items()}
    columns |= {name: pa.array(values, from_pandas=True) for name, values in figures.items()}  # NaN becomes null
    return pa.table({**columns, "basis": [basis] * number})


# ---------------------------------------------------------------------- texts for readers


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
        _need_distinct([*table.column_names, name])
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
        table = table.drop_columns(others)
        title = column.name if column.heading in (*table.column_names, *taken) else column.heading
        table = table.set_column(table.column_names.index(first), title, cells)
    return table


def _names(column: Column) -> list[str]:
    return [f"{column.name}_from", f"{column.name}_to"] if column.numeric else [column.name]


def _texts(table: pa.Table, column: Column) -> list[str]:
    """The text for readers of each row of a table."""
    listed = cell_columns([column])
    keys = zip(*(values.to_pylist() for values in listed.values()), strict=True)
    text_of = dict(zip(keys, column.display_texts(), strict=True))
    return [text_of[key] for key in zip(*(table[name].to_pylist() for name in listed), strict=True)]
