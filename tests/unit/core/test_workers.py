"""Workers: the same results in the same order on threads, processes and Dask; what is large does not travel."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

from prade import Execution
from prade.core import execution as workers
from prade.core.execution import Shared, WorkersError


def opened_from(path):
    """What a worker opens: the numbers in a file, and the process that opened them."""
    with open(path) as file:
        return [float(line) for line in file], os.getpid()


def scaled(shared, item):
    numbers, opener = shared.value
    return item * sum(numbers), opener, os.getpid()


def die(item):
    os._exit(1)


@pytest.fixture
def shared(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("1\n2\n")
    return Shared(opened_from(path), opened_from, path)


def test_results_come_in_order_and_are_the_same_everywhere(processes, shared):
    assert [Execution(3).number, Execution(executor=processes).number] == [3, 2]
    expected = [3.0 * item for item in range(20)]
    with ThreadPoolExecutor(3) as threads:
        for each in (Execution(2), Execution(executor=threads), Execution(executor=processes)):
            assert [result for result, _, _ in each.map(partial(scaled, shared), range(20))] == expected


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
    dying = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    with dying, pytest.raises(WorkersError, match="the workers have stopped"):
        list(Execution(executor=dying).map(die, [1]))


def test_workers_are_only_a_few_tasks_ahead_and_the_rest_is_cancelled():
    started, release = [], threading.Event()

    def work(item):
        started.append(item)
        if item:
            release.wait(10)
        return item

    with ThreadPoolExecutor(2) as processes:
        results = Execution(executor=processes).map(work, range(100))
        assert next(results) == 0
        results.close()
        release.set()
    assert len(started) <= 5


RUN = """
import os, time
from prade.core.execution import processes

if __name__ == "__main__":
    with processes(2) as executor:
        print(*{executor.submit(os.getpid).result() for _ in range(20)}, flush=True)
        time.sleep(60)
"""


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks processes up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_leave_ctrl_c_to_the_main_process_and_end_when_it_does(number, tmp_path):
    (tmp_path / "run.py").write_text(RUN)
    command = [sys.executable, tmp_path / "run.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        pids = [int(pid) for pid in run.stdout.readline().split()]
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        time.sleep(0.2)
        assert pids
        assert not any(gone(pid) for pid in pids)
        run.send_signal(number)
        run.wait(10)
        assert wait_until(lambda: all(gone(pid) for pid in pids))
        assert run.stderr.read().count("KeyboardInterrupt") == (number == signal.SIGINT)
