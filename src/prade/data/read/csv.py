"""CSV files: how they are written, and the records of private ones, whose cells depend on their own bytes alone.

The caller declares the format; nothing about it is guessed from rows, and only the header is checked against it. A
record of a private file is a line, whatever bytes it and its neighbours have (the page of file formats has the rules).

Most records are written properly, and then array operations find their cells; the others are read one by one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import product
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.errors import DataError, Remedy
from prade.core.files import opened
from prade.data.read.cells import cells_between, decoded_text

Places = NDArray[np.int64]

QUOTE = '"'
LONGEST = 2**26  # bytes: of a longer record, the rest is not read
BLOCK = 2**22  # bytes that are read at a time
LINE_END, CARRIAGE_RETURN, QUOTE_BYTE = b'\n\r"'
# How the names of codecs begin in which some bytes change the meaning of those after them.
ESCAPING = ("idna", "iso2022", "raw", "unicode")


@dataclass(frozen=True)
class CsvFormat:
    r"""The encoding of a CSV file, and the character between its cells; a tab may be written as ``tab`` or ``\t``.

    `encoding` is any codec of Python in which line ends, quotes and delimiters are single bytes that mean nothing else.
    """

    encoding: str = "utf-8"
    delimiter: str = ","

    def __post_init__(self) -> None:
        delimiter = "\t" if self.delimiter in ("tab", r"\t") else self.delimiter
        single = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
        if not single or delimiter.isalnum() or delimiter in f"{QUOTE}\r\n":
            raise DataError(f"delimiter is {self.delimiter!r}; give one ASCII character such as , or ; or tab")
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "encoding", _codec(str(self.encoding), delimiter))

    def file(self, path: str | PathLike[str]) -> CsvFile:
        """A path with this format."""
        return CsvFile(path, self.encoding, self.delimiter)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the default format."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}


@lru_cache
def _codec(encoding: str, delimiter: str) -> str:
    try:
        known = codecs.lookup(encoding)
    except (LookupError, ValueError):  # a name with a null character is a ValueError
        raise DataError(f"encoding is {encoding!r}, which Python does not know; give a name such as latin-1") from None
    if known.name == "utf-8-sig":  # every cell is decoded on its own, and only the file begins with a mark
        return "utf-8"
    if known.name.startswith(ESCAPING) or not _keeps_apart(known.name, f"{delimiter}{QUOTE}\r\n"):
        which = "in which the bytes of delimiters, quotes and line ends have other meanings"
        raise DataError(f"encoding is {encoding!r}, {which}; convert the file to UTF-8")
    return known.name


def _keeps_apart(encoding: str, marks: str) -> bool:
    """Whether ASCII means itself in an encoding, and none of the marks can be the later byte of a character."""
    plain = bytes(range(128))
    try:
        if plain.decode(encoding) != plain.decode("ascii"):
            return False
    except Exception:  # a codec that is not for text, or for text of another form, may raise anything
        return False
    for lead, mark in product(range(128, 256), marks):
        with suppress(UnicodeError):
            if not (bytes([lead]) + mark.encode()).decode(encoding).endswith(mark):
                return False
    return True


DEFAULT_FORMAT = CsvFormat()


class CsvFile(PathLike[str]):
    """The path of a CSV file (or a pattern of several) with its format: give it wherever a path is taken.

    >>> CsvFile("private.csv", encoding="latin-1", delimiter=";")
    CsvFile('private.csv', encoding='iso8859-1', delimiter=';')
    """

    def __init__(self, path: str | PathLike[str], encoding: str = "utf-8", delimiter: str = ",") -> None:
        self.path = fspath(path)
        self.format = CsvFormat(encoding, delimiter)

    def __fspath__(self) -> str:
        return self.path

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"CsvFile({', '.join([repr(self.path), *(f'{k}={v!r}' for k, v in self.format.to_dict().items())])})"


def format_of(source: Any) -> CsvFormat:
    """The format that comes with a path, or with a list of paths; the default format if none does."""
    paths = source if isinstance(source, (list, tuple)) else [source]
    formats = {path.format if isinstance(path, CsvFile) else DEFAULT_FORMAT for path in paths} or {DEFAULT_FORMAT}
    if len(formats) > 1:
        raise DataError("the CSV files of one table have different formats; convert them to one")
    return formats.pop()


# ---------------------------------------------------------------------- records and cells


def cells_of(record: bytes, separator: bytes) -> list[bytes]:
    """The cells of one record, whatever bytes it has.

    A cell that begins with a quote ends at the next quote before a delimiter or the record's end; in between, two
    quotes stand for one. If there is no such quote, or another one comes first, quotes are characters like any other.

    >>> cells_of(b'1,"a, b",c', b","), cells_of(b'1,"a,b"c', b",")
    ([b'1', b'a, b', b'c'], [b'1', b'"a', b'b"c'])
    """
    quoted = re.compile(rb'"([^"]*(?:""[^"]*)*)"(?=%s|\Z)' % re.escape(separator), re.DOTALL)
    cells, end = [], -1
    while end < len(record):
        place = end + 1
        if (found := quoted.match(record, place)) is not None:
            cells.append(found[1].replace(b'""', b'"'))
            end = found.end()
        else:
            end = record.find(separator, place) % (len(record) + 1)  # the record's end for -1
            cells.append(record[place:end])
    return cells


def header_of(path: str | PathLike[str], form: CsvFormat) -> list[str]:
    """The names in the first line of a CSV file; an error if the file is empty or not in the declared format."""
    with opened(path) as file:
        record = file.readline(LONGEST)
    if not record:
        raise DataError(f"{path} is empty; a CSV file begins with a line of column names")
    record = record.removesuffix(b"\n").removesuffix(b"\r")
    if form.encoding == "utf-8":
        record = record.removeprefix(codecs.BOM_UTF8)
    try:
        names = [cell.decode(form.encoding) for cell in cells_of(record, form.delimiter.encode())]
    except UnicodeError:
        message = f"the column names in {path} are not text in the encoding {form.encoding}"
        raise DataError(message, remedy="encoding") from None
    if len(names) == 1 and (likely := [mark for mark in (";", "\t", ",", "|") if mark in names[0]]):
        shown = "tab" if likely[0] == "\t" else likely[0]
        message = f'the columns of {path} look separated by "{shown}", not by "{form.delimiter}"'
        raise DataError(message, remedy=Remedy("delimiter", shown))
    return names


def first_line_outside(path: str | PathLike[str], encoding: str) -> int | None:
    """The number of the first line of a public file that is not text in an encoding; None if all lines are."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeError:
                return number
    return None


