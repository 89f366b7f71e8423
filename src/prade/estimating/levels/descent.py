"""Down the levels: each group's estimate starts from its parent's and becomes its children's prior (Algorithm 2).

At every level, for every group:

    raw answers   its noisy counts, joined with its descendants' (`prade.estimating.levels.answers`)
    prior         its parent's estimate, public rows of the same group where there are any, public groups that
                  resemble it (`prade.estimating.levels.group_prior`)
    smoothing     the answers' posterior, given how public groups differ (`prade.estimating.levels.smoothing`)
    estimate      MAP from that prior; the next level's prior

All of it is post-processing. A group is its multipliers: only a few groups' weights are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.threads import several, single_threaded_blas
from prade.data.prior import Prior
from prade.data.public import Public
from prade.estimating.base import Estimator
from prade.estimating.estimate import Estimate
from prade.estimating.ide import IDE
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.benchmarking import benchmarked, parts_of_parents
from prade.estimating.levels.group_prior import GroupPriors
from prade.estimating.levels.level_smoothing import SMALLEST_SHARE, LevelSmoothing, reachable_shares
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.published import with_published
from prade.estimating.levels.resemblance import resemblance
from prade.estimating.levels.totals import FEWEST_ROWS, adding_up, estimated_totals, estimated_totals_variance
from prade.estimating.posterior_mode import MAP
from prade.estimating.two_stage import TwoStage
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.privacy.budget import Law
from prade.queries.parts import Part
from prade.release.measurement import Measurement
from prade.release.release import Release

Result = TypeVar("Result")

LIMIT = 5.0  # of multipliers: an answer changes the prior's weight of a row by at most a factor of e^5 = 148
TOLERANCE = 1e-3  # of MAP's objective: far below the effect of the noise
MOST_STEPS = 200  # of MAP: with thousands of raw cells, more steps improve the error by less than a hundredth
FEW_STEPS = 25  # of MAP in rehearsals: smoothed answers need fewer, raw ones end up to a tenth worse
PAPERS: dict[str, Estimator] = {"ide": IDE(), "two-stage": TwoStage()}


@dataclass(frozen=True)
class Parent:
    """What children start from: weights of the public rows, the number of rows, and `followed` of `GroupEstimate`."""

    weights: Floats
    total: float = 0.0
    followed: Mapping[Part, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupEstimate:
    """A group's number, its number of rows, its distribution, and the weights of the public groups it resembles.

    `fitted` and `excess` are those of its `LevelSmoothing`; None where nothing was fitted. `followed` says how much of
    a change in a raw answer goes into the smoothed one, for the cells of each part; raw answers have none.
    `emptied` says which collapsed rows one of the paper's estimators left without mass; None for none.
    """

    group: int
    total: float
    estimate: Estimate
    alike: Floats | None = None
    fitted: Floats | None = None
    excess: Floats | None = None
    followed: Mapping[Part, Floats] = field(default_factory=dict)
    emptied: Flags | None = None

    @property
    def parent(self) -> Parent:
        """What the group hands on to its children."""
        return Parent(self.estimate.weights, self.total, self.followed)


class Descent:
    """A release's noisy counts turned into estimates, level by level.

    `estimator` takes the raw answers; by default it is the one in the settings. `rough` is for rehearsals: few steps of
    `MAP`, and nothing that only error bars need. `cells` is what other descents on the same public table share.
    """

    def __init__(
        self,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        estimator: Estimator | None = None,
        rough: bool = False,
        threads: int = 1,
        seed: int = 0,
        cells: PublicCells | None = None,
    ) -> None:
        self.release = release
        self.plan = release.plan
        self.public = public
        self.settings = settings or Settings()
        self.estimator = estimator or PAPERS.get(self.settings.estimator)
        self.rough = rough
        self.threads = threads
        self.cells = cells or PublicCells(public, seed)
        # the first level has the parts of all
        parts = raw_answers(release, 0).parts
        self.support = self.cells.support(self.settings, parts, self.plan.groupings)

    @property
    def top(self) -> list[Parent]:
        """What the first level starts from: the public table."""
        return [Parent(self.support.public.prior.weights)]

    def estimates(self) -> Iterator[GroupEstimate]:
        """The estimates of the last level's groups, in order."""
        return self.map(lambda each: each)

    def map(self, task: Callable[[GroupEstimate], Result], groups: range | None = None) -> Iterator[Result]:
        """task(estimate) for the groups of the last level, in order, several at a time; estimates are not kept.

        `groups` are those that are wanted, by default all.
        """
        parents = self.top
        last = len(self.plan.levels) - 1
        for level in range(last):
            parents = [each.parent for each in self.level(level, parents, lambda each: each)]
        return self.level(last, parents, task, groups)

    def level(
        self,
        level: int,
        parents: Sequence[Parent],
        task: Callable[[GroupEstimate], Result],
        groups: range | None = None,
    ) -> Iterator[Result]:
        """task(estimate) for the wanted groups of a level, given what its parents hand on."""
        found = _LevelGroups(self, level, parents)
        wanted = range(len(found)) if groups is None else groups
        return several(_alone(lambda group: task(found.estimate(group))), wanted, self.threads)


def _alone(work: Callable[[int], Result]) -> Callable[[int], Result]:
    """The same work without BLAS threads: the order of sums must not depend on what else runs."""

    def alone(group: int) -> Result:
        with single_threaded_blas():
            return work(group)

    return alone


