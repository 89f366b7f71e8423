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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import PradeError, many
from prade.core.execution import EFFORT, Execution
from prade.core.numbers import exact, readable
from prade.data.public.table import PublicFiles, PublicTable
from prade.planning.plan import Plan, columns_left_out, rows_to_plan_with
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.protection import meaning, weakness
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.candidates import Choice, laws_within
from prade.tuning.closer_look import CloserLook, Look
from prade.tuning.effort import Effort, work_of
from prade.tuning.rehearse import Rehearsal
from prade.tuning.search import FRESH
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import Tuned, Tuner, limits_of

WHOLE = 2  # times the effort of one budget: what several budgets take together
FIRST = 1 / 3  # of the whole effort is for the budget that is searched first: the others start from what it finds
LITTLE = 0.1  # of the error that a doubling of the budget takes off

Array = Callable[[Floats], Any]  # how an array is written: as lists, or packed for a page


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
    rehearsed = _all_rehearsed(tuner, closer, in_order, whole)
    signed = [replace(each, tuned=replace(each.tuned, plan=each.tuned.plan.with_public(files))) for each in rehearsed]
    return Exploration(task, tuple(signed), closer, files, len(rows))


# ---------------------------------------------------------------------- budgets, one after the other


def budgets_of(task: Task, budgets: Sequence[Budget | Number]) -> list[Budget]:
    """The budgets, of the task's kind, from the smallest to the largest; none may come twice."""
    if isinstance(budgets, str) or not isinstance(budgets, Sequence) or not budgets:
        raise PradeError(f"budgets is {budgets!r}: give a list, such as [0.1, 1, 10]")
    kind, rest = task.budget.kind, task.budget.amounts[1:]
    name = symbol(task.budget)
    all_of_them = [each if isinstance(each, Budget) else Budget(kind, (exact(each, name), *rest)) for each in budgets]
    if other := next((each for each in all_of_them if (each.kind, each.amounts[1:]) != (kind, rest)), None):
        raise PradeError(f"{other} cannot be compared with {task.budget}: give budgets that differ in one number only")
    if len({each.amounts for each in all_of_them}) < len(all_of_them):
        raise PradeError("a budget is given twice: give each one once")
    for each in all_of_them:
        Plan.simplest(replace(task, budget=each))  # refuses a budget of zero, and one that protects nobody
    return sorted(all_of_them, key=lambda each: each.amounts)


def symbol(budget: Budget) -> str:
    """The name of the number that budgets of a kind differ in."""
    return "rho" if budget.kind == "zcdp" else "epsilon"


def _all_rehearsed(tuner: Tuner, closer: CloserLook, budgets: Sequence[Budget], whole: Effort) -> list[Rehearsed]:
    rehearsed: dict[int, Rehearsed] = {}
    done = looking = 0.0
    rehearsal, middle = tuner.rehearsal, len(budgets) // 2
    for number in (*range(middle, len(budgets)), *reversed(range(middle))):
        budget, searches, left = budgets[number], len(budgets) - len(rehearsed), max(whole.allowed - done, 0.0)
        share = FIRST * left if not rehearsed and searches > 1 else max(left / searches - looking, 0.0)
        effort = replace(whole, allowed=share, what=f"rehearsing {symbol(budget)} {readable(budget.amounts[0])}")
        start: Choice | None = None
        if number > middle:
            start = rehearsed[number - 1].tuned.best
        elif number < middle:  # answers that stay raw at a budget need not be good enough for that at a smaller one
            start = rehearsed[number + 1].tuned.smoothed
        tuned = tuner.tune(budget, effort, start, noise=len(rehearsed))
        plan = tuned.plan
        rehearsed[number] = Rehearsed(tuned, closer.at(plan), _at_risk(rehearsal, plan), _too_small(rehearsal, plan))
        look = sum(  # the estimates of all groups of every stand-in
            work_of(plan, tuned.settings, each.groups, len(each.public), len(each.groups), 0)
            for each in rehearsal.stand_ins
        )
        done, looking = done + tuned.effort + look, max(looking, look)
    return [rehearsed[number] for number in range(len(budgets))]


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


# ---------------------------------------------------------------------- what comes out


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """One budget: its plan, and what the plan makes of the stand-ins.

    `risk` is about groups whose number of rows is far off, `too_small` about stand-in groups with more noise than rows
    in an average cell: how many groups, of how many, in words.
    """

    tuned: Tuned
    look: Look
    risk: dict[str, Any]
    too_small: dict[str, Any]

    @property
    def amount(self) -> Fraction:
        """The number that budgets differ in."""
        return self.tuned.plan.budget.amounts[0]


