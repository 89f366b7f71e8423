"""What a command uses: seconds, processor seconds and memory, those of all processes that it starts included."""

from __future__ import annotations

import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.5  # seconds between two looks at the memory
GIB = 2**30


@dataclass(frozen=True)
class Used:
    """Wall seconds, processor seconds, and the largest memory at one time, in GiB.

    A page that several processes share is counted once.
    """

    seconds: float
    processor: float
    gib: float


def measured(command: Sequence[str], log: Path, cores: int | None = None) -> Used:
    """Run a command on some of the cores; its output goes to a file, and is shown if it fails."""
    began, peak = time.perf_counter(), 0
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        if cores is not None:
            os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:cores])
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            peak = max(peak, memory(process.pid))
            time.sleep(EVERY)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    return Used(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, peak / GIB)


def memory(root: int) -> int:
    """Bytes of a process and all that it has started; a page that several of them share is counted once.

    Or the most that the largest of them ever had by now, if that is more: it may have been between two looks. (What the
    system says of a process that has ended begins with the memory of the process that started it.)
    """
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                children[int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])].append(int(entry))
    waiting, found, largest = [root], 0, 0
    while waiting:
        process = waiting.pop()
        waiting += children[process]
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            found += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            largest = max(largest, *(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
    return max(found, largest)
