"""A task: the private data set, its schema, the budget, the unit of protection, and the groups of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.words import names_of
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Invariant, Schema
from prade.planning.invariants import stated
from prade.planning.targets import Target, checked_targets
from prade.privacy.budget import Budget
from prade.privacy.dataset_names import dataset_name
from prade.privacy.unit import Unit

LARGEST_BUDGET = 10**30  # an epsilon or rho that protects nobody, but is still far below the largest float
WORDS = {
    "budget": "epsilon or delta",
    "invariants": "list of invariants",
    "targets": "list of targets",
}  # what users call a field, where that differs from its name


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
            raise PradeError(f"a task needs a Schema with a column that is not a group column, got {schema!r}")
        if not isinstance(unit, Unit):
            raise PradeError(f"unit is {unit!r}; give a Unit")
        if max(budget.amounts) > LARGEST_BUDGET:
            raise PradeError(f"{budget} promises nothing; give a budget of at most a few dozen")
        listed = Groups.of(groups)
        named = [names_of(level) for level in ([levels] if isinstance(levels, str) else levels)]
        if (any(named) and not listed.names) or (listed.names and not named):
            raise PradeError("groups and levels go together: give both, or neither, and all rows are one group")
        nested = _nested(named or [()], listed)
        everybody = [()] if nested[0] else []  # it is above all levels
        facts, _ = stated(schema, invariants, listed, [listed.level(by) for by in (*everybody, *nested)])
        wanted = checked_targets(targets, schema, nested)
        values = dataset_name(dataset), schema.with_invariants(()), budget, unit, nested, listed, facts, wanted
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)

    def differs_from(self, other: Task) -> str | None:
        """The name of a field that differs in another task; None if the two are equal."""
        names = (field.name for field in fields(self))
        different = next((name for name in names if getattr(self, name) != getattr(other, name)), None)
        return None if different is None else WORDS.get(different, different)

    def recurring_names(self) -> list[str]:
        """A sentence for each level whose names recur in several groups of the level above it.

        >>> from prade import Column
        >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
        >>> groups = {"STATE": [13, 14, 13], "PLACE": ["a", "a", "b"]}
        >>> Task("survey", schema, 1, levels=["STATE", "PLACE"], groups=groups).recurring_names()
        ['PLACE names recur in several STATE: a group is STATE and PLACE together']
        """
        return recurring_names(self.groups, self.levels)


def recurring_names(groups: Groups, levels: Sequence[Sequence[str]]) -> list[str]:
    """A sentence for each of some nested levels whose names recur in several groups of the level above it."""
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
            raise DataError(
                f"level {'+'.join(names) or 'all'} adds no new column, or names one twice: name each column of a level "
                "once"
            )
        both = tuple(dict.fromkeys([*above, *names]))
        if nested and len(groups.level(both)) == len(groups.level(above)) > len(groups.level(names)):
            raise DataError(
                f"level {'+'.join(names)} does not divide any group of the level before it: name levels from coarse to "
                "fine"
            )
        nested.append(both)
    return tuple(nested)
