"""How much a search for a plan may do: counted work, and seconds only as a safety net.

What a search tries must not depend on what else runs on the machine, so its work is counted (`prade.tuning.work`): the
same candidates are tried on a busy machine and on an idle one, by one worker and by eight. Seconds end a search that
would take unreasonably long; the plan then says so.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from prade.core.errors import PradeError
from prade.core.execution import EFFORT, Progress, most_seconds


@dataclass
class Effort:
    """The work that a search may do, and the seconds that it may take at most."""

    allowed: float
    seconds: float
    progress: Progress | None = None
    what: str = "rehearsing"
    began: float = field(default_factory=lambda: time.monotonic())
    time_was_up: bool = False  # whether the seconds, rather than the work, have ended the search

    @classmethod
    def of(
        cls,
        effort: float = EFFORT,
        seconds: float | None = None,
        progress: Progress | None = None,
        *,
        times: int = 1,
        searches: int = 1,
    ) -> Effort:
        """From now on, `times` as much as is given; each of several `searches` may do as much work."""
        _check("effort", effort, "how much work the tuner may do, such as 120")
        most = most_seconds(searches * effort, seconds)
        _check("seconds", most, "how long the tuner may take at most, such as 600")
        return cls(times * searches * effort, times * most, progress)

    def enough(self, done: float, needed: float) -> bool:
        """Whether `needed` more work may be done after `done`."""
        if self.progress is not None:
            self.progress(self.what, min(done, self.allowed), self.allowed)
        return not self.time_up() and done + needed <= self.allowed

    def time_up(self) -> bool:
        """Whether the seconds are over; once they were, they stay so."""
        self.time_was_up = self.time_was_up or time.monotonic() - self.began >= self.seconds
        return self.time_was_up

    def end(self) -> None:
        """Say that all is done, which may be before all work is used up."""
        if self.progress is not None:
            self.progress(self.what, 1, 1)


def _check(name: str, given: object, meaning: str) -> None:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < math.inf:
        raise PradeError(f"{name} is {given!r}: give {meaning}")
