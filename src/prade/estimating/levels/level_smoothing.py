"""Smoothing the raw answers of a whole level: one smoother per block of cells and per kind of prior."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.execution import several, single_threaded_blas
from prade.estimating.layout import Layout
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.laplace_posterior import laplace_posteriors, under_laplace_noise
from prade.estimating.levels.smoothing import EXPECTED_BETWEEN, Smoother
from prade.estimating.levels.totals import rate_beyond_noise
from prade.estimating.levels.variation import PublicVariation

SMALLEST_SHARE = 0.1  # of the prior's: a posterior mean below it, perhaps negative, would empty a cell for good
BEYOND_NOISE = 2.0  # standard deviations
FEW_GROUPS = 10  # of a level: so few do not tell how they differ, and columns are also tried apart

TOGETHER = 16  # groups that are smoothed in one task


@dataclass(frozen=True, eq=False)
class LevelSmoothing:
    """What was fitted to a level's raw answers, for groups whose prior is their own public rows and for others apart.

    `smoothers` are those of every block, for both kinds. `one_draw` says which answers are to be smoothed under Laplace
    noise, [groups, cells]; None for none.
    """

    shares: Floats  # raw, of the cells that the prior can reach, [groups, cells]
    prior_shares: Floats
    noise: Floats  # standard deviations of the shares' noise
    recurs: Flags
    smoothers: dict[bool, list[tuple[slice, Smoother]]]
    one_draw: Flags | None = None

    @classmethod
    def fit(
        cls,
        variations: Iterable[tuple[slice, PublicVariation]],
        recurs: Flags,
        shares: Floats,
        prior_shares: Floats,
        rows: Floats,
        noise: Floats,
        independent: Floats,
        families: Ints,
        change: float,
        *,
        keep: bool,
        laplace: bool,
        one_draw: Flags | None,
        threads: int,
    ) -> LevelSmoothing:
        """From raw shares and the prior's [groups, cells], numbers of rows [groups] and standard deviations of noise.

        `independent` [groups, cells] and `families` [cells] are for `Smoother.fit`; `change` is that of the settings.
        `keep` says whether `smoothed` will be called.
        """
        smoothers: dict[bool, list[tuple[slice, Smoother]]] = {bool(kind): [] for kind in recurs}
        for block, variation in variations:
            for kind, mine in ((kind, recurs == kind) for kind in smoothers):
                smoother = Smoother.fit(
                    variation,
                    shares[mine, block] - prior_shares[mine, block],
                    rows[mine],
                    noise[mine, block],
                    change if kind else EXPECTED_BETWEEN,
                    independent[mine, block],
                    laplace=laplace,
                    families=families[block] if mine.sum() <= FEW_GROUPS else None,
                    threads=threads,
                )
                if not keep:  # eigenvectors are large
                    smoother = replace(smoother, directions=np.empty((0, 0)))
                smoothers[kind].append((block, smoother))
        return cls(shares, prior_shares, noise, recurs, smoothers, one_draw)

    def by_group(self) -> tuple[Floats, Floats, Floats | None]:
        """What was fitted for every group: a, w, `shared`, 1 (the ratio of `error_bars`, before it is known), and the
        means of a and w, [groups, blocks, 6]; excess variances, [groups, cells]; and the numbers of columns that differ
        on their own, [groups, 4, cells], None if none does.
        """

        def stacked(of_blocks: Callable[[list[Smoother]], Floats]) -> Floats:
            of_kind = {kind: of_blocks([each for _, each in mine]) for kind, mine in self.smoothers.items()}
            return np.stack([of_kind[bool(kind)] for kind in self.recurs])

        fitted = stacked(lambda mine: np.array([(s.a, s.w, s.shared, 1.0, s.expected_a, s.expected_w) for s in mine]))
        excess = stacked(lambda mine: np.concatenate([s.excess for s in mine]))
        none = np.zeros((4, 1))
        apart = stacked(
            lambda mine: np.concatenate([s.apart if s.apart is not None else none * s.excess for s in mine], axis=1)
        )
        return fitted, excess, apart if apart.any() else None

    def smoothed(self, threads: int = 1) -> tuple[Floats, Floats]:
        """The smoothed answers of all groups, [groups, cells]: shares and their standard deviations.

        Groups are smoothed several at a time. Which ones go together depends on their order alone, and so do the
        results.
        """
        shares, deviations = self.shares.copy(), self.noise.copy()
        for kind, smoothers in self.smoothers.items():
            mine = np.flatnonzero(self.recurs == kind)
            for block, smoother in smoothers:
                root = smoother.square_root()
                batches = [mine[first : first + TOGETHER] for first in range(0, len(mine), TOGETHER)]
                each = several(partial(self._smoothed, block, smoother, root), batches, threads)
                for groups, (share, deviation) in zip(batches, each, strict=True):
                    shares[groups, block], deviations[groups, block] = share, deviation
        return shares, deviations

    def _smoothed(self, block: slice, smoother: Smoother, root: Floats, groups: Ints) -> tuple[Floats, Floats]:
        """The smoothed answers of some groups in one block of cells."""
        prior_share, noise = self.prior_shares[groups, block], self.noise[groups, block]
        away = self.shares[groups, block] - prior_share
        with single_threaded_blas():  # the order of sums must not depend on what else runs
            mean, variance = smoother.posterior(away, noise)
            if self.one_draw is not None and (drawn := self.one_draw[groups, block]).any():
                mean, variance = laplace_posteriors(root, away, noise, drawn, (mean, variance))
        return np.maximum(prior_share + mean, SMALLEST_SHARE * prior_share), np.sqrt(variance)


def reachable_shares(layout: Layout, shares: Floats, prior_shares: Floats, noise: Floats) -> Floats:
    """Shares with the mass of cells that no public row is in handed to the other cells, in the prior's proportions.

    Otherwise a part whose mass is mostly out of reach would pull all its other cells towards nothing. Only what is
    there beyond noise (`BEYOND_NOISE` standard deviations) counts as mass.
    """
    handed = shares.copy()
    for k, part in enumerate(layout.workload):
        cells = layout.part(k)
        beyond = cells.start + np.flatnonzero(~layout.reachable[cells])
        if not part.covers or not len(beyond):
            continue
        lost = shares[:, beyond].sum(axis=1)
        lost = np.where(lost > BEYOND_NOISE * np.sqrt((noise[:, beyond] ** 2).sum(axis=1)), lost, 0.0)
        handed[:, cells] += lost[:, None] * prior_shares[:, cells]
        handed[:, beyond] = 0.0
    return handed


# ---------------------------------------------------------------------- numbers of rows from all answers of a group

# A group's counts are y = n (m + u) + noise, with m the prior's shares, u ~ N(0, S)
# (`prade.estimating.levels.smoothing`) and noise of variances V. A cell that has nine tenths of the rows nearly
# everywhere tells n better than the sum of its whole table, whose noise is that of all its cells. By weighted least
# squares, all cells together give
#
#     x = m' Z y / m' Z m,    variance p = 1 / m' Z m,      Z = (n^2 S + V)^-1
#
# which is as good as m and S are. Two numbers need neither: the sum s of the tables, of variance q, and the noisy
# number of rows t. They check x. Let r be the most precise mean of s and t, and f that of x and t. If m and S are
# right, r - f has the variance Var(r) - Var(f), because the most precise mean is uncorrelated with what it differs by
# from others (Hausman, 1978). What all groups have in common of r - f is an error of m, and is taken out of x: e n
# with one e for all groups. What is left beyond the variance comes from an error of S, of variance c n^2 with one c
# for all groups. x is then moved towards s:
#
#     x + k (s - x),      variance p + k (q - p),         k = c n^2 / (c n^2 + q - p)
#
# c is raised by its standard error and by the variance of e: a few groups tell little about both, and a single group
# keeps to s. So does a group of which s tells more: the S that is fitted does not quite make tables add up. The result
# and t give the number of rows. Where t has one draw of Laplace noise, it is the posterior mean under that law, which
# believes t less the further it is away from what the tables show; otherwise the most precise mean.


ALMOST_NOTHING = 1e-9  # of a precision: what is left of a difference is rounding
LARGEST_RATE = 1e6  # c of numbers of rows that nothing is known about


@dataclass(frozen=True)
class RowsFromTables:
    """What the tables show about the groups' numbers of rows, without t: x moved towards s, and its variance."""

    rows: Floats
    variance: Floats

    @classmethod
    def of(cls, answers: RawAnswers, smoothing: LevelSmoothing, rows: Floats) -> RowsFromTables:
        """From a level's answers and the S that was fitted to them; `rows` is n before."""
        precision, seen = _told_by_cells(smoothing)
        precision = np.maximum(precision / rows**2, 1e-300)
        x = seen / rows / precision
        t, of_t = np.zeros(len(rows)), np.zeros(len(rows))
        if answers.counted is not None and answers.counted_variance is not None:
            t, of_t = answers.counted, 1 / answers.counted_variance
        of_s = 1 / answers.total_variance - of_t
        of_s = np.where(of_s > ALMOST_NOTHING / answers.total_variance, of_s, 0.0)
        s = np.divide(answers.totals / answers.total_variance - t * of_t, of_s, out=x.copy(), where=of_s > 0)
        x, precision = np.where(precision > of_s, x, s), np.maximum(precision, of_s)
        f, weight = (x * precision + t * of_t) / (precision + of_t), precision / (precision + of_t)
        gained = answers.total_variance - 1 / (precision + of_t)
        telling = gained > ALMOST_NOTHING * answers.total_variance
        common, rate = _errors_of_model((answers.totals - f)[telling], gained[telling], (weight * rows)[telling])
        x, beyond = np.where(telling, x + common * rows, x), np.where(telling, rate * rows**2, 0.0)
        # in precisions, because there may be no s: k (q - p) = 1 / (1 / c n^2 + 1 / (q - p))
        p, left = 1 / precision, np.maximum(1 - of_s / precision, 0.0)  # left: (q - p) / q
        back = np.divide(beyond * of_s, beyond * of_s + left, out=np.zeros(len(rows)), where=beyond > 0)
        return cls(
            x + back * (s - x),
            p + np.divide(beyond * left, beyond * of_s + left, out=np.zeros(len(rows)), where=left > 0),
        )

    def joined(self, answers: RawAnswers) -> RawAnswers:
        """The same answers with the numbers of rows that all of them tell."""
        if answers.counted is None or answers.counted_variance is None:
            return replace(answers, totals=self.rows, total_variance=self.variance)
        counted = answers.counted, answers.counted_variance
        totals, variance = joined_with_counted(self.rows, self.variance, *counted, laplace=answers.counted_once)
        return replace(answers, totals=totals, total_variance=variance)


