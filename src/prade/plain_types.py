"""Which types of cells a public table may have, and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prade.cells import is_text, texts_of
from prade.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def need_plain(name: str, kind: pa.DataType) -> None:
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


def python_values(cells: Any) -> list[Any]:
    """The cells as Python's own values; dates and times that Python does not know as text."""
    try:
        return list(cells.to_pylist())
    except (OverflowError, ValueError):
        return list(texts_of(cells).to_pylist())
