"""Laplace noise smoothed under its own law, against smoothing as if it were Gaussian. Public and generated tables only.

Illinois stands for the private table and Ohio for the public one, and the other way round; census-like tables are
generated. Noise is simulated with a seed, and both posteriors get the same noisy counts: nothing here is private, and
nothing is protected. The error is the mean L1 distance (0 to 2) of two-way tables by group; standard errors are over
groups and seeds.
"""

from __future__ import annotations

import argparse
import math
import time
from itertools import combinations

import numpy as np

from common import need_data, report, table
from intervals import ACS_STATES, World, acs, census
from prade import Ask, Budget, Level, Plan, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.joint import encode
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.public_cells import PublicCells
from prade.planning.settings import PosteriorName, Settings
from prade.scoring.distances import Codes, mean_distance
from simulated import numbers_of, released

EVERY = {"0.1": 6, "0.2": 4, "0.3": 2, "1": 1, "3": 1, "10": 1}  # of the columns, one in so many is asked for
PAIRS = 30
THREADS = 2


def plan(world: World, epsilon: str) -> Plan:
    """One-way tables of the last level, and a twentieth of the budget for its numbers of rows."""
    outer, inner = world.groups.names[:2]
    asked = Ask(Workload.marginals(world.schema, world.schema.coded[:: EVERY[epsilon]]), 19)
    levels = [Level(outer), Level((outer, inner), asked, total=1)]
    return Plan(world.name, world.schema, Budget.pure(epsilon), Unit(1), levels, world.groups)


class Job:
    """A world with a plan, and what both posteriors share."""

    def __init__(self, world: World, epsilon: str) -> None:
        self.world, self.plan = world, plan(world, epsilon)
        self.codes = encode(world.schema, world.private).codes
        number = numbers_of(world.groups, world.groups.names, world.private)
        rows = [np.flatnonzero(number == group) for group in range(len(self.plan.groupings[-1]))]
        self.truth: list[Codes] = [{name: code[each] for name, code in self.codes.items()} for each in rows]
        self.cells = PublicCells(world.public)
        every = list(combinations(world.schema.coded, 2))
        chosen = np.random.default_rng(0).permutation(len(every))[:PAIRS]
        self.pairs = [every[k] for k in chosen]

    def descent(self, seed: int, posterior: PosteriorName) -> Descent:
        release = released(self.plan, self.world.groups, self.world.private, self.codes, seed)
        settings = Settings(posterior=posterior)
        return Descent(release, self.world.public, settings, rough=True, execution=Execution(THREADS), cells=self.cells)

    def errors(self, seed: int, posterior: PosteriorName) -> np.ndarray:
        """Each group's error."""

        def distance(made: GroupEstimate) -> float:
            return mean_distance(self.truth[made.group], made.estimate, self.pairs)

        return np.array(list(self.descent(seed, posterior).map(distance)))

    def seconds(self, posterior: PosteriorName) -> float:
        """Processor time for the estimates of all groups, without scoring."""
        descent, began = self.descent(0, posterior), time.process_time()
        for _ in descent.map(lambda each: each):
            pass
        return time.process_time() - began


def compared(world: World, epsilon: str, seeds: int) -> dict[str, float]:
    """Both posteriors on the same noisy counts."""
    job = Job(world, epsilon)
    linear, laplace = (
        np.concatenate([job.errors(seed, posterior) for seed in range(seeds)]) for posterior in ("linear", "laplace")
    )
    away = laplace - linear
    return {
        "linear": float(linear.mean()),
        "laplace": float(laplace.mean()),
        "change": float(away.mean() / linear.mean()),
        "standard error": float(away.std(ddof=1) / math.sqrt(len(away)) / linear.mean()),
        "groups": len(job.truth),
        "linear seconds": job.seconds("linear"),
        "laplace seconds": job.seconds("laplace"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--generated", type=int, default=3, help="seed of the generated tables")
    parser.add_argument("--worlds", default="", help="only those whose name contains this")
    parser.add_argument("--epsilons", nargs="*", default=list(EVERY))
    options = parser.parse_args()
    need_data()
    figures, lines = {}, []
    for world in (*acs(ACS_STATES), *census(options.generated, "")):
        for epsilon in options.epsilons if options.worlds in world.name else ():
            found = figures[f"{world.name}, {epsilon}"] = compared(world, epsilon, options.seeds)
            change = f"{100 * found['change']:+.2f} ± {100 * found['standard error']:.2f} %"
            seconds = [f"{found[f'{name} seconds']:.1f}" for name in ("linear", "laplace")]
            lines.append([world.name, epsilon, f"{found['linear']:.4f}", f"{found['laplace']:.4f}", change, *seconds])
            print(*lines[-1], sep=" | ", flush=True)
    head = ["world", "eps", "linear", "laplace", "change", "processor seconds, linear", "laplace"]
    report("posterior", table(head, lines), figures)


if __name__ == "__main__":
    main()
