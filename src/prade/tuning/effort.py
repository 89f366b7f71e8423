"""How much a search for a plan may do: counted work, and seconds only as a safety net.

What a search tries must not depend on what else runs on the machine, so its work is counted. Seconds end a search that
would take unreasonably long; the plan then says so.

The work of a rehearsal is predicted from public sizes: rows, groups, parts, cells. One unit is about what two idle
cores did in a second where the factors below were measured: they were fitted to the processor time of 240 rehearsals of
seven jobs, from 0.01 to 9 seconds; five times in six, the prediction was right to within a factor of 2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from prade.core.errors import PradeError
from prade.core.execution import EFFORT, Progress
from prade.data.declare.groups import Groups
from prade.estimating.levels.answers import parts_of
from prade.estimating.levels.public_cells import WORTHWHILE
from prade.estimating.levels.variation import blocks_of
from prade.estimating.solvers import MOST_CELLS_FOR_NEWTON
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.queries.parts import Part

# Processor seconds of each thing that is counted.
ALWAYS = 0.05  # reading the plan, drawing noise
A_ROW_SCORED = 3.1e-9  # in one pair of columns
A_ROW_OF_A_BUNDLE = 4.6e-9  # in one pass over the rows
A_PRODUCT = 2.9e-10  # of two cells, in Newton's matrices
A_ROTATION = 1.2e-10  # of the cube of cells that are smoothed together
A_DEVIATION = 2.5e-6  # of one group in one cell, for all the sizes that differences between groups may have
AT_ONCE = 1.7  # processor seconds in a second of two idle cores

FEWEST_SECONDS = 600.0  # that a search may take at most: the safety net of a machine that is slow or busy
SECONDS_PER_EFFORT = 5.0  # where that is more

BITS_OF_A_BUNDLE = 11  # parts are stored together while their cells have at most 2^11 combinations
NEWTON_PASSES, NEWTON_MATRICES = 12, 3
OTHER_PASSES = 200  # with more cells than Newton's method takes
EIGENVECTORS = 1 + 16 / 3  # for every block of smoothed cells: one set, and 16 tridiagonal forms at a third of the time
FEWEST_IN_SAMPLE, PER_CELL = 8192, 8  # rows that Newton's matrices are estimated from


@dataclass
class Effort:
    """The work that a search may do, and the seconds that it may take at most."""

    allowed: float
    seconds: float
    progress: Progress | None = None
    what: str = "rehearsing"
    began: float = field(default_factory=time.monotonic)
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
        most = max(FEWEST_SECONDS, SECONDS_PER_EFFORT * searches * effort) if seconds is None else seconds
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


def _check(name: str, value: object, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise PradeError(f"{name} is {value!r}: give {meaning}")


def work_of(plan: Plan, settings: Settings, groups: Groups, rows: int, scored: int, pairs: int) -> float:
    """The work of one draw: estimates of `groups`, from this many public rows, of which some are scored on pairs."""
    support = min(rows, settings.support) if settings.thins and rows >= WORTHWHILE * settings.support else rows
    seconds = ALWAYS + A_ROW_SCORED * scored * pairs * rows
    for number, level in enumerate(plan.levels):
        parts = parts_of(plan, number)
        there = len(groups.level(level.by))
        fitted = scored if number == len(plan.levels) - 1 else there
        seconds += fitted * _one_fit(parts, support)
        if settings.smooth:
            smoothed = [block.stop - block.start for block in blocks_of(parts)]  # cells, of which groups differ
            seconds += sum(A_ROTATION * EIGENVECTORS * cells**3 + A_DEVIATION * there * cells for cells in smoothed)
    return seconds / AT_ONCE


def _one_fit(parts: Sequence[Part], rows: int) -> float:
    cells = sum(part.n_cells for part in parts)
    bundles = sum(min(1.0, math.log2(part.n_cells + 1) / BITS_OF_A_BUNDLE) for part in parts)
    a_pass = A_ROW_OF_A_BUNDLE * rows * bundles
    if cells > MOST_CELLS_FOR_NEWTON:
        return OTHER_PASSES * a_pass
    sample = min(rows, max(FEWEST_IN_SAMPLE, PER_CELL * cells))
    return NEWTON_PASSES * a_pass + A_PRODUCT * (NEWTON_MATRICES * sample * len(parts) ** 2 + 2 * cells**3)
