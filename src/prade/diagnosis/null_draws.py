"""What the differences between answers and predictions would be if the public table were right: simulated draws.

    difference of a cell = answer - number of rows * predicted share

If the public table is right about a column of a group, the group's n private rows are a random sample from a
population, and the m public rows behind the prediction are another one from the same population. The difference then is

    noise  +  (private sample - n share)  -  n (public sample / m - share)

The noise is drawn from its own exact law, on the whole numbers, for every question of the plan, and goes through the
same sums as the answers. Samples are drawn from Poisson distributions, and those of private rows centred, which gives
them the covariance n (diag(p) - p p') of random rows and the skewness of rare cells. With a design effect d (rows that
come in households, say), a sample varies like one of a d-th of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.diagnosis.column_answers import Columns, LevelAnswers
from prade.diagnosis.predictions import Predictions
from prade.planning.plan import Plan
from prade.planning.questions import COARSE, Question

ROUNDING = 1 / 12  # the variance that rounding adds
ONE_ROW = 1.0
HALF_A_ROW = 0.5  # of the public table, added to every cell: a cell without public rows need not be impossible


@dataclass(frozen=True, eq=False)
class Compared:
    """The groups of a level, their numbers of rows, and what is predicted for the cells of their columns."""

    answers: LevelAnswers
    predicted: Predictions
    rows: Floats  # noisy numbers, none below 0

    @property
    def columns(self) -> Columns:
        """The columns that are compared."""
        return self.answers.columns

    def differences(self, counts: Sequence[NDArray[np.int64]]) -> tuple[Floats, Floats]:
        """Answers minus predictions, [groups, cells], and noisy numbers of rows, from the counts of all questions."""
        tables, rows = self.answers.of(counts)
        return tables - rows[:, None] * self.predicted.of_groups(), rows


def drawn_noise(question: Question, shape: tuple[int, int], generator: np.random.Generator) -> NDArray[np.int64]:
    """Noise of a question's law.

    The difference of two geometric numbers, which are exponential ones rounded down, is discrete Laplace noise. Where
    the scale is not small, a rounded normal number of the same variance is as good as discrete Gaussian noise.
    """
    scale = float(question.scale)
    if question.law == "laplace":
        one, other = (np.floor(generator.exponential(scale, shape)) for _ in range(2))
        return (one - other).astype(np.int64)
    if question.scale > COARSE["gaussian"]:
        return np.rint(generator.normal(0.0, np.sqrt(scale**2 - ROUNDING), shape)).astype(np.int64)
    values = np.arange(-64, 65)
    weights = np.exp(-((values / scale) ** 2) / 2)
    return generator.choice(values, size=shape, p=weights / weights.sum())


def noise_of(plan: Plan, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """One draw of the noise of all questions, as `side_by_side` puts their counts."""
    return [
        drawn_noise(question, (len(plan.groupings[question.level]), question.cells), generator)
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
    n = np.maximum(compared.rows, ONE_ROW)
    return np.asarray(effect / np.log1p(compared.predicted.rows_of_groups() / n))


def smoothed(shares: Floats, rows: Floats, columns: Columns) -> Floats:
    """The shares of each source with half a public row added to every cell: [sources, cells]."""
    added = HALF_A_ROW / rows[:, None]
    return np.asarray((shares + added) / (1 + added * columns.spread(columns.sizes[None].astype(float))))
