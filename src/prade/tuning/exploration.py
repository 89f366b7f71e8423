"""What several budgets would buy, by rehearsal: the plans, their errors, and what becomes of a few places' tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.core.numbers import readable
from prade.data.declare.display import described
from prade.data.public.table import PublicFiles
from prade.planning.plan import Plan, columns_left_out
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.protection import meaning, weakness
from prade.tuning.closer_look import CloserLook, LevelError, Look, Place
from prade.tuning.elbow import elbow
from prade.tuning.stand_ins import WORDS
from prade.tuning.tune import ONE_TABLE, SAME_GROUPS, Tuned

Array = Callable[[Floats], Any]  # how an array is written: as lists, or packed for a page


@dataclass(frozen=True)
class Affected:
    """How many groups something happens to, of how many, and what it is."""

    groups: float
    of: int
    words: str


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """One budget: its plan, with the error to expect, and a closer look at what the plan makes of the stand-ins."""

    tuned: Tuned
    look: Look
    risk: Affected  # groups whose number of rows is far off
    too_small: Affected  # stand-in groups with more noise than rows in an average cell

    @property
    def budget(self) -> Budget:
        """What the plan spends."""
        return self.tuned.plan.budget

    @property
    def tables(self) -> int:
        """How many tables are measured; numbers of rows are none."""
        return sum(len(question.parts) for question in self.tuned.plan.questions if not question.is_total)

    @property
    def by_level(self) -> tuple[LevelError, ...]:
        """The errors of all levels, from coarse to fine; that of the last level is the expected error."""
        expected, plan = self.tuned.expected, self.tuned.plan
        last = LevelError(plan.levels[-1].name, expected.error, expected.error_spread, expected.prior)
        return *self.look.above, last


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
    def places(self) -> tuple[Place, ...]:
        """A few stand-in groups of different sizes."""
        return self.closer.places

    @property
    def elbow(self) -> tuple[int | None, str]:
        """The number of the budget beyond which more budget buys little, and a sentence (`prade.tuning.elbow`)."""
        tuned = [each.tuned for each in self.rehearsed]
        amounts = [each.budget.amounts[0] for each in self.rehearsed]
        errors, worthwhile = [each.expected.error for each in tuned], [each.worthwhile for each in tuned]
        return elbow(amounts, errors, worthwhile, self._name)

    def table(self) -> list[dict[str, Any]]:
        """One row per budget, as `prade plan` prints it."""
        return [self._row(each) for each in self.rehearsed]

    def file_of(self, number: int, output: str | PathLike[str] = "plan.toml") -> Path:
        """The path of a budget's plan beside `output`: plan-0.1.toml beside plan.toml."""
        return plan_file(output, self.rehearsed[number].budget)

    def save_plans(self, output: str | PathLike[str] = "plan.toml") -> list[Path]:
        """Write the plan of each budget to a file beside `output`, and return the paths."""
        paths = [self.file_of(number, output) for number in range(len(self.rehearsed))]
        for plan, path in zip(self.plans, paths, strict=True):
            plan.save(path)
        return paths

    def to_dict(self, output: str | PathLike[str] = "plan.toml", *, array: Array | None = None) -> dict[str, Any]:
        """All of it as plain values, the data of the page. `array` says how arrays are written, by default as lists.

        `output` is what `save_plans` was given.
        """
        array = array or listed
        recommended, words = self.elbow
        column_prior, pair_prior = self.closer.prior
        last = self.rehearsed[-1].tuned.plan
        names = ["+".join(by) or "all" for by in self.task.levels]
        numbers = [len(last.groups.level(by)) for by in self.task.levels]
        files = [] if self.public is None else [Path(file).name for file in self.public.files]
        return {
            "dataset": self.task.dataset,
            "symbol": self._name,
            "levels": [{"name": name, "groups": number} for name, number in zip(names, numbers, strict=True)],
            "columns": [described(self.task.schema[name]) for name in self.closer.names],
            "public": {"rows": self.public_rows, "files": files},
            "unit": self.task.unit.promise(),
            "rehearsal": self._rehearsal(),
            "caveats": self._caveats(),
            "elbow": words or None,
            "recommended": recommended,
            "budgets": [self._budget(number, output, array) for number in range(len(self.rehearsed))],
            "column_prior": _rounded(column_prior),
            "pair_prior": array(pair_prior),
            "places": [{"label": place.label, "rows": place.rows} for place in self.places],
            "tables": [self._tables(number, array) for number in range(len(self.places))],
        }

    # ---------------------------------------------------------------- parts of it

    @property
    def _name(self) -> str:
        return "rho" if self.task.budget.kind == "zcdp" else "epsilon"

    def _row(self, each: Rehearsed) -> dict[str, Any]:
        expected, tuned = each.tuned.expected, each.tuned
        return {
            self._name: readable(each.budget.amounts[0]),
            "expected error": f"{expected.error:.3f} ± {expected.error_spread:.3f}",
            "public baseline": f"{expected.prior:.3f}",
            "improvement": f"{expected.prior - expected.error:.3f} ± {expected.spread:.3f}",
            "tables measured": str(each.tables),
            "groups at risk": f"{each.risk.groups:.0f} of {each.risk.of:,}",
            "worth it": "yes" if tuned.worthwhile else "no",
        }

    def _rehearsal(self) -> str:
        """How the stand-ins were made: the first sentence of what the advice says, and their numbers."""
        rehearsal = self.closer.rehearsal
        groups = sum(len(each.groups) for each in rehearsal.stand_ins)
        tables = many(len(rehearsal.stand_ins), "table")
        return f"{_sentences(WORDS[rehearsal.kind])[0]} There were {tables} of stand-ins with {many(groups, 'group')}."

    def _caveats(self) -> list[str]:
        rehearsal = self.closer.rehearsal
        said = _sentences(WORDS[rehearsal.kind])[1:]
        if not rehearsal.apart:
            said.append(SAME_GROUPS)
        if len(rehearsal.stand_ins) == 1:
            said.append(ONE_TABLE)
        for why, more, time_was_up in (
            ("The time was up before every candidate was tried", "seconds", True),
            ("Not every candidate was tried", "effort", False),
        ):
            unfinished = [
                readable(each.budget.amounts[0])
                for each in self.rehearsed
                if not each.tuned.finished and each.tuned.time_was_up == time_was_up
            ]
            if unfinished:
                said.append(f"{why} at {self._name} = {', '.join(unfinished)}: more {more} may find better plans.")
        return said

    def _budget(self, number: int, output: str | PathLike[str], array: Array) -> dict[str, Any]:
        each, path = self.rehearsed[number], self.file_of(number, output)
        tuned, plan, bias = each.tuned, each.tuned.plan, self.closer.rehearsal.bias
        expected = asdict(tuned.expected)
        del expected["advice"]
        return {
            "epsilon": readable(each.budget.amounts[0]),
            "amount": float(each.budget.amounts[0]),
            "budget": str(each.budget),
            "meaning": meaning(each.budget, plan.unit.neighbours),
            "advice": tuned.advice,
            "worthwhile": tuned.worthwhile,
            "expected": {**expected, "gain": round(expected["prior"] - expected["error"], 6)},
            "by_level": [asdict(level) for level in each.by_level],
            "measured": [_measured(plan, question) for question in range(len(plan.questions))],
            "tables": each.tables,
            "not_measured": columns_left_out(plan),
            "risk": {**asdict(each.risk), "bias": bias},
            "too_small": asdict(each.too_small),
            "column_errors": _rounded(each.look.columns),
            "pair_errors": array(each.look.pairs),
            "file": path.name,
            "plan": plan.text_at(path),
            "command": _command(path, plan),
        }

    def _tables(self, number: int, array: Array) -> dict[str, Any]:
        """The tables of one place: true and public shares, and what the plan of each budget makes of them."""
        place = self.places[number]
        budgets = [
            {name: array(shares[None]) for name, shares in vars(each.look.tables[number]).items()}
            for each in self.rehearsed
        ]
        return {"truth": array(place.truth[None]), "public": array(place.public[None]), "budgets": budgets}


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


def _measured(plan: Plan, number: int) -> dict[str, Any]:
    question = plan.questions[number]
    return {
        "level": plan.levels[question.level].name,
        "parts": question.names(),
        "share": float(question.share.amounts[0] / plan.noise_budget.amounts[0]),
        "noise": f"{question.law.words} of scale {float(question.scale):,.4g}",
    }


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


def _sentences(text: str) -> list[str]:
    first, _, rest = text.partition(". ")
    return [f"{first}.", rest] if rest else [text]


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), 6) for value in values]
