"""A task: the private data set, its schema, the budget, the unit of protection, the groups, and targets.

Targets are the tables, predicates (shares of rows) and statistics (means and quantiles) that must be right, and the
levels at which they are wanted. The page about plans says how the error of each is measured. Numbers inside a bin are
the mean public number of the bin for both means, and evenly spread for quantiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from os import PathLike
from typing import Any, Literal

import msgspec

from prade.core.documents import file_text, structured, toml_table
from prade.core.errors import DataError, PradeError, WorkloadError, names_of, within
from prade.core.numbers import exact, readable
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Invariant, Schema, checked_invariants
from prade.planning.invariants import published_totals, rules_of
from prade.privacy.budget import Budget, Number
from prade.privacy.protection import Unit, dataset_name
from prade.queries.asked import asked_query, statistic_of
from prade.queries.parts import Marginal, Part, Predicate
from prade.queries.query import Query, backticked

Columns = tuple[str, ...]
Kind = Literal["table", "predicate", "mean", "quantile"]

EVERYBODY = "all"  # the level above all others
LARGEST_TABLE = 100_000  # cells: a rehearsal keeps one table for each group
EXAMPLE = 'tables = ["AGE x SEX", "TENURE"], by = ["STATE", "PLACE"], weight = 3'

_BETWEEN = re.compile(r"(`(?:[^`]|``)+`)|\s+x\s+")


@dataclass(frozen=True)
class Target:
    """Tables, predicates and statistics that a plan is tuned for, at some levels, with one weight.

    tables: one column, or several joined by " x ". predicates: queries; their share of rows is wanted. statistics:
    "mean(WAGP)", "median(WAGP)" or "quantile(WAGP, 0.9)", each also with "where SEX == 2" after it. by: levels of the
    task, by their own columns or by all of them; "all" is the whole table, and without any it is the last level. The
    weight is shared by all that the target names.

    >>> target = Target(["AGE x SEX", "TENURE"], by=["STATE", "PLACE"], weight=3)
    >>> target.tables, target.by
    ((('AGE', 'SEX'), ('TENURE',)), (('STATE',), ('PLACE',)))
    """

    tables: tuple[Columns, ...]
    predicates: tuple[str, ...]
    statistics: tuple[str, ...]
    by: tuple[Columns, ...]
    weight: Fraction

    def __init__(
        self,
        tables: Sequence[str | Sequence[str]] = (),
        predicates: Sequence[str] = (),
        statistics: Sequence[str] = (),
        by: str | Sequence[str | Sequence[str]] = (),
        weight: Number = 1,
    ) -> None:
        share = exact(weight, "weight")
        if share <= 0:
            raise PradeError(f"weight is {readable(share)}; give a number above 0, or leave the target out")
        lists = _target_table({"tables": tables, "predicates": predicates, "statistics": statistics, "by": by})
        if not (lists.tables or lists.predicates or lists.statistics):
            raise PradeError(f"a target names nothing; give tables, predicates or statistics, as in {EXAMPLE}")
        levels = [lists.by] if isinstance(lists.by, str) else lists.by
        tables, by = tuple(map(_table_of, lists.tables)), tuple(map(_level_of, levels))
        values = tables, tuple(lists.predicates), tuple(lists.statistics), by, share
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def to_dict(self) -> dict[str, Any]:
        tables = [" x ".join(map(backticked, columns)) for columns in self.tables]
        levels = [list(level) or EVERYBODY for level in self.by]
        named = {"tables": tables, "predicates": list(self.predicates), "statistics": list(self.statistics)}
        weight = int(self.weight) if self.weight.denominator == 1 else str(self.weight)
        return {**{name: value for name, value in named.items() if value}, "by": levels, "weight": weight}


@dataclass(frozen=True)
class Wanted:
    """One thing that a target wants to be right at one level, and its part of all weights.

    `part` are the counts that tell it. `query` restricts the rows of a statistic; `at` is the place of a quantile.
    """

    kind: Kind
    words: str
    by: Columns
    weight: float
    part: Part
    query: Query | None = None
    at: float = 0.5

    @property
    def level(self) -> str:
        return "+".join(self.by) or EVERYBODY


def wanted_of(targets: Sequence[Target], schema: Schema) -> tuple[Wanted, ...]:
    """All that some targets want, each at each of its levels; weights add up to one."""
    whole = sum((target.weight for target in targets), Fraction(0))
    found = []
    for target in targets:
        things = list(_things(target, schema))
        weight = float(target.weight / whole) / (len(things) * len(target.by))
        found += [Wanted(kind, words, by, weight, *how) for kind, words, *how in things for by in target.by]
    return tuple(found)


def checked_targets(targets: Any, schema: Schema, levels: Sequence[Columns]) -> tuple[Target, ...]:
    """The targets that a caller gives, each with whole levels; what a schema or a task's levels lack is refused."""
    if isinstance(targets, (str, PathLike)):
        return checked_targets(targets_of_file(targets), schema, levels)
    settled = []
    for number, target in enumerate(targets, start=1):
        if not isinstance(target, Target):
            raise PradeError(f"a target is a Target(...), got {str(target)[:40]!r}")
        with within(f"target {number}"):
            list(_things(target, schema))
            by = [_whole_level(level, levels) for level in target.by] or [tuple(levels[-1])]
            if len(set(by)) < len(by):
                raise PradeError("by names a level twice; name each level once")
            settled.append(Target(target.tables, target.predicates, target.statistics, by, target.weight))
    return tuple(settled)


