"""Releases year after year: each from the first public table, or each from the release before. Invented tables only.

Six years of the same places are invented, and they drift. The first year is public; the others are measured, one after
the other, with an equal share of one budget. Releases are real: real noise, a ledger, files. The last column is the
least that any past could lead to: the prior of a year is then a large table of that year's own law.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import prade
from common import report, table
from invented_years import CensusYears, census_years
from prade import Budget, Ledger, Plan, Release, Settings, Task, Unit, Workload
from prade.core.arrays import mass_by_group
from prade.core.execution import Execution
from prade.data.declare.groups import Groups
from prade.data.public.joint import encode
from prade.data.read.tables import write_table
from prade.estimating.levels.estimates import Estimates

LEVELS = ["STATE", "PLACE"]
FIRST, CHAINED, LAW = WAYS = "first public table", "chained", "the year's own law"
YEARS = 5
LAW_ROWS = 10  # times as many people as the years have


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


class Chain:
    """Releases of all years after the first, one way."""

    def __init__(self, way: str, budget: Budget, folder: Path, options: argparse.Namespace, seed: int) -> None:
        self.way, self.budget, self.folder, self.options, self.seed = way, budget, folder, options, seed
        self.world = self._world(options.persons)

    def _world(self, persons: int) -> CensusYears:
        options = self.options
        return census_years(persons=persons, drift=options.drift, rare_race=options.rare_race, seed=self.seed)

    def errors(self) -> list[float]:
        """The errors of all years after the first."""
        first, *later = self.world.tables
        public = self._written(first, self.world)
        ledger = Ledger(self.folder / "people.ledger")
        ledger.open_dataset("people", Unit(1), self.budget * len(later))
        laws = self._world(LAW_ROWS * self.options.persons) if self.way == LAW else None
        errors, previous = [], None
        for year in later:
            chained = previous if self.way == CHAINED else None
            self.prior = chained or (self._written(year, laws) if laws else public)
            plan = self._plan(self.prior)
            # the noise of equal plans must be paid for each time
            where, rows = self.folder / f"release-{year}", self.world.tables[year]
            previous = prade.measure(plan, rows, where, ledger, again=True, weak_protection=True)
            errors.append(self._error(previous, year))
        return errors

    def _error(self, release: Release, year: int) -> float:
        return error_of(
            prade.estimate(release, execution=Execution(2)), self.world.tables[year], self.options.pairs, self.seed
        )

    def taken_apart(self) -> list[float]:
        """The errors in the last year from its prior with no answers, with the usual noise, and with exact answers.

        `errors` comes first.
        """
        year, found = list(self.world.tables)[-1], list[float]()
        ledger = Ledger(self.folder / "people.ledger")
        for name, budget in (("none", Budget.pure("1/1000")), ("usual", self.budget), ("exact", Budget.pure(10**6))):
            plan = self._plan(self.prior)
            plan = plan.changed(budget=budget, dataset=f"people-{name}")
            where = self.folder / name
            release = prade.measure(plan, self.world.tables[year], where, ledger, cap=budget, weak_protection=True)
            found.append(self._error(release, year))
        return found

    def _plan(self, prior: Any) -> Plan:
        task = Task("people", self.world.schema, self.budget, Unit(1), LEVELS, Groups.of(self.world.groups))
        seconds = self.options.seconds
        made = prade.plan(task, prior, tune=seconds > 0, seconds=seconds or 1)
        if self.options.own is None or self.way == LAW or isinstance(prior, Release):
            return made
        settings = replace(made.settings or Settings(), own=self.options.own)
        return made.changed(settings=settings)

    def _written(self, year: int, world: CensusYears) -> Path:
        path = self.folder / f"{year}.parquet"
        write_table(world.tables[year], path)
        return path


def most_gain(years: int) -> float:
    """The most that chains gain in the last year if one number walks at random, and is asked alike every year.

    In units of the variance of a year's step, the walk has gone `years`, and noise of variance v leaves years v /
    (years + v) of it. A chain, whose prior is the posterior p of the year before, is left with (p + 1) v / (p + 1 + v).
    The gain is that of standard deviations, for the v at which it is largest.
    """
    v = np.geomspace(0.01, 100, 1000)
    p = np.zeros_like(v)
    for _ in range(years):
        p = (p + 1) * v / (p + 1 + v)
    return float(np.max(1 - np.sqrt(p / (years * v / (years + v)))))


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="number of invented worlds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--drift", type=float, default=1.0, help="how much changes in a year; 1 for the usual drift")
    parser.add_argument("--rare-race", action="store_true", help="a race that the first year hardly has grows")
    parser.add_argument("--persons", type=int, default=20_000, help="persons a year")
    parser.add_argument("--caps", nargs="*", default=["1", "4"], help="budgets for all years together")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--own", type=float, help="weight of places' own rows in priors from public tables")
    parser.add_argument("--seconds", type=float, default=0, help="of rehearsal for each plan; 0 for the simplest plan")
    parser.add_argument("--take-apart", action="store_true", help="also say where the last year's errors come from")
    return parser


def main() -> None:
    options = parser_of().parse_args()
    apart: dict[str, list[list[float]]] = defaultdict(list)
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for cap in options.caps:
            for way in WAYS:
                with TemporaryDirectory() as folder:
                    budget = Budget.pure(Fraction(cap) / YEARS)
                    made = Chain(way, budget, Path(folder), options, seed)
                    found[cap][way].append(made.errors())
                    if options.take_apart:
                        apart[f"{cap} | {way}"].append(made.taken_apart())
    text = "Mean L1 error of two-way tables by place, from estimates.\n\n" + by_year(found)
    text += f"\n\nOne number that walks at random: chains gain at most {most_gain(YEARS):.1%} in year {YEARS}."
    if apart:
        lines = [
            [*key.split(" | "), *(f"{each:.4f}" for each in np.mean(errors, axis=0))] for key, errors in apart.items()
        ]
        text += "\n\n" + table(
            ["eps, five years", "prior of the last year", "no answers", "usual noise", "exact answers"], lines
        )
    report("chains", text, {**{cap: dict(ways) for cap, ways in found.items()}, "taken apart": dict(apart)})


def by_year(found: dict[str, dict[str, list[list[float]]]]) -> str:
    """The errors of every year and way as a table, means over the worlds."""
    lines = []
    for cap, ways in found.items():
        errors = {way: np.array(each) for way, each in ways.items()}
        for year in range(YEARS):
            means = {way: each[:, year].mean() for way, each in errors.items()}
            ratios = errors[CHAINED][:, year] / errors[FIRST][:, year] - 1
            changes = [means[way] / means[FIRST] - 1 for way in (CHAINED, LAW)]
            shown = [f"{means[way]:.4f}" for way in WAYS]
            lines.append(
                [cap, str(year + 1), *shown, *(f"{each:+.1%}" for each in (changes[0], ratios.max(), changes[1]))]
            )
    return table(["eps, five years", "year", *WAYS, "change by chains", "worst world", "least"], lines)


if __name__ == "__main__":
    main()
