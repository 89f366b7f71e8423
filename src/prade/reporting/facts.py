"""The numbers of a report: for every level and group the public table, the answers, the estimate and synthetic rows.

    public     the group's distribution according to the public table alone (`prade.reporting.public_priors`)
    noisy      the release's answers about the group: its own, combined with the sums over its descendants
    estimate   what `prade.estimating.levels.estimates` answers: a level above the last has the sums of its groups
    synthetic  the rows in the release's folder
    truth      the true rows, for a page that is not private

    misfit[g, k] = sqrt(mean over cells of z^2)        z = (noisy count - total * share of the cell) / sd of the noise

A perfect fit has a misfit of about 1, which comes from the noise itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group
from prade.core.workers import THIS_THREAD, Workers
from prade.data.display import group_texts
from prade.estimating.levels.answers import RawAnswers
from prade.estimating.levels.benchmarking import added_up
from prade.estimating.levels.kept_estimates import shared_estimates
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.published import variance_of_sums
from prade.queries.parts import Marginal, Part
from prade.reporting.public_priors import PublicPriors

if TYPE_CHECKING:
    from prade.core.progress import Progress
    from prade.data.encoding import Coded
    from prade.estimating.levels.estimates import Estimates


WHOLE, ONE_TABLE = "all groups together", "the whole table"
ALMOST_NONE = 1e-9  # rows that an empty group counts as, where all groups are estimated to be empty


@dataclass(frozen=True, eq=False)
class View:
    """A level as the page shows it, with one row per group in every array; the whole table is a level of one group.

    `shares[series]` (public, estimate, synthetic, and truth if given) are the shares of the cells of all shown parts,
    side by side; `number` is, for each group of the last level, the group of this level that contains it. `total_sd`
    are standard deviations of the numbers of rows. Status and KL are None where no estimate was made.
    """

    name: str
    by: tuple[str, ...]
    labels: list[str]
    number: Ints
    answers: RawAnswers
    totals: Floats
    total_sd: Floats
    shares: dict[str, Floats]
    status: tuple[str | None, ...]
    kl: Sequence[float | None]

    def __len__(self) -> int:
        return len(self.labels)

    def noisy_shares(self, part: Part) -> Floats | None:
        """Noisy counts divided by the noisy number of rows; None for a part that was not measured."""
        if part not in self.answers.parts:
            return None
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

    def misfit(self, view: View, series: str) -> Floats:
        """The distance of the noisy answers from a series, in units of their noise: [groups, parts]."""
        columns = []
        for k, part in enumerate(view.answers.parts):
            expected = view.answers.totals[:, None] * view.shares[series][:, self.at(part)]
            z = (view.answers.counts[k] - expected) / np.sqrt(view.answers.variance[:, k, None])
            columns.append(np.sqrt((z**2).mean(axis=1)))
        return np.stack(columns, axis=1)

    def overall_misfit(self, view: View, series: str) -> Floats:
        """The misfit over all cells of all parts of a group."""
        cells = np.array([part.n_cells for part in view.answers.parts])
        return np.asarray(np.sqrt((self.misfit(view, series) ** 2 @ cells) / cells.sum()))


def facts_of(
    estimates: Estimates,
    synthetic: Coded,
    group: Ints,
    *,
    truth: tuple[Coded, Ints] | None = None,
    workers: Workers = THIS_THREAD,
    progress: Progress | None = None,
) -> Facts:
    """Compute every view. `group` is each synthetic row's group at the last level; `truth` has true rows and theirs.

    `workers` on other processes open the estimates in the release's folder.
    """
    parts, priors, size = shown_parts(estimates), PublicPriors(estimates), len(estimates.totals)
    asked = [cells_of(part, estimates) for part in parts]
    rows = np.maximum(estimates.totals, ALMOST_NONE)
    factors = rows @ priors.factors[-1] / rows.sum()
    shared = None if workers.executor is None else shared_estimates(estimates)
    finest, together = estimates.tables(parts, rows, workers=workers, shared=shared, progress=progress)
    counted = {"synthetic": (synthetic, group)} | ({} if truth is None else {"truth": truth})
    counts = {
        name: (_counts(parts, *each, size), np.bincount(each[1], minlength=size).astype(np.float64))
        for name, each in counted.items()
    }
    masses = priors.masses(asked)
    views = []
    for level in (None, *(k for k, grouping in enumerate(estimates.plan.groupings) if grouping.by)):
        view = _whole(estimates) if level is None else _view(estimates, level)
        view.shares["public"] = (factors[None] if level is None else priors.factors[level]) @ masses
        view.shares["estimate"] = _mean(rows[:, None] * finest, rows, view)
        view.shares.update({name: _mean(*each, view) for name, each in counts.items()})
        views.append(view)
    weights = {"public": priors.weighted(factors), "estimate": together}
    return Facts(parts, tuple(views), weights, {name: coded for name, (coded, _) in counted.items()})


def shown_parts(estimates: Estimates) -> tuple[Part, ...]:
    """Every column by itself, and every part that was measured at any level."""
    schema = estimates.plan.schema
    ones: list[Part] = [Marginal.of(schema, [name]) for name in schema.coded]
    return tuple(dict.fromkeys([*ones, *(part for each in estimates.answers for part in each.parts)]))


def cells_of(part: Part, estimates: Estimates) -> Cells:
    """The cell of every public row in a part, and the number of cells."""
    return part.cells(estimates.plan.schema, estimates.public.prior.codes), part.n_cells


def _counts(parts: Sequence[Part], rows: Coded, group: Ints, groups: int) -> Floats:
    """Numbers of rows in the cells of all parts: [groups, cells]."""
    each = [mass_by_group(group, groups, part.cells(rows.schema, rows.codes), part.n_cells) for part in parts]
    return np.concatenate(each, axis=1)


def _mean(counts: Floats, rows: Floats, view: View) -> Floats:
    """The last level's counts as shares in the groups of a view; 0 in a group without rows."""
    summed, total = (added_up(each, view.number, len(view)) for each in (counts, rows))
    return np.minimum(np.divide(summed, total[:, None], out=np.zeros_like(summed), where=total[:, None] > 0), 1.0)


