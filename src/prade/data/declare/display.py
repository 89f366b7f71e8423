"""Texts for readers: a codebook's titles and labels for a schema, and groups by their labels instead of their codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from prade.core.errors import DataError, PradeError, SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.kinds import MISSING, label_key
from prade.data.declare.schema import Schema
from prade.data.read.coding import code_cells
from prade.data.read.tables import read_table

if TYPE_CHECKING:
    from prade.data.declare.groups import Grouping

WORDS = ("title", "description", "unit")
HEADER = ("column", *WORDS, "value", "label")


class Labelling(NamedTuple):
    """A schema with the labels of a codebook, and what of the codebook could not be used."""

    schema: Schema
    columns: tuple[str, ...]  # with an entry in the codebook
    values: int  # that got a label
    without_entry: tuple[str, ...]  # columns of the schema
    unknown_columns: tuple[str, ...]  # columns of the codebook that the schema does not have
    unknown_values: dict[str, tuple[str, ...]]  # by column: values of the codebook that have no label of their own


def labelled(schema: Schema, codebook: Any) -> Labelling:
    """A schema with the labels of a codebook, a table or file; a `CsvFile` says that it is not in UTF-8 with commas.

    They replace those that the schema has; two different ones in the codebook are refused.
    """
    columns: list[Column] = []
    values, unknown = 0, dict[str, tuple[str, ...]]()
    try:
        rows = _rows(codebook)
        for column in schema:
            words, labels, lost = _entries(column, [row for row in rows if row["column"] == column.name])
            columns.append(replace(column, **words, labels={**column.labels, **labels}))
            values += len(labels)
            unknown |= {column.name: tuple(lost)} if lost else {}
    except PradeError as error:
        raise error.within(str(codebook)[:200]) from None
    entries = dict.fromkeys(row["column"] for row in rows)
    return Labelling(
        Schema(columns, linked=schema.linked, invariants=schema.invariants),
        tuple(name for name in schema.names if name in entries),
        values,
        tuple(name for name in schema.names if name not in entries),
        tuple(name for name in entries if name not in schema),
        unknown,
    )


def _rows(codebook: Any) -> list[dict[str, str]]:
    """The rows of a codebook, without spaces around and double spaces in cells; absent cells are empty."""
    read_table(codebook)  # refuses a file in another encoding
    table = read_table(codebook, guess=False)
    header = [name.strip().lower() for name in table.column_names]
    if len({*header}) < len(header) or not {"column"} <= {*header} <= {*HEADER}:
        hint = "".join(closest(name, HEADER) for name in header if name not in HEADER)
        raise DataError(f"the header is {', '.join(header)}; give column and any of {', '.join(HEADER[1:])}{hint}")
    cells = [[" ".join(str(cell or "").split()) for cell in column.to_pylist()] for column in table.columns]
    rows = [dict.fromkeys(HEADER, "") | dict(zip(header, row, strict=True)) for row in zip(*cells, strict=True)]
    for number, row in enumerate(rows, start=1):
        if not row["column"] or (row["label"] and not row["value"]):
            raise DataError(f"row {number} needs a column, and for a label a value ({MISSING!r} for empty cells)")
    return rows


def _entries(
    column: Column, rows: Sequence[Mapping[str, str]]
) -> tuple[dict[str, Any], dict[str, str], dict[str, None]]:
    """The words about a column, the labels of its values, and the values that have none; contradictions are refused."""
    words: dict[str, Any] = {}
    labels: dict[str, str] = {}
    lost: dict[str, None] = {}

    def note(texts: dict[str, str], key: str, text: str, what: str) -> None:
        if (before := texts.setdefault(key, text)) != text:
            raise SchemaError(
                f"column {column.name!r} has two texts for {what}: {before[:40]!r} and {text[:40]!r}; remove one"
            )

    for row, key in zip(rows, _keys(column, [row["value"] for row in rows]), strict=True):
        for what in WORDS:
            if row[what]:
                note(words, what, row[what], f"the {what}")
        if row["label"] and key is not None:
            note(labels, key, row["label"], f"the label of {row['value']}")
        elif row["label"]:
            lost[row["value"]] = None
    return words, labels, lost


def _keys(column: Column, values: Sequence[str]) -> list[str | None]:
    """For each value of a codebook, the key of its label; None if the column does not have the value."""
    if column.groups and not column.values:
        return list(values)
    listed = (*column.values, *[None] * column.missing)
    missing = column.missing and MISSING not in map(label_key, column.values)
    codes, fits = code_cells(column, pa.array(values, pa.string()))
    return [
        MISSING if missing and value == MISSING else label_key(listed[code]) if fit and not column.numeric else None
        for value, code, fit in zip(values, codes.tolist(), fits.tolist(), strict=True)
    ]


def group_texts(schema: Schema, grouping: Grouping) -> list[str]:
    """One text for readers per group: the label of its value in each column, or the column's title and the value.

    >>> from prade.data.declare.groups import Groups
    >>> from prade.data.declare.schema import Schema
    >>> schema = Schema([Column("STATE", "group", labels={"17": "Illinois"}), Column("PUMA", "group")])
    >>> group_texts(schema, Groups.of({"STATE": [17, 39], "PUMA": [100, 100]}).level(["STATE", "PUMA"]))
    ['Illinois, PUMA 100', 'STATE 39, PUMA 100']
    """
    texts: list[list[str]] = [[] for _ in grouping.values]
    for name, values in zip(grouping.by, zip(*grouping.values, strict=True), strict=True):
        listed = Column(name, "group", values=tuple(dict.fromkeys(values)))
        column = listed.labelled_like(schema[name]) if name in schema else listed
        text_of = dict(zip(column.values, column.display_texts(), strict=True))
        for group, value in enumerate(values):
            labelled = column.label_of(value) is not None
            texts[group].append(text_of[value] if labelled else f"{column.title or name} {text_of[value]}")
    return [", ".join(each) or "all" for each in texts]
