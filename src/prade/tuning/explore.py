"""Several budgets rehearsed for one task: what does epsilon buy?

The stand-ins, what they tell about candidates, layouts and covariances of public rows are the same for every budget,
and so are most of the choices that are good. So the middle budget is searched first, and each other one starts from
what was best at its neighbour, and is compared with the simplest plan too. All budgets together take about twice the
effort that one would. Nothing here can see private rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prade.core.errors import PradeError, many
from prade.core.execution import EFFORT, Execution
from prade.core.numbers import exact, readable
from prade.data.public.table import PublicTable
from prade.planning.invariants import obeying
from prade.planning.plan import Plan
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.privacy.budget import Budget, BudgetKind, Number
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.closer_look import CloserLook
from prade.tuning.effort import Effort
from prade.tuning.exploration import Affected, Exploration, Rehearsed
from prade.tuning.one_way_candidates import laws_within
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import FRESH
from prade.tuning.tune import Tuned, Tuner
from prade.tuning.work import work_of

NAMES: dict[BudgetKind, str] = {"pure": "epsilon", "approx": "epsilon", "zcdp": "rho"}  # of what differs
WHOLE = 2  # times the effort of one budget: what several budgets take together
FIRST = 1 / 3  # of the whole effort is for the budget that is searched first: the others start from what it finds


def explore(
    task: Task,
    public: Any,
    budgets: Sequence[Budget | Number],
    *,
    weight: str | None = None,
    effort: float = EFFORT,
    seconds: float | None = None,
    bias: int | None = CONTEST_BIAS,
    seed: int = 0,
    execution: Execution = Execution(),
) -> Exploration:
    """Rehearse several budgets on public data, to see what each would buy. This spends nothing.

    `budgets` take the place of the task's own, whose kind they have: a number is an epsilon (with the task's delta, if
    it has one) or a rho. The other arguments are those of `prade.plan`; one budget may take `effort` and `seconds`, and
    all of them together twice as much. A group whose number of rows is off by `bias` or more counts as lost.

    >>> from prade import Unit
    >>> from prade.examples import census_like
    >>> data = census_like(persons=2_000, places_per_state=4, seed=1)
    >>> groups = data.groups.select(["PLACE"]).group_by(["PLACE"]).aggregate([])
    >>> task = Task("people", data.schema, 1, Unit(4), ["PLACE"], groups)
    >>> explored = explore(task, data.public, ["1/1000", 10], effort=0)
    >>> explored.elbow[1]
    'Only at epsilon = 10 is the result expected to be better than the public table.'
    """
    wanted = budgets_of(task, budgets)
    searches = len(laws_within(task.budget))
    whole = Effort.of(effort, seconds, execution.progress, times=WHOLE if len(wanted) > 1 else 1, searches=searches)
    table = PublicTable.of(public, weight)
    rows = obeying(table.rows(task.schema, task.groups), task.invariants)
    table.decoder(task.schema)  # before long rehearsals: a table that `sample` takes no values from fails here
    with Tuner(task, rows, bias=bias, seed=seed, execution=execution) as tuner:
        closer = CloserLook(tuner.rehearsal, task.levels, 2 * FRESH * seed + FRESH)
        found = _all_rehearsed(tuner, closer, wanted, whole)
    files = table.hashed_files
    rehearsed = tuple(
        replace(each, tuned=replace(each.tuned, plan=each.tuned.plan.with_public(files))) for each in found
    )
    return Exploration(task, rehearsed, closer, files, len(rows))


def budgets_of(task: Task, budgets: Sequence[Budget | Number]) -> list[Budget]:
    """The budgets, of the task's kind, from the smallest to the largest; none may come twice.

    >>> from prade import Column, Schema
    >>> task = Task("survey", Schema([Column("AGE", "numeric", edges=[18])]), Budget.approx(1, "1e-9"))
    >>> budgets_of(task, [3, "0.1"])
    [Budget.approx('1/10', '1/1000000000'), Budget.approx('3', '1/1000000000')]
    """
    if isinstance(budgets, str) or not isinstance(budgets, Sequence) or not budgets:
        raise PradeError(f"budgets is {budgets!r}: give a list, such as [0.1, 1, 10]")
    kind, rest = task.budget.kind, task.budget.amounts[1:]
    found = [each if isinstance(each, Budget) else Budget(kind, (exact(each, NAMES[kind]), *rest)) for each in budgets]
    if other := next((each for each in found if (each.kind, each.amounts[1:]) != (kind, rest)), None):
        raise PradeError(f"{other} cannot be compared with {task.budget}: give budgets that differ in one number only")
    if len({each.amounts for each in found}) < len(found):
        raise PradeError("a budget is given twice: give each one once")
    for each in found:
        Plan.simplest(replace(task, budget=each))  # refuses a budget of zero, and one that protects nobody
    return sorted(found, key=lambda each: each.amounts)


def order_of(number: int) -> Iterator[tuple[int, int | None]]:
    """The order in which ascending budgets are searched, each with the neighbour that it starts from.

    >>> list(order_of(5))
    [(2, None), (3, 2), (4, 3), (1, 2), (0, 1)]
    """
    middle = number // 2
    yield middle, None
    yield from ((k, k - 1) for k in range(middle + 1, number))
    yield from ((k, k + 1) for k in reversed(range(middle)))


def _all_rehearsed(tuner: Tuner, closer: CloserLook, budgets: Sequence[Budget], whole: Effort) -> list[Rehearsed]:
    found: dict[int, Rehearsed] = {}
    done = looking = 0.0
    for number, neighbour in order_of(len(budgets)):
        searches, left = len(budgets) - len(found), max(whole.allowed - done, 0.0)
        share = FIRST * left if neighbour is None and searches > 1 else max(left / searches - looking, 0.0)
        what = f"rehearsing {NAMES[budgets[number].kind]} {readable(budgets[number].amounts[0])}"
        effort = replace(whole, allowed=share, what=what)
        tuned = tuner.tune(budgets[number], effort, _start(found, number, neighbour), noise=len(found))
        found[number] = _looked_at(tuner.rehearsal, closer, tuned)
        look = _work_of_look(tuner.rehearsal, tuned.plan)
        done, looking = done + tuned.effort + look, max(looking, look)
    return [found[number] for number in range(len(budgets))]


def _start(found: dict[int, Rehearsed], number: int, neighbour: int | None) -> Any:
    """What to start from: answers that stay raw at a budget need not be good enough for that at a smaller one."""
    if neighbour is None:
        return None
    tuned = found[neighbour].tuned
    return tuned.found if number > neighbour else tuned.smoothed


def _looked_at(rehearsal: Rehearsal, closer: CloserLook, tuned: Tuned) -> Rehearsed:
    return Rehearsed(tuned, closer.at(tuned.plan), _at_risk(rehearsal, tuned.plan), _too_small(rehearsal, tuned.plan))


def _work_of_look(rehearsal: Rehearsal, plan: Plan) -> float:
    """The work of a closer look: the estimates of all groups of every stand-in."""
    settings = plan.settings or Settings()
    return sum(
        work_of(plan, settings, each.groups, len(each.public), len(each.groups), 0) for each in rehearsal.stand_ins
    )


def _at_risk(rehearsal: Rehearsal, plan: Plan) -> Affected:
    """Groups of the plan whose number of rows will be far off."""
    groups = len(plan.groupings[-1])
    if rehearsal.bias is None:
        return Affected(0, groups, "Numbers of rows have no part in the error.")
    number = float(round(rehearsal.rehearsed_risk(plan) * groups, 2))
    far = f"a number of rows that is off by {rehearsal.bias} or more"
    return Affected(number, groups, f"About {number:,.0f} of {many(groups, 'group')} will have {far}.")


def _too_small(rehearsal: Rehearsal, plan: Plan) -> Affected:
    """Stand-in groups with fewer rows in an average measured cell than the standard deviation of its noise."""
    last = len(plan.levels) - 1
    asked = [question for question in plan.questions if question.level == last and not question.is_total]
    rows = np.concatenate([each.rows for each in rehearsal.stand_ins])
    if not asked:
        return Affected(0, len(rows), "No table is measured in single groups: only their numbers of rows are.")
    cells = sum(question.cells for question in asked)
    per_cell = rows * sum(len(question.parts) for question in asked) / cells
    noise = sum(question.cells * question.variance**0.5 for question in asked) / cells
    number = int(np.sum(per_cell < noise))
    words = (
        f"{number:,} of {many(len(rows), 'stand-in group')} have fewer rows in an average measured cell than the "
        f"standard deviation of its noise ({noise:,.0f}): their tables mostly follow the public table."
    )
    return Affected(number, len(rows), words)
