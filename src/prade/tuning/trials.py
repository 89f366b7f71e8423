"""The draws of a search: one choice, rehearsed with one stand-in and one draw of noise. Each is made once.

Here (`Trials`) a draw is made when the search asks for it. On workers (`TrialsAhead`) the search runs as before, one
candidate after the other, and while it waits, the workers make the draws that it will probably ask for next. A draw is
the same wherever and whenever it is made, so the search finds the same, and the more workers the sooner. What it never
asks for was in vain; `made` and `asked` say how much that is.

What the search has done so far is the work (`prade.tuning.work`) of draws that it asked for, no matter who made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass

from prade.core.arrays import Floats
from prade.core.execution import Execution, WorkersError, result_of
from prade.tuning.choice import Choice

LONGEST_WAIT = 1.0  # seconds until workers are looked at again


@dataclass(frozen=True)
class Draw:
    """A choice rehearsed with one stand-in and the noise of one seed; `fresh` is that of `Rehearsal.errors`."""

    choice: Choice
    stand_in: int
    seed: int
    fresh: bool = False


class Trials:
    """Draws that are made here, each when it is asked for; `errors(draw)` has the errors of the groups.

    `work(draw)` is what it takes (`prade.tuning.work`).
    """

    def __init__(self, errors: Callable[[Draw], Floats], work: Callable[[Draw], float]) -> None:
        self._errors = errors
        self._work_of = work
        self._found: dict[Draw, Floats] = {}
        self._asked: set[Draw] = set()
        self.done = 0.0  # work of all draws that the search has asked for

    @property
    def asked(self) -> int:
        """How many draws the search has asked for."""
        return len(self._asked)

    @property
    def made(self) -> int:
        """How many draws were made, or are being made."""
        return len(self._found)

    def errors(self, draw: Draw) -> Floats:
        """The errors of a draw."""
        if draw not in self._asked:
            self.done += self.work([draw])
            self._asked.add(draw)
        if draw not in self._found:
            self._make(draw)
        return self._found[draw]

    def need(self, draws: Iterable[Draw]) -> None:
        """Say that all of these will be asked for."""

    def expect(self, draws: Iterator[Draw], *, anew: bool = False) -> None:
        """Say what will probably be asked for next, the likeliest first; `anew` if nothing said before holds."""

    def knows(self, draw: Draw) -> bool:
        """Whether a draw has been made."""
        return draw in self._found

    def seen(self, draw: Draw) -> Floats:
        """The errors of a draw that has been made; this does not ask for it."""
        return self._found[draw]

    def work(self, draws: Iterable[Draw]) -> float:
        """The work of those of some draws that were not asked for yet, whether or not they have been made ahead."""
        return sum(self._work_of(draw) for draw in draws if draw not in self._asked)

    def close(self) -> None:
        """Stop what is not needed any more."""

    def _make(self, draw: Draw) -> None:
        self._found[draw] = self._errors(draw)


class TrialsAhead(Trials):
    """Draws that workers make, those first that are needed, then those that probably will be.

    `task(draw, number)` is one task, whose number tells it from all others. Nothing that is only likely waits in a
    queue, where it would be in the way of what is needed.
    """

    def __init__(self, task: Callable[[Draw, int], Floats], work: Callable[[Draw], float], workers: Execution) -> None:
        super().__init__(lambda draw: task(draw, 0), work)
        self._task = task
        self._started = 0
        self._workers = workers
        self._running: dict[Draw, Future[Floats]] = {}
        self._failed: dict[Draw, Future[Floats]] = {}
        self._likely: Iterator[Draw] = iter(())
        self._needed: set[Draw] = set()

    @property
    def number(self) -> int:
        """How many workers there are now: they may come and go."""
        return self._workers.number

    @property
    def made(self) -> int:
        return len(self._found) + len(self._running)

    def need(self, draws: Iterable[Draw]) -> None:
        for draw in draws:
            self._needed.add(draw)
            self._start(draw)

    def expect(self, draws: Iterator[Draw], *, anew: bool = False) -> None:
        if anew:
            self._cancel(set(self._running) - self._needed)
        self._likely = draws

    def close(self) -> None:
        self._cancel(set(self._running))
        self._likely = iter(())

    def _make(self, draw: Draw) -> None:
        """Wait for a draw; meanwhile, keep the workers busy."""
        self.need([draw])
        self._collect()
        while draw in self._running:
            self._fill()
            # not for ever: what is cancelled when an executor is shut down is not waited for in vain
            wait(self._running.values(), timeout=LONGEST_WAIT, return_when=FIRST_COMPLETED)
            self._collect()
        if draw in self._failed:
            if self._failed[draw].cancelled():
                raise WorkersError("the workers were shut down before the rehearsals were done: run it again")
            result_of(self._failed[draw])

    def _fill(self) -> None:
        """Start what is likely while there are workers without work."""
        free = self.number - len(self._running)
        while free > 0 and (draw := next(self._likely, None)) is not None:
            free -= self._start(draw)

    def _start(self, draw: Draw) -> bool:
        if draw in self._found or draw in self._running or draw in self._failed:
            return False
        try:
            self._started += 1  # is sent too: Dask takes equal tasks for one, and would cancel a new with an old one
            self._running[draw] = self._workers.submit(self._task, draw, self._started)
        except BrokenExecutor as error:  # said when a draw is asked for, as if it had failed there
            self._failed[draw] = Future()
            self._failed[draw].set_exception(error)
        return True

    def _collect(self) -> None:
        """Take what is done. A draw that failed matters only if it is asked for: perhaps nobody ever does."""
        for draw in [draw for draw, future in self._running.items() if future.done()]:
            future = self._running.pop(draw)
            if future.cancelled() or future.exception() is not None:
                self._failed[draw] = future
            else:
                self._found[draw] = future.result()

    def _cancel(self, draws: Iterable[Draw]) -> None:
        """Let go of draws that no worker has begun."""
        self._collect()
        for draw in draws:
            if draw in self._running and self._running[draw].cancel():
                del self._running[draw]
