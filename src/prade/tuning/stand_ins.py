"""Who plays whom when a run is rehearsed on public data.

A fold splits the public table in two: rows that stay public, and rows that play the private ones. Where a column has
other values in the plan than in the public table, and several there, these take turns (one state or year plays the
private ones, the others stay public). Where the public table has most of the plan's groups (last year's release of the
same places), its years take turns if it has several; or else each group's rows are split in two at random, which shows
chance but no change. Halves scatter by sqrt(2) more than whole groups: noise is scaled alike, so that it stays in
proportion, and errors back again. Where it has other groups, the halves of these take turns. For one table of everybody
the largest public groups play it one by one, with noise in proportion to their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError
from prade.data.groups import Grouping, Groups
from prade.data.public import Public
from prade.data.recurring_groups import SameGroups, has_values, is_time
from prade.estimating.levels.public_cells import PublicCells
from prade.scoring.distances import Codes

Kind = Literal["other groups", "other years", "same groups", "no groups"]

MOST_FOLDS = 4
MOST_ROWS = 200_000  # that stay public: with more the prior hardly gets better, and every trial takes longer
MOSTLY = 0.5  # of the plan's groups must be in the public table for it to be last year's
FEWEST_GROUPS = 3  # that one left-out value must bring: less says nothing about groups, and halves are better
TOO_SMALL = "the public table is too small for a rehearsal: give more rows, or write the plan yourself"

WORDS: dict[Kind, str] = {
    "other groups": "other public groups played the private ones",
    "other years": "other public years played this one",
    "same groups": "one half of each public group's rows played this year's: what changes from year to year was not "
    "rehearsed, and errors will be larger",
    "no groups": "the public table does not have the plan's groups, so rows drawn from it at random played the private "
    "ones: how far the private table differs from it was not rehearsed, and errors will be larger",
}


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: public rows, rows that play the private ones, and the list of groups that these are in.

    `rows` are the numbers of rows of the groups in earnest. Noise in the fold is `noise` times the plan's, so that it
    stays in proportion; errors are `shrink` times those that are found.
    """

    public: Public
    codes: Codes
    group: Ints
    groups: Groups
    rows: Floats
    shrink: float = 1.0
    noise: float = 1.0

    @cached_property
    def own(self) -> SameGroups:
        """The public groups that are the same as those that are played."""
        return SameGroups.of(self.public, self.groups.level(self.groups.names))

    @cached_property
    def sizes(self) -> Floats:
        """Numbers of rows to expect, up to a factor: last year's if all are known, or else the same for all."""
        sizes = self.own.sums(self.public.group_weights) / np.maximum(self.own.times, 1)
        known = (sizes > 0) & bool(self.groups.names)
        return np.where(known, sizes, sizes[known].mean() if known.any() else 1.0)

    @cached_property
    def cells(self) -> PublicCells:
        """What the trials share (layouts, covariances): each is made once."""
        return PublicCells(self.public)


def folds_of(public: Public, finest: Grouping, generator: np.random.Generator) -> tuple[Kind, list[Fold]]:
    """The splits of a public table that stand for the private groups of a plan's last level."""
    known = [name for name in finest.by if name in public.groups.by]
    if len(public.groups) < 2 or (finest.by and not known):
        return "no groups", [_dealt_out(public, finest, generator)]
    if not known:
        return "other groups", list(islice(_whole(public, generator), MOST_FOLDS))
    # groups by the plan's columns, whatever else the public table tells apart
    number, values = _numbered(public, known)
    new = _new_column(public, finest, known, values)
    same = SameGroups.of(public, finest)
    if new is None and same.found.mean() >= MOSTLY:
        years = list(islice(_years(public, finest, known, same, generator), MOST_FOLDS))
        return ("other years", years) if years else ("same groups", [_halves(public, finest, same, generator)])
    sides = islice(_left_out(values, new, generator), MOST_FOLDS)
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
    values: Sequence[tuple[object, ...]], new: list[object] | None, generator: np.random.Generator
) -> Iterator[Ints]:
    """Which public groups play the private ones, fold by fold."""
    if new is not None:
        kinds = list(dict.fromkeys(new))
        for place in generator.permutation(len(kinds)):
            yield np.flatnonzero([value == kinds[place] for value in new])
    else:
        mixed = generator.permutation(len(values))
        half = len(values) // 2
        yield from (np.sort(mixed[:half]), np.sort(mixed[half:]))


