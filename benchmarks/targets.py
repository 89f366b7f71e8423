"""Targets on the ACS job at epsilon 1: the default plan and plans for targets, rehearsed on public rows, then run once.

Five tables by STATE and by PUMA are one set of targets, all one-way tables by STATE another. The plans, and all that is
said before the private run, come from the public table alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from common import need_data, table
from jobs import PATIENCE, THREADS, Job, acs, kept
from prade import Plan, Target
from prade.core.arrays import mass_by_group
from prade.core.execution import Execution
from prade.data.public.joint import Coded
from prade.estimating.levels.estimates import Estimates
from prade.planning.settings import Expected
from prade.planning.task import Wanted, wanted_of
from prade.sampling.table import sample_groups
from prade.tuning.expectation import expected_of_targets
from prade.tuning.rehearse import Rehearsal
from prade.tuning.tune import tune

EPSILON = "1"
FIVE = ["AGEP x SEX", "RAC1P", "SCHL", "ESR x SEX", "TEN"]
SEEDS = range(900, 902)  # of noise that no search has seen


def targets_of(name: str, job: Job) -> list[Target]:
    """No targets, five tables at both levels, or all one-way tables by state."""
    named = {"five tables": Target(FIVE, by=["STATE", "PUMA"]), "states": Target(job.schema.coded, by="STATE")}
    return [named[name]] if name in named else []


@cache
def plan_for(name: str, effort: float) -> Plan:
    """The tuner's plan, which is made once and kept: it sees no private row."""
    job = acs()

    def run() -> dict[str, Any]:
        task = replace(job.task(EPSILON), targets=targets_of(name, job))
        tuned = tune(task, job.rows, effort=effort, seconds=PATIENCE, execution=Execution(THREADS))
        return {"plan": tuned.plan.to_toml(), "trials": len(tuned.trials), "finished": tuned.finished}

    return Plan.from_toml(kept("targets", f"plan {name} {effort:g}", run)["plan"])


def rehearsed(name: str, plan: Plan, job: Job) -> Expected:
    """What a plan makes of the stand-ins, in what the targets name, with groups and noise that chose no plan."""
    task = replace(job.task(EPSILON), targets=targets_of(name, job))
    how: dict[str, Any] = {"targets": task.targets, "threads": THREADS}
    rehearsal = Rehearsal.of(job.rows, task.groups, task.levels, **how)
    assert plan.settings is not None
    return expected_of_targets(rehearsal, plan, plan.settings, SEEDS)


def scored(plan: Plan, job: Job, wanted: Sequence[Wanted], seed: int) -> dict[str, Any]:
    """One private run: errors of synthetic rows in what is wanted, and over all pairs of columns by PUMA."""
    with tempfile.TemporaryDirectory() as folder:
        estimates = Estimates.of(job.release(plan, Path(folder)), job.rows, plan.settings, execution=Execution(THREADS))
        coded, group = sample_groups(estimates, seed, execution=Execution(THREADS))
    found = job.score(coded, group)
    return {**found, "wanted": [float(errors_of(job, coded, group, each).mean()) for each in wanted]}


def errors_of(job: Job, coded: Coded, group: np.ndarray, wanted: Wanted) -> np.ndarray:
    """The errors of rows in one table, in all groups of its level."""
    last, level = job.listed.level(job.listed.names), job.listed.level(wanted.by)
    shares = []
    for rows, number in (job.truth, (coded, group)):
        inside = number >= 0
        cells = wanted.part.cells(job.schema, rows.codes)[inside]
        counts = mass_by_group(last.above(level)[number[inside]], len(level), cells, wanted.part.n_cells)
        shares.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return np.abs(shares[0] - shares[1]).sum(axis=1)


def public_rows(job: Job, wanted: Sequence[Wanted]) -> list[float]:
    """The errors of the public table alone."""
    coded, group = job.truth
    found = []
    for each in wanted:
        last, level = job.listed.level(job.listed.names), job.listed.level(each.by)
        inside = group >= 0
        cells = each.part.cells(job.schema, coded.codes)[inside]
        truth = mass_by_group(last.above(level)[group[inside]], len(level), cells, each.part.n_cells)
        prior = job.rows.prior
        public = np.bincount(each.part.cells(job.schema, prior.codes), prior.weights, each.part.n_cells)
        away = np.abs(truth / np.maximum(truth.sum(axis=1, keepdims=True), 1) - public / public.sum())
        found.append(float(away.sum(axis=1).mean()))
    return found


def compared(title: str, names: Sequence[tuple[str, str]], columns: Sequence[Sequence[float]]) -> str:
    """A table of the public table's errors, the default plan's and the targeted plan's, with means by level."""
    rows = []
    for level in dict.fromkeys(level for _, level in names):
        at = [number for number, (_, other) in enumerate(names) if other == level]
        shown = [([number], names[number][0]) for number in at if len(at) <= 2 * len(FIVE)]
        for numbers, what in [*shown, *([(at, f"mean of {len(at)} tables")] if len(at) > 1 else [])]:
            public, default, targeted = (float(np.mean([each[number] for number in numbers])) for each in columns)
            fall = f"{100 * (targeted / default - 1):+.0f} %"
            rows.append([what, level, f"{public:.4f}", f"{default:.4f}", f"{targeted:.4f}", fall])
    head = ["table", "by", "public table alone", "default plan", "plan for targets", "change"]
    return f"{title}\n\n{table(head, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--effort", type=float, default=120, help="work of the tuner for each plan")
    parser.add_argument("--private", action="store_true", help="also run on the private table, and score")
    parser.add_argument("--seed", type=int, default=0, help="seed of the synthetic rows")
    options = parser.parse_args()
    need_data()
    job = acs()
    default = plan_for("default", options.effort)
    for name in ("five tables", "states"):
        plan = plan_for(name, options.effort)
        print(f"## Targets: {name}\n\n{plan.describe()}\n")
        both = [rehearsed(name, each, job) for each in (default, plan)]
        names = [(each.what, each.by) for each in both[0].targets]
        columns = [[each.prior for each in both[0].targets], *([each.error for each in one.targets] for one in both)]
        names.append(("all two-way tables", "STATE+PUMA, all"))
        columns = [
            [*each, last] for each, last in zip(columns, (both[0].prior, both[0].error, both[1].error), strict=True)
        ]
        print(compared("Rehearsed on public rows: errors of estimates.", names, columns), flush=True)
        if options.private:
            wanted = wanted_of(plan.targets, job.schema)
            runs = [scored(each, job, wanted, options.seed) for each in (default, plan)]
            columns = [[*public_rows(job, wanted), job.prior_error()]]
            columns += [[*run["wanted"], run["raw"]] for run in runs]
            print("\n" + compared("One private run: errors of synthetic rows.", names, columns), flush=True)
            biased = [run["biased"] for run in runs]
            print(f"\nGroups off by 250 rows or more: {biased[0]} with the default plan, {biased[1]} with targets.\n")


if __name__ == "__main__":
    main()
