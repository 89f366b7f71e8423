"""The table of a column from all marginals that have it, at its level and below, against numbers worked out by hand."""

import numpy as np
import pytest

from prade import Ask, Level, Workload
from prade.diagnosis.null import LevelAnswers, Predictions, side_by_side
from worlds.plans import plan_of
from worlds.releases import answered
from worlds.survey import SCHEMA, THREE_PLACES


def tables(*columns):
    return Workload.marginals(SCHEMA, columns)


PLAN = plan_of(
    SCHEMA,
    Level("STATE", tables("SEX"), total=0),
    Level("PLACE", [Ask(tables("SEX", ("SEX", "WORK")), 3), Ask(tables("AGE"), 1)], total=1),
    groups=THREE_PLACES,
    budget=2,
)


def counts(seed=0):
    generator = np.random.default_rng(seed)
    return answered(PLAN, lambda question, part, groups: generator.integers(0, 99, (groups, part.n_cells))).noisy


def test_a_column_is_the_most_precise_mean_of_all_its_tables():
    noisy = counts()
    state, total, pairs, _ = noisy
    predicted = Predictions(np.zeros(2, int), np.zeros((1, sum(SCHEMA.shape(SCHEMA.coded)))), np.ones(1))
    answers = LevelAnswers(PLAN, PLAN.groupings[0], 0, predicted, side_by_side(noisy), 1.0)
    assert answers.columns.names == ("AGE", "SEX", "WORK")
    found, rows = answers.of(answers.counts)
    of_state, of_total, of_pairs, of_age = (question.variance for question in PLAN.questions)
    sex, with_work = pairs[0], pairs[1].reshape(3, 2, 3).sum(axis=2)
    sums = [state[0][0], sex[:2].sum(axis=0), with_work[:2].sum(axis=0)]  # the first two places are state 1's
    variances = np.array([of_state, 2 * of_pairs, 2 * 3 * of_pairs])
    expected = sum(each / v for each, v in zip(sums, variances, strict=True)) / (1 / variances).sum()
    number = answers.columns.starts[1]
    assert found[0, number : number + 2] == pytest.approx(expected)
    assert answers.variance[0, 1] == pytest.approx(1 / (1 / variances).sum())
    totals = [state[0][0].sum(), total[0][:2].sum(), sex[:2].sum(), with_work[:2].sum(), noisy[3][0][:2].sum()]
    variances = np.array([2 * of_state, 2 * of_total, 4 * of_pairs, 12 * of_pairs, 8 * of_age])
    assert rows[0] == pytest.approx((totals / variances).sum() / (1 / variances).sum())
    assert answers.rows_variance[0] == pytest.approx(1 / (1 / variances).sum())
