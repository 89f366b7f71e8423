"""What all groups of a release are estimated from, wherever that is done: public rows, layouts, priors, parents.

A group that is estimated is small: its `Tilt`. From it and from those of its parents the weights of the public rows
are worked out again, in one pass over the rows for each.

    q_g  is proportional to  p_g exp(W' lambda_g)        p_g: the group's prior (`prade.estimating.levels.foundation`)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np

from prade.core.arrays import Floats
from prade.core.execution import Shared
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Prior
from prade.data.public.public import Public, open_mapped, save_mapped
from prade.estimating.layout import Layout
from prade.estimating.levels.answers import parts_of
from prade.estimating.levels.public_cells import PublicCells, Support
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.release.derived_files import SUPPORT_FOR_WORKERS
from prade.release.release import PLAN

MOST_KEPT = 2**27  # bytes of parents' weights; children come parent by parent, so that few are needed at a time


@dataclass(frozen=True, eq=False)
class Tilt:
    """What turns a group's prior into its estimate.

    `emptied` says which collapsed rows one of the paper's estimators left without mass, eight in a byte; None for none.
    """

    level: int
    group: int
    multipliers: Floats
    emptied: bytes | None = None


class Foundation:
    """The public rows that estimates start from, with what is made of them once: several threads may use it.

    `support` has these rows: all of the public table, or some that stand for all.
    """

    def __init__(self, plan: Plan, support: Support, settings: Settings) -> None:
        self.plan = plan
        self.support = support
        self.settings = settings
        self._lock = Lock()
        self._priors: dict[int, GroupPriors] = {}
        self._parents: OrderedDict[tuple[int, int], Floats] = OrderedDict()
        self._handed_on: dict[int, tuple[Floats, Layout]] = {}  # by level: a parent's weights, and what it hands on

    @classmethod
    def of(cls, plan: Plan, cells: PublicCells, settings: Settings) -> Foundation:
        """The foundation of a plan's estimates on a public table."""
        support = cells.support(settings, parts_of(plan, 0), plan.groupings)  # the first level has the parts of all
        return cls(plan, support, settings)

    def layout(self, level: int) -> Layout:
        """The support's rows as the parts of a level see them."""
        return self.layout_of(parts_of(self.plan, level))

    def layout_of(self, parts: tuple[Part, ...]) -> Layout:
        """The support's rows as any parts see them."""
        with self._lock:
            return self.support.layout(parts)

    def priors(self, level: int) -> GroupPriors:
        """What the groups of a level start from."""
        with self._lock:
            if level not in self._priors:
                self._priors[level] = GroupPriors(self.support.public, self.plan, level, self.settings)
            return self._priors[level]

    def own_prior(self, level: int, group: int) -> bool:
        """Whether a group's prior is not that of all other groups of its parent."""
        return bool(self.priors(level).recurring.recurs[group])

    def prior(self, level: int, group: int, parent: Floats) -> Prior:  # given the weights of its parent
        return self.support.public.prior.with_weights(self.priors(level).weights(group, parent))

    def worked_out(self, tilt: Tilt, parent: Floats) -> tuple[Floats, Floats]:
        """Weights of the support's rows in a group, and the shares of the cells of its level's parts."""
        layout = self._of_group(tilt, parent)
        tilted = layout.evaluate(tilt.multipliers)
        return layout.expand(tilted.normalised()), tilted.masses

    def weights_of(self, tilt: Tilt, parent: Floats) -> Floats:
        """Weights of the support's rows in a group."""
        return self._of_group(tilt, parent).weights(tilt.multipliers)

    def _of_group(self, tilt: Tilt, parent: Floats) -> Layout:
        """The layout with a group's prior, on the rows that may have mass."""
        layout = self._starting(tilt, parent)
        if tilt.emptied is None:
            return layout
        gone = np.unpackbits(np.frombuffer(tilt.emptied, np.uint8), count=layout.rows)
        return layout.restricted(gone == 0)

    def _starting(self, tilt: Tilt, parent: Floats) -> Layout:
        """The layout with a group's prior; groups without a prior of their own share that of the last such parent."""
        own = self.own_prior(tilt.level, tilt.group)
        with self._lock:
            known = self._handed_on.get(tilt.level)
        if known is not None and known[0] is parent and not own:
            return known[1]
        layout = self.layout(tilt.level).reweighted(self.prior(tilt.level, tilt.group, parent))
        if not own:
            with self._lock:
                self._handed_on[tilt.level] = parent, layout
        return layout

    def weights(self, ancestors: Sequence[Tilt]) -> Floats:
        """Weights of the rows in the last of these groups, each the parent of the next; of none, the whole table's.

        Those used lately are kept, because all children need their parent's.
        """
        if not ancestors:
            return self.support.public.prior.weights
        *above, tilt = ancestors
        with self._lock:
            if (weights := self._parents.get((tilt.level, tilt.group))) is not None:
                self._parents.move_to_end((tilt.level, tilt.group))
                return weights
        weights = self.weights_of(tilt, self.weights(above))
        self.keep(tilt, weights)
        return weights

    def keep(self, tilt: Tilt, weights: Floats) -> None:
        """Keep the weights of a group that has children, as long as there is room."""
        with self._lock:
            self._parents[tilt.level, tilt.group] = weights
            while len(self._parents) > max(2, MOST_KEPT // weights.nbytes):
                self._parents.popitem(last=False)


# ---------------------------------------------------------------------- for workers


def shared_foundation(foundation: Foundation, folder: Path, key: str) -> Shared[Foundation]:
    """The foundation for tasks on workers, which open it once from a folder that they see; `key` is the run's."""
    save_mapped(foundation.support.public, folder / SUPPORT_FOR_WORKERS)
    foundation.plan.save(folder / PLAN)
    return Shared(foundation, opened_foundation, str(folder.absolute()), foundation.settings, key)


def opened_foundation(folder: str, settings: Settings, _: str) -> Foundation:
    """The foundation in a folder, whose run has this key."""
    public = open_mapped(Path(folder) / SUPPORT_FOR_WORKERS)
    plan = Plan.load(Path(folder) / PLAN)
    return Foundation(plan, Support(public, None, len(public)), settings)


# ---------------------------------------------------------------------- the prior of a group

# p_g = own * (rows of the same group) + (1 - own) * handed        own: that of `Settings`
# handed = 0.95 * parent's estimate + 0.05 * public table


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
        """Weights of the rows in a group's prior; `parent` are the final weights of its parent."""
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
