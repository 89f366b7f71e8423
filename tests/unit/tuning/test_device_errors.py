"""Rehearsals on an accelerator have the processor's errors; numpy stands in for it where there is none."""

import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from prade import EstimationError, Task, Unit
from prade.data.public.public import Public
from prade.estimating import cuda
from prade.estimating.levels.laplace_posterior import of_processor
from prade.examples import census_like
from prade.pipeline import fit
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.queries.workload import Workload
from prade.release.terms import Terms
from prade.scoring.device_distances import DeviceDistances, true_shares
from prade.scoring.distances import mean_distance
from prade.tuning import device_errors
from prade.tuning.rehearse import Rehearsal
from prade.tuning.trials import Draw
from prade.tuning.tune import Tuner, tune
from worlds.plans import plan_of

accelerated = pytest.mark.skipif(bool(cuda.why_not()), reason=f"no accelerator: {cuda.why_not()}")
LEVELS = ["STATE", "PLACE"]


@pytest.fixture(scope="module")
def data():
    return census_like(persons=6_000, places_per_state=20, seed=1)


@pytest.fixture(scope="module")
def groups(data):
    return data.groups.select(LEVELS).group_by(LEVELS).aggregate([])


@pytest.fixture(scope="module")
def rehearsal(data, groups):
    return Rehearsal.of(Public.of(data.schema, data.public, LEVELS), groups, LEVELS, threads=1)


@pytest.fixture(scope="module")
def plan(data, groups):
    ask = Ask(Workload.marginals(data.schema, ["AGE", "RACE", "WAGE"]), Fraction(9, 10))
    return plan_of(data.schema, Level("STATE"), Level("PLACE", ask, "1/10"), groups=groups, budget=1)


def accelerator_of(rehearsal):
    changed = rehearsal.changed()
    changed.accelerator = True
    return changed


class RowsByNumpy(cuda.Device):
    """A layout's rows as the accelerator has them, without its kernels."""

    def __init__(self, layout):
        self.cupy, self.layout = np, layout
        self.codes, self.kind = layout.bundles.codes, layout.kind
        self.membership = layout.bundles.membership.toarray()


class TablesByNumpy:
    """The distances as the kernel has them."""

    def __init__(self, joint, pairs):
        self.joint, self.pairs = joint, pairs

    def means(self, weights, shares):
        schema, codes, found = self.joint.schema, self.joint.codes, []
        for weight, share in zip(weights, shares, strict=True):
            tables = [
                np.bincount(codes[a].astype(int) * schema.size(b) + codes[b], weight, schema.size(a) * schema.size(b))
                for a, b in self.pairs
            ]
            found.append(np.abs(np.concatenate(tables) - share).sum() / len(self.pairs))
        return np.array(found)


@pytest.fixture
def numpy_for_cupy(monkeypatch):
    errors, levels = "prade.tuning.device_errors", "prade.estimating.levels"
    monkeypatch.setattr(f"{errors}.suits", lambda layout: True)
    monkeypatch.setattr(f"{errors}.fit", lambda schema, pairs: True)
    monkeypatch.setattr(f"{errors}.device_of", RowsByNumpy)
    monkeypatch.setattr(f"{errors}.DeviceDistances", TablesByNumpy)
    monkeypatch.setattr(f"{levels}.descent.device_arrays", of_processor)
    monkeypatch.setattr(f"{levels}.device_fits.climb_together", lambda duals, *_: (None for _ in duals))
    device_errors._rows_of.cache_clear()
    yield
    device_errors._rows_of.cache_clear()  # no other test may find numpy's tables


@pytest.mark.parametrize("settings", [None, Settings(mixture=0.3), Settings(smooth=False)])
@pytest.mark.usefixtures("numpy_for_cupy")
def test_weights_tables_and_distances_of_a_draw_are_those_of_the_processor(rehearsal, plan, settings):
    for fresh in (False, True):
        wanted = rehearsal.errors(plan, settings, seed=3, stand_in=1, fresh=fresh)
        found = accelerator_of(rehearsal).errors(plan, settings, seed=3, stand_in=1, fresh=fresh)
        assert len(set(wanted.tolist())) > 8
        assert found == pytest.approx(wanted, rel=1e-5)


@pytest.mark.usefixtures("numpy_for_cupy")
def test_what_does_not_fit_is_left_to_the_processor(rehearsal, plan, monkeypatch):
    def never(*_):
        raise AssertionError("it was scored on the accelerator")

    monkeypatch.setattr("prade.tuning.device_errors.DeviceDistances", never)
    with pytest.raises(AssertionError, match="scored on"):
        accelerator_of(rehearsal).errors(plan, seed=5)
    wanted = rehearsal.errors(plan, seed=5)
    for each in ("suits", "fit"):
        with monkeypatch.context() as patched:
            patched.setattr(f"prade.tuning.device_errors.{each}", lambda *_: False)
            assert np.array_equal(accelerator_of(rehearsal).errors(plan, seed=5), wanted)


@pytest.mark.usefixtures("numpy_for_cupy")
def test_a_group_without_rows_is_as_far_away_as_on_the_processor(rehearsal, plan):
    chosen = rehearsal.stand_ins[0]
    few = chosen.group != 3
    codes = {name: code[few] for name, code in chosen.codes.items()}
    without = rehearsal.changed([replace(chosen, group=chosen.group[few], codes=codes)])
    wanted, found = (each.errors(plan, seed=3) for each in (without, accelerator_of(without)))
    assert wanted[3] > max(np.delete(wanted, 3))
    assert found == pytest.approx(wanted, rel=1e-5)


