"""Several budgets rehearsed for one task: what does epsilon buy?

The stand-ins and all that they tell serve every budget, and so do most choices that are good. So the middle budget is
searched first, and each other one starts from what was best at its neighbour, and is compared with the simplest plan
too. All budgets together take about twice the effort that one would. Nothing here can see private rows.

The elbow is the smallest budget that is worth spending and beyond which every larger rehearsed budget takes less than a
tenth off the expected error e per doubling, 1 - (e(c) / e(b))^(1 / log2(c / b)) from a budget b to a larger one c.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import PradeError, many
from prade.core.execution import EFFORT, Execution
from prade.core.numbers import exact, readable
from prade.data.public.table import PublicTable
from prade.planning.plan import Plan, columns_left_out, rows_to_plan_with
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.protection import meaning, weakness
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import laws_within
from prade.tuning.closer_look import CloserLook
from prade.tuning.effort import Effort, work_of
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import FRESH
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import Tuned, Tuner, limits_of

WHOLE = 2  # times the effort of one budget: what several budgets take together
FIRST = 1 / 3  # of the whole effort is for the budget that is searched first: the others start from what it finds
LITTLE = 0.1  # of the error that a doubling of the budget takes off


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
    in_order = budgets_of(task, budgets)
    times, searches = WHOLE if len(in_order) > 1 else 1, len(laws_within(task.budget))
    whole = Effort.of(effort, seconds, execution.progress, times=times, searches=searches)
    table = PublicTable.of(public, weight)
    rows = rows_to_plan_with(task, table)
    tuner = Tuner(task, rows, bias=bias, seed=seed, execution=execution)
    closer = CloserLook(tuner.rehearsal, task.levels, 2 * FRESH * seed + FRESH)
    files = table.hashed_files
    tuned = [replace(each, plan=each.plan.with_public(files)) for each in _tuned(tuner, in_order, whole)]
    name, errors = task.budget.names[0], [each.expected.error for each in tuned]
    bend = elbow([each.amounts[0] for each in in_order], errors, [each.worthwhile for each in tuned], name)
    data = {
        "dataset": task.dataset,
        "symbol": name,
        "levels": [
            {"name": "+".join(by) or "all", "groups": len(tuned[-1].plan.groups.level(by))} for by in task.levels
        ],
        "columns": [task.schema[column].described() for column in task.schema.coded],
        "public": {"rows": len(rows), "files": [] if files is None else [Path(file).name for file in files.files]},
        "unit": task.unit.promise(),
        **_about(tuner.rehearsal, tuned),
        "elbow": bend[1] or None,
        "recommended": bend[0],
        "budgets": [_facts(each, closer) for each in tuned],
        "column_prior": closer.prior["columns"],
        "pair_prior": closer.prior["pairs"],
        "places": closer.shown_places(),
    }
    return Exploration(tuned, bend, data)


def budgets_of(task: Task, budgets: Sequence[Budget | Number]) -> list[Budget]:
    """The budgets, of the task's kind, from the smallest to the largest; none may come twice."""
    if isinstance(budgets, str) or not isinstance(budgets, Sequence) or not budgets:
        raise PradeError(f"budgets is {budgets!r}: give a list, such as [0.1, 1, 10]")
    kind, rest = task.budget.kind, task.budget.amounts[1:]
    name = task.budget.names[0]
    all_of_them = [each if isinstance(each, Budget) else Budget(kind, (exact(each, name), *rest)) for each in budgets]
    if other := next((each for each in all_of_them if (each.kind, each.amounts[1:]) != (kind, rest)), None):
        raise PradeError(f"{other} cannot be compared with {task.budget}: give budgets that differ in one number only")
    if len({each.amounts for each in all_of_them}) < len(all_of_them):
        raise PradeError("a budget is given twice: give each one once")
    for each in all_of_them:
        Plan.simplest(replace(task, budget=each))  # refuses a budget of zero, and one that protects nobody
    return sorted(all_of_them, key=lambda each: each.amounts)


