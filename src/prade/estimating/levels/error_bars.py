"""Standard errors of answers: the variance of a group's error, in the model that its answers were smoothed with.

Let u be the difference between the true shares of group g, in the private table itself, and its prior's
(`prade.estimating.levels.smoothing`):

    u ~ N(0, S),  S = a B + E + (w / n) C   over the measured cells W and the cells Q that are asked for
    y_W = u_W + noise,  variances V         what was measured
    x_W = S_WW (S_WW + V)^-1 y_W            smoothed, with variances D
    x_Q = C_QW (C_WW + n0 D)^-1 x_W         what the least change of the prior's rows (MAP) makes of it for Q

The last line is MAP with the curvature of KL in place of KL. So the answer to Q is G y_W for a matrix G: close to the
posterior mean where Q was measured, worse elsewhere. The error of this answer has the variance

    R + G V G',      R = S_QQ - G S_WQ - S_QW G' + G S_WW G'

R is what remains of the prior's error, the other term is the noise. B and C come from public rows, a and w were fitted
to all groups' noisy answers, and so was the excess E of single cells, which moves the rows of its cell alike: other
cells follow by their regression on the measured ones, C_QW C_WW^-1. Nothing is measured again.

Where columns also differ on their own, S has a part T for that, which is known for measured cells alone; other cells
follow it by the same regression. What the regression does not explain of them differs on its own, too: by as much as
columns do on average, if it is a column that was not measured, and by what B leaves open, if it is an interaction.

G is made with the most likely a and w, as the smoothed answers were. The variance is linear in both, so that its mean
over all that they may be, as far as the answers leave that open, is the one at their means: S in it has these instead.

A cell that no public row is in has an error too: half a public row may well be missing there (Jeffreys, 1946).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints
from prade.core.execution import single_threaded_blas
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.smoothing import EXPECTED_BETWEEN, EXPECTED_WITHIN, differing_apart, typical_rows
from prade.estimating.levels.totals import FEWEST_ROWS, added_up
from prade.estimating.levels.variation import (
    FurtherVariation,
    VariationOfCells,
    blocks_of,
    families_of,
    weight_by_group,
)

if TYPE_CHECKING:
    from prade.estimating.levels.answers import RawAnswers
    from prade.queries.parts import Part

AT_ONCE = 200  # cells of a question that are worked on together
NOISES = 5  # levels of noise for which variances are worked out; groups in between are interpolated
EXPECTED_SHARED = 0.3  # where nothing was fitted: about what was fitted between years of invented tables
SMALLEST = 1e-12  # variance of a share, so that logarithms exist
HIDDEN = 0.5  # public rows that a cell without any may be thought to have
MOST_KEPT = 2**28  # bytes of matrices that are kept for the next question


@dataclass(frozen=True)
class Errors:
    """Of the shares of cells in the groups of a level, [groups, cells].

    variance: of all the error. left: R, what is left of the prior's. prior: S_QQ, the prior's before any answer.
    shared: the share of the prior's error that groups have in common.
    """

    variance: Floats
    left: Floats
    prior: Floats
    shared: Floats


def errors(estimates: Distributions, level: int, asked: Sequence[Cells], combined: Floats | None = None) -> Errors:
    """The errors of a level's groups in further cells: for each part, every public row's cell and the number of cells.

    A row in no cell of a part has that number. With `combined`, [combinations, cells], the errors are those of linear
    combinations of the cells.
    """
    pieces = []
    blocks = [_block(estimates, level, number) for number in range(len(blocks_of(estimates.levels[level].parts)))]
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
        sizes = [at.stop - at.start for each in estimates.levels for at in blocks_of(each.parts)]
        if sum(8 * NOISES * size**2 for size in sizes) > MOST_KEPT:
            return made
        kept[level, number] = made
    return kept[level, number]


class _Question:
    """Some cells, or linear combinations of the cells of one part, with what all blocks need to know about them.

    `one_row` is the diagonal of C for them, from all public rows; `unseen` says which cells no public row is in (no
    combination of cells counts as one), `interactions` how much of a cell is one.
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
        self.interactions = share_of_interactions(estimates, self.cells, self.sizes, combined)


