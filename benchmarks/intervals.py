"""How often the 95 % intervals of answers hold the truth, and how wide they are. Public and invented tables only.

Illinois stands for the public table and Ohio for the private one, and the other way round; census-like tables are
invented, with other states or the same places earlier as the public one, and with many or few groups under one parent.
Noise is simulated with a seed: nothing here is private, and nothing is protected.

Coverage counts cells with a public row; cells without are counted apart ("no public row"). The width is given as a
multiple of the width that would hold exactly 95 % of these cells, all intervals widened or narrowed by one factor.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any
from zlib import crc32

import numpy as np

import jobs
from common import DATA, need_data, report, table
from prade import Ask, Budget, Groups, Level, Plan, Schema, Unit, Workload
from prade.core.arrays import mass_by_group
from prade.core.execution import Execution
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.data.read.tables import read_table
from prade.estimating.levels.estimates import Estimates
from prade.examples import census_like
from prade.planning.settings import Settings
from prade.queries.query import parse
from simulated import numbers_of, released

HELD_OUT_ACS, HELD_OUT_NIST = "hold-out: New York and Pennsylvania", "hold-out: NIST, 2019 from 2018"
ACS_STATES, ACS_SIX = "ACS, one state from the other", "ACS, six columns, one group"
EPSILONS = ("10", "1", "0.1")
EVERY = {"10": 1, "1": 2, "0.1": 6}  # of the columns, one in so many is asked for: the less budget, the fewer
FEWEST = 30  # cells that a coverage is shown of
CENSUS_QUERIES = (
    "AGE >= 65 and SEX == 1",
    "AGE < 18",
    "TENURE == 'owned' and AGE >= 40",
    "EDUC == 4",
    "DISABLED == True and AGE >= 65",
)
ACS_QUERIES = (
    "AGEP >= 65 and SEX == 2", "AGEP < 20", "SCHL >= 21 and AGEP >= 25", "TEN == 3 and MAR == 5",
    "RAC1P == 2 and AGEP < 40", "DPHY == 1 and AGEP >= 65",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class World:
    """A public and a private table, the levels from coarse to fine, sums to ask for, queries."""

    name: str
    schema: Schema
    public: Public
    private: Any
    groups: Groups
    levels: tuple[tuple[str, ...], ...]
    sums: tuple[tuple[str, ...], ...]
    queries: tuple[str, ...]
    rows_per_person: int = 1
    columns: tuple[str, ...] | None = None  # asked at every budget; None for some of all columns
    invented: int = 0  # the seed of an invented world

    def asked(self, epsilon: str) -> tuple[str, ...]:
        return self.columns or self.schema.coded[:: EVERY[epsilon]]

    def plan(self, epsilon: str) -> Plan:
        asked = Ask(Workload.marginals(self.schema, self.asked(epsilon)))
        total = "1/5" if epsilon == "0.1" else 0
        above = [Level(by) for by in ((), *self.levels[:-1]) if by != self.levels[-1]]  # they cost nothing
        levels = [*above, Level(self.levels[-1], asked, total=total)]
        return Plan("benchmark", self.schema, Budget.pure(epsilon), Unit(self.rows_per_person), levels, self.groups)


def acs(wanted: str) -> Iterator[World]:
    """Illinois for Ohio and back."""
    if not any(wanted in name for name in (ACS_STATES, ACS_SIX)):
        return
    schema = Schema.load(DATA / "acs2024.schema.toml")
    rows = read_table(DATA / "acs2024_il_oh.parquet")
    state = np.asarray(rows["STATE"])
    for here in np.unique(state):
        private = rows.filter(state == here)
        groups = Groups.of(private.group_by(["STATE", "PUMA"]).aggregate([]))
        public = Public.of(schema, rows.filter(state != here), ["STATE", "PUMA"])
        levels = ("STATE",), ("STATE", "PUMA")
        yield World(ACS_STATES, schema, public, private, groups, levels, ((),), ACS_QUERIES)
    six = tuple(name for name in ("AGEP", "SEX", "RAC1P", "MAR", "TEN", "SCHL") if name in schema.coded)
    yield World(ACS_SIX, schema, public, private, Groups.of(None), ((),), (), ACS_QUERIES, columns=six)


def census(seed: int, wanted: str) -> Iterator[World]:
    """Invented tables of 40,000 persons with up to four rows each, over four years."""
    shapes = {
        "20 places in each of 2 states": (2, 20, (("STATE",), ("STATE", "PLACE")), ((), ("STATE",))),
        "2 places in each of 10 states": (10, 2, (("STATE",), ("STATE", "PLACE")), ((), ("STATE",))),
        "1 place in each of 20 states": (20, 1, (("STATE",), ("STATE", "PLACE")), ((), ("STATE",))),
        "20 places, 4 years": (1, 20, (("PLACE",), ("PLACE", "YEAR")), ((), ("PLACE",), ("YEAR",))),
        "2 states, 10 places, 4 years": (
            2, 10, (("STATE",), ("STATE", "PLACE"), ("STATE", "PLACE", "YEAR")),
            ((), ("STATE",), ("STATE", "PLACE"), ("YEAR",)),
        ),
    }  # fmt: skip
    for relation in ("other states", "earlier years"):
        for name, (states, places, levels, sums) in shapes.items():
            if wanted not in f"{relation}: {name}":
                continue
            made = census_like(persons=40_000, states=states, places_per_state=places, relation=relation, seed=seed)
            columns = sorted({column for level in levels for column in level}, key=("STATE", "PLACE", "YEAR").index)
            groups = Groups.of(made.groups.group_by(columns).aggregate([]))
            public = Public.of(made.schema, made.public, columns)
            yield World(
                f"{relation}: {name}", made.schema, public, made.private, groups, levels, sums, CENSUS_QUERIES, 4,
                invented=seed,
            )  # fmt: skip


def held_out(wanted: str) -> Iterator[World]:
    """Real private tables, which have no part in choosing any model: a check, and never a guide."""
    if wanted in HELD_OUT_ACS:
        job, queries, sums = jobs.acs(), ACS_QUERIES, ((), ("STATE",))
        levels = ("STATE",), ("STATE", "PUMA")
        private = read_table(job.private, guess=False)
        yield World(HELD_OUT_ACS, job.schema, job.rows, private, job.listed, levels, sums, queries)
    if wanted in HELD_OUT_NIST:
        job = jobs.nist()
        private = read_table(job.private, guess=False)
        yield World(HELD_OUT_NIST, job.schema, job.rows, private, job.listed, (("PUMA",),), ((),), ())


def tried(
    world: World, epsilon: str, seed: int, pairs: int, settings: Settings
) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """What is asked, by what, and the columns of the answer with the truth beside them."""
    plan, codes = world.plan(epsilon), encode(world.schema, world.private).codes
    luck = [world.invented, seed, crc32(f"{world.name} {epsilon} {world.groups.names}".encode())]
    release = released(plan, world.groups, world.private, codes, luck)
    estimates = Estimates.of(release, world.public, settings, execution=Execution(2))
    every_group = [weights.astype(np.float32) for weights in estimates.map(lambda _, weights: weights, 2)]
    estimates.kept_weights = np.stack(every_group, axis=1)  # worked out once, for all questions
    columns = world.columns or world.schema.coded
    generator = np.random.default_rng(luck)
    every = list(combinations(columns, 2))
    some = [every[k] for k in generator.choice(len(every), min(pairs, len(every)), replace=False)]
    asked = world.asked(epsilon)
    ones = [*generator.choice(asked, min(8, len(asked)), replace=False)]
    others = [name for name in columns if name not in asked]
    ones += [*generator.choice(others, min(6, len(others)), replace=False)]
    for by in (world.levels[-1], *world.sums):
        number, size = numbers_of(world.groups, by, world.private), len(world.groups.level(by))
        kind_of_sum = "group" if by == world.levels[-1] else f"sum by {'+'.join(by)}" if by else "sum of all"
        for names in [*((str(name),) for name in ones), *some]:
            part = Workload.marginals(world.schema, [names])[0]
            true = mass_by_group(number, size, part.cells(world.schema, codes), part.n_cells)
            kind = (
                "two-way" if len(names) > 1 else "one-way, measured" if names[0] in asked else "one-way, not measured"
            )
            seen = np.bincount(part.cells(world.schema, world.public.prior.codes), minlength=part.n_cells) > 0
            found = beside(estimates.marginal(names, by, execution=Execution(2)), true)
            yield kind, kind_of_sum, {name: values[np.tile(seen, size)] for name, values in found.items()}
            if not seen.all():
                yield "no public row", kind_of_sum, {n: values[np.tile(~seen, size)] for n, values in found.items()}
        for query in world.queries:
            inside = parse(query, world.schema).mask(codes)
            true = mass_by_group(number, size, np.where(inside, 0, 1), 1)
            yield "query", kind_of_sum, beside(estimates.answer(query, by, execution=Execution(2)), true)


def beside(found: Any, true: np.ndarray) -> dict[str, np.ndarray]:
    """The answers' counts and intervals with the truth."""
    return {**{name: found[name].to_numpy() for name in ("count", "low", "high")}, "true": true.ravel()}


