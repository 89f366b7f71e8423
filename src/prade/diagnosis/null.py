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
number of tests in its level,

    chance of the family = (1 + number of draws whose smallest a is below this a) / (1 + number of draws)

Gamma tails only put statistics of different columns and levels on one scale: whatever their shape, the smallest a of
the answers is exchangeable with that of the draws if the public table is right everywhere (Westfall and Young's min-p).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
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

HALF_A_ROW = 0.5  # of the public table, added to every cell: a cell without public rows need not be impossible
SMALLEST = 1e-9  # mean of a statistic
POOLED = 50  # draws' worth of the mean over a column's groups in the moments of one of them


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns side by side: their names, and where the cells of each start; the last entry is the number of cells."""

    names: tuple[str, ...]
    starts: Ints

    @classmethod
    def of(cls, names: Iterable[str], sizes: Iterable[int]) -> Columns:
        return cls(tuple(names), np.cumsum([0, *sizes]))

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def sums(self, cells: Floats) -> Floats:
        """Sums over the cells of each column: [groups, columns]."""
        return np.add.reduceat(cells, self.starts[:-1], axis=1)

    def spread(self, values: Floats) -> Floats:
        """A value of each column, for each of its cells: [groups, cells]."""
        return np.repeat(values, self.sizes, axis=1)


@dataclass(frozen=True, eq=False)
class _Source:
    """The answers to one question as a level uses them.

    `above` is the level's group of each group of the question; `cells` takes its counts to the cells of the level's
    columns, `rows` to the number of rows, both divided by the variances of what they make.
    """

    question: int
    above: Ints
    cells: csr_array
    rows: Floats


class LevelAnswers:
    """How the columns of a level's groups are answered: `columns` are those that were measured there or below."""

    def __init__(self, plan: Plan, grouping: Grouping, level: int) -> None:
        """The answers about the groups of `grouping`, from the questions of a level and of those below it."""
        self.grouping = grouping
        wanted = [(k, each) for k, each in enumerate(plan.questions) if each.level >= level]
        asked = {name for _, question in wanted for name in _columns(question)}
        names = [name for name in plan.schema.coded if name in asked and plan.schema.size(name) > 1]
        self.columns = Columns.of(names, [plan.schema.size(name) for name in names])
        self._sources = []
        precision, of_rows = np.zeros((len(grouping), len(names))), np.zeros(len(grouping))
        scales = np.zeros_like(precision)
        for number, question in wanted:
            above = plan.groupings[question.level].above(grouping)
            each = 1 / (question.variance * np.bincount(above, minlength=len(grouping)))
            cells, shares, largest = _onto(question, self.columns)
            rows = np.concatenate([np.full(part.n_cells, part.covers / part.n_cells) for part in question.parts])
            self._sources.append(_Source(number, above, cells / question.variance, rows / question.variance))
            precision += each[:, None] * shares
            if not question.law.squared:
                scales = np.maximum(scales, float(question.scale) * each[:, None] * largest)
            of_rows += each * sum(1 / part.n_cells for part in question.parts if part.covers)
        self._below = {source.question: np.bincount(source.above, minlength=len(grouping)) for source in self._sources}
        self.variance = 1 / precision  # of the noise in a cell: [groups, columns]
        self.scale = scales / precision  # the largest scale of a draw of Laplace noise in a cell, 0 without any
        self.rows_variance = np.divide(1.0, of_rows, out=np.full(len(grouping), np.inf), where=of_rows > 0)

    @property
    def answered(self) -> bool:
        """Whether there is anything to compare: a column, and numbers of rows to divide by."""
        return bool(self.columns.names) and bool(np.isfinite(self.rows_variance).all())

    def of(self, counts: Sequence[Counts]) -> tuple[Floats, Floats]:
        """The tables of all columns, [groups, cells], and the numbers of rows; `counts` has an array per question."""
        groups = len(self.grouping)
        tables, rows = np.zeros((groups, int(self.columns.starts[-1]))), np.zeros(groups)
        for source in self._sources:
            summed = added_up(counts[source.question], source.above, groups) / self._below[source.question][:, None]
            tables += (source.cells.T @ summed.T).T
            rows += summed @ source.rows
        return tables * self.columns.spread(self.variance), rows * self.rows_variance


def added_up(counts: Counts, above: Ints, size: int) -> Floats:
    """Counts of groups, [groups, cells], added up to those of the groups that contain them: [size, cells].

    >>> added_up(np.array([[1, 2], [3, 4], [5, 6]]), np.array([1, 0, 1]), 2)
    array([[3., 4.],
           [6., 8.]])
    """
    if np.array_equal(above, np.arange(size)):
        return np.asarray(counts, np.float64)
    order = np.argsort(above, kind="stable")
    return np.add.reduceat(counts[order], np.searchsorted(above[order], np.arange(size)), axis=0).astype(np.float64)


def side_by_side(noisy: Sequence[Sequence[Counts]]) -> list[Counts]:
    """The counts of each question, [groups, cells], all parts side by side."""
    return [np.concatenate(answers, axis=1) for answers in noisy]


def _columns(question: Question) -> set[str]:
    if question.is_total:
        return set()
    return {name for part in question.parts if isinstance(part, Marginal) for name in part.columns}


def _onto(question: Question, columns: Columns) -> tuple[csr_array, Floats, Floats]:
    """The matrix from a question's cells to those of the columns; the sum and the maximum of the weights of its parts.

    A part with f cells for each cell of a column tells the column's cells with f times the variance: its weight is 1/f.
    """
    from scipy.sparse import coo_array

    place, target, value = list[Ints](), list[Ints](), list[Floats]()
    (summed, largest), first = np.zeros((2, len(columns.names))), 0
    for part in question.parts:
        if isinstance(part, Marginal) and not question.is_total:
            codes = np.unravel_index(np.arange(part.n_cells), part.sizes)
            for name, size, code in zip(part.columns, part.sizes, codes, strict=True):
                if name in columns.names:
                    number = columns.names.index(name)
                    place.append(first + np.arange(part.n_cells))
                    target.append(columns.starts[number] + code)
                    value.append(np.full(part.n_cells, size / part.n_cells))
                    summed[number] += size / part.n_cells
                    largest[number] = max(largest[number], size / part.n_cells)
        first += part.n_cells
    shape = (first, int(columns.starts[-1]))
    if not place:
        return coo_array(shape).tocsr(), summed, largest
    entries = (np.concatenate(value), (np.concatenate(place), np.concatenate(target)))
    return coo_array(entries, shape).tocsr(), summed, largest


# ---------------------------------------------------------------------- what the public table predicts


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of a level's groups: each has a `source`, and `shares` and `rows` are those of the sources.

    `shares` has all columns of the schema side by side: [sources, cells].
    """

    source: Ints
    shares: Floats
    rows: Floats
    own: int  # how many groups have public rows of their own

    def of_columns(self, cells: Ints) -> Predictions:
        return replace(self, shares=self.shares[:, cells])

    def of_groups(self) -> Floats:
        """The shares that are predicted for each group: [groups, cells]."""
        return np.asarray(self.shares[self.source])

    def rows_of_groups(self) -> Floats:
        return np.asarray(self.rows[self.source])


def predictions(public: Public, levels: Sequence[Grouping]) -> list[Predictions]:
    schema, size = public.prior.schema, len(public.groups)
    weights, group = public.prior.weights, public.group
    masses = np.concatenate(
        [mass_by_group(group, size, public.prior.codes[n], schema.size(n), weights) for n in schema.coded], axis=1
    )
    squares = mass_per_cell(group, weights**2, size)
    total = public.group_weights
    above = Predictions(
        np.zeros(1, np.int64),
        masses.sum(axis=0, keepdims=True) / total.sum(),
        total.sum(keepdims=True) ** 2 / squares.sum(),
        0,
    )
    found: list[Predictions] = []
    for grouping in levels:
        parents = np.zeros(len(grouping), np.int64) if not found else grouping.above(levels[len(found) - 1])
        above = _of_level(public, grouping, parents, above, (masses, total, squares))
        found.append(above)
    return found


def _of_level(
    public: Public, grouping: Grouping, parents: Ints, above: Predictions, sums: tuple[Floats, Floats, Floats]
) -> Predictions:
    """The predictions of a level: from own rows where there are any, otherwise the parent's of `above`."""
    inherited = above.source[parents]
    if not grouping.by:
        return Predictions(inherited, above.shares, above.rows, 0)
    recurring = RecurringGroups.of(public.groups, grouping)
    masses, total, squares = (recurring.sums(each) for each in sums)
    mine = np.flatnonzero(recurring.recurs & (total > 0))
    source = inherited.copy()
    source[mine] = len(above.rows) + np.arange(len(mine))
    shares = np.concatenate([above.shares, masses[mine] / total[mine, None]])
    rows = np.concatenate([above.rows, total[mine] ** 2 / squares[mine]])
    used, source = np.unique(source, return_inverse=True)
    return Predictions(source.reshape(-1), shares[used], rows[used], len(mine))


# ---------------------------------------------------------------------- draws of the null


@dataclass(frozen=True, eq=False)
class Compared:
    """The groups of a level, their numbers of rows, and what is predicted for the cells of their columns."""

    answers: LevelAnswers
    predicted: Predictions
    rows: Floats  # noisy numbers, none below 0

    @property
    def columns(self) -> Columns:
        return self.answers.columns

    def differences(self, counts: Sequence[NDArray[np.int64]]) -> tuple[Floats, Floats]:
        """Answers minus predictions, [groups, cells], and noisy numbers of rows, from the counts of all questions."""
        tables, rows = self.answers.of(counts)
        return tables - rows[:, None] * self.predicted.of_groups(), rows


def noise_of(plan: Plan, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """One draw of the noise of all questions, as `side_by_side` puts their counts."""
    return [
        question.law.simulated(float(question.scale), (len(plan.groupings[question.level]), question.cells), generator)
        for question in plan.questions
    ]


def sampling_of(compared: Compared, effect: float, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """One draw of what sampling adds to the differences of a level, and of what would be taken for its variance.

    Both are [groups, cells]; `effect` is the design effect. The variance comes from the drawn public rows, as that of
    the answers comes from the public rows there are: a cell that these lack by chance is taken to be rare in both.
    """
    predicted, columns = compared.predicted, compared.columns
    likely = smoothed(predicted.shares, predicted.rows, columns)
    public: Floats = effect * generator.poisson(predicted.rows[:, None] * likely / effect).astype(np.float64)
    total = columns.spread(columns.sums(public))
    public = np.divide(public, total, out=likely.copy(), where=total > 0)
    expected = compared.rows[:, None] * likely[predicted.source]
    private: Floats = effect * generator.poisson(expected / effect).astype(np.float64) - expected
    private -= likely[predicted.source] * columns.spread(columns.sums(private))
    moved = compared.rows[:, None] * (public - likely)[predicted.source]
    return private - moved, sampling_variance(compared, public, effect)


def sampling_variance(compared: Compared, shares: Floats, effect: float) -> Floats:
    """The variance of differences by sampling, if the sources have these shares: effect * n p (1 - p) (1 + n / m)."""
    predicted = compared.predicted
    p = smoothed(shares, predicted.rows, compared.columns)[predicted.source]
    n, m = compared.rows[:, None], predicted.rows_of_groups()[:, None]
    return np.asarray(effect * n * p * (1 - p) * (1 + n / m))


def sampling_scale(compared: Compared, effect: float) -> Floats:
    """The scale of the exponential tail of differences by sampling, in rows: effect / log(1 + m / n), for each group.

    If a rare cell has t rows in both samples together, all of them are private with the chance (n / (n + m))^t.
    """
    n = np.maximum(compared.rows, 1.0)
    return np.asarray(effect / np.log1p(compared.predicted.rows_of_groups() / n))


def smoothed(shares: Floats, rows: Floats, columns: Columns) -> Floats:
    """The shares of each source with half a public row added to every cell: [sources, cells]."""
    added = HALF_A_ROW / rows[:, None]
    return np.asarray((shares + added) / (1 + added * columns.spread(columns.sizes[None].astype(float))))


# ---------------------------------------------------------------------- chances of many statistics at once


@dataclass
class Moments:
    draws: int = 0
    sums: list[Floats] = field(default_factory=list)
    squares: list[Floats] = field(default_factory=list)

    def add(self, statistics: Sequence[Floats]) -> None:
        if not self.draws:
            self.sums = [np.zeros(each.shape) for each in statistics]
            self.squares = [np.zeros(each.shape) for each in statistics]
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
        mean, square = sums / draws, squares / draws
        own = draws / (draws + POOLED) if len(sums) > 1 else 1.0
        mean = np.maximum(own * mean + (1 - own) * mean.mean(axis=0), SMALLEST)  # 0 if there is hardly any noise
        variance = own * (square - (sums / draws) ** 2) + (1 - own) * (square - (sums / draws) ** 2).mean(axis=0)
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
    """The family's chances, given the smallest chance of each draw.

    >>> of_the_family(np.array([0.001, 0.3, 5.0]), np.array([0.2, 0.4, 0.1, 0.7]))
    array([0.2, 0.6, 1. ])
    """
    below = np.searchsorted(np.sort(drawn), chances, side="right")
    return np.asarray((1 + below) / (1 + len(drawn)))


def lowest_allowed(drawn: Floats, rate: float) -> float:
    """A chance that the smallest chance of one more draw is below with at most this rate."""
    place = int(rate * (1 + len(drawn)) + 1e-9)
    return float(np.sort(drawn)[place - 1]) if place else 0.0
