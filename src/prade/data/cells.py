"""What a cell is, whatever type its column has: 1, 1.0, true and "1" in an integer, float, Boolean or text column.

Types follow rows: one missing value turns a column of whole numbers into floats, one word turns floats into Python
objects. So the text and the number that a cell is compared by depend on the cell's own value and on nothing else:

    whole numbers    1, 1.0 and Decimal("1.00") are the text "1"; beyond 2**53, where floats skip numbers, no text
    other numbers    the shortest text that reads as the same double; decimals without trailing zeros
    true and false   "true" and "false", the numbers 1 and 0
    dates and times  2020-12-31, 2020-12-31 08:30:00; a time at midnight is its date; zones are converted to UTC;
                     what lies beyond microseconds is dropped
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.data.column import LARGEST_WHOLE

if TYPE_CHECKING:
    import pyarrow as pa

MIDNIGHT = r" 00:00:00$"
ZEROS = r"(\.[0-9]*?)0+$"  # after the point; what is left of "1.00" is "1."
DAY = 86_400_000_000  # microseconds
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FARTHEST = 2**62  # microseconds from 1970, some 146,000 years: later and earlier times are as good as this one
LONGEST = 400  # digits of a decimal number that are written out; a double ends before that
EPOCH = datetime.datetime(1970, 1, 1)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of the kinds of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def one_piece(column: Any) -> pa.Array:
    """The column as one Arrow array, also when its dictionaries differ from chunk to chunk."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    return column


def plain_array(cells: Any) -> Any:
    """The cells without wrappings: extension types, run lengths, slices of unions; bytes are text, as Python's are.

    A union that is not one of `object_cells` is read object by object.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = one_piece(cells)
    if isinstance(cells, pa.ExtensionArray) and cells.type.extension_name.startswith("arrow."):
        cells = cells.storage  # others, such as pandas' periods, keep something else than the value
    types, kind = pa.types, cells.type
    if types.is_run_end_encoded(kind):
        return plain_array(pc.run_end_decode(cells))
    if types.is_union(kind):
        own = kind.mode == "dense" and [field.type for field in kind] == list(_kinds().values())
        # Arrow forgets a union's offset when it hands out type codes; a copy has none.
        return pa.concat_arrays([cells]) if own else object_cells([_python_object(cell) for cell in cells])
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return clean_text(cells.cast(pa.large_binary()).view(pa.large_string()))
    return clean_text(cells.cast(pa.large_binary()).view(pa.large_string())) if types.is_binary_view(kind) else cells


def _python_object(cell: Any) -> Any:
    """An Arrow scalar's value; an object without one where Python has none for it."""
    try:
        return cell.as_py()
    except (ValueError, OverflowError, ArithmeticError):
        return object


