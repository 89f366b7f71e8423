"""A plan: everything that will be asked of the private table, at which noise, before any of its rows is read.

Level l has groups, which are disjoint, and asks; ask a has parts, of which one row satisfies at most m_a queries, and a
share s_a of the budget B. Its counts get noise of the scale that the budget B s_a / sum(s) pays for,

    pure    b = rows * m_a / epsilon_a          zCDP    sigma^2 = rows^2 * m_a / (2 rho_a)

where `rows` is by how many rows neighbouring tables differ. The asks add up to B (sequential composition); the groups
of a level cost nothing extra (a row is in one of them). An (epsilon, delta) budget is split as the zCDP within it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.documents import file_text
from prade.core.errors import PradeError, WorkloadError
from prade.core.files import replace_file
from prade.core.words import many
from prade.data.groups import Grouping, Groups
from prade.data.public_files import PublicFiles
from prade.data.schema import Schema
from prade.planning.expected import Expected
from prade.planning.plan_file import (
    Content,
    content_of_toml,
    content_to_dict,
    measured_to_dict,
    toml_of_content,
    within,
)
from prade.planning.questions import TOTAL, Ask, Level, Question, total_part, total_variance
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget, Unit
from prade.privacy.dataset_names import dataset_name
from prade.queries.parts import Part
from prade.queries.workload import Workload

LARGEST_SCALE = 10**150  # of noise whose variance floats still hold
MOST_COUNTS = 2**32  # of all groups, parts and cells together: 32 GiB of noisy counts


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

    @classmethod
    def simplest(cls, task: Task) -> Plan:
        """All one-way tables at the last level: made at once, without a look at any table."""
        *above, last = task.levels
        levels = [*(Level(by) for by in above), Level(last, Workload.all_marginals(task.schema, 1))]
        return cls.of(task, levels)

    @classmethod
    def of(
        cls,
        task: Task,
        levels: Sequence[Level],
        *,
        settings: Settings | None = None,
        expected: Expected | None = None,
        public: PublicFiles | None = None,
    ) -> Plan:
        """A plan for a task: at each of its levels, the questions of `levels`."""
        what = task.dataset, task.schema, task.budget, task.unit, levels, task.groups
        plan = cls(*what, settings=settings, expected=expected, public=public)
        if plan.task != task:
            raise PradeError(
                f"the plan has the levels {', '.join(level.name for level in plan.levels)}, and the task has "
                f"{', '.join('+'.join(by) or 'all' for by in task.levels)}: give one Level for each level of the task"
            )
        return plan

    @property
    def task(self) -> Task:
        """What the plan is for."""
        levels = [level.by for level in self.levels]
        return Task(self.dataset, self.schema, self.budget, self.unit, levels, self.groups)

    @property
    def noise_budget(self) -> Budget:
        """The budget as it is split: an (epsilon, delta) one as the zCDP within it, which adds up better."""
        return self.budget.zcdp_within() if self.budget.kind == "approx" else self.budget

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groups of each level."""
        return tuple(self.groups.level(level.by) for level in self.levels)

    @property
    def content(self) -> Content:
        """All that the plan's file says."""
        measured = self.dataset, self.schema, self.budget, self.unit, self.levels, self.groups
        return Content(*measured, self.settings, self.expected, self.public)

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all that is measured: SHA-256 of the plan's content, whatever the layout of its file."""
        content = json.dumps(measured_to_dict(self.content), sort_keys=True, default=str, ensure_ascii=False)
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
        lines = [f"{many(len(self.groupings[-1]), 'group')}, {many(len(self.levels), 'level')}, {self.budget}"]
        for place, (level, grouping) in enumerate(zip(self.levels, self.groupings, strict=True)):
            lines.append(f"{level.name} ({many(len(grouping), 'group')})")
            asked = [f"  {self.line(question)}" for question in self.questions if question.level == place]
            lines += asked or ["  nothing asked: added up from the levels below"]
        if self.expected is not None:
            lines.append(str(self.expected))
        return "\n".join(lines)

    def line(self, question: Question) -> str:
        """One question in a line."""
        counts = sum(part.n_cells for part in question.parts)
        asked = TOTAL if question.is_total else f"{many(len(question.parts), 'part')}, {counts:,} counts a group"
        price = str(question.share).partition(" (")[0]
        return f"{asked}: {price}, {question.law.capitalize()} scale {float(question.scale):g}"

    # ---------------------------------------------------------------- files

    def with_public(self, public: PublicFiles | None) -> Plan:
        """This plan, remembering where its public table is."""
        return Plan(**{**vars(self.content), "public": public})

    def with_expected(self, expected: Expected) -> Plan:
        """This plan with what a rehearsal expects of it."""
        return Plan(**{**vars(self.content), "expected": expected})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the file has them."""
        return content_to_dict(self.content)

    def to_toml(self) -> str:
        """The text of the plan's file."""
        return toml_of_content(self.content, self.describe())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as TOML, beside and renamed. Paths of public files are from where the plan is."""
        seen = None if self.public is None else self.public.seen_from(Path(path).parent)
        with replace_file(path) as temporary:
            temporary.write_text(self.with_public(seen).to_toml(), encoding="utf-8")

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """The plan of a TOML text."""
        return cls(**vars(content_of_toml(text)))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Plan:
        """The plan in a file."""
        text = file_text(path, "plan")
        with within(str(path)):
            plan = cls.from_toml(text)
        return plan.with_public(plan.public and plan.public.found_from(Path(path).parent))

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
