"""The records of private CSV files: every record counts, and its cells depend on its own bytes alone.

A record is a line. Whatever bytes a line has, and whatever is before or after it, it is one record, so one person's
cell cannot join, split or hide the records of others. Only a caller who declares that cells have line breaks
(`prade.data.csv_format.CsvFormat`) makes records end at line ends outside quotes instead.

    line ends     LF or CR LF; the last line may lack one. Any other CR is part of a cell
    cells         `prade.data.csv_format.cells_of`; the first cells count if there are too many, and cells that are not
                  there are empty. Empty cells are missing
    empty lines   no records, except in a file with one column, where they are empty cells
    encoding      a cell that is not text in the declared encoding becomes a text that no schema lists

Most records are written properly, and then array operations find their cells; the others are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.data.cells import decoded_text
from prade.data.csv_format import LONGEST, CsvFormat, cells_of, opened

if TYPE_CHECKING:
    import pyarrow as pa

    Places = NDArray[np.int64]

BLOCK = 2**22  # bytes that are read at a time
LINE_END, CARRIAGE_RETURN, QUOTE = b'\n\r"'


class Records(NamedTuple):
    """Bytes, and where each record in them starts and ends, without the line end."""

    text: bytes
    starts: Places
    ends: Places


def csv_batches(
    path: str, form: CsvFormat, columns: int, wanted: Sequence[int], *, longest: int = LONGEST
) -> Iterator[list[Any]]:
    """The wanted columns of a file with that many columns, in batches of Arrow arrays; all cells are text.

    Of a record with more than `longest` bytes, only the first `longest` count.
    """
    for records in _records(path, form, columns, longest):
        separators, proper = _separators(records, form.separator, columns)
        if proper.any():
            chosen = Records(records.text, records.starts[proper], records.ends[proper])
            yield [decoded_text(_column(chosen, separators, number), form.encoding) for number in wanted]
        if not proper.all():
            yield _one_by_one(records, np.flatnonzero(~proper), form, wanted)


# ---------------------------------------------------------------------- records


def _records(path: str, form: CsvFormat, columns: int, longest: int) -> Iterator[Records]:
    """The records after the header, some megabytes at a time."""
    header = True
    for text, line_ends in _blocks(path, form, longest):
        if header:
            cut, header = int(line_ends[0]) + 1, False
            text, line_ends = text[cut:], line_ends[1:] - cut
        starts = np.append(0, line_ends + 1)[:-1]
        content = np.frombuffer(text, np.uint8)
        ends = line_ends - ((content[line_ends - 1] == CARRIAGE_RETURN) & (line_ends > starts))
        if (ends - starts > longest).any():
            text, starts, ends = _cut_short(Records(text, starts, ends), longest)
        kept = np.full(len(ends), True) if columns == 1 else ends > starts
        if kept.any():
            yield Records(text, starts[kept], ends[kept])


def _cut_short(records: Records, longest: int) -> Records:
    """The records with at most that many bytes each."""
    pieces = [records.text[start : min(end, start + longest)] for start, end in zip(*records[1:], strict=True)]
    ends = np.cumsum([len(piece) + 1 for piece in pieces]) - 1
    return Records(b"\n".join([*pieces, b""]), ends - list(map(len, pieces)), ends)


def _blocks(path: str, form: CsvFormat, longest: int) -> Iterator[tuple[bytes, Places]]:
    """The file's bytes in pieces of whole records, and the places where records end."""
    rest = b""
    with opened(path) as file:
        while piece := file.read(BLOCK):
            text = rest + piece
            ends = _record_ends(text, form)
            cut = int(ends[-1]) + 1 if len(ends) else 0
            rest = _shortened(text[cut:], form, longest)
            if cut:
                yield text[:cut], ends
    if rest:
        yield rest + b"\n", np.array([len(rest)])


