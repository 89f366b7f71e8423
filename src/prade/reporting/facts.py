"""The numbers of a report: for every level and group the public table, the answers, the estimate and synthetic rows.

public     the group's distribution according to the public table alone (`public_factors`)
noisy      the release's answers about the group: its own, combined with the sums over its descendants
estimate   what `prade.estimating.levels.estimates` answers: a level above the last has the sums of its groups
synthetic  the rows in the release's folder
truth      the true rows, for a page that is not private
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, mass_by_group, mass_per_cell
from prade.core.execution import Execution
from prade.data.public.joint import Coded
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.cell_counts import interval, sum_variances
from prade.estimating.levels.error_bars import Errors
from prade.estimating.levels.estimates import Estimates, shared_estimates
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.totals import added_up, variance_of_sums
from prade.planning.invariants import possible_cells
from prade.queries.parts import Marginal, Part

Rows = tuple[Coded, Ints]  # synthetic or true rows, and each row's group at the last level

WHOLE, ONE_TABLE = "all groups together", "the whole table"
ALMOST_NONE = 1e-9  # rows that an empty group counts as, where all groups are estimated to be empty
LARGEST = 2.0  # L1 distance between shares
CLEARLY = 2.0  # standard deviations: a group with fewer rows than that may have none
COMMON = 0.05  # share of a group's rows: values that are rarer are no measure of how precise a table is


@dataclass(frozen=True, eq=False)
class View:
    """A level as the page shows it, with one row per group in every array; the whole table is a level of one group.

    `shares[series]` (public, estimate, synthetic, and truth if given) are the shares of the cells of all shown parts,
    side by side; `number` is, for each group of the last level, the group of this level that contains it. `total_sd`
    are standard deviations of the numbers of rows.
    """

    name: str
    by: tuple[str, ...]
    labels: list[str]
    number: Ints
    answers: RawAnswers
    totals: Floats
    total_sd: Floats
    shares: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.labels)

    def noisy_shares(self, part: Part) -> Floats:
        """Noisy counts divided by the noisy number of rows; NaN for a part that was not measured."""
        if part not in self.answers.parts:
            return np.full((len(self), part.n_cells), np.nan)
        rows = np.maximum(self.answers.totals, 1.0)[:, None]
        return np.asarray(self.answers.counts[self.answers.parts.index(part)] / rows)


@dataclass(frozen=True, eq=False)
class Facts:
    """All views, the whole table first; the shown parts: first every column; and what is needed for further tables."""

    parts: tuple[Part, ...]
    views: tuple[View, ...]
    weights: dict[str, Floats]  # weights of the public rows in the whole table, by public and estimate
    rows: dict[str, Coded]  # the synthetic rows, and the true ones if given

    def at(self, part: Part) -> slice:
        """The position of a part's cells among the shares of a view."""
        number = self.parts.index(part)
        first = sum(each.n_cells for each in self.parts[:number])
        return slice(first, first + part.n_cells)


def facts_of(estimates: Estimates, drawn: Rows, truth: Rows | None = None, execution: Execution = Execution()) -> Facts:
    """Compute every view. Workers in other processes open the estimates in the release's folder."""
    # every column by itself, and every part that was measured at any level
    ones: list[Part] = [Marginal.of(estimates.plan.schema, [name]) for name in estimates.plan.schema.coded]
    parts = tuple(dict.fromkeys([*ones, *(part for each in estimates.answers for part in each.parts)]))
    priors, size = public_factors(estimates), len(estimates.totals)
    asked = [cells_of(part, estimates) for part in parts]
    rows = np.maximum(estimates.totals, ALMOST_NONE)
    factors = rows @ priors[-1] / rows.sum()
    shared = None if execution.executor is None else shared_estimates(estimates)
    finest, together = estimates.tables(parts, rows, shared=shared, execution=execution)
    counted = {"synthetic": drawn} | ({} if truth is None else {"truth": truth})
    counts = {}
    for name, (coded, place) in counted.items():
        cells = [(part.cells(coded.schema, coded.codes), part.n_cells) for part in parts]
        tables = np.concatenate([mass_by_group(place, size, *each) for each in cells], axis=1)
        counts[name] = tables, np.bincount(place, minlength=size).astype(np.float64)
    public, weights = estimates.public, estimates.public.observed_weights
    masses = np.concatenate([mass_by_group(public.group, len(public.groups), *each, weights) for each in asked], axis=1)
    views = []
    for level in (None, *(k for k, grouping in enumerate(estimates.plan.groupings) if grouping.by)):
        view = _view(estimates, level)
        view.shares["public"] = (factors[None] if level is None else priors[level]) @ masses
        view.shares["estimate"] = _mean(rows[:, None] * finest, rows, view)
        view.shares.update({name: _mean(*each, view) for name, each in counts.items()})
        views.append(view)
    whole = {"public": np.asarray(weights * factors[public.group]), "estimate": together}
    return Facts(parts, tuple(views), whole, {name: coded for name, (coded, _) in counted.items()})


def cells_of(part: Part, estimates: Estimates) -> Cells:
    """The cell of every public row in a part, and the number of cells."""
    return part.cells(estimates.plan.schema, estimates.public.prior.codes), part.n_cells


def _mean(counts: Floats, rows: Floats, view: View) -> Floats:
    """The last level's counts as shares in the groups of a view; 0 in a group without rows."""
    summed, total = (added_up(each, view.number, len(view)) for each in (counts, rows))
    return np.minimum(np.divide(summed, total[:, None], out=np.zeros_like(summed), where=total[:, None] > 0), 1.0)


