"""The public list of groups (places, years, strata), which is fixed before any private row is read."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints
from prade.core.errors import DataError, closest, names_of
from prade.data.declare.column import Column
from prade.data.read.cells import Columns, one_piece, plain_cells, require_plain_type
from prade.data.read.coding import code_cells
from prade.data.read.tables import column_names, distinct_values, group_cells, read_table

MOST_COMBINATIONS = 2**62


@dataclass(frozen=True)
class Grouping:
    """The groups of one level: `values` of its columns, one tuple per group, and `number`, the group of each row."""

    by: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def labels(self, schema: Any = ()) -> list[str]:
        """One readable text per group; "all" for the whole table. With a schema, its titles and labels are used.

        >>> from prade import Column, Schema
        >>> schema = Schema([Column("STATE", "group", labels={"17": "Illinois"}), Column("PUMA", "group")])
        >>> Groups.of({"STATE": [17, 39], "PUMA": [100, 100]}).level(["STATE", "PUMA"]).labels(schema)
        ['Illinois, PUMA 100', 'STATE 39, PUMA 100']
        """
        texts: list[list[str]] = [[] for _ in self.values]
        for name, values in zip(self.by, zip(*self.values, strict=True), strict=True):
            text_of = {value: f"{name} {value}" for value in values}
            if name in schema:
                column = Column(name, "group", values=tuple(text_of)).labelled_like(schema[name])
                for value, shown in zip(column.values, column.display_texts(), strict=True):
                    labelled = column.label_of(value) is not None
                    text_of[value] = shown if labelled else f"{column.title or name} {shown}"
            for group, value in enumerate(values):
                texts[group].append(text_of[value])
        return [", ".join(each) or "all" for each in texts]

    def above(self, coarser: Grouping) -> NDArray[np.int64]:
        """For each group, the group of a coarser level of the same list that contains it."""
        parents = np.zeros(len(self), np.int64)
        parents[self.number] = coarser.number
        return parents


@dataclass(frozen=True, eq=False)
class Groups:
    """A list of groups: some columns, and for each group the index of its value in each column's list of values.

    The groups of a level are the combinations of its columns' values. Without columns one group has everybody.

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
        """The groups in a public table or file, which has one row per group; None for a single group of everybody."""
        if isinstance(table, Groups):
            return table
        if table is None:
            return cls((), np.zeros((1, 0), np.int64))
        listed = read_table(table)
        if not listed.num_rows or not listed.num_columns:
            raise DataError("the list of groups is empty; give one row per group, or None for one group of all rows")
        columns, codes_by_column = [], []
        for name in column_names(listed):
            cells = group_cells(table, name, listed)
            require_plain_type(name, cells.type)
            values = distinct_values(cells)
            if None in values:
                raise DataError(f"the list of groups has an empty cell in column {name!r}; give every group a value")
            columns.append(Column(name, "group", values=tuple(values)))
            codes_by_column.append(one_piece(plain_cells(cells)).dictionary_encode().indices.to_numpy())
        codes = np.stack(codes_by_column, axis=1).astype(np.int64)
        if len(np.unique(codes, axis=0)) < len(codes):
            raise DataError("the list of groups contains a group twice; list each group once")
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
        """The list as a table: the values of each column."""
        columns = zip(self.columns, self.codes.T, strict=True)
        return {column.name: [column.values[code] for code in codes] for column, codes in columns}

    def level(self, by: Sequence[str]) -> Grouping:
        """The groups given by the columns `by`, in order of appearance."""
        names = names_of(by)
        indices = [self._index(name) for name in names]
        number = _numbered(map(tuple, self.codes[:, indices].tolist()))
        first = np.unique(number, return_index=True)[1]
        values = tuple(tuple(self.columns[k].values[self.codes[row, k]] for k in indices) for row in first.tolist())
        return Grouping(names, values, number)

    def keyed(self, available: Sequence[str], number: NDArray[np.int64]) -> KeyedGroups:
        """A lookup from the columns `available` of a row, which must tell the others, to its group's `number`."""
        keys = [name for name in self.names if name in available]
        absent = [name for name in self.names if name not in available]
        if self.names and not keys:
            raise DataError(f"the table has no column {absent[0]!r}{closest(absent[0], available)}")
        indices = [self._index(name) for name in keys]
        columns = tuple(self.columns[index] for index in indices)
        shape = tuple(column.present for column in columns)
        if (cells := math.prod(shape)) >= MOST_COMBINATIONS:
            many = f"{', '.join(keys)} of the list of groups have {cells:,} combinations, too many for 64 bits"
            raise DataError(f"{many}; leave out columns that follow from others")
        joint = np.zeros(len(self), np.int64)
        for index, size in zip(indices, shape, strict=True):
            joint = joint * size + self.codes[:, index]
        known, first = np.unique(joint, return_index=True)
        if not np.array_equal(number[first][np.searchsorted(known, joint)], number):
            lacks, has = " or ".join(map(repr, absent)), ", ".join(map(repr, keys))
            raise DataError(f"the table has no column {lacks}, and {has} alone cannot identify a row's group; add it")
        return KeyedGroups(columns, known, number[first])

    def _index(self, name: str) -> int:
        if name not in self.names:
            known = closest(name, self.names) or f"; it has {', '.join(map(repr, self.names)) or 'none'}"
            raise DataError(f"the list of groups has no column {name!r}{known}")
        return self.names.index(name)


