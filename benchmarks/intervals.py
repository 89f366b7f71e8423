"""How often the 95 % intervals of answers hold the truth, and how wide they are. Public and generated tables only.

Illinois stands for the public table and Ohio for the private one, and the other way round; census-like tables are
generated, with other states or the same places earlier as the public one. Noise is simulated with a seed: nothing here
is private, and nothing is protected. Cells count by group; "small" ones have an estimated count of 1 to 20, those with
less are counted apart.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from common import DATA, need_data, report, table
from prade import Ask, Budget, Groups, Level, Plan, Release, Schema, Unit, Workload
from prade.core.arrays import mass_by_group
from prade.data.encoding import encode
from prade.data.invented import census_like
from prade.data.public import Public
from prade.data.tables import read_table
from prade.estimating.levels.estimates import Estimates
from prade.planning.settings import Settings
from prade.queries.query import parse

EPSILONS = ("10", "1", "0.1")
EVERY = {"10": 1, "1": 2, "0.1": 6}  # of the columns, one in so many is asked for: the less budget, the fewer
FEWEST = 60  # cells that a coverage is shown of
FEW = 1.0, 20.0  # counts between these are small


@dataclass(frozen=True, eq=False)
class World:
    """A public and a private table, the columns of its levels, queries to ask."""

    name: str
    schema: Schema
    public: Public
    private: Any
    groups: Groups
    queries: tuple[str, ...]

    def plan(self, epsilon: str) -> Plan:
        columns = self.schema.coded[:: EVERY[epsilon]]
        asked = Ask(Workload.marginals(self.schema, columns))
        total = "1/5" if epsilon == "0.1" else 0
        outer, inner = self.groups.names
        levels = [Level(outer), Level((outer, inner), asked, total=total)]
        return Plan(self.name, self.schema, Budget.pure(epsilon), Unit(1), levels, self.groups)


def acs() -> Iterator[World]:
    """Illinois for Ohio and back."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    rows = read_table(DATA / "acs2024_il_oh.parquet")
    state = np.asarray(rows["STATE"])
    queries = (
        "AGEP >= 65 and SEX == 2", "AGEP < 20", "SCHL >= 21 and AGEP >= 25", "TEN == 3 and MAR == 5",
        "RAC1P == 2 and AGEP < 40", "DPHY == 1 and AGEP >= 65",
    )  # fmt: skip
    for here in np.unique(state):
        private = rows.filter(state == here)
        groups = Groups.of(private.group_by(["STATE", "PUMA"]).aggregate([]))
        public = Public.of(schema, rows.filter(state != here), ["STATE", "PUMA"])
        yield World(f"ACS, state {here} from the other", schema, public, private, groups, queries)


def census(seed: int) -> Iterator[World]:
    """Invented tables of 40,000 persons, 40 places."""
    for relation in ("other states", "earlier years"):
        made = census_like(persons=40_000, places_per_state=20, relation=relation, seed=seed)
        groups = Groups.of(made.groups.group_by(["STATE", "PLACE"]).aggregate([]))
        public = Public.of(made.schema, made.public, ["STATE", "PLACE"])
        queries = (
            "AGE >= 65 and SEX == 1",
            "AGE < 18",
            "TENURE == 'owned' and AGE >= 40",
            "EDUC == 4",
            "DISABLED == True and AGE >= 65",
        )
        yield World(f"census-like, {relation}", made.schema, public, made.private, groups, queries)


def numbers(world: World, by: tuple[str, ...]) -> np.ndarray:
    """The group of each private row."""
    names = world.groups.names
    keyed = world.groups.keyed(names, world.groups.level(by).number)
    return keyed.numbers(world.private.select(list(names)))


def released(world: World, plan: Plan, codes: dict[str, np.ndarray], seed: int) -> Release:
    """A release with simulated noise."""
    generator, noisy = np.random.default_rng(seed), []
    for question in plan.questions:
        number, size = numbers(world, plan.levels[question.level].by), len(plan.groupings[question.level])
        answers = []
        for part in question.parts:
            true = mass_by_group(number, size, part.cells(world.schema, codes), part.n_cells)
            noise = generator.laplace(0, float(question.scale), true.shape)
            answers.append(true + np.rint(noise).astype(np.int64))
        noisy.append(tuple(answers))
    return Release(Path("nowhere"), plan, tuple(noisy))