def _record_ends(text: bytes, form: CsvFormat) -> Places:
    content = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(content == LINE_END)
    if form.line_breaks:
        ends = ends[np.searchsorted(np.flatnonzero(content == QUOTE), ends) % 2 == 0]
    return ends


def _shortened(rest: bytes, form: CsvFormat, longest: int) -> bytes:
    """The beginning of a record whose end is not read yet: what counts of it, and one byte that may be before its end.

    The bytes that are dropped may hide an open quote, which then takes their place: its end is still the same line end.
    """
    dropped = rest[longest + 1 :]
    return rest[: longest + 1] + (b'"' if form.line_breaks and dropped.count(b'"') % 2 else b"")


# ---------------------------------------------------------------------- cells of records that are written properly


def _separators(records: Records, separator: bytes, columns: int) -> tuple[Places, NDArray[np.bool_]]:
    """For each record whether it is written properly, and of those that are, the places of all separators.

    A proper record has the right number of cells, and quotes only around whole cells or doubled within them.
    """
    content = np.frombuffer(records.text, np.uint8)
    separators = np.flatnonzero(content == separator[0])
    proper = np.full(len(records.starts), True)
    quotes = np.flatnonzero(content == QUOTE)
    if len(quotes):
        numbers = _numbers(quotes, records)
        paired = numbers % 2 == 0
        proper = paired & ~_misplaced(content, records, quotes, numbers, separator[0])
        separators = _outside_quotes(separators, quotes[np.repeat(paired, numbers)])
    counts = _numbers(separators, records)
    proper &= counts == columns - 1
    if not proper.all():
        separators = separators[np.repeat(proper, counts)]
    return separators.reshape(np.count_nonzero(proper), columns - 1), proper


def _outside_quotes(separators: Places, quotes: Places) -> Places:
    """The separators that are not between two quotes of a pair; a record has quotes in pairs only."""
    begins, ends = np.searchsorted(separators, quotes[0::2]), np.searchsorted(separators, quotes[1::2])
    if (begins == ends).all():
        return separators
    size = len(separators) + 1
    depth: Places = np.cumsum(np.bincount(begins, minlength=size) - np.bincount(ends, minlength=size))
    return np.asarray(separators[depth[:-1] == 0])


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
    begins = (quotes == np.repeat(records.starts, numbers)) | (before == separator) | (before == QUOTE)
    finishes = (quotes + 1 == np.repeat(records.ends, numbers)) | (after == separator) | (after == QUOTE)
    wrong = np.append(0, np.cumsum(~np.where(opens, begins, finishes)))
    last = np.cumsum(numbers)
    return np.asarray(wrong[last] > wrong[last - numbers])


def _column(records: Records, separators: Places, number: int) -> pa.Array:
    """One column's cells as bytes, missing where they are empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    content = np.frombuffer(records.text, np.uint8)
    starts = records.starts if number == 0 else separators[:, number - 1] + 1
    ends = separators[:, number] if number < separators.shape[1] else records.ends
    quoted = content[starts] == QUOTE
    places = np.stack([starts + quoted, ends - quoted], axis=1)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(records.text)]
    # Every second part is a cell; the others are what lies between two cells.
    parts = pa.LargeBinaryArray.from_buffers(pa.large_binary(), places.size - 1, buffers)
    column = parts.take(pa.array(np.arange(0, places.size, 2), mask=places[:, 0] == places[:, 1]))
    return pc.replace_substring(column, b'""', b'"') if quoted.any() else column


# ---------------------------------------------------------------------- cells of all other records


def _one_by_one(records: Records, chosen: Places, form: CsvFormat, wanted: Sequence[int]) -> list[Any]:
    import pyarrow as pa

    lines = [cells_of(records.text[records.starts[row] : records.ends[row]], form.separator) for row in chosen]
    columns = [[line[number] if number < len(line) else b"" for line in lines] for number in wanted]
    return [
        decoded_text(pa.array([cell or None for cell in cells], pa.large_binary()), form.encoding) for cells in columns
    ]
