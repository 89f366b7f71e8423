"""Down the levels: each group's estimate starts from its parent's and becomes its children's prior (Algorithm 2).

At every level, for every group:

    raw answers   its noisy counts, joined with its descendants' (`prade.estimating.levels.answers`)
    prior         its parent's estimate, and public rows of the same group where there are any
                  (`prade.estimating.levels.foundation`)
    smoothing     the answers' posterior, given how public groups differ (`prade.estimating.levels.smoothing`)
    estimate      MAP from that prior; the next level's prior (`prade.estimating.levels.group_fits`)

All of it is post-processing. Answers are smoothed here, in threads, for all groups of a level together; estimates are
made by workers, a few groups at a time. A group is its multipliers: weights are held for a few parents only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from prade.core.arrays import Floats
from prade.core.execution import Execution, Shared, several, single_threaded_blas
from prade.data.public.public import Public
from prade.estimating.base import Estimator
from prade.estimating.estimate import Estimate
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.distributions import LevelEstimates
from prade.estimating.levels.foundation import Foundation, Tilt, opened_foundation, shared_foundation
from prade.estimating.levels.group_fits import GroupAnswers, Made, Method, batches_of, estimated, fitted
from prade.estimating.levels.level_smoothing import SMALLEST_SHARE, LevelSmoothing, RowsFromTables, reachable_shares
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.totals import (
    FEWEST_ROWS,
    adding_up,
    benchmarked,
    estimated_totals,
    parts_of_parents,
    with_published,
)
from prade.estimating.levels.variation import families_of
from prade.estimating.paper_estimators import IDE, TwoStage
from prade.estimating.posterior_mode import MAP
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.privacy.noise_law import GAUSSIAN
from prade.queries.parts import Part
from prade.release.release import Release

Result = TypeVar("Result")

LIMIT = 5.0  # of multipliers: an answer changes the prior's weight of a row by at most a factor of e^5 = 148
TOLERANCE = 1e-3  # of MAP's objective: far below the effect of the noise
MOST_STEPS = 200  # of MAP, far more than it takes to get to the tolerance
FEW_STEPS = 25  # of MAP in rehearsals: enough for thousands of raw cells, too
PAPERS: dict[str, Estimator] = {"ide": IDE(), "two-stage": TwoStage()}


@dataclass(frozen=True, eq=False)
class Parent:
    """What children start from: the number of rows, and `LevelGroups.followed_cells` by part.

    `masses` are the shares of the cells that the children are estimated from, and `ancestors` the tilts of the group
    and of all above it. Without both, it is the public table.
    """

    total: float = 0.0
    followed: Mapping[Part, Floats] = field(default_factory=dict)
    masses: Floats | None = None
    ancestors: tuple[Tilt, ...] = ()


@dataclass(frozen=True)
class GroupEstimate:
    """A group's number, its number of rows, and its distribution."""

    group: int
    total: float
    estimate: Estimate


