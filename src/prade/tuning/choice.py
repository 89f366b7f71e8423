"""From what is wanted to a plan: the simplest one, a tuned one, or the one that an earlier run has kept.

A tuned plan depends on how far the tuner came. Were it made anew by a run that goes on, the ledger would not know it,
and would be charged a second time: so it is kept beside the release's folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError, PradeError
from prade.core.progress import Progress
from prade.core.words import names_of
from prade.data.groups import Groups
from prade.data.public import Public
from prade.data.schema import Schema
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.privacy.budget import Budget, Unit
from prade.queries.workload import Workload
from prade.release.release import PLAN

MOST = 10**30  # an epsilon or rho far beyond any promise, and still far from where floats end
NOT_REHEARSED = "The plan was not rehearsed: which error to expect is not known."


def simplest_plan(
    dataset: str, schema: Schema, budget: Budget, unit: Unit, levels: Sequence[str | Sequence[str]], groups: Any
) -> Plan:
    """All one-way tables of the last level. It is made in no time, and finds what is wrong with its arguments."""
    *above, last = named = [names_of(level) for level in levels] or [()]
    for place, names in enumerate(named):
        if len(set(names)) < len(names) or (place and set(names) <= {name for each in named[:place] for name in each}):
            raise DataError(
                f"level {'+'.join(names) or 'all'} names no new column, or one twice: name each column of a level once"
            )
    if max(budget.amounts) > MOST:
        raise PradeError(f"{budget} promises nothing; give a budget of at most a few dozen")
    asked = [*(Level(by) for by in above), Level(last, Workload.all_marginals(schema, 1))]
    plan = Plan(dataset, schema, budget, unit, asked, groups)
    for coarse, fine, level in zip(plan.groupings, plan.groupings[1:], levels[1:], strict=False):
        names = names_of(level)
        if len(fine) == len(coarse) > len(plan.groups.level(names)):
            raise DataError(
                f"level {'+'.join(names)} divides no group of the level before it: name levels from coarse to fine"
            )
    return plan


def recurring(groups: Groups, levels: Sequence[str | Sequence[str]]) -> list[str]:
    """A sentence for each level whose names recur in several groups of the levels above it.

    >>> recurring(Groups.of({"STATE": [13, 14, 13], "PLACE": ["a", "a", "b"]}), ["STATE", "PLACE"])
    ['PLACE names recur in several STATE: a group is STATE and PLACE together']
    """
    found: list[str] = []
    above: tuple[str, ...] = ()
    for level in levels:
        names = tuple(name for name in names_of(level) if name not in above)
        nested = (*above, *names)
        if above and len(groups.level(names)) < len(groups.level(nested)):
            within, together = "+".join(above), f"{', '.join(nested[:-1])} and {nested[-1]}"
            found.append(f"{'+'.join(names)} names recur in several {within}: a group is {together} together")
        above = nested
    return found


def tuned_plan(simple: Plan, rows: Public, seconds: float, progress: Progress | None = None) -> tuple[Plan, str]:
    """The plan that rehearsals on public rows choose for the same as `simple`, and what they advise."""
    from prade.tuning.tune import tune

    levels = [level.by for level in simple.levels]
    what = simple.dataset, simple.schema, simple.budget, simple.unit, levels, simple.groups, rows
    tuned = tune(*what, seconds=seconds, progress=progress)
    return tuned.plan, tuned.advice


def plan_beside(folder: str | PathLike[str]) -> Path:
    """Where the plan is kept before the folder is there: FOLDER.plan.toml."""
    return Path(f"{Path(folder).absolute()}.plan.toml")


def kept_plan(folder: str | PathLike[str], wanted: Plan) -> Plan | None:
    """The plan in or beside a release's folder, if there is one; it must be for the same as `wanted`.

    The same: data set, schema, budget, unit, groups and levels. What is asked at the levels is the kept plan's.
    """
    place = next((file for file in (Path(folder) / PLAN, plan_beside(folder)) if file.exists()), None)
    if place is None:
        return None
    made = Plan.load(place)
    pairs: dict[str, tuple[Any, Any]] = {
        "dataset": (made.dataset, wanted.dataset),
        "schema": (made.schema, wanted.schema),
        "epsilon or delta": (made.budget, wanted.budget),
        "unit": (made.unit, wanted.unit),
        "groups": (made.groups, wanted.groups),
        "levels": ([level.by for level in made.levels], [level.by for level in wanted.levels]),
    }
    for name, (found, given) in pairs.items():
        if found != given:
            raise DataError(f"{place} was made with another {name}: give what it was made with, or another folder")
    return made
