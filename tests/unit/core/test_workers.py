"""Workers: the same results in the same order on threads, processes and Dask; what is large does not travel."""

import multiprocessing
import os
import pickle
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

from prade.core import execution as workers
from prade.core.errors import DataError
from prade.core.execution import Execution, Shared, WorkersError


def opened_from(path):
    """What a worker opens: the numbers in a file, and the process that opened them."""
    with open(path) as file:
        return [float(line) for line in file], os.getpid()


def scaled(shared, item):
    numbers, opener = shared.value
    return item * sum(numbers), opener, os.getpid()


def die(item):
    os._exit(1)


def refuse(item):
    raise DataError("no", remedy="public")


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def shared(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n2\n")
    return Shared(opened_from(path), opened_from, path)


def test_results_come_in_order_and_are_the_same_everywhere(processes, shared):
    expected = [3.0 * item for item in range(20)]
    with ThreadPoolExecutor(3) as threads:
        for each in (Execution(2), Execution(executor=threads), Execution(executor=processes)):
            assert [found for found, _, _ in each.map(partial(scaled, shared), range(20))] == expected


def test_what_is_shared_stays_here_and_each_process_opens_it_once(processes, shared):
    here = list(Execution(2).map(partial(scaled, shared), range(4)))
    assert {opener for _, opener, _ in here} == {os.getpid()}
    there = list(Execution(executor=processes).map(partial(scaled, shared), range(20)))
    assert all(opener == worker != os.getpid() for _, opener, worker in there)
    large = Shared(bytes(10**6), opened_from, "file")
    assert len(pickle.dumps(partial(scaled, large))) < 1_000


def test_a_worker_that_cannot_see_the_files_says_so(processes, shared, tmp_path):
    (tmp_path / "numbers.txt").unlink()
    with pytest.raises(WorkersError, match=r"the worker on .* cannot find .*numbers\.txt"):
        list(Execution(executor=processes).map(partial(scaled, shared), range(2)))


def test_workers_of_other_versions_are_refused(processes, monkeypatch):
    monkeypatch.setattr(workers, "versions", lambda: ("Python 2.7", *workers.MUST_AGREE))
    with pytest.raises(WorkersError, match=r"other versions \(Python 2\.7 here, Python 3"):
        list(Execution(executor=processes).map(abs, [1]))


def test_workers_that_are_gone_are_an_error_in_words():
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with pool, pytest.raises(WorkersError, match="the workers have stopped"):
        list(Execution(executor=pool).map(die, [1]))


def test_errors_of_tasks_pass_through_with_their_remedy(processes):
    with pytest.raises(DataError) as caught:
        list(Execution(executor=processes).map(refuse, [1]))
    assert caught.value.told("shell") == "no; give the public files with --public"


def test_workers_are_only_a_few_tasks_ahead_and_the_rest_is_cancelled():
    started, release = [], threading.Event()

    def work(item):
        started.append(item)
        if item:
            release.wait(10)
        return item

    with ThreadPoolExecutor(2) as pool:
        results = Execution(executor=pool).map(work, range(100))
        assert next(results) == 0
        results.close()
        release.set()
    assert len(started) <= 5


@pytest.mark.parametrize("ahead", [1, 4])
def test_threads_begin_as_many_tasks_ahead_as_they_may(ahead):
    begun = []
    results = Execution(1).map(begun.append, range(100), ahead=ahead)
    next(results)
    deadline = time.monotonic() + 10
    while len(begun) < 1 + ahead and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(begun) == 1 + ahead
    results.close()


def test_the_number_of_workers(processes):
    assert Execution(3).number == 3
    assert Execution(executor=processes).number == 2
    assert Execution().number >= 1
