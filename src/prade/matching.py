"""Cells to codes, one column at a time: the rule by which a cell is one of a column's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.column import Column

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
MIDNIGHT = r"[ T]00:00:00(\.0+)?(Z|\+00:?00)?$"
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}

Coding = tuple[NDArray[np.int64], NDArray[np.bool_]]


def code_cells(column: Column, cells: Any) -> Coding:
    """The code of each cell, and whether the cell is in the domain (False where a policy had to decide)."""
    import pyarrow as pa

    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if isinstance(cells, pa.ChunkedArray):  # dictionaries that differ from chunk to chunk
        cells = cells.unify_dictionaries().combine_chunks()
    if is_text(cells.type):
        # Text repeats; looking at each distinct one once is what makes CSV columns fast.
        cells = cells.cast(pa.large_string()).dictionary_encode()
    if pa.types.is_dictionary(cells.type):
        return _spread(column, cells)
    return _code_plain(column, cells)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of the kinds of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _spread(column: Column, cells: Any) -> Coding:
    """Code the distinct values of a dictionary column and hand the result to the rows."""
    import pyarrow as pa

    distinct = cells.dictionary
    if is_text(distinct.type):
        distinct = distinct.cast(pa.large_string())
    # One more entry stands for the rows that have none.
    distinct = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
    codes, fits = _code_plain(column, distinct)
    rows = cells.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
    return codes[rows], fits[rows]


def _code_plain(column: Column, cells: Any) -> Coding:
    if column.kind == "numeric":
        codes, fits = _code_numbers(column, numbers_of(column, cells))
    else:
        place = _places(column, cells)
        fits = place >= 0
        codes = np.where(fits, place, column.fallback)
    if column.missing:
        empty = _empty(cells)
        codes[empty] = column.present
        fits |= empty
    return codes, fits


def _code_numbers(column: Column, numbers: NDArray[np.float64]) -> Coding:
    codes = np.searchsorted(np.asarray(column.cuts), numbers, side="right").astype(np.int64)
    codes[np.isnan(numbers)] = column.fallback
    beyond = np.zeros(len(numbers), dtype=np.bool_)
    if column.min is not None:
        beyond |= numbers < column.min
    if column.max is not None:
        beyond |= numbers > column.max
    if column.unknown == "missing":
        codes[beyond] = column.size - 1
    fits = np.isfinite(numbers) & ~beyond
    if column.integer and not column.dates:  # a time of day does not put a date out of its domain
        fits &= numbers == np.floor(numbers)
    return codes, fits


def _empty(cells: Any) -> NDArray[np.bool_]:
    import pyarrow as pa

    empty = cells.is_null(nan_is_null=pa.types.is_floating(cells.type))
    return np.asarray(empty.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _places(column: Column, cells: Any) -> NDArray[np.int64]:
    """The place of each cell in the list of values, -1 for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.value_type == "str":
        place = pc.index_in(_texts(column, cells), value_set=pa.array(column.values, pa.large_string()))
        return np.asarray(place.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    if column.value_type == "bool" and is_text(cells.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        truth = pc.index_in(words, value_set=pa.array(["false", "true", "0", "1"], pa.large_string()))
        cells = pc.bit_wise_and(truth, 1)
    signed = pa.types.is_signed_integer(cells.type) and column.value_type == "int"
    exact = signed and cells.null_count == 0  # 64-bit codes stay exact
    found: NDArray[Any] = cells.cast(pa.int64()).to_numpy() if exact else numbers_of(column, cells)
    values = np.asarray(column.values, dtype=np.int64 if exact else np.float64)
    order = np.argsort(values)
    near = np.minimum(np.searchsorted(values[order], found), len(values) - 1)
    return np.where(values[order][near] == found, order[near], -1).astype(np.int64)


def _texts(column: Column, cells: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    _refuse_unreadable(column, cells.type)
    texts = cells.cast(pa.large_string())
    return pc.replace_substring_regex(texts, MIDNIGHT, "") if pa.types.is_timestamp(cells.type) else texts


def numbers_of(column: Column, cells: Any) -> NDArray[np.float64]:
    """Each cell as the number that `column` bins it by; NaN for a cell that is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    _refuse_unreadable(column, kind)
    temporal = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan)
    if temporal != column.dates and not is_text(kind):
        declared = "dates" if column.dates else "numbers"
        raise DataError(f"column {column.name!r}: the schema has {declared}, the table's type is {kind}; convert it")
    if is_text(kind) and column.dates:
        # A time of day after the date does not move it to another day.
        days = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(cells), 0, 10)
        cells = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
        temporal, kind = True, cells.type
    elif is_text(kind):
        trimmed = pc.utf8_trim_whitespace(cells)
        readable = pc.match_substring_regex(trimmed, NUMBER)
        cells = pc.if_else(readable, trimmed, pa.scalar(None, trimmed.type))
    if pa.types.is_date32(kind):
        return _floats(cells.cast(pa.int32()))
    if temporal:
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        return _floats(cells.cast(pa.int64())) / PER_DAY[unit]
    return _floats(cells)


def _floats(cells: Any) -> NDArray[np.float64]:
    import pyarrow as pa

    found = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.float64)


def _refuse_unreadable(column: Column, kind: pa.DataType) -> None:
    """Types without an order or a text of their own are refused by type, whatever their cells hold."""
    import pyarrow as pa

    types = pa.types
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    if number or is_text(kind) or types.is_null(kind) or types.is_date(kind) or types.is_timestamp(kind):
        return
    raise DataError(
        f"column {column.name!r}: cells of type {kind} cannot be coded; "
        "convert them to numbers, text, true/false or dates"
    )
