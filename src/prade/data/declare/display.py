"""Texts for readers: columns, values, bins and groups by their titles and labels instead of their codes.

A labelled value is shown by its label. If another cell of the column has the same text, the code follows: "other (6)".
A value without a label is shown unchanged, a bin in words: "10 to 39". The unit is part of the column's heading,
"Wages (US dollars a year)", instead of every bin.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, NamedTuple

from prade.core.errors import DataError, SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.kinds import MISSING, label_key
from prade.data.declare.schema import Schema
from prade.data.read.coding import code_cells
from prade.data.read.csv import first_line_outside, format_of, header_of, opened

if TYPE_CHECKING:
    from prade.data.declare.groups import Grouping
    from prade.data.declare.schema import Schema

HEADER = ("column", "title", "description", "unit", "value", "label")
WORDS = ("title", "description", "unit")
DICTIONARY = {"NAME": 5, "VAL": 7}  # the lines of the Census Bureau's form, and their number of cells


class Note(NamedTuple):
    """One text of a codebook: a title, description or unit of a column, or the label of a value."""

    line: int
    column: str
    what: str  # one of WORDS, "label", or "range" for a label of several values
    text: str
    value: str = ""


@dataclass(frozen=True)
class Labelling:
    """A schema with the labels of a codebook, and what of the codebook could not be used."""

    schema: Schema
    columns: tuple[str, ...]  # with an entry in the codebook
    values: int  # that got a label
    without_entry: tuple[str, ...]  # columns of the schema
    unknown_columns: tuple[str, ...]  # columns of the codebook that the schema does not have
    unknown_values: dict[str, tuple[str, ...]]  # by column: values of the codebook that the schema does not have
    of_bins: int  # labels of ranges, and of numbers in binned columns, which have no labels


@dataclass(frozen=True)
class Codebook:
    """The content of a codebook file."""

    path: str
    notes: tuple[Note, ...]

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Codebook:
        """Read a codebook of either form; give a `CsvFile` if the file is not in UTF-8 with commas."""
        records = _records(path)
        notes = _of_dictionary(records) if records[0][1][0] in DICTIONARY else _of_table(records)
        try:
            return cls(fspath(path), tuple(notes))
        except DataError as error:
            raise error.within(fspath(path)) from None

    def label(self, schema: Schema) -> Labelling:
        """The schema with these labels. They replace those that it has; two different ones in the file are refused."""
        by_column: dict[str, list[Note]] = {}
        for note in self.notes:
            by_column.setdefault(note.column, []).append(note)
        columns: list[Column] = []
        unknown_values: dict[str, tuple[str, ...]] = {}
        values = of_bins = 0
        for column in schema:
            notes = by_column.get(column.name, [])
            words = _agreed((note for note in notes if note.what in WORDS), lambda note: note.what, self.path)
            labels, unknown, ranges = self._labels(column, [note for note in notes if note.what not in WORDS])
            columns.append(self._labelled(column, words, labels))
            values, of_bins = values + len(labels), of_bins + ranges
            unknown_values |= {column.name: unknown} if unknown else {}
        return Labelling(
            Schema(columns, linked=schema.linked, invariants=schema.invariants),
            tuple(name for name in schema.names if name in by_column),
            values,
            tuple(name for name in schema.names if name not in by_column),
            tuple(name for name in by_column if name not in schema),
            unknown_values,
            of_bins,
        )

    def _labelled(self, column: Column, words: Mapping[str, str], labels: Mapping[str, str]) -> Column:
        title, description, unit = (words.get(what, getattr(column, what)) for what in WORDS)
        every_label = {**column.labels, **labels}
        try:
            return replace(column, title=title, description=description, unit=unit, labels=every_label)
        except SchemaError as error:
            raise error.within(self.path) from None

    def _labels(self, column: Column, notes: Sequence[Note]) -> tuple[dict[str, str], tuple[str, ...], int]:
        """The labels of a column by key, the values that it does not have, and the number of labels of bins."""
        single = [note for note in notes if note.what == "label"]
        key_of = dict(zip(single, _keys(column, [note.value for note in single]), strict=True))
        found = _agreed(
            (note for note in single if key_of[note] is not None), lambda note: key_of[note] or "", self.path
        )
        lost = [note for note in single if key_of[note] is None]
        unknown = [note.value for note in lost if not column.numeric or note.value == MISSING]
        return found, tuple(dict.fromkeys(unknown)), len(notes) - len(single) + len(lost) - len(unknown)


def _agreed(notes: Iterable[Note], about: Callable[[Note], str], path: str) -> dict[str, str]:
    """The text on each thing that notes are about; an error where two notes on one thing differ."""
    found: dict[str, Note] = {}
    for note in notes:
        before = found.setdefault(about(note), note)
        if before.text != note.text:
            what = f"the label of {note.value}" if note.what == "label" else f"the {note.what}"
            raise SchemaError(
                f"{path}: lines {before.line} and {note.line} contradict each other about {what} in column "
                f"{note.column!r}: {before.text[:40]!r} and {note.text[:40]!r}; remove one"
            )
    return {key: note.text for key, note in found.items()}


def _keys(column: Column, values: Sequence[str]) -> list[str | None]:
    """For each value of a codebook, the key of its label; None if the column does not have the value."""
    import pyarrow as pa

    if column.groups and not column.values:
        return list(values)
    listed = (*column.values, *[None] * column.missing)
    missing = column.missing and MISSING not in map(label_key, column.values)
    codes, fits = code_cells(column, pa.array(values, pa.string()))
    known = fits & (not column.numeric)
    return [
        MISSING if missing and value == MISSING else label_key(listed[code]) if inside else None
        for value, code, inside in zip(values, codes.tolist(), known.tolist(), strict=True)
    ]


# ---------------------------------------------------------------------- reading


def _records(path: str | PathLike[str]) -> list[tuple[int, list[str]]]:
    """The number and the cells of each line that is not empty, without spaces around and double spaces in them."""
    form = format_of(path)
    try:
        header_of(path, form)  # refuses an empty file, another encoding and another delimiter
        if (line := first_line_outside(path, form.encoding)) is not None:
            raise DataError(f"line {line} of {path} is not text in the encoding {form.encoding}", remedy="encoding")
        with opened(path) as file:
            text = file.read().decode("utf-8-sig" if form.encoding == "utf-8" else form.encoding)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter)
        records = [(reader.line_num, [" ".join(cell.split()) for cell in row]) for row in reader]
    except FileNotFoundError:
        raise DataError(f"there is no codebook {path}; check the path") from None
    except (csv.Error, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"{path} is not a CSV file ({error}); save the codebook as CSV") from None
    found = [(line, cells) for line, cells in records if any(cells)]
    if not found:
        raise DataError(f"{path} is empty; a codebook begins with the header {','.join(HEADER)}")
    return found


def _of_table(records: Sequence[tuple[int, list[str]]]) -> Iterator[Note]:
    (_, first), *rows = records
    header = [name.lower() for name in first]
    for name in header:
        if name not in HEADER or header.count(name) > 1:
            wrong = "appears twice" if name in HEADER else f"is unknown{closest(name, HEADER)}"
            raise DataError(f"the column {name!r} of the codebook {wrong}; the columns are {', '.join(HEADER)}")
    if "column" not in header:
        raise DataError(f"the codebook has no column 'column'; the columns are {', '.join(HEADER)}")
    for line, cells in rows:
        if len(cells) > len(header):
            raise DataError(f"line {line} has {len(cells)} cells, but the header {len(header)}; put texts in quotes")
        row = dict.fromkeys(HEADER, "") | dict(zip(header, cells, strict=False))
        if not row["column"]:
            raise DataError(f"line {line} does not name a column; write its name in every line")
        yield from (Note(line, row["column"], what, row[what]) for what in WORDS if row[what])
        if row["label"] and not row["value"]:
            raise DataError(
                f'line {line} has the label {row["label"][:40]!r} without a value; give the value, or "{MISSING}" for '
                "empty cells"
            )
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
            value = MISSING if re.fullmatch("b+", cells[4]) else cells[4]
            yield Note(line, cells[1], "label" if cells[4] == cells[5] else "range", cells[6], value)


# ---------------------------------------------------------------------- groups


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
