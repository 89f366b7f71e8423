"""The contents of a plan: levels, what is asked at each of them (`Ask`), and the resulting noisy questions.

Give table k, with n_k cells, the share s_k of a budget. The noise in each of its counts has a scale (Laplace) or a
variance (Gaussian) proportional to 1 / s_k. Summed over all counts of all tables,

    sum over k of n_k / s_k        is least, for shares that add up to 1, where s_k is proportional to sqrt(n_k)

Equal shares spend too much on a table of two cells and too little on one of twenty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from prade.core.errors import PradeError, WorkloadError
from prade.core.numbers import exact, readable
from prade.data.declare.schema import Schema
from prade.privacy.budget import Budget, Number
from prade.privacy.noise_law import NoiseLaw
from prade.queries.parts import Marginal, Part, everybody
from prade.queries.workload import Workload

TOTAL = "number of rows"


@dataclass(frozen=True)
class Ask:
    """Parts that are counted with the same noise scale, and their share of the budget relative to other shares."""

    workload: Workload
    share: Fraction

    def __init__(self, workload: Workload, share: Number = 1) -> None:
        if not isinstance(workload, Workload) or not len(workload):
            raise WorkloadError(f"an Ask needs a Workload with at least one part, got {workload!r}")
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "share", _share(share, "the share of an Ask"))


@dataclass(frozen=True)
class Level:
    """A grouping of the rows, and what is asked about each of its groups.

    `by` are columns of the list of groups ((): all rows are one group). `total` is the share of the budget for the
    number of rows of each group (Algorithm 2 gives it half). With 0 that number is derived from the parts; with None
    the plan decides between the two. A level without asks costs nothing: its counts are added up from the levels below.
    """

    by: tuple[str, ...]
    asks: tuple[Ask, ...]
    total: Fraction | None

    def __init__(
        self, by: str | Sequence[str], asks: Workload | Ask | Iterable[Ask] = (), total: Number | None = None
    ) -> None:
        names = [by] if isinstance(by, str) else by
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise WorkloadError(f"by is {by!r}; give the names of columns in the list of groups, or () for all rows")
        if isinstance(asks, Workload):
            asks = Ask(asks)
        object.__setattr__(self, "by", tuple(names))
        object.__setattr__(self, "asks", tuple(asks) if isinstance(asks, Iterable) else (asks,))
        object.__setattr__(self, "total", None if total is None else _share(total, "the share of the totals"))
        if not all(isinstance(ask, Ask) for ask in self.asks):
            raise WorkloadError("a Level needs Asks: give Ask(workload, share), or a Workload")

    @property
    def name(self) -> str:
        """The level's columns joined by "+", as on the command line; "all" if it has none."""
        return "+".join(self.by) or "all"

    @property
    def share(self) -> Fraction:
        """The level's share of the budget, including its total."""
        return sum((ask.share for ask in self.asks), self.total or Fraction(0))


@dataclass(frozen=True)
class Question:
    """Parts that are counted in every group of a level with the same noise, released as one vector."""

    level: int
    parts: tuple[Part, ...]
    is_total: bool
    share: Budget
    law: NoiseLaw
    scale: Fraction

    @property
    def variance(self) -> float:
        return self.law.variance(self.scale)

    @property
    def cells(self) -> int:
        return sum(part.n_cells for part in self.parts)

    @property
    def noun(self) -> str:
        """What one of its parts is: a "one-way table", a "two-way table", another "table" (a marginal), or a "part"."""
        if not all(isinstance(part, Marginal) for part in self.parts):
            return "part"
        widths = {len(part.columns) for part in self.parts}
        return {1: "one-way table", 2: "two-way table"}.get(widths.pop(), "table") if len(widths) == 1 else "table"

    def total_variances(self, groups: Any = 1) -> Iterator[tuple[int, Any]]:
        """For each part that covers every row: its number among the parts, and the variance of the sum of its counts.

        That sum is a noisy number of rows. `groups` is how many groups are added up, a number or an array of numbers.
        """
        for number, part in enumerate(self.parts):
            if part.covers:
                yield number, part.n_cells * (self.variance * groups)

    def names(self) -> list[str]:
        return [TOTAL] if self.is_total else [part.name for part in self.parts]


def total_part(schema: Schema, level: Level) -> Part:
    """The part whose single cell contains every row; it uses a column that the level asks about anyway."""
    asked = [name for ask in level.asks for name in ask.workload.columns]
    return everybody(schema, (asked or schema.coded)[0], TOTAL)


def total_variance(questions: Iterable[Question]) -> float:
    """Variance of the most precise unbiased mean of all sums that equal the number of rows; infinity without any."""
    precision = sum(1 / variance for question in questions for _, variance in question.total_variances())
    return 1 / precision if precision else float("inf")


def _share(value: Number, what: str) -> Fraction:
    if (share := exact(value, what)) < 0:
        raise PradeError(f"{what} is {readable(share)}; give a number that is 0 or more")
    return share


PRECISION = 1000  # square roots are whole multiples of 1 / PRECISION, so that shares are exact fractions


def shared_asks(
    parts: Workload, first: Sequence[Part] = (), times: Number = 1, share: Number = 1, *, weighted: bool = True
) -> tuple[Ask, ...]:
    """Asks for some parts, of which each of the `first` gets `times` the part of `share` that another one gets.

    If `weighted`, parts also grow with the square root of their cells. Parts with equal shares go into one ask, the
    smallest shares first.

    >>> from prade.data.declare.schema import Schema
    >>> workload = Workload.all_marginals(Schema.from_mbi({"sex": 4, "age": 16, "work": 4}), 1)
    >>> for ask in shared_asks(workload):
    ...     print([part.name for part in ask.workload], ask.share)
    ['sex', 'work'] 1/2
    ['age'] 1/2
    """
    by_weight: dict[Fraction, list[Part]] = {}
    for part in dict.fromkeys([*parts, *first]):
        root = math.isqrt(part.n_cells * PRECISION**2) if weighted else 1
        by_weight.setdefault(root * Fraction(times if part in first else 1), []).append(part)
    unit = Fraction(share) / sum(weight * len(alike) for weight, alike in by_weight.items())
    pairs = sorted(by_weight.items(), key=lambda each: each[0])
    return tuple(Ask(Workload(parts.schema, alike), unit * weight * len(alike)) for weight, alike in pairs)
