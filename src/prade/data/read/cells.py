"""The text or number that a cell is compared by, whatever the type of its column (1, 1.0, true, "1").

A column's type can depend on its rows: one missing value turns a column of integers into floats, and one word turns
floats into Python objects. So the text and the number of a cell depend on the cell's own value and on nothing else:

    whole numbers    1, 1.0 and Decimal("1.00") have the text "1"; from 2**53 on, where floats skip numbers, no text
    other numbers    the shortest text that reads as the same double; decimals without trailing zeros
    true and false   the texts "true" and "false", the numbers 1 and 0
    dates and times  2020-12-31, 2020-12-31 08:30:00 in UTC, truncated to microseconds; midnight is the date alone
"""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.documents import json_value
from prade.core.errors import DataError, PradeError

LARGEST_WHOLE = 2**53  # beyond this, floats cannot tell neighbouring whole numbers apart
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
MIDNIGHT = r" 00:00:00$"
ZEROS = r"(\.[0-9]*?)0+$"  # trailing zeros after the decimal point; "1.00" becomes "1."
DAY = 86_400_000_000  # microseconds
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FARTHEST = 2**62  # microseconds from 1970, about 146,000 years: times farther away are moved to this limit
LONGEST = 400  # digits: decimal numbers with more become floats (the range of a double ends before that)
NOT_TEXT = "\ufffd"  # begins the text of a cell that is not Unicode: it is unlike any number, date or listed value
EPOCH = datetime.datetime(1970, 1, 1)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of the text types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def one_piece(column: Any) -> pa.Array:
    """The column as one Arrow array, even if its chunks have different dictionaries."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    return column


def plain_array(cells: Any) -> Any:
    """The cells as a plain array: without extension types, run-end encoding and union offsets; bytes become text."""
    cells = one_piece(cells)
    if isinstance(cells, pa.ExtensionArray) and cells.type.extension_name.startswith("arrow."):
        cells = cells.storage  # other extension types, such as pandas' periods, do not store the value itself
    types, kind = pa.types, cells.type
    if types.is_run_end_encoded(kind):
        return plain_array(pc.run_end_decode(cells))
    if types.is_union(kind):
        own = kind.mode == "dense" and [field.type for field in kind] == list(KINDS.values())
        # Arrow ignores a union's offset when it returns type codes; a copy has no offset.
        return pa.concat_arrays([cells]) if own else object_cells([_python_object(cell) for cell in cells])
    of_bytes = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    if any(is_kind(kind) for is_kind in of_bytes):
        return clean_text(cells.cast(pa.large_binary()).view(pa.large_string()))
    return cells


def _python_object(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (ValueError, OverflowError, ArithmeticError):
        return object


def texts_of(cells: Any) -> Any:
    """The text of each cell, to be compared with a list of texts; null for a cell without one."""
    types, kind = pa.types, cells.type
    if types.is_timestamp(kind) or types.is_date64(kind):
        texts = microseconds(cells).cast(pa.timestamp("us")).cast(pa.large_string())
        seconds = pc.utf8_rtrim(pc.replace_substring_regex(texts, ZEROS, r"\1"), ".")
        return pc.replace_substring_regex(seconds, MIDNIGHT, "")
    if types.is_decimal(kind):
        return decimal_texts(cells)
    if types.is_integer(kind) or types.is_floating(kind):
        return _number_texts(floats_of(cells))
    return clean_text(cells) if is_text(kind) else cells.cast(pa.large_string())


def clean_text(texts: Any) -> Any:
    """The texts; a cell that is not valid UTF-8 becomes a text that no schema lists (`text_of_bytes`)."""
    texts = texts.cast(pa.large_string())
    with suppress(pa.ArrowInvalid):
        texts.validate(full=True)
        return texts
    raw = texts.cast(pa.large_binary()).to_pylist()
    return pa.array([None if each is None else _valid_text(each) for each in raw], texts.type)


def _valid_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeError:
        return NOT_TEXT + raw.hex()


def text_of_bytes(raw: bytes, encoding: str = "utf-8") -> str:
    """Bytes as text, different bytes as different texts: U+FFFD and hexadecimal digits if they are not text."""
    try:
        text = raw.decode(encoding)
    except UnicodeError:
        return NOT_TEXT + raw.hex()
    return NOT_TEXT + text if text.startswith(NOT_TEXT) else text


def decoded_text(cells: pa.Array, encoding: str) -> pa.Array:
    """Bytes as text in an encoding. UTF-8 stays unchanged, because cells of bytes are read as UTF-8."""
    data = cells.buffers()[2]
    if encoding == "utf-8" or data is None or not (np.frombuffer(data, np.uint8) > 127).any():
        return cells
    coded = cells.dictionary_encode()
    texts = [text_of_bytes(raw, encoding) for raw in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.large_string()))


def cells_between(
    text: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64], missing: NDArray[np.bool_]
) -> pa.Array:
    """The bytes from each start to its end; places rise."""
    places = np.stack([starts, ends], axis=1)
    buffers = [None, pa.py_buffer(places), pa.py_buffer(text)]
    # Every second part is a cell; the others are what lies between two cells.
    parts = pa.LargeBinaryArray.from_buffers(pa.large_binary(), places.size - 1, buffers)
    return parts.take(pa.array(np.arange(0, places.size, 2), mask=missing))


def text_of_characters(cell: str) -> str:
    """The text of a Python string; one with half of a surrogate pair is not text, and treated like such bytes."""
    return _valid_text(str.__str__(cell).encode("utf-8", "surrogatepass"))


def floats_of(cells: Any) -> NDArray[np.float64]:
    """Each number or Boolean as a double; NaN for missing cells."""
    if pa.types.is_decimal(cells.type):  # Arrow's own conversion does not always give the nearest double
        cells = _written_out(cells)
    doubles = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(doubles, dtype=np.float64)


def microseconds(cells: Any) -> pa.Array:
    """Each date or time as whole microseconds since 1970 in UTC; times beyond `FARTHEST` are moved to it."""
    days = pa.types.is_date32(cells.type)
    raw = cells.cast(pa.int32()).cast(pa.int64()) if days else cells.cast(pa.int64())
    since = raw.fill_null(0).to_numpy(zero_copy_only=False)
    unit = "ms" if pa.types.is_date64(cells.type) else "d" if days else cells.type.unit
    if unit == "ns":
        since = since // 1000
    else:
        factor = DAY if unit == "d" else 10**6 // PER_SECOND[unit]
        since = np.clip(since, -(FARTHEST // factor), FARTHEST // factor) * factor
    return pa.array(np.clip(since, -FARTHEST, FARTHEST), mask=cells.is_null().to_numpy(zero_copy_only=False))


def days_of(cells: Any) -> NDArray[np.float64]:
    """Each date or time as days since 1970-01-01, with the time of day as a fraction; NaN for missing cells."""
    if pa.types.is_date32(cells.type):
        return floats_of(cells.cast(pa.int32()))
    since = microseconds(cells).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(cells.is_null().to_numpy(zero_copy_only=False), np.nan, since // DAY + since % DAY / DAY)


def numerals_in(texts: Any) -> Any:
    """The text of each cell that is a number; null for all others."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.match_substring_regex(trimmed, NUMBER), trimmed, pa.scalar(None, trimmed.type))


