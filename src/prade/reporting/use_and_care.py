"""What the synthetic rows and the estimates are good for, and what to be careful with: sentences made by rules.

Each rule looks at one thing that the plan, the estimates or their intervals show, and says a sentence or nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.data.declare.schema import Rule
from prade.data.read.files import copies_in_words
from prade.estimating.levels.added_rows import FALSE_ALARM
from prade.planning.invariants import not_protected
from prade.planning.plan import columns_left_out
from prade.queries.parts import Marginal
from prade.reporting.facts import COMMON, cells_of
from prade.reporting.statements import once_in_twenty, place_of, published_levels

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.queries.parts import Part
    from prade.reporting.facts import Facts

NARROW = 0.2  # of a count: an interval that reaches further to either side is called wide
MOSTLY = 0.5  # copies of public rows among the synthetic ones that call for a sentence
NAMED = 2  # columns, pairs or values that a sentence names


@dataclass(frozen=True)
class Situation:
    """What the rules look at."""

    plan: Plan
    totals: Floats  # rows of the last level's groups
    labels: Sequence[str]  # their names
    relative: float | None  # `Precision.relative` at the last level
    relative_whole: float | None  # the same for the whole table
    relative_columns: Sequence[float | None]  # the same for each column at the last level
    unseen: Sequence[str] = ()  # values that no public row has, but that the noisy answers show clearly
    copied: float | None = None  # share of synthetic rows that have all values of one public row
    added: int = 0  # rows of no public person that the estimates start from as well
    drifted: Sequence[str] = ()  # columns that the public table is wrong about, and that were not measured below

    @property
    def last(self) -> str:
        """The word for a group of the last level."""
        by = self.plan.levels[-1].by
        return by[-1] if by else "table"

    @property
    def grouped(self) -> bool:
        """Whether there are groups, rather than one table."""
        return bool(self.plan.levels[-1].by)

    @property
    def where(self) -> str:
        """The groups of the last level as part of a sentence."""
        return place_of(self.plan.levels[-1].by)

    def tables_of(self, columns: Sequence[str]) -> str:
        """The one-way tables of some columns at the last level, as the start of a sentence."""
        groups = f" {self.where}" if self.grouped else ""
        return f"One-way tables{groups} of {_of(columns, self.plan.schema.coded)}"

    @property
    def harmful(self) -> bool:
        """Whether rehearsals expected the release to be worse than the public table."""
        return self.plan.expected is not None and self.plan.expected.harmful

    def measured_columns(self, *, narrow: bool) -> list[str]:
        """The columns that were measured at the last level, with narrow intervals or without."""
        last, columns = self.plan.levels[-1].name, measured_columns(self.plan)
        return [
            name
            for (name, levels), reach in zip(columns.items(), self.relative_columns, strict=True)
            if last in levels and (reach is not None and reach <= NARROW) == narrow
        ]


Sentence = Callable[[Situation], str | None]


def use_and_care(situation: Situation) -> tuple[list[str], list[str]]:
    """The sentences of all rules that apply: what to use the release for, and what to be careful with."""
    good = EXACT if situation.harmful else (*MEASURED, *EXACT)
    use, careful = ([said for rule in rules if (said := rule(situation))] for rules in (good, CAREFUL))
    return use, careful


def measured_columns(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The names of the levels at which each column was measured, alone or in a table with others."""
    found: dict[str, dict[str, None]] = {name: {} for name in plan.schema.coded}
    for question in plan.questions:
        for name in () if question.is_total else {name for part in question.parts for name in part.columns}:
            found[name][plan.levels[question.level].name] = None
    return {name: tuple(levels) for name, levels in found.items()}


def named(names: Sequence[str]) -> str:
    """The first names of a list, as part of a sentence.

    >>> named(["AGE"]), named(["AGE", "SEX"]), named(["AGE", "SEX", "RACE"])
    ('AGE', 'AGE and SEX', 'AGE and SEX among them')
    """
    return " and ".join(names[:NAMED]) + (" among them" if len(names) > NAMED else "")


def measured_by_group(now: Situation) -> str | None:
    mine = now.measured_columns(narrow=True)
    if not mine:
        return None
    return f"{now.tables_of(mine)}: they were measured there."


