"""Rehearsals on workers: threads, processes and Dask find the same plan, whatever a batch has and whoever dies."""

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from prade import Task, Unit
from prade.core.execution import Execution, WorkersError
from prade.tuning.candidates import Choice
from prade.tuning.effort import Effort
from prade.tuning.search import Draw
from prade.tuning.tune import OnWorkers, Stage, Tuner

LEVELS = ["STATE", "PLACE"]
COLUMNS = ["STATE", "PLACE", "SEX", "RACE"]
DRAW = Draw(Choice((("SEX",),), ((0, ()),)), 0, 0)


@pytest.fixture(scope="module")
def small(data):
    return replace(data, schema=data.schema.select(COLUMNS), public=data.public.select(COLUMNS))


@pytest.fixture(scope="module")
def task(small):
    return Task("people", small.schema, 5, Unit(1), LEVELS, small.groups)


def outcome(task, small, execution, effort=1.5):
    """All that a search says, with one draw of noise: more take longer, and go the same way."""
    tuner = Tuner(task, small.public, bias=None, most_draws=1, execution=execution)
    tuned = tuner.tune(task.budget, Effort.of(effort, progress=execution.progress))
    said = tuned.plan, tuned.plan.to_toml(), tuned.settings, tuned.expected, tuned.finished, tuned.trials
    return *said, tuned.effort


@pytest.fixture(scope="module")
def here(task, small):
    return outcome(task, small, Execution(2))


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install prade[cluster]")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("number", [1, 7])
def test_threads_find_the_same(task, small, here, number):
    with ThreadPoolExecutor(number) as pool:
        assert outcome(task, small, Execution(1, pool)) == here


def test_processes_find_the_same(task, small, here, processes):
    assert outcome(task, small, Execution(1, processes)) == here


def test_dask_finds_the_same_though_a_worker_is_killed_in_the_middle(task, small, here, dask):
    pids = list(dask.run(os.getpid).values())
    killer = threading.Timer(0.5, lambda: os.kill(pids[0], signal.SIGKILL))

    def begun(*_):
        if not killer.is_alive() and not killer.finished.is_set():
            killer.start()

    assert outcome(task, small, Execution(1, dask.get_executor(), begun)) == here
    killer.join()


class Noted(Executor):
    """Another machine: what it is sent is a copy, whose size is noted."""

    def __init__(self):
        self.sizes = []

    def submit(self, *arguments):
        sent, done = pickle.dumps(arguments), Future()
        self.sizes.append(len(sent))
        work, *items = pickle.loads(sent)
        done.set_result(work(*items))
        return done


def test_the_public_rows_travel_once_and_without_their_numbers(task, small):
    tuner, pool = Tuner(task, small.public, execution=Execution(1)), Noted()
    workers = OnWorkers(tuner.stage, Execution(1, pool))
    first, *_ = (next(workers.errors([replace(DRAW, seed=seed)])) for seed in range(3))
    np.testing.assert_array_equal(first, tuner.stage.errors(DRAW))
    assert [size < 3_000 for size in pool.sizes] == [True, False, True, True]
    assert workers.stage.rehearsal.stand_ins[0].public.numbers == {}


def test_a_pool_that_dies_is_an_error_in_words(task, small):
    class Deadly(Stage):
        def __reduce__(self):
            return os._exit, (1,)

    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    workers = OnWorkers(Tuner(task, small.public).stage, Execution(1, pool))
    workers.stage = Deadly(workers.stage.rehearsal, task)
    with pool, pytest.raises(WorkersError, match="the workers have stopped"):
        workers.errors([DRAW])
