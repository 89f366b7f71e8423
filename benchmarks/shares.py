"""Do larger shares for larger tables pay, and do tables of ranges? Rehearsed on public rows with simulated noise.

Three jobs (invented places, Illinois and Ohio, the NIST excerpt of 2018) ask all one-way tables of the last level.
Compared with equal shares, on the same groups with the same noise up to its scale:

* weighted shares, as `prade.planning.questions` gives them;
* ranges: half of each numeric column's share goes to a table of its four quarters, a small strategy of ranges.

An invented table as a whole is asked all pairs of ten columns, whose answers are not smoothed. The error is the mean
distance of two-way tables (0 to 2); differences are given with their standard errors over groups and draws of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from common import need_data, report, table
from jobs import THREADS, acs, nist
from prade import Ask, Budget, Level, Plan, Schema, Unit, Workload
from prade.data.declare.groups import Groups
from prade.data.public.public import Public
from prade.examples import census_like
from prade.planning.questions import shared_asks
from prade.planning.settings import Settings
from prade.queries.parts import Cells
from prade.tuning.rehearse import Rehearsal, mean_of

BUDGETS = [Budget.pure("1/10"), Budget.pure(1), Budget.pure(10), Budget.zcdp("1/1000"), Budget.zcdp("1/30")]
TOTAL = 1  # share for the numbers of rows, in 20
PARTS = 19
SEEDS = 2  # of the noise
FEW = 7  # bins of a numeric column that has no quarters
PLACES = ["STATE", "PLACE"]
TEN = ["AGE", "SEX", "RACE", "CITIZEN", "EDUC", "MARITAL", "EMPLOY", "HOURS", "WAGE", "TENURE"]


def quarters(schema: Schema, name: str) -> Cells:
    """A numeric column in four ranges of as many bins each, and its missing values."""
    column = schema[name]
    cell = np.minimum(4 * np.arange(column.size) // column.present, 4)
    return Cells([name], cell, int(cell.max()) + 1)


def with_ranges(schema: Schema) -> list[Ask]:
    """All one-way tables; those of numeric columns share with their quarters."""
    numeric = [name for name in schema.coded if schema[name].numeric and schema.size(name) >= FEW]
    others = [name for name in schema.coded if name not in numeric]
    each = PARTS / len(schema.coded)
    halves = Workload.marginals(schema, numeric) + Workload(schema, [quarters(schema, name) for name in numeric])
    return [Ask(Workload.marginals(schema, others), each * len(others)), Ask(halves, each * len(numeric))]


def compare(
    name: str, rehearsal: Rehearsal, plan_of: dict[str, Plan], settings: Settings
) -> tuple[list[str], dict[str, float]]:
    """One line of the table: the error with equal shares, and what others change."""
    errors: dict[str, list[np.ndarray]] = {}
    for label, plan in plan_of.items():
        errors[label] = [
            np.concatenate([rehearsal.errors(plan, settings, seed=seed, stand_in=k) for seed in range(SEEDS)])
            for k in range(len(rehearsal.stand_ins))
        ]
    base = np.concatenate(errors["equal"])
    line = [name, str(plan_of["equal"].budget).partition(" (")[0], f"{mean_of(errors['equal']):.4f}"]
    for label in list(plan_of)[1:]:
        away = np.concatenate(errors[label]) - base
        line.append(f"{away.mean():+.4f} ± {away.std(ddof=1) / math.sqrt(len(away)):.4f}")
    return line, {label: mean_of(each) for label, each in errors.items()}


def one_way(name: str, schema: Schema, public: Public, groups: Groups, levels: Sequence[tuple[str, ...]]) -> list:
    """The lines of a job with groups."""
    rehearsal = Rehearsal.of(public, groups, levels, bias=None, threads=THREADS)
    asks = {
        "equal": [Ask(Workload.all_marginals(schema, 1), PARTS)],
        "weighted": shared_asks(Workload.all_marginals(schema, 1), share=PARTS),
        "ranges": with_ranges(schema),
    }
    lines = []
    for budget in BUDGETS:
        plans = {
            label: Plan(
                "x", schema, budget, Unit(1), [*map(Level, levels[:-1]), Level(levels[-1], each, TOTAL)], groups
            )
            for label, each in asks.items()
        }
        lines.append(compare(name, rehearsal, plans, Settings()))
        print(*lines[-1][0], sep=" | ", flush=True)
    return lines


def all_pairs(schema: Schema, public: Public) -> list:
    """The lines of a whole table that is asked pairs."""
    rehearsal = Rehearsal.of(public, None, [()], bias=None, threads=THREADS)
    pairs = Workload.marginals(schema, combinations(TEN, 2))
    asks = {"equal": [Ask(pairs)], "weighted": shared_asks(pairs)}
    lines = []
    for budget in BUDGETS[1:]:
        plans = {label: Plan("x", schema, budget, Unit(1), [Level((), each, total=0)]) for label, each in asks.items()}
        line, found = compare("an invented table, 45 pairs", rehearsal, plans, Settings(smooth=False))
        lines.append(([*line, ""], found))
        print(*line, sep=" | ", flush=True)
    return lines


def main() -> None:
    need_data()
    places, whole = (census_like(persons=n, places_per_state=12, seed=1) for n in (20_000, 60_000))
    listed = places.groups.select(PLACES).group_by(PLACES).aggregate([])
    lines = one_way(
        "invented places", places.schema, Public.of(places.schema, places.public, PLACES), Groups.of(listed),
        [("STATE",), ("PLACE",)],
    )  # fmt: skip
    lines += one_way("NIST 2018", (job := nist()).schema, job.rows, job.listed, [(), ("PUMA",)])
    lines += one_way("Illinois and Ohio", (job := acs()).schema, job.rows, job.listed, [("STATE",), ("PUMA",)])
    lines += all_pairs(whole.schema, Public.of(whole.schema, whole.public, PLACES))
    head = ["job", "budget", "error, equal shares", "weighted shares", "tables of ranges"]
    text = (
        "Rehearsals on public rows with simulated noise: the error of two-way tables with equal shares for all tables, "
        "and by how much other asks change it (± standard error; below 0 is better).\n\n"
    )
    report(
        "shares",
        text + table(head, [line for line, _ in lines]),
        {f"{line[0]}, {line[1]}": figures for line, figures in lines},
    )


if __name__ == "__main__":
    main()