def _tuned(tuner: Tuner, budgets: Sequence[Budget], whole: Effort) -> list[Tuned]:
    """The plan of each budget. Of the effort, what a closer look at each plan takes is kept back."""
    tuned: dict[int, Tuned] = {}
    done, looking, middle = 0.0, 0.0, len(budgets) // 2
    for number in (*range(middle, len(budgets)), *reversed(range(middle))):
        budget, searches, left = budgets[number], len(budgets) - len(tuned), max(whole.allowed - done, 0.0)
        share = FIRST * left if not tuned and searches > 1 else max(left / searches - looking, 0.0)
        effort = replace(whole, allowed=share, what=f"rehearsing {budget.names[0]} {readable(budget.amounts[0])}")
        start = None
        if number > middle:
            start = tuned[number - 1].best
        elif number < middle:  # answers that stay raw at a budget need not be good enough for that at a smaller one
            start = tuned[number + 1].smoothed
        found = tuned[number] = tuner.tune(budget, effort, start, noise=len(tuned))
        look = sum(  # the estimates of all groups of every stand-in
            work_of(found.plan, found.settings, each.groups, len(each.public), len(each.groups), 0)
            for each in tuner.rehearsal.stand_ins
        )
        done, looking = done + found.effort + look, max(looking, look)
    return [tuned[number] for number in range(len(budgets))]


def elbow(
    amounts: Sequence[Fraction], errors: Sequence[float], worthwhile: Sequence[bool], name: str
) -> tuple[int | None, str]:
    """The number of the elbow among ascending budgets, and a sentence about it; None where there is none.

    >>> elbow([Fraction(1), Fraction(3), Fraction(6)], [0.4, 0.2, 0.19], [True, True, True], "epsilon")
    (1, 'Beyond epsilon = 3, you pay twice the budget for at most 5 % less error.')
    """
    if not any(worthwhile):
        return None, "At none of these budgets is the result expected to be better than the public table alone."
    if len(amounts) == 1:
        return None, ""
    points = list(zip(amounts, errors, strict=True))
    for k, (amount, error) in enumerate(points[:-1]):
        off = [
            1 - (after / error) ** (1 / math.log2(more / amount)) if error else 0.0 for more, after in points[k + 1 :]
        ]
        if worthwhile[k] and max(off) < LITTLE:
            share = round(100 * max(off))
            bought = f"you pay twice the budget for at most {share} % less error" if share > 0 else "the error stays"
            return k, f"Beyond {name} = {readable(amount)}, {bought}."
    largest = f"{name} = {readable(amounts[-1])}"
    if not any(worthwhile[:-1]):
        return None, f"Only at {largest} is the result expected to be better than the public table."
    return None, (
        f"Up to {largest}, the largest budget that was rehearsed, more budget still buys {100 * LITTLE:.0f} % less "
        "error or more per doubling."
    )


def _about(rehearsal: Rehearsal, tuned: Sequence[Tuned]) -> dict[str, Any]:
    """What stood in for the private table, and what the rehearsals do not show."""
    how, *caveats = re.split(r"(?<=\.) ", WORDS[rehearsal.kind], maxsplit=1)
    tables, groups = len(rehearsal.stand_ins), sum(len(each.groups) for each in rehearsal.stand_ins)
    caveats += limits_of(rehearsal)
    if hurried := [each.plan.budget for each in tuned if not each.finished]:
        more = "seconds" if any(each.time_was_up for each in tuned) else "effort"
        at = f"{hurried[0].names[0]} = {', '.join(readable(each.amounts[0]) for each in hurried)}"
        caveats.append(f"Not every candidate was tried at {at}: more {more} may find better plans.")
    how += f" There were {many(tables, 'table')} of stand-ins with {many(groups, 'group')}."
    return {"rehearsal": how, "caveats": caveats}


def _facts(tuned: Tuned, closer: CloserLook) -> dict[str, Any]:
    """What is to be said about one budget."""
    plan, expected = tuned.plan, asdict(tuned.expected)
    return {
        "epsilon": readable(plan.budget.amounts[0]),
        "amount": float(plan.budget.amounts[0]),
        "budget": str(plan.budget),
        "meaning": meaning(plan.budget, plan.unit.neighbours),
        "advice": expected.pop("advice"),
        "worthwhile": tuned.worthwhile,
        "expected": {**expected, "gain": round(expected["prior"] - expected["error"], 6)},
        **closer.at(plan),
        "measured": [
            {
                "level": plan.levels[question.level].name,
                "parts": question.names(),
                "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
                "noise": f"{question.law.words} of scale {float(question.scale):,.4g}",
            }
            for question in plan.questions
        ],
        "table_count": sum(len(question.parts) for question in plan.questions if not question.is_total),
        "not_measured": columns_left_out(plan),
    }


