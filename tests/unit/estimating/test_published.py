"""Published numbers of rows: what follows from them at every level, and how sure sums of the others are."""

import numpy as np
import pytest

from prade import Column, Level, PublishedTotals, Schema, Workload
from prade.core.arrays import shared_out
from prade.estimating.levels.totals import ErrorsOfRows, variance_of_sums, with_published
from worlds.plans import plan_of

SCHEMA = Schema([Column("AGE", "numeric", edges=[18, 65])])
GROUPS = {"S": ["a", "a", "b", "b", "b"], "P": [1, 2, 3, 4, 5]}
STATES = PublishedTotals.of({"S": ["b", "a"], "rows": [90, 11]}, "S")
PLACES = PublishedTotals.of({"P": [5, 4, 3, 2, 1], "rows": [50, 40, 0, 8, 3]}, "P")
VARIANCE = np.array([4.0, 9.0, 1.0, 16.0, 25.0])


def plan_with(*invariants):
    schema = SCHEMA.with_invariants(invariants)
    ages = Workload.marginals(SCHEMA, ["AGE"])
    return plan_of(schema, Level(()), Level("S"), Level("P", ages), groups=GROUPS)


def published_at(level, totals, plan):
    grouping = plan.groupings[level] if level >= 0 else plan.groups.level(())
    return with_published(np.array(totals, float), level, grouping, plan).tolist()


def test_totals_of_a_level_are_the_published_ones_and_those_above_add_up():
    plan = plan_with(PLACES)
    assert published_at(2, [7] * 5, plan) == [3, 8, 0, 40, 50]
    assert published_at(1, [7] * 2, plan) == [11, 90]
    assert published_at(0, [7], plan) == [101]


def test_groups_below_get_whole_numbers_in_proportion_that_add_up():
    plan = plan_with(STATES)
    assert published_at(2, [10, 30, 0, 1, 2], plan) == [3, 8, 0, 30, 60]
    assert published_at(1, [7, 7], plan) == [11, 90]
    assert published_at(0, [7], plan) == published_at(-1, [7], plan) == [101]  # -1: above the plan's levels
    # where all children are estimated to be empty, the rows are divided evenly
    assert published_at(2, [0] * 5, plan) == [6, 5, 30, 30, 30]


TIMES = np.stack([np.ones(5), np.array([0.1, 0.5, 0.0, 1.0, 0.3])], axis=1)
every_grouping = pytest.mark.parametrize("above", [[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4], [0, 1, 0, 1, 1]])


def check_sums(found, covariance, above):
    for number in range(max(above) + 1):
        inside = (np.array(above) == number)[:, None] * TIMES
        assert found[number] == pytest.approx([inside[:, k] @ covariance @ inside[:, k] for k in range(2)], abs=1e-9)


@pytest.mark.parametrize("published", [(), (STATES,), (PLACES,)])
@every_grouping
def test_variances_of_sums_are_those_of_shared_out_errors(published, above):
    plan = plan_with(*published)
    totals = np.array(published_at(2, [4, 7, 20, 30, 40], plan))
    found = variance_of_sums(ErrorsOfRows((VARIANCE,)), TIMES, totals, np.array(above), max(above) + 1, plan)
    # the same with matrices: e -> A e is what sharing out does to errors, to first order
    parent = np.array([0, 0, 1, 1, 1])
    same = parent[:, None] == parent[None, :]
    shift = np.eye(5)
    if published == (STATES,):
        shift = shift - same * (totals / np.where(parent == 0, 11, 90))[:, None]
    if published == (PLACES,):
        shift = np.zeros((5, 5))
    check_sums(found, shift @ np.diag(VARIANCE) @ shift.T, above)


@every_grouping
def test_variances_of_sums_of_groups_that_add_up_to_their_parents(above):
    """The same with matrices: e -> e - (v / V) (sum of e) + (v / V) E, from everybody down."""
    plan, parent, everybody = plan_with(), np.array([0, 0, 1, 1, 1]), np.zeros(2, np.int64)
    variances = VARIANCE, np.array([5.0, 200.0]), np.array([900.0])
    how = np.array([4.0, 7.0, 20.0, 30.0, 40.0]), np.array(above), max(above) + 1, plan
    found = variance_of_sums(ErrorsOfRows(variances, (parent, everybody)), TIMES, *how)
    covariance = np.diag(variances[2])
    for variance, parent_of in ((variances[1], everybody), (VARIANCE, parent)):
        part = variance / np.bincount(parent_of, variance)[parent_of]
        shift = np.eye(len(variance)) - (parent_of[:, None] == parent_of[None, :]) * part[:, None]
        down = (parent_of[:, None] == np.arange(len(covariance))) * part[:, None]
        covariance = shift @ np.diag(variance) @ shift.T + down @ covariance @ down.T
    check_sums(found, covariance, above)


@pytest.mark.parametrize("rows", [0, 1, 7, 10**9 + 7, 2**40])
def test_shares_add_up_exactly(rows):
    totals = np.random.default_rng(rows).gamma(0.3, size=500)
    shared = shared_out(rows, totals)
    assert shared.sum() == rows
    assert (np.abs(shared - rows * totals / totals.sum()) < 1 + 1e-9 * rows).all()
