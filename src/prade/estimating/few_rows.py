"""Few rows that stand for many: where a climb begins, before it sees all rows.

A systematic sample of a layout's rows, drawn as the rows of a curvature are (`Bundles.sampled`), so that every cell
that has mass keeps some. Groups with the same prior share it. A climb on these rows ends close to the optimum on all
rows and takes a fraction of the time; from there two or three passes over all rows are enough, and their certificate is
the one that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

from prade.estimating.tilted import Tilted

Sample = TypeVar("Sample")

ONE_IN = 4  # rows: with one in eight, the climb on all rows takes one pass more
FEWEST = 2**15  # rows of a sample
MOST_KEPT = 4  # samples: groups come parent by parent, in a few threads


def worthwhile(rows: int) -> bool:
    """Whether a layout has enough rows for a climb to begin with few of them."""
    return rows >= ONE_IN * FEWEST


class FewRows(Generic[Sample]):
    """The samples that were used last, by the start of the groups that share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: list[tuple[Tilted, Sample]] = []

    def __reduce__(self) -> tuple[type[FewRows[Any]], tuple[()]]:
        return FewRows, ()  # another process draws them again

    def of(self, start: Tilted, draw: Callable[[], Sample]) -> Sample:
        """The sample for this start: `draw` is called if it is not among those kept."""
        with self._lock:
            for known, found in reversed(self._kept):
                if known is start:
                    return found
        found = draw()
        with self._lock:
            self._kept = [*self._kept[1 - MOST_KEPT :], (start, found)]
        return found
