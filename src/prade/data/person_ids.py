"""Ids of persons, read exactly: two persons never become one, and one person never becomes two.

If two did, they would displace each other's rows; if one became two, twice as many rows would count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prade.data.cells import DAY, FARTHEST, decimal_texts, floats_of, is_text, microseconds, plain_array, texts_of
from prade.data.column import LARGEST_WHOLE


def exact_ids(cells: Any) -> Any:
    """Each row's person id as bytes, the same for 7, 7.0 and "7"; null where it is missing or cannot be an id.

    Different ids have different bytes, and one id has the same bytes in every type that can store it: files of one
    table may have different types. Floats from 2**53 on skip numbers, so none of them is an id. An empty text is a
    missing id.
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
        numbers = floats_of(cells)
        texts = texts_of(pa.array(np.where(np.abs(numbers) < LARGEST_WHOLE, numbers, np.nan), from_pandas=True))
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
    return pc.if_else(pc.equal(pc.binary_length(raw), 0), pa.scalar(None, raw.type), raw)


def _stored(cells: Any) -> Any:
    """The cells as a plain array in which text and bytes are the bytes that the source has."""
    import pyarrow as pa

    types, kind = pa.types, getattr(cells, "type", None)
    binary = types.is_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind)
    return cells.cast(pa.large_binary()) if binary else cells if types.is_large_binary(kind) else plain_array(cells)


def _moments(cells: Any) -> Any:
    """Dates and times as exact text, whatever their unit; null beyond the range in which units can be compared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    since, text = microseconds(cells), pa.large_string()
    within = pc.less(pc.abs(since), FARTHEST - DAY)  # those beyond were moved to the last whole unit before the limit
    texts = pc.if_else(within, since, pa.scalar(None, since.type)).cast(text)
    if not pa.types.is_timestamp(cells.type) or cells.type.unit != "ns":
        return texts
    rest = pa.array(cells.cast(pa.int64()).fill_null(0).to_numpy() % 1000)
    finer = pc.binary_join_element_wise(texts, rest.cast(text), pa.scalar("+", text))
    return pc.if_else(pc.equal(rest, 0), texts, finer)
