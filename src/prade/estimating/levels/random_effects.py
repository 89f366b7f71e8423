"""How groups differ from their parent: one covariance of cells for each level, fitted to all its groups' answers.

Let x_g be the shares of group g in all measured cells, p its parent and m the public table's shares. Then

    x_g = x_p + (m_g - m_p) + u_g,    u_g ~ N(0, S_g),    S_g = D^(1/2) (s_g (a B + b B' + k C) + r_g C) D^(1/2)

B is the covariance of cells between public groups: places differ in patterns (where rents are high, so are incomes).
B' is B within each column, and nothing between columns: what a column does on its own. C is the covariance of one row's
cells, so that r_g C, with r_g = 1 / n_g, is what n_g rows vary by, and k C a change that follows no pattern of places.
D has one scale per column: a column that drifted widens its own cells and no others. A cell of two columns has the
geometric mean of their scales, and shares B' with the cells of each. s_g is a scale of the group's own, around 1
(`prade.estimating.levels.posterior`).

The numbers a, b, k and D are those of the largest posterior density, given all deviations of a level's groups from
their parent's raw shares,

    y_g - y_p ~ (1 - c_g) N(0, S_g + V_g)         c_g: the group's part of its parent's rows

which is restricted maximum likelihood (REML) where groups are alike: a parent's mean takes one group's worth of what
they tell. Groups are put into a few classes of similar size, each with the mean of its groups' r_g and V_g, so that a
step takes a few matrices whatever the number of groups. Harville (1977); Fay and Herriot (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.compiled import factorised, inverted
from prade.core.execution import single_threaded_blas
from prade.estimating.levels.variation import PublicVariation
from prade.queries.parts import Part

# Standard deviations, before any answer, of the logarithms of a, b and k, and of those of D. Errors on public tables
# (`benchmarks/one_model.py`) are the same to within 1 % for half and for one and a half times as much.
UNSURE, UNSURE_COLUMNS = 1.5, 0.7
UNLIKE_PUBLIC = 1e-3  # k before any answer
STEPS = 25  # of the fit, after which the errors of estimates change no more
CLASSES, CELLS_OF_CLASSES = 4, 500  # of sizes; with more cells than that, one class
LARGEST = 8.0  # of the logarithm of a scale
RIDGE = 1e-10  # of the largest variance: the cells of a part add up to one, so their covariance is singular


@dataclass(frozen=True)
class Scales:
    """a, b, k, and the logarithms of D, one for each column."""

    a: float
    b: float
    k: float
    columns: tuple[float, ...]

    @classmethod
    def before(cls, expected: float, columns: int) -> Scales:
        """What is thought of them before any answer: `expected` is a, and b."""
        return cls(expected, expected, UNLIKE_PUBLIC, (0.0,) * columns)

    @property
    def typical(self) -> float:
        """The geometric mean of D: the scale of a column that was not measured."""
        return float(np.exp(np.mean(self.columns))) if self.columns else 1.0


@dataclass(frozen=True, eq=False)
class CellModel:
    """The covariances that S is made of, and how much of each column is in each cell [cells, columns]."""

    between: Floats
    within: Floats
    columns: Floats

    @classmethod
    def of(cls, variation: PublicVariation, columns: Floats) -> CellModel:
        """From the covariances of public cells."""
        return cls(variation.between, variation.within, columns)

    def of_cells(self, cells: Ints) -> CellModel:
        """The model of some of the cells."""
        if len(cells) == len(self.between):
            return self
        block = np.ix_(cells, cells)
        return CellModel(self.between[block], self.within[block], self.columns[cells])

    @cached_property
    def alone(self) -> Floats:
        """B': B times the share of columns that two cells have in common, which keeps it a covariance."""
        shared = self.columns / np.maximum(np.linalg.norm(self.columns, axis=1, keepdims=True), 1e-300)
        return np.asarray(self.between * (shared @ shared.T))

    def widths(self, scales: Scales) -> Floats:
        """D^(1/2) as a matrix of products [cells, cells]."""
        root = np.exp(0.5 * (self.columns @ np.array(scales.columns)))
        return np.outer(root, root)

    def covariance(self, scales: Scales, rate: float) -> Floats:
        """S of a group with s_g = 1, `rate` being its r_g."""
        mixed = scales.a * self.between + scales.b * self.alone + (scales.k + rate) * self.within
        return np.asarray(self.widths(scales) * mixed)


