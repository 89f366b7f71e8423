"""What an estimator returns: a distribution with its certificates, and its file."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.compiled import systematic
from prade.core.errors import DataError, EstimationError
from prade.data.public.joint import Codes, Joint
from prade.data.read.files import WEIGHT_FIELD

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.data.public.joint import Coded
    from prade.estimating.layout import Layout


FILE_FORMAT = 1


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

    def sample(self, n: int, seed: int) -> Coded:
        """n rows drawn systematically, in random order: each occurs n times its mass, to within one."""
        from prade.data.public.joint import Coded

        for name, value in (("n", n), ("seed", seed)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 0:
                raise EstimationError(f"{name} is {value!r}: give a whole number, 0 or more")
        generator = np.random.default_rng(seed)
        rows = systematic(self.weights, n, generator.random())
        generator.shuffle(rows)
        return Coded(self.schema, {name: code[rows] for name, code in self.codes.items()})

    def save(self, path: str | PathLike[str]) -> None:
        """Write a parquet file: the codes, the weights, and the schema and report as JSON in its metadata."""
        import pyarrow as pa

        from prade.data.read.files import write_with_header

        if WEIGHT_FIELD in self.codes:
            raise DataError(f"a column is named {WEIGHT_FIELD!r}, which the file needs for itself: rename it")
        if not str(path).endswith(".parquet"):
            raise DataError(f"{path} would be a parquet file: give a name that ends in .parquet")
        report = {**asdict(self.report), "status": self.status.value}
        header = {"format": FILE_FORMAT, "schema": self.schema.to_toml(), "report": _plain(report)}
        table = pa.table({**self.codes, WEIGHT_FIELD: self.weights})
        write_with_header(table, header, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Estimate:
        """Read what `save` wrote."""
        from prade.core.documents import structured
        from prade.data.declare.schema import Schema
        from prade.data.public.joint import Coded
        from prade.data.read.files import damage_reported, floats, read_header, whole_numbers
        from prade.data.read.tables import read_table

        table = read_table(path)
        with damage_reported(path, "a saved estimate", "give a file that Estimate.save wrote"):
            header = read_header(table, _Header, path, FILE_FORMAT)
            names, weights = [name for name in table.column_names if name != WEIGHT_FIELD], floats(table, WEIGHT_FIELD)
            codes = {name: whole_numbers(table, name) for name in names}
            checked = Coded(Schema.from_toml(header.schema), codes, weights)
            report = structured(header.report, Report, strict=False)
            return cls(checked.schema, checked.codes, report, weights=weights)


def _plain(value: Any) -> Any:
    """The value for JSON, which has no infinity and no NaN: such numbers become text ("inf", "nan")."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class _Header(msgspec.Struct):
    schema: str
    report: dict[str, Any]
