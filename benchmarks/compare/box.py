"""A run in a box: its own process, so many seconds, so much memory; finished runs and failures are kept."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLL = 0.25  # seconds between two looks at the memory
GIB = 2**30
STOP = threading.Event()  # set: all boxes end at once, and nothing of them is kept
PROGRESS = "COMPARE_PROGRESS"  # names a file to the command; the last line in it says how far the command got


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    seconds: float = 600.0
    gib: float = 12.0
    processor: float = math.inf  # seconds of processor time, which a busy machine does not make longer
    groups: int = 12  # of a system that treats groups one by one


def boxed(command: Sequence[str], limits: Limits, core: int | None = None) -> dict[str, Any]:
    """Run a command that writes its result as JSON to the file named by its last argument, which is added here.

    The result; or {"failed": why} with the seconds and the memory that it had taken. The memory is that of the command
    and everything that it started; so are the processor seconds, and the `core` that they may use, where one is named.
    "progress" is the last line of the file that the environment names as PROGRESS, where one was written.
    """
    with tempfile.TemporaryDirectory() as folder:
        result, told, progress = (Path(folder) / name for name in ("result.json", "stderr", "progress"))
        with open(told, "w") as stderr:
            began = time.perf_counter()
            process = subprocess.Popen(
                [*command, str(result)],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, PROGRESS: str(progress)},
            )
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            why, peak, used = _watched(process, began, limits)
        taken = {"seconds": time.perf_counter() - began, "GiB": peak}
        seen: dict[str, Any] = {"processor seconds": used}
        if progress.exists() and (lines := progress.read_text().splitlines()):
            seen["progress"] = lines[-1]
        if STOP.is_set():
            raise KeyboardInterrupt
        if why is None and process.returncode:
            why = _last_words(told, process.returncode)
        if why is None:
            try:
                found: dict[str, Any] = json.loads(result.read_text())
                return {**found, **seen}
            except (FileNotFoundError, json.JSONDecodeError):
                why = "ended as if all were well, but without a result"
        return {"failed": why, **taken, **seen}


def _watched(process: subprocess.Popen[bytes], began: float, limits: Limits) -> tuple[str | None, float, float]:
    """Wait for the end, or make one when a limit is passed; why, the largest memory and the processor time seen."""
    peak, used, why = 0.0, 0.0, None
    try:
        while why is None and not STOP.is_set():
            try:
                process.wait(POLL)
                break
            except subprocess.TimeoutExpired:
                peak, used = max(peak, memory_of(process.pid)), max(used, processor_seconds_of(process.pid))
                if time.perf_counter() - began > limits.seconds:
                    why = f"not done in {limits.seconds:g} s"
                elif used > limits.processor:
                    why = f"not done in {limits.processor:g} s of processor time"
                elif peak > limits.gib:
                    why = f"more than {limits.gib:g} GiB"
    finally:  # whatever it started ends with it, and also when we are interrupted
        if process.poll() is None or memory_of(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return why, peak, used


def memory_of(group: int) -> float:
    """Resident GiB of all processes of a process group."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,rss="], capture_output=True, text=True, check=True).stdout
    pairs = (line.split() for line in listed.splitlines())
    return sum(int(rss) for pgid, rss in pairs if int(pgid) == group) * 1024 / GIB


def processor_seconds_of(group: int) -> float:
    """Processor seconds of all processes of a process group and of those that they waited for; 0 without /proc."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()  # from the third on: state, parent, group, ...
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))  # in itself and in the system, and the same of its children
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_gib() -> float:
    """The most memory that this process has had, in GiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the process was forked from
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / GIB
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / GIB


def _last_words(told: Path, code: int) -> str:
    """Why a command failed: the last line that it wrote, as a rule the error."""
    lines = [line.strip() for line in told.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("prade.core.errors.")[:300] if lines else f"ended with status {code}"


class Kept:
    """Results by key, in a file of one JSON line each; a line is good for the code (`stamp`) that made it.

    A failure is good for as long as no limit is larger than the one that it failed under, and so is what did only a
    part because its time was over or it was allowed few groups ("late"); with `again` not at all, once. `closed`:
    nothing new is run, and everything kept is good.
    """

    def __init__(self, file: Path, again: bool = False, closed: bool = False) -> None:
        self.file, self.closed = file, closed
        self.writing = threading.Lock()
        self.found: dict[tuple[str, str], dict[str, Any]] = {}
        text = file.read_text() if file.exists() else ""
        self.torn = bool(text) and not text.endswith("\n")  # its writer was killed while it wrote
        for line in text.splitlines():
            try:
                result = json.loads(line)
            except json.JSONDecodeError:
                continue
            self.found[result["key"], result["stamp"]] = result
        if again:
            self.found = {key: result for key, result in self.found.items() if not _short(result)}

    def get(self, key: str, stamp: str, limits: Limits) -> dict[str, Any] | None:
        """The result of a run that need not be done again."""
        result = self.found.get((key, stamp))
        if result is not None and _short(result) and not self.closed:
            seconds, gib = result["limits"]
            processor = result.get("processor limit", math.inf)
            larger = (
                limits.seconds > seconds,
                limits.processor > processor,
                limits.gib > gib and "failed" in result,
                limits.groups > result.get("groups limit", limits.groups) and "failed" not in result,
            )
            if any(larger):
                return None
        return result

    def run(
        self, key: str, stamp: str, command: Sequence[str], limits: Limits, core: int | None = None
    ) -> dict[str, Any] | None:
        """The kept result, or that of the command; None where there is none and nothing new is run."""
        result = self.get(key, stamp, limits)
        if result is None and not self.closed:
            made = boxed(command, limits, core)
            result = {"key": key, "stamp": stamp, "limits": [limits.seconds, limits.gib], **made}
            if math.isfinite(limits.processor):
                result["processor limit"] = limits.processor
            if limits.groups != Limits.groups:
                result["groups limit"] = limits.groups
            self.found[key, stamp] = result
            self.file.parent.mkdir(exist_ok=True)
            with self.writing, open(self.file, "a") as end:
                end.write("\n" * self.torn + json.dumps(result) + "\n")
                self.torn = False
        return result


def _short(result: dict[str, Any]) -> bool:
    """Whether more time might have made more of it."""
    return "failed" in result or result.get("late", False)