@dataclass(frozen=True)
class KeyedGroups:
    """The listed combinations of key columns, as joint codes in ascending order, and the group of each."""

    columns: tuple[Column, ...]
    joint: NDArray[np.int64]  # joint codes: indices into the product of the columns' values, in C order
    number: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.number.max()) + 1

    def numbers(self, table: pa.Table | Columns) -> NDArray[np.int64]:
        """The group of each row of a table that has the key columns; -1 for a row in no group."""
        return self.joint_codes({column.name: table[column.name] for column in self.columns}, table.num_rows)[1]

    def joint_codes(
        self, cells: Mapping[str, Any], rows: int, *, refuse: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The joint code of each row's key columns, and the row's group (-1 for none); `refuse` is for `code_cells`."""
        joint, known = np.zeros(rows, np.int64), np.ones(rows, np.bool_)
        for column in self.columns:
            codes, fits = code_cells(column, cells[column.name], refuse=refuse)
            joint = joint * column.present + codes
            known &= fits
        near = np.minimum(np.searchsorted(self.joint, joint), len(self.joint) - 1)
        return joint, np.where(known & (self.joint[near] == joint), self.number[near], -1)


YEARS = range(1800, 2200)
TIME = re.compile(r"(1[89]|20|21)\d\d([-/.]?(Q[1-4]|\d{1,2})([-/.]\d{1,2})?)?")


@dataclass(frozen=True, eq=False)
class RecurringGroups:
    """A key for every public group and for every group of a level; groups with the same key are the same (-1: none).

    There are keys of all columns, and of all but those of time, by which the groups that are `loose` are recognised.
    """

    keys: tuple[Ints, Ints]  # of each public group: by all columns, by all but time
    of_group: Ints  # of each group of the level
    loose: Flags
    times: Ints  # in how many years, say, the public table has it, for each group of the level

    @classmethod
    def of(cls, public: Grouping, level: Grouping) -> RecurringGroups:
        """For the groups of a level of a plan. All public groups belong to the one group of everybody."""
        every, size = len(public), len(level)
        if not level.by:
            everybody = np.zeros(every, np.int64)
            return cls((everybody, everybody), np.zeros(1, np.int64), np.zeros(1, np.bool_), np.ones(1, np.int64))
        values = {name: [row[k] for row in level.values] for k, name in enumerate(level.by)}
        theirs = {name: [row[public.by.index(name)] for row in public.values] for name in level.by if name in public.by}

        def tells(name: str) -> bool:
            differ = len(set(values[name])) > 1 or len(set(theirs.get(name, ()))) > 1
            return differ or has_values(public, name, values[name])

        telling = [name for name in level.by if tells(name)]
        timeless = [name for name in telling if not is_time([*values[name], *theirs.get(name, ())])]
        keys, of_group = [], []
        for names in (telling, timeless):
            if not names or any(name not in theirs for name in names):
                keys.append(np.full(every, -1))
                of_group.append(np.full(size, -1))
                continue
            number = _numbered(zip(*(values[name] for name in names), strict=True))
            key = _keys_of(public, {name: values[name] for name in names}, number)
            keys.append(key)
            of_group.append(np.where(np.isin(number, key), number, -1))
        loose = (of_group[0] < 0) & (of_group[1] >= 0)
        dated = [theirs[name] for name in theirs if name not in timeless]
        when = _numbered(list(zip(*dated, strict=True)) or [()] * every)
        seen = np.unique(np.stack([keys[1], when]), axis=1)[0]
        times = np.bincount(seen + 1, minlength=int(of_group[1].max()) + 2)[of_group[1] + 1]
        return cls((keys[0], keys[1]), np.where(loose, of_group[1], of_group[0]), loose, np.where(loose, times, 1))

    @property
    def recurs(self) -> Flags:
        """Which groups of the level have public rows of their own."""
        return self.of_group >= 0

    def rows(self, of_rows: Ints, group: int) -> Flags:
        """Which public rows are a group's own; `of_rows` is the public group of each row."""
        key = self.keys[int(self.loose[group])][of_rows]
        return key == self.of_group[group] if self.recurs[group] else np.zeros(len(of_rows), np.bool_)

    def sums(self, values: Floats) -> Floats:
        """Sums over each group's own public groups, 0 where it has none; `values` has a row per public group."""
        sums = np.zeros((len(self.of_group), *values.shape[1:]))
        for key, mine in zip(self.keys, (~self.loose, self.loose), strict=True):
            summed = np.zeros((int(max(key.max(), self.of_group.max())) + 2, *values.shape[1:]))
            np.add.at(summed, key + 1, values)
            summed[0] = 0.0
            sums[mine] = summed[self.of_group[mine] + 1]
        return sums


def is_time(values: Iterable[Any]) -> bool:
    """Whether all values are years, quarters, months or dates."""
    return all(
        isinstance(value, datetime.date)
        or (isinstance(value, (int, np.integer)) and int(value) in YEARS)
        or (isinstance(value, str) and TIME.fullmatch(value.strip()) is not None)
        for value in values
    )


def has_values(public: Grouping, name: str, values: Sequence[Any]) -> bool:
    """Whether the public groups have any of these values in a column."""
    none = np.zeros(len(values), np.int64)
    return name in public.by and bool((_keys_of(public, {name: values}, none) >= 0).any())


def _keys_of(public: Grouping, values: dict[str, Sequence[Any]], keys: Ints) -> Ints:
    """The key of each public group, given columns of values and the keys that these stand for."""
    numbers = _numbered(zip(*values.values(), strict=True))
    first = np.unique(numbers, return_index=True)[1]
    listed = Groups.of({name: [column[row] for row in first] for name, column in values.items()})
    columns = {name: public.by.index(name) for name in values}
    mine = pa.table({name: [row[k] for row in public.values] for name, k in columns.items()})
    return listed.keyed(list(values), keys[first]).numbers(mine)


def _numbered(rows: Iterable[tuple[Any, ...]]) -> Ints:
    """The number of each row's value, in order of appearance."""
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
