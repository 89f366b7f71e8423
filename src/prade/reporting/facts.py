"""The numbers of a report: for every level and group the prior, the noisy answers, the estimate and the synthetic rows.

    prior      the group's distribution according to the public table alone: from its own public rows and its parent
    noisy      the release's answers about the group: its own, combined with the sums over its descendants
    estimate   the group's estimated distribution (`prade.estimating.levels.estimates`)
    synthetic  the rows in the release's folder
    truth      the true rows, for a page that is not private

    misfit[g, k] = sqrt(mean over cells of z^2)        z = (noisy count - total * share of the cell) / sd of the noise

A perfect fit has a misfit of about 1, which comes from the noise itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, Ints, mass_by_group, mass_per_cell
from prade.estimating.layout import Layout
from prade.estimating.levels.answers import RawAnswers
from prade.queries.marginal import Marginal
from prade.queries.parts import Part
from prade.queries.workload import Workload

if TYPE_CHECKING:
    from prade.core.progress import Progress
    from prade.data.encoding import Coded
    from prade.estimating.levels.estimates import Estimates


WHOLE = "all groups together"


@dataclass(frozen=True, eq=False)
class View:
    """A level as the page shows it, with one row per group in every array; the whole table is a level of one group.

    `shares[series]` (prior, estimate, synthetic, and truth if given) are the shares of the cells of all shown parts,
    side by side; `number` is, for each group of the last level, the group of this level that contains it. Status and KL
    are None where no estimate was made.
    """

    name: str
    by: tuple[str, ...]
    labels: list[str]
    number: Ints
    answers: RawAnswers
    totals: Floats
    shares: dict[str, Floats]
    status: tuple[str | None, ...]
    kl: Sequence[float | None]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def total_sd(self) -> Floats:
        """The standard deviation of the noise in each group's number of rows."""
        return np.sqrt(self.answers.total_variance)

    def noisy_shares(self, part: Part) -> Floats | None:
        """Noisy counts divided by the noisy number of rows; None for a part that was not measured."""
        if part not in self.answers.parts:
            return None
        return np.asarray(self.answers.counts[self.answers.parts.index(part)] / self._rows)

    @property
    def _rows(self) -> Floats:
        return np.maximum(self.answers.totals, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class Facts:
    """All views, the whole table first; a layout of the shown parts; and what is needed for further tables."""

    layout: Layout
    views: tuple[View, ...]
    weights: dict[str, Floats]  # weights of the support's rows in the whole table, by prior and estimate
    rows: dict[str, Coded]  # the synthetic rows, and the true ones if given

    def at(self, part: Part) -> slice:
        """The position of a part's cells among the shares of a view."""
        return self.layout.part(self.layout.workload.parts.index(part))

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

    def whole_pair(self, pair: Marginal) -> dict[str, Floats]:
        """The two-way table of a pair of columns for the whole table, by series."""
        joint = self.layout.prior
        cells = pair.cells(joint.schema, joint.codes)
        shares = {name: mass_per_cell(cells, weights, pair.n_cells) for name, weights in self.weights.items()}
        for name, rows in self.rows.items():
            one = np.zeros(len(rows), np.int64)
            shares[name] = _counted(pair, rows, one, 1)[0]
        return shares


def facts_of(
    estimates: Estimates,
    synthetic: Coded,
    group: Ints,
    *,
    truth: tuple[Coded, Ints] | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Facts:
    """Compute every view. `group` is each synthetic row's group at the last level; `truth` has true rows and theirs."""
    answers = estimates.answers
    layout = Layout(estimates.public.prior, Workload(estimates.plan.schema, shown_parts(estimates, answers)))
    priors = PublicPriors(estimates)
    last = len(answers) - 1
    weights = {name: np.zeros(len(estimates.public)) for name in ("prior", "estimate")}
    per_group: dict[str, list[Floats]] = {name: [] for name in weights}

    def masses(each: Floats) -> Floats:
        return layout.masses_of(layout.collapsed(each))

    def task(g: int, estimate: Floats) -> dict[str, tuple[Floats, Floats]]:
        prior = priors.weights(last, g)
        return {"prior": (prior, masses(prior)), "estimate": (estimate, masses(estimate))}

    for g, made in enumerate(estimates.map(task, threads)):
        for name, (each, cells) in made.items():
            weights[name] += max(estimates.totals[g], 1e-9) * each  # all groups may be estimated to be empty
            per_group[name].append(cells)
        if progress is not None:
            progress("comparing groups", g + 1, len(estimates.totals))
    for name in weights:
        weights[name] /= weights[name].sum()
    finest = {name: np.stack(rows) for name, rows in per_group.items()}

    views = [_whole(estimates, answers[0], {name: masses(w)[None] for name, w in weights.items()})]
    for level, grouping in enumerate(estimates.plan.groupings):
        if not grouping.by:
            continue
        shares = finest
        if level < last:
            groups = range(len(grouping))
            shares = {
                "prior": np.stack([masses(priors.weights(level, g)) for g in groups]),
                "estimate": np.stack([masses(estimates.weights(level, g)) for g in groups]),
            }
        views.append(_view(estimates, level, answers[level], shares))
    counted = {"synthetic": (synthetic, group)} | ({} if truth is None else {"truth": truth})
    for view in views:
        for name, (rows, number) in counted.items():
            view.shares[name] = counted_shares(layout, rows, view.number[number], len(view))
    return Facts(layout, tuple(views), weights, {name: rows for name, (rows, _) in counted.items()})


def shown_parts(estimates: Estimates, answers: Sequence[RawAnswers]) -> list[Part]:
    """Every column by itself, and every part that was measured at any level."""
    schema = estimates.plan.schema
    ones: list[Part] = [Marginal.of(schema, [name]) for name in schema.coded]
    return list(dict.fromkeys([*ones, *(part for each in answers for part in each.parts)]))


def all_pairs(columns: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs of columns, in order."""
    return list(combinations(columns, 2))


def counted_shares(layout: Layout, rows: Coded, group: Ints, groups: int) -> Floats:
    """The cells' shares of the rows of each group; 0 in a group without rows."""
    return np.concatenate([_counted(part, rows, group, groups) for part in layout.workload], axis=1)


def _counted(part: Part, rows: Coded, group: Ints, groups: int) -> Floats:
    number = np.maximum(np.bincount(group, minlength=groups), 1)[:, None]
    return np.asarray(mass_by_group(group, groups, part.cells(rows.schema, rows.codes), part.n_cells) / number)


class PublicPriors:
    """Each group's distribution according to the public table alone: its prior, derived from its parent's prior."""

    def __init__(self, estimates: Estimates) -> None:
        self._levels = estimates.priors
        self._public = estimates.public.prior.weights
        self._parents: dict[tuple[int, int], Floats] = {}

    def weights(self, level: int, group: int) -> Floats:
        """The weights of the public rows in a group's prior."""
        if level == 0:
            return self._levels[0].weights(group, self._public)
        above = (level - 1, int(self._levels[level].parent_of[group]))
        if above not in self._parents:
            self._parents[above] = self.weights(*above)
        return self._levels[level].weights(group, self._parents[above])


def _whole(estimates: Estimates, top: RawAnswers, shares: dict[str, Floats]) -> View:
    """The whole table: all groups of the first level added up."""
    variance = top.variance.sum(axis=0, keepdims=True)
    counts = [each.sum(axis=0, keepdims=True) for each in top.counts]
    totals, total_variance = top.totals.sum(keepdims=True), top.total_variance.sum(keepdims=True)
    answers = RawAnswers(top.parts, counts, variance, totals, total_variance)
    first = estimates.levels[0] if not estimates.plan.levels[0].by else None
    number = np.zeros(len(estimates.totals), np.int64)
    rows = estimates.totals.sum(keepdims=True)
    status, kl = (first.status, first.kl.tolist()) if first else ((None,), [None])
    return View(WHOLE, (), [WHOLE], number, answers, rows, shares, status, kl)


def _view(estimates: Estimates, level: int, answers: RawAnswers, shares: dict[str, Floats]) -> View:
    grouping = estimates.plan.groupings[level]
    number = estimates.plan.groupings[-1].above(grouping)
    made = estimates.levels[level]
    name = estimates.plan.levels[level].name
    return View(
        name, grouping.by, grouping.labels(), number, answers, made.totals, shares, made.status, made.kl.tolist()
    )