class _LevelGroups:
    """The groups of one level: what they share is worked out first, then the estimate of each."""

    def __init__(self, descent: Descent, level: int, parents: Sequence[Parent]) -> None:
        self.settings = descent.settings
        self.threads = descent.threads
        self.cells = descent.cells
        self.prior = descent.support.public.prior
        self.parents = parents
        self.answers = raw_answers(descent.release, level)
        self.layout = descent.support.layout(self.answers.parts)
        self.priors = GroupPriors(descent.support.public, descent.plan, level, self.settings)
        self.rows_variance = estimated_totals_variance(self.answers, self.priors.sizes())
        self.totals = self._totals(descent.plan, level)
        self.rows = np.maximum(self.totals, FEWEST_ROWS)  # to divide by
        self.shares = self.answers.shares(self.rows)
        self.noise = self.answers.noise(self.rows)
        self.smooth = descent.estimator is None and self.settings.smooth
        # raw answers are fitted too: error bars need a and w, rehearsals do not
        fits = self.smooth or (descent.estimator is None and not descent.rough)
        self.smoothing = self._smoothing() if fits else None
        self.smoothed = self._smoothed(self.smoothing) if self.smoothing is not None and self.smooth else None
        n0: float | Literal["auto"] = self.settings.n0 if self.smooth else "auto"
        steps = FEW_STEPS if descent.rough else MOST_STEPS
        self.estimator = descent.estimator or MAP(n0=n0, tolerance=TOLERANCE, limit=LIMIT, max_steps=steps)
        # Sums and smoothed answers are nearly Gaussian. MAP takes raw Laplace answers as Gaussian, too: the mode under
        # their own law meets most of them exactly, noise included, and is further from the truth.
        own_law = descent.estimator is not None and level == len(descent.plan.levels) - 1
        self.law: Law = descent.plan.noise_budget.law if own_law else "gaussian"

    def __len__(self) -> int:
        return len(self.answers.totals)

    def _totals(self, plan: Plan, level: int) -> Floats:
        """The groups' numbers of rows: whole numbers that add up to the parents', and meet what is published."""
        totals = with_published(estimated_totals(self.answers, self.priors.sizes()), level, plan)
        if self.priors.top:
            return np.rint(totals)
        parents = np.array([parent.total for parent in self.parents])
        return adding_up(totals, self.rows_variance, self.priors.parent_of, parents)

    def estimate(self, group: int) -> GroupEstimate:
        """The estimate of one group."""
        share, deviation = self.shares[group], self.noise[group]
        if self.smoothed is not None:
            share, deviation = self.smoothed[0][group], self.smoothed[1][group]
        weights, alike = self._prior_weights(group), None
        if self.settings.mixture:
            alike = resemblance(self.cells.group_masses(self.layout), share, deviation)
            weights = self.priors.with_alike(weights, alike)
        prior = Prior(self.prior.schema, self.prior.codes, weights)
        layout = self.layout.reweighted(prior)
        rows = self.rows[group]
        estimate = self.estimator.fit(prior, self._measurements(rows, share, deviation), rows, layout=layout)
        total = float(self.totals[group])
        fitted, excess = (None, None) if self.smoothing is None else self.smoothing.fitted_for(group)
        followed = {} if self.smoothed is None else self._by_part((deviation / self.noise[group]) ** 2)
        return GroupEstimate(group, total, estimate, alike, fitted, excess, followed, estimate.emptied(layout))

    def _prior_weights(self, group: int) -> Floats:
        return self.priors.weights(group, self.parents[self.priors.parent_of[group]].weights)

    def _smoothing(self) -> LevelSmoothing:
        layout, drawn = self.layout, self.answers.one_draw_cells()
        priors = [layout.masses_of(layout.collapsed(self._prior_weights(group))) for group in range(len(self))]
        return LevelSmoothing.fit(
            self.cells.variations(layout, keep=self.smooth),
            self.priors.recurs,
            reachable_shares(layout, self.shares, np.stack(priors), self.noise),
            np.stack(priors),
            self.rows,
            self.noise,
            self._independent(),
            keep=self.smooth,
            laplace=drawn is not None and bool(drawn.mean() > 0.5),
            one_draw=drawn if self.settings.posterior == "laplace" else None,
        )

    def _by_part(self, values: Floats) -> dict[Part, Floats]:
        return dict(zip(self.answers.parts, np.split(values, self.layout.part_start[1:-1]), strict=True))

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
        each = several(_alone(smoothing.smoothed), range(len(self)), self.threads)
        shares, deviations = (np.stack(arrays) for arrays in zip(*each, strict=True))
        if not self.priors.top:
            parents = [self.layout.masses_of(self.layout.collapsed(parent.weights)) for parent in self.parents]
            changed = benchmarked(
                shares, deviations**2, self.rows, self.rows_variance, self.priors.parent_of, np.stack(parents)
            )
            shares = np.maximum(changed, SMALLEST_SHARE * smoothing.prior_shares)
        return shares, deviations

    def _measurements(self, rows: float, share: Floats, deviation: Floats) -> list[Measurement]:
        """A group's answers as estimators take them: counts, and the scale of their noise."""
        per_scale = np.sqrt(2.0) if self.law == "laplace" else 1.0  # standard deviations per unit of scale
        return [
            Measurement(part, rows * share[cells], rows * deviation[cells] / per_scale, self.law)
            for part, cells in ((part, self.layout.part(k)) for k, part in enumerate(self.answers.parts))
        ]
