"""Down the levels: each group's estimate starts from its parent's, and is handed on to its children (Algorithm 2).

At every level, for every group:

    answers    its noisy counts, joined with the sums of its descendants' for the same parts (inverse variances)
    prior      its parent's estimate, public rows of the same group where there are any, public groups that resemble it
    smoothing  the answers' posterior, given how public groups differ (`prade.estimating.levels.smoothing`)
    estimate   MAP from that prior; the next level's prior

All of it is post-processing. A group is its multipliers: no more than a few groups' weights are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.errors import EstimationError
from prade.core.threads import several, single_threaded_blas
from prade.data.prior import Prior
from prade.data.public import Public
from prade.estimating.base import Estimator
from prade.estimating.estimate import Estimate
from prade.estimating.ide import IDE
from prade.estimating.layout import Layout
from prade.estimating.levels.group_prior import GroupPriors
from prade.estimating.levels.resemblance import resemblance
from prade.estimating.levels.smoothing import (
    EXPECTED_BETWEEN,
    EXPECTED_CHANGE,
    Smoother,
    Spread,
    smooth_totals,
    totals_variance,
)
from prade.estimating.map import MAP
from prade.estimating.two_stage import TwoStage
from prade.planning.settings import Settings
from prade.privacy.budget import Law
from prade.queries.parts import Part
from prade.queries.workload import Workload
from prade.release.measurement import Measurement
from prade.release.release import Release

Result = TypeVar("Result")

MOST_SMOOTHED = 1_000  # cells in a block: the time that a covariance takes grows with the cube of their number
PIECE = 200  # cells of a part that has more than those: of thousands of cells, few vary together
LIMIT = 5.0  # of multipliers: an answer makes rows at most e^5 = 148 times as heavy, or as light, as the prior has them
TOLERANCE = 1e-3  # of MAP's objective: far below what the noise decides
MOST_STEPS = 200  # of MAP: more make thousands of cells as they are no better by a hundredth
FEW_STEPS = 25  # up to a tenth worse; smoothed answers are done before that
SMALLEST_SHARE = 0.1  # of the prior's: a posterior mean below it, perhaps negative, would empty a cell for good
BEYOND_NOISE = 2.0
FEWEST_ROWS = 1.0
PAPERS: dict[str, Estimator] = {"ide": IDE(), "two-stage": TwoStage()}


@dataclass(frozen=True)
class Answers:
    """All that is known of a level's groups: counts [groups, cells] of each part, noise variances [groups, parts]."""

    parts: tuple[Part, ...]
    counts: list[Floats]
    variance: Floats
    totals: Floats
    total_variance: Floats

    def noise(self, totals: Floats) -> Floats:
        """Standard deviations of the noise in shares of these numbers of rows: [groups, cells of all parts]."""
        sizes = [part.n_cells for part in self.parts]
        return np.asarray(np.sqrt(np.repeat(self.variance, sizes, axis=1)) / totals[:, None])


@dataclass(frozen=True)
class GroupEstimate:
    """A group's number, its number of rows, its distribution, and the public groups that it was found to resemble.

    `spread` are the numbers a, w and `shared` of its smoothers, [blocks, 3]; None where nothing was fitted.
    `emptied` says which collapsed rows an estimator of the paper's has left without mass; None for none.
    """

    group: int
    total: float
    estimate: Estimate
    alike: Floats | None = None
    spread: Floats | None = None
    emptied: NDArray[np.bool_] | None = None