def _tables(plan: Plan) -> int:
    """How many tables are measured; numbers of rows are none."""
    return sum(len(question.parts) for question in plan.questions if not question.is_total)


def _at_risk(rehearsal: Rehearsal, plan: Plan) -> dict[str, Any]:
    groups = len(plan.groupings[-1])
    if rehearsal.bias is None:
        return {"groups": 0, "of": groups, "words": "Numbers of rows have no part in the error."}
    number = float(round(rehearsal.rehearsed_risk(plan) * groups, 2))
    far = f"a number of rows that is off by {rehearsal.bias} or more"
    words = f"About {number:,.0f} of {many(groups, 'group')} will have {far}."
    return {"groups": number, "of": groups, "words": words}


def _too_small(rehearsal: Rehearsal, plan: Plan) -> dict[str, Any]:
    """Stand-in groups with fewer rows in an average measured cell than the standard deviation of its noise."""
    measured = [each for each in plan.questions if each.level == len(plan.levels) - 1 and not each.is_total]
    rows = np.concatenate([each.rows for each in rehearsal.stand_ins])
    if not measured:
        words = "No table is measured in single groups: only their numbers of rows are."
        return {"groups": 0, "of": len(rows), "words": words}
    cells = sum(question.cells for question in measured)
    per_cell = rows * sum(len(question.parts) for question in measured) / cells
    noise = sum(question.cells * question.variance**0.5 for question in measured) / cells
    number = int(np.sum(per_cell < noise))
    words = (
        f"{number:,} of {many(len(rows), 'stand-in group')} have fewer rows in an average measured cell than the "
        f"standard deviation of its noise ({noise:,.0f}): their tables mostly follow the public table."
    )
    return {"groups": number, "of": len(rows), "words": words}


