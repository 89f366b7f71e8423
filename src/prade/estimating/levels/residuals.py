"""What a release's own residuals say about its error bars.

The estimates do not meet the answers exactly. With y the raw answers of a level, V the variances of their noise, q the
estimates' shares (of the last level's groups, added up), and D the variances of the smoothed answers, which are k V,

    (y - q)^2 - V + 2 D        has the expectation of the squared error of q (Stein, 1981)

Its mean over a block of cells and all groups, divided by that of D, is 1 if the model is right. Where it is more,
beyond its own standard error, variances are multiplied by it (Birge, 1932). A residual of more than `FARTHEST` standard
deviations of the noise counts as one of so many: a single cell that cannot be met must not widen all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.estimating.levels.benchmarking import added_up
from prade.estimating.levels.blocks import blocks_of
from prade.estimating.levels.totals import FEWEST_ROWS

if TYPE_CHECKING:
    from prade.estimating.levels.answers import RawAnswers
    from prade.queries.parts import Part


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