# ---------------------------------------------------------------------- the records of private files


class Records(NamedTuple):
    """Bytes, and where each record in them starts and ends, without the line end."""

    text: bytes
    starts: Places
    ends: Places


def csv_batches(
    path: str, form: CsvFormat, columns: int, wanted: Sequence[int], *, longest: int = LONGEST, block: int = BLOCK
) -> Iterator[list[Any]]:
    """The wanted columns, in batches of Arrow arrays of text; of a longer record, the first `longest` bytes count."""
    separator = form.delimiter.encode()
    for records in _records(path, columns, longest, block):
        separators, proper = _separators(records, separator[0], columns)
        if proper.any():
            chosen = Records(records.text, records.starts[proper], records.ends[proper])
            yield [decoded_text(_column(chosen, separators, number), form.encoding) for number in wanted]
        if not proper.all():
            chosen = Records(records.text, records.starts[~proper], records.ends[~proper])
            lines = [cells_of(line, separator) for line in _lines(chosen)]
            each = [[line[number] if number < len(line) else b"" for line in lines] for number in wanted]
            raw = [pa.array([cell or None for cell in cells], pa.large_binary()) for cells in each]
            yield [decoded_text(cells, form.encoding) for cells in raw]


def _lines(records: Records, longest: int = LONGEST) -> list[bytes]:
    """The bytes of each record, as far as they count."""
    return [records.text[start : min(end, start + longest)] for start, end in zip(*records[1:], strict=True)]


