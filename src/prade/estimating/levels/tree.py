"""What all answers tell about all groups, level by level from everybody down: numbers of rows, and shares of cells.

Everybody is the root, the levels of the plan follow. At each level, for every group:

    raw answers   its noisy counts, joined with its descendants' (`prade.estimating.levels.answers`)
    before        its parent's posterior mean, and what its own public rows differ by from those of its parent
    scales        how groups differ, fitted to all of them together (`prade.estimating.levels.random_effects`)
    posterior     shares and number of rows (`prade.estimating.levels.posterior`)

A parent's answers are the sums of its groups', so it is known before them; its groups are then made to add up to it.
All of it is post-processing of noisy answers and public data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.execution import several, single_threaded_blas
from prade.estimating.layout import Layout
from prade.estimating.levels.answers import RawAnswers, raw_answers
from prade.estimating.levels.foundation import Foundation, GroupPriors
from prade.estimating.levels.posterior import Observed, Posterior, posterior
from prade.estimating.levels.public_cells import PublicCells
from prade.estimating.levels.random_effects import CellModel, Deviations, Scales, columns_of, fitted_scales
from prade.estimating.levels.totals import (
    FEWEST_ROWS,
    adding_up,
    benchmarked,
    estimated_totals,
    expected_rows,
    parts_of_parents,
    with_published,
)
from prade.release.release import Release

# a and b before any answer. They are 1 if private groups differ as public ones do, and less for coarse groups such as
# states. Where the answers decide, the fit gave 0.1 to 1.3 for a and 0 to 0.1 for b (ACS 2024, Illinois and Ohio), and
# the errors are the same with any start from 0.1 to 0.7. Where a group's prior is its own public rows, it is `change`.
EXPECTED = 0.3
SMALLEST_SHARE = 0.1  # of the prior's: a posterior mean below it, perhaps negative, would empty a cell for good
BEYOND_NOISE = 2.0  # standard deviations
ROUNDS = 5  # of adding up
TOGETHER = 8  # groups in one task
TINY = 1e-300
UNKNOWN = 1.0  # variance of a share that nothing is known about, where answers stay raw


@dataclass(frozen=True, eq=False)
class Kind:
    """The model of groups whose prior is their own public rows, or of the others: scales and `told` for each block.

    `told` is the mean precision of answers under their own law, as a multiple of that of Gaussian noise.
    """

    scales: tuple[Scales, ...]
    told: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LevelPosterior:
    """What is known of the groups of a level: numbers of rows, and shares of all cells [groups, cells].

    `kinds` has what was fitted, by whether groups recur, and `scale` the groups' own scales.
    """

    totals: Floats
    rows_variance: Floats
    shares: Floats
    variance: Floats
    scale: Floats
    kinds: dict[bool, Kind]

    @property
    def rows(self) -> Floats:
        """The numbers of rows, to divide by."""
        return np.maximum(self.totals, FEWEST_ROWS)


class Tree:
    """A release's answers turned into posteriors, from everybody to the last level.

    Without `smooth`, answers stay raw where there are any; then scales are fitted only if error bars need them (`fit`).
    """

    def __init__(
        self, release: Release, cells: PublicCells, foundation: Foundation, *, smooth: bool, fit: bool, threads: int = 1
    ) -> None:
        self.release, self.cells, self.foundation = release, cells, foundation
        self.smooth, self.fit, self.threads = smooth, fit, threads
        self.layout: Layout = foundation.layout
        self.parts = self.layout.workload.parts
        self.columns = columns_of(self.parts)

    @cached_property
    def levels(self) -> list[LevelPosterior]:
        """The posteriors of everybody and of the groups of all levels."""
        found: list[LevelPosterior] = []
        with single_threaded_blas():  # the order of sums must not depend on what else runs
            for number in range(len(self.foundation.groupings)):
                found.append(self._level(number, found[-1] if found else None))
        return found

    def _level(self, number: int, parent: LevelPosterior | None) -> LevelPosterior:
        level = _Level(self, number, parent)
        kinds = {bool(kind): level.fitted(level.priors.recurs == kind) for kind in np.unique(level.priors.recurs)}
        return level.posterior(kinds) if self.smooth else level.raw_posterior(kinds)

    def models(self) -> Iterator[tuple[slice, CellModel]]:
        """How the cells of each block vary."""
        for block, variation in self.cells.variations(self.layout, keep=self.smooth):
            yield block, CellModel.of(variation, self.columns[block])


class _Level:
    """The answers of one level beside what is expected of them."""

    def __init__(self, tree: Tree, number: int, parent: LevelPosterior | None) -> None:
        self.tree, self.number, self.parent = tree, number, parent
        foundation, plan = tree.foundation, tree.release.plan
        self.priors: GroupPriors = foundation.priors(number)
        self.parent_of: Ints = foundation.parents(number)
        self.published = number - foundation.above_plan, foundation.groupings[number], plan
        self.answers: RawAnswers = raw_answers(tree.release, *foundation.asked(number))
        totals, unsure = estimated_totals(self.answers, self.priors.sizes())
        self.rows = np.maximum(with_published(totals, *self.published), FEWEST_ROWS)  # to divide by
        self.first_variance = unsure / self.rows**2
        self.base = self.priors.masses(foundation.support, tree.layout)
        self.part = parts_of_parents(self.rows, self.parent_of, int(self.parent_of.max()) + 1)
        self.seen, self.raw, self.noise, self.drawn = self._placed()
        self.before = self._before()
        self.answered, self.raw = self.raw, reachable_shares(tree.layout, self.raw, self.base, self.noise, self.seen)
        expected, variance = expected_rows(self.answers, self.priors.sizes())
        known = any(level >= self.published[0] for level in plan.published)
        self.expected = np.ones(len(self.rows)) if known else expected / self.rows
        self.rows_variance = np.zeros(len(self.rows)) if known else variance / self.rows**2

    def _placed(self) -> tuple[Flags, Floats, Floats, Flags]:
        """For the cells of all parts: which are seen, raw shares, standard deviations of noise, which is one draw."""
        layout, answers = self.tree.layout, self.answers
        seen, variances = answers.variances_of(self.tree.parts)
        raw, drawn = np.zeros_like(variances), np.zeros(variances.shape, np.bool_)
        for k, part in enumerate(self.tree.parts):
            if part in answers.parts:
                place = answers.parts.index(part)
                raw[:, layout.part(k)] = answers.counts[place] / self.rows[:, None]
                if answers.one_draw is not None:
                    drawn[:, layout.part(k)] = answers.one_draw[:, [place]]
        return seen, raw, np.sqrt(variances) / self.rows[:, None], drawn

    def _before(self) -> Floats:
        """What is expected of the groups' shares before their own answers."""
        if self.parent is None:
            return self.base
        of_parents = np.zeros_like(self.parent.shares)
        np.add.at(of_parents, self.parent_of, self.part[:, None] * self.base)
        moved = self.base + (self.parent.shares - of_parents)[self.parent_of]
        return np.maximum(moved, SMALLEST_SHARE * self.base)

    def fitted(self, mine: Flags) -> Kind:
        """The scales of the groups of one kind, without `told`."""
        tree, away, weight = self.tree, self.raw - self.before, np.ones(len(self.rows))
        if self.parent is not None:
            mean, weight = np.zeros_like(self.parent.shares), 1 - self.part
            np.add.at(mean, self.parent_of, self.part[:, None] * away)
            away = away - mean[self.parent_of]
        recurs = bool(self.priors.recurs[mine][0])
        scales = []
        change = tree.foundation.settings.change
        for block, model in tree.models() if tree.fit else ():
            seen = np.flatnonzero(self.seen[block])
            start = Scales.before(change if recurs else EXPECTED, model.columns.shape[1])
            at = block.start + seen
            deviations = Deviations(
                away[np.ix_(mine, at)], self.noise[np.ix_(mine, at)] ** 2, self.rates[mine], weight[mine],
                self.before[np.ix_(mine, at)], self.first_variance[mine],
            )  # fmt: skip
            scales.append(fitted_scales(model.of_cells(seen), deviations, start))
        return Kind(tuple(scales), (1.0,) * len(scales))

    @cached_property
    def rates(self) -> Floats:
        """r_g: what a group's shares vary by for being those of few rows, and its prior's, as multiples of C."""
        of_prior = self.priors.sampling(top=self.parent is None)
        return np.asarray(1 / self.rows + of_prior)

    def posterior(self, kinds: dict[bool, Kind]) -> LevelPosterior:
        """What all answers tell about the groups, which add up to their parents."""
        shares, variance = self.before.copy(), np.zeros_like(self.before)
        precision, moved, logarithms = np.zeros((3, len(self.rows)))  # of numbers of rows, beyond what is expected
        found: dict[bool, Kind] = {}
        for recurs, kind in kinds.items():
            mine, told = np.flatnonzero(self.priors.recurs == recurs), []
            for scales, (block, model) in zip(kind.scales, self.tree.models(), strict=True):
                batches = [mine[first : first + TOGETHER] for first in range(0, len(mine), TOGETHER)]
                covariances = model.covariance(scales, 0.0), model.widths(scales) * model.within
                each = several(partial(self._of_groups, block, *covariances), batches, self.tree.threads)
                of_groups = [one for batch in each for one in batch]
                shares[mine, block] += np.stack([one.mean for one in of_groups])
                variance[mine, block] = np.stack([one.variance for one in of_groups])
                logarithms[mine] += np.log([one.scale for one in of_groups]) * len(model.within) / shares.shape[1]
                # what each block tells about the number of rows beyond what was expected
                known = 1 / np.maximum([one.rows_variance for one in of_groups], TINY)
                precision[mine] += known - 1 / np.maximum(self.rows_variance[mine], TINY)
                moved[mine] += known * [one.rows for one in of_groups]
                told.append(float(np.mean([one.told for one in of_groups])))
            found[recurs] = replace(kind, told=tuple(told))
        left = np.where(self.rows_variance > 0, 1 / (precision + 1 / np.maximum(self.rows_variance, TINY)), 0.0)
        totals = self.rows * np.maximum(self.expected + moved * left, 0.0)
        return self._adding_up(shares, variance, totals, left * self.rows**2, np.exp(logarithms), found)

    def _of_groups(self, block: slice, differing: Floats, per_row: Floats, groups: Ints) -> list[Posterior]:
        with single_threaded_blas():
            return [self._of_group(block, differing, per_row, int(group)) for group in groups]

    def _of_group(self, block: slice, differing: Floats, per_row: Floats, group: int) -> Posterior:
        seen, before = self.seen[block], self.before[group, block]
        expected, away = self.expected[group], self.raw[group, block] - self.expected[group] * before
        answers = Observed(away[seen], self.noise[group, block][seen] ** 2, self.drawn[group, block][seen])
        counted, asked = None, self.answers
        # it is one answer, whatever the number of blocks
        if asked.counted is not None and asked.counted_variance is not None and not block.start:
            off, rows = asked.counted[group] / self.rows[group] - expected, self.rows[group]
            noise = asked.counted_variance[group] / rows**2
            counted = Observed(np.array([off]), np.array([noise]), np.array([asked.counted_once]))
        of_rows = float(self.rows_variance[group])
        return posterior(differing, self.rates[group] * per_row, seen, before, answers, of_rows, counted)

    def raw_posterior(self, kinds: dict[bool, Kind]) -> LevelPosterior:
        """Raw answers where there are any, as if nothing else were known; the others are the parent's."""
        shares, variance = self.before.copy(), np.full_like(self.before, UNKNOWN)
        shares[:, self.seen], variance[:, self.seen] = self.answered[:, self.seen], self.noise[:, self.seen] ** 2
        totals = estimated_totals(self.answers, self.priors.sizes())
        return self._adding_up(shares, variance, *totals, np.ones(len(self.rows)), kinds)

    def _adding_up(
        self,
        shares: Floats,
        variance: Floats,
        totals: Floats,
        rows_variance: Floats,
        scale: Floats,
        kinds: dict[bool, Kind],
    ) -> LevelPosterior:
        """Whole numbers of rows that add up to the parents' and meet what is published, and shares that add up."""
        totals = with_published(totals, *self.published)
        totals = (
            np.rint(totals)
            if self.parent is None
            else adding_up(totals, rows_variance, self.parent_of, self.parent.totals)
        )
        if self.tree.smooth:
            least, rows = SMALLEST_SHARE * self.before, np.maximum(totals, FEWEST_ROWS)
            shares = np.maximum(shares, least)
            for _ in range(ROUNDS if self.parent is not None else 0):
                assert self.parent is not None
                shares = benchmarked(shares, variance, rows, rows_variance, self.parent_of, self.parent.shares)
                shares = np.maximum(shares, least)
        return LevelPosterior(totals, rows_variance, shares, variance, scale, kinds)


def reachable_shares(layout: Layout, shares: Floats, base: Floats, noise: Floats, seen: Flags) -> Floats:
    """Shares with the mass of cells that no public row is in handed to the other cells, in the prior's proportions.

    Otherwise a part whose mass is mostly out of reach would pull all its other cells towards nothing. Only what is
    there beyond noise (`BEYOND_NOISE` standard deviations) counts as mass.
    """
    handed = shares.copy()
    for k, part in enumerate(layout.workload):
        cells = layout.part(k)
        beyond = cells.start + np.flatnonzero(~layout.reachable[cells])
        if not part.covers or not len(beyond) or not seen[cells].all():
            continue
        lost = shares[:, beyond].sum(axis=1)
        lost = np.where(lost > BEYOND_NOISE * np.sqrt((noise[:, beyond] ** 2).sum(axis=1)), lost, 0.0)
        handed[:, cells] += lost[:, None] * base[:, cells]
        handed[:, beyond] = 0.0
    return handed
