"""Invariants in use: which public rows obey the rules, which numbers of rows are published, what is not protected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats
from prade.core.errors import DataError, SchemaError, many, within
from prade.data.declare.groups import Grouping, Groups
from prade.data.declare.schema import Invariant, PublishedTotals, Rule, Schema
from prade.data.public.joint import LARGEST_FULL_DOMAIN, Prior
from prade.data.public.public import Public, kept
from prade.queries.parts import Part
from prade.queries.query import Query, parse

# An arrow that is not within a quoted text or a name in backticks.
_ARROW = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)+`)|->""", re.DOTALL)


@dataclass(frozen=True)
class ParsedRule:
    """A rule as queries: a row obeys it unless it satisfies `when` and not `then`; without `when`, all rows count."""

    rule: Rule
    when: Query | None
    then: Query

    @classmethod
    def of(cls, rule: Rule, schema: Schema) -> ParsedRule:
        with within(str(rule)):
            *when, then = (parse(text, schema) for text in _sides(rule.rule))
            condition = cls(rule, when[0] if when else None, then)
            if groups := [name for name in condition.columns if name not in schema.coded]:
                raise SchemaError(f"{groups[0]!r} is a group column; a rule is about columns that are estimated")
        return condition

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(() if self.when is None else self.when.columns), *self.then.columns)

    def obeyed(self, codes: Mapping[str, NDArray[Any]]) -> Flags:
        then = self.then.mask(codes)
        return then if self.when is None else ~self.when.mask(codes) | then


def rules_of(invariants: Iterable[Invariant], schema: Schema) -> list[ParsedRule]:
    return [ParsedRule.of(each, schema) for each in invariants if isinstance(each, Rule)]


def obeying(public: Public, invariants: Iterable[Invariant]) -> Public:
    """The public rows that obey all rules. Only these can get weight, so estimates and synthetic rows obey them too."""
    rules = rules_of(invariants, public.prior.schema)
    if not rules:
        return public
    obeyed = np.logical_and.reduce([rule.obeyed(public.prior.codes) for rule in rules])
    if obeyed.all():
        return public
    if not obeyed.any():
        texts = "; ".join(rule.rule.rule for rule in rules)
        raise DataError(f"no public row obeys {texts}: correct the rules, or give a public table that obeys them")
    return kept(public, np.flatnonzero(obeyed))


def possible_cells(part: Part, invariants: Iterable[Invariant], schema: Schema) -> Flags:
    """Which cells of a part can have rows that obey the rules, as far as each rule by itself decides it.

    A rule is left out if it and the part together have too many combinations of values.
    """
    possible = np.ones(part.n_cells, np.bool_)
    for rule in rules_of(invariants, schema):
        columns = tuple(dict.fromkeys([*part.columns, *rule.columns]))
        if set(part.columns).isdisjoint(rule.columns) or schema.domain_size(columns) > LARGEST_FULL_DOMAIN:
            continue
        combinations = Prior.uniform(schema, columns).codes
        cells = part.cells(schema, combinations)[rule.obeyed(combinations)]
        possible &= np.bincount(cells, minlength=part.n_cells)[: part.n_cells] > 0
    return possible


@dataclass(frozen=True)
class Breach:
    """How many public rows break a rule, and their share of the weight."""

    rule: str
    rows: int
    share: float

    def __str__(self) -> str:
        if not self.rows:
            return f"all public rows obey the rule {self.rule}"
        left_out = f"{many(self.rows, 'public row')} ({self.share:.2%} of the weight) will be left out"
        return f"{left_out}: against the rule {self.rule}"


def breaches(public: Public, invariants: Sequence[Invariant]) -> list[Breach]:
    """How often the public rows break each rule; an error if no row obeys all of them."""
    obeying(public, invariants)
    broken = []
    for rule in rules_of(invariants, public.prior.schema):
        against = ~rule.obeyed(public.prior.codes)
        broken.append(Breach(rule.rule.rule, int(against.sum()), float(public.prior.weights[against].sum())))
    return broken


def published_totals(
    invariants: Iterable[Invariant], groups: Groups, levels: Sequence[Grouping] | None = None
) -> dict[int, Floats]:
    """The published numbers of rows by the number of their level, in the order of the level's groups.

    Without `levels`, every statement of totals is a level of its own. Each group of a level must be named once, and
    totals must add up to those of a coarser level.
    """
    stated = [each for each in invariants if isinstance(each, PublishedTotals)]
    if levels is None:
        levels = [groups.level(each.level) for each in stated]
    found: dict[int, Floats] = {}
    for each in stated:
        own = groups.level(each.level)
        number = next((k for k, level in enumerate(levels) if np.array_equal(level.number, own.number)), None)
        if number is None:
            names = ", ".join("+".join(level.by) or "all" for level in levels)
            raise SchemaError(f"{each}: these are not the groups of any level; the levels are {names}")
        if number in found:
            raise SchemaError(f"{each}: stated twice; state it once")
        found[number] = _of_groups(each, groups, own)
    for coarse, fine in combinations(sorted(found, key=lambda k: len(levels[k])), 2):
        _check_sums(levels[coarse], found[coarse], levels[fine], found[fine])
    return found


def not_protected(invariants: Iterable[Invariant]) -> str | None:
    """A sentence that names the invariants that come from the private table; None if there are none."""
    private = [str(each) for each in invariants if each.source == "private"]
    words = "Not protected, because taken from the private table and published exactly"
    return f"{words}: {'; '.join(private)}." if private else None


def _sides(rule: str) -> list[str]:
    """The text before and after the arrow, or the whole text if there is none."""
    arrows = [piece.start() for piece in _ARROW.finditer(rule) if piece[0] == "->"]
    if len(arrows) > 1:
        raise SchemaError('a rule has at most one arrow: write "CONDITION -> CONDITION"')
    return [rule[: arrows[0]], rule[arrows[0] + 2 :]] if arrows else [rule]


def _of_groups(stated: PublishedTotals, groups: Groups, level: Grouping) -> Floats:
    labels = stated.groups.level(stated.level).labels()
    number = np.zeros(1, np.int64)
    if stated.level:
        number = groups.keyed(stated.level, level.number).numbers(pa.table(stated.groups.to_dict()))
    if (number < 0).any():
        unknown = labels[int(np.flatnonzero(number < 0)[0])]
        raise SchemaError(f"{stated}: {unknown} is not in the list of groups; remove it, or list the group")
    times = np.bincount(number, minlength=len(level))
    if (times != 1).any():
        which = int(np.flatnonzero(times != 1)[0])
        fault = "has no number" if not times[which] else f"has {times[which]} numbers"
        raise SchemaError(f"{stated}: {level.labels()[which]} {fault}; give every group of the level one number")
    rows = np.zeros(len(level))
    rows[number] = stated.rows
    return rows


def _check_sums(coarse: Grouping, of_coarse: Floats, fine: Grouping, of_fine: Floats) -> None:
    """Refuse totals that do not add up to those of the coarser groups that they are in."""
    above = fine.above(coarse)
    if not np.array_equal(above[fine.number], coarse.number):  # the coarse groups are not made of fine ones
        return
    sums = np.bincount(above, of_fine, minlength=len(coarse))
    if (wrong := np.flatnonzero(sums != of_coarse)).size:
        which, names = int(wrong[0]), "+".join(fine.by)
        raise SchemaError(
            f"{coarse.labels()[which]} has {of_coarse[which]:,.0f} rows, but the published numbers of its {names} add "
            f"up to {sums[which]:,.0f}; correct one of them"
        )
