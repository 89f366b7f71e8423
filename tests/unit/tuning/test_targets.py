"""Tuning for targets: errors are those of what the targets name, at their levels, and the tuner spends on them."""

from dataclasses import replace

import numpy as np
import pytest

from prade import Ask, Budget, Level, Plan, Target, Task, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.estimates import Estimates
from prade.planning.settings import Settings
from prade.tuning.effort import Effort
from prade.tuning.rehearse import Rehearsal
from prade.tuning.target_errors import REST, WantedErrors
from prade.tuning.tune import Tuner

LEVELS = ["STATE", "PLACE"]
TARGETS = (
    Target(["RACE x EMPLOY", "SEX"], by=["STATE", "PLACE"], weight=2),
    Target(predicates=["AGE >= 65 and SEX == 1"], by="PLACE"),
    Target(statistics=["mean(AGE)", "median(AGE) where SEX == 1"], by="all"),
)


def task_of(data, *targets, epsilon=5):
    return Task("people", data.schema, epsilon, Unit(1), LEVELS, data.groups, targets=targets)


@pytest.fixture(scope="module")
def rehearsal(data):
    public = Public.of(data.schema, data.public, LEVELS)
    return Rehearsal.of(public, data.groups, LEVELS, targets=task_of(data, *TARGETS).targets, threads=1)


@pytest.fixture(scope="module")
def plan(data):
    return Plan.simplest(task_of(data))


def test_errors_of_two_way_tables_are_the_same_with_targets_and_without(rehearsal, plan):
    without = replace(rehearsal, wanted=None)
    distances, wanted = rehearsal.both_errors(plan)
    assert np.array_equal(without.errors(plan), distances)
    assert wanted.shape == (len(distances), 7)


def test_the_public_table_has_the_error_one_and_each_level_counts_by_its_weight(rehearsal, plan):
    assert np.mean([rehearsal.public_errors(k).mean() for k in range(2)]) == pytest.approx(1)
    public = [rehearsal.both_public_errors(k) for k in range(2)]
    distance = np.mean([each.mean() for each, _ in public])
    scales = np.mean([each.mean(axis=0) for _, each in public], axis=0)
    weights = np.array([1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 4, 1 / 8, 1 / 8])
    state, place, everybody = [0, 2], [1, 3, 4], [5, 6]
    for level in (state, place, everybody):
        scales[level] = np.average(scales[level], weights=weights[level])
    distances, wanted = rehearsal.both_errors(plan, stand_in=1)
    expected = (wanted / scales @ weights + REST * distances / distance) / (1 + REST)
    assert rehearsal.errors(plan, stand_in=1) == pytest.approx(expected)


def test_means_and_quantiles_of_known_shares(data):
    public = Public.of(data.schema, data.public, LEVELS)
    targets = task_of(data, Target(statistics=["mean(AGE)", "quantile(AGE, 0.25)"], by="all")).targets
    errors = WantedErrors(targets, public)
    bins = data.schema["AGE"].present
    truth, estimate = np.zeros((2, 1, bins + 1))
    truth[0, 3], truth[0, bins], estimate[0, 5] = 10, 7, 1  # seven rows have no age, and no part in it
    numbers, codes = public.numbers["AGE"], public.prior.codes["AGE"]
    away = numbers[codes == 5].mean() - numbers[codes == 3].mean()
    assert errors.errors(0, truth, estimate)[0] == pytest.approx(away / numbers.std())
    assert errors.errors(1, truth, truth)[0] == 0
    assert errors.errors(1, truth, estimate)[0] == pytest.approx(2 * 0.75)  # all true rows are below bin 5
    truth[0, 2] = 30  # a quarter of the rows is now in bin 3, and the true quantile a third into bin 2
    estimate[0] = truth[0]
    estimate[0, 2], estimate[0, 3] = 10, 30  # its own quantile is at the end of bin 2
    assert errors.errors(1, truth, estimate)[0] == pytest.approx(2 * 0.5)


def test_errors_above_the_last_level_are_those_of_the_groups_added_up(rehearsal, data):
    """Against all estimates of a release; with many groups, the level's own estimate stands in for them."""
    level = [Level("STATE"), Level("PLACE", Ask(Workload.marginals(data.schema, [["RACE", "EMPLOY"], "SEX"])))]
    plan = Plan("people", data.schema, Budget.pure(3), Unit(1), level, data.groups)
    settings, chosen, targets = Settings(n0=1.0), rehearsal.stand_ins[0], rehearsal.targets[0]
    estimates = Estimates.of(rehearsal.release(plan, 0, 3), chosen.public, settings, cells=chosen.cells)
    _, wanted = rehearsal.both_errors(plan, settings, seed=3)
    usual, targets.most_summed = targets.most_summed, 2
    _, near = rehearsal.both_errors(plan, settings, seed=3)
    targets.most_summed = usual
    for number in (0, 2, 5, 6):  # RACE x EMPLOY and SEX by STATE, the mean and the median of everybody
        masses = estimates.masses(targets.cells[number]) * estimates.totals[:, None]
        above = targets.above[number]
        sums = np.zeros((above.max() + 1, masses.shape[1]))
        np.add.at(sums, above, masses)
        found = targets.errors_of(number, np.arange(len(sums)), sums)[above[list(rehearsal.groups_of(0))]]
        assert wanted[:, number] == pytest.approx(found, abs=2e-4)  # rehearsals take fewer steps
        assert number > 2 or near[:, number] == pytest.approx(found, abs=0.004)  # what is measured nearly adds up
    assert wanted[:, 0].max() > 0.008  # so that the tolerances tell something
    assert np.array_equal(wanted[:, [1, 3, 4]], near[:, [1, 3, 4]])  # those of the last level


def test_the_tuner_spends_on_targets_and_says_their_errors(data):
    """With one draw of noise: more of them take longer, and go the same way."""
    wanted, how = Target(["RACE x EMPLOY"], by=LEVELS), {"bias": None, "most_draws": 1, "execution": Execution(1)}
    tasks = [task_of(data, *targets, epsilon=1) for targets in ([], [wanted])]
    tuned = [Tuner(task, data.public, **how).tune(task.budget, Effort.of()) for task in tasks]
    default, targeted = tuned
    assert targeted.finished
    assert not default.expected.targets
    names = [part.name for question in targeted.plan.questions for part in question.parts]
    assert {"RACE x EMPLOY"} & set(names) or {"RACE", "EMPLOY"} <= set(names)
    public = Public.of(data.schema, data.public, LEVELS)
    rehearsal = Rehearsal.of(public, data.groups, LEVELS, targets=targeted.plan.targets, bias=None, threads=1)
    errors = [
        np.mean([rehearsal.both_errors(each.plan, each.settings, seed=9, stand_in=k)[1].mean(0) for k in range(2)], 0)
        for each in tuned
    ]
    assert (errors[1] < errors[0]).all()
    said = targeted.expected.targets
    assert [(each.what, each.by) for each in said] == [("RACE x EMPLOY", "STATE"), ("RACE x EMPLOY", "STATE+PLACE")]
    assert all(each.error < each.prior for each in said)
    assert targeted.plan.task.targets == tasks[1].targets