def numbers_in(cells: Any, *, dates: bool = False) -> NDArray[np.float64]:
    """The number of each cell, in days if texts are dates; NaN for a cell that is not a number."""
    if pa.types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    if is_text(cells.type) and dates:
        # Drop a time of day after the date, so that it cannot move the date to another day.
        days = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(cells), 0, 10)
        cells = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
    elif is_text(cells.type):
        cells = numerals_in(cells)
    return days_of(cells) if pa.types.is_temporal(cells.type) else floats_of(cells)


def _number_texts(numbers: NDArray[np.float64]) -> pa.Array:
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    near = whole & (np.abs(numbers) < LARGEST_WHOLE)
    digits = pa.array(np.where(near, numbers, 0).astype(np.int64)).cast(pa.large_string())
    if near.all():
        return digits
    shortest = pa.array(np.where(whole, np.nan, numbers), from_pandas=True).cast(pa.large_string())
    return pc.if_else(pa.array(near), digits, shortest)


def decimal_texts(cells: Any) -> Any:
    """Decimals as exact text, without trailing zeros."""
    return pc.utf8_rtrim(pc.replace_substring_regex(_written_out(cells), ZEROS, r"\1"), ".")


def _written_out(cells: Any) -> Any:
    """Decimals without exponents: Arrow writes zeros and small numbers with one that depends on the column's scale."""
    texts = cells.cast(pa.large_string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        texts = pa.array([None if each is None else format(each, "f") for each in cells.to_pylist()], texts.type)
    return texts


# ---------------------------------------------------------------------- Python objects


def decimal_cells(texts: Any) -> Any:
    """Decimal numbers that an engine writes as text: each cell has the type of its own value."""
    distinct = texts.dictionary_encode()
    numbers: list[Any] = [*distinct.dictionary.to_pylist(), None]
    for place, text in enumerate(numbers[:-1]):
        with suppress(decimal.InvalidOperation):
            numbers[place] = decimal.Decimal(text)
    return object_cells(numbers).take(distinct.indices.fill_null(len(numbers) - 1))


# `object` stands for all values that a schema cannot list
KINDS: dict[type | None, Any] = {
    None: pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("us"),
    object: pa.struct([]),
}
PLACES = {kind: place for place, kind in enumerate(KINDS)}


def object_cells(values: Any) -> pa.Array:
    """Python objects as an Arrow union: the type of each cell depends on that cell alone."""
    cells, children = list(values), {kind: pa.array([], arrow) for kind, arrow in KINDS.items()}
    kinds = set(map(type, cells)) - {type(None)}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:  # a fast path
        alone = kinds.pop()
        # unless a cell needs more than 64 bits or has an unpaired surrogate
        with suppress(OverflowError, UnicodeEncodeError, pa.ArrowException):
            children[alone] = pa.array(cells, KINDS[alone], from_pandas=True)
            return _union(np.full(len(cells), PLACES[alone]), np.arange(len(cells)), children)
    lists: dict[type | None, list[Any]] = {kind: [] for kind in KINDS}
    codes, offsets = [], []
    for cell in cells:
        kind, plain = _kind_of(cell)
        codes.append(PLACES[kind])
        offsets.append(len(lists[kind]))
        lists[kind].append(plain)
    return _union(codes, offsets, {kind: pa.array(lists[kind], arrow) for kind, arrow in KINDS.items()})


def _union(codes: Any, offsets: Any, children: Mapping[type | None, pa.Array]) -> pa.Array:
    return pa.UnionArray.from_dense(pa.array(codes, pa.int8()), pa.array(offsets, pa.int32()), [*children.values()])


def _kind_of(cell: Any) -> tuple[type | None, Any]:
    try:
        return _plain_kind(cell)
    except Exception:  # an object may raise anything when it is examined; that must not affect the other rows
        return object, {}


def _plain_kind(cell: Any) -> tuple[type | None, Any]:
    if isinstance(cell, np.datetime64):
        return _moment_of(cell)
    if isinstance(cell, np.timedelta64) and not np.isnat(cell):
        return object, {}
    if isinstance(cell, np.generic):
        cell = cell.item()
    if is_missing(cell):
        return None, None
    if isinstance(cell, bool):
        return bool, cell
    if isinstance(cell, int):
        return (int, int(cell)) if -(2**63) <= cell < 2**63 else _decimal_of(decimal.Decimal(cell))
    if isinstance(cell, (float, np.floating)):
        return float, float(cell)
    if isinstance(cell, decimal.Decimal):
        return _decimal_of(cell)
    if isinstance(cell, complex) and cell.imag == 0:  # one complex number makes the whole column complex
        return _plain_kind(cell.real)
    if isinstance(cell, datetime.datetime):
        if hasattr(cell, "asm8"):  # a pandas Timestamp, which has nanoseconds and a larger range than Python's
            return _moment_of(cell.asm8)
        since = cell.replace(tzinfo=None) - EPOCH - (cell.utcoffset() or datetime.timedelta())
        return datetime.datetime, since // datetime.timedelta(microseconds=1)
    if isinstance(cell, datetime.date):
        return datetime.date, (cell - EPOCH.date()).days
    if isinstance(cell, str):
        return str, text_of_characters(cell)
    if isinstance(cell, bytes):
        return str, text_of_bytes(cell)
    return (str, str(cell)) if isinstance(cell, uuid.UUID) else (object, {})


def is_missing(cell: Any) -> bool:
    """Whether a Python object stands for a missing value."""
    if isinstance(cell, (float, np.floating)):
        return bool(np.isnan(cell))
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _moment_of(cell: np.datetime64) -> tuple[type | None, Any]:
    if np.isnat(cell):
        return None, None
    unit = np.datetime_data(cell.dtype)[0]
    if unit not in PER_SECOND:
        cell, unit = cell.astype("datetime64[s]"), "s"
    return datetime.datetime, microseconds(pa.array([int(cell.astype(np.int64))], pa.timestamp(unit)))[0].as_py()


def _decimal_of(cell: decimal.Decimal) -> tuple[type, Any]:
    """As for a column of decimals: a whole number, or text without trailing zeros; a float if that is too long."""
    if not cell.is_finite() or (cell and abs(cell.adjusted()) > LONGEST):
        return float, float(cell)  # infinite, if it is beyond the range of a double
    if abs(cell) < LARGEST_WHOLE and cell == int(cell):
        return int, int(cell)
    text = format(cell, "f")
    return str, text.rstrip("0").rstrip(".") if "." in text else text


# ---------------------------------------------------------------------- types of cells


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_day(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of dates, with or without a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def require_plain_type(name: str, kind: pa.DataType) -> None:
    """Refuse a column of a public table whose cells are not single values: lists, structs, durations, bytes."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (is_number(kind) or is_day(kind) or is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise DataError(f"column {name!r}: cells of type {kind} cannot be read; convert them to numbers, text or dates")


def replace_invalid_utf8(table: pa.Table) -> pa.Table:
    """Replace text cells that are not valid UTF-8, each by its own bytes (`clean_text`)."""
    for index, (name, cells) in enumerate(zip(table.column_names, table.columns, strict=True)):
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        if is_text(kind):
            try:
                cells.validate(full=True)
            except pa.ArrowInvalid:
                table = table.set_column(index, name, clean_text(cells.cast(kind)).cast(kind))
    return table


def python_values(cells: Any) -> list[Any]:
    """The cells as Python values; dates and times that Python cannot represent become text."""
    try:
        return list(cells.to_pylist())
    except (OverflowError, ValueError):
        return list(texts_of(cells).to_pylist())


# ---------------------------------------------------------------------- columns


PANDAS = b"pandas"
AT_ONCE = 4  # columns that are read and coded at the same time: each is in memory


class Columns:
    """In place of an Arrow table: columns that are read one at a time, each by `read` as a table; nothing is kept."""

    def __init__(
        self, column_names: Sequence[str], read: Callable[[str], pa.Table], schema: pa.Schema | None = None
    ) -> None:
        self.column_names = list(column_names)
        self._read = read
        self._schema = schema

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(name)[name]

    @cached_property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self[self.column_names[0]]) if self.column_names else 0

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of all columns, with the notes for pandas about them; if it was not given, each column is read."""
        if self._schema is not None:
            return self._schema
        each = [self._read(name).schema for name in self.column_names]
        notes = [pandas_notes(schema) for schema in each]
        every = {"columns": [note for found in notes for note in found.get("columns", [])]}
        metadata = noted({**next(filter(None, notes), {}), **every}, self.column_names)
        return pa.schema([schema.field(0) for schema in each], metadata)

    def table(self, names: Sequence[str]) -> pa.Table:
        """Some columns together."""
        return self._read(names[0]) if len(names) == 1 else pa.table({name: self[name] for name in names})

    def changed(self, change: Callable[[str, Any], Any]) -> Columns:
        """The same columns, each changed when it is read: `change` gets a column's name and its cells."""
        return Columns(self.column_names, lambda name: pa.table({name: change(name, self[name])}))


def pandas_notes(schema: pa.Schema) -> dict[str, Any]:
    """The notes for pandas in a schema's metadata; empty if there are none, or if they are malformed."""
    with suppress(PradeError, KeyError, TypeError):
        notes = json_value((schema.metadata or {})[PANDAS])
        if all(isinstance(each["field_name"], str | None) for each in notes["columns"]):
            return dict(notes)
    return {}


def noted(notes: Mapping[str, Any], names: Container[str]) -> dict[bytes, bytes]:
    """The metadata with notes for pandas about these columns, without an index; empty if there are none."""
    columns = [note for note in notes.get("columns", []) if note["field_name"] in names]
    return {PANDAS: json.dumps({**notes, "index_columns": [], "columns": columns}).encode()} if columns else {}


def plain_cells(column: Any) -> Any:
    """The column without dictionary encoding."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
