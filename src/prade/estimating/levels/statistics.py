"""Means, sums, quantiles and ratios with their 95 % intervals, made of counts of cells and of public numbers in bins.

Let N_c be the estimated number of rows in bin c, and m_c the mean of the public numbers in it, weighted as the group's
estimate weights the public rows:

    mean       r = sum_c N_c m_c / sum_c N_c.  Its error is that of sum_c (m_c - r) N_c, divided by sum_c N_c
    ratio      r = A / B of two counts.  Its error is that of A - r B, divided by B
    quantile   where the estimated distribution reaches p.  Its interval is where the distribution reaches p plus or
               minus the error of the share of rows below (Woodruff)

Private numbers inside a bin are not those of the public rows. Their mean is off by what public groups differ in, beyond
sampling: with the variance b_c in one group, a share of which all groups have in common (`SHARED`); and the rows of a
group are a sample, with the variance s_c of one row. Both are estimated from the public rows of the bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_by_group
from prade.core.errors import names_of
from prade.data.declare.groups import Grouping
from prade.data.public.public import Public
from prade.estimating.levels.asked_rows import Piece, counted
from prade.estimating.levels.cell_counts import NINETY_FIVE, interval
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import Cells

GRID = 8  # ratios at which variances are worked out; those of other ratios are interpolated
MOST_VALUES = 2_000  # distinct numbers that a quantile tells apart; more are rounded to the nearest of these
# Of what groups differ in inside a bin: 0 to 0.07 for eleven ACS columns of twelve, 0.4 for wages that drift by year.
SHARED = 0.2
FEWEST = 1e-6  # rows of which a mean is taken: fewer are nobody


@dataclass(frozen=True, eq=False)
class Values:
    """One number per group with its standard error and interval; NaN where there are no rows to take it from."""

    grouping: Grouping
    value: Floats
    sd: Floats
    low: Floats
    high: Floats


class Sums(NamedTuple):
    """Cells of pieces, added up: `last` over pieces, [groups of the last level, cells], `level` also over groups."""

    last: Floats
    level: Floats


class Asked:
    """What a statistic is asked of: estimates, the groups to tell apart, and the rows in each piece."""

    def __init__(
        self, estimates: Distributions, by: str | Sequence[str], pieces: Sequence[Piece], threads: int
    ) -> None:
        self.estimates, self.by, self.pieces, self.threads = estimates, by, pieces, threads
        self.grouping = estimates.plan.groups.level(names_of(by))
        self.above = estimates.plan.groupings[-1].above(self.grouping)

    def sums(self, cells: Sequence[Cells], times: Floats | None = None) -> Sums:
        """Rows in cells, or the sum of their numbers `times`; `cells` has those of each piece."""
        last = np.zeros((len(self.above), cells[0][1]))
        for piece, each in zip(self.pieces, cells, strict=True):
            masses = self.estimates.masses(each, times, self.threads)
            last += masses if piece.groups is None else np.where(piece.groups[:, None], masses, 0.0)
        last *= self.estimates.totals[:, None]
        level = np.zeros((len(self.grouping), last.shape[1]))
        np.add.at(level, self.above, last)
        return Sums(last, level)

    def variances(self, cells: Sequence[Cells], combined: Floats) -> Floats:
        """Variances of linear combinations of the cells' counts: [groups, combinations]."""
        size = max(float(np.abs(combined).max(initial=0.0)), 1e-300)
        counts = counted(self.estimates, self.by, self.pieces, cells, combined=combined / size, threads=self.threads)
        return (counts.variance + counts.variance_by_rows) * size**2

    def variances_at(self, cells: Sequence[Cells], ratios: Floats, slope: Floats, start: Floats) -> Floats:
        """Variances of sum_c (start_c - r slope_c) N_c for each group's own ratio r: [groups]."""
        known = ratios[np.isfinite(ratios)]
        if not len(known):
            return np.full(len(ratios), np.nan)
        grid = np.unique(known) if len(set(known.tolist())) <= GRID else np.linspace(known.min(), known.max(), GRID)
        variances = self.variances(cells, start - grid[:, None] * slope)
        # between two points of the grid the variance is a parabola, which lies below the straight line
        return np.array([np.interp(ratio, grid, each) for ratio, each in zip(ratios, variances, strict=True)])


def ratio_of(asked: Asked) -> Values:
    """The rows that satisfy the pieces' first query per row that satisfies their second one."""
    cells = [(np.select([a & b, a, b], [0, 1, 2], 3), 3) for a, b in (piece.rows for piece in asked.pieces)]
    counts = asked.sums(cells).level
    part, whole = counts[:, 0] + counts[:, 1], counts[:, 0] + counts[:, 2]
    ratio = _quotient(part, whole)
    variance = asked.variances_at(cells, ratio, slope=np.array([1.0, 0.0, 1.0]), start=np.array([1.0, 1.0, 0.0]))
    inside = not any((cell == 1).any() for cell, _ in cells)
    return _interval(asked, ratio, _quotient(np.sqrt(variance), whole), 0.0, 1.0 if inside else None)


def mean_or_sum_of(asked: Asked, column: str, numbers: Floats, *, mean: bool) -> Values:
    """The mean of a numeric column, or its sum over all rows that have a value."""
    cells, spec = _bins(asked, column, numbers), asked.estimates.plan.schema[column]
    rows, amounts = asked.sums(cells), asked.sums(cells, np.nan_to_num(numbers))
    centre = _quotient(amounts.level.sum(axis=0), rows.level.sum(axis=0), 0.0)
    inside = _inside_bins(asked, rows, spread(asked.estimates.public, column, numbers))
    if not mean:
        variance = asked.variances(cells, centre[None])[:, 0] + inside
        least = 0.0 if spec.min is not None and spec.min >= 0 else None
        return _interval(asked, amounts.level.sum(axis=1), np.sqrt(variance), least, None)
    number = rows.level.sum(axis=1)
    value = _quotient(amounts.level.sum(axis=1), number)
    variance = asked.variances_at(cells, value, slope=np.ones(len(centre)), start=centre) + inside
    return _interval(asked, value, _quotient(np.sqrt(variance), number), spec.min, spec.max)