def texts_of(cells: Any) -> Any:
    """Each cell as the text that a list of text is compared with; null for a cell that has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types, kind = pa.types, cells.type
    if types.is_timestamp(kind) or types.is_date64(kind):
        return _time_texts(microseconds(cells))
    if types.is_decimal(kind):
        return pc.utf8_rtrim(pc.replace_substring_regex(_decimal_texts(cells), ZEROS, r"\1"), ".")
    if types.is_integer(kind) or types.is_floating(kind):
        return _number_texts(floats_of(cells))
    return clean_text(cells) if is_text(kind) else cells.cast(pa.large_string())


def clean_text(texts: Any) -> Any:
    """Text as it is; bytes in it that are not UTF-8 become escapes such as \\xff, each by itself."""
    import pyarrow as pa

    texts = texts.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.cast(pa.large_binary()).to_pylist()
        return pa.array([None if each is None else each.decode(errors="backslashreplace") for each in raw], texts.type)
    return texts


def floats_of(cells: Any) -> NDArray[np.float64]:
    """Each number, or true or false, as a double; NaN for none."""
    import pyarrow as pa

    if pa.types.is_decimal(cells.type):  # a decimal's own conversion is not always to the nearest double
        cells = _decimal_texts(cells)
    found = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.float64)


def microseconds(cells: Any) -> pa.Array:
    """Each date or time as whole microseconds since 1970 in UTC; one that 64 bits cannot hold is moved within them."""
    import pyarrow as pa

    days = pa.types.is_date32(cells.type)
    empty = cells.is_null().to_numpy(zero_copy_only=False)
    raw = cells.cast(pa.int32()).cast(pa.int64()) if days else cells.cast(pa.int64())
    raw = raw.fill_null(0).to_numpy(zero_copy_only=False)
    unit = "ms" if pa.types.is_date64(cells.type) else "d" if days else cells.type.unit
    if unit == "ns":
        found = raw // 1000
    else:
        factor = DAY if unit == "d" else 10**6 // PER_SECOND[unit]
        found = np.clip(raw, -(FARTHEST // factor), FARTHEST // factor) * factor
    return pa.array(np.clip(found, -FARTHEST, FARTHEST), mask=empty)


def days_of(cells: Any) -> NDArray[np.float64]:
    """Each date or time as days since 1970-01-01, the time of day as their fraction; NaN for none."""
    import pyarrow as pa

    if pa.types.is_date32(cells.type):
        return floats_of(cells.cast(pa.int32()))
    whole = microseconds(cells)
    found = whole.fill_null(0).to_numpy(zero_copy_only=False)
    since = found // DAY + found % DAY / DAY
    return np.where(whole.is_null().to_numpy(zero_copy_only=False), np.nan, since)


def _number_texts(numbers: NDArray[np.float64]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    near = whole & (np.abs(numbers) < LARGEST_WHOLE)
    digits = pa.array(np.where(near, numbers, 0).astype(np.int64)).cast(pa.large_string())
    if near.all():
        return digits
    shortest = pa.array(np.where(whole, np.nan, numbers), from_pandas=True).cast(pa.large_string())
    return pc.if_else(pa.array(near), digits, shortest)


def _decimal_texts(cells: Any) -> Any:
    """Decimals written out: Arrow writes zeros and small ones with an exponent that follows from the column's scale."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = cells.cast(pa.large_string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    written = [None if each is None else format(each, "f") for each in cells.to_pylist()]
    return pa.array(written, pa.large_string())


def _time_texts(moments: pa.Array) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = moments.cast(pa.timestamp("us")).cast(pa.large_string())
    seconds = pc.utf8_rtrim(pc.replace_substring_regex(texts, ZEROS, r"\1"), ".")
    return pc.replace_substring_regex(seconds, MIDNIGHT, "")


# ---------------------------------------------------------------------- Python objects


def object_cells(values: Any) -> pa.Array:
    """Python objects as an Arrow union: each cell in the type of its own kind, whatever the others are."""
    import pyarrow as pa

    types, cells = _kinds(), list(values)
    children: dict[type | None, list[Any]] = {kind: [] for kind in types}
    kinds = set(map(type, cells)) - {type(None)}
    if (
        len(kinds) == 1
        and kinds <= {bool, int, float, str}
        and (alone := _alone(cells, types, kinds.pop())) is not None
    ):
        return alone
    numbers = {kind: number for number, kind in enumerate(types)}
    codes, offsets = [], []
    for cell in cells:
        kind, plain = _kind_of(cell)
        codes.append(numbers[kind])
        offsets.append(len(children[kind]))
        children[kind].append(plain)
    arrays = [pa.array(children[kind], arrow) for kind, arrow in types.items()]
    return pa.UnionArray.from_dense(pa.array(codes, pa.int8()), pa.array(offsets, pa.int32()), arrays)


def _kinds() -> dict[type | None, Any]:
    """The kinds of cells and their Arrow types; object stands for everything that no schema can list."""
    import pyarrow as pa

    return {
        None: pa.null(),
        bool: pa.bool_(),
        int: pa.int64(),
        float: pa.float64(),
        str: pa.large_string(),
        datetime.date: pa.date32(),
        datetime.datetime: pa.timestamp("us"),
        object: pa.struct([]),
    }


