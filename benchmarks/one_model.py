"""What each part of the model of groups is worth, on public tables: errors and intervals with it and without it.

Illinois stands for the private table and Ohio for the public one, and the other way round; one-way tables are asked in
every PUMA, with simulated noise. Nothing here is private, and nothing is protected.

    all               the model of `prade.estimating.levels.random_effects`
    b = 0             no column varies on its own
    one scale         all columns have one scale
    s = 1             no group has a scale of its own
    Gaussian          Laplace noise is taken for Gaussian noise of its variance
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations, product
from unittest.mock import patch

import numpy as np

from common import need_data, report, table
from intervals import ACS_STATES, World, acs
from prade import Ask, Budget, Level, Plan, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.joint import encode
from prade.estimating.levels import posterior, random_effects
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.public_cells import PublicCells
from prade.planning.settings import Settings
from prade.scoring.distances import mean_distance
from simulated import numbers_of, released

EVERY = {"0.1": 6, "1": 1, "10": 1}  # of the columns, one in so many is asked for
PAIRS = 30
NOTHING = 1e-9
HEAD = ("private state", "model")
OF_SHARES = ("one-way error", "inside 95 %", "sd / error")


def plan(world: World, epsilon: str) -> Plan:
    """One-way tables of the last level, and a twentieth of the budget for its numbers of rows."""
    outer, inner = world.groups.names[:2]
    asked = Ask(Workload.marginals(world.schema, world.schema.coded[:: EVERY[epsilon]]), 19)
    levels = [Level(outer), Level((outer, inner), asked, total=1)]
    return Plan(world.name, world.schema, Budget.pure(epsilon), Unit(1), levels, world.groups)


@contextmanager
def without(part: str) -> Iterator[None]:
    """The model without one of its parts."""
    before = random_effects.Scales.before
    with ExitStack() as changes:
        if part == "b = 0":

            def alone(expected: float, columns: int) -> random_effects.Scales:
                start = before(expected, columns)
                return random_effects.Scales(start.a, NOTHING, start.k, start.columns)

            changes.enter_context(patch.object(random_effects.Scales, "before", alone))
        if part == "one scale":
            changes.enter_context(patch.object(random_effects, "UNSURE_COLUMNS", 1e-3))
        if part == "s = 1":
            changes.enter_context(patch.object(posterior, "_scale", lambda *_: 1.0))
        if part == "Gaussian":
            changes.enter_context(patch.object(posterior, "SWEEPS", 0))
        yield


def compared(world: World, epsilon: str, seed: int, shown: int) -> Iterator[list[str]]:
    """A line for each model, on the same noisy counts."""
    asked, codes = plan(world, epsilon), encode(world.schema, world.private).codes
    number = numbers_of(world.groups, world.groups.names, world.private)
    groups = range(len(asked.groupings[-1]))
    truth = [{name: code[number == group] for name, code in codes.items()} for group in groups]
    every = list(combinations(world.schema.coded, 2))
    pairs = [every[k] for k in np.random.default_rng(0).permutation(len(every))[:PAIRS]]
    release, cells = released(asked, world.groups, world.private, codes, seed), PublicCells(world.public)
    chosen = set(np.linspace(0, len(groups) - 1, shown).astype(int).tolist())
    for part in ("all", "b = 0", "one scale", "s = 1", "Gaussian"):
        with without(part):
            options = {"rough": True, "cells": cells, "execution": Execution(2)}
            descent, began = Descent(release, world.public, Settings(), **options), time.process_time()
            levels = descent.tree.levels
            seconds = time.process_time() - began
        parts = descent.tree.parts
        counts = np.stack(
            [
                np.concatenate([np.bincount(p.cells(world.schema, each), minlength=p.n_cells) for p in parts])
                for each in truth
            ]
        )
        rows = np.bincount(number, minlength=len(groups))
        line = [str(world.private["STATE"][0].as_py()), part]
        for level, right in ((0, counts.sum(axis=0)[None] / rows.sum()), (-1, counts / np.maximum(rows, 1)[:, None])):
            error, sd = np.abs(levels[level].shares - right), np.sqrt(levels[level].variance)
            line += [
                f"{error.sum() / len(error) / len(parts):.4f}",
                f"{(error < 1.96 * sd).mean():.1%}",
                f"{np.sqrt((sd**2).mean() / (error**2).mean()):.2f}",
            ]

        def distance(each: GroupEstimate) -> float:
            return mean_distance(truth[each.group], each.estimate, pairs) if each.group in chosen else np.nan

        yield [*line, f"{np.nanmean(list(descent.map(distance))):.4f}", f"{seconds:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilons", nargs="*", default=list(EVERY))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shown", type=int, default=30, help="places whose two-way tables are scored")
    options = parser.parse_args()
    need_data()
    lines: dict[str, list[list[str]]] = {epsilon: [] for epsilon in options.epsilons}
    for world in (each for each in acs(ACS_STATES) if each.name == ACS_STATES):
        for epsilon, seed in product(options.epsilons, range(options.seeds)):
            for line in compared(world, epsilon, seed, options.shown):
                lines[epsilon].append(line)
                print(epsilon, *line, sep=" | ", flush=True)
    at = [f"{where}: {what}" for where in ("state", "places") for what in OF_SHARES]
    head = [*HEAD, *at, "places: two-way error", "processor seconds"]
    text = "\n\n".join(f"At ε = {epsilon}:\n\n{table(head, each)}" for epsilon, each in lines.items())
    report("one_model", text, {"lines": lines})


if __name__ == "__main__":
    main()