def narrow_by_group(now: Situation) -> str | None:
    if now.relative is None or now.relative > NARROW or not now.grouped:
        return None
    return f"Counts of common values {now.where}: {_reach(now.relative)}"


def narrow_for_everybody(now: Situation) -> str | None:
    if now.relative_whole is None or now.relative_whole > NARROW:
        return None
    whom = "for all groups together" if now.grouped else "of common values"
    return f"Counts {whom}: {_reach(now.relative_whole)}"


def measured_pairs(now: Situation) -> str | None:
    pairs = _pairs(now.plan)
    if not pairs:
        return None
    number = many(len(pairs), "pair")
    return f"How two columns go together, for {number} of columns that {_were(len(pairs))} measured: {named(pairs)}."


def rules_hold(now: Situation) -> str | None:
    rules = [each.rule for each in now.plan.invariants if isinstance(each, Rule)]
    return f"Rows that make sense: every synthetic row obeys {'; '.join(rules)}." if rules else None


def published_rows(now: Situation) -> str | None:
    known = published_levels(now.plan)
    return f"Numbers of rows {known}: they are the published ones, exactly." if known else None


def harmful(now: Situation) -> str | None:
    if not now.harmful:
        return None
    return "Everything: rehearsals expected the public table alone to be nearer to the truth than this release."


def not_measured(now: Situation) -> str | None:
    left_out = columns_left_out(now.plan)
    if not left_out:
        return None
    of, within = len(now.plan.schema.coded), f" within a {now.last}" if now.grouped else ""
    return (
        f"{len(left_out):,} of {many(of, 'column')}, {named(left_out)}, {_were(len(left_out))} not measured: their "
        f"shape{within} is inferred from the public table and the other columns."
    )


def measured_above(now: Situation) -> str | None:
    levels = {level.name: level for level in now.plan.levels}
    last, above = now.plan.levels[-1].name, dict[str, list[str]]()
    for name, where in measured_columns(now.plan).items():
        if where and last not in where:
            above.setdefault(where[-1], []).append(name)
    if not above:
        return None
    which = " and ".join(
        f"{many(len(names), 'column')}, {named(names)}, {_were(len(names))} measured "
        f"{place_of(levels[level].by, whole='in the whole table')}"
        for level, names in above.items()
    )
    return f"{which}, not {now.where}: how a {now.last} differs from others is inferred."


def wrong_above(now: Situation) -> str | None:
    if not now.drifted:
        return None
    return (
        f"{many(len(now.drifted), 'column')}, {named(now.drifted)}: the public table is wrong where "
        f"{'it was' if len(now.drifted) == 1 else 'they were'} measured, and a {now.last} may differ from it in ways "
        "that nothing has counted."
    )


def small_groups(now: Situation) -> str | None:
    asked = [each for each in now.plan.questions if each.level == len(now.plan.levels) - 1 and not each.is_total]
    if not asked or not now.grouped:
        return None
    off = max(once_in_twenty(each.law, each.scale) for each in asked)
    below = np.flatnonzero(now.totals < off)
    if not len(below):
        return None
    smallest = int(np.argmin(now.totals))
    have = "has" if len(below) == 1 else "have"
    return (
        f"The smallest groups: {len(below):,} of {many(len(now.totals), now.last)} {have} fewer rows than the noise in "
        f"one count may add ({off:,}); the smallest is {now.labels[smallest]}, with about "
        f"{many(round(float(now.totals[smallest])), 'row')}."
    )


def wide_columns(now: Situation) -> str | None:
    mine = now.measured_columns(narrow=False)
    if not mine:
        return None
    return (
        f"{now.tables_of(mine)}: they were measured there, but half of the "
        f"95 % intervals of a column's common values reach more than {100 * NARROW:.0f} % of the count to either "
        "side, or no value is common enough to tell."
    )


def wide_by_group(now: Situation) -> str | None:
    if now.relative is None or now.relative <= NARROW:
        return None
    advice = "Look at the interval, and add up groups where you can." if now.grouped else "Look at the interval."
    return f"Single counts {now.where}: {_reach(now.relative)} {advice}"