class _Block:
    """The errors of a level's groups if only the cells of one block had been measured."""

    def __init__(self, estimates: Distributions, level: int, number: int) -> None:
        kept, settings = estimates.levels[level], estimates.settings
        at = blocks_of(kept.parts)[number]
        self.recurs = estimates.priors[level].recurs
        self.rows = np.maximum(kept.totals, FEWEST_ROWS)
        noise = estimates.answers[level].noise(self.rows)[:, at]
        self.variation: VariationOfCells = estimates.cells.variation(estimates.layouts[level], at)
        measured = self.variation.variation.within
        with single_threaded_blas():
            inverse = np.linalg.inv(measured + np.diag(1e-6 * np.diag(measured) + SMALLEST))
        self.inverse = np.asarray(inverse, np.float64)
        # the paper's estimators meet raw answers, as if the prior were worth nothing
        n0 = 0.0 if settings.estimator != "map" else settings.n0 if settings.smooth else None
        self.kinds: dict[bool, _Kind] = {}
        for kind in {bool(each) for each in self.recurs}:
            mine = np.flatnonzero(self.recurs == kind)
            a, w = settings.change if kind else EXPECTED_BETWEEN, EXPECTED_WITHIN
            fitted = a, w, EXPECTED_SHARED, 1.0, a, w
            if kept.fitted is not None:
                fitted = tuple(kept.fitted[mine[0], number].tolist())
            excess = np.zeros(at.stop - at.start) if kept.excess is None else kept.excess[mine[0], at]
            apart = None if kept.apart is None else _Apart(kept.apart[mine[0], :, at].T, families_of(kept.parts)[at])
            self.kinds[kind] = _Kind(self.variation, fitted, excess, apart, self.rows[mine], noise[mine], n0)

    def errors(self, question: _Question) -> Floats:
        """The errors in the cells of a question, as in `Errors`: [4, groups, cells]."""
        further = self.variation.further(question.cells, question.sizes, question.combined)
        one_row, unseen, combined = question.one_row, question.unseen, question.combined
        # the sample that C is made of missed a few rows
        one_row = np.where(further.within_variance < one_row / 2, one_row, further.within_variance)
        one_row[unseen] = HIDDEN / self.variation.rows
        within = float(np.trace(self.variation.variation.within))
        spread = float(np.trace(self.variation.variation.between)) / max(within, 1e-300)
        # As far as a cell is made of measured ones, B_QQ is cut as theirs is. The rest of what these explain is as much
        # due to chance as not: few public groups say how cells differ together.
        made_of = np.sum((further.within @ self.inverse) * further.within, axis=1)
        made_of = np.clip(made_of / np.maximum(further.within_variance, SMALLEST), 0.5, 1.0)
        between = np.maximum(further.between_variance, made_of * further.explained)
        between[unseen] = spread * one_row[unseen]
        each = np.zeros((4, len(self.recurs), len(one_row)))
        for kind, model in self.kinds.items():
            mine = self.recurs == kind
            each[:3, mine] = model.errors(further, self.inverse, one_row, between, question.interactions)
            each[3, mine] = model.shared
        # a row may be in no cell
        ranges = 1.0 if combined is None else np.ptp(np.pad(combined, ((0, 0), (0, 1))), axis=1)
        most = 0.25 * np.asarray(ranges) ** 2  # no number between two bounds varies more
        each[:2] = np.minimum(each[:2], np.maximum(most, SMALLEST))
        return each


@dataclass(frozen=True)
class _Apart:
    """Columns that differ on their own: the numbers of `LikelySpread.apart` for measured cells, and their families."""

    numbers: Floats  # [cells, 4]
    families: Ints

    def of_others(
        self, unexplained: Floats, interactions: Floats, between: Floats, left: Floats, row: Floats
    ) -> Floats:
        """Variances of what the measured cells do not explain of others: of columns that were not measured, and of
        interactions, which differ by what B leaves open and have little part in how columns moved.
        """
        first = np.unique(self.families, return_index=True)[1]
        a, w = np.exp(np.log(np.maximum(self.numbers[first, 2:], SMALLEST)).mean(axis=0))  # a few columns differ most
        of_columns = np.maximum(unexplained - interactions, 0.0)
        of_both = unexplained - of_columns
        return np.asarray(
            of_columns * (a * between + w * row) + of_both * (a * left + min(w, np.sqrt(w * EXPECTED_WITHIN)) * row)
        )


