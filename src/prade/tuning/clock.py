"""The time that the search for a plan may take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from prade.core.errors import PradeError
from prade.core.progress import Progress


@dataclass(frozen=True)
class Clock:
    """The time that the search for a plan may take."""

    began: float
    seconds: float
    progress: Progress | None
    what: str = "rehearsing"

    @classmethod
    def of(cls, seconds: float, progress: Progress | None, what: str = "rehearsing") -> Clock:
        """From now on."""
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
            raise PradeError(f"seconds is {seconds!r}: give how long the tuner may take, such as 120")
        return cls(time.monotonic(), seconds, progress, what)

    def enough(self, needed: float) -> bool:
        """Whether there is time for something that takes `needed` seconds."""
        passed = time.monotonic() - self.began
        if self.progress is not None:
            self.progress(self.what, min(passed, self.seconds), self.seconds)
        return passed + needed < self.seconds

    def end(self) -> None:
        """Say that all is done, which may be before or after the seconds are over."""
        if self.progress is not None:
            self.progress(self.what, 1, 1)