class Descent:
    """A release's noisy counts turned into estimates, level by level.

    `rough` is for rehearsals: few steps of `MAP`, and nothing that only error bars need. `cells` is what other descents
    on the same public table share. An executor makes estimates elsewhere, if `share` has written what its workers need.
    """

    def __init__(
        self,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        rough: bool = False,
        cells: PublicCells | None = None,
        execution: Execution = Execution(),
    ) -> None:
        self.release = release
        self.plan = release.plan
        self.settings = settings or Settings()
        self.estimator = PAPERS.get(self.settings.estimator)
        self.rough = rough
        self.execution = execution
        self.cells = (cells or PublicCells(public)).with_added(release, self.settings)
        self.public = self.cells.public
        self.foundation = Foundation.of(self.plan, self.cells, self.settings)
        self.shared = Shared(self.foundation, opened_foundation)
        self.from_tables: RowsFromTables | None = None  # of the groups that `groups` was called for last

    def share(self, folder: Path, key: str) -> None:
        """Write what workers need to a folder that they see; `key` tells this run from others."""
        self.shared = shared_foundation(self.foundation, folder, key)

    @property
    def top(self) -> list[Parent]:
        """What the first level starts from: the public table."""
        return [Parent()]

    def map(self, task: Callable[[GroupEstimate], Result], groups: range | None = None) -> Iterator[Result]:
        """task(estimate) for the groups of the last level, in order, several at a time; estimates are not kept.

        `groups` are those that are wanted, by default all.
        """
        last, parents = self.parents_of_last()
        return self.level(last, parents, task, groups)

    def parents_of_last(self) -> tuple[int, list[Parent]]:
        """The last level, and what it starts from."""
        parents, last = self.top, len(self.plan.levels) - 1
        for level in range(last):
            parents = self.handed_on(level, parents)
        return last, parents

    def level(
        self,
        level: int,
        parents: Sequence[Parent],
        task: Callable[[GroupEstimate], Result],
        groups: range | None = None,
    ) -> Iterator[Result]:
        """task(estimate) for the wanted groups of a level, given what its parents hand on, in threads."""
        found = self.groups(level, parents)

        def alone(group: int) -> Result:
            with single_threaded_blas():  # the order of sums must not depend on what else runs
                return task(found.estimate(group))

        return several(alone, range(len(found)) if groups is None else groups, self.execution.threads)

    def groups(self, level: int, parents: Sequence[Parent]) -> LevelGroups:
        """The groups of a level with their smoothed answers, given what their parents hand on."""
        found = LevelGroups(self, level, parents)
        self.from_tables = found.from_tables
        return found

    def made(self, found: LevelGroups, known: Collection[int] = ()) -> Iterator[list[Made]]:
        """The estimates of a level's groups, made by workers, batch by batch; batches of known groups are left out."""
        groups = range(len(found))
        batches = batches_of([found.asked(group) for group in groups], [found.ancestors(group) for group in groups])
        wanted = [batch for batch in batches if not all(each.group in known for each in batch.groups)]
        return self.execution.map(partial(estimated, self.shared, found.method), wanted)

    def handed_on(self, level: int, parents: Sequence[Parent]) -> list[Parent]:
        """What the groups of a level hand on to their children."""
        found = self.groups(level, parents)
        made = {each.tilt.group: each for batch in self.made(found) for each in batch}
        return [found.handed_on(made[group]) for group in range(len(found))]


