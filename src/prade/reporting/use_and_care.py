"""What the synthetic rows and the estimates are good for, and what to be careful with: sentences made by rules.

Each rule looks at one thing that the plan, the estimates or their intervals show.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.data.declare.schema import Rule, Schema
from prade.data.read.files import copies_in_words
from prade.estimating.levels.added_rows import FALSE_ALARM
from prade.estimating.levels.estimates import Estimates
from prade.planning.invariants import not_protected
from prade.planning.plan import Plan, columns_left_out
from prade.queries.parts import Marginal, Part
from prade.reporting.facts import COMMON, Facts, cells_of
from prade.reporting.statements import once_in_twenty, place_of, published_levels

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
    def harmful(self) -> bool:
        """Whether rehearsals expected the release to be worse than the public table."""
        return self.plan.expected is not None and self.plan.expected.harmful

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns that define the groups of the last level; none for one table."""
        return self.plan.levels[-1].by

    def tables(self, *, narrow: bool) -> str | None:
        """The one-way tables that were measured at the last level, with narrow intervals or without, as a subject."""
        last, measured = self.plan.levels[-1].name, measured_columns(self.plan)
        columns = [
            name
            for (name, levels), reach in zip(measured.items(), self.relative_columns, strict=True)
            if last in levels and _narrow(reach) == narrow
        ]
        if not columns:
            return None
        which = f"{len(columns):,} of {many(len(measured), 'column')} ({named(columns)})"
        if len(columns) == len(measured):
            which = f"all {many(len(columns), 'column')}" if len(columns) > 1 else columns[0]
        where = f" {place_of(self.groups)}" if self.groups else ""
        return f"One-way tables{where} of {which}: they were measured there"


def use_and_care(situation: Situation) -> tuple[list[str], list[str]]:
    """The sentences of all rules that apply: what to use the release for, and what to be careful with."""
    return list(_uses(situation)), list(_cares(situation))


def _uses(now: Situation) -> Iterator[str]:
    plan = now.plan
    if not now.harmful:
        if tables := now.tables(narrow=True):
            yield f"{tables}."
        if now.groups and now.relative is not None and _narrow(now.relative):
            yield f"Counts of common values {place_of(now.groups)}: {_reach(now.relative)}"
        if now.relative_whole is not None and _narrow(now.relative_whole):
            whom = "for all groups together" if now.groups else "of common values"
            yield f"Counts {whom}: {_reach(now.relative_whole)}"
        if pairs := _pairs(plan):
            number = f"{many(len(pairs), 'pair')} of columns that {_were(pairs)} measured"
            yield f"How two columns go together, for {number}: {named(pairs)}."
    if rules := [each.rule for each in plan.invariants if isinstance(each, Rule)]:
        yield f"Rows that make sense: every synthetic row obeys {'; '.join(rules)}."
    if published := published_levels(plan):
        yield f"Numbers of rows {published}: they are the published ones, exactly."


def _cares(now: Situation) -> Iterator[str]:
    plan, group, where = now.plan, now.groups[-1] if now.groups else "table", place_of(now.groups)
    columns = plan.schema.coded
    if now.harmful:
        yield "Everything: rehearsals expected the public table alone to be nearer to the truth than this release."
    if left_out := columns_left_out(plan):
        yield (
            f"{len(left_out):,} of {many(len(columns), 'column')}, {named(left_out)}, {_were(left_out)} not measured: "
            f"their shape{f' within a {group}' if now.groups else ''} is inferred from the public table and the other "
            "columns."
        )
    above: dict[str, list[str]] = {}
    for name, levels in measured_columns(plan).items():
        if levels and plan.levels[-1].name not in levels:
            above.setdefault(levels[-1], []).append(name)
    if above:
        by = {level.name: place_of(level.by, whole="in the whole table") for level in plan.levels}
        which = " and ".join(
            f"{many(len(names), 'column')}, {named(names)}, {_were(names)} measured {by[level]}"
            for level, names in above.items()
        )
        yield f"{which}, not {where}: how a {group} differs from others is inferred."
    if now.drifted:
        yield (
            f"{many(len(now.drifted), 'column')}, {named(now.drifted)}: the public table is wrong where "
            f"{'it was' if len(now.drifted) == 1 else 'they were'} measured, and a {group} may differ from it in ways "
            "that nothing has counted."
        )
    questions = [each for each in plan.questions if each.level == len(plan.levels) - 1 and not each.is_total]
    noise = max((once_in_twenty(each.law, each.scale) for each in questions), default=0)
    if now.groups and (below := int((now.totals < noise).sum())):
        smallest = int(np.argmin(now.totals))
        yield (
            f"The smallest groups: {below:,} of {many(len(now.totals), group)} {'has' if below == 1 else 'have'} fewer "
            f"rows than the noise in one count may add ({noise:,}); the smallest is {now.labels[smallest]}, with about "
            f"{many(round(float(now.totals[smallest])), 'row')}."
        )
    if tables := now.tables(narrow=False):
        yield (
            f"{tables}, but half of the 95 % intervals of a column's common values reach more than "
            f"{100 * NARROW:.0f} % of the count to either side, or no value is common enough to tell."
        )
    if now.relative is not None and not _narrow(now.relative):
        advice = "Look at the interval, and add up groups where you can." if now.groups else "Look at the interval."
        yield f"Single counts {where}: {_reach(now.relative)} {advice}"
    every, pairs = len(columns) * (len(columns) - 1) // 2, len(_pairs(plan))
    if every > pairs:
        which = f"{every - pairs:,} of {every:,} pairs were not measured" if pairs else "no pair was measured"
        yield (
            f"How two columns go together: {which}, so dependences are those of the public table unless the counts of "
            "single columns contradict them."
        )
    yield _outside_support(now)
    if exposed := not_protected(plan.invariants):
        yield exposed
    if now.copied is not None and now.copied >= MOSTLY:
        yield f"Single rows: {copies_in_words(now.copied)} A row tells about no person of the private table."