def test_true_shares_are_the_tables_of_pairs_one_after_the_other(data):
    rows = {"SEX": np.array([0, 1, 1]), "RACE": np.array([0, 0, 2])}
    shares = true_shares(data.schema, [rows, {name: code[:0] for name, code in rows.items()}], [("SEX", "RACE")])
    wide = data.schema.size("RACE")
    assert np.flatnonzero(shares[0]).tolist() == [0, wide, wide + 2]
    assert shares.sum(axis=1).tolist() == [pytest.approx(1), 0]


def test_without_an_accelerator_the_tuner_says_what_is_missing(data, groups, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    task = Task("people", data.schema, 1, Unit(4), LEVELS, groups)
    with pytest.raises(EstimationError, match=r"CuPy is not installed \(prade\[cuda\] has it\); leave out cuda=True"):
        tune(task, data.public, effort=0, cuda=True)


def test_without_an_accelerator_nothing_is_measured(data, groups, tmp_path, monkeypatch):
    """A plan without tuning needs none: the run must be refused before the budget is spent, not after."""
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    task = Task("people", data.schema, 1, Unit(4), LEVELS, groups)
    terms = Terms(tmp_path / "ledger", 1, tune=False)
    with pytest.raises(EstimationError, match=r"CuPy is not installed"):
        fit(task, data.private, data.public, tmp_path / "release", terms, cuda=True)
    assert not (tmp_path / "release").exists()


@pytest.mark.usefixtures("numpy_for_cupy")
def test_after_a_tuning_nothing_of_it_stays_on_the_accelerator(data, groups, monkeypatch):
    freed, sizes = [], []

    class Pool:
        def free_all_blocks(self):
            assert device_errors._rows_of.cache_info().currsize == 0
            freed.append(True)

    monkeypatch.setattr("prade.tuning.tune.need_accelerator", lambda: None)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=Pool))
    monkeypatch.setattr(cuda, "Device", RowsByNumpy)
    monkeypatch.setattr("prade.tuning.device_errors.device_of", cuda.device_of)
    cuda.device_of.cache_clear()  # layouts of other tests, where there is an accelerator
    task = Task("people", data.schema, 1, Unit(4), LEVELS, groups)
    with Tuner(task, data.public, cuda=True) as tuner:
        trials, choice = tuner.stages.trials(task.budget), tuner.candidates.simplest()
        trials.errors(Draw(choice, 0, 0))
        sizes += [device_errors._rows_of.cache_info().currsize, cuda.device_of.cache_info().currsize]
    assert sizes == [1, 1]
    assert cuda.device_of.cache_info().currsize == 0
    assert freed == [True]


@accelerated
def test_distances_on_the_device_are_those_of_the_processor_and_the_same_again(rehearsal):
    import cupy

    chosen = rehearsal.stand_ins[0]
    joint, truth = chosen.public.prior, [rehearsal.truth(0, group) for group in range(5)]
    weights = np.random.default_rng(0).exponential(size=(5, len(joint))) ** 3
    weights /= weights.sum(axis=1, keepdims=True)
    scorer = DeviceDistances(joint, rehearsal.pairs)
    shares = true_shares(joint.schema, truth, rehearsal.pairs)
    found, again = (scorer.means(cupy.asarray(weights, np.float32), shares) for _ in range(2))
    wanted = [mean_distance(rows, joint, rehearsal.pairs, weight) for rows, weight in zip(truth, weights, strict=True)]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert np.array_equal(found, again)


@accelerated
@pytest.mark.parametrize("settings", [None, Settings(mixture=0.3), Settings(smooth=False)])
def test_errors_of_a_draw_are_those_of_the_processor_and_the_same_again(rehearsal, plan, settings):
    for stand_in in range(len(rehearsal.stand_ins)):  # layouts of different sizes take turns on the device
        wanted = rehearsal.errors(plan, settings, seed=3, stand_in=stand_in)
        found, again = (accelerator_of(rehearsal).errors(plan, settings, seed=3, stand_in=stand_in) for _ in range(2))
        assert found == pytest.approx(wanted, abs=5e-3)
        assert found.mean() == pytest.approx(wanted.mean(), abs=1e-3)
        assert np.array_equal(found, again)


@accelerated
def test_the_tuner_finds_the_same_plan_with_and_without_an_accelerator(data, groups, monkeypatch):
    scored, means = [], DeviceDistances.means

    def noted(self, weights, shares):
        scored.append(len(shares))
        return means(self, weights, shares)

    monkeypatch.setattr(DeviceDistances, "means", noted)
    monkeypatch.setattr("prade.tuning.search.MOST_DRAWS", 1)
    columns = [*LEVELS, "SEX", "RACE", "AGE"]
    task = Task("people", data.schema.select(columns), 1, Unit(1), LEVELS, groups)
    public = data.public.select(columns)
    here = tune(task, public, effort=3, threads=2)
    assert not scored
    there = tune(task, public, effort=3, threads=2, cuda=True)
    assert len(scored) >= there.draws > 8
    assert there.found == here.found
    assert [each.what for each in there.trials] == [each.what for each in here.trials]
    assert there.expected.error == pytest.approx(here.expected.error, rel=1e-2)