class LevelGroups:
    """The groups of one level: what they share is worked out first, then the estimate of each."""

    def __init__(self, descent: Descent, level: int, parents: Sequence[Parent]) -> None:
        self.settings = descent.settings
        self.threads = descent.execution.threads
        self.foundation = descent.foundation
        self.cells = descent.cells
        self.parents = parents
        self.answers = raw_answers(descent.release, level)
        self.layout = self.foundation.layout(level)
        self.priors = self.foundation.priors(level)
        self._count_rows(descent.plan, level)
        self.smooth = descent.estimator is None and self.settings.smooth
        # raw answers are fitted too: error bars need a and w, rehearsals do not
        fits = self.smooth or (descent.estimator is None and not descent.rough)
        self.smoothing = self._smoothing() if fits else None
        self.from_tables: RowsFromTables | None = None
        if self.smoothing is not None and self.smooth:
            self.from_tables = RowsFromTables.of(self.answers, self.smoothing, self.rows)
            self.answers = self.from_tables.joined(self.answers)
            self._count_rows(descent.plan, level)
            self.smoothing = replace(self.smoothing, shares=self._reachable(), noise=self.noise)
        self.smoothed = self._smoothed(self.smoothing) if self.smoothing is not None and self.smooth else None
        n0: float | Literal["auto"] = self.settings.n0 if self.smooth else "auto"
        steps = FEW_STEPS if descent.rough else MOST_STEPS
        # Added rows are there to be raised from almost nothing to what raw answers say.
        limit = None if self.settings.extra and not self.smooth else LIMIT
        trust = self.settings.trust
        estimator = descent.estimator or MAP(n0=n0, tolerance=TOLERANCE, limit=limit, trust=trust, max_steps=steps)
        # Sums and smoothed answers are nearly Gaussian. MAP takes raw Laplace answers as Gaussian, too: the mode under
        # their own law meets most of them exactly, noise included, and is further from the truth.
        own_law = descent.estimator is not None and level == len(descent.plan.levels) - 1
        self.method = Method(level, estimator, descent.plan.law if own_law else GAUSSIAN)

    def __len__(self) -> int:
        return len(self.answers.totals)

    def _count_rows(self, plan: Plan, level: int) -> None:
        """The groups' numbers of rows, and the answers as shares of them."""
        totals, self.rows_variance = estimated_totals(self.answers, self.priors.sizes())
        totals, parents = with_published(totals, level, plan), np.array([parent.total for parent in self.parents])
        # whole numbers that add up to the parents', and meet what is published
        add_up = self.rows_variance, self.priors.parent_of, parents
        self.totals = np.rint(totals) if self.priors.top else adding_up(totals, *add_up)
        self.rows = np.maximum(self.totals, FEWEST_ROWS)  # to divide by
        self.shares = self.answers.shares(self.rows)
        self.noise = self.answers.noise(self.rows)

    def estimate(self, group: int) -> GroupEstimate:
        """The estimate of one group."""
        parent = self.foundation.weights(self.ancestors(group))
        estimate, _ = fitted(self.foundation, self.method, self.asked(group), parent)
        return GroupEstimate(group, float(self.totals[group]), estimate)

    def ancestors(self, group: int) -> tuple[Tilt, ...]:
        """The tilts of all above a group, from the first level to its parent."""
        return self.parents[int(self.priors.parent_of[group])].ancestors

    def asked(self, group: int) -> GroupAnswers:
        """The answers that a group is estimated from."""
        share, deviation = self.shares[group], self.noise[group]
        if self.smoothed is not None:
            share, deviation = self.smoothed[0][group], self.smoothed[1][group]
        return GroupAnswers(group, float(self.rows[group]), share, deviation)

    def estimates(self, made: Sequence[Made]) -> LevelEstimates:
        """What is kept of the estimates of all groups."""
        fitted, excess, apart = (None, None, None) if self.smoothing is None else self.smoothing.by_group()
        return LevelEstimates(
            self.answers.parts,
            self.totals,
            np.stack([each.tilt.multipliers for each in made]),
            tuple(each.status for each in made),
            np.array([each.kl for each in made]),
            np.array([each.gap for each in made]),
            self.rows_variance,
            fitted,
            excess,
            apart,
            tuple(each.tilt.emptied for each in made),
        )

    @cached_property
    def followed_cells(self) -> Floats:
        """How much of a change in a raw answer goes into the smoothed one: [groups, cells]."""
        assert self.smoothed is not None
        return np.asarray((self.smoothed[1] / self.noise) ** 2)

    def handed_on(self, made: Made) -> Parent:
        """What a group hands on to its children."""
        group, followed = made.tilt.group, dict[Part, Floats]()
        if self.smoothed is not None:
            by_part = np.split(self.followed_cells[group], self.layout.part_start[1:-1])
            followed = dict(zip(self.answers.parts, by_part, strict=True))
        return Parent(float(self.totals[group]), followed, made.masses, (*self.ancestors(group), made.tilt))

    @cached_property
    def _parents_masses(self) -> Floats:
        """Shares of the cells in each parent: [parents, cells]."""
        table = self.layout.masses_of(self.layout.base)
        return np.stack([table if parent.masses is None else parent.masses for parent in self.parents])

    @cached_property
    def _prior_shares(self) -> Floats:
        """Shares of the cells in each group's prior: [groups, cells]."""
        return self.priors.masses(self._parents_masses, self.foundation.support, self.layout)

    def _reachable(self) -> Floats:
        return reachable_shares(self.layout, self.shares, self._prior_shares, self.noise)

    def _smoothing(self) -> LevelSmoothing:
        drawn = self.answers.one_draw_cells()
        return LevelSmoothing.fit(
            self.cells.variations(self.layout, keep=self.smooth),
            self.priors.recurs,
            self._reachable(),
            self._prior_shares,
            self.rows,
            self.noise,
            self._independent(),
            families_of(self.answers.parts),
            self.settings.change,
            keep=self.smooth,
            laplace=drawn is not None and bool(drawn.mean() > 0.5),
            one_draw=drawn if self.settings.posterior == "laplace" else None,
            threads=self.threads,
        )

    def _independent(self) -> Floats:
        """How independent the deviations of groups from their parents are of the groups' own answers: [groups, cells].

        With c a group's part of its parent's rows, and k how much the parent's estimate follows its raw answers, which
        are the sums of its groups': the variance of y_g - k sum_h c_h y_h is about (1 - 2 k c + k^2 c) Var(y_g).
        """
        follows = [
            np.concatenate([parent.followed.get(part, np.zeros(part.n_cells)) for part in self.answers.parts])
            for parent in self.parents
        ]
        inherited = np.where(self.priors.recurs[:, None], 0.0, np.stack(follows)[self.priors.parent_of])
        part = parts_of_parents(self.rows, self.priors.parent_of, len(self.parents))[:, None]
        return np.asarray(1 - inherited * part * (2 - inherited))

    def _smoothed(self, smoothing: LevelSmoothing) -> tuple[Floats, Floats]:
        """The smoothed shares of all groups, benchmarked to their parents' estimates, and their standard deviations."""
        shares, deviations = smoothing.smoothed(self.threads)
        if not self.priors.top:
            changed = benchmarked(
                shares, deviations**2, self.rows, self.rows_variance, self.priors.parent_of, self._parents_masses
            )
            shares = np.maximum(changed, SMALLEST_SHARE * smoothing.prior_shares)
        return shares, deviations
