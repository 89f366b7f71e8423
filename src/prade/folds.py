"""Who plays whom when a run is rehearsed on public data.

A fold splits the public table in two: rows that stay public, and rows that play the private ones. Where a column has
other values in the plan than in the public table, and several there, these take turns (one state or year plays the
private ones, the others stay public). Where the public table has the plan's groups (last year's release of the same
places), each group's rows are split in two at random. Halves scatter by sqrt(2) more than whole groups: noise is scaled
alike, so that it stays in proportion, and errors back again. Where it has others, the halves of the groups take turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prade.distances import Codes
from prade.errors import DataError
from prade.groups import Grouping, Groups
from prade.levels import Descent
from prade.public import Public
from prade.same_groups import SameGroups, has_values

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["other groups", "same groups", "no groups"]

MOST_FOLDS = 4
MOST_ROWS = 200_000  # that stay public: with more the prior hardly gets better, and every trial takes longer
FEWEST_GROUPS = 3  # that one left-out value must bring: less says nothing about groups, and halves are better

WORDS: dict[Kind, str] = {
    "other groups": "other public groups played the private ones",
    "same groups": "one half of each public group's rows played this year's",
    "no groups": "the public table does not have the plan's groups, so rows drawn from it at random played the private "
    "ones: how far the private table differs from it was not rehearsed, and errors will be larger",
}


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: public rows, rows that play the private ones, and the list of groups that these are in.

    `rows` are the numbers of rows of the groups in earnest; noise in the fold is `shrink` times the plan's.
    """

    public: Public
    codes: Codes
    group: Ints
    groups: Groups
    rows: Floats
    shrink: float = 1.0

    @cached_property
    def own(self) -> SameGroups:
        """The public groups that are the same as those that are played."""
        return SameGroups.of(self.public, self.groups.level(self.groups.names))

    @cached_property
    def sizes(self) -> Floats:
        """Numbers of rows to expect, up to a factor: last year's if all are known, or else the same for all."""
        sizes = self.own.sums(self.public.group_weights) / np.maximum(self.own.times, 1)
        return np.asarray(sizes if sizes.all() and self.groups.names else np.ones(len(sizes)))

    @cached_property
    def descent(self) -> list[Descent]:
        """What was prepared for an earlier trial (layouts, covariances), for the next one to use again."""
        return []


def folds_of(public: Public, finest: Grouping, generator: np.random.Generator) -> tuple[Kind, list[Fold]]:
    known = [name for name in finest.by if name in public.groups.by]
    if len(public.groups) < 2 or (finest.by and not known):
        return "no groups", [_dealt_out(public, finest, generator)]
    # groups by the plan's columns, whatever else the public table tells apart
    number, values = _numbered(public, known or public.groups.by)
    new = _new_column(public, finest, known, values) if known else None
    same = SameGroups.of(public, finest)
    if known and new is None and same.found.any():
        return "same groups", [_halves(public, finest, same, generator)]
    sides = islice(_left_out(values, new, bool(known), generator), MOST_FOLDS)
    return "other groups", [_other_groups(public, finest, known, number, values, side, generator) for side in sides]


def _numbered(public: Public, by: Sequence[str]) -> tuple[Ints, list[tuple[object, ...]]]:
    """The public groups by some of their columns: the number of each row's, and their values."""
    places = [public.groups.by.index(name) for name in by]
    numbers: dict[tuple[object, ...], int] = {}
    short = [tuple(values[place] for place in places) for values in public.groups.values]
    mine = np.array([numbers.setdefault(values, len(numbers)) for values in short], np.int64)
    return mine[public.group], list(numbers)


def _new_column(
    public: Public, finest: Grouping, known: Sequence[str], values: Sequence[tuple[object, ...]]
) -> list[object] | None:
    """Of the first column whose values in the plan are all new to the public table, the values of public groups.

    None where there is no such column, or where one value brings too few groups to say anything.
    """
    for place, name in enumerate(known):
        planned = [row[finest.by.index(name)] for row in finest.values]
        column = [value[place] for value in values]
        if not has_values(public, name, planned) and 2 <= len(set(column)) <= len(values) / FEWEST_GROUPS:
            return column
    return None