def columns_of(parts: Sequence[Part]) -> Floats:
    """How much of each column is in each cell of some parts, [cells, columns]: shares that add up to one."""
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    rows = [[(name in part.columns) / len(set(part.columns)) for name in names] for part in parts]
    return np.repeat(np.array(rows, np.float64), [part.n_cells for part in parts], axis=0)


@dataclass(frozen=True, eq=False)
class Deviations:
    """What a level's groups differ by from their parents, [groups, cells]: raw shares, with the noise's variances.

    `rates` are r_g. `weight` is 1 - c_g. `shares` m are the prior's, and `rows` the variances of the groups' numbers of
    rows, as a share of these: shares of a number that is off are all off, by m.
    """

    away: Floats
    noise: Floats
    rates: Floats
    weight: Floats
    shares: Floats
    rows: Floats

    def classes(self) -> list[_Class]:
        """Groups of similar size."""
        number = CLASSES if self.away.shape[1] <= CELLS_OF_CLASSES else 1
        order = np.argsort(self.rates, kind="stable")
        return [self._class(mine) for mine in np.array_split(order, number) if len(mine)]

    def _class(self, mine: Ints) -> _Class:
        shares = self.shares[mine] * np.sqrt(self.rows[mine])[:, None]
        of_rows = np.outer(*[shares.mean(axis=0)] * 2)
        known = np.diag(self.noise[mine].mean(axis=0)) + of_rows
        return _Class(self.away[mine].T, known, float(self.rates[mine].mean()), float(self.weight[mine].sum()))


@dataclass(frozen=True, eq=False)
class _Class:
    away: Floats  # [cells, groups]
    known: Floats  # variance of the noise
    rate: float
    weight: float


def fitted_scales(model: CellModel, deviations: Deviations, start: Scales) -> Scales:
    """The most likely scales; `start` is what is thought of them before."""
    from scipy.optimize import minimize

    if not deviations.away.size:  # nothing was asked
        return start
    classes = deviations.classes()
    first = np.concatenate([np.log([start.a, start.b, start.k]), start.columns])
    if not sum(each.weight for each in classes) > 0:  # only children are their parents
        return start
    widths = np.concatenate([np.full(3, UNSURE), np.full(len(start.columns), UNSURE_COLUMNS)])
    between, alone, within, columns = model.between, model.alone, model.within, model.columns

    def surprise(logarithms: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the posterior density, and its gradient."""
        a, b, k = np.exp(logarithms[:3])
        root = np.exp(0.5 * (columns @ logarithms[3:]))
        both = np.outer(root, root)
        of_a, of_b, of_c = a * both * between, b * both * alone, both * within
        value, slope, by_rate = 0.0, np.zeros_like(both), np.zeros_like(both)
        for each in classes:
            factor = factorised(with_ridge(of_a + of_b + (k + each.rate) * of_c + each.known))
            inverse = inverted(factor)
            pull = inverse @ each.away
            value += 2 * each.weight * float(np.log(np.diag(factor)).sum()) + float(np.sum(each.away * pull))
            this = each.weight * inverse - pull @ pull.T
            slope += this
            by_rate += each.rate * this
        parts = of_a * slope, of_b * slope, k * of_c * slope
        of_cells = np.sum([*parts, of_c * by_rate], axis=(0, 2))
        away = (logarithms - first) / widths
        gradient = 0.5 * np.concatenate([[each.sum() for each in parts], columns.T @ of_cells])
        return 0.5 * value + 0.5 * float(away @ away), gradient + away / widths

    bounds = [(None, LARGEST)] * 3 + [(-LARGEST, LARGEST)] * len(start.columns)
    with single_threaded_blas():  # the order of sums must not depend on what else runs
        found = minimize(surprise, first, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": STEPS})
    a, b, k = np.exp(found.x[:3]).tolist()
    return Scales(a, b, k, tuple(found.x[3:].tolist()))


def with_ridge(covariance: Floats) -> Floats:
    """A covariance that is positive definite in spite of rounding."""
    changed = covariance.copy()
    changed.flat[:: len(changed) + 1] += RIDGE * np.diag(changed).max(initial=0.0)
    return changed
