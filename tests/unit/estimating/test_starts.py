"""Groups with the same prior share what their first step needs, and nothing changes by it."""

import pickle

import numpy as np
import pytest

from prade import Schema, Workload
from prade.data.public.joint import Prior
from prade.estimating.layout import MOST_KEPT, Layout, Starts
from prade.estimating.posterior_mode import MAP
from prade.release.release import Measurement

SCHEMA = Schema.from_mbi({"a": 4, "b": 5, "c": 3})
WORKLOAD = Workload.all_marginals(SCHEMA, 2)


def prior_of(seed):
    generator = np.random.default_rng(seed)
    grid = Prior.uniform(SCHEMA)
    return Prior(SCHEMA, grid.codes, generator.random(len(grid)))


def measured(seed):
    generator = np.random.default_rng([seed, 1])
    truth = prior_of(seed + 100)
    return [
        Measurement(part, 500 * share + 5 * generator.normal(size=len(share)), 5.0, "gaussian")
        for part, share in zip(WORKLOAD, WORKLOAD.answer(truth), strict=True)
    ]


def test_equal_masses_have_one_start_and_other_masses_another():
    starts, made = Starts(), []

    def work_out():
        made.append(object())
        return made[-1]

    one = starts.of(np.array([0.25, 0.75]), work_out)
    assert starts.of(np.array([0.25, 0.75]), work_out) is one
    assert starts.of(np.array([0.75, 0.25]), work_out) is not one
    assert len(made) == 2


def test_only_the_latest_starts_are_kept():
    starts, calls = Starts(), []
    for number in range(MOST_KEPT + 1):
        starts.of(np.array([float(number)]), lambda: calls.append(1))
    for number in range(1, MOST_KEPT + 1):
        starts.of(np.array([float(number)]), lambda: calls.append(1))
    assert len(calls) == MOST_KEPT + 1
    starts.of(np.array([0.0]), lambda: calls.append(1))
    assert len(calls) == MOST_KEPT + 2


def test_estimates_are_those_of_groups_on_their_own_to_the_last_bit():
    prior, other = prior_of(0), prior_of(1)
    shared = Layout(prior, WORKLOAD)
    for seed, mine in enumerate((prior, other, prior, prior, other)):
        alone = MAP(n0=50.0).fit(mine, measured(seed), 500, layout=Layout(mine, WORKLOAD))
        together = MAP(n0=50.0).fit(mine, measured(seed), 500, layout=shared.reweighted(mine))
        assert np.array_equal(alone.multipliers, together.multipliers)
        assert alone.report.trace == together.report.trace


def test_a_layout_travels_to_another_process():
    layout = Layout(prior_of(0), WORKLOAD)
    masses = layout.prior_masses
    again = pickle.loads(pickle.dumps(layout))
    assert np.array_equal(again.prior_masses, masses)
    assert again.start.log_z == pytest.approx(0.0, abs=1e-12)
