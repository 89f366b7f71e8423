"""Down the levels: each group's estimate starts from its parent's, and is handed on to its children (Algorithm 2).

At every level, for every group:

    answers    its noisy counts, joined with the sums of its descendants' for the same parts (inverse variances)
    prior      its parent's estimate, public rows of the same group where there are any, public groups that resemble it
    smoothing  the answers' posterior, given how public groups differ (`prade.smooth`)
    estimate   MAP from that prior; the next level's prior

All of it is post-processing. A group is its multipliers: no more than a few groups' weights are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from prade.blas import single_threaded_blas
from prade.errors import EstimationError
from prade.estimate import Estimate
from prade.estimators.base import Estimator
from prade.estimators.map_ import MAP
from prade.joint import mass_per_cell
from prade.layout import Layout
from prade.measurement import Measurement
from prade.parts import Part
from prade.prior import Prior
from prade.public import Public
from prade.release import Release
from prade.resemblance import resemblance
from prade.smooth import Smoother, Spread, smooth_totals
from prade.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Result = TypeVar("Result")

MOST_SMOOTHED = 1_500  # cells; a covariance of more takes longer than it gains
SMALLEST_SHARE = 0.1  # of the prior's: a posterior mean below it, perhaps negative, would empty a cell for good
HANDED_ON = 0.95  # of a parent's estimate; the rest is the public table, so that no row is lost on the way
FEWEST_ROWS = 1.0


@dataclass(frozen=True)
class Settings:
    """How a group's estimate is made; what `prade.tune` chooses.

    own: weight of the same group's public rows in its prior, where there are any. mixture: weight of public groups that
    resemble the group. n0: rows that the prior is worth against smoothed answers. smooth: False leaves answers as they
    are, and `estimator` (if not None) takes them.
    """

    own: float = 0.98
    mixture: float = 0.0
    n0: float = 10.0
    smooth: bool = True

    def __post_init__(self) -> None:
        for name in ("own", "mixture"):
            if not 0 <= getattr(self, name) <= 1:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give a weight from 0 to 1")
        if not self.n0 > 0:
            raise EstimationError(f"n0 is {self.n0!r}: give a positive number of rows")


@dataclass(frozen=True)
class Answers:
    """All that is known of a level's groups: counts [groups, cells] of each part, noise variances [groups, parts]."""

    parts: tuple[Part, ...]
    counts: list[Floats]
    variance: Floats
    totals: Floats
    total_variance: Floats


@dataclass(frozen=True)
class GroupEstimate:
    """What is handed out for a group of the last level: its number, its number of rows, its distribution."""

    group: int
    total: float
    estimate: Estimate