def _whole(public: Public, generator: np.random.Generator) -> Iterator[Fold]:
    """For one table of everybody: single groups play it, the largest that there are, with noise in proportion."""
    names = public.groups.by
    by = next(names[: k + 1] for k in range(len(names)) if len({row[: k + 1] for row in public.groups.values}) > 1)
    number, values = _numbered(public, by)
    for group in generator.permutation(len(values)):
        rows = np.flatnonzero(number == group)
        place = np.zeros(len(rows), np.int64)
        yield _fold(
            public, np.flatnonzero(number != group), rows, place, Groups.of(), generator, whole=np.array([len(public)])
        )


def _years(
    public: Public, finest: Grouping, known: Sequence[str], same: SameGroups, generator: np.random.Generator
) -> Iterator[Fold]:
    """Where the public table has the plan's groups in several years (or another column of time): these take turns."""
    for place, name in enumerate(public.groups.by):
        column = [values[place] for values in public.groups.values]
        if name in known or len(set(column)) < 2 or not is_time(column):
            continue
        kinds = list(dict.fromkeys(column))
        year, key = np.array([kinds.index(value) for value in column])[public.group], _key_of_rows(public, same)
        whole = np.bincount(key[key >= 0], minlength=int(same.of_group.max()) + 1)
        for kind in generator.permutation(len(kinds)):
            plays, stays = np.flatnonzero((year == kind) & (key >= 0)), np.flatnonzero(year != kind)
            yield _playing(public, finest, same, key, plays, stays, generator, whole)
        return


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
    """Each row of a public group stays or plays, as a coin says."""
    plays = generator.random(len(public)) < 0.5
    key = _key_of_rows(public, same)
    rows = np.flatnonzero(plays & (key >= 0))
    return _playing(public, finest, same, key, rows, np.flatnonzero(~plays), generator, None, 2)


def _key_of_rows(public: Public, same: SameGroups) -> Ints:
    """The key of each public row, of the kind by which most groups are recognised; -1 for rows of no such group."""
    loose = bool(same.loose.sum() > np.sum(same.found & ~same.loose))
    known = same.of_group[same.found & (same.loose == loose)]
    key = same.keys[int(loose)][public.group]
    return np.where(np.isin(key, known), key, -1)


def _playing(
    public: Public,
    finest: Grouping,
    same: SameGroups,
    key: Ints,
    rows: Ints,
    staying: Ints,
    generator: np.random.Generator,
    whole: Ints | None = None,
    parts: int = 1,
) -> Fold:
    """Rows play the groups that they are the own of; of groups with the same public rows one takes part."""
    first = dict(zip(*(each.tolist() for each in np.unique(same.of_group, return_index=True)), strict=True))
    players = generator.permutation(np.unique(key[rows]))
    place = np.full(int(key.max()) + 1, -1)
    place[players] = np.arange(len(players))
    listed = {name: [finest.values[first[key]][k] for key in players.tolist()] for k, name in enumerate(finest.by)}
    expected = None if whole is None else whole[players]
    return _fold(public, staying, rows, place[key[rows]], Groups.of(listed), generator, parts, expected)


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
    whole: Ints | None = None,
) -> Fold:
    """Rows that stay and rows that play: one of `parts` equal parts of what there will be, or `whole` rows a group."""
    if not len(staying) or not len(rows):
        raise DataError(TOO_SMALL)
    if len(staying) > MOST_ROWS:
        staying = np.sort(generator.permutation(staying)[:MOST_ROWS])
    weights = public.prior.weights[rows]
    if np.ptp(weights) > 1e-9 * weights.mean():  # private rows are people, as many as public weights stand for
        mine = [np.flatnonzero(group == number) for number in range(len(groups))]
        chosen = [generator.choice(each, len(each), p=weights[each] / weights[each].sum()) for each in mine]
        rows, group = (array[np.concatenate(chosen)] for array in (rows, group))
    codes = {name: code[rows] for name, code in public.prior.codes.items()}
    played = np.bincount(group, minlength=len(groups)).astype(float)
    if whole is None:
        return Fold(kept(public, staying), codes, group, groups, parts * played, parts**-0.5, parts**-0.5)
    noise = float(played.sum() / whole.sum())
    return Fold(kept(public, staying), codes, group, groups, whole.astype(float), noise=noise)


def kept(public: Public, rows: Ints) -> Public:
    """Some of the rows, and the groups that these are in, numbered anew."""
    taken = public.take(rows)
    known, group = np.unique(taken.group, return_inverse=True)
    values = tuple(public.groups.values[number] for number in known)
    return Public(taken.prior, Grouping(public.groups.by, values, np.arange(len(known))), group.astype(np.int64))