@dataclass(frozen=True, eq=False)
class Exploration:
    """The rehearsals of several budgets for one task, from the smallest to the largest.

    `elbow` is the number of the budget beyond which more budget buys little, and a sentence. Everything comes from
    public rows: some of them stood in for the private ones.
    """

    tuned: list[Tuned]
    elbow: tuple[int | None, str]
    data: dict[str, Any]  # of the page, except for the names of files

    @property
    def plans(self) -> list[Plan]:
        """The plan of each budget."""
        return [each.plan for each in self.tuned]

    def table(self) -> list[dict[str, Any]]:
        """One row per budget, as `prade plan` prints it."""
        return [
            {
                self.data["symbol"]: each["epsilon"],
                "expected error": f"{expected.error:.3f} ± {expected.error_spread:.3f}",
                "public baseline": f"{expected.prior:.3f}",
                "improvement": f"{expected.prior - expected.error:.3f} ± {expected.spread:.3f}",
                "tables measured": str(each["table_count"]),
                "groups at risk": f"{each['risk']['groups']:.0f} of {each['risk']['of']:,}",
                "worth it": "yes" if each["worthwhile"] else "no",
            }
            for each, expected in zip(self.data["budgets"], (each.expected for each in self.tuned), strict=True)
        ]

    def save_plans(self, output: str | PathLike[str] = "plan.toml") -> list[Path]:
        """Write the plan of each budget to a file beside `output` (plan-0.1.toml), and return the paths."""
        paths = [plan_file(output, plan.budget) for plan in self.plans]
        for plan, path in zip(self.plans, paths, strict=True):
            plan.save(path)
        return paths

    def to_dict(self, output: str | PathLike[str] = "plan.toml") -> dict[str, Any]:
        """All of it as plain values, the data of the page. `output` is what `save_plans` was given."""
        budgets = []
        for plan, facts in zip(self.plans, self.data["budgets"], strict=True):
            path = plan_file(output, plan.budget)
            files = {"file": path.name, "plan": plan.text_at(path), "command": _command(path, plan)}
            budgets.append({**facts, **files})
        return deepcopy({**self.data, "budgets": budgets})


def plan_file(output: str | PathLike[str], budget: Budget) -> Path:
    """The path of a budget's plan beside `output`.

    >>> plan_file("plans/census.toml", Budget.pure("1/3")).as_posix()
    'plans/census-1_3.toml'
    """
    path = Path(output)
    return path.with_name(f"{path.stem}-{_in_name(budget)}{path.suffix}")


def _in_name(budget: Budget) -> str:
    short = readable(budget.amounts[0])
    return (short if not short.startswith("about") else str(budget.amounts[0])).replace("/", "_")


def _command(path: Path, plan: Plan) -> str:
    """The commands that come next; PRIVATE stands for the private table, CAP for what its custodian allows in all."""
    unit, cap = plan.unit, {"pure": "--cap CAP", "approx": "--cap CAP --delta DELTA", "zcdp": "--rho CAP"}
    opened = f"prade ledger open {shlex.quote(plan.dataset)} {cap[plan.budget.kind]}"
    opened += f" --max-rows-per-person {unit.max_rows}"
    opened += f" --person-id {shlex.quote(unit.person_id)}" if unit.person_id else ""
    opened += f" --max-rows-per-group {unit.per_group}" if unit.per_group else ""
    opened += f" --neighbours {unit.neighbours}" if unit.neighbours != "add-remove" else ""
    measured = f"prade measure {shlex.quote(str(path))} PRIVATE -o release-{_in_name(plan.budget)}"
    return f"{opened}\n{measured}" + (" --yes-weak-protection" if weakness(plan.budget) else "")
