"""Reading the file of a release's estimates: every row is checked before any of its numbers is used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from prade.core.documents import Malformed, structured
from prade.estimating.estimate import Status

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 3
LARGEST_TOTAL = 2**53  # rows of a group: noisy counts are not larger, and doubles hold it exactly


class Header(msgspec.Struct):
    """The header of the file: how the estimates were made, and a fingerprint of their inputs."""

    format: int
    settings: dict[str, Any]
    inputs: str


class Row(msgspec.Struct):
    """One group's estimate.

    `spread` are the numbers a, w and `shared` of its smoothers, the ratio that its variances are multiplied by, and
    the means of a and w; `excess` are the variances of its cells beyond them.
    """

    group: str
    total: float
    status: Status
    kl: float
    gap: float
    multipliers: list[float]
    alike: list[float] | None
    spread: list[list[float]] | None
    excess: list[float] | None
    emptied: bytes | None

    def check(self, public_groups: int) -> None:
        """Refuse numbers that no estimate has, and lists of the wrong length."""
        numbers = [self.multipliers, self.alike or [], self.excess or [], *(self.spread or [])]
        if not 0 <= self.total <= LARGEST_TOTAL or not all(math.isfinite(x) for each in numbers for x in each):
            raise Malformed(f"{self.group}: a number is not finite, or not a number of rows")
        if self.alike is not None and len(self.alike) != public_groups:
            raise Malformed(f"{self.group}: not one weight for each public group")
        if any(len(each) != 6 for each in self.spread or []):
            raise Malformed(f"{self.group}: not four numbers for each block")


def rows_of(table: pa.Table, public_groups: int) -> list[Row]:
    """The rows of a table that has the columns and types that are written."""
    import pyarrow as pa

    numbers = pa.list_(pa.float64())
    wanted = {
        **dict.fromkeys(("level", "group", "status"), pa.string()),
        **dict.fromkeys(("total", "kl", "gap"), pa.float64()),
        **dict.fromkeys(("multipliers", "alike", "excess"), numbers),
        "spread": pa.list_(numbers),
        "emptied": pa.binary(),
    }
    given = {field.name: field.type for field in table.schema}
    fits = len(given) == table.num_columns and given.keys() == wanted.keys()
    if not fits or any(kind not in (wanted[name], pa.null()) for name, kind in given.items()):  # null: no value at all
        raise Malformed("the columns are not those that are written")
    rows = structured(table.to_pylist(), list[Row])
    for row in rows:
        row.check(public_groups)
    return rows
