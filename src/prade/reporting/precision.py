"""How precise the one-way tables of a view are: model errors, and widths of 95 % intervals in rows.

The model error of a table is what the model of the intervals expects of the L1 distance between true and estimated
shares. A normal error of standard deviation s has the expected absolute value s sqrt(2 / pi), so

    model error = sum over cells of sd * sqrt(2 / pi), but at most 2

Where a group may well have no rows at all, its shares mean nothing, and neither does their error: it is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.estimating.levels.cell_counts import NINETY_FIVE
from prade.estimating.levels.error_bars_of_sums import sum_variances
from prade.planning.invariants import possible_cells
from prade.queries.parts import Part
from prade.reporting.facts import View, cells_of

if TYPE_CHECKING:
    from prade.estimating.levels.error_bars import Errors
    from prade.estimating.levels.estimates import Estimates

LARGEST = 2.0  # L1 distance between shares
CLEARLY = 2.0  # standard deviations: a group with fewer rows than that may have none
COMMON = 0.05  # share of a group's rows: values that are rarer are no measure of how precise a table is


@dataclass(frozen=True, eq=False)
class Precision:
    """Of the columns' tables in a view: standard deviations of shares, [groups, cells], and what follows from them."""

    view: View
    starts: tuple[int, ...]  # of each column's cells, and the number of all cells at the end
    sd: Floats

    @property
    def shares(self) -> Floats:
        """The estimated shares of the columns' cells."""
        return self.view.shares["estimate"][:, : self.starts[-1]]

    @property
    def errors(self) -> Floats:
        """The model error of every column's table: [groups, columns]; NaN in groups that may have no rows."""
        errors = np.add.reduceat(self.sd, self.starts[:-1], axis=1) * math.sqrt(2 / math.pi)
        return np.where(self.has_rows[:, None], np.minimum(errors, LARGEST), np.nan)

    @property
    def has_rows(self) -> Flags:
        """Which groups have more rows than 0 beyond doubt."""
        totals = self.view.totals
        return np.asarray((totals > 0) & (totals >= CLEARLY * self.view.total_sd))

    def column_error(self, column: int) -> float | None:
        """The mean of a column's model errors over the groups that have rows; None if there are no such groups."""
        return float(self.errors[self.has_rows, column].mean()) if self.has_rows.any() else None

    @property
    def widths(self) -> Floats:
        """The widths of the counts' 95 % intervals: [groups, cells]."""
        rows, rows_sd = self.view.totals[:, None], self.view.total_sd[:, None]
        counts = rows * self.shares
        sd = np.hypot(rows * self.sd, self.shares * rows_sd)
        high = np.minimum(counts + NINETY_FIVE * sd, rows + NINETY_FIVE * rows_sd)
        return np.asarray(high - np.maximum(counts - NINETY_FIVE * sd, 0.0))

    def column_width(self, column: int) -> float:
        """The median width of a column's intervals, over groups and cells."""
        return float(np.median(self.widths[:, self.starts[column] : self.starts[column + 1]]))

    @property
    def relative(self) -> float | None:
        """How far, in half of the cases, the 95 % interval of a common value reaches to either side, per count."""
        return self._reach(slice(None))

    def column_relative(self, column: int) -> float | None:
        """The same for the values of one column."""
        return self._reach(slice(self.starts[column], self.starts[column + 1]))

    def _reach(self, cells: slice) -> float | None:
        shares, widths = self.shares[:, cells], self.widths[:, cells]
        counts = shares * self.view.totals[:, None]
        common = (shares >= COMMON) & (counts >= 1)
        return float(np.median((widths / 2)[common] / counts[common])) if common.any() else None


def precision_of(estimates: Estimates, parts: Sequence[Part], view: View, kept: dict[int, Errors]) -> Precision:
    """The precision of the tables of these columns; `kept` keeps from one view to the next views have in common."""
    starts = np.cumsum([0, *(part.n_cells for part in parts)])
    shares = view.shares["estimate"][:, : starts[-1]]
    return Precision(view, tuple(starts.tolist()), deviations(estimates, parts, view, shares, kept))


def deviations(
    estimates: Estimates, parts: Sequence[Part], view: View, shares: Floats, kept: dict[int, Errors] | None = None
) -> Floats:
    """Standard deviations of the estimated shares of all cells of some parts: [groups, cells].

    The same numbers as `Estimates.marginal`, which would compute every group's distribution again for each part.
    """
    asked = [cells_of(part, estimates) for part in parts]
    counts = view.totals[:, None] * shares
    variance = sum_variances(estimates, asked, view.number, len(view), counts=counts, kept=kept)
    possible = [possible_cells(part, estimates.plan.invariants, estimates.plan.schema) for part in parts]
    sd = np.sqrt(variance) / np.maximum(view.totals, 1.0)[:, None]
    return np.where(np.concatenate(possible), np.minimum(sd, 0.5), 0.0)  # no share varies more
