"""Drawing rows: processor seconds, memory and error for several settings of the search, from the same estimates.

The error against the estimates is what drawing rows adds to the distributions; that against the truth is what a user
sees. Every setting runs in a process of its own, with one thread.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import prade
from common import OUT, need_data, report, table
from invented_nation import LEVELS, nation
from jobs import acs
from prade import Release, Schema, Task, Unit
from prade.core.execution import Execution
from prade.estimating.levels.estimates import kept_estimates
from prade.pipeline import write_sample
from prade.reporting.truth import coded_rows
from prade.sampling.draw import PASSES, SortedRows, sample
from prade.sampling.table import numbers_of_rows
from prade.scoring.distances import mean_distance
from prade.scoring.score import chosen_pairs, score
from results import machine

SETTINGS = {"drawn, not improved": 0, "one pass": 1, "now": PASSES, "eight passes": 8}
EVERY = 8  # groups between those that are compared with their estimates


def acs_release() -> tuple[Path, Path]:
    """New York and Pennsylvania at eps 1, all one-way tables of every PUMA; and the true rows."""
    job = acs()
    return made("acs", job.schema, job.public, job.private, job.groups, list(job.levels)), job.private


def nation_release(large: bool) -> tuple[Path, Path]:
    """An invented nation, in the same way."""
    found = nation() if large else nation(100, 120_000, 8)
    name = "nation" if large else "small-nation"
    return made(name, Schema.load(found.schema), found.public, found.private, found.places, list(LEVELS)), found.private


def made(name: str, schema: Schema, public: Path, private: Path, groups: object, levels: list[object]) -> Path:
    """A release with its estimates, made once and kept."""
    folder = OUT / f"sampling-{name}"
    OUT.mkdir(exist_ok=True)
    task = Task(name, schema, 1, Unit(1), levels=levels, groups=groups)
    if not folder.exists():
        plan = prade.plan(task, public, tune=False)
        prade.measure(plan, private, folder, folder.with_suffix(".ledger"), cap=1)
    prade.estimate(folder)
    return folder


def measured(folder: Path, private: Path, passes: int) -> dict[str, float]:
    """One setting: processor seconds and memory of drawing, and the errors of the rows."""
    estimates = kept_estimates(Release.load(folder))
    plan, prior, last = estimates.plan, estimates.support.public.prior, len(estimates.levels) - 1
    totals = numbers_of_rows(estimates)
    ordered = SortedRows(prior.codes, plan.schema)
    sample(ordered, prior.weights, 30, 0, passes)  # compiled
    before = time.process_time()
    drawn_rows = [sample(ordered, estimates.weights(last, k), n, k, passes) for k, n in enumerate(totals.tolist())]
    seconds = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows, group = estimates.support.numbers(np.concatenate(drawn_rows)), np.repeat(np.arange(len(totals)), totals)
    codes = {name: code[rows] for name, code in estimates.public.prior.codes.items()}
    pairs = chosen_pairs(plan.schema.coded, "all")
    against = [
        mean_distance(
            {name: code[group == k] for name, code in codes.items()}, prior, pairs, estimates.weights(last, k)
        )
        for k in range(0, len(estimates.totals), EVERY)
        if (group == k).any()
    ]
    drawn = prade.data.public.joint.Coded(plan.schema, codes)
    truth = score(
        coded_rows(plan, private), (drawn, group), plan.schema, plan.groups.names, groups=plan.groups, pairs="all"
    )
    return {
        "rows": len(rows),
        "seconds": seconds,
        "GiB": memory,
        "estimates": float(np.mean(against)),
        "truth": float(np.nanmean(truth.detail)),
    }


def written(folder: Path) -> dict[str, float]:
    """The whole command: public files read, rows drawn, decoded and written as a data set and as one file."""
    found = {}
    before = time.process_time()
    made_rows = write_sample(folder, partitioned=True, seed=0, execution=Execution(1))
    found["seconds"] = time.process_time() - before
    found["GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found["rows"] = made_rows.rows
    return found


def alone(work, *arguments):  # type: ignore[no-untyped-def]
    """A function's result in a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=["acs", "small-nation", "nation"], default="acs")
    parser.add_argument("--only-whole", action="store_true", help="only the whole command, not the settings")
    options = parser.parse_args()
    need_data()
    folder, private = acs_release() if options.job == "acs" else nation_release(options.job == "nation")
    text, figures = [machine()], {}
    if not options.only_whole:
        figures = {name: alone(measured, folder, private, search) for name, search in SETTINGS.items()}
        head = ["search", "processor s", "rows per s", "GiB", "error against the estimates", "against the truth"]
        text.append(
            table(
                head,
                [
                    [
                        name,
                        f"{found['seconds']:.1f}",
                        f"{found['rows'] / found['seconds']:,.0f}",
                        f"{found['GiB']:.2f}",
                        f"{found['estimates']:.4f}",
                        f"{found['truth']:.4f}",
                    ]
                    for name, found in figures.items()
                ],
            )
        )
    whole = alone(written, folder)
    text.append(
        f"`prade sample --partitioned`, from public file to data set: {whole['rows']:,} rows, "
        f"{whole['seconds']:.0f} processor seconds, {whole['GiB']:.2f} GiB."
    )
    report(f"sampling-{options.job}", "\n\n".join(text), {**figures, "whole": whole})


if __name__ == "__main__":
    main()
