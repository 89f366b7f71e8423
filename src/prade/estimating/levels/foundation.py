"""What all groups of a release are estimated from: public rows, their layout, base distributions.

A group that is estimated is small: its `Tilt`. From it the weights of the public rows are worked out again, in one pass
over the rows.

    q_g  is proportional to  p_g exp(W' lambda_g)
    p_g = own * (rows of the same group) + (1 - own) * public table        own: that of `Settings`

p_g is the group's base distribution: the public table, unless the group has public rows of its own. Its prior, which an
estimate is close to, is p_g exp(W' lambda_parent): what all groups of a parent have in common costs them nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.execution import Shared
from prade.data.declare.groups import Grouping, RecurringGroups
from prade.data.public.public import Public, open_mapped, save_mapped
from prade.estimating.layout import Layout
from prade.estimating.levels.answers import parts_of
from prade.estimating.levels.public_cells import PublicCells, Support
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.release.derived_files import SUPPORT_FOR_WORKERS
from prade.release.release import PLAN


@dataclass(frozen=True, eq=False)
class Tilt:
    """What turns the base distribution of a group of the last level into its estimate.

    `emptied` says which collapsed rows one of the paper's estimators left without mass, eight in a byte; None for none.
    """

    group: int
    multipliers: Floats
    emptied: bytes | None = None


class Foundation:
    """The public rows that estimates start from, with what is made of them once: several threads may use it.

    `support` has these rows: all of the public table, or some that stand for all. `groupings` are everybody and the
    levels of the plan; where the plan begins with one group, that is everybody.
    """

    def __init__(self, plan: Plan, support: Support, settings: Settings) -> None:
        self.plan = plan
        self.support = support
        self.settings = settings
        self._lock = Lock()
        self._priors: dict[int, GroupPriors] = {}
        self._latest: tuple[Floats, Layout] | None = None  # multipliers of a parent, and what its groups start from
        self.groupings = groupings_of(plan)
        self.above_plan = len(self.groupings) - len(plan.groupings)  # 1 if the plan has no level of everybody

    @classmethod
    def of(cls, plan: Plan, cells: PublicCells, settings: Settings) -> Foundation:
        """The foundation of a plan's estimates on a public table."""
        return cls(plan, cells.support(settings, parts_of(plan, 0), plan.groupings), settings)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All parts of the plan, at whatever level they were asked for."""
        return parts_of(self.plan, 0)

    @cached_property
    def layout(self) -> Layout:
        """The support's rows as all parts of the plan see them."""
        return self.layout_of(self.parts)

    def asked(self, number: int) -> tuple[int, Grouping | None]:
        """What `raw_answers` takes for one of the groupings."""
        return max(number - self.above_plan, 0), self.groupings[number] if number < self.above_plan else None

    def layout_of(self, parts: tuple[Part, ...]) -> Layout:
        """The support's rows as any parts see them."""
        with self._lock:
            return self.support.layout(parts)

    def priors(self, number: int) -> GroupPriors:
        """What the groups of one of the groupings start from."""
        number %= len(self.groupings)
        with self._lock:
            if number not in self._priors:
                self._priors[number] = GroupPriors(self.support.public, self.groupings[number], self.settings)
            return self._priors[number]

    def parents(self, number: int) -> Ints:
        """For each group of one of the groupings, the group of the one before that contains it."""
        mine = self.groupings[number]
        return mine.above(self.groupings[number - 1]) if number else np.zeros(len(mine), np.int64)

    def base(self, group: int, number: int = -1) -> Layout:
        """The layout with the base distribution of a group, by default one of the last level."""
        priors = self.priors(number)
        if not priors.recurs[group]:
            return self.layout
        return self.layout.reweighted(self.support.public.prior.with_weights(priors.weights(group)))

    def start(self, group: int, above: Floats, number: int = -1) -> Layout:
        """The layout with the prior of a group: its base distribution, moved by the multipliers of its parent."""
        if not above.any():
            return self.base(group, number)
        if self.priors(number).recurs[group]:
            return self._moved(self.base(group, number), above)
        with self._lock:  # groups of one parent share it, and come after each other
            if self._latest is None or not np.array_equal(self._latest[0], above):
                self._latest = above, self._moved(self.layout, above)
            return self._latest[1]

    def _moved(self, base: Layout, above: Floats) -> Layout:
        return base.reweighted(self.support.public.prior.with_weights(base.weights(above)))

    def worked_out(self, tilt: Tilt) -> tuple[Floats, Floats]:
        """Weights of the support's rows in a group, and the shares of the cells of the plan's parts."""
        layout = self._of_group(tilt)
        tilted = layout.evaluate(tilt.multipliers)
        return layout.expand(tilted.normalised()), tilted.masses

    def weights_of(self, tilt: Tilt) -> Floats:
        """Weights of the support's rows in a group."""
        return self._of_group(tilt).weights(tilt.multipliers)

    def _of_group(self, tilt: Tilt) -> Layout:
        """The layout with a group's base distribution, on the rows that may have mass."""
        layout = self.base(tilt.group)
        if tilt.emptied is None:
            return layout
        gone = np.unpackbits(np.frombuffer(tilt.emptied, np.uint8), count=layout.rows)
        return layout.restricted(gone == 0)


def groupings_of(plan: Plan) -> tuple[Grouping, ...]:
    """Everybody, and the levels of a plan; where the plan begins with one group, that is everybody."""
    return plan.groupings if len(plan.groupings[0]) == 1 else (plan.groups.level(()), *plan.groupings)


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


# ---------------------------------------------------------------------- base distributions


class GroupPriors:
    """Base distributions, on the public rows, of the groups of a level."""

    def __init__(self, public: Public, grouping: Grouping, settings: Settings) -> None:
        self.public = public
        self.own = settings.own
        self.recurring = RecurringGroups.of(public.groups, grouping)
        self.recurs = self.recurring.recurs & bool(grouping.by)  # the whole table is not a group

    def weights(self, group: int) -> Floats:
        """Weights of the rows in a group's base distribution."""
        table = self.public.prior.weights
        if not self.recurs[group]:
            return table
        rows = np.where(self.recurring.rows(self.public.group, group), table, 0.0)
        total = float(rows.sum())
        return np.asarray(self.own / total * rows + (1 - self.own) * table if total else table)

    def masses(self, support: Support, layout: Layout) -> Floats:
        """Shares of cells by `weights`, [groups, cells]. They are sums of weights, so no group needs a pass."""
        table = np.repeat(layout.masses_of(layout.base)[None], len(self.recurs), axis=0)
        if not self.recurs.any():
            return table
        total = self.recurring.sums(self.public.group_weights)[:, None]
        rows = self.recurring.sums(support.group_sums(layout.workload.parts))
        mixed = self.own / np.where(total > 0, total, 1.0) * rows + (1 - self.own) * table
        return np.where(self.recurs[:, None] & (total > 0), mixed, table)

    def sizes(self) -> Floats:
        """Weight of each group's own public rows, per year if there are several; 0 for none."""
        return np.asarray(self.recurring.sums(self.public.group_weights) / np.maximum(self.recurring.times, 1))

    def sampling(self, top: bool) -> Floats:
        """What base distributions vary by for being those of few public rows, as multiples of one row's variance.

        All groups of a parent share the public table's, which is the parent's: only the `top` has it.
        """
        rows = self.recurring.sums(self.public.group_weights) * len(self.public)
        own = np.where(self.recurs & (rows > 0), self.own**2 / np.maximum(rows, 1.0), 0.0)
        return np.asarray(own + top / len(self.public))
