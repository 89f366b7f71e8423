"""What a diagnosis compares: tables of a column, predictions of public rows, and chances, against numbers by hand."""

import numpy as np
import pytest

from prade import Ask, Column, Level, Schema, Workload
from prade.data.declare.groups import Groups
from prade.data.public.public import Public
from prade.diagnosis.null import LevelAnswers, Moments, Predictions, Tail, predictions
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
    answers = LevelAnswers(PLAN, PLAN.groupings[0], 0, predicted, [np.concatenate(each, axis=1) for each in noisy], 1.0)
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


def test_gamma_variables_have_their_own_tails():
    generator = np.random.default_rng(1)
    moments = Moments()
    for _ in range(4_000):
        moments.add([generator.gamma([[2.0, 9.0]], 3.0)])
    (tail,) = moments.tails()
    assert tail.mean[0] == pytest.approx([6, 27], rel=0.05)
    assert tail.chances(np.array([[18.0, 60.0]]))[0] == pytest.approx([2 * 0.01735, 2 * 0.00209], rel=0.3)


def test_limits_are_the_statistics_of_a_chance():
    tail = Tail(np.array([[2.0, 5.0], [1.0, 30.0]]), np.array([[3.0, 1.0], [2.0, 7.0]]))
    assert tail.chances(tail.limits(0.01)) == pytest.approx(np.full((2, 2), 0.01))
    without_noise = Tail.of(np.zeros((2, 2)), np.zeros((2, 2)), 2)
    assert (without_noise.chances(np.zeros((2, 2))) >= 1).all()


PLACED = Schema([Column("STATE", "group"), Column("PLACE", "group"), Column("SEX", "categorical", values=[1, 2])])
PUBLIC = {
    "STATE": [1, 1, 1, 1, 9, 9],
    "PLACE": ["p", "p", "p", "q", "x", "x"],
    "SEX": [1, 1, 2, 2, 1, 2],
    "W": [1.0, 1.0, 2.0, 4.0, 1.0, 1.0],
}
LISTED = Groups.of({"STATE": [1, 1, 2], "PLACE": ["p", "new", "far"]})


def test_the_nearest_public_rows_predict():
    public = Public.of(PLACED, PUBLIC, ["STATE", "PLACE"], weight="W")
    whole, state, place = predictions(public, [LISTED.level(by) for by in ((), ["STATE"], ["STATE", "PLACE"])])
    np.testing.assert_allclose(whole.shares[whole.source], [[0.3, 0.7]])
    np.testing.assert_allclose(state.shares[state.source], [[2 / 8, 6 / 8], [0.3, 0.7]])  # state 2 has no public rows
    np.testing.assert_allclose(place.shares[place.source], [[0.5, 0.5], [2 / 8, 6 / 8], [0.3, 0.7]])


def test_weighted_rows_count_as_fewer():
    """Weights 1, 1, 2 are worth 16 / 6 rows; equal weights all count."""
    public = Public.of(PLACED, PUBLIC, ["STATE", "PLACE"], weight="W")
    place = predictions(public, [LISTED.level(["STATE", "PLACE"])])[0]
    np.testing.assert_allclose(place.rows[place.source], [16 / 6, 100 / 24, 100 / 24])
    table = {name: values for name, values in PUBLIC.items() if name != "W"}
    (whole,) = predictions(Public.of(PLACED, table, ["STATE", "PLACE"]), [LISTED.level(())])
    np.testing.assert_allclose(whole.rows, [6])
