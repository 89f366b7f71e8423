"""The public baseline: what the error would be if public rows were published in place of synthetic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, Ints, counted
from prade.core.threads import several
from prade.data.joint import joint_codes
from prade.data.recurring_groups import RecurringGroups
from prade.scoring.distances import Codes, Pair, mean_distance, pair_errors
from prade.scoring.score import CONTEST_PAIRS, Pairs, chosen_pairs

if TYPE_CHECKING:
    from prade.data.encoding import Coded
    from prade.data.groups import Grouping
    from prade.data.public.public import Public


@dataclass(frozen=True, eq=False)
class PublicBaseline:
    """A public table instead of estimates: each group has its own public rows where there are any, or else all rows."""

    public: Public
    recurring: RecurringGroups

    def weights(self, group: int) -> Floats:
        """Weights of the public rows for a group."""
        mine = self.own(group)
        return mine if mine.any() else self.public.prior.weights

    def own(self, group: int) -> Floats:
        """Weights of the public rows that are the group's own, 0 for all others."""
        return np.where(self.recurring.rows(self.public, group), self.public.prior.weights, 0.0)

    def error(self, truth: Codes, group: int, pairs: Sequence[Pair]) -> float:
        """Mean distance of the pairs' two-way tables from those of a group's true rows."""
        return mean_distance(truth, self.public.prior, pairs, self.weights(group))


def public_errors(
    truth: tuple[Coded, Ints], public: Public, level: Grouping, pairs: Pairs = CONTEST_PAIRS, *, threads: int = 1
) -> Floats:
    """The error of the public baseline in each group of a level.

    `truth` are coded rows and the group of each (-1 for none). A group without true rows has NaN.
    """
    coded, _ = truth
    names = chosen_pairs([name for name in coded.schema.coded if name in coded.codes], pairs)
    return np.asarray(public_pair_errors(truth, public, level, names, threads=threads).mean(axis=1))


def public_pair_errors(
    truth: tuple[Coded, Ints], public: Public, level: Grouping, pairs: Sequence[Pair], *, threads: int = 1
) -> Floats:
    """The distance of the public baseline in each group of a level and each pair of columns; see `public_errors`.

    Groups without public rows of their own share one table of everybody, which is made once for each pair.
    """
    coded, number = truth
    baseline = PublicBaseline(public, RecurringGroups.of(public, level))
    with_rows = np.bincount(number[number >= 0], minlength=len(level)) > 0
    alone = [g for g in np.flatnonzero(with_rows & baseline.recurring.recurs).tolist() if baseline.own(g).any()]
    errors = np.full((len(level), len(pairs)), np.nan)
    for g, distances in zip(alone, several(partial(_own_errors, truth, baseline, pairs), alone, threads), strict=True):
        errors[g] = distances
    rest = with_rows.copy()
    rest[alone] = False
    if rest.any():
        kept = np.flatnonzero(np.append(rest, False)[number])
        rows = coded.take(kept), number[kept]
        for k, distances in enumerate(several(partial(_errors_of_everybody, rows, public, len(level)), pairs, threads)):
            errors[rest, k] = distances[rest]
    return errors


def _errors_of_everybody(truth: tuple[Coded, Ints], public: Public, groups: int, pair: Pair) -> Floats:
    """The distance of all public rows' table from that of each group.

    With t and p the shares of a cell, sum |t - p| = 1 + sum over the cells with t > 0 of (|t - p| - p): no table has to
    be kept for each group.
    """
    coded, number = truth
    cells = coded.schema.domain_size(pair)
    place, counts = counted(
        number * cells + joint_codes(coded.schema, coded.codes, pair).astype(np.int64), groups * cells
    )
    group = place // cells
    share, public_share = counts / np.bincount(number)[group], public.prior.project(pair).ravel()[place % cells]
    change = np.bincount(group, np.abs(share - public_share) - public_share, minlength=groups)
    return np.asarray(np.maximum(1.0 + change, 0.0))


def _own_errors(truth: tuple[Coded, Ints], baseline: PublicBaseline, pairs: Sequence[Pair], group: int) -> Floats:
    """The distances of a group that has public rows of its own."""
    coded, number = truth
    rows, weights = np.flatnonzero(number == group), baseline.own(group)
    own = np.flatnonzero(weights)
    mine, theirs = (
        {name: code[at] for name, code in codes.items()}
        for codes, at in ((coded.codes, rows), (baseline.public.prior.codes, own))
    )
    one, other = np.zeros(len(rows), np.int64), np.zeros(len(own), np.int64)
    distances = pair_errors(coded.schema, mine, one, theirs, other, 1, pairs, weights=weights[own], threads=1)
    return np.asarray(distances[0])