class _Kind:
    """The model of groups that have the same a, w and excess.

    `noise` are standard deviations of measured shares, assumed to differ from group to group by a factor only. Where
    answers were not smoothed, n0 is 0 for the paper's estimators, and None for MAP, which chooses its own: about the
    one at which C / n0 is as large as S.
    """

    def __init__(
        self,
        variation: VariationOfCells,
        fitted: tuple[float, ...],
        excess: Floats,
        apart: _Apart | None,
        rows: Floats,
        noise: Floats,
        n0: float | None,
    ) -> None:
        likely_a, likely_w, self.shared, self.ratio, self.a, self.w = fitted
        self.excess, self.apart, self.rows = excess, apart, rows
        self.within, known_between = variation.variation.within, variation.variation.between
        self.between = self.a * known_between + np.diag(excess)
        self.root = np.exp(np.mean(np.log(noise), axis=0))
        self.factor = np.mean((noise / self.root) ** 2, axis=1)
        few = len(set(self.factor.tolist())) <= NOISES
        ends = min(self.factor), max(self.factor)
        self.grid = np.unique(self.factor) if few else np.geomspace(*ends, NOISES)
        typical = typical_rows(rows)
        likely = likely_a * known_between + np.diag(excess) + likely_w / typical * self.within
        if apart is not None:
            a, w, mean_a, mean_w = apart.numbers.T
            likely = likely + differing_apart(variation.variation, apart.families, a, w, typical)
            self.on_its_own = differing_apart(variation.variation, apart.families, mean_a, mean_w, typical)
            self.between = self.between + self.on_its_own
        with single_threaded_blas():
            self.gains = self._gains(likely, n0)

    def _gains(self, s: Floats, n0: float | None) -> list[Floats]:
        """(C_WW + n0 D)^-1 S_WW (S_WW + V)^-1 for the noise variances V = factor * root^2, one by one."""
        root = self.root
        values, vectors = np.linalg.eigh(s / np.outer(root, root))
        values, gains = np.maximum(values, 0.0), []
        for factor in self.grid:
            if not n0:
                worth = 0.0 if n0 == 0 else float(np.trace(self.within) / max(np.trace(s), 1e-300))
                smoothed, d = np.eye(len(root)), factor * root**2
            else:
                worth, kept = n0, values / (values + factor)
                smoothed = root[:, None] * ((vectors * kept) @ vectors.T) / root
                d = root**2 * (vectors**2 @ (kept * factor))
            changed = self.within + np.diag(np.maximum(worth * d, SMALLEST))
            gains.append(np.asarray(np.linalg.solve(changed, smoothed), np.float64))
        return gains

    def errors(
        self, further: FurtherVariation, inverse: Floats, one_row: Floats, between: Floats, interactions: Floats
    ) -> Floats:
        """Variance, R, S_QQ: [3, groups, cells]; `one_row` and `between` are the diagonals of C_QQ and B_QQ, `inverse`
        is C_WW^-1.

        What is an interaction in a cell has little part in how one-way shares moved: its w is halfway to the expected
        one, in logarithms, if that is smaller, and it is not widened by their residuals.
        """
        mixed, own = self.a * further.between, self.a * between
        with single_threaded_blas():
            moved = further.within @ inverse
            if self.excess.any():
                mixed, own = mixed + moved * self.excess, own + moved**2 @ self.excess
            if self.apart is not None:
                follows = moved @ self.on_its_own
                mixed, own = mixed + follows, own + np.sum(follows * moved, axis=1)
                made_of = np.sum(moved * further.within, axis=1) / np.maximum(further.within_variance, SMALLEST)
                own += self.apart.of_others(
                    np.clip(1 - made_of, 0.0, 1.0),
                    interactions,
                    between,
                    np.maximum(between - further.explained, 0.0),
                    one_row / typical_rows(self.rows),
                )
            parts = np.stack(
                [
                    self._split(further.within @ gain, factor * self.root**2, further, mixed, own, one_row)
                    for factor, gain in zip(self.grid, self.gains, strict=True)
                ]
            )
        between_left, within_left, noisy = self._of_groups(parts).transpose(1, 0, 2)
        w = self.w + interactions * (min(self.w, np.sqrt(self.w * EXPECTED_WITHIN)) - self.w)
        per_row = w / self.rows[:, None]
        prior = np.maximum(own + per_row * one_row, SMALLEST)
        left = np.clip(between_left + per_row * within_left, 0.0, None)
        ratio = 1 + (self.ratio - 1) * (1 - interactions)
        return np.stack([np.maximum(ratio * (left + noisy), SMALLEST), ratio * left, prior])

    def _of_groups(self, parts: Floats) -> Floats:
        """What was worked out for each factor of the grid, [factors, ...], interpolated for each group's own factor."""
        if len(self.grid) == 1:
            return np.repeat(parts, len(self.factor), axis=0)
        grid, factor = np.log(self.grid), np.log(self.factor)
        above = np.clip(np.searchsorted(grid, factor), 1, len(grid) - 1)
        part = np.clip((factor - grid[above - 1]) / (grid[above] - grid[above - 1]), 0.0, 1.0)[:, None, None]
        return np.asarray((1 - part) * parts[above - 1] + part * parts[above])

    def _split(
        self, g: Floats, v: Floats, further: FurtherVariation, mixed: Floats, own: Floats, one_row: Floats
    ) -> Floats:
        """The diagonals of R with a B + E and with C instead of S, and of G V G': [3, cells asked for]."""
        covariances = (self.between, mixed, own), (self.within, further.within, one_row)
        rests = [
            alone - 2 * np.sum(g * with_measured, axis=1) + np.sum((g @ measured) * g, axis=1)
            for measured, with_measured, alone in covariances
        ]
        return np.stack([*rests, g**2 @ v])


