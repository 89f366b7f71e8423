"""Rehearsals on workers: threads and processes find the same plan, whatever a batch has."""

import pickle
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from prade import Task, Unit
from prade.core.execution import Execution
from prade.tuning.candidates import Choice
from prade.tuning.effort import Effort
from prade.tuning.search import Draw
from prade.tuning.tune import OnWorkers, Tuner

LEVELS = ["STATE", "PLACE"]
DRAW = Draw(Choice((("SEX",),), ((0, ()),)), 0, 0)


@pytest.fixture(scope="module")
def task(few):
    return Task("people", few.schema, 5, Unit(1), LEVELS, few.groups)


def outcome(task, few, execution, effort=1.5):
    """All that a search says, with one draw of noise: more take longer, and go the same way."""
    tuner = Tuner(task, few.public, bias=None, most_draws=1, execution=execution)
    tuned = tuner.tune(task.budget, Effort.of(effort, progress=execution.progress))
    said = tuned.plan, tuned.plan.to_toml(), tuned.settings, tuned.expected, tuned.finished, tuned.trials
    return *said, tuned.effort


def test_threads_and_processes_find_the_same(task, few, processes):
    here = outcome(task, few, Execution(2))
    with ThreadPoolExecutor(7) as threads:
        for pool in (threads, processes):
            assert outcome(task, few, Execution(1, pool)) == here


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


def test_the_public_rows_travel_once_and_without_their_numbers(task, few):
    tuner, pool = Tuner(task, few.public, execution=Execution(1)), Noted()
    workers = OnWorkers(tuner.stage, Execution(1, pool))
    first, *_ = (next(workers.errors([replace(DRAW, seed=seed)])) for seed in range(3))
    np.testing.assert_array_equal(first, tuner.stage.errors(DRAW))
    assert [size < 3_000 for size in pool.sizes] == [True, False, True, True]
    assert workers.stage.rehearsal.stand_ins[0].public.numbers == {}
