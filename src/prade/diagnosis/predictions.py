"""What the public table predicts for the columns of every group, without any private row.

A group's prediction are the shares among its own public rows if it recurs (`prade.data.recurring_groups`), otherwise
those of the group above it, and at the top those of the whole public table. The rows that a prediction is made from
are its *source*; several groups may have the same. Of weighted rows, (sum of weights)^2 / (sum of squared weights)
count (Kish's effective sample size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group, mass_per_cell
from prade.data.groups import Grouping
from prade.data.public.public import Public
from prade.data.recurring_groups import RecurringGroups


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a level's groups: each has a `source`, and `shares` and `rows` are those of the sources.

    `shares` has all columns of the schema side by side: [sources, cells].
    """

    source: Ints
    shares: Floats
    rows: Floats
    own: int  # how many groups have public rows of their own

    def of_columns(self, cells: Ints) -> Predictions:
        """The same for some of the cells."""
        return Predictions(self.source, self.shares[:, cells], self.rows, self.own)

    def of_groups(self) -> Floats:
        """The shares that are predicted for each group: [groups, cells]."""
        return np.asarray(self.shares[self.source])

    def rows_of_groups(self) -> Floats:
        """The number of public rows behind each group's prediction."""
        return np.asarray(self.rows[self.source])


def predictions(public: Public, levels: Sequence[Grouping]) -> list[Predictions]:
    """The predictions of all levels, from the first to the last."""
    schema, size = public.prior.schema, len(public.groups)
    weights, group = public.prior.weights, public.group
    masses = np.concatenate(
        [mass_by_group(group, size, public.prior.codes[n], schema.size(n), weights) for n in schema.coded], axis=1
    )
    squares = mass_per_cell(group, weights**2, size)
    total = public.group_weights
    above = Predictions(
        np.zeros(1, np.int64),
        masses.sum(axis=0, keepdims=True) / total.sum(),
        total.sum(keepdims=True) ** 2 / squares.sum(),
        0,
    )
    found: list[Predictions] = []
    for grouping in levels:
        parents = np.zeros(len(grouping), np.int64) if not found else grouping.above(levels[len(found) - 1])
        above = _of_level(public, grouping, parents, above, (masses, total, squares))
        found.append(above)
    return found


def _of_level(
    public: Public, grouping: Grouping, parents: Ints, above: Predictions, sums: tuple[Floats, Floats, Floats]
) -> Predictions:
    """The predictions of a level: from own rows where there are any, otherwise the parent's of `above`."""
    inherited = above.source[parents]
    if not grouping.by:
        return Predictions(inherited, above.shares, above.rows, 0)
    recurring = RecurringGroups.of(public, grouping)
    masses, total, squares = (recurring.sums(each) for each in sums)
    mine = np.flatnonzero(recurring.recurs & (total > 0))
    source = inherited.copy()
    source[mine] = len(above.rows) + np.arange(len(mine))
    shares = np.concatenate([above.shares, masses[mine] / total[mine, None]])
    rows = np.concatenate([above.rows, total[mine] ** 2 / squares[mine]])
    used, source = np.unique(source, return_inverse=True)
    return Predictions(source.reshape(-1), shares[used], rows[used], len(mine))