def _whole(estimates: Estimates) -> View:
    """The whole table: all groups of the first level added up."""
    top = estimates.answers[0]
    variance = top.variance.sum(axis=0, keepdims=True)
    counts = [each.sum(axis=0, keepdims=True) for each in top.counts]
    totals, total_variance = top.totals.sum(keepdims=True), top.total_variance.sum(keepdims=True)
    answers = RawAnswers(top.parts, counts, variance, totals, total_variance)
    first = estimates.levels[0] if not estimates.plan.levels[0].by else None
    number = np.zeros(len(estimates.totals), np.int64)
    status, kl = (first.status, first.kl.tolist()) if first else ((None,), [None])
    rows = _rows_of(estimates, number, 1)
    name = WHOLE if estimates.plan.levels[-1].by else ONE_TABLE
    return View(name, (), [name], number, answers, *rows, {}, status, kl)


def _view(estimates: Estimates, level: int) -> View:
    grouping, made = estimates.plan.groupings[level], estimates.levels[level]
    number = estimates.plan.groupings[-1].above(grouping)
    name, labels = estimates.plan.levels[level].name, group_texts(estimates.plan.schema, grouping)
    rows = _rows_of(estimates, number, len(grouping))
    kl = made.kl.tolist()
    return View(name, grouping.by, labels, number, estimates.answers[level], *rows, {}, made.status, kl)


def _rows_of(estimates: Estimates, number: Ints, groups: int) -> tuple[Floats, Floats]:
    """The numbers of rows of some groups that consist of the last level's, and their standard deviations."""
    everybody, how = np.ones((len(number), 1)), (estimates.totals, number, groups, estimates.plan)
    variance = variance_of_sums(estimates.errors_of_rows, everybody, *how)
    return added_up(estimates.totals, number, groups), np.sqrt(variance[:, 0])