def _records(path: str, columns: int, longest: int, size: int) -> Iterator[Records]:
    """The records after the header, some megabytes at a time."""
    header = True
    for block in _blocks(path, longest, size):
        text, header = block[block.index(b"\n") + 1 :] if header else block, False
        content = np.frombuffer(text, np.uint8)
        line_ends = np.flatnonzero(content == LINE_END)
        starts = np.append(0, line_ends + 1)[:-1]
        ends = line_ends - ((content[line_ends - 1] == CARRIAGE_RETURN) & (line_ends > starts))
        records = Records(text, starts, ends)
        if (ends - starts > longest).any():
            lines = _lines(records, longest)
            ends = np.cumsum([len(line) + 1 for line in lines]) - 1
            records = Records(b"\n".join([*lines, b""]), ends - list(map(len, lines)), ends)
        counted = np.full(len(records.ends), True) if columns == 1 else records.ends > records.starts
        if counted.any():
            yield Records(records.text, records.starts[counted], records.ends[counted])


def _blocks(path: str, longest: int, size: int) -> Iterator[bytes]:
    """The file's bytes in pieces of whole lines, each with its line end; long lines are cut behind what counts."""
    rest = b""
    with opened(path) as file:
        while piece := file.read(size):
            text = rest + piece
            cut = text.rfind(b"\n") + 1
            rest = text[cut : cut + longest + 1]
            if cut:
                yield text[:cut]
    if rest:
        yield rest + b"\n"


def _separators(records: Records, separator: int, columns: int) -> tuple[Places, NDArray[np.bool_]]:
    """The places of all separators of the records that are written properly, and which those are.

    They have the right number of cells, and quotes only around whole cells or doubled within them.
    """
    content = np.frombuffer(records.text, np.uint8)
    separators = np.flatnonzero(content == separator)
    proper = np.full(len(records.starts), True)
    quotes = np.flatnonzero(content == QUOTE_BYTE)
    if len(quotes):
        numbers = _numbers(quotes, records)
        paired = numbers % 2 == 0
        proper = paired & ~_misplaced(content, records, quotes, numbers, separator)
        before = np.searchsorted(quotes[np.repeat(paired, numbers)], separators)
        separators = separators[before % 2 == 0]  # those that are not between two quotes of a pair
    counts = _numbers(separators, records)
    proper &= counts == columns - 1
    if not proper.all():
        separators = separators[np.repeat(proper, counts)]
    return separators.reshape(np.count_nonzero(proper), columns - 1), proper


def _numbers(places: Places, records: Records) -> Places:
    """How many of the places are in each record."""
    return np.searchsorted(places, records.ends) - np.searchsorted(places, records.starts)


def _misplaced(
    content: NDArray[np.uint8], records: Records, quotes: Places, numbers: Places, separator: int
) -> NDArray[np.bool_]:
    """Whether a record has a quote that neither begins nor ends a cell and is not doubled."""
    first = np.repeat(np.append(0, np.cumsum(numbers))[:-1], numbers)  # for each quote, its record's first
    opens = (np.arange(len(quotes)) - first) % 2 == 0
    before, after = content[quotes - 1], content[quotes + 1]  # a line end comes after every record
    begins = (quotes == np.repeat(records.starts, numbers)) | (before == separator) | (before == QUOTE_BYTE)
    finishes = (quotes + 1 == np.repeat(records.ends, numbers)) | (after == separator) | (after == QUOTE_BYTE)
    wrong = np.append(0, np.cumsum(~np.where(opens, begins, finishes)))
    last = np.cumsum(numbers)
    return np.asarray(wrong[last] > wrong[last - numbers])


def _column(records: Records, separators: Places, number: int) -> pa.Array:
    """One column's cells as bytes, missing where they are empty."""
    content = np.frombuffer(records.text, np.uint8)
    starts = records.starts if number == 0 else separators[:, number - 1] + 1
    ends = separators[:, number] if number < separators.shape[1] else records.ends
    quoted = content[starts] == QUOTE_BYTE
    starts, ends = starts + quoted, ends - quoted
    column = cells_between(records.text, starts, ends, starts == ends)
    return pc.replace_substring(column, b'""', b'"') if quoted.any() else column