class Descent:
    """A release's noisy counts turned into estimates, level by level.

    `estimator` takes the noisy counts as they are; None is the default: smoothed counts and `MAP`.
    """

    def __init__(
        self,
        release: Release,
        public: Public,
        settings: Settings | None = None,
        *,
        estimator: Estimator | None = None,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        self.plan = release.plan
        self.release = release
        self.public = public
        self.settings = settings or Settings()
        self.estimator = estimator
        self.threads = threads
        self.seed = seed
        self._layouts: dict[tuple[Part, ...], Layout] = {}
        self._spreads: dict[tuple[Part, ...], Spread] = {}

    def estimates(self) -> Iterator[GroupEstimate]:
        """The estimates of the last level's groups, in order."""
        return self.map(lambda found: found)

    def map(self, task: Callable[[GroupEstimate], Result]) -> Iterator[Result]:
        """task(estimate) for every group of the last level, in order, several at a time; estimates are let go of."""
        parents = [self.public.prior.weights]
        parent_of = np.zeros(len(self.plan.groupings[0]), np.int64)
        last = len(self.plan.levels) - 1
        for level in range(last):
            weights = [found.estimate.weights for found in self._level(level, parents, parent_of, lambda found: found)]
            below = self.plan.groupings[level + 1]
            parent_of = np.zeros(len(below), np.int64)
            parent_of[below.number] = self.plan.groupings[level].number
            parents = [HANDED_ON * each + (1 - HANDED_ON) * self.public.prior.weights for each in weights]
        return self._level(last, parents, parent_of, task)

    # ---------------------------------------------------------------- one level

    def _level(
        self, level: int, parents: list[Floats], parent_of: Ints, task: Callable[[GroupEstimate], Result]
    ) -> Iterator[Result]:
        answers = self.answers(level)
        layout = self._layout(answers.parts)
        own = self.public.within(self.plan.groupings[level])
        totals = self._totals(level, answers, own)
        start = layout.part_start
        priors = _Priors(self.public.prior, parents, parent_of, own, self.settings.own)
        smoothed = self.estimator is None and self.settings.smooth and layout.n_cells <= MOST_SMOOTHED
        smoother = None
        noise = np.sqrt(np.repeat(answers.variance, np.diff(start), axis=1))
        shares = np.concatenate(answers.counts, axis=1) / totals[:, None]
        if smoothed:
            masses = np.stack([layout.masses_of(layout.collapsed(priors.weights(g))) for g in range(len(totals))])
            same_groups = bool((own >= 0).any() and self.plan.groupings[level].by)
            spread = self._spread(layout).without_between() if same_groups else self._spread(layout)
            with single_threaded_blas():
                smoother = Smoother.fit(spread, shares - masses, totals, noise)

        def work(group: int) -> Result:
            weights = priors.weights(group)
            counts, deviation = shares[group] * totals[group], noise[group]
            if smoother is not None:
                mean, variance = smoother.posterior(shares[group] - masses[group], totals[group], noise[group])
                share = np.maximum(masses[group] + mean, SMALLEST_SHARE * masses[group])
                counts, deviation = share * totals[group], totals[group] * np.sqrt(variance)
                if self.settings.mixture:
                    weights = self._with_alike(layout, weights, share, np.sqrt(variance))
            estimator: Estimator = self.estimator or MAP(
                n0=self.settings.n0 if smoother is not None else "auto", tolerance=1e-3
            )
            measured = [
                Measurement(part, counts[start[k] : start[k + 1]], deviation[start[k] : start[k + 1]], "gaussian")
                for k, part in enumerate(answers.parts)
            ]
            prior = Prior(self.public.prior.schema, self.public.prior.codes, weights)
            estimate = estimator.fit(prior, measured, totals[group], layout=layout.reweighted(prior))
            return task(GroupEstimate(group, float(totals[group]), estimate))

        return _several(work, len(totals), self.threads)

    def answers(self, level: int) -> Answers:
        """Noisy counts of the level's groups, those of deeper levels added up to theirs."""
        grouping = self.plan.groupings[level]
        size = len(grouping)
        sums: dict[Part, tuple[Floats, Floats]] = {}
        weighted, precision = np.zeros(size), np.zeros(size)
        for question, noisy in zip(self.plan.questions, self.release.noisy, strict=True):
            if question.level < level:
                continue
            below = self.plan.groupings[question.level]
            above = np.zeros(len(below), np.int64)
            above[below.number] = grouping.number
            variance = question.variance * np.bincount(above, minlength=size)
            for part, counts in zip(question.parts, noisy, strict=True):
                added = np.zeros((size, part.n_cells))
                np.add.at(added, above, counts)
                if part.covers:
                    weighted += added.sum(axis=1) / (part.n_cells * variance)
                    precision += 1 / (part.n_cells * variance)
                if not question.is_total:
                    known, inverse = sums.get(part, (np.zeros((size, part.n_cells)), np.zeros(size)))
                    sums[part] = known + added / variance[:, None], inverse + 1 / variance
        if not sums or not precision.all():
            raise EstimationError(f"level {self.plan.levels[level].name} and those below it ask for no marginal")
        return Answers(
            tuple(sums),
            [counts / inverse[:, None] for counts, inverse in sums.values()],
            np.stack([1 / inverse for _, inverse in sums.values()], axis=1),
            weighted / precision,
            1 / precision,
        )

    def _totals(self, level: int, answers: Answers, own: Ints) -> Floats:
        """Numbers of rows: noisy ones, drawn towards last year's where there are any, or else towards each other."""
        size = len(answers.totals)
        public = np.bincount(own[own >= 0], minlength=size).astype(float)
        if size > 1 and self.plan.levels[level].by and public.all():
            expected = public * (answers.totals.sum() / public.sum())
        else:
            expected = np.full(size, answers.totals.mean())
        return np.maximum(smooth_totals(answers.totals, answers.total_variance, expected), FEWEST_ROWS)

    def _layout(self, parts: tuple[Part, ...]) -> Layout:
        if parts not in self._layouts:
            self._layouts[parts] = Layout(self.public.prior, Workload(self.plan.schema, parts))
        return self._layouts[parts]

    def _spread(self, layout: Layout) -> Spread:
        """How the cells of a layout vary in the public table."""
        parts = layout.workload.parts
        if parts not in self._spreads:
            prior = self.public.prior
            cells = [part.cells(prior.schema, prior.codes) for part in parts]
            with single_threaded_blas():
                self._spreads[parts] = Spread.of(
                    cells, [part.n_cells for part in parts], self.public.group, len(self.public.groups), self.seed
                )
        return self._spreads[parts]

    def _with_alike(self, layout: Layout, weights: Floats, share: Floats, deviation: Floats) -> Floats:
        alike = resemblance(self._group_masses[layout.workload.parts], share, deviation)
        rows = self.public.prior.weights * (alike / self._group_weights)[self.public.group]
        return np.asarray((1 - self.settings.mixture) * weights + self.settings.mixture * rows)

    @cached_property
    def _group_weights(self) -> Floats:
        return mass_per_cell(self.public.group, self.public.prior.weights, len(self.public.groups))

    @cached_property
    def _group_masses(self) -> dict[tuple[Part, ...], Floats]:
        """For each layout, the cells of every public group: [cells, public groups]."""
        found = {}
        for parts, layout in self._layouts.items():
            masses = [
                layout.masses_of(layout.collapsed(np.where(self.public.group == g, self.public.prior.weights, 0.0)))
                for g in range(len(self.public.groups))
            ]
            found[parts] = np.stack(masses, axis=1) / self._group_weights
        return found


@dataclass(frozen=True)
class _Priors:
    """Prior weights of each group of a level: its parent's, and its own public rows'."""

    prior: Prior
    parents: Sequence[Floats]
    parent_of: Ints
    own: Ints
    share: float

    def weights(self, group: int) -> Floats:
        handed = self.parents[self.parent_of[group]]
        rows = np.where(self.own == group, self.prior.weights, 0.0)
        total = float(rows.sum())
        return np.asarray(self.share / total * rows + (1 - self.share) * handed) if total else handed


def _several(work: Callable[[int], Result], number: int, threads: int) -> Iterator[Result]:
    """work(0), work(1), ... in order, in threads, never more than a few ahead."""
    numbers = iter(range(number))
    with ThreadPoolExecutor(threads, thread_name_prefix="prade-groups") as pool:
        waiting: list[Future[Result]] = [pool.submit(work, each) for each in islice(numbers, 2 * threads)]
        while waiting:
            yield waiting.pop(0).result()
            waiting.extend(pool.submit(work, each) for each in islice(numbers, 1))
