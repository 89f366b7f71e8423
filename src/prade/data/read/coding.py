"""The codec: which of its column's values or bins each cell is; and persons' ids, read exactly.

How cells are matched depends on the column's list of values, never on the cells. If it lists numbers, cells are read
as numbers (1, 1.0, "1" and "1.0" are the same); if text, texts are compared; true and false accept these words, 1 and
0. Numeric columns read numbers, or dates if their edges are dates. A cell that does not match is coded by the column's
policy. Rows may be private: no error, warning or log message depends on a cell, and a row's code on no other row.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.data.declare.column import Column
from prade.data.declare.kinds import Coding
from prade.data.read.cells import (
    DAY,
    FARTHEST,
    clean_text,
    decimal_texts,
    floats_of,
    is_day,
    is_number,
    is_text,
    microseconds,
    numbers_in,
    one_piece,
    plain_array,
    texts_of,
)


def code_cells(column: Column, cells: Any, *, refuse: bool = True) -> Coding:
    """The code of each cell, and whether the cell is in the domain (False if the column's policy gave the code).

    With `refuse`, a type of cells that cannot match the schema is an error. Without it, such cells are outside the
    domain: where a type depends on the rows, as in files, an error could reveal that somebody's row was there.
    """
    cells = plain_array(cells)
    if pa.types.is_union(cells.type):
        codes, fits = np.full(len(cells), column.fallback, dtype=np.int64), np.zeros(len(cells), dtype=np.bool_)
        kinds, offsets = cells.type_codes.to_numpy(), cells.offsets.to_numpy()
        for kind in np.unique(kinds):
            rows = kinds == kind
            child_codes, child_fits = code_cells(column, cells.field(int(kind)), refuse=False)
            codes[rows], fits[rows] = child_codes[offsets[rows]], child_fits[offsets[rows]]
        return codes, fits
    if is_text(cells.type):
        # Texts repeat, so coding each distinct text only once makes CSV columns fast.
        cells = cells.cast(pa.large_string()).dictionary_encode()
    dictionary = pa.types.is_dictionary(cells.type)
    if dictionary:
        distinct = plain_array(cells.dictionary)
        cells = pa.DictionaryArray.from_arrays(cells.indices.cast(pa.int64()), distinct)
    misfit = _misfit(column, cells.type.value_type if dictionary else cells.type)
    if misfit is not None and refuse:
        raise DataError(f"column {column.name!r}: {misfit}")
    if misfit is not None:  # missing if empty, else the fallback
        empty = _empty(cells) if column.missing else np.zeros(len(cells), np.bool_)
        return np.where(empty, column.present, column.fallback).astype(np.int64), empty
    return _code_plain(column, cells)


def _code_plain(column: Column, cells: Any) -> Coding:
    if pa.types.is_dictionary(cells.type):  # code the distinct values, then look up each row's code
        distinct = clean_text(cells.dictionary) if is_text(cells.dictionary.type) else cells.dictionary
        # One additional entry stands for empty cells.
        codes, fits = _code_plain(column, pa.concat_arrays([distinct, pa.nulls(1, distinct.type)]))
        rows = cells.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        return codes[rows], fits[rows]
    codes, fits = column.domain.codes(cells, column.fallback)
    if column.missing:
        empty = _empty(cells)
        codes[empty] = column.present
        fits |= empty
    return codes, fits


def _empty(cells: Any) -> NDArray[np.bool_]:
    empty = cells.is_null(nan_is_null=pa.types.is_floating(cells.type))
    return np.asarray(empty.to_numpy(zero_copy_only=False), dtype=np.bool_)


def numbers_of(column: Column, cells: Any) -> NDArray[np.float64]:
    """The number by which `column` bins each cell; NaN for a cell that is not a number."""
    if (misfit := _misfit(column, cells.type)) is not None:
        raise DataError(f"column {column.name!r}: {misfit}")
    return numbers_in(cells, dates=column.dates)


def _misfit(column: Column, kind: pa.DataType) -> str | None:
    """Why cells of this type cannot be coded, whatever their values are; None if they can."""
    if is_text(kind) or pa.types.is_null(kind):
        return None
    dates = is_day(kind)
    if not dates and not is_number(kind) and not pa.types.is_boolean(kind):
        return f"cells of type {kind} cannot be coded; convert them to numbers, text, true/false or dates"
    if column.value_type != "str" and dates != column.dates:
        return f"the schema has {'dates' if column.dates else 'numbers'}, but the table has the type {kind}; convert it"
    return None


# ---------------------------------------------------------------------- ids of persons


MANTISSA = {16: 11, 32: 24, 64: 53}  # bits of floats of these widths: from 2 ** bits on they skip whole numbers
WHOLE_WITH_ZEROS = r"^(-?[0-9]+)\.0+$"
YEAR_1, YEAR_10000 = -719_162 * DAY, 2_932_897 * DAY  # microseconds since 1970


def exact_ids(cells: Any) -> Any:
    """Each row's person id as bytes; null where it is missing or cannot be an id.

    Two persons never become one, or they would displace each other's rows; one person never becomes two, or twice as
    many rows would count. So different ids have different bytes, and one id has the same bytes in all types that the
    files of one table may have:

        numbers          7, 7.0, Decimal("7.00") and the texts "7" and "7.0", which a CSV file has once an id is missing
        dates, times     2020-12-31 as a date, a time or text
        UUIDs            as UUIDs and as text

    Floats that skip numbers (doubles from 2**53 on) are not ids. An empty text is a missing id.
    """
    cells, types = _stored(cells), pa.types
    kind = cells.type
    if types.is_dictionary(kind):
        return exact_ids(cells.dictionary).take(cells.indices)
    if types.is_union(kind):
        children = [exact_ids(cells.field(number)) for number in range(kind.num_fields)]
        starts = np.cumsum([0, *map(len, children)])[:-1]
        rows = starts[cells.type_codes.to_numpy()] + cells.offsets.to_numpy()
        return pa.concat_arrays(children).take(pa.array(rows))
    if types.is_integer(kind):
        texts = cells.cast(pa.large_string())
    elif types.is_floating(kind):
        numbers, skips = floats_of(cells), 2.0 ** MANTISSA[kind.bit_width]
        texts = texts_of(pa.array(np.where(np.abs(numbers) < skips, numbers, np.nan), from_pandas=True))
    elif types.is_decimal(kind):
        texts = decimal_texts(cells)
    elif types.is_date(kind) or types.is_timestamp(kind):
        texts = _moments(cells)
    elif types.is_boolean(kind):
        texts = texts_of(cells)
    elif is_text(kind) or types.is_large_binary(kind):
        texts = cells
    else:
        return pa.nulls(len(cells), pa.large_binary())
    raw = texts.cast(pa.large_binary())
    raw = pc.replace_substring_regex(raw, WHOLE_WITH_ZEROS, r"\1")
    return pc.if_else(pc.equal(pc.binary_length(raw), 0), pa.scalar(None, raw.type), raw)


def _stored(cells: Any) -> Any:
    """The cells as a plain array in which text and bytes are the bytes that the source has; UUIDs become text."""
    cells = one_piece(cells)
    types, kind = pa.types, cells.type
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        raw = cells.storage.to_pylist()
        return pa.array([None if each is None else str(uuid.UUID(bytes=each)) for each in raw], pa.large_string())
    binary = types.is_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind)
    return cells.cast(pa.large_binary()) if binary else cells if types.is_large_binary(kind) else plain_array(cells)


def _moments(cells: Any) -> Any:
    """Dates and times as the text that people write, as numbers in years without such text; null where units differ."""
    since, text = microseconds(cells), pa.large_string()
    written = pc.and_(pc.greater_equal(since, YEAR_1), pc.less(since, YEAR_10000))
    texts = texts_of(pc.if_else(written, since, 0).cast(pa.timestamp("us")))
    within = pc.less(pc.abs(since), FARTHEST - DAY)  # those beyond were moved to the last whole unit before the limit
    far = pc.binary_join_element_wise(pa.scalar("@", text), since.cast(text), pa.scalar("", text))
    texts = pc.if_else(written, texts, pc.if_else(within, far, pa.scalar(None, text)))
    if not pa.types.is_timestamp(cells.type) or cells.type.unit != "ns":
        return texts
    rest = pa.array(cells.cast(pa.int64()).fill_null(0).to_numpy() % 1000)
    finer = pc.binary_join_element_wise(texts, rest.cast(text), pa.scalar("+", text))
    return pc.if_else(pc.equal(rest, 0), texts, finer)
