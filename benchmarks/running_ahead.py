"""How much further a search for a plan gets with workers that run ahead of it, and how much of their work is in vain.

One search is run to its end here, and what each of its draws took is noted. The same search is then repeated with any
number of workers on a clock that is moved by hand, where a draw takes what it took here. What workers make in vain is
made here as well, because workers that know it know better what comes next. What the search itself does between two
draws takes no time on this clock.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from heapq import heappop, heappush
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from common import need_data, report, table
from invented_nation import LEVELS, nation
from prade import Schema, Task, Unit
from prade.core.execution import Execution, single_threaded_blas
from prade.data.public.public import Public
from prade.tuning import trials
from prade.tuning.effort import Effort
from prade.tuning.trials import Draw, Trials, TrialsAhead
from prade.tuning.tune import Tuner

WORKERS = (1, 2, 4, 8, 16)


class Known:
    """Draws with what they took in processor seconds; those that are new are made here."""

    def __init__(self, tuner: Tuner) -> None:
        self.tuner = tuner
        self.found: dict[Draw, tuple[Any, float]] = {}

    def __call__(self, draw: Draw) -> tuple[Any, float]:
        if draw not in self.found:
            began = time.process_time()
            errors = self.tuner.stages.here.errors(self.tuner.task.budget, draw)
            self.found[draw] = errors, time.process_time() - began
        return self.found[draw]


class ByHand(Executor):
    """Workers on a clock that is moved by hand, from the end of one draw to that of the next."""

    def __init__(self, workers: int, known: Known) -> None:
        self._max_workers = workers
        self.now = 0.0
        self._known = known
        self._order = count()
        self._running: list[tuple[float, int, Draw, Future[Any]]] = []
        self._waiting: deque[tuple[Draw, Future[Any]]] = deque()

    def submit(self, work: Any, draw: Draw, number: int) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self._waiting.append((draw, future))
        self._start()
        return future

    def advance(self, *_: Any, **options: Any) -> None:
        """Move the clock to the end of the next draw."""
        self.now, _, draw, future = heappop(self._running)
        future.set_result(self._known(draw)[0])
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._max_workers:
            draw, future = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                heappush(self._running, (self.now + self._known(draw)[1], next(self._order), draw, future))


@contextmanager
def moved_by(executor: ByHand) -> Iterator[None]:
    """The tuner's clocks show the executor's time, and waiting moves it on."""
    clock = SimpleNamespace(monotonic=lambda: executor.now)
    with ExitStack() as patches:
        patches.enter_context(patch.object(trials, "wait", executor.advance))
        patches.enter_context(patch("prade.tuning.effort.time", clock))
        yield


def alone(tuner: Tuner, known: Known) -> tuple[float, int]:
    """A search to its end without workers: the seconds of its draws, and their number."""
    draws = Trials(lambda draw: known(draw)[0], partial(tuner.stages.here.work, tuner.task.budget))
    with single_threaded_blas():
        tuner._searched(tuner.task.budget, Effort.of(10**6), None, 0, draws)
    return sum(took for _, took in known.found.values()), draws.asked


def repeated(tuner: Tuner, known: Known, workers: int) -> tuple[float, int, int]:
    """Seconds until the search ends, draws that it asked for, draws that were made in vain."""
    executor = ByHand(workers, known)
    work = partial(tuner.stages.here.work, tuner.task.budget)
    draws = TrialsAhead(lambda draw, number: known(draw)[0], work, Execution(executor=executor))
    with moved_by(executor), single_threaded_blas():
        tuner._searched(tuner.task.budget, Effort.of(10**6), None, 0, draws)
        draws.close()
    return executor.now, draws.asked, draws.made - draws.asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--epsilon", default="1")
    options = parser.parse_args()
    need_data()
    files = nation(100, 120_000, 8)
    schema = Schema.load(files.schema)
    step = max(1, len(schema.coded) // options.columns)
    schema = schema.select([*LEVELS, *schema.coded[::step]])
    task = Task("nation", schema, options.epsilon, Unit(1), LEVELS, files.places)
    with Tuner(task, Public.of(schema, files.public, LEVELS), execution=Execution(1)) as tuner:
        known = Known(tuner)
        whole, number = alone(tuner, known)
        lines = []
        for workers in WORKERS:
            took, asked, in_vain = repeated(tuner, known, workers)
            efficiency = whole / took / workers
            lines.append([workers, f"{took:.1f}", f"{whole / took:.1f}", f"{efficiency:.0%}", asked, in_vain])
    text = (
        f"A search of {number} draws, {whole:.0f} s in one thread ({len(schema.coded)} columns, 50 public places, "
        f"epsilon {options.epsilon}):\n\n"
        + table(["workers", "seconds", "times as fast", "efficiency", "draws asked for", "draws in vain"], lines)
    )
    report("running_ahead", text, {"seconds": whole, "draws": number})


if __name__ == "__main__":
    main()
