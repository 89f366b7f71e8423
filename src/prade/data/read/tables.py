"""Reading and writing tables: pandas, polars, pyarrow, dicts of arrays, parquet and CSV files, all as pyarrow tables.

The rows may be private, so no error raised here contains a cell or a line of a file.
"""

from __future__ import annotations

import base64
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from prade.core.errors import DataError, closest, names_of
from prade.core.files import replace_file
from prade.data.read.cells import (
    Columns,
    clean_text,
    is_missing,
    is_text,
    object_cells,
    one_piece,
    plain_cells,
    python_values,
    replace_invalid_utf8,
    text_of_characters,
    texts_of,
)
from prade.data.read.csv import CsvFormat, csv_batches, first_line_outside, format_of, header_of
from prade.data.read.files import parts_of, read_parts, schema_of


def read_table(source: Any, columns: Sequence[str] | None = None, *, guess: bool = True) -> pa.Table:
    """Read any table or file as a pyarrow table; with `columns`, only these. All tables enter prade through here.

    A column of a CSV file or of Python objects gets the narrowest type that fits all its cells, or becomes text. With
    ``guess=False``, no cell influences how another is read: CSV columns stay text, and each Python object keeps its own
    type (an Arrow union). Types that a file or frame declares are kept either way.
    """
    if isinstance(source, (str, PathLike)):
        return _read_file(Path(source), columns, guess, format_of(source))
    known = type(source).__module__.partition(".")[0] in ("polars", "pyarrow") or hasattr(source, "iloc")
    elsewhere = hasattr(source, "__arrow_c_stream__") and not known and not isinstance(source, (Mapping, Columns))
    if isinstance(source, pa.RecordBatch) or elsewhere:  # a library that offers Arrow's capsules
        source = pa.table(source)
    chosen = _chosen(column_names(source), columns, "the table")
    if isinstance(source, Columns):
        return source.table(chosen)
    if isinstance(source, pa.Table):
        return replace_invalid_utf8(source.select(chosen))
    arrays = [_arrow_column(source, name, guess) for name in chosen]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns differ in length; give columns of equal length")
    return pa.table(arrays, names=chosen)


def table_columns(source: Any) -> pa.Table | Columns:
    """As `read_table` without guessed types; of parquet files and data sets, one column at a time."""
    if isinstance(source, Columns):
        return source
    path = Path(source) if isinstance(source, (str, PathLike)) else None
    if path is None or not path.exists() or file_format(path) is not PARQUET:
        return read_table(source, guess=False)
    parts, schema = parts_of(path), PARQUET.schema(path)

    def read(name: str) -> pa.Table:
        with damage_reported(path):
            return replace_invalid_utf8(read_parts(path, parts, [name]))

    return Columns(checked_names(schema.names), read, schema)


def column_names(source: Any) -> list[str]:
    """Names of the columns of a table in memory."""
    if isinstance(source, Mapping):
        names = list(source)
    elif hasattr(source, "column_names"):  # pyarrow
        names = list(source.column_names)
    elif hasattr(source, "columns") and hasattr(source, "dtypes"):  # pandas, polars
        names = list(source.columns)
    else:
        kinds = f"a pandas, polars or pyarrow table, a dict of arrays, or the path of a {NAMES} file"
        raise DataError(f"a {type(source).__name__} is not a table; give {kinds}")
    return checked_names(names)


def checked_names(names: Sequence[Any]) -> list[str]:
    """Names of columns, which must be texts and differ from each other."""
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"column names must be text, got {name!r}; rename the column")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the table has two columns named {repeated!r}; rename one")
    return list(names)


def _chosen(names: Sequence[str], columns: Sequence[str] | None, where: str) -> list[str]:
    if columns is None:
        return list(names)
    chosen = list(names_of(columns))
    for name in chosen:
        if name not in names:
            raise DataError(f"{where} has no column {name!r}{closest(name, names)}")
    return chosen


