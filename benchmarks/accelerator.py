"""An accelerator beside the processor: the estimate of an invented nation, stage by stage, and rehearsals a second.

Nothing but invented people (`prade.examples`), so it runs on a machine that has no tables:

    python benchmarks/accelerator.py                                  # 1,200 places; some minutes
    python benchmarks/accelerator.py --states 4 --places 10 --persons 40000 --seconds 2 --processor-only

Without an accelerator it says so, and times the processor alone. A stage that runs inside another counts in both. Many
processes share an accelerator well only through NVIDIA's service for that: start it with nvidia-cuda-mps-control -d.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from common import report, table
from prade import Ledger, Release, Task, Unit, estimate, measure, plan
from prade.core.local_processes import processes
from prade.core.threads import cores
from prade.data.public import Public
from prade.data.public_table import PublicTable
from prade.data.tables import write_table
from prade.estimating.cuda import why_not
from prade.estimating.levels.descent import Descent
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.foundation import Foundation
from prade.estimating.levels.level_smoothing import LevelSmoothing
from prade.estimating.levels.public_cells import PublicCells
from prade.examples import census_like
from prade.tuning.search import Draw
from prade.tuning.tune import Tuner

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


def nation(folder: Path, options: argparse.Namespace) -> tuple[Task, Release, Path]:
    """The task of an invented nation, the release of its plan without tuning, and its public file."""
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
    return task, measure(made, private, folder / "release", ledger), public


def estimated(release: Release, *, cuda: bool) -> Clock:
    """The stages of an estimate, the second of two: the first compiles kernels."""
    for _ in range(2):
        clock = Clock()
        with clock.watching(), clock.during("all"):
            estimate(release, anew=True, cuda=cuda)
    return clock


@dataclass(frozen=True)
class Way:
    """How rehearsals are made: in threads of this process or by worker processes, with or without an accelerator."""

    number: int
    processes: bool
    cuda: bool = False

    def __str__(self) -> str:
        kind = "worker processes" if self.processes else "threads"
        return f"{self.number} {kind}{' and the accelerator' if self.cuda else ''}"


def rehearsed(task: Task, rows: Public, way: Way, seconds: float) -> tuple[float, np.ndarray]:
    """Rehearsals a second of the tuner's simplest choice, each with its own noise, and the errors of the first ones."""
    with ExitStack() as stack:
        executor = stack.enter_context(processes(way.number)) if way.processes else None
        threads = None if way.processes else way.number
        tuner = stack.enter_context(Tuner(task, rows, threads=threads, executor=executor, cuda=way.cuda))
        trials, choice = tuner.stages.trials(task.budget), tuner.candidates.simplest()
        stand_ins, seeds = range(len(tuner.rehearsal.stand_ins)), count()
        times = max(1, 2 * way.number // len(stand_ins)) if way.processes else 1  # some draws for every worker

        def several() -> list[Draw]:
            return [Draw(choice, k, seed) for seed in islice(seeds, times) for k in stand_ins]

        first = several()  # they make what all draws share, in every worker, and compile kernels
        trials.need(first)
        errors = np.array([trials.errors(draw).mean() for draw in first])
        began, made = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            draws = several()
            trials.need(draws)
            made += len([trials.errors(draw) for draw in draws])
        return made / (time.perf_counter() - began), errors


def ways_of(reason: str) -> list[Way]:
    """Two threads, all cores, and all cores with the accelerator if there is one."""
    all_cores = [Way(2, processes=False), Way(cores(), processes=False), Way(cores(), processes=True)]
    return all_cores if reason else [*all_cores, Way(cores(), processes=True, cuda=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=24)
    parser.add_argument("--places", type=int, default=50, help="of a state")
    parser.add_argument("--persons", type=int, default=1_000_000, help="of the public table, and of the private one")
    parser.add_argument("--seconds", type=float, default=20, help="of rehearsals, in each way")
    parser.add_argument("--processor-only", action="store_true")
    options = parser.parse_args()
    reason = "it was not asked for" if options.processor_only else why_not()
    ways = [False] if reason else [False, True]
    with tempfile.TemporaryDirectory() as name:
        task, release, public = nation(Path(name), options)
        clocks = [estimated(release, cuda=cuda) for cuda in ways]
        rows = Public.of(task.schema, public, list(LEVELS))
        rates = {way: rehearsed(task, rows, way, options.seconds) for way in ways_of(reason)}
    stages = [["all", *_shown("all", clocks)], *([stage, *_shown(stage, clocks)] for stage in STAGES)]
    head = ["stage", *(f"{way}: {what}" for way in _names(ways) for what in ("seconds", "processor seconds"))]
    found = f"no accelerator: {reason}" if reason else "one accelerator"
    places, people = options.states * options.places, options.persons
    slowest = min(rate for rate, _ in rates.values())
    compared = [[str(way), f"{rate:.2f}", f"{rate / slowest:.1f}"] for way, (rate, _) in rates.items()]
    lines = [
        f"{places:,} places, {people:,} public people and as many private ones, {len(task.schema.coded)} columns; "
        f"{cores()} cores; {found}.",
        table(head, stages),
        table(["rehearsals", "a second", "times the slowest"], compared),
    ]
    alike = min(len(errors) for _, errors in rates.values())
    apart = np.ptp([errors[:alike] for _, errors in rates.values()], axis=0).max()
    lines.append(f"The largest difference between the mean errors of a draw is {apart:.1e}.")
    figures = {
        "stages": {way: dict(clock.seconds) for way, clock in zip(_names(ways), clocks, strict=True)},
        "rehearsals a second": {str(way): rate for way, (rate, _) in rates.items()},
    }
    report("accelerator", "\n\n".join(lines), figures)


def _names(ways: list[bool]) -> list[str]:
    return ["accelerator" if cuda else "processor" for cuda in ways]


def _shown(stage: str, clocks: list[Clock]) -> list[str]:
    return [f"{value:.2f}" for clock in clocks for value in clock.seconds[stage]]


if __name__ == "__main__":
    main()