def pairs_not_measured(now: Situation) -> str | None:
    columns = now.plan.schema.coded
    every, pairs = len(columns) * (len(columns) - 1) // 2, _pairs(now.plan)
    if every <= len(pairs):
        return None
    which = f"{every - len(pairs):,} of {every:,} pairs were not measured" if pairs else "no pair was measured"
    return (
        f"How two columns go together: {which}, so dependences are those of the public table unless the counts of "
        "single columns contradict them."
    )


def outside_support(now: Situation) -> str | None:
    if now.unseen:
        return (
            f"{named(list(now.unseen))}: private rows have such values, by the noisy answers (wrong at most once in "
            f"{1 / FALSE_ALARM:.0f} releases), but no public row has them, "
            + (
                "so rows that have them are put together from values of different public rows: what else is true of "
                "such people is a guess."
                if now.added
                else "so no synthetic row has them either."
            )
        )
    if now.added:
        return (
            "Rare combinations: those that no public row has come from rows that are put together from values of "
            "different public rows, so that their number is a guess where it was not measured."
        )
    return "Rare combinations: one that no public row has does not occur among the synthetic rows, whatever is true."


def exact_and_unprotected(now: Situation) -> str | None:
    return not_protected(now.plan.invariants)


def copies(now: Situation) -> str | None:
    if now.copied is None or now.copied < MOSTLY:
        return None
    return f"Single rows: {copies_in_words(now.copied)} A row tells about no person of the private table."


def _pairs(plan: Plan) -> list[str]:
    """The pairs of columns that were measured, by themselves or in a larger table, each once."""
    order = plan.schema.coded
    tables = [part for question in plan.questions for part in question.parts if isinstance(part, Marginal)]
    pairs = dict.fromkeys(pair for part in tables for pair in combinations(sorted(part.columns, key=order.index), 2))
    return [Marginal.of(plan.schema, pair).name for pair in pairs]


def _of(mine: Sequence[str], every: Sequence[str]) -> str:
    if len(mine) == len(every):
        return f"all {many(len(mine), 'column')}" if len(mine) > 1 else mine[0]
    return f"{len(mine):,} of {many(len(every), 'column')} ({named(mine)})"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _reach(relative: float) -> str:
    return (
        f"half of the 95 % intervals reach at most {100 * relative:.0f} % of the count to either side (values that at "
        f"least {100 * COMMON:.0f} % of the rows have)."
    )


MEASURED: tuple[Sentence, ...] = (measured_by_group, narrow_by_group, narrow_for_everybody, measured_pairs)
EXACT: tuple[Sentence, ...] = (rules_hold, published_rows)
CAREFUL: tuple[Sentence, ...] = (
    harmful,
    not_measured,
    measured_above,
    wrong_above,
    small_groups,
    wide_columns,
    wide_by_group,
    pairs_not_measured,
    outside_support,
    exact_and_unprotected,
    copies,
)


def unseen_values(estimates: Estimates, facts: Facts) -> list[str]:
    """Measured values that no public row has, but that the answers about the whole table show beyond their noise."""
    answers, plan = facts.views[0].answers, estimates.plan
    absent = []
    for part in answers.parts:
        cells, size = cells_of(part, estimates)
        own = cells[: len(cells) - estimates.public.added]  # an added row is of no public person
        absent.append(np.bincount(own, minlength=size)[:size] == 0)
    looked_at = sum(int(each.sum()) for each in absent)
    found = []
    for number, part in enumerate(answers.parts):
        if not absent[number].any():
            continue
        largest = plan.law.bound(float(answers.variance[0, number]), FALSE_ALARM / looked_at)
        shown = np.flatnonzero(absent[number] & (answers.counts[number][0] > largest))
        texts = cell_texts(part, plan.schema) if len(shown) else []
        found += [texts[cell] for cell in shown]
    return found


def cell_texts(part: Part, schema: Schema) -> list[str]:
    """One text for readers per cell of a part: titles and labels instead of names and codes, where there are any."""
    if not isinstance(part, Marginal):
        return part.labels(schema)
    columns = [schema[name] for name in part.columns]
    each = [[f"{column.title or column.name} {text}" for text in column.display_texts()] for column in columns]
    return [", ".join(combination) for combination in itertools.product(*each)]
