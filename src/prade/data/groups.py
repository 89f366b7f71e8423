"""The public list of groups: which places, years or strata there are, decided before any private row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import DataError
from prade.core.words import closest, names_of
from prade.data.column import Column

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_PLACE = 2**62


@dataclass(frozen=True)
class Grouping:
    """The groups of one level: `values` of its columns, one tuple a group, and the group of each row of the list."""

    by: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def labels(self) -> list[str]:
        """One readable text a group; "all" for the whole table."""
        named = [[f"{name} {value}" for name, value in zip(self.by, row, strict=True)] for row in self.values]
        return [", ".join(each) or "all" for each in named]

    def above(self, coarser: Grouping) -> NDArray[np.int64]:
        """The group of a coarser level that each group is in; both levels are of one list.

        >>> groups = Groups.of({"STATE": [17, 17, 39], "PUMA": [100, 200, 100]})
        >>> groups.level(["STATE", "PUMA"]).above(groups.level(["STATE"]))
        array([0, 0, 1])
        """
        found = np.zeros(len(self), np.int64)
        found[self.number] = coarser.number
        return found


@dataclass(frozen=True, eq=False)
class Groups:
    """A list of groups: some columns, and for each group the place of its value in each column's list of values.

    The columns may nest, as STATE and PUMA do; a level is named by some of them and its groups are the combinations
    that the list has. Without columns there is one group: everybody.

    >>> groups = Groups.of({"STATE": [17, 17, 39], "PUMA": [100, 200, 100]})
    >>> groups.level(["STATE"]).labels()
    ['STATE 17', 'STATE 39']
    >>> len(groups.level(["STATE", "PUMA"])), len(groups.level([]))
    (3, 1)
    """

    columns: tuple[Column, ...]
    codes: NDArray[np.int64]  # [groups, columns]

    @classmethod
    def of(cls, table: Any = None) -> Groups:
        """The groups of a public table or file, one row a group, in its order; None for one group of everybody."""
        from prade.data.cell_types import require_plain_type
        from prade.data.cells import one_piece
        from prade.data.tables import column_names, distinct_values, group_cells, plain_cells, read_table

        if isinstance(table, Groups):
            return table
        if table is None:
            return cls((), np.zeros((1, 0), np.int64))
        found = read_table(table)
        if not found.num_rows or not found.num_columns:
            raise DataError("the list of groups is empty; give one row a group, or None to take all rows as one group")
        columns, places = [], []
        for name in column_names(found):
            cells = group_cells(table, name)
            require_plain_type(name, cells.type)
            values = distinct_values(cells)
            if None in values:
                raise DataError(f"the list of groups has an empty cell in column {name!r}; give every group a value")
            columns.append(Column(name, "group", values=tuple(values)))
            places.append(one_piece(plain_cells(cells)).dictionary_encode().indices.to_numpy())
        codes = np.stack(places, axis=1).astype(np.int64)
        if len(np.unique(codes, axis=0)) < len(codes):
            raise DataError("the list of groups names a group twice; name each once")
        return cls(tuple(columns), codes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return self.columns == other.columns and np.array_equal(self.codes, other.codes)

    def __hash__(self) -> int:
        return hash((self.columns, self.codes.tobytes()))

    def to_dict(self) -> dict[str, list[Any]]:
        """The list column by column, as a table."""
        return {
            column.name: [column.values[code] for code in self.codes[:, place]]
            for place, column in enumerate(self.columns)
        }

    def level(self, by: Sequence[str]) -> Grouping:
        """The groups that the columns `by` make, in order of appearance."""
        names = names_of(by)
        places = [self._place(name) for name in names]
        numbers: dict[bytes, int] = {}
        chosen = np.ascontiguousarray(self.codes[:, places])
        number = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in chosen], np.int64)
        first = np.unique(number, return_index=True)[1]
        values = tuple(
            tuple(self.columns[place].values[self.codes[row, place]] for place in places) for row in first.tolist()
        )
        return Grouping(names, values, number)

    def keyed(self, available: Sequence[str], number: NDArray[np.int64]) -> KeyedGroups:
        """What tells the group of a row that has only the columns `available`, for groups numbered by `number`.

        The other columns follow from the list (a PUMA's state): they must, or the row's group would be unknown.
        """
        keys = [name for name in self.names if name in available]
        absent = [name for name in self.names if name not in available]
        if self.names and not keys:
            raise DataError(f"the table has no column {absent[0]!r}{closest(absent[0], available)}")
        places = [self._place(name) for name in keys]
        columns = tuple(self.columns[place] for place in places)
        shape = tuple(column.present for column in columns)
        if math.prod(shape) >= LARGEST_PLACE:
            raise DataError(
                f"the columns {', '.join(map(repr, keys))} of the list of groups have {math.prod(shape):,} "
                "combinations, more than a 64-bit number tells apart; leave out columns that follow from others"
            )
        joint = np.zeros(len(self), np.int64)
        for place, size in zip(places, shape, strict=True):
            joint = joint * size + self.codes[:, place]
        known, first = np.unique(joint, return_index=True)
        if not np.array_equal(number[first][np.searchsorted(known, joint)], number):
            raise DataError(
                f"the table has no column {' or '.join(map(repr, absent))}, and its {', '.join(map(repr, keys))} "
                "do not tell a row's group: add the column"
            )
        return KeyedGroups(columns, known, number[first])

    def _place(self, name: str) -> int:
        if name not in self.names:
            known = closest(name, self.names) or f"; it has {', '.join(map(repr, self.names)) or 'none'}"
            raise DataError(f"the list of groups has no column {name!r}{known}")
        return self.names.index(name)


@dataclass(frozen=True)
class KeyedGroups:
    """The listed combinations of key columns, as places in the product of their values, and the group of each."""

    columns: tuple[Column, ...]
    joint: NDArray[np.int64]
    number: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.number.max()) + 1

    @property
    def trivial(self) -> bool:
        """Whether the place in the product is the group's number, for every place."""
        whole = math.prod(column.present for column in self.columns)
        return len(self.joint) == whole and np.array_equal(self.number, self.joint)

    def numbers(self, table: pa.Table) -> NDArray[np.int64]:
        """The group of each row of a table that has the key columns, -1 for none."""
        return self.places({column.name: table[column.name] for column in self.columns}, table.num_rows)[1]

    def places(
        self, cells: Mapping[str, Any], rows: int, *, refuse: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The place of each row in the product of the key columns' values, and its group: -1 for none.

        `refuse` is what it is to `prade.data.matching.code_cells`.
        """
        from prade.data.matching import code_cells

        place = np.zeros(rows, np.int64)
        known = np.ones(rows, np.bool_)
        for column in self.columns:
            codes, fits = code_cells(column, cells[column.name], refuse=refuse)
            place = place * column.present + codes
            known &= fits
        near = np.minimum(np.searchsorted(self.joint, place), len(self.joint) - 1)
        return place, np.where(known & (self.joint[near] == place), self.number[near], -1)