# ---------------------------------------------------------------------- a release's own residuals

# The estimates do not meet the answers exactly. With y the raw answers of a level, V the variances of their noise, q
# the estimates' shares (of the last level's groups, added up), and D the variances of the smoothed answers, which are
# k V,
#
#     (y - q)^2 - V + 2 D        has the expectation of the squared error of q (Stein, 1981)
#
# Its mean over a block of cells and all groups, divided by that of D, is 1 if the model is right. Where it is more,
# beyond its own standard error, variances are multiplied by it (Birge, 1932). Residuals are cut off at `FARTHEST`
# standard deviations of the noise: a single cell that cannot be met must not widen all others.


FARTHEST = 4.0  # noise alone gets there once in 300 times


def birge_ratios(
    answers: RawAnswers, rows: Floats, followed: Floats, shares: Floats, reachable: Flags, recurs: Flags
) -> Floats:
    """The ratio of each block for each group of a level, [groups, blocks]: the same for all groups of a kind.

    `followed` are k, and `shares` q, [groups, cells]; cells that no public row is in are left out.
    """
    rows = np.maximum(rows, FEWEST_ROWS)
    noise = answers.noise(rows) ** 2
    residuals = np.minimum((answers.shares(rows) - shares) ** 2 / noise, FARTHEST**2)
    squares = residuals - 1 + 2 * followed  # over V
    blocks = blocks_of(answers.parts)
    ratios = np.ones((len(rows), len(blocks)))
    for kind in {bool(each) for each in recurs}:
        mine = recurs == kind
        for number, block in enumerate(blocks):
            used = reachable[block]
            known, expected = squares[mine, block][:, used], followed[mine, block][:, used]
            if expected.size:
                beyond = known.sum() - np.sqrt(5 * expected.size)  # the variance of Laplace noise squared is 5 V^2
                ratios[mine, number] = max(1.0, beyond / max(expected.sum(), 1e-300))
    return ratios


def shares_of_level(
    masses: Floats, masses_of: Sequence[Part], wanted: Sequence[Part], rows: Floats, above: Ints, size: int
) -> Floats:
    """The shares of the groups of a level, added up from the masses of the last level's groups.

    `masses` are of the cells of some parts, [groups, cells]; `wanted` are the level's parts, which are among them.
    """
    starts = np.cumsum([0, *(part.n_cells for part in masses_of)])
    at = {part: slice(first, last) for part, first, last in zip(masses_of, starts, starts[1:], strict=False)}
    counts = added_up(rows[:, None] * np.concatenate([masses[:, at[part]] for part in wanted], axis=1), above, size)
    return np.asarray(counts / np.maximum(added_up(rows, above, size), 1e-300)[:, None])


# ---------------------------------------------------------------------- how much of a cell is an interaction

# A cell of two columns moves with the shares of each of them, and beyond that if the columns come to depend on each
# other otherwise. Shares move from place to place and from year to year, dependences less. Of the variance of a row's
# being in the cell, the share that is left by a regression on its one-way cells is that of the interaction; it comes
# from public rows alone. A cell of one column has none.


def share_of_interactions(
    estimates: Distributions, cells: Sequence[NDArray[Any]], sizes: Sequence[int], combined: Floats | None = None
) -> Floats:
    """The share of each cell's variance that is an interaction, from 0 to 1; `combined` as in `VariationOfCells`."""
    variation, inverse = estimates.cells.one_way
    within, variance = variation.further_within(cells, sizes, combined)
    with single_threaded_blas():
        explained = np.sum((within @ inverse) * within, axis=1)
    share = 1 - np.divide(explained, variance, out=np.ones(len(variance)), where=variance > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))
