"""Worker processes of this machine: they work, leave Ctrl-C to the main process, and end with it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from prade.core.execution import Execution, processes

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


def test_they_work_and_end_with_the_block():
    with processes(2) as executor:
        workers = Execution(executor=executor)
        assert workers.number == 2
        assert list(workers.map(abs, [-1, 2])) == [1, 2]
        assert os.getpid() not in (pids := [executor.submit(os.getpid).result() for _ in range(4)])
    assert wait_until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks processes up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_they_end_when_the_main_process_is_killed(number, tmp_path):
    (tmp_path / "run.py").write_text(RUN)
    with subprocess.Popen([sys.executable, tmp_path / "run.py"], stdout=subprocess.PIPE, text=True) as run:
        pids = [int(pid) for pid in run.stdout.readline().split()]
        assert pids
        assert not any(gone(pid) for pid in pids)
        run.send_signal(number)
        run.wait(10)
        assert wait_until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks processes up in /proc")
def test_ctrl_c_is_left_to_the_main_process(tmp_path):
    (tmp_path / "run.py").write_text(RUN)
    with subprocess.Popen(
        [sys.executable, tmp_path / "run.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        pids = [int(pid) for pid in run.stdout.readline().split()]
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        time.sleep(0.2)
        assert not any(gone(pid) for pid in pids)
        run.send_signal(signal.SIGINT)
        run.wait(10)
        assert wait_until(lambda: all(gone(pid) for pid in pids))
        assert run.stderr.read().count("KeyboardInterrupt") == 1
