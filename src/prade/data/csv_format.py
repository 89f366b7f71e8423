"""How a CSV file is written: its encoding, its delimiter, and whether cells have line breaks. The caller declares all.

Nothing about the format is guessed from rows. Only the header, which belongs to nobody, is checked against it.
"""

from __future__ import annotations

import codecs
import gzip
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import product
from os import PathLike, fspath
from typing import Any

from prade.core.errors import DataError
from prade.core.remedies import Remedy

QUOTE = '"'
TAB_NAMES = ("tab", r"\t")
LIKELY_DELIMITERS = (";", "\t", ",", "|")
LONGEST = 2**26  # bytes: of a longer record, the rest is not read
BOM = codecs.BOM_UTF8
# How the names of codecs begin in which some bytes change the meaning of those after them.
ESCAPING = ("idna", "iso2022", "raw", "unicode")


@dataclass(frozen=True)
class CsvFormat:
    r"""The encoding of a CSV file, the character between its cells, and whether cells in quotes have line breaks.

    `encoding` is any codec that Python knows and in which line ends, quotes and delimiters are single bytes that mean
    nothing else; UTF-8 may begin with a byte order mark. `delimiter` is one character; a tab may be written as ``tab``
    or ``\t``. With `line_breaks`, a record ends at a line end outside quotes; without it, every line is a record.

    >>> CsvFormat("Latin-1", "tab")
    CsvFormat(encoding='iso8859-1', delimiter='\t', line_breaks=False)
    """

    encoding: str = "utf-8"
    delimiter: str = ","
    line_breaks: bool = False

    def __post_init__(self) -> None:
        delimiter = "\t" if self.delimiter in TAB_NAMES else self.delimiter
        single = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
        if not single or delimiter.isalnum() or delimiter in f"{QUOTE}\r\n":
            raise DataError(
                f"delimiter is {self.delimiter!r}; give one character of ASCII other than letters, digits, quotes and "
                "line ends, such as , or ; or tab"
            )
        object.__setattr__(self, "delimiter", delimiter)
        object.__setattr__(self, "encoding", _codec(str(self.encoding), delimiter))

    @property
    def separator(self) -> bytes:
        """The delimiter as a byte."""
        return self.delimiter.encode()

    def file(self, path: str | PathLike[str]) -> CsvFile:
        """A path with this format."""
        return CsvFile(path, self.encoding, self.delimiter, self.line_breaks)

    def to_dict(self) -> dict[str, Any]:
        """What differs from the default format."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}


@lru_cache
def _codec(encoding: str, delimiter: str) -> str:
    """The usual name of a codec; an error if Python does not know it, or if delimiters could be parts of characters."""
    try:
        known = codecs.lookup(encoding)
    except (LookupError, ValueError):  # a name with a null character is a ValueError
        raise DataError(
            f"encoding is {encoding!r}, which Python does not know; give a name such as utf-8, latin-1 or cp1252"
        ) from None
    if known.name == "utf-8-sig":  # every cell is decoded on its own, and only the file begins with a mark
        return "utf-8"
    if known.name.startswith(ESCAPING) or not _keeps_apart(known.name, f"{delimiter}{QUOTE}\r\n"):
        raise DataError(
            f"encoding is {encoding!r}, in which the bytes of delimiters, quotes and line ends have other meanings; "
            "convert the file to UTF-8"
        )
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

    def __init__(
        self, path: str | PathLike[str], encoding: str = "utf-8", delimiter: str = ",", line_breaks: bool = False
    ) -> None:
        self.path = fspath(path)
        self.format = CsvFormat(encoding, delimiter, line_breaks)

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"CsvFile({', '.join([repr(self.path), *(f'{k}={v!r}' for k, v in self.format.to_dict().items())])})"


def format_of(source: Any) -> CsvFormat:
    """The format that comes with a path, or with a list of paths; the default format if none does."""
    paths = source if isinstance(source, (list, tuple)) else [source]
    formats = {path.format if isinstance(path, CsvFile) else DEFAULT_FORMAT for path in paths} or {DEFAULT_FORMAT}
    if len(formats) > 1:
        raise DataError("the CSV files of one table have different formats; convert them to one encoding and delimiter")
    return formats.pop()


# ---------------------------------------------------------------------- records and cells


def opened(path: str | PathLike[str]) -> Any:
    """The bytes of a CSV file, decompressed."""
    return gzip.open(path, "rb") if fspath(path).lower().endswith(".gz") else open(path, "rb")


def cells_of(record: bytes, separator: bytes) -> list[bytes]:
    """The cells of one record, whatever bytes it has.

    A cell that begins with a quote ends at the next quote before a delimiter or the record's end; in between, two
    quotes stand for one. If there is no such quote, or another one comes first, quotes are characters like any other.

    >>> cells_of(b'1,"a, b",c', b","), cells_of(b'1,"a,b"c', b",")
    ([b'1', b'a, b', b'c'], [b'1', b'"a', b'b"c'])
    """
    quoted = re.compile(rb'"([^"]*(?:""[^"]*)*)"(?=%s|\Z)' % re.escape(separator), re.DOTALL)
    cells, place = [], 0
    while True:
        if (found := quoted.match(record, place)) is not None:
            cells.append(found[1].replace(b'""', b'"'))
            end = found.end()
        else:
            end = record.find(separator, place)
            end = len(record) if end < 0 else end
            cells.append(record[place:end])
        if end == len(record):
            return cells
        place = end + 1


def header_of(path: str | PathLike[str], form: CsvFormat) -> list[str]:
    """The names in the first line of a CSV file; an error if the file is empty or not in the declared format."""
    with opened(path) as file:
        record = file.readline(LONGEST)
        while (
            form.line_breaks and record.count(b'"') % 2 and len(record) < LONGEST and (more := file.readline(LONGEST))
        ):
            record += more
    if not record:
        raise DataError(f"{path} is empty; a CSV file begins with a line of column names")
    record = record.removesuffix(b"\n").removesuffix(b"\r")
    if form.encoding == "utf-8":
        record = record.removeprefix(BOM)
    try:
        names = [cell.decode(form.encoding) for cell in cells_of(record, form.separator)]
    except UnicodeError:
        raise DataError(
            f"the column names in {path} are not text in the encoding {form.encoding}", remedy="encoding"
        ) from None
    likely = [mark for mark in LIKELY_DELIMITERS if mark in names[0]] if len(names) == 1 else []
    if likely:
        shown = "tab" if likely[0] == "\t" else likely[0]
        raise DataError(
            f'the columns of {path} look separated by "{shown}", not by "{form.delimiter}"',
            remedy=Remedy("delimiter", shown),
        )
    return names


def first_line_outside(path: str | PathLike[str], encoding: str) -> int | None:
    """The number of the first line of a public file that is not text in an encoding; None if all lines are."""

    def is_text(line: bytes) -> bool:
        try:
            line.decode(encoding)
        except UnicodeError:
            return False
        return True

    with opened(path) as file:
        return next((number for number, line in enumerate(file, 1) if not is_text(line)), None)
