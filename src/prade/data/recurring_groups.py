"""Recurring groups: groups of a plan that the public table has too, such as the same places in last year's table.

A group is recognised by all columns of its level where the public table has their values, or else by all columns except
those of time: years, or dates. (This year's STATE 17, PUMA 100 is last year's. A new PUMA of a known state does not
recur: a state is not its places.) Columns in which all groups, public and planned, are alike tell nothing.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.data.declare.groups import Grouping, Groups

if TYPE_CHECKING:
    from prade.data.public.public import Public


YEARS = range(1800, 2200)
TIME = re.compile(r"(1[89]|20|21)\d\d([-/.]?(Q[1-4]|\d{1,2})([-/.]\d{1,2})?)?")


@dataclass(frozen=True, eq=False)
class RecurringGroups:
    """A key for every public group and for every group of a level; groups with the same key are the same (-1: none).

    There are two kinds of keys: of all columns, and of all columns except those of time. `loose` says which groups of
    the level are recognised by the second kind.

    >>> from prade import Column, Schema
    >>> from prade.data.public.public import Public
    >>> schema = Schema([Column("PLACE", "group"), Column("YEAR", "group"), Column("AGE", "numeric", edges=[18])])
    >>> table = {"PLACE": ["a", "b", "a", "c"], "YEAR": [2018, 2018, 2019, 2019], "AGE": [1, 2, 70, 4]}
    >>> public = Public.of(schema, table, by=["PLACE", "YEAR"])
    >>> this_year = Groups.of({"PLACE": ["a", "b", "z"], "YEAR": [2020, 2020, 2020]}).level(["PLACE", "YEAR"])
    >>> recurring = RecurringGroups.of(public, this_year)
    >>> recurring.recurs, recurring.rows(public, 0)
    (array([ True,  True, False]), array([ True, False,  True, False]))
    """

    keys: tuple[Ints, Ints]  # of each public group: by all columns, by all but time
    of_group: Ints  # of each group of the level
    loose: Flags
    times: Ints  # in how many years, say, the public table has it, for each group of the level

    @classmethod
    def of(cls, public: Public, level: Grouping) -> RecurringGroups:
        """For the groups of a level of a plan. All public groups belong to the one group of everybody."""
        every, size = len(public.groups), len(level)
        if not level.by:
            everybody = np.zeros(every, np.int64)
            return cls((everybody, everybody), np.zeros(1, np.int64), np.zeros(1, np.bool_), np.ones(1, np.int64))
        values = {name: [row[k] for row in level.values] for k, name in enumerate(level.by)}
        theirs = {
            name: [row[public.groups.by.index(name)] for row in public.groups.values]
            for name in level.by
            if name in public.groups.by
        }
        telling = [
            name
            for name in level.by
            if len(set(values[name])) > 1
            or (len(set(theirs.get(name, ()))) > 1)
            or has_values(public, name, values[name])
        ]
        timeless = [name for name in telling if not is_time([*values[name], *theirs.get(name, ())])]
        keys, of_group = [], []
        for names in (telling, timeless):
            if not names or any(name not in theirs for name in names):
                keys.append(np.full(every, -1))
                of_group.append(np.full(size, -1))
                continue
            number = _numbered(list(zip(*(values[name] for name in names), strict=True)))
            key = _keys_of(public, {name: values[name] for name in names}, number)
            keys.append(key)
            of_group.append(np.where(np.isin(number, key), number, -1))
        loose = (of_group[0] < 0) & (of_group[1] >= 0)
        when = _numbered(
            list(zip(*(theirs[name] for name in theirs if name not in timeless), strict=True)) or [()] * every
        )
        seen = np.unique(np.stack([keys[1], when]), axis=1)[0]
        times = np.bincount(seen + 1, minlength=int(of_group[1].max()) + 2)[of_group[1] + 1]
        return cls((keys[0], keys[1]), np.where(loose, of_group[1], of_group[0]), loose, np.where(loose, times, 1))

    @property
    def recurs(self) -> Flags:
        """Which groups of the level have public rows of their own."""
        return self.of_group >= 0

    def rows(self, public: Public, group: int) -> Flags:
        """Which public rows are a group's own."""
        key = self.keys[int(self.loose[group])][public.group]
        return key == self.of_group[group] if self.recurs[group] else np.zeros(len(public), np.bool_)

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
    """Whether all values are years, quarters, months or dates.

    >>> is_time([2019, 2020]), is_time(["2019-Q1", "2019-Q2"]), is_time([100, 2019]), is_time(["east"])
    (True, True, False, False)
    """
    return all(
        isinstance(value, datetime.date)
        or (isinstance(value, (int, np.integer)) and int(value) in YEARS)
        or (isinstance(value, str) and TIME.fullmatch(value.strip()) is not None)
        for value in values
    )


def has_values(public: Public, name: str, values: Sequence[Any]) -> bool:
    """Whether the public groups have any of these values in a column."""
    if name not in public.groups.by:
        return False
    return bool((_keys_of(public, {name: values}, np.zeros(len(values), np.int64)) >= 0).any())


def _keys_of(public: Public, values: dict[str, Sequence[Any]], keys: Ints) -> Ints:
    """The key of each public group, given columns of values and the keys that these stand for.

    Names are read as those of private rows are: where the plan lists numbers, 1 and "01" are the same.
    """
    import pyarrow as pa

    numbers = _numbered(list(zip(*values.values(), strict=True)))
    first = np.unique(numbers, return_index=True)[1]
    listed = Groups.of({name: [column[row] for row in first] for name, column in values.items()})
    columns = {name: public.groups.by.index(name) for name in values}
    mine = pa.table({name: [row[k] for row in public.groups.values] for name, k in columns.items()})
    return listed.keyed(list(values), keys[first]).numbers(mine)


def _numbered(rows: Sequence[tuple[Any, ...]]) -> Ints:
    """The number of each row's value, in order of appearance."""
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