class Descent:
    """A release's noisy counts turned into estimates, level by level.

    `estimator` takes the noisy counts as they are; None: the one that the settings name. `rough` is for rehearsals: few
    steps of `MAP`, and nothing that only error bars need.
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
    ) -> None:
        self.plan = release.plan
        self.release = release
        self.public = public
        self.settings = settings or Settings()
        self.estimator = estimator
        self.rough = rough
        self.threads = threads
        self.seed = seed
        self._layouts: dict[tuple[Part, ...], Layout] = {}
        self._group_masses: dict[tuple[Part, ...], Floats] = {}
        self._known_spreads: dict[tuple[Part, ...], list[tuple[slice, Spread]]] = {}

    def estimates(self) -> Iterator[GroupEstimate]:
        """The estimates of the last level's groups, in order."""
        return self.map(lambda found: found)

    def map(self, task: Callable[[GroupEstimate], Result]) -> Iterator[Result]:
        """task(estimate) for every group of the last level, in order, several at a time; estimates are let go of."""
        parents = [self.public.prior.weights]
        last = len(self.plan.levels) - 1
        for level in range(last):
            parents = [found.estimate.weights for found in self.level(level, parents, lambda found: found)]
        return self.level(last, parents, task)

    # ---------------------------------------------------------------- one level

    def level(self, level: int, parents: Sequence[Floats], task: Callable[[GroupEstimate], Result]) -> Iterator[Result]:
        """task(estimate) for every group of a level, given the weights that its parents ended with."""
        answers = self.answers(level)
        layout = self.layout(answers.parts)
        priors = GroupPriors(self.public, self.plan, level, self.settings)
        numbers = self._totals(level, answers, priors.sizes())
        totals = np.maximum(numbers, FEWEST_ROWS)  # to divide by

        def weights_of(group: int) -> Floats:
            return priors.weights(group, parents[priors.parent_of[group]])

        noise = answers.noise(totals)
        shares = np.concatenate(answers.counts, axis=1) / totals[:, None]
        own = self.estimator or PAPERS.get(self.settings.estimator)
        smooth = own is None and self.settings.smooth
        smoothers: list[tuple[slice, dict[bool, Smoother]]] = []  # by whether a group's prior is its own public rows
        spreads: dict[bool, list[tuple[float, float, float]]] = {bool(same): [] for same in priors.same}
        if smooth or (own is None and not self.rough):  # answers as they are: how groups vary is for error bars only
            masses = np.stack([layout.masses_of(layout.collapsed(weights_of(g))) for g in range(len(totals))])
            reached = reachable_shares(layout, shares, masses, noise)
            for block, spread in self._spreads(layout, keep=smooth):
                fitted = {}
                for same, numbers_of in spreads.items():
                    mine, expected = priors.same == same, EXPECTED_CHANGE if same else EXPECTED_BETWEEN
                    deviations = reached[mine, block] - masses[mine, block]
                    found = Smoother.fit(spread, deviations, totals[mine], noise[mine, block], expected)
                    numbers_of.append((found.a, found.w, found.shared))
                    fitted[same] = found
                if smooth:
                    smoothers.append((block, fitted))
            shares = reached if smooth else shares

        # Sums and posteriors are near enough to Gaussian. MAP takes Laplace answers as they are for Gaussian ones, too:
        # the mode under their own law meets most of them exactly, noise and all, and is further from the truth.
        law: Law = "gaussian" if own is None or level < len(self.plan.levels) - 1 else self.plan.noise_budget.law
        spread_of_law = np.sqrt(2.0) if law == "laplace" else 1.0

        def work(group: int) -> Result:
            with single_threaded_blas():  # sums in one order, whoever else works
                return task(estimate_of(group))

        def estimate_of(group: int) -> GroupEstimate:
            weights, alike = weights_of(group), None
            share, deviation = shares[group].copy(), noise[group].copy()
            same = bool(priors.same[group])
            for block, fitted in smoothers:
                smoother, prior_share = fitted[same], masses[group, block]
                mean, variance = smoother.posterior(share[block] - prior_share, deviation[block])
                share[block] = np.maximum(prior_share + mean, SMALLEST_SHARE * prior_share)
                deviation[block] = np.sqrt(variance)
            if self.settings.mixture:
                alike = resemblance(self.group_masses(layout), share, deviation)
                weights = priors.with_alike(weights, alike)
            measured = [
                Measurement(part, totals[group] * share[at], totals[group] * deviation[at] / spread_of_law, law)
                for part, at in ((part, layout.part(k)) for k, part in enumerate(answers.parts))
            ]
            n0: float | Literal["auto"] = self.settings.n0 if smooth else "auto"
            steps = FEW_STEPS if self.rough else MOST_STEPS
            estimator = own or MAP(n0=n0, tolerance=TOLERANCE, limit=LIMIT, max_steps=steps)
            prior = Prior(self.public.prior.schema, self.public.prior.codes, weights)
            mine = layout.reweighted(prior)
            estimate = estimator.fit(prior, measured, totals[group], layout=mine)
            spread = np.array(spreads[same]) if spreads[same] else None
            return GroupEstimate(group, float(numbers[group]), estimate, alike, spread, estimate.emptied(mine))

        return several(work, len(totals), self.threads)

    def answers(self, level: int) -> Answers:
        """Noisy counts of the level's groups, those of deeper levels added up to theirs."""
        grouping = self.plan.groupings[level]
        size = len(grouping)
        sums: dict[Part, tuple[Floats, Floats]] = {}
        weighted, precision = np.zeros(size), np.zeros(size)
        counted: Part | None = None
        for question, noisy in zip(self.plan.questions, self.release.noisy, strict=True):
            if question.level < level:
                continue
            above = self.plan.groupings[question.level].above(grouping)
            variance = question.variance * np.bincount(above, minlength=size)
            for part, counts in zip(question.parts, noisy, strict=True):
                added = np.zeros((size, part.n_cells))
                np.add.at(added, above, counts)
                if part.covers:
                    weighted += added.sum(axis=1) / (part.n_cells * variance)
                    precision += 1 / (part.n_cells * variance)
                if question.is_total:
                    counted = part
                else:
                    known, inverse = sums.get(part, (np.zeros((size, part.n_cells)), np.zeros(size)))
                    sums[part] = known + added / variance[:, None], inverse + 1 / variance
        if not precision.all():
            raise EstimationError(
                f"level {self.plan.levels[level].name}: nothing that was asked there or below says how many rows there "
                "are; a plan needs a total, or a part that covers everybody"
            )
        if not sums and counted is not None:  # numbers of rows alone: nothing speaks against the prior
            sums[counted] = weighted[:, None], precision
        return Answers(
            tuple(sums),
            [counts / inverse[:, None] for counts, inverse in sums.values()],
            np.stack([1 / inverse for _, inverse in sums.values()], axis=1),
            weighted / precision,
            1 / precision,
        )

    def _totals(self, level: int, answers: Answers, public: Floats) -> Floats:
        """Numbers of rows: noisy ones, drawn towards last year's where there are any, or else towards each other."""
        expected = self._expected(level, answers, public)
        return np.maximum(smooth_totals(answers.totals, answers.total_variance, expected), 0.0)

    def _expected(self, level: int, answers: Answers, public: Floats) -> Floats:
        size = len(answers.totals)
        known = (public > 0) & (size > 1) & bool(self.plan.levels[level].by)
        expected = np.full(size, answers.totals.mean())
        if known.any():
            expected[known] = public[known] * (answers.totals[known].sum() / public[known].sum())
            expected[~known] = answers.totals[~known].mean() if not known.all() else 0.0
        return expected

    def totals_variance(self, level: int) -> Floats:
        """Variances of the errors of the level's numbers of rows."""
        answers = self.answers(level)
        public = GroupPriors(self.public, self.plan, level, self.settings).sizes()
        return totals_variance(answers.totals, answers.total_variance, self._expected(level, answers, public))

    def layout(self, parts: tuple[Part, ...]) -> Layout:
        """The public rows seen through these parts, made once."""
        if parts not in self._layouts:
            self._layouts[parts] = Layout(self.public.prior, Workload(self.plan.schema, parts))
        return self._layouts[parts]

    def group_masses(self, layout: Layout) -> Floats:
        """Cells of every public group as shares, [cells, public groups], worked out once per workload."""
        parts, public = layout.workload.parts, self.public
        if parts not in self._group_masses:
            columns = [
                layout.masses_of(layout.collapsed(np.where(public.group == number, public.prior.weights, 0.0)))
                for number in range(len(public.groups))
            ]
            self._group_masses[parts] = np.stack(columns, axis=1) / public.group_weights
        return self._group_masses[parts]

    def _spreads(self, layout: Layout, *, keep: bool) -> Iterable[tuple[slice, Spread]]:
        """How the cells of each block of a layout vary in the public table; kept for another time, or one by one."""
        parts = layout.workload.parts
        found = ((at, self.spread(layout, at)) for at in blocks_of(parts))
        if not keep:
            return found
        if parts not in self._known_spreads:
            self._known_spreads[parts] = list(found)
        return self._known_spreads[parts]

    def spread(self, layout: Layout, at: slice, further: Sequence[tuple[NDArray[Any], int]] = ()) -> Spread:
        """How the cells of one block vary together, and those of `further` parts: each row's cell, and their number."""
        cells, sizes = [], []
        prior, public = self.public.prior, self.public
        for k, part in enumerate(layout.workload):
            start, stop = max(at.start, layout.part(k).start), min(at.stop, layout.part(k).stop)
            if start < stop:
                cell = part.cells(prior.schema, prior.codes).astype(np.int64) - (start - layout.part(k).start)
                sizes.append(stop - start)
                cells.append(np.where((cell >= 0) & (cell < sizes[-1]), cell, sizes[-1]))
        every = [*cells, *(cell for cell, _ in further)], [*sizes, *(size for _, size in further)]
        return Spread.of(*every, public.group, len(public.groups), self.seed, prior.weights)


