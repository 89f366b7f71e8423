"""Five budgets rehearsed at once, beside one budget and beside five single ones: seconds, and how good the plans are.

All plans are judged alike: by rehearsal in the groups that chose none of them, with noise that none of them has seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common import DATA, need_data, report, table
from prade import Plan, Task, Unit, explore
from prade.core.arrays import Floats
from prade.core.execution import Execution, cores
from prade.data.public.table import PublicTable
from prade.examples import census_like
from prade.tuning.rehearse import Rehearsal
from prade.tuning.tune import tune

BUDGETS = ("0.1", "0.3", "1", "3", "10")
ONE = "1"  # the budget that five at once are compared with
JUDGES = range(5_000_000, 5_000_003)  # seeds of noise that no search has used


def census() -> tuple[Task, PublicTable]:
    """Invented people: 40 places."""
    data = census_like(persons=20_000, places_per_state=20, seed=3)
    groups = data.groups.group_by(["STATE", "PLACE"]).aggregate([])
    return Task("people", data.schema, 1, Unit(data.max_rows), ["STATE", "PLACE"], groups), PublicTable.of(data.public)


def acs() -> tuple[Task, PublicTable]:
    """New York and Pennsylvania, from Illinois and Ohio."""
    need_data()
    places = DATA / "acs2024_ny_pa_geography.csv"
    task = Task("acs", DATA / "acs2024.schema.toml", 1, Unit(1), ["STATE", "PUMA"], places)
    return task, PublicTable.of(DATA / "acs2024_il_oh.parquet")


JOBS: dict[str, Callable[[], tuple[Task, PublicTable]]] = {"census_like": census, "acs": acs}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds that it took."""
    began = time.monotonic()
    return work(), time.monotonic() - began


def judged(rehearsal: Rehearsal, plan: Plan) -> Floats:
    """The errors of a plan in groups that had no part in choosing it."""
    stand_ins = range(len(rehearsal.stand_ins))
    return np.concatenate(
        [
            rehearsal.errors(plan, plan.settings, seed=seed, stand_in=stand_in, fresh=True)
            for stand_in in stand_ins
            for seed in JUDGES
        ]
    )


def compared(name: str, effort: float, threads: int, wanted: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The table of one job, and its figures."""
    task, public = JOBS[name]()
    rows = public.rows(task.schema, task.groups)
    tune(task, rows, effort=0, execution=Execution(threads))  # compiles what is compiled
    at_once, together = timed(
        lambda: explore(task, public, list(BUDGETS), effort=effort, execution=Execution(threads)).plans
    )
    single = {}
    for budget in wanted:
        alone = Task(task.dataset, task.schema, budget, task.unit, task.levels, task.groups)
        single[budget] = timed(lambda alone=alone: tune(alone, rows, effort=effort, execution=Execution(threads)).plan)
    judge = Rehearsal.of(rows, task.groups, task.levels, threads=threads)
    lines, figures = [], []
    for budget, plan in zip(BUDGETS, at_once, strict=True):
        if budget not in single:
            continue
        ours, theirs = judged(judge, plan), judged(judge, single[budget][0])
        away = ours - theirs
        off = float(away.std(ddof=1) / np.sqrt(len(away)))
        lines.append([budget, f"{ours.mean():.4f}", f"{theirs.mean():.4f}", f"{away.mean():+.4f} ± {off:.4f}"])
        figures.append({"epsilon": budget, "at_once": ours.mean(), "single": theirs.mean(), "se": off})
    alone, all_single = single[ONE][1], sum(took for _, took in single.values())
    text = (
        f"{name}: five budgets at once took {together:.0f} s, one budget (epsilon {ONE}) {alone:.0f} s, {len(single)} "
        f"single ones {all_single:.0f} s. Five at once are {together / alone:.2f} times one.\n\n"
        + table(["epsilon", "error, five at once", "error, single", "difference"], lines)
    )
    return text, {"together": together, "alone": alone, "five": all_single, "errors": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", type=float, default=120, help="for one budget")
    parser.add_argument("--jobs", nargs="*", choices=list(JOBS), default=list(JOBS))
    parser.add_argument(
        "--single", nargs="*", choices=list(BUDGETS), default=list(BUDGETS), help="budgets to run alone"
    )
    parser.add_argument(
        "--processor", action="store_true", help="count processor time of one thread: for busy machines"
    )
    options = parser.parse_args()
    if options.processor:
        time.monotonic = time.process_time
    threads = 1 if options.processor else cores()
    clock = "processor time of one thread" if options.processor else f"{threads} threads"
    texts, figures = zip(
        *(compared(name, options.effort, threads, options.single) for name in options.jobs), strict=True
    )
    head = f"`prade plan --epsilon {','.join(BUDGETS)} --effort {options.effort:g}` ({clock})."
    report("budgets", "\n\n".join([head, *texts]), dict(zip(options.jobs, figures, strict=True)))


if __name__ == "__main__":
    main()
