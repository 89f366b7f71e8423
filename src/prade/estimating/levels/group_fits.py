"""The estimates of some groups, made by whichever worker is free.

What goes out is small, a few groups' answers; what comes back is small, too: `Made`, a group's tilt and its
certificate. The public rows are those of the worker's `Foundation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Self

import msgspec
import numpy as np

from prade.core.arrays import Floats
from prade.core.execution import Shared, single_threaded_blas
from prade.data.public.joint import Prior
from prade.estimating.base import Estimator
from prade.estimating.estimate import Estimate
from prade.estimating.layout import Layout
from prade.estimating.levels.foundation import Foundation, Tilt
from prade.privacy.noise_law import NoiseLaw
from prade.release.derived_files import FinishedBatches, keep_batch
from prade.release.release import Measurement

MOST_GROUPS = 8  # in a batch: seconds of work with a million public rows, and some kilobytes
FEWEST_BATCHES = 64  # where there are many groups


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """A group's number, its number of rows, its answers as shares with their standard deviations.

    `above` are the multipliers of its parent.
    """

    group: int
    rows: float
    share: Floats
    deviation: Floats
    above: Floats


@dataclass(frozen=True)
class Method:
    """How groups are estimated, and the law of the noise that is left in their answers."""

    estimator: Estimator
    law: NoiseLaw


@dataclass(frozen=True, eq=False)
class Made:
    """A group's tilt, and what the estimator reports."""

    tilt: Tilt
    status: str
    kl: float
    gap: float


def estimated(shared: Shared[Foundation], method: Method, groups: Sequence[GroupAnswers]) -> list[Made]:
    """The estimates of some groups of the last level."""
    foundation, found = shared.value, []
    with single_threaded_blas():  # the order of sums must not depend on what else runs
        for answers in groups:
            layout = foundation.start(answers.group, answers.above)
            estimate = fitted(layout, method, answers)
            emptied = estimate.emptied(layout)
            packed = None if emptied is None else np.packbits(emptied).tobytes()
            tilt = Tilt(answers.group, multipliers_of(estimate, answers), packed)
            report = estimate.report
            found.append(Made(tilt, report.status.value, report.kl, report.gap))
    return found


def multipliers_of(estimate: Estimate, answers: GroupAnswers) -> Floats:
    """What turns a group's base distribution into its estimate; if its answers were hopeless, that is its prior."""
    return answers.above if estimate.multipliers is None else answers.above + estimate.multipliers


def fitted(layout: Layout, method: Method, answers: GroupAnswers) -> Estimate:
    """A group's estimate from its prior, which is that of the layout."""
    per_scale = np.sqrt(method.law.unit_variance)  # standard deviations per unit of scale
    counts, scales = answers.rows * answers.share, answers.rows * answers.deviation / per_scale
    measurements = Measurement.of_parts(layout.workload.parts, counts, scales, method.law)
    assert isinstance(layout.prior, Prior)
    return method.estimator.fit(layout.prior, measurements, answers.rows, layout=layout)


def batches_of(answers: Sequence[GroupAnswers]) -> list[Sequence[GroupAnswers]]:
    """The groups in batches. They depend on the groups only, not on the workers: few groups are a batch each."""
    most = min(max(len(answers) // FEWEST_BATCHES, 1), MOST_GROUPS)
    return [answers[first : first + most] for first in range(0, len(answers), most)]


# ---------------------------------------------------------------------- groups that a run has finished

# Every few seconds the groups that are new go into one more file, in MessagePack: a run that was killed goes on there,
# with the same doubles, to the last bit.


KEEP_EVERY = 2.0  # seconds; a kill loses no more work than that
SHARE_OF_TIME = 0.01  # that a long run may go without keeping anything, so that its files do not become too many
SUFFIX = ".msgpack"


class _Group(msgspec.Struct, array_like=True):
    group: int
    status: str
    kl: float
    gap: float
    multipliers: bytes
    emptied: bytes | None

    @classmethod
    def of(cls, made: Made) -> _Group:
        tilt = made.tilt
        return cls(tilt.group, made.status, made.kl, made.gap, tilt.multipliers.tobytes(), tilt.emptied)

    @property
    def made(self) -> Made:
        tilt = Tilt(self.group, np.frombuffer(self.multipliers, np.float64), self.emptied)
        return Made(tilt, self.status, self.kl, self.gap)


class FinishedGroups:
    """What earlier runs have kept in a folder, and what this one adds to it; without a folder, nothing is kept."""

    def __init__(self, batches: FinishedBatches | None) -> None:
        self.batches = batches
        self.earlier: dict[int, Made] = {}
        self._new: list[Made] = []
        self._started = self._kept = monotonic()
        for path in batches.paths(SUFFIX) if batches is not None else ():
            for each in msgspec.msgpack.decode(path.read_bytes(), type=list[_Group]):
                self.earlier[each.group] = each.made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:  # what is finished is kept; without an error, the run is complete
            self._keep()

    def add(self, made: Sequence[Made]) -> None:
        """Keep some more groups, if it is time for it."""
        self._new += made if self.batches is not None else ()
        now = monotonic()
        if now - self._kept >= max(KEEP_EVERY, SHARE_OF_TIME * (now - self._started)):
            self._keep()

    def _keep(self) -> None:
        if self._new:
            assert self.batches is not None
            first = self._new[0].tilt.group
            content = msgspec.msgpack.encode([_Group.of(each) for each in self._new])
            with keep_batch(self.batches.folder, str(first), SUFFIX) as temporary:
                temporary.write_bytes(content)
            self._new = []
        self._kept = monotonic()