class _TargetTable(msgspec.Struct, forbid_unknown_fields=True):
    tables: list[str | list[str]] = []
    predicates: list[str] = []
    statistics: list[str] = []
    by: str | list[str | list[str]] = []
    weight: str | int | float = 1


class _TargetFile(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1]
    target: list[dict[str, Any]]


def targets_of_file(path: str | PathLike[str]) -> tuple[Target, ...]:
    """The targets in a file: `version = 1` and [[target]] tables."""
    document = toml_table(file_text(path, "file of targets"), DataError)
    with within(str(path)):
        return targets_of_tables(structured(document, _TargetFile).target)


def targets_of_tables(tables: Sequence[Mapping[str, Any]]) -> tuple[Target, ...]:
    targets = []
    for number, table in enumerate(tables, start=1):
        with within(f"target {number}"):
            targets.append(Target(**msgspec.structs.asdict(_target_table(table))))
    return tuple(targets)


def _target_table(table: Mapping[str, Any]) -> _TargetTable:
    try:
        return structured(table, _TargetTable)
    except DataError as fault:
        raise DataError(f"{fault}; write a target as in {EXAMPLE}") from None


def _table_of(table: str | Sequence[str]) -> Columns:
    """The columns of a table: a list of names, or names joined by " x ", in backticks if they are not plain words."""
    if not isinstance(table, str):
        return tuple(table)
    pieces = [piece for piece in _BETWEEN.split(table) if piece and piece.strip()]
    return tuple(piece[1:-1].replace("``", "`") if piece[0] == "`" else piece.strip() for piece in pieces)


def _level_of(level: str | Sequence[str]) -> Columns:
    if level == EVERYBODY:
        return ()
    return tuple(name.strip() for name in level.split("+")) if isinstance(level, str) else tuple(level)


def _whole_level(level: Columns, levels: Sequence[Columns]) -> Columns:
    """All columns of the level that is named by its own columns, or by all of them."""
    above: Columns = ()
    for whole in (*levels, ()):
        own = {name for name in whole if name not in above}
        if set(level) in ({*whole}, own) and bool(level) == bool(whole):
            return tuple(whole)
        above = whole
    names = ", ".join("+".join(each) or EVERYBODY for each in dict.fromkeys([*map(tuple, levels), ()]))
    raise DataError(f"by names {'+'.join(level)}, which is not a level of the task; its levels are {names}")


def _things(target: Target, schema: Schema) -> Iterator[tuple[Any, ...]]:
    """What a target names: kind, words, and the last fields of `Wanted`."""
    for columns in target.tables:
        part = _marginal(schema, columns)
        yield "table", part.name, part
    for text in target.predicates:
        query = asked_query(text, schema)
        _need_coded(schema, query.columns)
        yield "predicate", query.text, Predicate(query)
    for text in target.statistics:
        statistic = statistic_of(text, schema)
        if statistic is None or statistic.kind not in ("mean", "quantile"):
            raise WorkloadError(
                f"{text!r} is not a mean or a quantile; write mean(WAGP), median(WAGP) or quantile(WAGP, 0.9), each "
                "also with: where SEX == 2"
            )
        where = None if statistic.where is None else asked_query(statistic.where, schema)
        part = _marginal(schema, tuple(dict.fromkeys([statistic.column, *(where.columns if where else ())])))
        words = replace(statistic, where=None if where is None else where.text).text
        yield statistic.kind, words, part, where, statistic.at


def _marginal(schema: Schema, columns: Columns) -> Marginal:
    _need_coded(schema, columns)
    part = Marginal.of(schema, columns)
    if part.n_cells > LARGEST_TABLE:
        raise WorkloadError(
            f"the table {part.name} has {part.n_cells:,} cells; a target may have at most {LARGEST_TABLE:,}: name "
            "fewer columns, or use coarser bins"
        )
    return part


def _need_coded(schema: Schema, columns: Sequence[str]) -> None:
    for name in names_of(columns):
        if name in schema.groups:
            raise WorkloadError(f"{name} is a group column; name its level in `by` instead")
        schema.size(name)  # refuses an unknown column, with the closest name


LARGEST_BUDGET = 10**30  # an epsilon or rho that protects nobody, but is still far below the largest float
# What users call a field, where that differs from its name.
WORDS = {"budget": "epsilon or delta", "invariants": "list of invariants", "targets": "list of targets"}


