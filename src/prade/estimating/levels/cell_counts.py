"""Counts of cells for the groups of any level, with their 95 % intervals: what every answer is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.errors import DataError, names_of
from prade.data.declare.groups import Grouping
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.error_bars_of_sums import sum_variances
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.published import variance_of_sums
from prade.estimating.levels.totals import FEWEST_ROWS

if TYPE_CHECKING:
    from prade.planning.plan import Plan

# Standard deviations either way: 1.96 where errors are Gaussian, 2.12 where they are Laplace noise; a and w are fitted.
NINETY_FIVE = 2.04


def interval(
    value: Floats | float, sd: Floats | float, least: Floats | float = -np.inf, most: Floats | float = np.inf
) -> tuple[Floats, Floats]:
    """The 95 % interval of an estimate: value - z sd and value + z sd, both from `least` to `most`.

    Every interval that prade states is made here.

    >>> low, high = interval(np.array([3.0, 100.0]), np.array([2.0, 10.0]), least=0.0)
    >>> low.tolist(), high.tolist()
    ([0.0, 79.6], [7.08, 120.4])
    """
    low, high = (np.clip(value + side * NINETY_FIVE * sd, least, most) for side in (-1, 1))
    return low, high


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of cells [groups, cells] and numbers of rows [groups], both with their variances.

    `variance` is that of the count if the number of rows were known, `rows_variance` that of the number of rows. Errors
    of both are assumed to be independent, which is the safe side: n^2 Var(x) + x^2 Var(n).
    """

    grouping: Grouping
    rows: Floats
    rows_variance: Floats
    counts: Floats
    variance: Floats
    variance_by_rows: Floats  # what the unknown numbers of rows add, [groups, cells]
    share_variance_by_rows: Floats | float = 0.0  # the same for shares, times the rows' square; 0 if it is next to none

    @property
    def shares(self) -> Floats:
        """The counts as shares of the group's rows."""
        return np.asarray(self.counts / self._whole)

    @property
    def sd(self) -> Floats:
        """Standard deviations of the shares."""
        return np.asarray(np.sqrt(self.variance + self.share_variance_by_rows) / self._whole)

    @property
    def count_sd(self) -> Floats:
        """Standard deviations of the counts."""
        return np.asarray(np.sqrt(self.variance + self.variance_by_rows))

    @property
    def low(self) -> Floats:
        """Lower ends of the counts' 95 % intervals."""
        return self._interval[0]

    @property
    def high(self) -> Floats:
        """Upper ends of the counts' 95 % intervals."""
        return self._interval[1]

    @property
    def _interval(self) -> tuple[Floats, Floats]:
        _, most = interval(self.rows, np.sqrt(self.rows_variance))
        return interval(self.counts, self.count_sd, 0.0, most[:, None])

    def limited_to(self, possible: Flags) -> CellCounts:
        """The same counts, where only some cells are possible: the others are empty for certain."""
        return replace(self, variance=np.where(possible, self.variance, 0.0))

    @property
    def _whole(self) -> Floats:
        return np.maximum(self.rows, FEWEST_ROWS)[:, None]


def cell_counts(
    estimates: Distributions,
    by: str | Sequence[str],
    asked: Cells,
    *,
    chosen: Flags | None = None,
    combined: Floats | None = None,
    threads: int = 1,
) -> CellCounts:
    """The counts of the cells that are asked for, in the groups `by`.

    With `chosen`, only rows in these groups of the last level are counted in cells. With `combined`, [combinations,
    cells], the counts are linear combinations of the cells' counts.
    """
    level, last = estimates.plan.groups.level(names_of(by)), estimates.plan.groupings[-1]
    need_known(estimates.plan, level.by)
    shares = estimates.masses(asked, threads=threads)
    # weights are kept in single precision, and may add up to slightly more than 1
    shares = np.minimum(shares, 1.0) if combined is None else shares @ combined.T
    shares = shares if chosen is None else np.where(chosen[:, None], shares, 0.0)
    above = last.above(level)
    rows, counts = np.zeros(len(level)), np.zeros((len(level), shares.shape[1]))
    np.add.at(rows, above, estimates.totals)
    np.add.at(counts, above, estimates.totals[:, None] * shares)
    everybody, how = np.ones((len(shares), 1)), (estimates.totals, above, len(level), estimates.plan)
    of_rows, of_counts = (variance_of_sums(estimates.errors_of_rows, times, *how) for times in (everybody, shares))
    by_rows: Floats | float = 0.0
    if chosen is not None:
        # how many rows the chosen groups have among the others: (s_g - s) / n of every error of n_g
        away = shares - (counts / np.maximum(rows, FEWEST_ROWS)[:, None])[above]
        by_rows = variance_of_sums(estimates.errors_of_rows, away, *how)
        above = np.where(chosen, above, len(level))  # the others are added up too, in a sum that nobody asked for
    known = sum_variances(estimates, [asked], above, len(level) + 1, combined, counts=counts)[: len(level)]
    return CellCounts(level, rows, of_rows[:, 0], counts, known, of_counts, by_rows)


def need_known(plan: Plan, names: Sequence[str]) -> None:
    """Raise a DataError unless these columns of the list of groups are known from the last level's group."""
    if finer := [name for name in names if not follows(plan, name)]:
        raise DataError(
            f"{finer[0]!r} is not a column of the release's levels ({', '.join(plan.groupings[-1].by) or 'none'}), and "
            "does not follow from them: the release does not tell its groups apart"
        )


def follows(plan: Plan, name: str) -> bool:
    """Whether a column of the list of groups is known from the last level's group: its own, or a PUMA's state."""
    last = plan.groupings[-1]
    return name in last.by or len(plan.groups.level((*last.by, name))) == len(last)
