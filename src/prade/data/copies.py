"""Copies: synthetic rows that have, in every coded column, the values of one and the same public row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, distinct_rows, smallest_unsigned
from prade.data.cells import one_piece
from prade.data.matching import code_cells, numbers_of
from prade.data.tables import plain_cells

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.menus import Menu

SHARE = b"prade:copied"
MISSING, OUTSIDE = 0, 1  # no value, or one that is not in the menu; other values are numbered from 2 on


def with_copied_share(table: pa.Table, copied: Flags) -> pa.Table:
    """The table with the share of its rows that are copies, which stays with it in parquet files."""
    share = float(copied.mean()) if len(copied) else 0.0
    return table.replace_schema_metadata({**(table.schema.metadata or {}), SHARE: str(share).encode()})


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


def copied_rows(menus: Sequence[Menu], table: pa.Table) -> Flags:
    """Whether each row of a table has, in all columns of these menus, the values of one public row.

    Values are compared as they are written: of two wages in one bin only the same wage is equal.
    """
    both = [np.concatenate(_numbered(menu, table[menu.column.name])) for menu in menus]
    public = len(menus[0].codes)
    number = distinct_rows(both)[1]
    is_public = np.zeros(len(number), np.bool_)
    is_public[number[:public]] = True
    return np.asarray(is_public[number[public:]])


def _numbered(menu: Menu, cells: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """A number for the value of each public row, and of each cell; equal values have equal numbers."""
    column, cells = menu.column, one_piece(plain_cells(cells))
    place = menu.of_row.astype(np.int64)
    codes, fits = code_cells(column, cells)
    if column.kind == "numeric":  # the menu may have a number twice, as the texts "1" and "1.0"
        known, rank = np.unique(numbers_of(column, menu.values), return_inverse=True)
        place = np.where(place < 0, place, np.append(rank, -1)[place])
        numbers = numbers_of(column, cells)
        index = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
        fits &= np.append(known, np.nan)[index] == numbers
    else:
        index = codes
    # A value outside the domain has a code too, but it is not the value that is written for the code.
    public = np.where(menu.codes >= column.present, MISSING, np.where(place < 0, OUTSIDE, place + 2))
    mine = np.where(codes >= column.present, MISSING, np.where(fits, index + 2, OUTSIDE))
    beyond = int(max(public.max(initial=0), mine.max(initial=0))) + 1
    mine[mine == OUTSIDE] = beyond  # equal to no public value
    kind = smallest_unsigned(beyond)
    return public.astype(kind), mine.astype(kind)
