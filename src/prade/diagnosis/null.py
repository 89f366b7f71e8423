"""Answers about single columns, what public rows predict for them, and the law of the difference under the null.

*Answers.* A column's table is a sum over the cells of every marginal that has the column, in the groups of the level
and in those below them. All such sums are averaged with their inverse variances as weights, and so are all sums that
equal the number of rows. The answers are a linear function of the counts, which also tells what pure noise becomes.

*Predictions.* A group's are the shares among its own public rows if it recurs, otherwise those of the group above it,
and at the top those of the whole public table. Of weighted rows, Kish's effective sample size counts.

*The null.* If the public table is right about a column of a group, its n private rows are a random sample, and the m
public rows behind the prediction are another one from the same population. Then

    answer - number of rows * predicted share  =  noise  +  (private sample - n share)  -  n (public sample / m - share)

The noise is drawn from its own exact law. Samples are drawn from Poisson distributions, and those of private rows
centred, which gives them the covariance n (diag(p) - p p') of random rows and the skewness of rare cells. With a design
effect d (rows that come in households, say), a sample varies like one of a d-th of its rows.

*The family.* With a = chance that a gamma variable with a statistic's null mean and variance exceeds it, times the
number of tests in its level, the chance of the family is the rank of a among the smallest a of the draws. Gamma tails
only put statistics of different columns and levels on one scale (Westfall and Young's min-p).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_by_group, mass_per_cell
from prade.data.declare.groups import Grouping, RecurringGroups
from prade.data.public.public import Public
from prade.planning.plan import Plan
from prade.planning.questions import Question
from prade.queries.parts import Marginal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Counts = NDArray[Any]
Noisy = Sequence[Sequence[Counts]]  # an array for each part of each question

NO_SCALE = 1e-6  # of a standard deviation: a smaller scale changes nothing
HALF_A_ROW = 0.5  # of the public table, added to every cell: a cell without public rows need not be impossible
SMALLEST = 1e-9  # mean of a statistic
POOLED = 50  # draws' worth of the mean over a column's groups in the moments of one of them


class Columns:
    """Columns side by side: their names, and where the cells of each start; the last entry is the number of cells."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int]) -> None:
        self.names, self.sizes = tuple(names), np.array(sizes, np.int64)
        self.starts = np.cumsum([0, *sizes])

    def sums(self, cells: Floats) -> Floats:
        """Sums over the cells of each column: [groups, columns]."""
        return np.add.reduceat(cells, self.starts[:-1], axis=1)

    def spread(self, values: Floats) -> Floats:
        """A value of each column, for each of its cells: [groups, cells]."""
        return np.repeat(values, self.sizes, axis=1)


