"""An accelerator beside the processor: the estimate of an invented nation, stage by stage, and rehearsals a second.

Nothing but invented people (`prade.data.invented`), so it runs on a machine that has no tables:

    python benchmarks/accelerator.py                                  # 1,200 places; some minutes
    python benchmarks/accelerator.py --states 4 --places 10 --persons 40000 --rehearsals 2 --processor-only

Without an accelerator it says so, and times the processor alone. A stage that runs inside another counts in both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from common import report, table
from prade import Ledger, Plan, Release, Task, Unit, estimate, measure, plan
from prade.core.threads import cores
from prade.core.workers import Workers
from prade.data.invented import census_like
from prade.data.public import Public
from prade.data.public_table import PublicTable
from prade.data.tables import write_table
from prade.estimating.cuda import why_not
from prade.estimating.levels.descent import Descent, GroupEstimate
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.foundation import Foundation
from prade.estimating.levels.level_smoothing import LevelSmoothing
from prade.estimating.levels.public_cells import PublicCells
from prade.scoring.distances import mean_distance
from prade.tuning.rehearse import Rehearsal

LEVELS = ("STATE", "PLACE")
STAGES = {
    "read and code the public table": (PublicTable, "rows"),
    "choose the support": (PublicCells, "support"),
    "layouts": (Foundation, "layout"),
    "how public groups vary": (PublicCells, "variations"),
    "fit of how places differ": (LevelSmoothing, "fit"),
    "smoothing": (LevelSmoothing, "smoothed"),
    "estimates of groups": (Descent, "made"),
    "write the estimates": (Estimates, "save"),
}


class Clock:
    """Wall seconds and processor seconds of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    @contextmanager
    def during(self, stage: str) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds[stage][0] += time.perf_counter() - wall
            self.seconds[stage][1] += time.process_time() - processor

    def timed(self, stage: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with self.during(stage):
            found = function(*arguments, **named)
            return iter(list(found)) if isinstance(found, Iterator) else found  # the work of a generator counts, too

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have the stages timed."""
        before = [(owner, name, owner.__dict__[name]) for owner, name in STAGES.values()]
        for stage, (owner, name, found) in zip(STAGES, before, strict=True):
            inner = found.__func__ if isinstance(found, classmethod) else found
            watched: Any = _watched(self, stage, inner)
            setattr(owner, name, classmethod(watched) if isinstance(found, classmethod) else watched)
        try:
            yield
        finally:
            for owner, name, found in before:
                setattr(owner, name, found)


def _watched(clock: Clock, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **named: clock.timed(stage, function, *arguments, **named)


def nation(folder: Path, options: argparse.Namespace) -> tuple[Plan, Release, Path]:
    """A plan without tuning for an invented nation, its release, and its public file."""
    data = census_like(
        persons=options.persons, states=options.states, places_per_state=options.places, years=(2023, 2024), seed=1
    )
    public, private = folder / "public.parquet", folder / "private.parquet"
    write_table(data.public, public)
    write_table(data.private, private)
    groups = data.groups.select(LEVELS).group_by(list(LEVELS)).aggregate([])
    task = Task("nation", data.schema, 2, Unit(data.max_rows), levels=LEVELS, groups=groups)
    made = plan(task, public, tune=False)
    ledger = Ledger(folder / "ledger")
    ledger.open_dataset(made.dataset, made.unit, made.budget)
    return made, measure(made, private, folder / "release", ledger), public


def estimated(release: Release, *, cuda: bool) -> Clock:
    """The stages of an estimate, the second of two: the first compiles kernels."""
    for _ in range(2):
        clock = Clock()
        with clock.watching(), clock.during("all"):
            estimate(release, anew=True, cuda=cuda)
    return clock


def rehearsed(rehearsal: Rehearsal, made: Plan, number: int, *, accelerator: bool) -> tuple[float, np.ndarray]:
    """Rehearsals a second, and the mean error of each: as `Rehearsal.both_errors`, with or without an accelerator."""
    workers, errors = Workers.of(accelerator=accelerator), []
    for draw in range(-1, number):  # one more to begin with: it makes what all draws share
        if draw == 0:
            began = time.perf_counter()
        for k, chosen in enumerate(rehearsal.stand_ins):
            release = rehearsal.release(made, k, max(draw, 0))
            descent = Descent(release, chosen.public, rough=True, workers=workers, cells=chosen.cells)
            scored = descent.map(partial(_distance, rehearsal, k), rehearsal.groups_of(k))
            errors.append(np.mean(list(scored)))
    ended = time.perf_counter()
    return number * len(rehearsal.stand_ins) / (ended - began), np.array(errors[len(rehearsal.stand_ins) :])


def _distance(rehearsal: Rehearsal, stand_in: int, made: GroupEstimate) -> float:
    return mean_distance(rehearsal.truth(stand_in, made.group), made.estimate, rehearsal.pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=24)
    parser.add_argument("--places", type=int, default=50, help="of a state")
    parser.add_argument("--persons", type=int, default=1_000_000, help="of the public table, and of the private one")
    parser.add_argument("--rehearsals", type=int, default=10)
    parser.add_argument("--processor-only", action="store_true")
    options = parser.parse_args()
    reason = "it was not asked for" if options.processor_only else why_not()
    ways = [False] if reason else [False, True]
    with tempfile.TemporaryDirectory() as name:
        made, release, public = nation(Path(name), options)
        clocks = [estimated(release, cuda=cuda) for cuda in ways]
        rows = Public.of(made.schema, public, list(LEVELS))
        rehearsal = Rehearsal.of(rows, made.groups, LEVELS)
        rates = [rehearsed(rehearsal, made, options.rehearsals, accelerator=cuda) for cuda in ways]
    stages = [["all", *_shown("all", clocks)], *([stage, *_shown(stage, clocks)] for stage in STAGES)]
    head = ["stage", *(f"{way}: {what}" for way in _names(ways) for what in ("seconds", "processor seconds"))]
    found = f"no accelerator: {reason}" if reason else "one accelerator"
    places, people = options.states * options.places, options.persons
    shown = ", ".join(f"{way} {rate:.2f}" for way, (rate, _) in zip(_names(ways), rates, strict=True))
    lines = [
        f"{places:,} places, {people:,} public people and as many private ones, {len(made.schema.coded)} columns; "
        f"{cores()} cores; {found}.",
        table(head, stages),
        f"Rehearsals a second: {shown}.",
    ]
    if len(rates) == 2:
        apart = float(np.abs(rates[0][1] - rates[1][1]).max())
        lines.append(f"The largest difference between the errors of the two ways is {apart:.1e}.")
    figures = {
        way: {"stages": dict(clock.seconds), "rehearsals a second": rate}
        for way, clock, (rate, _) in zip(_names(ways), clocks, rates, strict=True)
    }
    report("accelerator", "\n\n".join(lines), figures)


def _names(ways: list[bool]) -> list[str]:
    return ["accelerator" if cuda else "processor" for cuda in ways]


def _shown(stage: str, clocks: list[Clock]) -> list[str]:
    return [f"{value:.2f}" for clock in clocks for value in clock.seconds[stage]]


if __name__ == "__main__":
    main()
