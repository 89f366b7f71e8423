"""The share of synthetic rows that are copies of one public row, as a table and its files state it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from prade.core.arrays import Flags

if TYPE_CHECKING:
    import pyarrow as pa

SHARE = b"prade:copied"


def with_copied_share(table: pa.Table, copied: Flags) -> pa.Table:
    """The table with the share of its rows that are copies, which stays with it in parquet files."""
    return table.replace_schema_metadata(noted_share(table.schema, int(copied.sum()), len(copied)).metadata)


def noted_share(schema: pa.Schema, copied: int, rows: int) -> pa.Schema:
    """A schema that states how many of a table's rows are copies, as a share."""
    share = copied / rows if rows else 0.0
    return schema.with_metadata({**(schema.metadata or {}), SHARE: str(share).encode()})


def copied_share(schema: pa.Schema) -> float | None:
    """The share of copies that a table's schema states; None if it states none."""
    with suppress(ValueError):
        stated = (schema.metadata or {}).get(SHARE)
        share = None if stated is None else float(stated)
        return share if share is None or 0 <= share <= 1 else None
    return None


def copies_in_words(share: float | None) -> str:
    """How many of the synthetic rows are copies, in one sentence; the share is rounded down, so 100 % means all.

    >>> copies_in_words(0.99999)
    '99.9 % of the rows have, in every column but those of groups and person ids, the values of one public row.'
    """
    if share is None:
        return "How many of the rows have exactly the values of one public row was not recorded."
    percent = f"{math.floor(1000 * share) / 10:g} %"
    return (
        f"{percent} of the rows have, in every column but those of groups and person ids, the values of one public row."
    )
