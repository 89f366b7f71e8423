"""How much of the public table is needed: error and processor seconds against the rows that estimates start from.

Everything here is rehearsed on public rows: Illinois stands in for Ohio and the reverse, or, one at a time, four of the
published states of an invented nation for the private ones. All one-way tables are asked for at epsilon 1, with the
same noise for every number of rows, so that the differences are those of the support alone.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from common import DATA, need_data, report, table
from invented_nation import LEVELS, nation
from prade import Plan, Schema, Task, Unit
from prade.core.execution import cores
from prade.data.public.public import Public, group_columns
from prade.data.read.tables import read_table
from prade.estimating.levels.descent import Descent
from prade.planning.settings import Settings
from prade.tuning import stand_ins
from prade.tuning.rehearse import Rehearsal


def acs() -> tuple[Public, Task]:
    """Illinois and Ohio, for a plan of the places of New York and Pennsylvania."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    places = read_table(DATA / "acs2024_ny_pa_geography.csv").select(["STATE", "PUMA"])
    task = Task("acs", schema, 1, Unit(1), levels=["STATE", "PUMA"], groups=places)
    return Public.of(schema, DATA / "acs2024_il_oh.parquet", group_columns(task.groups, schema)), task


def invented(places: int, rows: int, states: int) -> tuple[Public, Task]:
    """The published half of an invented nation, for a plan of the other half."""
    files = nation(places, rows, states)
    schema = Schema.load(files.schema)
    task = Task("nation", schema, 1, Unit(1), levels=list(LEVELS), groups=read_table(files.places))
    return Public.of(schema, files.public, group_columns(task.groups, schema)), task


def curve(public: Public, task: Task, rows: list[int], scored: int, pairs: int) -> list[dict[str, float]]:
    """For each number of rows: the error, its difference from that of all rows, and processor seconds.

    The standard error of the difference comes from the groups, each of which has both errors.
    """
    stand_ins.MOST_ROWS = len(public)  # all rows that do not stand in
    rehearsal = Rehearsal.of(public, task.groups, task.levels, scored=scored, pairs=pairs, bias=None, threads=cores())
    plan, found, every = Plan.simplest(task), [], np.empty(0)
    sides = range(len(rehearsal.stand_ins))
    largest = min(len(each.public) for each in rehearsal.stand_ins)
    for number in (0, *(each for each in rows if each < largest)):
        settings = replace(Settings(), support=number)
        began = time.process_time()
        errors = [rehearsal.errors(plan, settings, stand_in=k) for k in sides]
        spent = time.process_time() - began
        each, sizes = np.concatenate(errors), [_size(rehearsal, plan, settings, k) for k in sides]
        every = each if number == 0 else every
        away = each - every
        found.append(
            {
                "rows": float(np.mean(sizes)),
                "error": float(each.mean()),
                "more": float(away.mean()),
                "give or take": float(away.std() / np.sqrt(len(away))),
                "seconds": spent,
            }
        )
        print(found[-1], flush=True)
    return found


def _size(rehearsal: Rehearsal, plan: Plan, settings: Settings, stand_in: int) -> int:
    """The rows that estimates of a stand-in start from: more than the setting says if groups recur."""
    chosen = rehearsal.stand_ins[stand_in]
    release = rehearsal.release(plan, stand_in)
    return len(Descent(release, chosen.public, settings, rough=True, cells=chosen.cells).support)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 10_000, 20_000, 50_000, 100_000, 200_000])
    parser.add_argument("--nation", type=int, nargs=3, metavar=("PLACES", "ROWS", "STATES"))
    parser.add_argument("--scored", type=int, default=40, help="groups that are scored, in each stand-in")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of columns that are scored")
    options = parser.parse_args()
    need_data()
    public, task = acs() if options.nation is None else invented(*options.nation)
    found = curve(public, task, options.rows, options.scored, options.pairs)
    heads = ["rows of support", "error", "more than with all", "processor seconds"]
    lines = [
        [
            f"{each['rows']:,.0f}",
            f"{each['error']:.4f}",
            f"{each['more']:+.4f} ± {each['give or take']:.4f}",
            f"{each['seconds']:.1f}",
        ]
        for each in found
    ]
    name = "support" if options.nation is None else "support-nation"
    report(name, f"{__doc__}\n{table(heads, lines)}", {"curve": found})


if __name__ == "__main__":
    main()
