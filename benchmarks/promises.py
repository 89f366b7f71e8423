"""What the tuner promises, beside what comes out. Generated tables only.

The plan of each world is tuned on its public table. Its private table is then measured with simulated noise, estimated,
and scored as rehearsals are: mean distance of all two-way tables, and 2 for a group whose number of rows is off by 250
or more. Nothing here is private, and nothing is protected.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow.compute as pc

from common import report, table
from prade import Groups, Schema, Task, Unit
from prade.core.execution import Execution
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import encode
from prade.data.public.public import Public
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.examples import census_like
from prade.scoring.distances import WORST, mean_distance
from prade.scoring.evaluation import PublicBaseline
from prade.scoring.score import CONTEST_BIAS
from prade.tuning.tune import tune
from simulated import numbers_of, released

COLUMNS = ("AGE", "SEX", "RACE", "EDUC", "MARITAL", "EMPLOY", "WAGE", "HHSIZE", "TENURE", "RENT")
LEVELS = ("STATE", "PLACE")
EPSILONS = ("0.1", "1", "10")


@dataclass(frozen=True, eq=False)
class World:
    """A public table, a private one, and the groups of the latter."""

    name: str
    schema: Schema
    public: Public
    private: Any
    groups: Groups


def worlds(seed: int, persons: int, places: int) -> Iterator[World]:
    """Other states; one more year of the same places; and a year after these have changed more than between years."""
    for relation in ("other states", "earlier years"):
        made = census_like(persons=persons, places_per_state=places, states=4, relation=relation, seed=seed)
        schema = made.schema.select([*LEVELS, "YEAR", *COLUMNS])
        groups = Groups.of(made.groups.group_by(list(LEVELS)).aggregate([]))
        if relation == "other states":
            yield World(relation, schema, Public.of(schema, made.public, LEVELS), made.private, groups)
            continue
        before, last = (made.public.filter(each) for each in _last_year(made.public))
        yield World("earlier years", schema, Public.of(schema, before, [*LEVELS, "YEAR"]), last, groups)
        _, changed = (made.private.filter(each) for each in _last_year(made.private))
        public = Public.of(schema, made.public, [*LEVELS, "YEAR"])
        yield World("earlier years, then a change", schema, public, changed, groups)


def _last_year(rows: Any) -> tuple[Any, Any]:
    """Which rows are of another year than the last, and which are of the last."""
    last = pc.equal(rows["YEAR"], pc.max(rows["YEAR"]))
    return pc.invert(last), last


def tried(world: World, epsilon: str, effort: float, runs: int) -> dict[str, Any]:
    """One plan: its promise, the error of each run, and that of the public baseline."""
    began = time.monotonic()
    task = Task("people", world.schema, epsilon, Unit(1), LEVELS, world.groups)
    tuned = tune(task, world.public, effort=effort)
    level = tuned.plan.groupings[-1]
    codes, number = encode(world.schema, world.private).codes, numbers_of(world.groups, LEVELS, world.private)
    truth = [{name: code[number == group] for name, code in codes.items()} for group in range(len(level))]
    rows = np.bincount(number, minlength=len(level))
    pairs = list(combinations(world.schema.coded, 2))
    inhabited = np.flatnonzero(rows)

    def error(made: GroupEstimate) -> float:
        if abs(made.total - rows[made.group]) >= CONTEST_BIAS:
            return WORST
        return mean_distance(truth[made.group], made.estimate, pairs) if rows[made.group] else math.nan

    actual = []
    for run in range(runs):
        release = released(tuned.plan, world.groups, world.private, codes, run)
        errors = np.array(list(Descent(release, world.public, tuned.settings, execution=Execution(2)).map(error)))
        actual.append(float(errors[inhabited].mean()))
    baseline = PublicBaseline(world.public, RecurringGroups.of(world.public.groups, level))
    public = float(np.mean([baseline.error(truth[group], group, pairs) for group in inhabited]))
    expected = tuned.expected
    return {
        "expected": expected.error,
        "precision": expected.error_spread,
        "actual": statistics.mean(actual),
        "expected gain": expected.prior - expected.error,
        "gain precision": expected.spread,
        "gain": public - statistics.mean(actual),
        "public": public,
        "worthwhile": tuned.worthwhile,
        "seconds": time.monotonic() - began,
    }


def summary(found: list[dict[str, Any]]) -> list[object]:
    """Means over worlds, how often the stated precision held, and the bias with its standard error."""
    off = [each["actual"] - each["expected"] for each in found]
    held = sum(abs(each["actual"] - each["expected"]) <= each["precision"] for each in found)
    gains = sum(abs(each["gain"] - each["expected gain"]) <= each["gain precision"] for each in found)
    means = {name: statistics.mean(each[name] for each in found) for name in found[0]}
    error = statistics.stdev(off) / math.sqrt(len(off)) if len(off) > 1 else math.nan
    return [
        f"{means['expected']:.3f} ± {means['precision']:.3f}", f"{means['actual']:.3f}",
        f"{statistics.mean(off):+.3f} ± {error:.3f}", f"{held} of {len(found)}",
        f"{means['expected gain']:+.3f} ± {means['gain precision']:.3f}", f"{means['gain']:+.3f}",
        f"{gains} of {len(found)}", f"{means['public']:.3f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first seed of the generated tables")
    parser.add_argument("--effort", type=float, default=20, help="of tuning")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--persons", type=int, default=50_000)
    parser.add_argument("--places", type=int, default=16)
    parser.add_argument("--epsilons", nargs="*", default=EPSILONS)
    options = parser.parse_args()
    every: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for seed in range(options.first, options.first + options.seeds):
        for world in worlds(seed, options.persons, options.places):
            for epsilon in options.epsilons:
                found = tried(world, epsilon, options.effort, options.runs)
                every.setdefault((world.name, epsilon), []).append(found)
                shown = {name: round(float(value), 4) for name, value in found.items()}
                print(seed, world.name, epsilon, shown, flush=True)
    head = ["public table", "eps", "expected error", "actual", "actual - expected", "within ±"]
    head += ["expected gain", "actual gain", "within ±", "public baseline"]
    text = table(head, [[*key, *summary(found)] for key, found in every.items()])
    report("promises", text, {" / ".join(key): found for key, found in every.items()})


if __name__ == "__main__":
    main()
