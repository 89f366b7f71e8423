"""Which public groups are a plan's own: the same places in last year's table, say.

The columns of a level are read from the outermost to the innermost, such as STATE, PUMA, YEAR. A group is recognised by
all of them where the public table has their values, or else by the first ones, up to a column whose values are all new
(this year, where the public table has last year). Not by STATE alone, though, where all PUMAs are new: what is left
out may have no more values than what is left tells apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.groups import Grouping, Groups

if TYPE_CHECKING:
    from prade.public import Public

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SameGroups:
    """A key for every public group (-1: it is nobody's own) and one for every group of a level (-1: it has none).

    >>> from prade import Column, Schema
    >>> from prade.public import Public
    >>> schema = Schema([Column("PLACE", "group"), Column("YEAR", "group"), Column("AGE", "numeric", edges=[18])])
    >>> table = {"PLACE": ["a", "b", "a", "c"], "YEAR": [2018, 2018, 2019, 2019], "AGE": [1, 2, 70, 4]}
    >>> public = Public.of(schema, table, by=["PLACE", "YEAR"])
    >>> this_year = Groups.of({"PLACE": ["a", "b", "z"], "YEAR": [2020, 2020, 2020]}).level(["PLACE", "YEAR"])
    >>> same = SameGroups.of(public, this_year)
    >>> same.found, same.rows(public, 0)
    (array([ True,  True, False]), array([ True, False,  True, False]))
    """

    key: Ints  # of each public group
    of_group: Ints  # of each group of the level
    times: Ints  # in how many years, say, the public table has it, for each group of the level

    @classmethod
    def of(cls, public: Public, level: Grouping) -> SameGroups:
        """For the groups of a level of a plan. To the one group of everybody belong all."""
        every = len(public.groups)
        values = {name: [row[place] for row in level.values] for place, name in enumerate(level.by)}
        # What is the same for all groups (NATION) need not be in the public table to tell them apart.
        telling = [name for name in level.by if name in public.groups.by or len(set(values[name])) > 1]
        kept = list(takewhile(lambda name: has_values(public, name, values[name]), telling))
        new = telling[len(kept) :]
        keys = _numbered(list(zip(*(values[name] for name in kept), strict=True)))
        if not level.by:
            return cls(np.zeros(every, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64))
        if not kept or len(set(zip(*(values[name] for name in new), strict=True))) > keys.max() + 1:
            return cls(np.full(every, -1), np.full(len(level), -1), np.zeros(len(level), np.int64))
        key = _keys_of(public, {name: values[name] for name in kept}, keys)
        key_of = np.where(np.isin(keys, key), keys, -1)
        again = [public.groups.by.index(name) for name in new if name in public.groups.by]
        times = _numbered([tuple(row[place] for place in again) for row in public.groups.values])
        seen = np.unique(np.stack([key, times]), axis=1)[0]
        return cls(key, key_of, np.where(key_of >= 0, np.bincount(seen + 1, minlength=keys.max() + 2)[keys + 1], 0))

    @property
    def found(self) -> Flags:
        """Which groups of the level have public rows of their own."""
        return self.of_group >= 0

    def rows(self, public: Public, group: int) -> Flags:
        """Which public rows are a group's own."""
        return self.key[public.group] == self.of_group[group] if self.found[group] else np.zeros(len(public), np.bool_)

    def sums(self, values: Floats) -> Floats:
        """Sums over each group's own public groups, 0 where it has none; `values` has a row a public group."""
        size = int(max(self.key.max(), self.of_group.max())) + 2
        summed = np.zeros((size, *values.shape[1:]))
        np.add.at(summed, self.key + 1, values)
        summed[0] = 0.0
        return np.asarray(summed[self.of_group + 1])


def has_values(public: Public, name: str, values: Sequence[Any]) -> bool:
    """Whether the public groups have any of these values in a column."""
    return name in public.groups.by and bool(
        (_keys_of(public, {name: values}, np.zeros(len(values), np.int64)) >= 0).any()
    )


def _keys_of(public: Public, values: dict[str, Sequence[Any]], keys: Ints) -> Ints:
    """The key of each public group, given columns of values and the keys that these stand for.

    Names are read as those of private rows are: where the plan lists numbers, 1 and "01" are the same.
    """
    import pyarrow as pa

    numbers = _numbered(list(zip(*values.values(), strict=True)))
    first = np.unique(numbers, return_index=True)[1]
    listed = Groups.of({name: [column[row] for row in first] for name, column in values.items()})
    places = {name: public.groups.by.index(name) for name in values}
    mine = pa.table({name: [row[place] for row in public.groups.values] for name, place in places.items()})
    return listed.keyed(list(values), keys[first]).numbers(mine)


def _numbered(rows: Sequence[tuple[Any, ...]]) -> Ints:
    """The number of each row's value, in order of appearance."""
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
