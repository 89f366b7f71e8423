"""Types of cells: which of them a public table may have, and how their values are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError
from prade.data.cells import clean_text, is_text, texts_of

if TYPE_CHECKING:
    import pyarrow as pa


def require_plain_type(name: str, kind: pa.DataType) -> None:
    """Refuse a column of a public table whose cells are not single values: lists, structs, durations, bytes."""
    import pyarrow as pa

    types = pa.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    date = types.is_date(kind) or types.is_timestamp(kind)
    if not (number or date or is_text(kind) or types.is_boolean(kind) or types.is_null(kind)):
        raise DataError(
            f"column {name!r}: cells of type {kind} are not supported; convert them to numbers, text, true/false or "
            "dates"
        )


def replace_invalid_utf8(table: pa.Table) -> pa.Table:
    """Replace text cells that are not valid UTF-8, each by its own bytes (`prade.data.cells.text_of_bytes`)."""
    import pyarrow as pa

    for index, name in enumerate(table.column_names):
        cells = table.column(index)
        kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
        if is_text(kind):
            try:
                cells.validate(full=True)
            except pa.ArrowInvalid:
                texts = clean_text(cells.cast(kind))
                table = table.set_column(index, name, texts.cast(kind))
    return table


def python_values(cells: Any) -> list[Any]:
    """The cells as Python values; dates and times that Python cannot represent become text."""
    try:
        return list(cells.to_pylist())
    except (OverflowError, ValueError):
        return list(texts_of(cells).to_pylist())
