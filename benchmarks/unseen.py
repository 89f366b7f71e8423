"""Private rows of kinds that no public row is: what is out of reach, and the error, with and without added rows.

A kind is one value of a column, or a combination of two values, that 2 % or 10 % of the private rows have; all public
rows of the kind are removed. The tables are invented ones, or those of the ACS with --acs. All one-way tables are asked
for by place, or, with --pairs, the two-way tables of all pairs of one table. "today" adds no rows; "shown" adds rows
where the answers show people whom no public row is like; "extra" also puts a share of the prior's weight on crossings
of public rows. The noise is real, and the same for all three; the score looks at the truth, which only a benchmark may.

out of reach: the mean, over all pairs of columns, of the true mass of cells that no row of the support is in.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from common import need_data, report, table
from compare.jobs import ADULT, PERSONS, _generated
from jobs import THREADS, Job, acs
from prade import Level, Plan, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.joint import encode
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import Estimates
from prade.planning.settings import Settings

Kind = dict[str, int]  # codes by column
WAYS = ("today", "shown", "extra")


def kind_of(job: Job, columns: int, share: float) -> Kind:
    """The value, or combination of values, that this share of the private rows has, as nearly as any.

    Of a combination, each value by itself has at least twice the share, so that only the combination is unseen.
    """
    codes, schema = job.truth[0].codes, job.schema
    names = [name for name in schema.coded if not (schema[name].numeric or schema[name].groups)]
    near: tuple[float, Kind] = (np.inf, {})
    alone = {name: np.bincount(codes[name], minlength=schema.size(name)) / len(job.truth[0]) for name in names}
    for chosen in combinations(names, columns):
        shape = schema.shape(chosen)
        cell = np.ravel_multi_index([codes[name].astype(np.int64) for name in chosen], shape)
        shares = np.bincount(cell, minlength=int(np.prod(shape))) / len(cell)
        for number in np.argsort(np.abs(np.log(np.maximum(shares, 1e-9) / share)))[:20]:
            found = dict(zip(chosen, map(int, np.unravel_index(number, shape)), strict=True))
            present = all(code < schema[name].present for name, code in found.items())
            common = columns == 1 or all(alone[name][code] >= 2 * share for name, code in found.items())
            away = abs(float(np.log(max(shares[number], 1e-9) / share)))
            if present and common and away < near[0]:
                near = away, found
    return near[1]


def without(job: Job, kind: Kind, folder: Path) -> Job:
    """The same job with all public rows of a kind removed."""
    whole = read_table(job.public)
    codes = encode(job.schema, whole).codes
    of_kind = np.logical_and.reduce([codes[name] == code for name, code in kind.items()])
    file = folder / f"public-{'-'.join(f'{name}{code}' for name, code in kind.items())}.parquet"
    write_table(whole.filter(~of_kind), file)
    return replace(job, public=file)


def out_of_reach(job: Job, estimates: Estimates) -> float:
    """As `Job.unreachable`, for the rows of a support."""
    reached = replace(job)
    reached.__dict__.update({"rows": estimates.support.public, "truth": job.truth})
    return reached.unreachable()


def compared(job: Job, plan: Plan, extra: float, wanted: list[str]) -> list[dict[str, float]]:
    """Error, what is out of reach and processor seconds for each way to add rows, with the same noise."""
    today = replace(plan.settings or Settings(), unseen=False, extra=0.0)
    shown = replace(today, unseen=True)
    ways = dict(zip(WAYS, (today, shown, replace(shown, extra=extra)), strict=True))
    last, found = len(plan.levels) - 1, []
    every = max(1, len(job.listed) // 40)
    with tempfile.TemporaryDirectory() as folder:
        release = job.release(plan, Path(folder))
        for settings in (ways[way] for way in wanted):
            began = seconds()
            estimates = Estimates.of(release, job.rows, settings, execution=Execution(THREADS))
            spent = seconds() - began
            rows = estimates.support.public
            error = job.distance(lambda group, known=estimates: known.weights(last, group), every, rows)
            lost, added = out_of_reach(job, estimates), estimates.public.added
            found.append({"error": error, "out of reach": lost, "added": added, "seconds": spent})
    return found


def seconds() -> float:
    """Processor seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def invented(persons: int, *, places: bool) -> Job:
    """Invented people of other states, by place or as one table."""
    public, private, schema = _generated(f"unseen{persons}", persons, places=10)
    if not places:
        return Job("unseen", schema.select(["STATE", *ADULT]), public, private, None, (), Unit(1))
    listed = {"STATE": [13] * 10 + [14] * 10, "PLACE": [f"{s}-{k:03d}" for s in (13, 14) for k in range(1, 11)]}
    wanted = schema.select(["STATE", "PLACE", *ADULT])
    return Job("unseen", wanted, public, private, listed, ("STATE", "PLACE"), Unit(1))


def plan_of(job: Job, epsilon: str, pairs: bool) -> Plan:
    """All one-way tables by place, or all pairs of one table, raw."""
    task = job.task(epsilon)
    if not pairs:
        return Plan.simplest(task)
    asked = Workload.marginals(job.schema, list(combinations(job.schema.coded, 2)))
    return Plan.of(task, [Level((), asked, total=0)], settings=Settings(smooth=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acs", action="store_true", help="New York and Pennsylvania from Illinois and Ohio")
    parser.add_argument(
        "--pairs", action="store_true", help="all pairs of one table instead of one-way tables by place"
    )
    parser.add_argument("--persons", type=int, default=PERSONS)
    parser.add_argument("--epsilons", nargs="+", default=["1", "10"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.02, 0.1], help="of private rows; 0: no kind")
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2], help="whose values make a kind")
    parser.add_argument("--extra", type=float, default=0.01)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    if options.acs:
        need_data()
    job = acs() if options.acs else invented(options.persons, places=not options.pairs)
    lines, figures = [], []
    with tempfile.TemporaryDirectory() as folder:
        kinds = [kind_of(job, columns, share) for share in options.shares if share for columns in options.columns]
        for kind in ([{}] if 0.0 in options.shares else []) + kinds:
            world = without(job, kind, Path(folder)) if kind else job
            codes = job.truth[0].codes
            share = float(np.mean(np.logical_and.reduce([codes[n] == c for n, c in kind.items()]))) if kind else 0.0
            words = " and ".join(f"{name} {job.schema[name].cell_texts()[code]}" for name, code in kind.items())
            for epsilon in options.epsilons:
                found = compared(world, plan_of(world, epsilon, options.pairs), options.extra, options.ways)
                figures.append({"kind": kind, "share": share, "epsilon": epsilon, "found": found})
                lines.append(
                    [
                        f"{words or 'none'} ({share:.1%})",
                        epsilon,
                        *(f"{each['out of reach']:.4f}" for each in found),
                        *(f"{each['error']:.4f}" for each in found),
                        *(f"{each['added']:,}" for each in found),
                        *(f"{each['seconds']:.0f}" for each in found),
                    ]
                )
                print(lines[-1], flush=True)
    heads = ["kind removed (share of private rows)", "eps"]
    heads += [
        f"{what}, {way}" for what in ("out of reach", "error", "rows added", "processor s") for way in options.ways
    ]
    name = f"unseen{'-acs' if options.acs else ''}{'-pairs' if options.pairs else ''}"
    report(name, f"{__doc__}\n{table(heads, lines)}", {"lines": figures})


if __name__ == "__main__":
    main()
