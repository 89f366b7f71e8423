"""What an estimator returns: a distribution with its certificates."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.data.public.joint import Codes, Joint

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.estimating.layout import Layout


class Status(enum.Enum):
    """Why an estimator stopped, and what to do about it."""

    CONVERGED = "converged"
    EXHAUSTED = "exhausted"
    STALLED = "stalled"
    CYCLING = "cycling"
    UNREACHABLE = "unreachable"
    HOPELESS = "hopeless"

    @property
    def advice(self) -> str:
        """What the status means for the user."""
        return _ADVICE[self]


_ADVICE = {
    Status.CONVERGED: "Nothing to do: the estimate is optimal to the tolerance asked for (IDE: all answers are met).",
    Status.EXHAUSTED: "The step limit was reached first; look at the gap, and raise the limit if the gap matters.",
    Status.STALLED: "Double precision allows no further progress; the gap says how close to optimal this is.",
    Status.CYCLING: "Every sweep misses the answers by the same amount: they contradict each other, or nearly so, and "
    "Algorithm 1 goes round in circles, so the result depends on the part that was visited last. Use MAP, or TwoStage "
    "for the exact optimum.",
    Status.UNREACHABLE: "It is proved that no distribution on the prior's rows has these exact answers; give the "
    "answers a scale, widen the prior, or use TwoStage for the nearest reachable ones.",
    Status.HOPELESS: "No cell with a positive answer has a row in the prior, so the answers could not be used and the "
    "estimate is the prior. Check that the schema's values and the public table belong together.",
}


@dataclass(frozen=True)
class PartFit:
    """How one part's noisy answer is met."""

    name: str
    residual: float  # sum of |estimated - noisy| counts
    noise_units: float  # the same per cell, in units of the noise's expected size: about 1 if noise explains it
    unreachable: float  # share of the total that the answer puts in cells without any row in the prior


@dataclass(frozen=True)
class TraceRow:
    """An estimator's progress after one step."""

    step: int
    passes: float
    objective: float  # IDE has none: the largest miss that the sweep met
    gap: float
    kl: float


@dataclass(frozen=True)
class Report:
    """Everything about an estimate but the distribution."""

    estimator: str
    status: Status
    total: float
    kl: float  # KL(q || p) in nats
    objective: float
    gap: float
    parts: tuple[PartFit, ...]
    trace: tuple[TraceRow, ...] = ()
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    certificate: Mapping[str, float] = field(default_factory=dict)

    @property
    def unreachable(self) -> float:
        """The largest share of unreachable mass over the parts."""
        return max((fit.unreachable for fit in self.parts), default=0.0)


class Estimate(Joint):
    """A distribution on the prior's rows, with a report on how it was made.

    Weights are calculated when they are first used; until then an estimate is only its multipliers.
    """

    def __init__(
        self,
        schema: Schema,
        codes: Codes,
        report: Report,
        *,
        weights: Floats | None = None,
        layout: Layout | None = None,
        multipliers: Floats | None = None,
    ) -> None:
        self.schema = schema
        self.codes = codes
        self.report = report
        self.multipliers = multipliers
        self._layout = layout
        if weights is not None:
            self.weights = weights

    @cached_property
    def weights(self) -> Floats:  # type: ignore[override]
        """Mass of each row, sum 1."""
        assert self._layout is not None
        assert self.multipliers is not None
        return self._layout.expand(self._layout.evaluate(self.multipliers).normalised())

    def emptied(self, layout: Layout) -> NDArray[np.bool_] | None:
        """Which collapsed rows of the layout it started from have no mass, whatever the multipliers; None for none."""
        if self._layout is None or self._layout.base is layout.base:
            return None
        gone = (layout.base > 0) & (self._layout.base == 0)
        return gone if gone.any() else None

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))

    def __repr__(self) -> str:
        r = self.report
        return f"Estimate({r.estimator}, {r.status.value}, {len(self)} rows, KL {r.kl:.4g}, gap {r.gap:.2g})"

    @property
    def status(self) -> Status:
        """Why the estimator stopped."""
        return self.report.status
