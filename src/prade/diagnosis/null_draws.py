"""What the differences between answers and predictions would be if the public table were right: simulated draws.

    difference of a cell = answer - number of rows * predicted share

If the public table is right about a column of a group, the group's n private rows are a random sample from a
population, and the m public rows behind the prediction are another one from the same population. The difference then is

    noise  +  (private sample - n share)  -  n (public sample / m - share)

The noise is drawn from its own exact law, on the whole numbers, for every question of the plan, and goes through the
same sums as the answers. Samples are drawn from Poisson distributions and centred, which gives them the covariance
n (diag(p) - p p') of random rows and the skewness of rare cells. With a design effect d (rows that come in households,
say), a sample varies like one of a d-th of its rows.
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
        """Answers minus predictions, [groups, cells], and the noisy numbers of rows, for the counts of all questions."""
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


def sampling_of(compared: Compared, effect: float, generator: np.random.Generator) -> Floats:
    """One draw of what sampling adds to the differences of a level: [groups, cells]; `effect` is the design effect."""
    predicted, columns = compared.predicted, compared.columns
    likely = smoothed(predicted, columns)
    rows = compared.rows[:, None]
    private = _centred(rows * likely[predicted.source], likely[predicted.source], effect, columns, generator)
    of_source = predicted.rows[:, None]
    public = _centred(of_source * likely, likely, effect, columns, generator) / of_source
    return np.asarray(private - rows * public[predicted.source])


def sampling_variance(compared: Compared, effect: float) -> Floats:
    """The variance of `sampling_of`: effect * n p (1 - p) (1 + n / m)."""
    p = smoothed(compared.predicted, compared.columns)[compared.predicted.source]
    n, m = compared.rows[:, None], compared.predicted.rows_of_groups()[:, None]
    return np.asarray(effect * n * p * (1 - p) * (1 + n / m))


def smoothed(predicted: Predictions, columns: Columns) -> Floats:
    """The predicted shares of each source with half a public row added to every cell."""
    added = HALF_A_ROW / predicted.rows[:, None]
    return np.asarray((predicted.shares + added) / (1 + added * columns.spread(columns.sizes[None].astype(float))))


def _centred(
    expected: Floats, shares: Floats, effect: float, columns: Columns, generator: np.random.Generator
) -> Floats:
    """Samples minus what is expected of them, such that the cells of each column add up to 0."""
    drawn = effect * generator.poisson(expected / effect) - expected
    return np.asarray(drawn - shares * columns.spread(columns.sums(drawn)))
