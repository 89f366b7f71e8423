"""The seed of synthetic rows, noted in their table, so that a report can say how to draw the same rows again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

SEED = b"prade:seed"


def with_seed(table: pa.Table, seed: int) -> pa.Table:
    """The table with the seed that it was drawn with, which stays with it in parquet files."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), SEED: str(seed).encode()})


def seed_of(schema: pa.Schema) -> int | None:
    """The seed that a table's schema states; None if it states none."""
    stated = (schema.metadata or {}).get(SEED)
    with suppress(ValueError):
        return None if stated is None else int(stated)
    return None