def _arrow_column(source: Any, name: str, guess: bool) -> pa.Array:
    values = source[name]
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):  # polars
        if str(values.dtype) != "Object":  # Arrow would read such cells as memory addresses
            with suppress(Exception):  # Arrow does not have all types
                return values.to_arrow()
        values = values.to_list()
    kind = getattr(values, "dtype", object)
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    if not guess and np.dtype(object) == kind:
        return object_cells(values)
    with suppress(Exception):  # Arrow refuses mixed Python objects with various errors, which would quote a cell
        return pa.array(values, from_pandas=True)
    return pa.array([_cell_text(cell) for cell in values], type=pa.string()) if guess else object_cells(values)


def _cell_text(cell: Any) -> str | None:
    if is_missing(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return str(cell).lower()
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    try:
        return text_of_characters(str(cell))
    except Exception:  # an object may raise anything here; that must not affect the other rows
        return type(cell).__name__


# ---------------------------------------------------------------------- files


def _read_file(path: Path, columns: Sequence[str] | None, guess: bool, form: CsvFormat) -> pa.Table:
    kind = file_format(path)
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    with damage_reported(path):
        return kind.read(path, lambda names: _chosen(checked_names(names), columns, str(path)), guess, form)


def write_table(table: Any, path: str | PathLike[str], *, spreadsheet_safe: bool = False) -> None:
    """Write a table in the format that the suffix of `path` names; see `csv_cells` for `spreadsheet_safe`."""
    kind, content = format_to_write(path, spreadsheet_safe=spreadsheet_safe), read_table(table)
    with (
        replace_file(path) as temporary,
        kind.writer(temporary, content.schema, spreadsheet_safe=spreadsheet_safe) as write,
    ):
        write(content)


def group_cells(source: Any, name: str, table: pa.Table | None = None) -> pa.ChunkedArray:
    """A column of a public list of groups, `table` if it was read already. Times in a CSV file stay text."""
    cells = (read_table(source, [name]) if table is None else table)[name]
    if pa.types.is_timestamp(cells.type) and isinstance(source, (str, PathLike)):
        return read_table(source, [name], guess=False)[name]
    return cells


def distinct_values(column: Any) -> list[Any]:
    """The distinct cells in order of appearance; whole floats as whole numbers, times as text."""
    cells = plain_cells(column)
    values = python_values((texts_of(cells) if pa.types.is_timestamp(cells.type) else cells).unique())
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return [int(value) for value in values] if whole else values


# ---------------------------------------------------------------------- formats of files
# How files are read, counted, written and named in messages follows from `FORMATS`.
#
# Private rows are delivered in batches, each file with its own types: one missing value turns whole numbers into
# floats, so no cell may influence how another one is read.


Chosen = Callable[[Sequence[str]], list[str]]  # of all names of columns, those that are wanted
Noted = Callable[[], pa.Schema] | None  # a schema with notes about all rows that were written
Write = Callable[[pa.Table], None]
Batches = Iterator[Sequence[Any]]  # of each wanted column, the cells as an Arrow array

BYTES_OF_A_ROW = 64  # of a CSV file, roughly
BYTES_READ_AT_ONCE = 2**20  # of one column of a parquet file
# Digits with a leading zero are a code, not a number ("06" is a state), so such a column stays text.
WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL = r"^-?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$"
HAS_DIGIT = r"^[^eE]*[0-9]"
ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
# Times without an offset, or in UTC: other offsets could move a time to another day.
ISO_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"

# What a spreadsheet may run begins like this; the last four are full-width forms of the first four.
FORMULA = "\\A[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"


@dataclass(frozen=True)
class FileFormat(ABC):
    """How files with a suffix are read and written."""

    suffix: str
    name: str  # in messages
    typed: bool  # whether a file declares the types of its columns; if not, all cells are text

    @abstractmethod
    def names(self, path: Path, form: CsvFormat) -> list[str]:
        """The names of a file's columns."""

    @abstractmethod
    def read(self, path: Path, chosen: Chosen, guess: bool, form: CsvFormat) -> pa.Table:
        """The chosen columns; with `guess`, text gets the narrowest type that fits all cells of a column."""

    @abstractmethod
    def batches(self, path: Path, names: Sequence[str], form: CsvFormat, rows: int) -> Batches:
        """The cells of some columns, about this many rows at a time."""

    @abstractmethod
    def writer(
        self, path: Path, schema: pa.Schema, noted: Noted = None, *, spreadsheet_safe: bool = False
    ) -> AbstractContextManager[Write]:
        """What writes a file table by table; at the end, what `noted` notes about all of them, if the format can."""


# ---------------------------------------------------------------------- parquet


class Parquet(FileFormat):
    """Parquet files; read as a whole, a folder of them is one table."""

    def names(self, path: Path, form: CsvFormat) -> list[str]:
        return list(self.schema(path).names)

    def schema(self, path: Path) -> pa.Schema:
        """The schema of a file, or of the first one in a folder."""
        with damage_reported(path):
            return pq.read_schema(parts_of(path)[0])

    def read(self, path: Path, chosen: Chosen, guess: bool, form: CsvFormat) -> pa.Table:
        parts = parts_of(path)
        rows = read_parts(path, parts, chosen(self.schema(path).names))
        return replace_invalid_utf8(rows.replace_schema_metadata(schema_of(path).metadata))

    def batches(
        self, path: Path, names: Sequence[str], form: CsvFormat, rows: int, buffer: int = BYTES_READ_AT_ONCE
    ) -> Batches:
        """Row group by row group, when a batch is asked for.

        Arrow's scanner would read ahead, up to a GiB, and its iterator over all row groups would keep all that it has
        read of the file. In nanoseconds, the times of old writers would overflow.
        """
        options = {"coerce_int96_timestamp_unit": "us", "buffer_size": buffer, "pre_buffer": False}
        with pq.ParquetFile(path, **options) as file:
            groups = range(file.num_row_groups)
            each = (file.iter_batches(rows, row_groups=[group], columns=list(names)) for group in groups)
            for batch in chain.from_iterable(each):
                yield [batch.column(batch.schema.get_field_index(name)) for name in names]

    @contextmanager
    def writer(
        self, path: Path, schema: pa.Schema, noted: Noted = None, *, spreadsheet_safe: bool = False
    ) -> Iterator[Write]:
        with pq.ParquetWriter(path, schema) as file:
            yield file.write_table
            if noted is not None:  # Arrow reads notes from its own copy of the schema
                every = noted()
                own = {b"ARROW:schema": base64.b64encode(every.serialize().to_pybytes())}
                file.add_key_value_metadata({**(every.metadata or {}), **own})


# ---------------------------------------------------------------------- CSV


@dataclass(frozen=True)
class Csv(FileFormat):
    """CSV files, whose cells are text: the caller declares how they are written."""

    compression: str | None = None

    def names(self, path: Path, form: CsvFormat) -> list[str]:
        return header_of(path, form)

    def read(self, path: Path, chosen: Chosen, guess: bool, form: CsvFormat) -> pa.Table:
        try:
            header_of(path, form)  # an error says what is wrong with the format
            parse = csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
            options = csv.ReadOptions(encoding=form.encoding), parse
            with csv.open_csv(path, *options) as reader:
                names = chosen(reader.schema.names)
            # In a text column, a cell that is not valid UTF-8 would be an error.
            types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string() if guess else pa.binary()))
            convert = csv.ConvertOptions(
                include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True
            )
            table = csv.read_csv(path, *options, convert)
        except (pa.ArrowException, UnicodeError):
            if (line := first_line_outside(path, form.encoding)) is None:
                raise
            message = f"{path} is not text in the encoding {form.encoding}: line {line:,} is the first that is not"
            raise DataError(message, remedy="encoding") from None
        typed = guess_type if guess else _text_of_bytes
        return pa.table([typed(one_piece(table[name])) for name in names], names=names)

    def batches(self, path: Path, names: Sequence[str], form: CsvFormat, rows: int) -> Batches:
        header = self.names(path, form)
        wanted = [header.index(name) for name in names]
        return csv_batches(str(path), form, len(header), wanted, block=rows * BYTES_OF_A_ROW)

    @contextmanager
    def writer(
        self, path: Path, schema: pa.Schema, noted: Noted = None, *, spreadsheet_safe: bool = False
    ) -> Iterator[Write]:
        empty = csv_cells(schema.empty_table(), spreadsheet_safe=spreadsheet_safe)
        with (
            pa.output_stream(str(path), compression=self.compression) as stream,
            csv.CSVWriter(stream, empty.schema) as file,
        ):
            yield lambda table: file.write_table(csv_cells(table, spreadsheet_safe=spreadsheet_safe))