class LevelAnswers:
    """The answers about the columns of a level's groups, beside what is predicted for these.

    `columns` are those that were measured at the level or below. Counts have an array per question of the plan.
    """

    def __init__(
        self, plan: Plan, grouping: Grouping, level: int, prior: Predictions, counts: Sequence[Counts], effect: float
    ) -> None:
        """`prior` is for all columns of the schema, and `effect` that of the design."""
        self.grouping, self.counts, self.effect = grouping, counts, effect
        wanted = [(k, each) for k, each in enumerate(plan.questions) if each.level >= level]
        parts = [part for _, question in wanted if not question.is_total for part in question.parts]
        asked = {name for part in parts if isinstance(part, Marginal) for name in part.columns}
        names = [name for name in plan.schema.coded if name in asked and plan.schema.size(name) > 1]
        self.columns = Columns(names, plan.schema.shape(names))
        own = np.repeat([name in names for name in plan.schema.coded], plan.schema.shape(plan.schema.coded))
        self.predicted = replace(prior, shares=prior.shares[:, own])
        self.expected = self.predicted.shares[self.predicted.source]  # shares: [groups, cells]
        self.behind = self.predicted.rows[self.predicted.source]  # public rows
        # For each question its number, the group here of each of its groups, and how many of them each has; what takes
        # its counts to the cells of the columns, and to numbers of rows, divided by the variances of what these make.
        self._sources: list[tuple[int, Ints, Ints, csr_array, Floats]] = []
        precision, of_rows = np.zeros((len(grouping), len(names))), np.zeros(len(grouping))
        scales = np.zeros_like(precision)
        for number, question in wanted:
            above = plan.groupings[question.level].above(grouping)
            below = np.bincount(above, minlength=len(grouping))
            each = 1 / (question.variance * below)
            cells, shares, largest = _onto(question, self.columns)
            rows = np.concatenate([np.full(part.n_cells, part.covers / part.n_cells) for part in question.parts])
            self._sources.append((number, above, below, cells / question.variance, rows / question.variance))
            precision += each[:, None] * shares
            if not question.law.squared:
                scales = np.maximum(scales, float(question.scale) * each[:, None] * largest)
            of_rows += each * sum(1 / part.n_cells for part in question.parts if part.covers)
        self.variance = 1 / precision  # of the noise in a cell: [groups, columns]
        self.largest_scale = scales / precision  # of a draw of Laplace noise in a cell, 0 without any
        self.rows_variance = np.divide(1.0, of_rows, out=np.full(len(grouping), np.inf), where=of_rows > 0)

    @property
    def answered(self) -> bool:
        """Whether there is anything to compare: a column, and numbers of rows to divide by."""
        return bool(self.columns.names) and bool(np.isfinite(self.rows_variance).all())

    def of(self, counts: Sequence[Counts]) -> tuple[Floats, Floats]:
        """The tables of all columns, [groups, cells], and the numbers of rows."""
        groups = len(self.grouping)
        tables, rows = np.zeros((groups, int(self.columns.starts[-1]))), np.zeros(groups)
        for question, above, below, cells, of_rows in self._sources:
            summed = np.zeros((groups, counts[question].shape[1]))
            np.add.at(summed, above, counts[question])
            summed /= below[:, None]
            tables += (cells.T @ summed.T).T
            rows += summed @ of_rows
        return tables * self.columns.spread(self.variance), rows * self.rows_variance

    def differences(self, counts: Sequence[Counts]) -> tuple[Floats, Floats]:
        """Answers minus predictions, [groups, cells], and noisy numbers of rows."""
        tables, rows = self.of(counts)
        return tables - rows[:, None] * self.expected, rows

    @cached_property
    def rows(self) -> Floats:
        """The groups' noisy numbers of rows, none below 0."""
        return np.maximum(self.of(self.counts)[1], 0.0)

    def sampling_of(self, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """One draw of what sampling adds to the differences, and of what would be taken for its variance.

        Both are [groups, cells]. The variance comes from the drawn public rows, as that of the answers comes from the
        public rows there are: a cell that these lack by chance is taken to be rare in both.
        """
        predicted, columns, effect = self.predicted, self.columns, self.effect
        likely = self._smoothed(predicted.shares)
        public: Floats = effect * generator.poisson(predicted.rows[:, None] * likely / effect).astype(np.float64)
        total = columns.spread(columns.sums(public))
        public = np.divide(public, total, out=likely.copy(), where=total > 0)
        expected = self.rows[:, None] * likely[predicted.source]
        private: Floats = effect * generator.poisson(expected / effect).astype(np.float64) - expected
        private -= likely[predicted.source] * columns.spread(columns.sums(private))
        moved = self.rows[:, None] * (public - likely)[predicted.source]
        return private - moved, self.sampling_variance(public)

    def sampling_variance(self, shares: Floats) -> Floats:
        """The variance of differences by sampling, if the sources have these shares: effect n p (1 - p) (1 + n / m)."""
        p = self._smoothed(shares)[self.predicted.source]
        n, m = self.rows[:, None], self.behind[:, None]
        return np.asarray(self.effect * n * p * (1 - p) * (1 + n / m))

    @cached_property
    def scale(self) -> Floats:
        """The scale of the exponential tail of differences: of the noise, or of sampling, effect / log(1 + m / n).

        If a rare cell has t rows in both samples together, all of them are private with the chance (n / (n + m))^t.
        """
        of_sampling = self.effect / np.log1p(self.behind / np.maximum(self.rows, 1.0))
        return np.maximum(self.columns.spread(self.largest_scale), of_sampling[:, None])

    @cached_property
    def noise_variance(self) -> Floats:
        """Of a difference's noise, as if the table and the number of rows had noise of their own."""
        of_rows = self.expected**2 * self.rows_variance[:, None]
        return np.asarray(self.columns.spread(self.variance) + of_rows)

    def statistics(self, differences: Floats, of_sampling: Floats) -> Floats:
        """The statistic of every column and group, given the variance that sampling is taken to have."""
        deviation = np.sqrt(self.noise_variance + of_sampling)
        bend = deviation / np.maximum(self.scale, NO_SCALE * deviation)
        scaled = np.abs(differences) / deviation
        return self.columns.sums(np.where(scaled <= bend, scaled**2, bend * (2 * scaled - bend)))

    def _smoothed(self, shares: Floats) -> Floats:
        """The shares of each source with half a public row added to every cell: [sources, cells]."""
        added = HALF_A_ROW / self.predicted.rows[:, None]
        sizes = self.columns.spread(self.columns.sizes[None].astype(float))
        return np.asarray((shares + added) / (1 + added * sizes))


def _onto(question: Question, columns: Columns) -> tuple[csr_array, Floats, Floats]:
    """The matrix from a question's cells to those of the columns; the sum and the maximum of the weights of its parts.

    A part with f cells for each cell of a column tells the column's cells with f times the variance: its weight is 1/f.
    """
    from scipy.sparse import coo_array

    place, target, value = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    (summed, largest), first = np.zeros((2, len(columns.names))), 0
    for part in question.parts:
        if isinstance(part, Marginal) and not question.is_total:
            codes = np.unravel_index(np.arange(part.n_cells), part.sizes)
            for name, size, code in zip(part.columns, part.sizes, codes, strict=True):
                if name in columns.names:
                    number, weight = columns.names.index(name), size / part.n_cells
                    place.append(first + np.arange(part.n_cells))
                    target.append(columns.starts[number] + code)
                    value.append(np.full(part.n_cells, weight))
                    summed[number] += weight
                    largest[number] = max(largest[number], weight)
        first += part.n_cells
    entries = (np.concatenate(value), (np.concatenate(place), np.concatenate(target)))
    return coo_array(entries, (first, int(columns.starts[-1]))).tocsr(), summed, largest


# ---------------------------------------------------------------------- what the public table predicts


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a level's groups: each has a `source`, and `shares` and `rows` are those of the sources.

    `shares` has columns of the schema side by side: [sources, cells].
    """

    source: Ints
    shares: Floats
    rows: Floats


def predictions(public: Public, levels: Sequence[Grouping]) -> list[Predictions]:
    """For each level: from own rows where there are any, otherwise the parent's."""
    schema, size = public.prior.schema, len(public.groups)
    weights, group = public.prior.weights, public.group
    each_column = [mass_by_group(group, size, public.prior.codes[n], schema.size(n), weights) for n in schema.coded]
    masses, total = np.concatenate(each_column, axis=1), public.group_weights
    squares = mass_per_cell(group, weights**2, size)
    everybody = masses.sum(axis=0, keepdims=True) / total.sum(), total.sum(keepdims=True) ** 2 / squares.sum()
    found = [Predictions(np.zeros(1, np.int64), *everybody)]
    for k, grouping in enumerate(levels):
        above, parents = found[-1], grouping.above(levels[k - 1]) if k else np.zeros(len(grouping), np.int64)
        source = above.source[parents]
        if not grouping.by:
            found.append(replace(above, source=source))
            continue
        recurring = RecurringGroups.of(public.groups, grouping)
        own_masses, own_total, own_squares = (recurring.sums(each) for each in (masses, total, squares))
        mine = np.flatnonzero(recurring.recurs & (own_total > 0))
        source[mine] = len(above.rows) + np.arange(len(mine))
        shares = np.concatenate([above.shares, own_masses[mine] / own_total[mine, None]])
        rows = np.concatenate([above.rows, own_total[mine] ** 2 / own_squares[mine]])
        used, source = np.unique(source, return_inverse=True)
        found.append(Predictions(source.reshape(-1), shares[used], rows[used]))
    return found[1:]


def noise_of(plan: Plan, generator: np.random.Generator) -> list[Counts]:
    """One draw of the noise of all questions: for each, that of all its parts side by side."""
    return [
        question.law.simulated(float(question.scale), (len(plan.groupings[question.level]), question.cells), generator)
        for question in plan.questions
    ]


# ---------------------------------------------------------------------- chances of many statistics at once


@dataclass
class Moments:
    """Sums over draws of the statistics of each level."""

    draws: int = 0
    sums: list[Floats] = field(default_factory=list)
    squares: list[Floats] = field(default_factory=list)

    def add(self, statistics: Sequence[Floats]) -> None:
        if not self.draws:
            self.sums, self.squares = ([np.zeros(each.shape) for each in statistics] for _ in range(2))
        self.draws += 1
        for total, square, each in zip(self.sums, self.squares, statistics, strict=True):
            total += each
            square += each**2

    def tails(self) -> list[Tail]:
        return [Tail.of(*each, self.draws) for each in zip(self.sums, self.squares, strict=True)]


@dataclass(frozen=True, eq=False)
class Tail:
    """Gamma distributions of a level's statistics, [groups, columns], by their shapes and means."""

    shape: Floats
    mean: Floats

    @classmethod
    def of(cls, sums: Floats, squares: Floats, draws: int) -> Tail:
        """From sums over draws; the moments of a group are drawn towards those of all groups."""
        mean, variance = sums / draws, squares / draws - (sums / draws) ** 2
        own = draws / (draws + POOLED) if len(sums) > 1 else 1.0
        mean, variance = (own * each + (1 - own) * each.mean(axis=0) for each in (mean, variance))
        mean = np.maximum(mean, SMALLEST)  # 0 if there is hardly any noise
        return cls(mean**2 / np.maximum(variance, 1e-12 * mean**2), mean)

    def chances(self, statistics: Floats) -> Floats:
        """The chance that each statistic is exceeded, times the number of statistics."""
        from scipy.special import gammaincc

        return np.asarray(statistics.size * gammaincc(self.shape, self.shape * statistics / self.mean))

    def limits(self, chance: float) -> Floats:
        """The statistics that have this `chances`."""
        from scipy.special import gammainccinv

        return np.asarray(self.mean / self.shape * gammainccinv(self.shape, min(chance / self.mean.size, 1.0)))


def smallest(tails: Iterable[Tail], statistics: Iterable[Floats]) -> float:
    return min(float(tail.chances(each).min()) for tail, each in zip(tails, statistics, strict=True))


def of_the_family(chances: Floats, drawn: Floats) -> Floats:
    """(1 + number of draws whose smallest chance is at most this) / (1 + number of draws).

    >>> of_the_family(np.array([0.001, 0.3, 5.0]), np.array([0.2, 0.4, 0.1, 0.7]))
    array([0.2, 0.6, 1. ])
    """
    below = np.searchsorted(np.sort(drawn), chances, side="right")
    return np.asarray((1 + below) / (1 + len(drawn)))