def tried(world: World, epsilon: str, seed: int, pairs: int) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """What is asked, by what, and the columns of the answer with the truth beside them."""
    plan, codes = world.plan(epsilon), encode(world.schema, world.private).codes
    estimates = Estimates.of(released(world, plan, codes, seed), world.public, Settings(), threads=2)
    columns = world.schema.coded
    generator = np.random.default_rng(seed)
    every = list(combinations(columns, 2))
    some = [every[k] for k in generator.choice(len(every), min(pairs, len(every)), replace=False)]
    asked = columns[:: EVERY[epsilon]]
    ones = [*generator.choice(asked, min(8, len(asked)), replace=False)]
    others = [name for name in columns if name not in asked]
    ones += [*generator.choice(others, min(6, len(others)), replace=False)]
    for by in (world.groups.names, ()):
        number, size = numbers(world, by), len(world.groups.level(by))
        for names in [*((str(name),) for name in ones), *some]:
            part = Workload.marginals(world.schema, [names])[0]
            true = mass_by_group(number, size, part.cells(world.schema, codes), part.n_cells)
            kind = (
                "two-way" if len(names) > 1 else "one-way, measured" if names[0] in asked else "one-way, not measured"
            )
            seen = np.bincount(part.cells(world.schema, world.public.prior.codes), minlength=part.n_cells) > 0
            yield kind, by, _beside(estimates.marginal(names, by, threads=2), true, np.tile(seen, size), number)
        for query in world.queries:
            inside = parse(query, world.schema).mask(codes)
            true = mass_by_group(number, size, np.where(inside, 0, 1), 1)
            yield "query", by, _beside(estimates.answer(query, by, threads=2), true, np.ones(size, np.bool_), number)


def _beside(found: Any, true: np.ndarray, reachable: np.ndarray, number: np.ndarray) -> dict[str, np.ndarray]:
    columns = {name: found[name].to_numpy()[reachable] for name in ("count", "share", "sd", "low", "high")}
    rows = np.repeat(np.bincount(number, minlength=len(true)), true.shape[1])[reachable]
    return {**columns, "true": true.ravel()[reachable], "rows": rows}


def figures(pieces: list[dict[str, np.ndarray]]) -> dict[str, dict[str, float]]:
    """Coverage by size of the cell."""
    all_ = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    size = np.digitize(all_["count"], FEW)
    found = {}
    for name, chosen in (("below 1", size == 0), ("small", size == 1), ("large", size == 2)):
        if not chosen.any():
            continue
        true, low, high, share, sd = (all_[key][chosen] for key in ("true", "low", "high", "share", "sd"))
        off = (share - true / np.maximum(all_["rows"][chosen], 1)) / sd
        found[name] = {
            "cells": int(chosen.sum()),
            "coverage": float(np.mean((low <= true) & (true <= high))),
            "coverage of the share": float(np.mean(np.abs(off) <= 1.96)),
            "root mean square error / sd": float(np.sqrt(np.mean(off**2))),
            "median width": float(np.median(high - low)),
            "median width / count": float(np.median((high - low) / np.maximum(all_["count"][chosen], 1e-9))),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--generated", type=int, default=3, help="seed of the generated tables")
    parser.add_argument("--worlds", default="", help="only those whose name contains this")
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    options = parser.parse_args()
    need_data()
    kept: dict[tuple[str, str, str, str], list[dict[str, np.ndarray]]] = defaultdict(list)
    for world in (*acs(), *census(options.generated)):
        if options.worlds not in world.name:
            continue
        name = "ACS, one state from the other" if "ACS" in world.name else world.name
        for epsilon in options.epsilons:
            for seed in range(options.seeds):
                for kind, by, found in tried(world, epsilon, seed, options.pairs):
                    kept[name, epsilon, "groups" if by else "everybody", kind].append(found)
    every = {key: figures(pieces) for key, pieces in kept.items()}
    report("intervals", page(every), {" / ".join(key): value for key, value in every.items()})


def page(every: dict[tuple[str, ...], dict[str, dict[str, float]]]) -> str:
    """The table of what was tried on enough cells to say something."""
    rows = [
        [*key, size, f"{each['cells']:,}", f"{each['coverage']:.1%}", f"{each['root mean square error / sd']:.2f}",
         f"{each['median width']:.3g}"]
        for key, sizes in every.items() for size, each in sizes.items() if each["cells"] >= FEWEST
    ]  # fmt: skip
    head = [
        "world",
        "eps",
        "by",
        "what",
        "cells",
        "number",
        "in the 95 % interval",
        "error / standard error",
        "median width, rows",
    ]
    return (
        "Public data only: one state of the ACS stands in for the private table, and the other is the public table; "
        "invented tables have a private side of their own. Cells are grouped by their estimated count: below 1, "
        "small (1 to 20), large.\n\n" + table(head, rows)
    )


if __name__ == "__main__":
    main()