def _left_out(
    values: Sequence[tuple[object, ...]], new: list[object] | None, grouped: bool, generator: np.random.Generator
) -> Iterator[Ints]:
    """Which public groups play the private ones, fold by fold."""
    if new is not None:
        kinds = list(dict.fromkeys(new))
        for place in generator.permutation(len(kinds)):
            yield np.flatnonzero([value == kinds[place] for value in new])
    elif not grouped:  # one table of everybody: single groups, so that the prior is about as wrong as groups differ
        yield from (np.array([group]) for group in generator.permutation(len(values)))
    else:
        mixed = generator.permutation(len(values))
        half = len(values) // 2
        yield from (np.sort(mixed[:half]), np.sort(mixed[half:]))


def _other_groups(
    public: Public,
    finest: Grouping,
    known: Sequence[str],
    number: Ints,
    values: list[tuple[object, ...]],
    side: Ints,
    generator: np.random.Generator,
) -> Fold:
    """The public groups `side` play the private ones: as many of them as the plan has."""
    staying = np.flatnonzero(~np.isin(number, side))
    players = generator.permutation(side)[: len(finest)]
    place = np.full(len(values), -1)
    place[players] = np.arange(len(players))
    rows = np.flatnonzero(place[number] >= 0)
    listed: dict[str, list[object]] = {}
    for k, name in enumerate(finest.by):  # in columns that the public table does not have, all are the plan's first
        at = known.index(name) if name in known else None
        listed[name] = [finest.values[0][k] if at is None else values[group][at] for group in players]
    return _fold(public, staying, rows, place[number][rows], Groups.of(listed or None), generator)


def _halves(public: Public, finest: Grouping, same: SameGroups, generator: np.random.Generator) -> Fold:
    """Each row of a public group stays or plays, as a coin says. Of groups with the same public rows one takes part."""
    plays = generator.random(len(public)) < 0.5
    key = same.key[public.group]
    taking = np.unique(same.of_group, return_index=True)
    first = dict(zip(*(each.tolist() for each in taking), strict=True))
    players = generator.permutation(np.intersect1d(key[plays & (key >= 0)], same.of_group[same.found]))
    place = np.full(int(same.key.max()) + 1, -1)
    place[players] = np.arange(len(players))
    rows = np.flatnonzero(plays & (key >= 0))
    listed = {name: [finest.values[first[key]][k] for key in players.tolist()] for k, name in enumerate(finest.by)}
    return _fold(public, np.flatnonzero(~plays), rows, place[key[rows]], Groups.of(listed), generator, 2)


def _dealt_out(public: Public, finest: Grouping, generator: np.random.Generator) -> Fold:
    """Half of the rows are dealt out among the plan's groups."""
    mixed = generator.permutation(len(public))
    half = len(public) // 2
    players = generator.permutation(len(finest))[:half]
    listed = {name: [finest.values[group][k] for group in players] for k, name in enumerate(finest.by)}
    group = np.arange(half) % len(players)
    return _fold(public, mixed[half:], mixed[:half], group, Groups.of(listed or None), generator)


def _fold(
    public: Public,
    staying: Ints,
    rows: Ints,
    group: Ints,
    groups: Groups,
    generator: np.random.Generator,
    parts: int = 1,
) -> Fold:
    """Rows that stay and rows that play; these are one of `parts` equal parts of what there will be."""
    if not len(staying) or not len(rows):
        raise DataError("the public table is too small for a rehearsal: give more rows, or write the plan yourself")
    if len(staying) > MOST_ROWS:
        staying = np.sort(generator.permutation(staying)[:MOST_ROWS])
    codes = {name: code[rows] for name, code in public.prior.codes.items()}
    number = parts * np.bincount(group, minlength=len(groups)).astype(float)
    return Fold(kept(public, staying), codes, group, groups, number, parts**-0.5)


def kept(public: Public, rows: Ints) -> Public:
    """Some of the rows, and the groups that these are in, numbered anew."""
    taken = public.take(rows)
    known, group = np.unique(taken.group, return_inverse=True)
    values = tuple(public.groups.values[number] for number in known)
    return Public(taken.prior, Grouping(public.groups.by, values, np.arange(len(known))), group.astype(np.int64))
