"""Standard errors of answers: the variance of a group's error under the model of its posterior.

Let u be the difference between the true shares of group g, in the private table itself, and what was expected of them
(`prade.estimating.levels.random_effects`):

    u ~ N(0, S)                             over the measured cells W and the cells Q that are asked for
    y_W = u_W + noise,  variances V         what was measured
    x_W = S_WW (S_WW + V)^-1 y_W            the posterior mean, with variances P
    x_Q = C_QW (C_WW + n0 P)^-1 x_W         what the least change of the public rows (MAP) makes of it for Q

The last line is MAP with the curvature of KL in place of KL. So the answer to Q is G y_W for a matrix G: the posterior
mean where Q was measured, worse elsewhere. The error of this answer has the variance

    R + G V G',      R = S_QQ - G S_WQ - S_QW G' + G S_WW G'

R is what remains of the prior's error, the other term is the noise. S is known for measured cells. Other cells follow
these by their regression within groups, K = C_QW C_WW^-1, and what it leaves of B and C has the typical scale:

    S_QW = K S_WW + a d (B_QW - K B_WW),    d: geometric mean of D
    S_QQ = K S_WW K' + 2 a d K (B_WQ - B_WW K') + d (a + b) (B_QQ - 2 K B_WQ + K B_WW K')
           + d (k + r_g) (C_QQ - K C_WQ)

Nothing is measured again. A cell that no public row is in has an error too: half a public row may well be missing there
(Jeffreys, 1946).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.execution import single_threaded_blas
from prade.estimating.levels.answers import raw_answers
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.random_effects import CellModel, Scales, columns_of
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.estimating.levels.tree import EXPECTED
from prade.estimating.levels.variation import FurtherVariation, VariationOfCells, blocks_of, weight_by_group

AT_ONCE = 200  # cells of a question that are worked on together
NOISES = 7  # levels of noise for which variances are worked out; groups in between are interpolated
SMALLEST = 1e-12  # variance of a share, so that logarithms exist
HIDDEN = 0.5  # public rows that a cell without any may be thought to have
MOST_KEPT = 2**28  # bytes of matrices that are kept for the next question


@dataclass(frozen=True)
class Errors:
    """Of the shares of cells in the groups of a level, [groups, cells].

    variance: of all the error. left: R, what is left of the prior's. prior: S_QQ, the prior's before any answer.
    """

    variance: Floats
    left: Floats
    prior: Floats


def errors(estimates: Distributions, level: int, asked: Sequence[Cells], combined: Floats | None = None) -> Errors:
    """The errors of a level's groups in further cells: for each part, every public row's cell and the number of cells.

    A row in no cell of a part has that number. With `combined`, [combinations, cells], the errors are those of linear
    combinations of the cells.
    """
    pieces = []
    blocks = [_block(estimates, level, number) for number in range(len(blocks_of(estimates.foundation.parts)))]
    for batch in batches(asked) if combined is None else [asked]:
        question = _Question(estimates, batch, combined)
        each = np.stack([block.errors(question) for block in blocks])
        # the cells that answer a question are mostly in one block: the one that leaves the least variance
        best = np.argmin(each[:, 0], axis=0)[None, None]
        pieces.append(np.take_along_axis(each, best, axis=0)[0])
    return Errors(*np.concatenate(pieces, axis=2))


def batches(asked: Sequence[Cells]) -> Iterator[list[Cells]]:
    """The parts in batches of at most AT_ONCE cells; a part that has more is cut."""
    batch: list[Cells] = []
    for cells, size in asked:
        for first in range(0, size, AT_ONCE):
            number = min(AT_ONCE, size - first)
            mine = cells.astype(np.int64) - first
            if sum(size for _, size in batch) + number > AT_ONCE:
                yield batch
                batch = []
            batch.append((np.where((mine >= 0) & (mine < number), mine, number), number))
    yield batch


def _block(estimates: Distributions, level: int, number: int) -> _Block:
    """What every question needs of a block: kept, unless the matrices of all blocks are large."""
    kept: dict[tuple[int, int], _Block] = estimates.kept_errors
    if (level, number) not in kept:
        made = _Block(estimates, level, number)
        sizes = [at.stop - at.start for at in blocks_of(estimates.foundation.parts)]
        if sum(8 * NOISES * size**2 for size in sizes) * len(estimates.levels) > MOST_KEPT:
            return made
        kept[level, number] = made
    return kept[level, number]


class _Question:
    """Some cells, or linear combinations of the cells of one part, with what all blocks need to know about them.

    `one_row` is the diagonal of C for them, from all public rows; `unseen` says which cells no public row is in (no
    combination of cells counts as one).
    """

    def __init__(self, estimates: Distributions, batch: Sequence[Cells], combined: Floats | None) -> None:
        self.cells, self.sizes = [cells for cells, _ in batch], [size for _, size in batch]
        self.combined, public = combined, estimates.public
        shape = public.group, len(public.groups)
        mass = np.concatenate([weight_by_group(*shape, *each, public.prior.weights) for each in batch], axis=1)
        shares = mass / public.group_weights[:, None]
        if combined is None:
            variances, self.unseen = shares - shares**2, (mass == 0).all(axis=0)
        else:
            variances = shares @ combined.T**2 - (shares @ combined.T) ** 2
            self.unseen = np.zeros(len(combined), np.bool_)
        self.one_row = np.asarray(public.group_weights @ variances / public.group_weights.sum())


class _Block:
    """The errors of a level's groups if only the cells of one block had been measured."""

    def __init__(self, estimates: Distributions, level: int, number: int) -> None:
        kept, foundation, settings = estimates.levels[level], estimates.foundation, estimates.settings
        parts, priors = foundation.parts, foundation.priors(level)
        at, columns = blocks_of(parts)[number], columns_of(parts)
        self.recurs, self.rows = priors.recurs, np.maximum(kept.totals, FEWEST_ROWS)
        rates = 1 / self.rows + priors.sampling(top=level == 0)
        answers = raw_answers(estimates.release, *foundation.asked(level))
        seen, variance = answers.variances_of(parts)
        seen, noise = seen[at], np.sqrt(variance[:, at]) / self.rows[:, None]
        self.variation: VariationOfCells = estimates.cells.variation(foundation.layout, at)
        model = CellModel.of(self.variation.variation, columns[at])
        with single_threaded_blas():
            inverse = np.linalg.inv(model.within + np.diag(1e-6 * np.diag(model.within) + SMALLEST))
        self.inverse = np.asarray(inverse, np.float64)
        # the paper's estimators meet raw answers, as if the prior were worth nothing
        n0 = 0.0 if settings.estimator != "map" else settings.n0 if settings.smooth else None
        self.kinds: dict[bool, _Kind] = {}
        for kind in {bool(each) for each in self.recurs}:
            mine, told = np.flatnonzero(self.recurs == kind), 1.0
            scales = Scales.before(settings.change if kind else EXPECTED, columns.shape[1])
            if kind in kept.kinds and kept.kinds[kind].scales:
                scales, told = kept.kinds[kind].scales[number], kept.kinds[kind].told[number]
            self.kinds[kind] = _Kind(model, scales, told, rates[mine], noise[mine], kept.scale[mine], seen, n0)

    def errors(self, question: _Question) -> Floats:
        """The errors in the cells of a question, as in `Errors`: [3, groups, cells]."""
        further = self.variation.further(question.cells, question.sizes, question.combined)
        one_row, unseen, combined = question.one_row, question.unseen, question.combined
        # the sample that C is made of missed a few rows
        one_row = np.where(further.within_variance < one_row / 2, one_row, further.within_variance)
        one_row[unseen] = HIDDEN / self.variation.rows
        known = self.variation.variation
        spread = float(np.trace(known.between)) / max(float(np.trace(known.within)), 1e-300)
        each = np.zeros((3, len(self.recurs), len(one_row)))
        with single_threaded_blas():
            moved = further.within @ self.inverse
            # as far as a cell is made of measured ones, B_QQ is cut as theirs is
            made_of = np.einsum("ij,ij->i", moved, further.within) / np.maximum(further.within_variance, SMALLEST)
            between = np.maximum(further.between_variance, np.clip(made_of, 0.0, 1.0) * further.explained)
            between[unseen] = spread * one_row[unseen]
            for kind, model in self.kinds.items():
                each[:, self.recurs == kind] = model.errors(further, moved, one_row, between)
        # a row may be in no cell
        ranges = 1.0 if combined is None else np.ptp(np.pad(combined, ((0, 0), (0, 1))), axis=1)
        most = 0.25 * np.asarray(ranges) ** 2  # no number between two bounds varies more
        each[:2] = np.minimum(each[:2], np.maximum(most, SMALLEST))
        return each


