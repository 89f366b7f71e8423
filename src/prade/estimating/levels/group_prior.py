"""The prior of a group: its parent's estimate, its own public rows, and public groups that resemble it.

    p_g = (1 - mixture) [ own * (rows of the same group) + (1 - own) * handed ] + mixture * sum_m w_m (rows of group m)
    handed = 0.95 * parent's estimate + 0.05 * public table

`own` and `mixture` are weights of `Settings`; w comes from `prade.estimating.levels.resemblance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats
from prade.data.declare.groups import RecurringGroups
from prade.planning.settings import Settings

if TYPE_CHECKING:
    from prade.data.public.public import Public
    from prade.estimating.layout import Layout
    from prade.estimating.levels.thinning import Support
    from prade.planning.plan import Plan


HANDED_ON = 0.95  # of a parent's estimate; the rest is the public table, so that rows without weight can return


class GroupPriors:
    """Prior weights, on the public rows, of the groups of one level of a plan."""

    def __init__(self, public: Public, plan: Plan, level: int, settings: Settings) -> None:
        self.public = public
        self.settings = settings
        grouping = plan.groupings[level]
        self.recurring = RecurringGroups.of(public.groups, grouping)
        self.recurs = self.recurring.recurs & bool(grouping.by)  # the whole table is not a group
        self.parent_of = np.zeros(len(grouping), np.int64)
        if level:
            self.parent_of[grouping.number] = plan.groupings[level - 1].number
        self.top = level == 0

    def weights(self, group: int, parent: Floats) -> Floats:
        """Weights without public groups that resemble the group; `parent` are the final weights of its parent."""
        table = self.public.prior.weights
        handed = parent if self.top else HANDED_ON * parent + (1 - HANDED_ON) * table
        if not self.recurring.recurs[group]:
            return handed
        rows = np.where(self.recurring.rows(self.public.group, group), table, 0.0)
        total = float(rows.sum())
        return np.asarray(self.settings.own / total * rows + (1 - self.settings.own) * handed if total else handed)

    def masses(self, parents: Floats, support: Support, layout: Layout) -> Floats:
        """Shares of cells by `weights`, [groups, cells], from those of the parents' final weights, [parents, cells].

        Shares are sums of weights, so they mix as weights do, and no group needs a pass over the rows.
        """
        table = layout.masses_of(layout.base)
        handed = (parents if self.top else HANDED_ON * parents + (1 - HANDED_ON) * table)[self.parent_of]
        if not self.recurs.any():
            return np.asarray(handed)
        total = self.recurring.sums(self.public.group_weights)[:, None]
        rows = self.recurring.sums(support.group_sums(layout.workload.parts))
        own = self.settings.own
        mixed = own / np.where(total > 0, total, 1.0) * rows + (1 - own) * handed
        return np.where(total > 0, mixed, handed)

    def sizes(self) -> Floats:
        """Weight of each group's own public rows, per year if there are several; 0 for none."""
        return np.asarray(self.recurring.sums(self.public.group_weights) / np.maximum(self.recurring.times, 1))

    def with_alike(self, weights: Floats, alike: Floats) -> Floats:
        """These weights mixed with public groups, in the proportions `alike`."""
        groups = self.public.group_weights
        factors = np.divide(alike, groups, out=np.zeros(len(alike)), where=groups > 0)  # a support may lack a group
        rows = self.public.prior.weights * (factors / (factors @ groups))[self.public.group]
        return np.asarray((1 - self.settings.mixture) * weights + self.settings.mixture * rows)
