"""Stand-ins: the public rows that take the place of the private ones in a rehearsal.

A stand-in splits the public table in two: rows that stay public, and rows that stand in for the private ones.

    other groups      the plan has other groups: half of the public groups stand in, then the other half. Where a column
                      has other values in the plan than in the public table, and several there, these take turns: the
                      groups of one state or year stand in, the others stay public. One table of everybody is stood in
                      for by single public groups, with noise in proportion to their rows
    other years       the public table has most of the plan's groups, in several years: these take turns. Each stands in
                      for a private table of one year
    recurring groups  the public table has most of the plan's groups once: each group's rows are split in two at random,
                      which shows chance but no change. Halves scatter by sqrt(2) more than whole groups: noise is
                      scaled alike, so that it stays in proportion, and errors are scaled back
    no groups         the public table does not tell the plan's groups apart: half of its rows are dealt out among them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.errors import DataError
from prade.data.declare.groups import Grouping, Groups, RecurringGroups, has_values, is_time
from prade.data.public.public import Public, kept
from prade.estimating.levels.public_cells import PublicCells
from prade.scoring.distances import Codes

Kind = Literal["other groups", "other years", "recurring groups", "no groups"]
Values = tuple[object, ...]  # of a public group, in some of its columns

MOST_STAND_INS = 4  # every trial of the tuner runs once for each of them
MOST_ROWS = 200_000  # that stay public: with more the prior hardly gets better, and every trial takes longer
MOSTLY = 0.5  # of the plan's groups must recur in the public table for it to be an earlier year's
FEWEST_GROUPS = 3  # per value that stands in: fewer show nothing about groups, and halves are better
TOO_SMALL = "the public table is too small for a rehearsal: give more rows, or write the plan yourself"

WORDS: dict[Kind, str] = {
    "other groups": "In the rehearsal, other public groups stood in for the private ones.",
    "other years": "In the rehearsal, earlier public years stood in for this one.",
    "recurring groups": "The tuner recognised your places in the public table, so it used half of each place's rows as "
    "a stand-in for this year's. What changes from year to year was not rehearsed, and errors will be larger.",
    "no groups": "The public table does not have the plan's groups, so rows drawn from it at random stood in for the "
    "private ones. How far the private table differs from it was not rehearsed, and errors will be larger.",
}


class TooSmall(DataError):
    """The public table has too few rows or groups for a rehearsal."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """One split: public rows, the codes and groups of the rows that stand in, and the list of those groups.

    `rows` are the groups' numbers of rows in the real run. Noise is `noise` times the plan's, so that it stays in
    proportion; the errors that are found are multiplied by `shrink`.
    """

    public: Public
    codes: Codes
    group: Ints
    groups: Groups
    rows: Floats
    shrink: float = 1.0
    noise: float = 1.0

    @cached_property
    def recurring(self) -> RecurringGroups:
        """Which public groups are those that stand in, in another year."""
        return RecurringGroups.of(self.public.groups, self.groups.level(self.groups.names))

    @cached_property
    def sizes(self) -> Floats:
        """Numbers of rows to expect, up to a factor: those of recurring groups, for others their mean."""
        sizes = self.recurring.sums(self.public.group_weights) / np.maximum(self.recurring.times, 1)
        known = (sizes > 0) & bool(self.groups.names)
        return np.where(known, sizes, sizes[known].mean() if known.any() else 1.0)

    @cached_property
    def cells(self) -> PublicCells:
        """What all trials share (layouts, covariances): each is made once."""
        return PublicCells(self.public)


def stand_ins_of(public: Public, finest: Grouping, generator: np.random.Generator) -> tuple[Kind, list[StandIn]]:
    """The stand-ins for the private groups of a plan's last level."""
    known = [name for name in finest.by if name in public.groups.by]
    splits = _Splits(public, finest, known, generator)
    if len(public.groups) < 2 or (finest.by and not known):
        return "no groups", [splits.dealt_out()]
    if not known:
        return "other groups", list(islice(splits.single_groups(), MOST_STAND_INS))
    recurring = RecurringGroups.of(public.groups, finest)
    # groups by the plan's columns, whatever else the public table tells apart
    number, values = _numbered(public, known)
    new = splits.new_column(values)
    if new is None and recurring.recurs.mean() >= MOSTLY:
        years = list(islice(splits.years(recurring), MOST_STAND_INS))
        return ("other years", years) if years else ("recurring groups", [splits.halves(recurring)])
    sides = islice(splits.sides(values, new), MOST_STAND_INS)
    return "other groups", [splits.other_groups(number, values, side) for side in sides]


