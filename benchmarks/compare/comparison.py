"""prade beside other systems: error, time and memory on the same data, for the same epsilon, by the same score.

Each run has a process, one core, a time limit and a memory limit of its own. What is done is kept in benchmarks/out,
failures too, so that an interrupted comparison goes on where it stopped; a failure is tried again when its limit is
raised, and so is what did some of the groups only.
When all systems have been run on all main jobs, the tables of docs/comparison.md are kept in benchmarks/results and its
plots in docs; else tables are printed only. With --kept they are made from what was done before, and nothing is run.
`python benchmarks/results.py` puts the tables into the page, whose words are written by hand.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

from common import OUT, need_data
from compare.box import STOP, Kept, Limits, boxed
from compare.entrants import NOTHING, SYSTEMS
from compare.jobs import JOBS, PLACED
from compare.page import Results, keep_results, tables
from compare.peers import python_of
from compare.run import BEFOREHAND

EPSILONS = ("0.1", "1", "10")
MAIN = ("acs", "nist", "adult", "few")
MINUTES = 10.0
LEAST_SHARE = 5.0  # a run that gets less than a fifth of a core is stopped all the same

Task = TypeVar("Task")
Result = TypeVar("Result")


def command(*given: object) -> list[str]:
    """One run, in another process of this interpreter, which finds the package as this one did: by PYTHONPATH."""
    return [sys.executable, "-W", "ignore", "-m", "compare.run", *map(str, given)]


def across(
    kept: Kept, job: str, system: str, epsilons: Sequence[str], most: int, limits: Limits, core: int | None
) -> dict[str, list[dict[str, Any]]]:
    """Runs of a system at all epsilons, the smallest first; what was not done in time is not tried at larger ones."""
    if SYSTEMS[system].promise == NOTHING:
        return dict.fromkeys(epsilons, seeds(kept, job, system, "-", 1, limits, core))
    found: dict[str, list[dict[str, Any]]] = {}
    for epsilon in sorted(epsilons, key=float):
        late = next((each for each, runs in found.items() if runs and "not done" in runs[0].get("failed", "")), None)
        if late and kept.get(f"{job} {system} {epsilon} 0", SYSTEMS[system].stamp, limits) is None:
            found[epsilon] = [{"failed": f"not tried: eps {late} took too long", "seconds": 0.0, "GiB": 0.0}]
        else:
            found[epsilon] = seeds(kept, job, system, epsilon, most, limits, core)
    return found


def seeds(
    kept: Kept, job: str, system: str, epsilon: str, most: int, limits: Limits, core: int | None
) -> list[dict[str, Any]]:
    """Runs with up to `most` seeds: as long as all of them together stay within the time of one.

    Of a closed store, those that are there.
    """
    found: list[dict[str, Any]] = []
    for seed in range(most):
        if found and ("failed" in found[0] or wall(found) * (1 + 1 / len(found)) > limits.seconds):
            break
        key = f"{job} {system} {epsilon} {seed}"
        known = kept.get(key, SYSTEMS[system].stamp, limits) is not None
        asked = command(job, system, epsilon, seed, limits.seconds, limits.groups)
        result = kept.run(key, SYSTEMS[system].stamp, asked, limits, core)
        if result is None:
            break
        found.append(result)
        if not known:
            print(f"{key}: {told(result)}", file=sys.stderr, flush=True)
    return found


def wall(found: Sequence[dict[str, Any]]) -> float:
    """Seconds that runs took, without what was multiplied up."""
    return sum(each.get("own seconds", each["seconds"]) for each in found)


def told(result: dict[str, Any]) -> str:
    """A result in a line."""
    more = f", {result['processor seconds']:.0f} s of processor time" if "processor seconds" in result else ""
    more += f", {result['progress']}" if "progress" in result else ""
    if "failed" in result:
        return f"{result['failed']}: {result['seconds']:.1f} s, {result['GiB']:.2f} GiB{more}"
    mean = sum(result["errors"]) / len(result["errors"])
    return f"error {mean:.4f} of {len(result['errors'])}, {result['seconds']:.1f} s, {result['GiB']:.2f} GiB{more}"


def on_cores(run: Callable[[Task, int | None], Result], tasks: Iterable[Task], at_once: int) -> list[Result]:
    """`run(task, core)` of all tasks, so many at once, each with a core of its own where the system can do that."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None] * at_once
    free: SimpleQueue[int | None] = SimpleQueue()
    for core in cores[:at_once]:
        free.put(core)

    def with_core(task: Task) -> Result:
        core = free.get()
        try:
            return run(task, core)
        finally:
            free.put(core)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            return list(pool.map(with_core, tasks))
        except BaseException:
            STOP.set()
            raise


