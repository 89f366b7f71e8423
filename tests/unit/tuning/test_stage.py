"""Rehearsals on workers: threads, processes and Dask find the same plan, and nothing stays behind."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prade import Task, Unit, explore, plan
from prade.core.execution import Execution, WorkersError
from prade.data.public.public import Public
from prade.privacy.budget import Budget
from prade.tuning import stage, trials
from prade.tuning.choice import Choice
from prade.tuning.effort import Effort
from prade.tuning.rehearse import Rehearsal
from prade.tuning.stage import SCRATCH, Stages
from prade.tuning.trials import Draw
from prade.tuning.tune import Tuner, tune

LEVELS = ["STATE", "PLACE"]
COLUMNS = ["STATE", "PLACE", "SEX", "RACE"]


@pytest.fixture(autouse=True, scope="module")
def one_draw():
    """One draw of noise: more of them take longer, and go the same way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prade.tuning.search.MOST_DRAWS", 1)
        yield


@pytest.fixture(scope="module")
def small(data):
    return replace(data, schema=data.schema.select(COLUMNS), public=data.public.select(COLUMNS))


@pytest.fixture(scope="module")
def task(small):
    return Task("people", small.schema, 5, Unit(1), LEVELS, small.groups)


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary files have a folder of their own, where a scratch folder that stays behind is seen."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def tuned(task, small, **options):
    return tune(task, small.public, **{"effort": 600, "bias": None} | options)


@pytest.fixture(scope="module")
def on_threads(task, small):
    return tuned(task, small, execution=Execution(2))


def told(found):
    """All that a search says."""
    said = found.plan, found.plan.to_toml(), found.settings, found.expected, found.finished, found.trials
    return *said, found.draws, found.effort


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


# ---------------------------------------------------------------------- the same everywhere


def test_threads_that_share_the_stand_ins_find_the_same(task, small, on_threads, scratch):
    with ThreadPoolExecutor(3) as pool:
        assert told(tuned(task, small, execution=Execution(executor=pool))) == told(on_threads)


def test_processes_find_the_same_and_the_scratch_folder_is_removed(task, small, on_threads, processes, scratch):
    found = tuned(task, small, execution=Execution(executor=processes))
    assert told(found) == told(on_threads)
    assert found.in_vain > 0 == on_threads.in_vain
    assert list(scratch.iterdir()) == []


def test_dask_finds_the_same_though_a_worker_is_killed_in_the_middle(task, small, on_threads, dask, scratch):
    def kill():
        while not list(scratch.glob(f"{SCRATCH}*")):
            time.sleep(0.01)
        time.sleep(1)
        os.kill(next(iter(dask.run(os.getpid).values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert told(tuned(task, small, execution=Execution(executor=dask.get_executor()))) == told(on_threads)
    killer.join()
    assert list(scratch.glob(f"{SCRATCH}*")) == []


def test_plan_and_explore_take_an_executor(task, small, processes, scratch):
    """The effort ends the search before its end, at the same place with and without workers."""
    made = plan(task, small.public, effort=0.4, execution=Execution(executor=processes))
    assert "Not every candidate was tried with effort 0.4" in made.expected.advice
    assert made.to_toml() == plan(task, small.public, effort=0.4).to_toml()
    (explored,) = explore(task, small.public, [5], effort=0.4, execution=Execution(executor=processes)).plans
    assert explored.to_toml() == made.to_toml()
    assert list(scratch.iterdir()) == []


# ---------------------------------------------------------------------- what travels


def test_little_travels_with_a_task_and_each_process_opens_the_rows_once(task, small, processes):
    rehearsal = Rehearsal.of(Public.of(small.schema, small.public, LEVELS), small.groups, LEVELS, threads=1)
    stages = Stages(rehearsal, task, processes)
    found = stages.trials(Budget.pure(5))
    draw = Draw(Choice((("SEX",),), ((0, ()),)), 0, 0)
    assert len(pickle.dumps((found._task, draw))) < 3_000
    sent = pickle.loads(pickle.dumps(found._task)).args[0].value
    assert sent is pickle.loads(pickle.dumps(found._task)).args[0].value
    np.testing.assert_array_equal(sent.errors(Budget.pure(5), draw), found.errors(draw))
    assert sent.rehearsal.stand_ins[0].public.numbers == {}
    stages.close()


def test_no_private_row_can_be_in_the_scratch_folder(task, small):
    """All that is written comes from the public table and from the task, which know no private table."""
    public = small.public.slice(0, small.public.num_rows)
    stages = Stages(
        Rehearsal.of(Public.of(small.schema, public, LEVELS), small.groups, LEVELS), task, ProcessPoolExecutor(1)
    )
    folder = Path(stages._folder.name)
    assert folder.stat().st_mode & 0o077 == 0  # nobody else reads it or puts something else into it
    stages.close()
    assert not folder.exists()


# ---------------------------------------------------------------------- what may go wrong


def die(shared, budget, draw, number):
    os._exit(1)


def test_a_pool_that_dies_is_an_error_in_words_and_the_folder_is_removed(task, small, scratch, monkeypatch):
    monkeypatch.setattr(stage, "rehearsed", die)
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
    with pool, pytest.raises(WorkersError, match="the workers have stopped"):
        tuned(task, small, execution=Execution(executor=pool))
    assert list(scratch.iterdir()) == []


def test_workers_that_do_not_see_the_folder_say_so(task, small, processes):
    stages = Stages(Rehearsal.of(Public.of(small.schema, small.public, LEVELS), small.groups, LEVELS), task, processes)
    stages.close()
    with pytest.raises(WorkersError, match=r"cannot find .*prade-rehearsal-.*all workers must see the folder"):
        stages.trials(Budget.pure(1)).errors(Draw(Choice((("SEX",),), ((0, ()),)), 0, 0))


def test_a_full_disk_is_an_error_in_words_and_nothing_stays(task, small, processes, scratch, monkeypatch):
    def full(value, folder):
        (folder / "arrays").write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stage, "write_mapped", full)
    with pytest.raises(WorkersError, match=r"No space left on device\): set TMPDIR to a folder with more room"):
        tuned(task, small, execution=Execution(executor=processes))
    assert list(scratch.iterdir()) == []


def test_an_interrupt_stops_at_once_and_cancels_what_has_not_begun(task, small, scratch, monkeypatch):
    begun, hold, sent = [], threading.Event(), []

    class Noted(ThreadPoolExecutor):
        def submit(self, *arguments):
            sent.append(super().submit(*arguments))
            return sent[-1]

    def slow(shared, budget, draw, number):
        begun.append(draw)
        hold.wait(20)
        return np.ones(5)

    def interrupted(*_, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, "rehearsed", slow)
    monkeypatch.setattr(trials, "wait", interrupted)
    with Noted(1) as pool:
        tuner = Tuner(task, small.public, bias=None, execution=Execution(executor=pool))
        with pytest.raises(KeyboardInterrupt):
            tuner.tune(Budget.pure(1), Effort.of(600))
        assert sum(future.cancelled() for future in sent) == len(sent) - 1 > 0
        hold.set()
    assert len(begun) == 1
