"""Releases year after year: each from the first public table, or each from the release before. Invented tables only.

Six years of the same places are invented, and they drift. The first year is public; the others are measured, one after
the other, with an equal share of one budget. Releases are real: real noise, a ledger, files.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import prade
from common import report, table
from prade import Budget, Ledger, Release, Task, Unit, Workload
from prade.core.arrays import mass_by_group
from prade.data.encoding import encode
from prade.data.groups import Groups
from prade.data.invented_years import CensusYears, census_years
from prade.data.tables import write_table
from prade.estimating.levels.estimates import Estimates

LEVELS = ["STATE", "PLACE"]
WAYS = ("first public table", "chained")


def error_of(estimates: Estimates, rows: Any, pairs: int, seed: int) -> float:
    """The mean L1 distance of some two-way tables of all places."""
    plan = estimates.plan
    codes, groups = encode(plan.schema, rows).codes, plan.groups
    number = groups.keyed(groups.names, plan.groupings[-1].number).numbers(rows.select(list(groups.names)))
    true_rows = np.maximum(np.bincount(number, minlength=len(plan.groupings[-1])), 1)
    every = list(combinations(plan.schema.coded, 2))
    chosen = np.random.default_rng(seed).choice(len(every), min(pairs, len(every)), replace=False)
    found = []
    for part in Workload.marginals(plan.schema, [every[k] for k in chosen]):
        true = mass_by_group(number, len(true_rows), part.cells(plan.schema, codes), part.n_cells) / true_rows[:, None]
        cells = part.cells(plan.schema, estimates.public.prior.codes), part.n_cells
        found.append(np.abs(estimates.masses(cells, threads=2) - true).sum(axis=1).mean())
    return float(np.mean(found))


def chain(
    world: CensusYears, way: str, budget: Budget, folder: Path, options: argparse.Namespace, seed: int
) -> list[float]:
    """The errors of all years after the first."""
    first, *later = world.tables
    public = folder / f"{first}.parquet"
    if not public.exists():
        write_table(world.tables[first], public)
    ledger = Ledger(folder / f"{way}.ledger")
    ledger.open_dataset("people", Unit(1), budget * len(later))
    errors, previous = [], None
    for year in later:
        task = Task("people", world.schema, budget, Unit(1), levels=LEVELS, groups=Groups.of(world.groups))
        prior: Any = previous if way == "chained" and previous is not None else public
        plan = prade.plan(task, prior, tune=options.seconds > 0, seconds=options.seconds or 1)
        # the noise of equal plans must be paid for each time
        release: Release = prade.measure(
            plan, world.tables[year], folder / f"{way}-{year}", ledger, again=True, weak_protection=True
        )
        estimates = prade.estimate(release)
        errors.append(error_of(estimates, world.tables[year], options.pairs, seed))
        previous = release
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="number of invented worlds")
    parser.add_argument("--drift", type=float, default=1.0, help="how much changes in a year; 1 for the usual drift")
    parser.add_argument("--persons", type=int, default=20_000, help="persons a year")
    parser.add_argument("--caps", nargs="*", default=["1", "4"], help="budgets for all years together")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0, help="of rehearsal for each plan; 0 for the simplest plan")
    options = parser.parse_args()
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(options.seeds):
        world = census_years(persons=options.persons, drift=options.drift, seed=seed)
        years = list(world.tables)[1:]
        for cap in options.caps:
            for way in WAYS:
                with TemporaryDirectory() as folder:
                    budget = Budget.pure(Fraction(cap) / len(years))
                    found[cap][way].append(chain(world, way, budget, Path(folder), options, seed))
    lines = []
    for cap, ways in found.items():
        one, other = (np.array(ways[way]) for way in WAYS)
        for k, year in enumerate(years):
            change = other[:, k].mean() / one[:, k].mean() - 1
            worst = (other[:, k] / one[:, k] - 1).max()
            lines.append(
                [cap, year, f"{one[:, k].mean():.4f}", f"{other[:, k].mean():.4f}", f"{change:+.1%}", f"{worst:+.1%}"]
            )
    head = ["eps, five years", "year", *WAYS, "change", "worst world"]
    text = "Mean L1 error of two-way tables by place, from estimates.\n\n" + table(head, lines)
    report("chains", text, {cap: dict(ways) for cap, ways in found.items()})


if __name__ == "__main__":
    main()
