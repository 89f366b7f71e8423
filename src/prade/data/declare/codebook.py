"""Codebooks: CSV files with titles, descriptions and units of columns, and labels of their values.

Two forms are read, which the page of file formats describes: a table with the columns of `HEADER`, and the Census
Bureau's data dictionary (`DICTIONARY`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from prade.core.errors import DataError, PradeError, SchemaError, closest
from prade.core.files import opened
from prade.data.declare.column import Column
from prade.data.declare.kinds import MISSING, label_key
from prade.data.declare.schema import Schema
from prade.data.read.coding import code_cells
from prade.data.read.csv import first_line_outside, format_of, header_of

WORDS = ("title", "description", "unit")
HEADER = ("column", *WORDS, "value", "label")
DICTIONARY = {"NAME": 5, "VAL": 7}  # the lines of the Census Bureau's form, and their number of cells


class Note(NamedTuple):
    """One text of a codebook: a title, description or unit of a column, or the label of a value."""

    line: int
    column: str
    what: str  # one of WORDS, or "label"
    text: str
    value: str = ""


class Labelling(NamedTuple):
    """A schema with the labels of a codebook, and what of the codebook could not be used."""

    schema: Schema
    columns: tuple[str, ...]  # with an entry in the codebook
    values: int  # that got a label
    without_entry: tuple[str, ...]  # columns of the schema
    unknown_columns: tuple[str, ...]  # columns of the codebook that the schema does not have
    unknown_values: dict[str, tuple[str, ...]]  # by column: values of the codebook that it does not have


def labelled(schema: Schema, path: str | PathLike[str]) -> Labelling:
    """A schema with the labels of a codebook, in place of its own; a `CsvFile` says how the file is written."""
    try:
        records = _records(path)
        notes = list(_of_dictionary(records) if records[0][1][0] in DICTIONARY else _of_table(records))
        columns, values, unknown = list[Column](), 0, dict[str, tuple[str, ...]]()
        for column in schema:
            words, labels, lost = _texts_of(column, [note for note in notes if note.column == column.name])
            columns.append(replace(column, **words, labels={**column.labels, **labels}))
            values += len(labels)
            unknown |= {column.name: lost} if lost else {}
    except PradeError as error:
        raise error.within(fspath(path)) from None
    entries = dict.fromkeys(note.column for note in notes)
    return Labelling(
        Schema(columns, linked=schema.linked, invariants=schema.invariants),
        tuple(name for name in schema.names if name in entries),
        values,
        tuple(name for name in schema.names if name not in entries),
        tuple(name for name in entries if name not in schema),
        unknown,
    )


def _texts_of(column: Column, notes: Sequence[Note]) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """The words about a column, the labels of its values, and the values that it does not have."""
    first: dict[tuple[str, str], Note] = {}
    lost: dict[str, None] = {}
    for note, key in zip(notes, _keys(column, [note.value for note in notes]), strict=True):
        if note.what == "label" and key is None:
            lost[note.value] = None
            continue
        before = first.setdefault((note.what, key or "" if note.what == "label" else ""), note)
        if before.text != note.text:
            what = f"the label of {note.value}" if note.what == "label" else f"the {note.what}"
            raise SchemaError(
                f"lines {before.line} and {note.line} contradict each other about {what} in column "
                f"{note.column!r}: {before.text[:40]!r} and {note.text[:40]!r}; remove one"
            )
    words: dict[str, Any] = {what: note.text for (what, _), note in first.items() if what != "label"}
    return words, {key: note.text for (what, key), note in first.items() if what == "label"}, tuple(lost)


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


def _records(path: str | PathLike[str]) -> list[tuple[int, list[str]]]:
    """The number and the cells of each line that is not empty, with single spaces in them and none around."""
    form = format_of(path)
    if not Path(path).is_file():
        raise DataError(f"there is no codebook {path}; check the path")
    try:
        header_of(path, form)  # refuses an empty file, another encoding and another delimiter
        if (line := first_line_outside(path, form.encoding)) is not None:
            raise DataError(f"line {line} of {path} is not text in the encoding {form.encoding}", remedy="encoding")
        with opened(path) as file:
            text = file.read().decode("utf-8-sig" if form.encoding == "utf-8" else form.encoding)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter, strict=True)
        records = [(reader.line_num, [" ".join(cell.split()) for cell in row]) for row in reader]
    except (OSError, EOFError, csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file that can be read ({error}); save the codebook as CSV") from None
    if not any(any(cells) for _, cells in records):
        raise DataError(f"{path} is empty; a codebook begins with the header {','.join(HEADER)}")
    return [(line, cells) for line, cells in records if any(cells)]


def _of_table(records: Sequence[tuple[int, list[str]]]) -> Iterator[Note]:
    (_, first), *rows = records
    header = [name.lower() for name in first]
    if len({*header}) < len(header) or not {"column"} <= {*header} <= {*HEADER}:
        hint = "".join(closest(name, HEADER) for name in header if name not in HEADER)
        raise DataError(f"the header is {', '.join(header)}; give column and any of {', '.join(HEADER[1:])}{hint}")
    for line, cells in rows:
        row = dict.fromkeys(HEADER, "") | dict(zip(header, cells, strict=False))
        if len(cells) > len(header) or not row["column"] or (row["label"] and not row["value"]):
            raise DataError(
                f"line {line} has {len(cells)} cells; it needs a column, a value if it has a label ({MISSING!r} for "
                f"empty cells), and at most {len(header)} cells: put texts with commas in quotes"
            )
        yield from (Note(line, row["column"], what, row[what]) for what in WORDS if row[what])
        if row["label"]:
            yield Note(line, row["column"], "label", row["label"], row["value"])


def _of_dictionary(records: Sequence[tuple[int, list[str]]]) -> Iterator[Note]:
    for line, cells in records:
        kind, size = cells[0], DICTIONARY.get(cells[0], 0)
        if len(cells) < size or any(cells[size:]):
            raise DataError(
                f"line {line} begins with {kind[:40]!r} and has {len(cells)} cells; the lines of this codebook are "
                "NAME,column,type,length,title and VAL,column,type,length,from,to,label"
            )
        if kind == "NAME" and cells[4]:
            yield Note(line, cells[1], "title", cells[4])
        elif kind == "VAL" and cells[6]:
            low = MISSING if re.fullmatch("b+", cells[4]) else cells[4]
            yield Note(line, cells[1], "label", cells[6], low if cells[4] == cells[5] else f"{low} to {cells[5]}")
