"""What a plan is made of: levels and what is asked at them (`Ask`), and the questions with their noise that follow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from prade.core.errors import PradeError, WorkloadError
from prade.core.numbers import exact, readable
from prade.data.schema import Schema
from prade.privacy.budget import Budget, Law, Number
from prade.queries.parts import Cells, Part, RowCells, everybody
from prade.queries.workload import Workload

TOTAL = "number of rows"
COARSE = {"laplace": 10_000, "gaussian": 4}  # noise of a larger scale has the continuous law's variance, to nine digits
SMALLEST_VARIANCE = 1e-6  # of a count: smaller ones change nothing, and precisions stay finite


@dataclass(frozen=True)
class Ask:
    """Parts that are counted with noise of one scale, and their share of the budget, in proportion to other shares."""

    workload: Workload
    share: Fraction

    def __init__(self, workload: Workload, share: Number = 1) -> None:
        if not isinstance(workload, Workload) or not len(workload):
            raise WorkloadError(f"an ask is of a Workload with at least one part, got {workload!r}")
        if bound := [part for part in workload if isinstance(part, RowCells)]:
            raise WorkloadError(
                f"part {bound[0].name!r} is bound to one support's rows: no private row has a cell in it"
            )
        for part in workload:
            if isinstance(part, Cells) and not all(isinstance(label, str) for label in part.cell_labels):
                raise WorkloadError(f"part {part.name!r} has labels that are no text, which no file of counts can hold")
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "share", _share(share, "the share of an ask"))


@dataclass(frozen=True)
class Level:
    """A grouping of the rows, and what is asked of each of its groups.

    `by` are columns of the list of groups ((): everybody is one group). `total` is the share of the budget for the
    number of rows of each group (Algorithm 2 gives it half); 0 derives it from the parts; with None the plan decides
    which of the two. A level without asks costs nothing: what is known of it comes from the levels below.
    """

    by: tuple[str, ...]
    asks: tuple[Ask, ...]
    total: Fraction | None

    def __init__(
        self, by: str | Sequence[str], asks: Workload | Ask | Iterable[Ask] = (), total: Number | None = None
    ) -> None:
        names = [by] if isinstance(by, str) else by
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise WorkloadError(f"by is {by!r}; give columns of the list of groups as texts, or () for everybody")
        if isinstance(asks, Workload):
            asks = Ask(asks)
        object.__setattr__(self, "by", tuple(names))
        object.__setattr__(self, "asks", tuple(asks) if isinstance(asks, Iterable) else (asks,))
        object.__setattr__(self, "total", None if total is None else _share(total, "the share of the totals"))
        if not all(isinstance(ask, Ask) for ask in self.asks):
            raise WorkloadError("a level is made of Asks: give Ask(workload, share), or a workload")

    @property
    def name(self) -> str:
        """Its columns joined by "+", as the command line writes them; "all" without any."""
        return "+".join(self.by) or "all"

    @property
    def share(self) -> Fraction:
        """The level's share, totals included."""
        return sum((ask.share for ask in self.asks), self.total or Fraction(0))


@dataclass(frozen=True)
class Question:
    """One vector release: the parts that are counted in every group of a level, and the noise of every count."""

    level: int
    parts: tuple[Part, ...]
    is_total: bool
    share: Budget
    law: Law
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise in one count, on the whole numbers: with p = e^(-1 / b), Laplace's is 2 p / (1 - p)^2.

        The Gaussian's is sum z^2 w(z) / sum w(z), w(z) = e^(-z^2 / (2 sigma^2)). Both are below the continuous laws'
        2 b^2 and sigma^2: at b = 1 by 8 %, at sigma = 1 by less than 10^-6. It is `SMALLEST_VARIANCE` at least.
        """
        if self.scale > COARSE[self.law]:
            return float((2 if self.law == "laplace" else 1) * self.scale**2)
        scale = float(self.scale)
        if self.law == "laplace":
            variance = 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2
        else:
            weights = [math.exp(-(z / scale) * (z / scale) / 2) for z in range(1, 16 * COARSE[self.law])]
            variance = 2 * sum(z**2 * w for z, w in enumerate(weights, 1)) / (1 + 2 * sum(weights))
        return max(variance, SMALLEST_VARIANCE)

    def total_variances(self, groups: Any = 1) -> Iterator[tuple[int, Any]]:
        """Where the number of rows can be read from: each part whose cells every row is in, and its sum's variance.

        A part is given by its place among the parts. `groups` is how many groups are added up: a number or an array.
        """
        for place, part in enumerate(self.parts):
            if part.covers:
                yield place, part.n_cells * (self.variance * groups)

    def names(self) -> list[str]:
        """Names of the parts."""
        return [TOTAL] if self.is_total else [part.name for part in self.parts]


def total_part(schema: Schema, level: Level) -> Part:
    """The part with one cell that every row is in; it names a column that the level asks about anyway."""
    asked = [name for ask in level.asks for name in ask.workload.columns]
    return everybody(schema, (asked or schema.coded)[0], TOTAL)


def total_variance(questions: Iterable[Question]) -> float:
    """Variance of the best unbiased mean of all sums of counts that are the number of rows; infinity without any."""
    precision = sum(1 / variance for question in questions for _, variance in question.total_variances())
    return 1 / precision if precision else float("inf")


def _share(value: Number, what: str) -> Fraction:
    if (share := exact(value, what)) < 0:
        raise PradeError(f"{what} is {readable(share)}; give a number that is not negative")
    return share
