"""A plan: everything that will be asked of the private table, at which noise, before any of its rows is read.

Level l has groups, which are disjoint, and asks; ask a has parts, of which one row satisfies at most m_a queries, and a
share s_a of the budget B. Its counts get noise of the scale that the budget B s_a / sum(s) pays for,

    pure    b = rows * m_a / epsilon_a          zCDP    sigma^2 = rows^2 * m_a / (2 rho_a)

where `rows` is by how many rows neighbouring tables differ. The asks add up to B (sequential composition); the groups
of a level cost nothing extra (a row is in one of them). An (epsilon, delta) budget is split as the zCDP within it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import PradeError, WorkloadError
from prade.core.numbers import exact, readable
from prade.data.groups import Grouping, Groups
from prade.data.public_files import PublicFiles
from prade.data.schema import Schema
from prade.planning.expected import Expected
from prade.planning.settings import Settings
from prade.privacy.budget import Budget, Number, Unit
from prade.privacy.dataset_names import dataset_name
from prade.queries.parts import Cells, Part, RowCells
from prade.queries.workload import Workload

if TYPE_CHECKING:
    from prade.release.measurement import Law

TOTAL = "number of rows"
COARSE = {"laplace": 10_000, "gaussian": 4}  # noise of a larger scale has the continuous law's variance, to nine digits
LARGEST_SCALE = 10**150  # of noise whose variance floats still hold
MOST_COUNTS = 2**32  # of all groups, parts and cells together: 32 GiB of noisy counts
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

    def names(self) -> list[str]:
        """Names of the parts."""
        return [TOTAL] if self.is_total else [part.name for part in self.parts]


class Plan:
    """What will be asked, of whom, under which promise, at which price; a value, and a readable file (`save`).

    `settings` say how to estimate, `expected` which error to expect, `public` where the public table is: they cost
    nothing and are not what is measured, so they may be edited after planning, and plans that differ in them only are
    equal.

    Each level's columns are added to those of the level before: ``["STATE"], ["PUMA"]`` means each state, and then each
    PUMA within its state. A total of None is asked, as one part more at the level, when its variance

        v(own) = variance of the noise in one count        v(derived) = 1 / sum_k 1 / (m_k v_k)

    is then smaller than that of the best mean of the sums of the m_k counts (noise variance v_k) of each covering part.

    >>> from prade import Schema, Workload
    >>> schema = Schema.from_mbi({"age": 10, "sex": 2})
    >>> ages = Workload.marginals(schema, ["age"])
    >>> plan = Plan("survey", schema, Budget.pure(1), Unit(1), [Level("STATE", ages), Level("PUMA", Ask(ages, 3))],
    ...     groups={"STATE": [17, 17, 39], "PUMA": [1, 2, 1]})
    >>> print(plan.describe())
    3 groups, 2 levels, epsilon = 1 (pure differential privacy)
    STATE (2 groups)
      number of rows: epsilon = 0.125, Laplace scale 8
      1 part, 10 counts a group: epsilon = 0.125, Laplace scale 8
    STATE+PUMA (3 groups)
      number of rows: epsilon = 0.375, Laplace scale 2.66667
      1 part, 10 counts a group: epsilon = 0.375, Laplace scale 2.66667
    """

    def __init__(
        self,
        dataset: str,
        schema: Schema,
        budget: Budget,
        unit: Unit,
        levels: Sequence[Level],
        groups: Any = None,
        *,
        settings: Settings | None = None,
        expected: Expected | None = None,
        public: PublicFiles | None = None,
    ) -> None:
        self.dataset = dataset_name(dataset)
        self.schema = schema
        self.budget = budget
        self.unit = unit
        self.groups = Groups.of(groups)
        self.settings = settings
        self.expected = expected
        self.public = public
        if not isinstance(schema, Schema) or not schema.coded:
            raise PradeError(f"a plan needs a Schema with a column that is no group column, got {schema!r}")
        if not isinstance(budget, Budget) or not isinstance(unit, Unit):
            raise PradeError(f"a plan needs a Budget and a Unit, got {budget!r} and {unit!r}")
        if budget == budget * 0:
            raise PradeError("the budget is zero, and every answer costs something: give more")
        if not isinstance(levels, Sequence) or not levels or not all(isinstance(level, Level) for level in levels):
            raise PradeError(f"a plan needs a list of at least one Level(by, workload), got {levels!r}")
        if not any(level.asks or level.total for level in levels):
            raise PradeError("a plan asks for something: give a level a workload")
        if not levels[-1].asks and not levels[-1].total:
            raise PradeError("the last level asks for nothing, so nothing would be known of its groups: leave it out")
        if any(ask.share == 0 for level in levels for ask in level.asks):
            raise PradeError("an ask has the share 0, and without budget there is no answer: leave it out")
        nested: dict[str, None] = {}
        self.levels: tuple[Level, ...] = ()
        for level in levels:
            for ask in level.asks:
                if ask.workload.schema != schema:
                    raise WorkloadError("a level's workload was made for another schema than the plan's: make it again")
            if nested and not level.by:
                raise PradeError("a level of everybody comes after a level of groups, and levels nest: put it first")
            nested |= dict.fromkeys(level.by)
            self.groups.level(tuple(nested))  # complains about a column that the list does not have
            self.levels += (self._settled(replace(level, by=tuple(nested))),)
        self.questions: tuple[Question, ...] = tuple(self._questions())  # complains about a budget too small for noise
        counts = sum(len(self.groupings[q.level]) * sum(part.n_cells for part in q.parts) for q in self.questions)
        if counts > MOST_COUNTS:
            raise PradeError(
                f"the plan asks for {counts:,} counts, more than memory holds (at most {MOST_COUNTS:,}): ask for fewer "
                "columns at a time, coarser bins or fewer groups"
            )

    # ---------------------------------------------------------------- what it says

    @property
    def noise_budget(self) -> Budget:
        """The budget as it is split: an (epsilon, delta) one as the zCDP within it, which adds up better."""
        return self.budget.zcdp_within() if self.budget.kind == "approx" else self.budget

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groups of each level."""
        return tuple(self.groups.level(level.by) for level in self.levels)

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all that is measured: SHA-256 of the plan's content, whatever the layout of its file."""
        from prade.planning.plan_file import measured_to_dict

        content = json.dumps(measured_to_dict(self), sort_keys=True, default=str, ensure_ascii=False)
        try:
            return hashlib.sha256(content.encode()).hexdigest()
        except UnicodeEncodeError as error:
            raise PradeError(
                f"a name or value of the plan holds half a character ({content[error.start]!a}), which no file can "
                "hold: rename it"
            ) from None

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Plan({self.dataset!r}, {len(self.groupings[-1])} groups, {len(self.levels)} levels, {self.budget!r})"

    def describe(self) -> str:
        """In plain words: what is asked of whom, at which price, with how much noise."""
        lines = [f"{_many(len(self.groupings[-1]), 'group')}, {_many(len(self.levels), 'level')}, {self.budget}"]
        for place, (level, grouping) in enumerate(zip(self.levels, self.groupings, strict=True)):
            lines.append(f"{level.name} ({_many(len(grouping), 'group')})")
            asked = [f"  {self.line(question)}" for question in self.questions if question.level == place]
            lines += asked or ["  nothing asked: added up from the levels below"]
        if self.expected is not None:
            lines.append(str(self.expected))
        return "\n".join(lines)

    def line(self, question: Question) -> str:
        """One question in a line."""
        counts = sum(part.n_cells for part in question.parts)
        asked = TOTAL if question.is_total else f"{_many(len(question.parts), 'part')}, {counts:,} counts a group"
        price = str(question.share).partition(" (")[0]
        return f"{asked}: {price}, {question.law.capitalize()} scale {float(question.scale):g}"

    # ---------------------------------------------------------------- files

    def with_public(self, public: PublicFiles | None) -> Plan:
        """This plan, remembering where its public table is."""
        found = copy.copy(self)
        found.public = public
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the file has them."""
        from prade.planning.plan_file import plan_to_dict

        return plan_to_dict(self)

    def to_toml(self) -> str:
        """The text of the plan's file."""
        from prade.planning.plan_file import toml_of_plan

        return toml_of_plan(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as TOML, beside and renamed. Paths of public files are from where the plan is."""
        from prade.data.tables import replace_file

        seen = None if self.public is None else self.public.seen_from(Path(path).parent)
        with replace_file(path) as temporary:
            temporary.write_text(self.with_public(seen).to_toml(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Plan:
        """The plan in a file."""
        from prade.planning.plan_file import plan_of_file

        return plan_of_file(path)

    # ---------------------------------------------------------------- noise

    def _questions(self) -> Iterator[Question]:
        """Everything that is asked, in the order in which answers are kept: levels, and in each the totals first."""
        whole = sum((level.share for level in self.levels), Fraction(0))
        for place, level in enumerate(self.levels):
            if level.total:
                yield self._question(place, (total_part(self.schema, level),), True, level.total, 1, whole)
            for ask in level.asks:
                yield self._question(place, ask.workload.parts, False, ask.share, ask.workload.per_row, whole)

    def _question(
        self, level: int, parts: tuple[Part, ...], is_total: bool, share: Fraction, per_row: int, whole: Fraction
    ) -> Question:
        budget = self.noise_budget * (share / whole)
        rows = self.unit.rows
        scale = budget.noise_scale(rows * per_row, rows**2 * per_row)
        if scale > LARGEST_SCALE:
            raise PradeError(f"{self.budget} is so little that its noise would drown any count; give more")
        return Question(level, parts, is_total, budget, budget.law, scale)

    def _settled(self, level: Level) -> Level:
        """The level with its total decided; its share stays what it was."""
        if level.total is not None or not level.asks:
            return replace(level, total=level.total or Fraction(0))
        parts = sum(len(ask.workload) for ask in level.asks)
        own = level.share / (parts + 1)
        factor = Fraction(parts, parts + 1)
        asked = replace(level, total=own, asks=tuple(Ask(ask.workload, ask.share * factor) for ask in level.asks))
        derived = replace(level, total=Fraction(0))

        def questions(candidate: Level) -> list[Question]:
            found = (
                [self._question(0, (total_part(self.schema, level),), True, own, 1, level.share)]
                if candidate.total
                else []
            )
            return found + [
                self._question(0, ask.workload.parts, False, ask.share, ask.workload.per_row, level.share)
                for ask in candidate.asks
            ]

        return asked if questions(asked)[0].variance < total_variance(questions(derived)) else derived


def total_part(schema: Schema, level: Level) -> Part:
    """The part with one cell that every row is in; it names a column that the level asks about anyway."""
    asked = [name for ask in level.asks for name in ask.workload.columns]
    name = (asked or schema.coded)[0]
    return Cells([name], np.zeros(schema.size(name), np.int64), 1, [TOTAL])


def total_variance(questions: Iterable[Question]) -> float:
    """Variance of the best unbiased mean of all sums of counts that are the number of rows; infinity without any."""
    precision = sum(
        1 / (part.n_cells * question.variance) for question in questions for part in question.parts if part.covers
    )
    return 1 / precision if precision else float("inf")


def _share(value: Number, what: str) -> Fraction:
    if (share := exact(value, what)) < 0:
        raise PradeError(f"{what} is {readable(share)}; give a number that is not negative")
    return share


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
