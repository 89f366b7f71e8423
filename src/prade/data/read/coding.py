"""The codec: which of its column's values or bins each cell is.

How cells are matched depends on the column's list of values, never on the cells. If the list contains numbers, cells
are read as numbers (1, 1.0, "1" and "1.0" are the same). If it contains text, texts are compared (whole numbers are
written without a decimal point, dates as 2020-12-31). A list of true and false accepts these words, 1 and 0. Numeric
columns read cells as numbers, or as dates if their edges are dates. A cell that does not match is coded by the
column's declared policy. No error, warning or log message depends on a cell, and no code depends on another row's
cell, so private rows may be coded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.data.declare.column import Column
from prade.data.declare.kinds import Coding
from prade.data.read.cells import clean_text, is_text, numbers_in, plain_array

if TYPE_CHECKING:
    import pyarrow as pa


def code_cells(column: Column, cells: Any, *, refuse: bool = True) -> Coding:
    """The code of each cell, and whether the cell is in the domain (False if the column's policy gave the code).

    With `refuse`, it is an error if the type of the cells cannot match the schema. Without it, such cells are values
    outside the domain, like a cell of the wrong kind among Python objects (an Arrow union): where a type depends on the
    rows, as in files and frames, an error could reveal that somebody's row was there.
    """
    import pyarrow as pa

    cells = plain_array(cells)
    if pa.types.is_union(cells.type):
        return _code_union(column, cells)
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
    if misfit is not None:
        return _outside(column, cells)
    return _code_dictionary(column, cells) if dictionary else _code_plain(column, cells)


def _outside(column: Column, cells: Any) -> Coding:
    """Codes for cells whose type cannot match the column: missing for empty cells, the fallback for all others."""
    empty = _empty(cells) if column.missing else np.zeros(len(cells), np.bool_)
    return np.where(empty, column.present, column.fallback).astype(np.int64), empty


def _code_union(column: Column, cells: Any) -> Coding:
    codes = np.full(len(cells), column.fallback, dtype=np.int64)
    fits = np.zeros(len(cells), dtype=np.bool_)
    kinds, offsets = cells.type_codes.to_numpy(), cells.offsets.to_numpy()
    for kind in np.unique(kinds):
        rows = kinds == kind
        child_codes, child_fits = code_cells(column, cells.field(int(kind)), refuse=False)
        codes[rows], fits[rows] = child_codes[offsets[rows]], child_fits[offsets[rows]]
    return codes, fits


def _code_dictionary(column: Column, cells: Any) -> Coding:
    """Code the distinct values of a dictionary-encoded column, then look up each row's code."""
    import pyarrow as pa

    distinct = cells.dictionary
    if is_text(distinct.type):
        distinct = clean_text(distinct)
    # One additional entry stands for empty cells.
    distinct = pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])
    codes, fits = _code_plain(column, distinct)
    rows = cells.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
    return codes[rows], fits[rows]


def _code_plain(column: Column, cells: Any) -> Coding:
    codes, fits = column.domain.codes(cells, column.fallback)
    if column.missing:
        empty = _empty(cells)
        codes[empty] = column.present
        fits |= empty
    return codes, fits


def _empty(cells: Any) -> NDArray[np.bool_]:
    import pyarrow as pa

    empty = cells.is_null(nan_is_null=pa.types.is_floating(cells.type))
    return np.asarray(empty.to_numpy(zero_copy_only=False), dtype=np.bool_)


def numbers_of(column: Column, cells: Any) -> NDArray[np.float64]:
    """The number by which `column` bins each cell; NaN for a cell that is not a number."""
    if (misfit := _misfit(column, cells.type)) is not None:
        raise DataError(f"column {column.name!r}: {misfit}")
    return numbers_in(cells, dates=column.dates)


def _misfit(column: Column, kind: pa.DataType) -> str | None:
    """Why cells of this type cannot be coded, whatever their values are; None if they can."""
    import pyarrow as pa

    types = pa.types
    if is_text(kind) or types.is_null(kind):
        return None
    dates = types.is_date(kind) or types.is_timestamp(kind)
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    if not dates and not number:
        return f"cells of type {kind} cannot be coded; convert them to numbers, text, true/false or dates"
    if column.value_type != "str" and dates != column.dates:
        return f"the schema has {'dates' if column.dates else 'numbers'}, but the table has the type {kind}; convert it"
    return None