def _view(estimates: Estimates, level: int | None) -> View:
    """A level; None is the whole table, whose answers are the sums of those at the first level."""
    plan = estimates.plan
    if level is None:
        top, grouping = estimates.answers[0], plan.groups.level(())
        arrays = top.variance, top.totals, top.total_variance
        variance, totals, total_variance = (each.sum(axis=0, keepdims=True) for each in arrays)
        counts = [each.sum(axis=0, keepdims=True) for each in top.counts]
        answers = RawAnswers(top.parts, counts, variance, totals, total_variance)
        name = WHOLE if plan.levels[-1].by else ONE_TABLE
        labels = [name]
    else:
        answers, grouping, name = estimates.answers[level], plan.groupings[level], plan.levels[level].name
        labels = grouping.labels(plan.schema)
    number, rows = plan.groupings[-1].above(grouping), estimates.totals
    of_rows = variance_of_sums(estimates.errors_of_rows, np.ones((len(rows), 1)), rows, number, len(labels), plan)
    total = added_up(rows, number, len(labels))
    return View(name, grouping.by, labels, number, answers, total, np.sqrt(of_rows[:, 0]), {})


def public_factors(estimates: Estimates) -> list[Floats]:
    """The prior of every group according to the public table alone: by level, [groups, public groups].

    A base distribution gives the rows of one public group one factor, weights = table weights * factor of the row's
    group, as in `GroupPriors.weights`. So the shares of cells are one product:

        shares [groups, cells] = factors [groups, public groups] @ masses [public groups, cells]
    """
    public, own = estimates.public, estimates.settings.own
    masses = mass_per_cell(public.group, public.observed_weights, len(public.groups))
    factors = []
    for priors in estimates.priors[estimates.foundation.above_plan :]:
        recurring = priors.recurring
        keys = np.where(recurring.loose[:, None], *(key[None] for key in reversed(recurring.keys)))
        mine = (keys == recurring.of_group[:, None]) & priors.recurs[:, None]
        total = mine @ (masses if public.added else priors.public.group_weights)
        share = np.divide(own, total, out=np.zeros_like(total), where=total > 0)[:, None]
        factors.append(np.where((total > 0)[:, None], share * mine + (1 - own), 1.0))
    return factors


@dataclass(frozen=True, eq=False)
class Precision:
    """How precise the columns' tables in a view are, from the standard deviations of their shares, [groups, cells].

    The model error of a table is what the model of the intervals expects of the L1 distance between true and estimated
    shares. A normal error of standard deviation s has the expected absolute value s sqrt(2 / pi), so

        model error = sum over cells of sd * sqrt(2 / pi), but at most 2

    Where a group may well have no rows at all, its shares mean nothing, and neither does their error: it is unknown.
    """

    view: View
    starts: tuple[int, ...]  # of each column's cells, and the number of all cells at the end
    sd: Floats

    @property
    def shares(self) -> Floats:
        """The estimated shares of the columns' cells."""
        return self.view.shares["estimate"][:, : self.starts[-1]]

    @property
    def has_rows(self) -> Flags:
        """Which groups have more rows than 0 beyond doubt."""
        totals = self.view.totals
        return np.asarray((totals > 0) & (totals >= CLEARLY * self.view.total_sd))

    @cached_property
    def errors(self) -> Floats:
        """The model error of every column's table: [groups, columns]; NaN in groups that may have no rows."""
        errors = np.add.reduceat(self.sd, self.starts[:-1], axis=1) * math.sqrt(2 / math.pi)
        return np.where(self.has_rows[:, None], np.minimum(errors, LARGEST), np.nan)

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the counts' 95 % intervals: [groups, cells]."""
        rows, rows_sd = self.view.totals[:, None], self.view.total_sd[:, None]
        sd = np.hypot(rows * self.sd, self.shares * rows_sd)
        return interval(rows * self.shares, sd, 0.0, interval(rows, rows_sd)[1])

    @cached_property
    def widths(self) -> Floats:
        """The widths of the counts' 95 % intervals: [groups, cells]."""
        low, high = self.counts
        return high - low

    def error(self, column: int) -> float | None:
        """The mean of a column's model errors over the groups that have rows; None if there are no such groups."""
        return float(self.errors[self.has_rows, column].mean()) if self.has_rows.any() else None

    def width(self, column: int) -> float:
        """The median width of a column's intervals, over groups and cells."""
        return float(np.median(self.widths[:, self.cells(column)]))

    def relative(self, column: int | None = None) -> float | None:
        """How far, in half of the cases, the 95 % interval of a common value reaches to either side, per count."""
        cells = self.cells(column)
        shares, widths = self.shares[:, cells], self.widths[:, cells]
        counts = shares * self.view.totals[:, None]
        common = (shares >= COMMON) & (counts >= 1)
        return float(np.median((widths / 2)[common] / counts[common])) if common.any() else None

    def cells(self, column: int | None) -> slice:
        """The position of a column's cells, or of all."""
        return slice(None) if column is None else slice(self.starts[column], self.starts[column + 1])


def precision_of(estimates: Estimates, parts: Sequence[Part], view: View, kept: dict[int, Errors]) -> Precision:
    """The precision of the tables of some columns; `kept` has what views share, so that it is computed once."""
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
    variance = sum_variances(estimates, asked, view.number, len(view), kept=kept)
    possible = [possible_cells(part, estimates.plan.invariants, estimates.plan.schema) for part in parts]
    sd = np.sqrt(variance) / np.maximum(view.totals, 1.0)[:, None]
    return np.where(np.concatenate(possible), np.minimum(sd, 0.5), 0.0)  # no share varies more