def compared(
    kept: Kept,
    jobs: Sequence[str],
    names: Sequence[str],
    epsilons: Sequence[str],
    most: int,
    limits: Limits,
    at_once: int,
) -> Results:
    """All runs; first what is chosen on public data, for which there is all the time it needs."""

    def choose(task: tuple[str, str, str], core: int | None) -> None:
        job, name, epsilon = task
        asked = command(job, name, epsilon, BEFOREHAND, limits.seconds, limits.groups)
        made = boxed(asked, Limits(3600.0, limits.gib), core)
        if "failed" in made:
            print(f"{job} {name} {epsilon}: nothing could be chosen: {made['failed']}", file=sys.stderr)

    def run(task: tuple[str, str], core: int | None) -> dict[str, list[dict[str, Any]]]:
        return across(kept, *task, epsilons, most, limits, core)

    if not kept.closed:
        choices = {
            (job, epsilon, SYSTEMS[name].beforehand): (job, name, epsilon)  # once for systems with the same plan
            for job in jobs for name in names for epsilon in epsilons
            if SYSTEMS[name].beforehand and not kept.get(f"{job} {name} {epsilon} 0", SYSTEMS[name].stamp, limits)
        }  # fmt: skip
        on_cores(choose, choices.values(), at_once)
    tasks = [(job, name) for job in jobs for name in names if job in PLACED or not SYSTEMS[name].each_place]
    found = dict(zip(tasks, on_cores(run, tasks, at_once), strict=True))
    return {(*task, epsilon): found[task][epsilon] for task in tasks for epsilon in epsilons}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help=f"of {', '.join(JOBS)} (default: {', '.join(MAIN)})")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS), metavar="EPS")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each, as far as the time of one holds them")
    parser.add_argument("--minutes", type=float, help=f"time of a run (default: {MINUTES:g})")
    parser.add_argument(
        "--processor-minutes",
        type=float,
        metavar="MINUTES",
        help=f"processor time of a run, for a busy machine; --minutes is then {LEAST_SHARE:g} times that, unless given",
    )
    parser.add_argument("--gib", type=float, default=12.0, help="memory of a run")
    parser.add_argument(
        "--groups", type=int, default=Limits.groups, metavar="N",
        help="groups of a system that treats them one by one (default: %(default)s); it starts none after three "
        "quarters of its time",
    )  # fmt: skip
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="runs at the same time, one core each")
    parser.add_argument("--again", action="store_true", help="try again what failed, or did some of the groups only")
    parser.add_argument("--kept", action="store_true", help="run nothing: make the results from what was done before")
    options = parser.parse_args()
    if options.kept:
        kept = Kept(OUT / "compare.jsonl", closed=True)
        keep_results(compared(kept, MAIN, list(SYSTEMS), EPSILONS, options.seeds, Limits(math.inf, math.inf), 1))
        return
    jobs = options.jobs or list(MAIN)
    if unknown := [name for name in jobs if name not in JOBS]:
        parser.error(f"there is no job {unknown[0]!r}; there are {', '.join(JOBS)}")
    if {"acs", "nist"} & set(jobs):
        need_data()
    packages = {each.peer[0] for each in map(SYSTEMS.__getitem__, options.systems) if each.peer}
    if absent := sorted(package for package in packages if not python_of(package).exists()):
        parser.error(
            f"there is no environment for {absent[0]}: `make compare` sets it up; or leave it out by --systems"
        )
    minutes, processor = options.minutes, options.processor_minutes
    if minutes is None:
        minutes = MINUTES if processor is None else LEAST_SHARE * processor
    limits = Limits(60 * minutes, options.gib, math.inf if processor is None else 60 * processor, options.groups)
    kept = Kept(OUT / "compare.jsonl", options.again)
    for ending in (signal.SIGINT, signal.SIGTERM):  # a background shell may have them ignored
        signal.signal(ending, signal.default_int_handler)
    try:
        results = compared(kept, jobs, options.systems, options.epsilons, options.seeds, limits, options.at_once)
    except KeyboardInterrupt:
        sys.exit("Stopped. What is done is kept: the same command goes on from here.")
    print(tables(results))
    if set(MAIN) <= set(jobs) and set(options.systems) == set(SYSTEMS) and set(EPSILONS) <= set(options.epsilons):
        keep_results({key: found for key, found in results.items() if key[0] in MAIN})