def _alone(cells: Sequence[Any], types: dict[type | None, Any], kind: type) -> pa.Array | None:
    """The union of cells of one kind, quickly; None where one of them is beyond 64 bits or half a character."""
    import pyarrow as pa

    try:
        child = pa.array(cells, types[kind], from_pandas=True)
    except (OverflowError, UnicodeEncodeError, pa.ArrowException):
        return None
    codes = np.full(len(cells), list(types).index(kind), np.int8)
    arrays = [child if each is kind else pa.array([], arrow) for each, arrow in types.items()]
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(np.arange(len(cells), dtype=np.int32)), arrays)


def _kind_of(cell: Any) -> tuple[type | None, Any]:
    """The kind of a cell and its plain value."""
    try:
        return _plain_kind(cell)
    except Exception:  # whatever an object does when it is looked at, it says nothing about the other rows
        return object, {}


def _plain_kind(cell: Any) -> tuple[type | None, Any]:
    if isinstance(cell, np.datetime64):
        return _moment_of(cell)
    if isinstance(cell, np.timedelta64):
        return (None, None) if np.isnat(cell) else (object, {})
    if isinstance(cell, np.generic):
        cell = cell.item()
    if is_missing(cell):
        return None, None
    if isinstance(cell, bool):
        return bool, cell
    if isinstance(cell, int):
        return (int, int(cell)) if -(2**63) <= cell < 2**63 else (float, _as_float(cell))
    if isinstance(cell, (float, np.floating)):
        return float, float(cell)
    if isinstance(cell, decimal.Decimal):
        return _decimal_of(cell)
    if isinstance(cell, complex) and cell.imag == 0:  # one complex number makes all of a column complex
        return _plain_kind(cell.real)
    if isinstance(cell, datetime.datetime):
        if hasattr(cell, "asm8"):  # pandas' own, which reaches beyond Python's years and has nanoseconds
            return _moment_of(cell.asm8)
        since = cell.replace(tzinfo=None) - EPOCH - (cell.utcoffset() or datetime.timedelta())
        return datetime.datetime, since // datetime.timedelta(microseconds=1)
    if isinstance(cell, datetime.date):
        return datetime.date, (cell - EPOCH.date()).days
    if isinstance(cell, str):
        return str, str.__str__(cell).encode(errors="backslashreplace").decode()
    if isinstance(cell, bytes):
        return str, cell.decode(errors="backslashreplace")
    return (str, str(cell)) if isinstance(cell, uuid.UUID) else (object, {})


def is_missing(cell: Any) -> bool:
    """Whether a Python object stands for a missing value."""
    if isinstance(cell, (float, np.floating)):
        return bool(np.isnan(cell))
    if isinstance(cell, decimal.Decimal):
        return cell.is_nan()
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _moment_of(cell: np.datetime64) -> tuple[type | None, Any]:
    import pyarrow as pa

    if np.isnat(cell):
        return None, None
    unit = np.datetime_data(cell.dtype)[0]
    if unit not in PER_SECOND:
        cell, unit = cell.astype("datetime64[s]"), "s"
    return datetime.datetime, microseconds(pa.array([int(cell.astype(np.int64))], pa.timestamp(unit)))[0].as_py()


def _decimal_of(cell: decimal.Decimal) -> tuple[type, Any]:
    """A whole number, or text without trailing zeros, like a column of decimals; a float where that is too long."""
    if not cell.is_finite() or (cell and abs(cell.adjusted()) > LONGEST):
        return float, float(cell)
    if abs(cell) < LARGEST_WHOLE and cell == int(cell):
        return int, int(cell)
    text = format(cell, "f")
    return str, text.rstrip("0").rstrip(".") if "." in text else text


def _as_float(whole: int) -> float:
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
