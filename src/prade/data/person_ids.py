"""Ids of persons, read exactly: two persons never become one, and one person never becomes two.

If two did, they would displace each other's rows; if one became two, twice as many rows would count.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from prade.data.read.cells import (
    DAY,
    FARTHEST,
    decimal_texts,
    floats_of,
    is_text,
    microseconds,
    one_piece,
    plain_array,
    texts_of,
)

MANTISSA = {16: 11, 32: 24, 64: 53}  # bits of floats of these widths: from 2 ** bits on they skip whole numbers
WHOLE_WITH_ZEROS = r"^(-?[0-9]+)\.0+$"
YEAR_1, YEAR_10000 = -719_162 * DAY, 2_932_897 * DAY  # microseconds since 1970


def exact_ids(cells: Any) -> Any:
    """Each row's person id as bytes; null where it is missing or cannot be an id.

    Different ids have different bytes, and one id has the same bytes in all types that files of one table may have:

        numbers          7, 7.0, Decimal("7.00") and the texts "7" and "7.0", which a CSV file has once an id is missing
        dates, times     2020-12-31 as a date, a time or text
        UUIDs            as UUIDs and as text

    Floats that skip numbers (doubles from 2**53 on) are not ids. An empty text is a missing id.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

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
    import pyarrow as pa

    cells = one_piece(cells)
    types, kind = pa.types, cells.type
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        raw = cells.storage.to_pylist()
        return pa.array([None if each is None else str(uuid.UUID(bytes=each)) for each in raw], pa.large_string())
    binary = types.is_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind)
    return cells.cast(pa.large_binary()) if binary else cells if types.is_large_binary(kind) else plain_array(cells)


def _moments(cells: Any) -> Any:
    """Dates and times as the text that people write, or, in years that text has no form for, as a number.

    Null beyond the range in which units can be compared.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

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