def quantile_of(asked: Asked, column: str, numbers: Floats, at: float) -> Values:
    """Where the distribution of a numeric column reaches the share `at`."""
    cells, present = _bins(asked, column, numbers), asked.estimates.plan.schema[column].present
    rows = asked.sums(cells)
    values, place = _distinct(numbers)
    by_value = [(np.where(each < size, place, len(values)), len(values)) for each, size in cells]
    mass = asked.sums(by_value).level
    below = np.tri(present - 1, present) - at  # rows below each inner edge, less the share `at` of all
    errors = np.sqrt(asked.variances(cells, below)) if present > 1 else np.zeros((len(mass), 0))
    figures = np.full((4, len(mass)), np.nan)
    inside_at: dict[float, Floats] = {}
    for group in np.flatnonzero(mass.sum(axis=1) > FEWEST).tolist():
        number, reached = mass[group].sum(), np.cumsum(mass[group]) / mass[group].sum()
        value = float(values[_reach(reached, at)])
        at_edges = np.concatenate([[0.0], np.cumsum(rows.level[group]) / rows.level[group].sum()])
        error = np.interp(at, at_edges, np.concatenate([[0.0], errors[group] / number, [0.0]]))
        if value not in inside_at:
            apart = spread(asked.estimates.public, column, np.where(np.isnan(numbers), np.nan, numbers <= value))
            inside_at[value] = np.sqrt(_inside_bins(asked, rows, apart))
        error = np.hypot(error, inside_at[value][group] / number)
        low, high = (values[_reach(reached, float(end))] for end in interval(at, error))
        figures[:, group] = value, (high - low) / (2 * NINETY_FIVE), low, high
    return Values(asked.grouping, *figures)


def spread(public: Public, column: str, amounts: Floats) -> tuple[Floats, Floats]:
    """Of one row's amount in each bin of a column: its variance within public groups, and that of groups' means.

    The latter is less what sampling causes. With a single public group it is not known, and taken to be nothing.
    """
    known = ~np.isnan(amounts)
    size = public.prior.schema[column].present
    code = np.where(known, public.prior.codes[column], size)
    shape = public.group, len(public.groups), code, size
    amounts = np.where(known, amounts, 0.0)
    rows = mass_by_group(*shape, np.ones(len(code)))
    first, second = mass_by_group(*shape, amounts), mass_by_group(*shape, amounts**2)
    means = _quotient(first, rows, 0.0)
    number = np.maximum(rows.sum(axis=0), 1.0)
    groups = (rows > 0).sum(axis=0)
    within = np.maximum((second - rows * means**2).sum(axis=0) / np.maximum(number - groups, 1.0), 0.0)
    centre = first.sum(axis=0) / number
    apart = (rows * (means - centre) ** 2).sum(axis=0) - np.maximum(groups - 1, 0) * within
    # the sum above has this many times the variance of means, on average
    worth = np.maximum(number - (rows**2).sum(axis=0) / number, 1e-300)
    return within, np.where(groups > 1, np.maximum(apart / worth, 0.0), 0.0)


def _inside_bins(asked: Asked, rows: Sums, known: tuple[Floats, Floats]) -> Floats:
    """The variance of sums that is due to private numbers which differ from the public ones inside bins: [groups]."""
    within, between = known
    squares = np.zeros_like(rows.level)
    np.add.at(squares, asked.above, rows.last**2)
    together = SHARED * rows.level**2 + (1 - SHARED) * squares
    return np.asarray(rows.level @ within + together @ between)


def _bins(asked: Asked, column: str, numbers: Floats) -> list[Cells]:
    """Each piece's rows in the bins of a numeric column."""
    size = asked.estimates.plan.schema[column].present
    codes, known = asked.estimates.public.prior.codes[column].astype(np.int64), ~np.isnan(numbers)
    return [(np.where(piece.rows[0] & known, codes, size), size) for piece in asked.pieces]


def _distinct(numbers: Floats) -> tuple[Floats, Ints]:
    """The distinct numbers in rising order, and the place of each row's number among them."""
    values = np.unique(numbers[~np.isnan(numbers)])
    if len(values) > MOST_VALUES:
        values = np.unique(np.quantile(numbers[~np.isnan(numbers)], np.linspace(0, 1, MOST_VALUES), method="nearest"))
    middles = (values[1:] + values[:-1]) / 2
    return values, np.searchsorted(middles, np.nan_to_num(numbers))


def _reach(reached: Floats, share: float) -> int:
    """The first place at which a distribution reaches a share."""
    return int(np.clip(np.searchsorted(reached, share - 1e-12), 0, len(reached) - 1))


def _quotient(part: NDArray[np.float64], whole: NDArray[np.float64], otherwise: float = np.nan) -> Floats:
    """part / whole, and `otherwise` where there is nobody to divide by."""
    return np.divide(part, whole, out=np.full_like(part, otherwise), where=whole > FEWEST)


def _interval(asked: Asked, value: Floats, sd: Floats, least: float | None, most: float | None) -> Values:
    low, high = interval(value, sd, -np.inf if least is None else least, np.inf if most is None else most)
    return Values(asked.grouping, value, sd, low, high)