def joined(pieces: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The cells of several answers."""
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def inside(cells: dict[str, np.ndarray]) -> float:
    """The share of cells whose interval contains the truth."""
    return float(np.mean((cells["low"] <= cells["true"] + 1e-9) & (cells["true"] <= cells["high"] + 1e-9)))


def figures(runs: list[dict[str, np.ndarray]]) -> dict[str, float]:
    """Coverage, and the width beside that of a perfect calibration.

    The errors of one run's cells depend on each other, above all those of sums: the standard error of the coverage
    comes from the differences between runs.
    """
    every = joined(runs)
    count, low, high, true = (every[name] for name in ("count", "low", "high", "true"))
    error = true - count
    half = np.where(error >= 0, high - count, count - low)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(np.abs(error) < 1e-9, 0.0, np.abs(error) / half)
    scale = float(np.quantile(needed, 0.95))
    return {
        "cells": len(count),
        "coverage": inside(every),
        "runs": len(runs),
        "standard error": float(np.std([inside(run) for run in runs], ddof=1) / np.sqrt(len(runs)))
        if runs[1:]
        else 0.0,
        "width / needed": 1 / max(scale, 1e-9),
        "median width": float(np.median(high - low)),
        "mean absolute error": float(np.mean(np.abs(error))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--invented", type=int, nargs="*", default=[3], help="seeds of the invented tables")
    parser.add_argument("--worlds", default="", help="only those whose name contains this")
    parser.add_argument("--held-out", action="store_true", help="also try the real private tables, as a check")
    parser.add_argument("--support", type=int, default=Settings().support, help="public rows to start from, 0 for all")
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    options = parser.parse_args()
    need_data()
    kept: dict[tuple[str, str, str, str], list[dict[str, np.ndarray]]] = defaultdict(list)
    invented = chain.from_iterable(census(seed, options.worlds) for seed in options.invented)
    real = held_out(options.worlds) if options.held_out else ()
    for world in chain(acs(options.worlds), real, invented):
        if options.worlds not in world.name:
            continue
        for epsilon in options.epsilons:
            for seed in range(options.seeds):
                run: dict[tuple[str, str], list[dict[str, np.ndarray]]] = defaultdict(list)
                for kind, by, found in tried(world, epsilon, seed, options.pairs, Settings(support=options.support)):
                    run[by, kind].append(found)
                for (by, kind), pieces in run.items():
                    kept[world.name, epsilon, by, kind].append(joined(pieces))
    every = {key: figures(pieces) for key, pieces in kept.items()}
    report("intervals", page(every), {" / ".join(key): value for key, value in every.items()})


KINDS = ("one-way, measured", "one-way, not measured", "two-way", "query", "no public row")


def page(every: dict[tuple[str, ...], dict[str, float]]) -> str:
    """The table of what was tried on enough cells to say something."""

    def shown(key: tuple[str, ...]) -> str:
        each = every.get(key, {"cells": 0})
        if each["cells"] < FEWEST:
            return ""
        width = f" ({each['width / needed']:.2f})" if key[-1] in KINDS[:4] else ""
        unsure = f" ± {each['standard error']:.1%}" if each["runs"] > 1 else ""
        return f"{each['coverage']:.1%}{unsure}{width}"

    rows = [[*key, *(shown((*key, kind)) for kind in KINDS)] for key in dict.fromkeys(key[:3] for key in every)]
    return (
        "Public data only: one state of the ACS stands in for the private table, and the other is the public table; "
        "invented tables have a private side of their own. Cells in the 95 % interval; in brackets, the width as a "
        "multiple of the one that would hold exactly 95 % of these cells.\n\n"
        + table(["world", "eps", "by", *KINDS], rows)
    )


if __name__ == "__main__":
    main()
