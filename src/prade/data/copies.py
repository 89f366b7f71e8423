"""Copies: synthetic rows that have, in every coded column, the values of one and the same public row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, smallest_unsigned
from prade.data.cells import one_piece
from prade.data.matching import code_cells, numbers_of
from prade.data.row_index import RowIndex
from prade.data.tables import plain_cells

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.menus import Menu

MISSING, OUTSIDE = 0, 1  # no value, or one that is not in the menu; other values are numbered from 2 on


class Copies:
    """Finds the rows of tables that have, in all columns of these menus, the values of one public row.

    Values are compared as they are written: of two wages in one bin only the same wage is equal.
    """

    def __init__(self, menus: Sequence[Menu]) -> None:
        self._menus = menus

    def flags(self, table: pa.Table) -> Flags:
        """Whether each row is a copy."""
        first, stop = self._index.runs([_numbered_cells(menu, table[menu.column.name]) for menu in self._menus])
        return first < stop

    @cached_property
    def whole(self) -> Flags:
        """Whether all values of each public row are in the domain: only such a row can have a copy."""
        whole = np.ones(len(self._menus[0].codes), np.bool_)
        for menu in self._menus:
            whole &= (menu.codes >= menu.column.present) | (menu.of_row >= 0)
        return whole

    @cached_property
    def _index(self) -> RowIndex:
        """The public rows by all their values."""
        numbers = [_numbered_rows(menu) for menu in self._menus]
        narrow = [each.astype(smallest_unsigned(int(each.max(initial=0)))) for each in numbers]
        return RowIndex(narrow, [int(each.max(initial=0)) + 1 for each in numbers])


def _numbered_rows(menu: Menu) -> Ints:
    """A number for the value of each public row."""
    place = menu.of_row.astype(np.int64)
    if menu.column.kind == "numeric":
        place = np.where(place < 0, place, np.append(_ranks(menu)[1], -1)[place])
    # A value outside the domain has a code too, but it is not the value that is written for the code.
    return np.where(menu.codes >= menu.column.present, MISSING, np.where(place < 0, OUTSIDE, place + 2))


def _numbered_cells(menu: Menu, cells: Any) -> Ints:
    """A number for the value of each cell, that of the public rows with an equal value; -1 for one that none has."""
    column, cells = menu.column, one_piece(plain_cells(cells))
    codes, fits = code_cells(column, cells)
    if column.kind == "numeric":
        known = _ranks(menu)[0]
        numbers = numbers_of(column, cells)
        index = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
        fits &= np.append(known, np.nan)[index] == numbers
    else:
        index = codes
    return np.where(codes >= column.present, MISSING, np.where(fits, index + 2, -1))


def _ranks(menu: Menu) -> tuple[Floats, Ints]:
    """The numbers of a menu in rising order, and the rank of each value: it may have one twice, as "1" and "1.0"."""
    known, rank = np.unique(numbers_of(menu.column, menu.values), return_inverse=True)
    return known, rank