@dataclass(frozen=True, eq=False)
class Exploration:
    """The rehearsals of several budgets for one task, from the smallest to the largest.

    Everything in it comes from public rows: some of them stood in for the private ones.
    """

    task: Task
    rehearsed: tuple[Rehearsed, ...]
    closer: CloserLook
    public: PublicFiles | None
    public_rows: int

    @property
    def plans(self) -> list[Plan]:
        """The plan of each budget."""
        return [each.tuned.plan for each in self.rehearsed]

    @property
    def elbow(self) -> tuple[int | None, str]:
        """The number of the budget beyond which more budget buys little, and a sentence."""
        tuned = [each.tuned for each in self.rehearsed]
        errors, worthwhile = [each.expected.error for each in tuned], [each.worthwhile for each in tuned]
        return elbow([each.amount for each in self.rehearsed], errors, worthwhile, symbol(self.task.budget))

    def table(self) -> list[dict[str, Any]]:
        """One row per budget, as `prade plan` prints it."""
        return [
            {
                symbol(self.task.budget): readable(each.amount),
                "expected error": f"{expected.error:.3f} ± {expected.error_spread:.3f}",
                "public baseline": f"{expected.prior:.3f}",
                "improvement": f"{expected.prior - expected.error:.3f} ± {expected.spread:.3f}",
                "tables measured": str(_tables(each.tuned.plan)),
                "groups at risk": f"{each.risk['groups']:.0f} of {each.risk['of']:,}",
                "worth it": "yes" if each.tuned.worthwhile else "no",
            }
            for each, expected in ((each, each.tuned.expected) for each in self.rehearsed)
        ]

    def save_plans(self, output: str | PathLike[str] = "plan.toml") -> list[Path]:
        """Write the plan of each budget to a file beside `output` (plan-0.1.toml), and return the paths."""
        paths = [plan_file(output, plan.budget) for plan in self.plans]
        for plan, path in zip(self.plans, paths, strict=True):
            plan.save(path)
        return paths

    def to_dict(self, output: str | PathLike[str] = "plan.toml", *, array: Array | None = None) -> dict[str, Any]:
        """All of it as plain values, the data of the page. `array` says how arrays are written, by default as lists.

        `output` is what `save_plans` was given.
        """
        array = array or listed
        recommended, words = self.elbow
        closer, rehearsal, levels = self.closer, self.closer.rehearsal, self.task.levels
        how, *caveats = re.split(r"(?<=\.) ", WORDS[rehearsal.kind], maxsplit=1)
        stand_ins, groups = rehearsal.stand_ins, sum(len(each.groups) for each in rehearsal.stand_ins)
        return {
            "dataset": self.task.dataset,
            "symbol": symbol(self.task.budget),
            "levels": [
                {"name": "+".join(by) or "all", "groups": len(self.plans[-1].groups.level(by))} for by in levels
            ],
            "columns": [self.task.schema[name].described() for name in closer.names],
            "public": {
                "rows": self.public_rows,
                "files": [] if self.public is None else [Path(file).name for file in self.public.files],
            },
            "unit": self.task.unit.promise(),
            "rehearsal": f"{how} There were {many(len(stand_ins), 'table')} of stand-ins with {many(groups, 'group')}.",
            "caveats": [*caveats, *limits_of(rehearsal), *self._unfinished()],
            "elbow": words or None,
            "recommended": recommended,
            "budgets": [self._budget(each, output, array) for each in self.rehearsed],
            "column_prior": _rounded(closer.prior[0]),
            "pair_prior": array(closer.prior[1]),
            "places": [{"label": place.label, "rows": place.rows} for place in closer.places],
            "tables": [
                {
                    "truth": array(place.truth[None]),
                    "public": array(place.public[None]),
                    "budgets": [
                        {name: array(shares[None]) for name, shares in each.look.tables[number].items()}
                        for each in self.rehearsed
                    ],
                }
                for number, place in enumerate(closer.places)
            ],
        }

    def _unfinished(self) -> list[str]:
        """At which budgets the search ended before its end, and why."""
        caveats = []
        for why, more, time_was_up in (
            ("The time was up before every candidate was tried", "seconds", True),
            ("Not every candidate was tried", "effort", False),
        ):
            hurried = [
                readable(each.amount)
                for each in self.rehearsed
                if not each.tuned.finished and each.tuned.time_was_up == time_was_up
            ]
            if hurried:
                at = f"{symbol(self.task.budget)} = {', '.join(hurried)}"
                caveats.append(f"{why} at {at}: more {more} may find better plans.")
        return caveats

    def _budget(self, each: Rehearsed, output: str | PathLike[str], array: Array) -> dict[str, Any]:
        tuned, plan, expected = each.tuned, each.tuned.plan, asdict(each.tuned.expected)
        path = plan_file(output, plan.budget)
        del expected["advice"]
        last = {"error": expected["error"], "spread": expected["error_spread"], "prior": expected["prior"]}
        return {
            "epsilon": readable(each.amount),
            "amount": float(each.amount),
            "budget": str(plan.budget),
            "meaning": meaning(plan.budget, plan.unit.neighbours),
            "advice": tuned.expected.advice,
            "worthwhile": tuned.worthwhile,
            "expected": {**expected, "gain": round(expected["prior"] - expected["error"], 6)},
            "by_level": [*each.look.above, {"level": plan.levels[-1].name, **last}],
            "measured": [
                {
                    "level": plan.levels[question.level].name,
                    "parts": question.names(),
                    "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
                    "noise": f"{question.law.words} of scale {float(question.scale):,.4g}",
                }
                for question in plan.questions
            ],
            "tables": _tables(plan),
            "not_measured": columns_left_out(plan),
            "risk": {**each.risk, "bias": self.closer.rehearsal.bias},
            "too_small": each.too_small,
            "column_errors": _rounded(each.look.columns),
            "pair_errors": array(each.look.pairs),
            "file": path.name,
            "plan": plan.text_at(path),
            "command": _command(path, plan),
        }


def plan_file(output: str | PathLike[str], budget: Budget) -> Path:
    """The path of a budget's plan beside `output`.

    >>> plan_file("plans/census.toml", Budget.pure("1/3")).as_posix()
    'plans/census-1_3.toml'
    """
    path = Path(output)
    return path.with_name(f"{path.stem}-{_in_name(budget.amounts[0])}{path.suffix}")


def listed(values: Floats) -> Any:
    """An array as lists, with None for NaN."""
    known = np.round(values, 6).astype(object)
    known[np.isnan(values)] = None
    return known.tolist()


def _in_name(amount: Fraction) -> str:
    short = readable(amount)
    return (short if not short.startswith("about") else str(amount)).replace("/", "_")


def _command(path: Path, plan: Plan) -> str:
    """The commands that come next; PRIVATE stands for the private table, CAP for what its custodian allows in all."""
    accepted = " --yes-weak-protection" if weakness(plan.budget) else ""
    name, dataset = _in_name(plan.budget.amounts[0]), shlex.quote(plan.dataset)
    cap = {"zcdp": "--rho CAP", "approx": "--cap CAP --delta DELTA", "pure": "--cap CAP"}[plan.budget.kind]
    person = f" --person-id {shlex.quote(plan.unit.person_id)}" if plan.unit.person_id else ""
    return (
        f"prade ledger open {dataset} {cap} --max-rows-per-person {plan.unit.max_rows}{person}  # once for a data set\n"
        f"prade measure {shlex.quote(str(path))} PRIVATE -o release-{name}{accepted}"
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 6) for value in values]
