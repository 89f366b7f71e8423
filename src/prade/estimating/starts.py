"""What the first steps of different groups have in common: groups with the same prior start at the same place.

Children of one parent that have no public rows of their own start from the same masses, and so from the same cell
masses and the same curvature. Both are worked out once and found again by the masses themselves, which are compared in
full: what is shared is what each group would work out for itself, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from prade.core.arrays import Floats
from prade.estimating.tilted import Tilted

MOST_KEPT = 4  # starts: groups come parent by parent, in a few threads


class Start:
    """A prior's masses as a solver sees them, and curvatures there by the number of sampled rows."""

    def __init__(self, base: Floats, tilted: Tilted) -> None:
        self.base = base
        self.tilted = tilted
        self._lock = Lock()
        self._curvatures: dict[int, Floats] = {}

    def __reduce__(self) -> tuple[type[Start], tuple[Floats, Tilted]]:
        return Start, (self.base, self.tilted)  # a copy in another process works curvatures out again

    def curvature(self, sample: int, work_out: Callable[[], Floats]) -> Floats:
        """The curvature from so many rows: `work_out` is called the first time; the result must not be changed."""
        with self._lock:
            if sample not in self._curvatures:
                self._curvatures[sample] = work_out()
            return self._curvatures[sample]


class Starts:
    """The starts of a layout that were used last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: list[Start] = []

    def __reduce__(self) -> tuple[type[Starts], tuple[()]]:
        return Starts, ()

    def of(self, base: Floats, work_out: Callable[[], Tilted]) -> Start:
        """The start from these masses: `work_out` is called if it is not among those kept."""
        with self._lock:
            for each in reversed(self._kept):
                if np.array_equal(each.base, base):
                    return each
        found = Start(base, work_out())
        with self._lock:
            self._kept = [*self._kept[1 - MOST_KEPT :], found]
        return found
