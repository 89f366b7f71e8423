"""What asking for a part would improve, predicted from the stand-ins, before any rehearsal.

Let S be the second moments of what the prior is off by, over the stand-ins' groups, in the cells of all one-way
tables, and v the noise's variance in a share. Asking for a part with cells A leaves

    S' = S - S[:, A] (S[A, A] + v I)^-1 S[A, :]          worth  sum over all cells of  sqrt(S_ii) - sqrt(S'_ii)

and parts are taken one by one, the best first: what earlier parts tell already is worth little. The cells of a single
part are off by u (mean square over groups), and by u v / (u + v) once it has been asked for. For a two-way table, u is
what one-way tables do not tell: the prior's table is scaled to the group's own one-way shares first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group
from prade.data.declare.groups import RecurringGroups
from prade.data.declare.schema import Schema
from prade.queries.parts import Marginal
from prade.tuning.stand_ins import StandIn

Columns = tuple[str, ...]

MOST_SWEEPS = 100  # over a table's rows and columns: about ten are enough where no cell is empty
FITTED = 1e-6  # what a sweep changes a share by when it is the last: far less than any noise


@dataclass(frozen=True, eq=False)
class StandInLevel:
    """One level of a stand-in: the group that each row standing in is in, and the public groups that recur in it.

    The groups `left_out` have no part in what `shares` says.
    """

    stand_in: StandIn
    by: Columns
    group: Ints
    recurring: RecurringGroups
    left_out: range = range(0)

    @classmethod
    def of(cls, stand_in: StandIn, by: Columns, left_out: range = range(0)) -> StandInLevel:
        """The level with these columns."""
        level = stand_in.groups.level(by)
        finest = stand_in.groups.level(stand_in.groups.names)
        group, recurring = finest.above(level)[stand_in.group], RecurringGroups.of(stand_in.public.groups, level)
        return cls(stand_in, by, group, recurring, left_out)

    def __len__(self) -> int:
        return len(self.recurring.of_group)

    @property
    def rows(self) -> Floats:
        """Numbers of rows to compare the plan's noise with."""
        return np.asarray(np.bincount(self.group, minlength=len(self)) / self.stand_in.noise)

    def shares(self, schema: Schema, columns: Columns) -> tuple[Floats, Floats]:
        """Shares of a part's cells in every group that is not left out, true ones and the prior's: [groups, *sizes]."""
        part, public = Marginal.of(schema, columns), self.stand_in.public
        cells, public_cells = (part.cells(schema, codes) for codes in (self.stand_in.codes, public.prior.codes))
        truth = mass_by_group(self.group, len(self), cells, part.n_cells).astype(np.float64)
        mass = mass_by_group(public.group, len(public.groups), public_cells, part.n_cells, public.prior.weights)
        prior = np.where(self.recurring.recurs[:, None], self.recurring.sums(mass), mass.sum(axis=0))
        true_shares, prior_shares = (_ratio(each, each.sum(axis=1, keepdims=True)) for each in (truth, prior))
        used = np.setdiff1d(np.arange(len(self)), self.left_out)
        shape = len(used), *part.sizes
        return true_shares[used].reshape(shape), prior_shares[used].reshape(shape)


def off_by(levels: Sequence[StandInLevel], schema: Schema, columns: Columns) -> Floats:
    """Mean squares, over groups and stand-ins, of what the prior's cells are off by beyond what one-way tables tell."""
    squares = []
    for level in levels:
        truth, prior = level.shares(schema, columns)
        if len(columns) > 1:
            prior = scaled_to_one_way(prior, truth)
        squares.append(np.mean((truth - prior) ** 2, axis=0))
    return np.asarray(np.mean(squares, axis=0))


def scaled_to_one_way(prior: Floats, truth: Floats) -> Floats:
    """Tables [groups, rows, columns] scaled, row by row and column by column, until their one-way shares are true."""
    for _ in range(MOST_SWEEPS):
        before = prior
        for axis in (1, 2):
            prior = prior * _ratio(truth.sum(axis=axis, keepdims=True), prior.sum(axis=axis, keepdims=True))
        if np.abs(prior - before).max() < FITTED:
            break
    return prior


def predicted_gain(off: Floats, noise: float, known: float = np.inf) -> float:
    """By how much all shares together come nearer to the truth when they are asked for.

    `off` are mean squares of what the cells are off by, `noise` is the variance of the new answers, `known` that of
    answers known already.

    >>> predicted_gain(np.array([4.0, 4.0]), noise=4 / 3)
    2.0
    """
    before = 1 / (1 / np.maximum(off, 1e-300) + 1 / max(known, 1e-300))
    return float(np.sum(np.sqrt(before) - np.sqrt(before * noise / (before + noise))))


def shrunk_moments(deviations: Floats) -> Floats:
    """Second moments of [groups, cells], correlations shrunk as far as few groups cannot tell them from chance.

    r_ij is known to within (1 - r_ij^2) / sqrt(groups); of all r_ij the share lambda = sum of the squares of that over
    sum of r_ij^2 is chance (Schäfer and Strimmer, 2005).
    """
    moments = deviations.T @ deviations / len(deviations)
    scale = np.sqrt(np.diag(moments))
    correlation = _ratio(moments, np.outer(scale, scale))
    apart = ~np.eye(len(scale), dtype=np.bool_)
    known = correlation[apart] ** 2
    chance = float(np.sum((1 - known) ** 2)) / len(deviations)
    kept = 1 - min(1.0, chance / max(float(known.sum()), chance, 1e-300))
    return np.asarray(np.where(apart, kept * moments, moments))


def telling_parts(moments: Floats, cells: Sequence[slice], variance: float, number: int) -> list[int]:
    """This many parts, the one that tells most first, given those before it. Cells of part k are at `cells[k]`.

    >>> twins_and_another = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 0.5]])
    >>> telling_parts(twins_and_another, [slice(0, 1), slice(1, 2), slice(2, 3)], 0.1, 2)
    [0, 2]
    """
    left = moments.copy()
    taken: list[int] = []
    for _ in range(number):
        best, told = -1.0, np.zeros_like(left)
        for k, at in enumerate(cells):
            if k in taken:
                continue
            mine = left[:, at]
            answered = np.linalg.solve(left[at, at] + variance * np.eye(mine.shape[1]), mine.T)
            rest = np.diag(left) - np.einsum("ij,ji->i", mine, answered)
            worth = float(np.sum(np.sqrt(np.maximum(np.diag(left), 0.0)) - np.sqrt(np.maximum(rest, 0.0))))
            if worth > best:
                best, chosen, told = worth, k, mine @ answered
        taken.append(chosen)
        left = left - told
    return taken


def left_by_noise(moments: Floats, cells: Sequence[slice], variance: float, asked: Sequence[int]) -> Floats:
    """What all cells are still off by once these parts have been asked for: S'_ii."""
    at = np.concatenate([np.arange(len(moments))[cells[part]] for part in asked])
    mine = moments[:, at]
    known = np.linalg.solve(moments[np.ix_(at, at)] + variance * np.eye(len(at)), mine.T)
    return np.asarray(np.maximum(np.diag(moments) - np.einsum("ij,ji->i", mine, known), 0.0))


def _ratio(above: Floats, below: Floats) -> Floats:
    shape = np.broadcast_shapes(above.shape, below.shape)
    return np.divide(above, below, out=np.zeros(shape), where=np.broadcast_to(below > 0, shape))