def _text_of_bytes(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    """A column of bytes as text; cells that are not text are unlike any text."""
    texts = clean_text(coded.dictionary.view(pa.string()))
    return pa.DictionaryArray.from_arrays(coded.indices, texts.cast(pa.string()))


def guess_type(coded: pa.DictionaryArray) -> pa.Array:
    """A column of text, converted to the narrowest type that fits all of its cells."""
    texts = coded.dictionary

    def every(pattern: str) -> bool:
        return bool(len(texts)) and bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())

    target = pa.string()
    if every(WHOLE):
        target = pa.int64()
    elif every(DECIMAL) and every(HAS_DIGIT):
        target = pa.float64()
    elif len(texts) <= 2 and every("^([Tt]rue|TRUE|[Ff]alse|FALSE)$"):
        target, texts = pa.bool_(), pc.utf8_lower(texts)
    elif every(ISO_DATE):
        target = pa.date32()
    elif every(f"{ISO_TIME}$") or every(f"{ISO_TIME}Z$"):
        fraction = pc.max(pc.binary_length(pc.replace_substring_regex(texts, r"^[^.]*\.?|Z$", ""))).as_py()
        unit = ("s", "ms", "us", "ns")[-(-fraction // 3)]
        target = pa.timestamp(unit, "UTC" if every("Z$") else None)
    with suppress(pa.ArrowInvalid):  # digits that look like a date but are not one stay text
        texts = texts.cast(target)
    return texts.take(coded.indices)


def csv_cells(table: pa.Table, *, spreadsheet_safe: bool = False) -> pa.Table:
    """The table as it is written to a CSV file, without dictionary encoding, which the CSV writer does not support.

    With `spreadsheet_safe`, texts and names that a spreadsheet may run as formulas get a single quote before them.
    """
    columns, names = [plain_cells(column) for column in table.columns], table.column_names
    if spreadsheet_safe:
        names = [re.sub(FORMULA, r"'\g<0>", name) for name in names]
        for index, column in enumerate(columns):
            if is_text(column.type):
                columns[index] = pc.replace_substring_regex(column.cast(pa.large_string()), FORMULA, r"'\0")
    return pa.table(columns, names=names)


# ---------------------------------------------------------------------- all formats


PARQUET = Parquet(".parquet", "parquet", typed=True)
FORMATS: tuple[FileFormat, ...] = (
    PARQUET,
    Csv(".csv", "CSV", typed=False),
    Csv(".csv.gz", "CSV", typed=False, compression="gzip"),
)
SUFFIXES = tuple(each.suffix for each in FORMATS)
NAMES = " or ".join(dict.fromkeys(each.name for each in FORMATS))  # in messages: "parquet or CSV"


def file_format(path: str | PathLike[str]) -> FileFormat:
    """The format of a table file, by its suffix; a folder is a data set of parquet files."""
    if Path(path).is_dir():
        return PARQUET
    for each in FORMATS:
        if Path(path).name.lower().endswith(each.suffix):
            return each
    raise DataError(f"{path} is not a table file; give a file that ends in {', '.join(SUFFIXES)}")


def format_to_write(path: str | PathLike[str], *, spreadsheet_safe: bool = False) -> FileFormat:
    """The format of a file that will be written; spreadsheets run formulas from text only."""
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder; give the name of a file that ends in {', '.join(SUFFIXES)}")
    kind = file_format(path)
    if spreadsheet_safe and kind.typed:
        raise DataError("spreadsheet-safe is for CSV files only; leave it out, because others do not need it")
    return kind


@contextmanager
def damage_reported(path: Path) -> Iterator[None]:
    """Raise what readers say about a file as a DataError: their own messages would quote a line of the file."""
    try:
        yield
        return
    except PermissionError:
        fault = f"You don't have permission to read {path}; ask for access, or use another file"
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeError):
        fault = f"{path} is not a well-formed {file_format(path).name} file; create it again or convert it"
    raise DataError(fault)  # here, where not even its context leads back to the reader's message
