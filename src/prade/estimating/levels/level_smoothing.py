"""Smoothing the raw answers of a whole level: one smoother per block of cells and per kind of prior."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.execution import several, single_threaded_blas
from prade.estimating.layout import Layout
from prade.estimating.levels.laplace_posterior import laplace_posteriors
from prade.estimating.levels.smoothing import EXPECTED_BETWEEN, Smoother
from prade.estimating.levels.variation import PublicVariation

SMALLEST_SHARE = 0.1  # of the prior's: a posterior mean below it, perhaps negative, would empty a cell for good
BEYOND_NOISE = 2.0  # standard deviations
FEW_GROUPS = 10  # of a level: so few do not tell how they differ, and columns are also tried apart

TOGETHER = 16  # groups that are smoothed in one task


@dataclass(frozen=True, eq=False)
class LevelSmoothing:
    """What was fitted to a level's raw answers, for groups whose prior is their own public rows and for others apart.

    `fitted` has a, w, `shared`, 1 (the ratio of `prade.estimating.levels.residuals`, before it is known), and the means
    of a and w, for every block, [blocks, 6], `excess` the excess variances of all cells, and `apart` the numbers of
    columns that differ on their own, [4, cells]; `smoothers` are left out where the fit only serves error bars.
    `one_draw` says which answers are to be smoothed under Laplace noise, [groups, cells]; None for none.
    """

    shares: Floats  # raw, of the cells that the prior can reach, [groups, cells]
    prior_shares: Floats
    noise: Floats  # standard deviations of the shares' noise
    recurs: Flags
    fitted: dict[bool, Floats]
    excess: dict[bool, Floats]
    apart: dict[bool, Floats]
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
        laplace: bool = False,
        one_draw: Flags | None = None,
        threads: int = 1,
    ) -> LevelSmoothing:
        """From raw shares and the prior's [groups, cells], numbers of rows [groups] and standard deviations of noise.

        `independent` [groups, cells] and `families` [cells] are for `Smoother.fit`; `change` is that of the
        settings. `keep` says whether `smoothed` will be called.
        """
        kinds = {bool(kind) for kind in recurs}
        numbers: dict[bool, list[tuple[float, ...]]] = {kind: [] for kind in kinds}
        excess: dict[bool, list[Floats]] = {kind: [] for kind in kinds}
        apart: dict[bool, list[Floats]] = {kind: [] for kind in kinds}
        smoothers: dict[bool, list[tuple[slice, Smoother]]] = {kind: [] for kind in kinds}
        for block, variation in variations:
            for kind in kinds:
                mine, expected = recurs == kind, change if kind else EXPECTED_BETWEEN
                deviations = shares[mine, block] - prior_shares[mine, block]
                smoother = Smoother.fit(
                    variation,
                    deviations,
                    rows[mine],
                    noise[mine, block],
                    expected,
                    independent[mine, block],
                    laplace=laplace,
                    families=families[block] if mine.sum() <= FEW_GROUPS else None,
                    threads=threads,
                )
                numbers[kind].append(
                    (smoother.a, smoother.w, smoother.shared, 1.0, smoother.expected_a, smoother.expected_w)
                )
                excess[kind].append(smoother.excess)
                apart[kind].append(np.zeros((4, len(smoother.excess))) if smoother.apart is None else smoother.apart)
                if keep:
                    smoothers[kind].append((block, smoother))
        fitted = {kind: np.array(each) for kind, each in numbers.items()}
        every = {kind: np.concatenate(each) for kind, each in excess.items()}
        alone = {kind: np.concatenate(each, axis=1) for kind, each in apart.items()}
        return cls(shares, prior_shares, noise, recurs, fitted, every, alone, smoothers, one_draw)

    def fitted_for(self, group: int) -> tuple[Floats, Floats, Floats | None]:
        """`fitted`, `excess` and `apart` of a group; None where no column differs on its own."""
        kind = bool(self.recurs[group])
        differing = any(each.any() for each in self.apart.values())
        return self.fitted[kind], self.excess[kind], self.apart[kind] if differing else None

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
                work = partial(self._smoothed, block, smoother, root)
                found = several(work, batches, threads)
                for groups, (share, deviation) in zip(batches, found, strict=True):
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