def _outside_support(now: Situation) -> str:
    if now.unseen:
        rows = (
            "so rows that have them are put together from values of different public rows: what else is true of such "
            "people is a guess."
            if now.added
            else "so no synthetic row has them either."
        )
        return (
            f"{named(now.unseen)}: private rows have such values, by the noisy answers (wrong at most once in "
            f"{1 / FALSE_ALARM:.0f} releases), but no public row has them, {rows}"
        )
    if now.added:
        return (
            "Rare combinations: those that no public row has come from rows that are put together from values of "
            "different public rows, so that their number is a guess where it was not measured."
        )
    return "Rare combinations: one that no public row has does not occur among the synthetic rows, whatever is true."


def measured_columns(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The names of the levels at which each column was measured, alone or in a table with others."""
    levels: dict[str, dict[str, None]] = {name: {} for name in plan.schema.coded}
    for question in plan.questions:
        for name in () if question.is_total else {name for part in question.parts for name in part.columns}:
            levels[name][plan.levels[question.level].name] = None
    return {name: tuple(each) for name, each in levels.items()}


def named(names: Sequence[str]) -> str:
    """The first names of a list, as part of a sentence.

    >>> named(["AGE"]), named(["AGE", "SEX"]), named(["AGE", "SEX", "RACE"])
    ('AGE', 'AGE and SEX', 'AGE and SEX among them')
    """
    return " and ".join(names[:NAMED]) + (" among them" if len(names) > NAMED else "")


def _pairs(plan: Plan) -> list[str]:
    """The pairs of columns that were measured, by themselves or in a larger table, each once."""
    order = plan.schema.coded
    tables = [part for question in plan.questions for part in question.parts if isinstance(part, Marginal)]
    sets = (sorted(part.columns, key=order.index) for part in tables)
    pairs = dict.fromkeys(pair for columns in sets for pair in itertools.combinations(columns, 2))
    return [Marginal.of(plan.schema, pair).name for pair in pairs]


def _narrow(reach: float | None) -> bool:
    return reach is not None and reach <= NARROW


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _reach(relative: float) -> str:
    return (
        f"half of the 95 % intervals reach at most {100 * relative:.0f} % of the count to either side (values that at "
        f"least {100 * COMMON:.0f} % of the rows have)."
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
    texts = []
    for number, part in enumerate(answers.parts):
        if absent[number].any():
            largest = plan.law.bound(float(answers.variance[0, number]), FALSE_ALARM / looked_at)
            shown = np.flatnonzero(absent[number] & (answers.counts[number][0] > largest))
            every = cell_texts(part, plan.schema) if len(shown) else []
            texts += [every[cell] for cell in shown]
    return texts


def cell_texts(part: Part, schema: Schema) -> list[str]:
    """One text for readers per cell of a part: titles and labels instead of names and codes, where there are any."""
    if not isinstance(part, Marginal):
        return part.labels(schema)
    columns = [schema[name] for name in part.columns]
    each = [[f"{column.title or column.name} {text}" for text in column.display_texts()] for column in columns]
    return [", ".join(combination) for combination in itertools.product(*each)]