def blocks_of(parts: Sequence[Part]) -> list[slice]:
    """The cells of some parts in blocks small enough to be smoothed at once."""
    return blocks([part.n_cells for part in parts], MOST_SMOOTHED, PIECE)


def reachable_shares(layout: Layout, shares: Floats, masses: Floats, noise: Floats) -> Floats:
    """Answers with the mass of cells that no public row is in handed to the other cells, in the prior's proportions.

    Otherwise a part whose mass is mostly out of reach would pull all its other cells towards nothing. Only what is
    there beyond noise (`BEYOND_NOISE` standard deviations) counts as mass.
    """
    found = shares.copy()
    for k, part in enumerate(layout.workload):
        at = layout.part(k)
        beyond = at.start + np.flatnonzero(~layout.reachable[at])
        if not part.covers or not len(beyond):
            continue
        lost = shares[:, beyond].sum(axis=1)
        lost = np.where(lost > BEYOND_NOISE * np.sqrt((noise[:, beyond] ** 2).sum(axis=1)), lost, 0.0)
        found[:, at] += lost[:, None] * masses[:, at]
        found[:, beyond] = 0.0
    return found


def blocks(sizes: Sequence[int], most: int, piece: int) -> list[slice]:
    """All cells of neighbouring parts, at most so many in a block; a part that has more is cut into pieces.

    >>> blocks([4, 4, 3, 20, 2], most=8, piece=7)
    [slice(0, 8, None), slice(8, 11, None), slice(11, 18, None), slice(18, 25, None), slice(25, 31, None), \
slice(31, 33, None)]
    """
    found: list[slice] = []
    start, room = 0, 0
    for size in sizes:
        stop = start + size
        if size > most:
            found += [slice(at, min(at + piece, stop)) for at in range(start, stop, piece)]
            room = 0
        elif size > room:
            found.append(slice(start, stop))
            room = most - size
        else:
            found[-1] = slice(found[-1].start, stop)
            room -= size
        start = stop
    return found