@dataclass(frozen=True)
class Task:
    """What a release is about: everything that must be decided before a plan is made.

    dataset: the name by which the ledger knows the private table. schema: its columns, a `Schema` or the path of its
    file. budget: what may be spent, a `Budget` or an epsilon. unit: how many rows one person can change. levels: the
    columns of each level of groups, from coarse to fine; each level adds its columns to those of the level before, so
    that ``["STATE", "PUMA"]`` means every state, and every PUMA within its state; everybody is above all levels, and is
    not listed. groups: the public list of groups, with one row per group; without levels and groups all rows are one
    group. invariants: facts that the estimates and the synthetic rows meet exactly, each a `Rule` or `PublishedTotals`,
    besides those of the schema. targets: what must be right first, each a `Target`, or the path of their file; without
    any, all two-way tables of the last level count alike.

    >>> from prade import Column
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> task = Task("survey", schema, 1, levels=["STATE", "PUMA"], groups={"STATE": [17, 17, 39], "PUMA": [1, 2, 1]})
    >>> task.levels, str(task.budget)
    ((('STATE',), ('STATE', 'PUMA')), 'epsilon = 1 (pure differential privacy)')
    """

    dataset: str
    schema: Schema
    budget: Budget
    unit: Unit
    levels: tuple[tuple[str, ...], ...]
    groups: Groups
    invariants: tuple[Invariant, ...]
    targets: tuple[Target, ...]

    def __init__(
        self,
        dataset: str,
        schema: Schema | str | PathLike[str],
        budget: Any,
        unit: Unit | None = None,
        levels: Sequence[str | Sequence[str]] = (),
        groups: Any = None,
        invariants: Sequence[Invariant] = (),
        targets: Sequence[Target] | str | PathLike[str] = (),
    ) -> None:
        schema = Schema.load(schema) if isinstance(schema, (str, PathLike)) else schema
        budget = budget if isinstance(budget, Budget) else Budget.pure(budget)
        unit = Unit() if unit is None else unit
        if not isinstance(schema, Schema) or not schema.coded:
            given = "one without" if isinstance(schema, Schema) else type(schema).__name__
            raise PradeError(f"a task needs a Schema with a column that is not a group column, got {given}")
        if not isinstance(unit, Unit):
            raise PradeError(f"unit is of type {type(unit).__name__}; give a Unit")
        if max(budget.amounts) > LARGEST_BUDGET:
            raise PradeError(f"{budget} promises nothing; give a budget of at most a few dozen")
        listed = Groups.of(groups)
        named = [names_of(level) for level in ([levels] if isinstance(levels, str) else levels)]
        if (any(named) and not listed.names) or (listed.names and not named):
            raise PradeError("groups and levels go together: give both, or neither, and all rows are one group")
        nested = _nested(named or [()], listed)
        everybody = [()] if nested[0] else []  # it is above all levels
        facts = checked_invariants([*schema.invariants, *invariants])
        rules_of(facts, schema)  # refuses rules that are not about the schema's columns
        published_totals(facts, listed, [listed.level(by) for by in (*everybody, *nested)])
        wanted = checked_targets(targets, schema, nested)
        values = dataset_name(dataset), schema.with_invariants(()), budget, unit, nested, listed, facts, wanted
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def differs_from(self, other: Task) -> str | None:
        names = (field.name for field in fields(self))
        different = next((name for name in names if getattr(self, name) != getattr(other, name)), None)
        return None if different is None else WORDS.get(different, different)


def recurring_names(groups: Groups, levels: Sequence[Sequence[str]]) -> list[str]:
    """A sentence for each of some nested levels whose names recur in several groups of the level above it.

    >>> groups = Groups.of({"STATE": [13, 14, 13], "PLACE": ["a", "a", "b"]})
    >>> recurring_names(groups, [["STATE"], ["PLACE"]])
    ['PLACE names recur in several STATE: a group is STATE and PLACE together']
    """
    sentences: list[str] = []
    above: tuple[str, ...] = ()
    for level in levels:
        names = tuple(name for name in level if name not in above)
        nested = (*above, *names)
        if above and len(groups.level(names)) < len(groups.level(nested)):
            within, together = "+".join(above), f"{', '.join(nested[:-1])} and {nested[-1]}"
            sentences.append(f"{'+'.join(names)} names recur in several {within}: a group is {together} together")
        above = nested
    return sentences


def _nested(levels: Sequence[tuple[str, ...]], groups: Groups) -> tuple[tuple[str, ...], ...]:
    """The levels, each with the columns of those before it; a level that adds nothing is refused.

    Everybody is not a level where there are others: a plan may put that level first or leave it out.
    """
    nested: list[tuple[str, ...]] = []
    for names in levels[1:] if len(levels) > 1 and not levels[0] else levels:
        above = nested[-1] if nested else ()
        if len(set(names)) < len(names) or (nested and set(names) <= set(above)):
            raise DataError(f"level {'+'.join(names) or 'all'} adds no new column, or one twice: name each column once")
        both = tuple(dict.fromkeys([*above, *names]))
        if nested and len(groups.level(both)) == len(groups.level(above)) > len(groups.level(names)):
            raise DataError(f"level {'+'.join(names)} divides no group of the level before: go from coarse to fine")
        nested.append(both)
    return tuple(nested)
