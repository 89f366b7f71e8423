"""`prade report` at 239 and at 1,080 groups: seconds, seconds of all processors together, and the size of the page.

Both jobs start from Illinois and Ohio and ask for all one-way tables of 36 columns at epsilon 1, without tuning. The
first has the 239 PUMAs of New York and Pennsylvania, the second divides each of these into invented places.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from common import DATA, OUT, need_data, report, table
from prade import Ledger, Plan, Task, Unit
from prade.data.read.tables import read_table, write_table
from prade.measuring.run import measure
from prade.pipeline import write_sample

PUBLIC = DATA / "acs2024_il_oh.parquet"
PLACES = 1_080
TARGETS = {239: ("-", "3 MB"), PLACES: ("30 s", "6 MB")}


def divided(rows: pa.Table, places: int) -> pa.Table:
    """The rows with a column PLACE: PUMAs divided at random into about equally many places, `places` in all."""
    pumas = np.asarray(rows["PUMA"].to_pylist())
    names, number = np.unique(pumas, return_inverse=True)
    pieces = np.full(len(names), places // len(names)) + (np.arange(len(names)) < places % len(names))
    drawn = np.random.default_rng(0).random(len(pumas))
    piece = (drawn * pieces[number]).astype(int)
    return rows.append_column("PLACE", pa.array([f"{p}-{k}" for p, k in zip(pumas, piece, strict=True)]))


def released(groups: int, folder: Path) -> Path:
    """A release with estimates and synthetic rows, made once and kept."""
    release = folder / f"release-{groups}"
    if (release / "synthetic.parquet").exists():
        return release
    private = read_table(DATA / "acs2024_ny_pa.parquet")
    schema, last = DATA / "acs2024.schema.toml", "PUMA"
    if groups != 239:
        private, last = divided(private, groups), "PLACE"
    listed = private.select(["STATE", last]).group_by(["STATE", last]).aggregate([])
    task = Task(f"acs {groups}", schema, 1, Unit(1), levels=["STATE", last], groups=listed)
    plan = Plan.simplest(task)
    source = folder / f"private-{groups}.parquet"
    write_table(private, source)
    ledger = folder / f"{groups}.ledger"
    Ledger(ledger).open_dataset(plan.dataset, plan.unit, plan.budget)
    made = measure(plan, source, release, ledger)
    write_sample(made, None, PUBLIC)
    return release


def processor() -> float:
    """Seconds that finished child processes have kept processors busy."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", type=int, default=[239, PLACES])
    options = parser.parse_args()
    need_data()
    folder = OUT / "report"
    folder.mkdir(parents=True, exist_ok=True)
    lines, figures = [], {}
    for groups in options.groups:
        release, page = released(groups, folder), folder / f"{groups}.html"
        started, before = time.perf_counter(), processor()
        subprocess.run([sys.executable, "-m", "prade", "report", release, "-o", page], check=True)
        seconds, busy, size = time.perf_counter() - started, processor() - before, page.stat().st_size / 1e6
        data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
        numbers = len(data[1]) / 1e6 if data else 0.0
        target = TARGETS.get(groups, ("-", "-"))
        lines.append(
            [
                f"{groups:,}",
                f"{seconds:.1f} s",
                target[0],
                f"{busy:.1f} s",
                f"{size:.2f} MB",
                target[1],
                f"{numbers:.2f} MB",
            ]
        )
        figures[str(groups)] = {"seconds": seconds, "processor": busy, "megabytes": size, "data": numbers}
    heads = ["groups", "`prade report`", "at most", "processors", "page", "at most", "of which data"]
    report("report", f"{__doc__}\n{table(heads, lines)}", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
