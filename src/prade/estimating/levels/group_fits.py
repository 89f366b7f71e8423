"""The estimates of some groups, made by whichever worker is free.

What goes out is small, a `Batch`: the smoothed answers of a few groups of one parent, and the tilts of that parent and
those above it. What comes back is small, too: `Made`, a group's tilt, its certificate and the shares of some cells. The
public rows are those of the worker's `Foundation`, and so are the weights of the parent, once they are worked out.
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
FEWEST_BATCHES = 64  # of a level with many groups


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """A group's number, its number of rows, and its answers as shares with their standard deviations."""

    group: int
    rows: float
    share: Floats
    deviation: Floats


@dataclass(frozen=True)
class Method:
    """How the groups of a level are estimated, and the law of the noise that is left in their answers."""

    level: int
    estimator: Estimator
    law: NoiseLaw


@dataclass(frozen=True, eq=False)
class Batch:
    """Some groups of one parent, and the tilts of all above them, from the first level to the parent."""

    ancestors: tuple[Tilt, ...]
    groups: tuple[GroupAnswers, ...]


@dataclass(frozen=True, eq=False)
class Made:
    """A group's tilt, what the estimator reports, and shares of cells."""

    tilt: Tilt
    status: str
    kl: float
    gap: float
    masses: Floats


def estimated(shared: Shared[Foundation], method: Method, batch: Batch) -> list[Made]:
    """The estimates of a batch."""
    foundation, found = shared.value, []
    common: Layout | None = None  # with the prior of all groups that have none of their own
    with single_threaded_blas():  # the order of sums must not depend on what else runs
        parent = foundation.weights(batch.ancestors)
        for answers in batch.groups:
            estimate, layout = fitted(foundation, method, answers, parent, common)
            common = common if foundation.own_prior(method.level, answers.group) else layout
            emptied = estimate.emptied(layout)
            # if a group's answers were hopeless, its estimate is the prior
            multipliers = np.zeros(layout.n_cells) if estimate.multipliers is None else estimate.multipliers
            packed = None if emptied is None else np.packbits(emptied).tobytes()
            tilt = Tilt(method.level, answers.group, multipliers, packed)
            found.append(_made(foundation, tilt, estimate, layout, parent))
    return found


def fitted(
    foundation: Foundation, method: Method, answers: GroupAnswers, parent: Floats, common: Layout | None = None
) -> tuple[Estimate, Layout]:
    """A group's estimate and its layout.

    `parent` are weights. `common` is the layout of another group of the same parent that has no prior of its own.
    """
    shape, layout = foundation.layout(method.level), common
    if layout is None or foundation.own_prior(method.level, answers.group):
        layout = shape.reweighted(foundation.prior(method.level, answers.group, parent))
    per_scale = np.sqrt(method.law.unit_variance)  # standard deviations per unit of scale
    counts, scales = answers.rows * answers.share, answers.rows * answers.deviation / per_scale
    measurements = Measurement.of_parts(shape.workload.parts, counts, scales, method.law)
    assert isinstance(layout.prior, Prior)
    return method.estimator.fit(layout.prior, measurements, answers.rows, layout=layout), layout


def _made(foundation: Foundation, tilt: Tilt, estimate: Estimate, layout: Layout, parent: Floats) -> Made:
    handed_on = tilt.level < len(foundation.plan.levels) - 1
    # the cells that the next level is estimated from; after the last level, those of the first, which has all parts
    wanted = foundation.layout((tilt.level + 1) % len(foundation.plan.levels))
    others = wanted.workload.parts != layout.workload.parts
    if tilt.emptied is not None:
        weights, masses = foundation.worked_out(tilt, parent)
    else:
        tilted = layout.evaluate(tilt.multipliers)  # what the climb did last
        masses = tilted.masses
        if handed_on or others:
            weights = layout.expand(tilted.normalised())
    if handed_on:
        foundation.keep(tilt, weights)
    if others:
        masses = wanted.masses_of(wanted.collapsed(weights))
    report = estimate.report
    return Made(tilt, report.status.value, report.kl, report.gap, masses)


def batches_of(answers: Sequence[GroupAnswers], ancestors: Sequence[tuple[Tilt, ...]]) -> list[Batch]:
    """Batches of groups of one parent, parent by parent; `ancestors` are those of each group.

    They depend on the groups only, not on the workers: with few groups each is a batch, so that all workers have some.
    """
    most = min(max(len(answers) // FEWEST_BATCHES, 1), MOST_GROUPS)
    by_parent: dict[int, list[int]] = {}
    for number, above in enumerate(ancestors):
        by_parent.setdefault(above[-1].group if above else 0, []).append(number)
    return [
        Batch(ancestors[numbers[0]], tuple(answers[number] for number in numbers[first : first + most]))
        for numbers in by_parent.values()
        for first in range(0, len(numbers), most)
    ]


# ---------------------------------------------------------------------- groups that a run has finished

# Every few seconds the groups that are new go into one more file, in MessagePack: a run that was killed goes on there,
# with the same doubles, to the last bit.


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
    emptied: bytes | None

    @classmethod
    def of(cls, made: Made) -> _Group:
        tilt = made.tilt
        numbers = tilt.multipliers.tobytes(), made.masses.tobytes()
        return cls(tilt.level, tilt.group, made.status, made.kl, made.gap, *numbers, tilt.emptied)

    @property
    def made(self) -> Made:
        tilt = Tilt(self.level, self.group, _numbers(self.multipliers), self.emptied)
        return Made(tilt, self.status, self.kl, self.gap, _numbers(self.masses))


def _numbers(data: bytes) -> Floats:
    return np.frombuffer(data, np.float64)


class FinishedGroups:
    """What earlier runs have kept in a folder, and what this one adds to it; without a folder, nothing is kept."""

    def __init__(self, batches: FinishedBatches | None) -> None:
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
