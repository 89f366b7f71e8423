"""Which types of cells a public table may have, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError
from prade.data.cells import is_text, texts_of

if TYPE_CHECKING:
    import pyarrow as pa


def require_plain_type(name: str, kind: pa.DataType) -> None:
    """Refuse a column of a public table whose cells are not single values: lists, records, spans of time, bytes."""
    import pyarrow as pa

    types = pa.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    dated = types.is_date(kind) or types.is_timestamp(kind)
    if not (number or dated or is_text(kind) or types.is_boolean(kind) or types.is_null(kind)):
        raise DataError(
            f"column {name!r}: cells of type {kind} are not read; convert them to numbers, text, true/false or dates"
        )


def replace_invalid_utf8(table: pa.Table) -> pa.Table:
    """The table with bytes that are not UTF-8 replaced, in each text by itself, as in a CSV file."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        cells = table.column(place)
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        if is_text(kind):
            try:
                cells.validate(full=True)
            except pa.ArrowInvalid:
                raw = cells.cast(kind).cast(pa.large_binary()).to_pylist()
                texts = [None if each is None else each.decode(errors="replace") for each in raw]
                table = table.set_column(place, name, pa.chunked_array([pa.array(texts, kind)]))
    return table


def python_values(cells: Any) -> list[Any]:
    """The cells as Python's own values; dates and times that Python does not know as text."""
    try:
        return list(cells.to_pylist())
    except (OverflowError, ValueError):
        return list(texts_of(cells).to_pylist())
