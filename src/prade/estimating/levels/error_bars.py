"""Standard errors of answers: the variance of a group's error, in the model that its answers were smoothed with.

Let u be the difference between the true shares of group g, in the private table itself, and its prior's
(`prade.estimating.levels.smoothing`):

    u ~ N(0, S),  S = a B + (w / n) C       over the measured cells W and the cells Q that are asked for
    y_W = u_W + noise,  variances V         what was measured
    x_W = S_WW (S_WW + V)^-1 y_W            smoothed, with variances D
    x_Q = C_QW (C_WW + n0 D)^-1 x_W         what the least change of the prior's rows (MAP) makes of it for Q

The last line is MAP with the curvature of KL in place of KL. So the answer to Q is G y_W for a matrix G: close to the
posterior mean where Q was measured, worse elsewhere. The error of this answer has the variance

    R + G V G',      R = S_QQ - G S_WQ - S_QW G' + G S_WW G'

R is what remains of the prior's error, the other term is the noise. B and C come from public rows, a and w were fitted
to all groups' noisy answers; nothing is measured again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group
from prade.core.threads import single_threaded_blas
from prade.estimating.levels.blocks import blocks_of
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.smoothing import EXPECTED_BETWEEN, EXPECTED_CHANGE, EXPECTED_WITHIN, typical_rows
from prade.estimating.levels.totals import FEWEST_ROWS
from prade.estimating.levels.variation import PublicVariation

AT_ONCE = 200  # cells of a question: the time grows with the cube of their number plus that of the measured cells
NOISES = 8  # levels of noise for which variances are worked out; groups in between are interpolated
EXPECTED_SHARED = 0.3  # where nothing was fitted: about what was fitted between years of invented tables
SMALLEST = 1e-12  # variance of a share, so that logarithms exist: it is 0 in a cell without public rows


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
    every = blocks_of(estimates.levels[level].parts)
    for batch in batches(asked) if combined is None else [asked]:
        blocks = [_in_block(estimates, level, at, block, batch, combined) for block, at in enumerate(every)]
        # the cells that answer a question are mostly in one block: the one that leaves the least variance
        best = np.argmin([block.variance for block in blocks], axis=0)[None]
        pieces.append(
            [
                np.take_along_axis(np.stack([getattr(block, name) for block in blocks]), best, axis=0)[0]
                for name in ("variance", "left", "prior", "shared")
            ]
        )
    return Errors(*(np.concatenate(each, axis=1) for each in zip(*pieces, strict=True)))


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


def _in_block(
    estimates: Distributions, level: int, at: slice, block: int, batch: Sequence[Cells], combined: Floats | None
) -> Errors:
    """The errors if only the cells of one block had been measured."""
    kept, recurs = estimates.levels[level], estimates.priors[level].recurs
    rows = np.maximum(kept.totals, FEWEST_ROWS)
    noise = estimates.answers[level].noise(rows)[:, at]
    variation = estimates.cells.variation(estimates.layouts[level], at, batch)
    size = sum(number for _, number in batch)
    exact = np.concatenate([_variance_of_rows(estimates, *cells) for cells in batch])
    if combined is not None:
        variation, size = variation.combined(combined), len(combined)
        exact = _variance_of_rows(estimates, *batch[0], combined)
    settings = estimates.settings
    # the paper's estimators meet raw answers, as if the prior were worth nothing
    n0 = 0.0 if settings.estimator != "map" else settings.n0 if settings.smooth else None
    one_row = np.diag(variation.within)[-size:]
    one_row = np.where(one_row < exact / 2, exact, one_row)  # the sample that C is made of missed a few rows
    each = np.zeros((4, len(recurs), size))
    for kind in set(recurs.tolist()):
        mine = np.flatnonzero(recurs == kind)
        expected = EXPECTED_CHANGE if kind else EXPECTED_BETWEEN, EXPECTED_WITHIN, EXPECTED_SHARED
        a, w, shared = expected if kept.fitted is None else kept.fitted[mine[0], block].tolist()
        each[:3, mine] = _of_groups(variation, one_row, a, w, rows[mine], noise[mine], n0)
        each[3, mine] = shared
    return Errors(*each)


def _variance_of_rows(estimates: Distributions, cells: Ints, size: int, combined: Floats | None = None) -> Floats:
    """The diagonal of C for further cells, or for combinations of them, from all public rows."""
    public = estimates.public
    mass = mass_by_group(public.group, len(public.groups), cells, size, public.prior.weights)
    shares = mass / public.group_weights[:, None]
    each = np.eye(size) if combined is None else combined
    variances = shares @ each.T**2 - (shares @ each.T) ** 2
    return np.asarray(public.group_weights @ variances / public.group_weights.sum())


def _of_groups(
    variation: PublicVariation, one_row: Floats, a: float, w: float, rows: Floats, noise: Floats, n0: float | None
) -> Floats:
    """Variance, R, S_QQ: [3, groups, cells], for groups with the same a and w. `one_row` is the diagonal of C_QQ.

    `noise` are standard deviations of measured shares, assumed to differ from group to group by a factor only. Where
    answers were not smoothed, n0 is 0 for the paper's estimators, and None for MAP, which chooses its own: about the
    one at which C / n0 is as large as S.
    """
    root = np.exp(np.mean(np.log(noise), axis=0))
    factor = np.mean((noise / root) ** 2, axis=1)
    grid = np.unique(factor) if len(set(factor.tolist())) <= NOISES else np.geomspace(min(factor), max(factor), NOISES)
    with single_threaded_blas():
        gains = _gains(variation, a, w / typical_rows(rows), root, grid, n0)
        parts = np.stack([_split(variation, g, f * root**2) for f, g in zip(grid, gains, strict=True)])
    between, within, noisy = (
        np.stack([np.interp(np.log(factor), np.log(grid), values) for values in parts[:, k].T], axis=1)
        for k in range(3)
    )
    size = len(one_row)
    seldom = one_row - np.diag(variation.within)[-size:]  # what the sample missed
    prior = np.maximum(a * np.diag(variation.between)[-size:] + w / rows[:, None] * one_row, SMALLEST)
    left = np.clip(a * between + w / rows[:, None] * (within + seldom), 0.0, None)
    return np.stack([np.maximum(left + noisy, SMALLEST), left, prior])


def _gains(
    variation: PublicVariation, a: float, per_row: float, root: Floats, factors: Floats, n0: float | None
) -> Iterator[Floats]:
    """G for the noise variances V = factor * root^2, one by one: [cells asked for, cells measured]."""
    measured, asked = slice(None, len(root)), slice(len(root), None)
    s, curvature = (
        (a * variation.between + per_row * variation.within)[measured, measured],
        variation.within[measured, measured],
    )
    values, vectors = np.linalg.eigh(s / np.outer(root, root))
    values = np.maximum(values, 0.0)
    for factor in factors:
        if not n0:
            worth = 0.0 if n0 == 0 else float(np.trace(curvature) / max(np.trace(s), 1e-300))
            smoothed, d = np.eye(len(root)), factor * root**2
        else:
            worth, kept = n0, values / (values + factor)
            smoothed, d = (
                root[:, None] * ((vectors * kept) @ vectors.T) / root,
                root**2 * (vectors**2 @ (kept * factor)),
            )
        changed = curvature + np.diag(np.maximum(worth * d, SMALLEST))
        yield np.linalg.solve(changed, variation.within[measured, asked]).T @ smoothed


def _split(variation: PublicVariation, g: Floats, v: Floats) -> Floats:
    """The diagonals of R with B and with C instead of S, and of G V G': [3, cells asked for]."""
    measured, asked = slice(None, len(v)), slice(len(v), None)
    diagonals = [g**2 @ v]
    for matrix in (variation.within, variation.between):
        both = np.sum(g * matrix[asked, measured], axis=1)
        rest = np.diag(matrix)[asked] - 2 * both + np.sum((g @ matrix[measured, measured]) * g, axis=1)
        diagonals.insert(0, rest)
    return np.stack(diagonals)