def joined_with_counted(
    rows: Floats, variance: Floats, counted: Floats, counted_variance: Floats, *, laplace: bool
) -> tuple[Floats, Floats]:
    """Numbers of rows and their variances, from what tables show and from noisy numbers of rows.

    `laplace` says whether the latter have one draw of Laplace noise.
    """
    if not laplace:
        both = 1 / variance + 1 / counted_variance
        return (rows / variance + counted / counted_variance) / both, 1 / both
    noise = np.sqrt(counted_variance)
    mean, left, _ = under_laplace_noise(variance / counted_variance, rows / noise, counted / noise)
    return noise * mean, counted_variance * left


def _errors_of_model(away: Floats, variance: Floats, rows: Floats) -> tuple[float, float]:
    """e and c of differences r - f of these variances, where x has this many rows of f; c is raised.

    Without two differences nothing is known, and c is as good as infinite.
    """
    if len(away) < 2:
        return 0.0, LARGEST_RATE
    told = np.sum(rows**2 / variance)
    common = float(np.sum(away * rows / variance) / told)
    rate, error = rate_beyond_noise((away - common * rows) ** 2, variance, rows, len(away) - 1)
    return common, float(rate[0] + error[0] + 1 / told)


def _told_by_cells(smoothing: LevelSmoothing) -> tuple[Floats, Floats]:
    """m' Z m and m' Z y of every group in units of shares: the first times n^2, the second times n."""
    precision, seen = np.zeros(len(smoothing.shares)), np.zeros(len(smoothing.shares))
    for kind, smoothers in smoothing.smoothers.items():
        mine = np.flatnonzero(smoothing.recurs == kind)
        for block, smoother in smoothers:
            prior, shares, noise = (
                each[mine, block] for each in (smoothing.prior_shares, smoothing.shares, smoothing.noise)
            )
            with single_threaded_blas():  # the order of sums must not depend on what else runs
                weighted = smoother.weighted_by_precision(prior, noise)
            precision[mine] += np.sum(weighted * prior, axis=1)
            seen[mine] += np.sum(weighted * shares, axis=1)
    return precision, seen
