"""The groups that a run has estimated so far, kept in the release's folder, so that a killed run goes on where it was.

Every few seconds the groups that are new go into one more file (`prade.release.derived_files`), in MessagePack: the
same doubles come back, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import Self

import msgspec
import numpy as np

from prade.core.arrays import Floats
from prade.estimating.levels.foundation import Tilt
from prade.estimating.levels.group_fits import Made
from prade.release.derived_files import FinishedBatches, keep_batch

KEEP_EVERY = 2.0  # seconds; a kill loses no more work than that
SHARE_OF_TIME = 0.01  # that a long run may go without keeping anything, so that its files do not become too many
SUFFIX = ".msgpack"


class _Group(msgspec.Struct, array_like=True):
    level: int
    group: int
    status: str
    kl: float
    gap: float
    multipliers: bytes
    masses: bytes
    alike: bytes | None
    emptied: bytes | None

    @classmethod
    def of(cls, made: Made) -> _Group:
        tilt = made.tilt
        alike = None if tilt.alike is None else tilt.alike.tobytes()
        numbers = tilt.multipliers.tobytes(), made.masses.tobytes()
        return cls(tilt.level, tilt.group, made.status, made.kl, made.gap, *numbers, alike, tilt.emptied)

    @property
    def made(self) -> Made:
        alike = None if self.alike is None else _numbers(self.alike)
        tilt = Tilt(self.level, self.group, _numbers(self.multipliers), alike, self.emptied)
        return Made(tilt, self.status, self.kl, self.gap, _numbers(self.masses))


def _numbers(data: bytes) -> Floats:
    return np.frombuffer(data, np.float64)


class FinishedGroups:
    """What earlier runs have kept in a folder, and what this one adds to it; without a folder, nothing is kept."""

    def __init__(self, batches: FinishedBatches | None = None) -> None:
        self.batches = batches
        self._earlier: dict[int, dict[int, Made]] = {}
        self._new: list[Made] = []
        self._started = self._kept = monotonic()
        for path in batches.paths(SUFFIX) if batches is not None else ():
            for each in msgspec.msgpack.decode(path.read_bytes(), type=list[_Group]):
                self._earlier.setdefault(each.level, {})[each.group] = each.made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:  # what is finished is kept; without an error, the run is complete
            self._keep()

    def earlier(self, level: int) -> dict[int, Made]:
        """The groups of a level that earlier runs finished."""
        return self._earlier.get(level, {})

    def add(self, made: Sequence[Made]) -> None:
        """Keep some more groups, if it is time for it."""
        self._new += made if self.batches is not None else ()
        now = monotonic()
        if now - self._kept >= max(KEEP_EVERY, SHARE_OF_TIME * (now - self._started)):
            self._keep()

    def _keep(self) -> None:
        if self._new:
            assert self.batches is not None
            first = self._new[0].tilt
            content = msgspec.msgpack.encode([_Group.of(each) for each in self._new])
            with keep_batch(self.batches.folder, f"{first.level}-{first.group}", SUFFIX) as temporary:
                temporary.write_bytes(content)
            self._new = []
        self._kept = monotonic()