class _Kind:
    """The model of groups that start from public rows of their own, or of the others.

    `noise` are standard deviations of measured shares, which are assumed to differ from group to group by a factor
    only. `own` are the groups' own scales s: an error with s F, V and r_g C is s times that with F, V / s and r_g C /
    s. Where answers stay raw, n0 is 0 for the paper's estimators, and None for MAP, which chooses its own: about the
    one at which C / n0 is as large as S.
    """

    def __init__(
        self,
        model: CellModel,
        scales: Scales,
        told: float,
        rates: Floats,
        noise: Floats,
        own: Floats,
        seen: Flags,
        n0: float | None,
    ) -> None:
        self.model, self.scales, self.rates, self.seen = model, scales, rates, seen
        self.per_row = model.widths(scales) * model.within
        self.fixed = model.covariance(scales, 0.0)
        self.root = np.exp(np.mean(np.log(noise[:, seen]), axis=0))
        self.factor = np.mean((noise[:, seen] / self.root) ** 2, axis=1) if seen.any() else np.ones(len(rates))
        self.factor, self.own = self.factor / own, own
        few = len(set(self.factor.tolist())) <= NOISES
        ends = min(self.factor), max(self.factor)
        self.grid = np.unique(self.factor) if few else np.geomspace(*ends, NOISES)
        typical = float(np.exp(np.mean(np.log(rates / own))))
        with single_threaded_blas():
            self.gains = self._gains(self.fixed + typical * self.per_row, told, n0)

    def _gains(self, s: Floats, told: float, n0: float | None) -> list[Floats]:
        """(C_WW + n0 P)^-1 S_WW (S_WW + V)^-1 for noise variances V = factor * root^2, one after the other."""
        seen, within, gains = self.seen, self.model.within, []
        for factor in self.grid:
            mean = np.zeros_like(s)
            variance = factor * self.root**2
            if not n0:
                worth = 0.0 if n0 == 0 else float(np.trace(within) / max(np.trace(s), 1e-300))
                mean[np.ix_(seen, seen)] = np.eye(int(seen.sum()))
                left = np.ones(len(s))
                left[seen] = variance
            else:
                worth = n0
                known = s[np.ix_(seen, seen)] + np.diag(variance / told)
                mean[:, seen] = np.linalg.solve(known, s[:, seen].T).T
                left = np.maximum(np.diag(s) - np.einsum("ij,ij->i", mean[:, seen], s[:, seen]), 0.0)
            changed = within + np.diag(np.maximum(worth * left, SMALLEST))
            gains.append(np.asarray(np.linalg.solve(changed, mean)[:, seen], np.float64))
        return gains

    def errors(self, further: FurtherVariation, moved: Floats, one_row: Floats, between: Floats) -> Floats:
        """Variance, R, S_QQ: [3, groups, cells]; `one_row` and `between` are the diagonals of C_QQ and B_QQ."""
        scales, model, d = self.scales, self.model, self.scales.typical
        beside = further.between - moved @ model.between
        rest = np.maximum(between - np.einsum("ij,ij->i", moved, further.between + beside), 0.0)
        of_row = np.maximum(one_row - np.einsum("ij,ij->i", moved, further.within), 0.0)
        mixed = moved @ self.fixed + scales.a * d * beside
        own = np.einsum("ij,ij->i", moved, moved @ self.fixed + 2 * scales.a * d * beside)
        own += d * ((scales.a + scales.b) * rest + scales.k * of_row)
        by_row = moved @ self.per_row
        alone = np.einsum("ij,ij->i", moved, by_row) + d * of_row
        parts = np.stack(
            [
                self._split(further.within @ gain, factor * self.root**2, (mixed, own), (by_row, alone))
                for factor, gain in zip(self.grid, self.gains, strict=True)
            ]
        )
        fixed_left, row_left, noisy = self._of_groups(parts).transpose(1, 0, 2)
        rates, scale = self.rates[:, None], self.own[:, None]
        left = np.maximum(scale * fixed_left + rates * row_left, 0.0)
        prior = np.maximum(scale * own + rates * alone, SMALLEST)
        return np.stack([np.maximum(left + scale * noisy, SMALLEST), left, prior])

    def _of_groups(self, parts: Floats) -> Floats:
        """What was worked out for each factor of the grid, [factors, ...], interpolated for each group's own factor."""
        if len(self.grid) == 1:
            return np.repeat(parts, len(self.factor), axis=0)
        grid, factor = np.log(self.grid), np.log(self.factor)
        above = np.clip(np.searchsorted(grid, factor), 1, len(grid) - 1)
        part = np.clip((factor - grid[above - 1]) / (grid[above] - grid[above - 1]), 0.0, 1.0)[:, None, None]
        return np.asarray((1 - part) * parts[above - 1] + part * parts[above])

    def _split(self, g: Floats, v: Floats, *covariances: tuple[Floats, Floats]) -> Floats:
        """The diagonals of R without r_g and of what r_g multiplies, and of G V G': [3, cells asked for]."""
        seen = self.seen
        rests = [
            alone - 2 * np.sum(g * mixed[:, seen], axis=1) + np.sum((g @ s[np.ix_(seen, seen)]) * g, axis=1)
            for s, (mixed, alone) in zip((self.fixed, self.per_row), covariances, strict=True)
        ]
        return np.stack([*rests, g**2 @ v])