def _numbered(public: Public, by: Sequence[str]) -> tuple[Ints, list[Values]]:
    """The public groups by some of their columns: the number of each row's, and their values."""
    columns = [public.groups.by.index(name) for name in by]
    numbers: dict[Values, int] = {}
    short = [tuple(values[column] for column in columns) for values in public.groups.values]
    mine = np.array([numbers.setdefault(values, len(numbers)) for values in short], np.int64)
    return mine[public.group], list(numbers)


@dataclass(frozen=True, eq=False)
class _Splits:
    """The ways to split a public table, for the groups `finest`; `known` are their columns that the table has."""

    public: Public
    finest: Grouping
    known: Sequence[str]
    generator: np.random.Generator

    def new_column(self, values: Sequence[Values]) -> list[object] | None:
        """Of the first column whose values in the plan are all new to the public table, the values of public groups.

        None where there is no such column, or where one value has too few groups to show anything.
        """
        for k, name in enumerate(self.known):
            planned = [row[self.finest.by.index(name)] for row in self.finest.values]
            column = [value[k] for value in values]
            several = 2 <= len(set(column)) <= len(values) / FEWEST_GROUPS
            if several and not has_values(self.public.groups, name, planned):
                return column
        return None

    def sides(self, values: Sequence[Values], new: list[object] | None) -> Iterator[Ints]:
        """Which public groups stand in, split by split: those of one new value, or one half."""
        if new is None:
            mixed = self.generator.permutation(len(values))
            half = len(values) // 2
            yield from (np.sort(mixed[:half]), np.sort(mixed[half:]))
            return
        kinds = list(dict.fromkeys(new))
        for kind in self.generator.permutation(len(kinds)):
            yield np.flatnonzero([value == kinds[kind] for value in new])

    def other_groups(self, number: Ints, values: list[Values], side: Ints) -> StandIn:
        """The public groups `side` stand in for the private ones: as many of them as the plan has."""
        staying = np.flatnonzero(~np.isin(number, side))
        chosen = self.generator.permutation(side)[: len(self.finest)]
        group = np.full(len(values), -1)
        group[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(group[number] >= 0)
        # columns that the public table lacks have the plan's first value
        first = dict(zip(self.finest.by, self.finest.values[0], strict=True)) if self.finest.by else {}
        every = [first | dict(zip(self.known, values[public], strict=True)) for public in chosen]
        return self._stand_in(staying, rows, group[number][rows], [tuple(each.values()) for each in every])

    def single_groups(self) -> Iterator[StandIn]:
        """For one table of everybody: single groups stand in for it, the largest that there are."""
        names, rows = self.public.groups.by, self.public.groups.values
        by = next(names[: k + 1] for k in range(len(names)) if len({row[: k + 1] for row in rows}) > 1)
        number, values = _numbered(self.public, by)
        for chosen in self.generator.permutation(len(values)):
            mine = np.flatnonzero(number == chosen)
            group, whole = np.zeros(len(mine), np.int64), np.array([len(self.public)])
            yield self._stand_in(np.flatnonzero(number != chosen), mine, group, [()], whole=whole)

    def years(self, recurring: RecurringGroups) -> Iterator[StandIn]:
        """Where the public table has the plan's groups in several years (or another column of time): one year each."""
        for k, name in enumerate(self.public.groups.by):
            column = [values[k] for values in self.public.groups.values]
            if name in self.known or len(set(column)) < 2 or not is_time(column):
                continue
            kinds = list(dict.fromkeys(column))
            year = np.array([kinds.index(value) for value in column])[self.public.group]
            key = self._key_of_rows(recurring)
            for kind in self.generator.permutation(len(kinds)):
                yield self._recurring(recurring, key, year == kind)
            return

    def halves(self, recurring: RecurringGroups) -> StandIn:
        """Each public row stays or stands in, as a coin says."""
        chosen = self.generator.random(len(self.public)) < 0.5
        return self._recurring(recurring, self._key_of_rows(recurring), chosen, parts=2)

    def dealt_out(self) -> StandIn:
        """Half of the rows are dealt out among the plan's groups."""
        mixed = self.generator.permutation(len(self.public))
        half = len(self.public) // 2
        chosen = self.generator.permutation(len(self.finest))[:half]
        values, group = [self.finest.values[group] for group in chosen], np.arange(half) % len(chosen)
        return self._stand_in(mixed[half:], mixed[:half], group, values)

    def _key_of_rows(self, recurring: RecurringGroups) -> Ints:
        """The key of each public row, of the kind by which most groups are recognised; -1 for rows of no such group."""
        loose = bool(recurring.loose.sum() > np.sum(recurring.recurs & ~recurring.loose))
        known = recurring.of_group[recurring.recurs & (recurring.loose == loose)]
        key = recurring.keys[int(loose)][self.public.group]
        return np.where(np.isin(key, known), key, -1)

    def _recurring(self, recurring: RecurringGroups, key: Ints, chosen: Flags, *, parts: int = 1) -> StandIn:
        """The chosen rows stand in for the groups that they recur in; of groups with the same public rows, for one."""
        staying, rows = np.flatnonzero(~chosen), np.flatnonzero(chosen & (key >= 0))
        first = dict(zip(*(each.tolist() for each in np.unique(recurring.of_group, return_index=True)), strict=True))
        keys = self.generator.permutation(np.unique(key[rows]))
        group = np.full(int(key.max()) + 1, -1)
        group[keys] = np.arange(len(keys))
        values = [self.finest.values[first[each]] for each in keys.tolist()]
        return self._stand_in(staying, rows, group[key[rows]], values, parts=parts)

    def _stand_in(
        self,
        staying: Ints,
        rows: Ints,
        group: Ints,
        values: Sequence[Values],
        *,
        parts: int = 1,
        whole: Ints | None = None,
    ) -> StandIn:
        """From rows that stay, and rows that stand in for groups with these values.

        The latter are one of `parts` equal parts of the real groups, or stand in for groups of `whole` rows.
        """
        if not len(staying) or not len(rows):
            raise TooSmall(TOO_SMALL)
        if len(staying) > MOST_ROWS:
            staying = np.sort(self.generator.permutation(staying)[:MOST_ROWS])
        groups = Groups.of({name: [each[k] for each in values] for k, name in enumerate(self.finest.by)} or None)
        weights = self.public.prior.weights[rows]
        if np.ptp(weights) > 1e-9 * weights.mean():  # private rows are people, as many as public weights stand for
            mine = [np.flatnonzero(group == number) for number in range(len(groups))]
            drawn = [self.generator.choice(each, len(each), p=weights[each] / weights[each].sum()) for each in mine]
            rows, group = (array[np.concatenate(drawn)] for array in (rows, group))
        codes = {name: code[rows] for name, code in self.public.prior.codes.items()}
        public = kept(self.public, staying)
        sizes = np.bincount(group, minlength=len(groups)).astype(float)
        if whole is None:
            return StandIn(public, codes, group, groups, parts * sizes, parts**-0.5, parts**-0.5)
        return StandIn(public, codes, group, groups, whole.astype(float), noise=float(sizes.sum() / whole.sum()))
