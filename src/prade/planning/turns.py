"""Tables that take turns: what the next release of a chain asks, where noise hides more than a year changes.

A prior that is carried on from the last release remembers what was asked then. If half of the tables are asked, each
with twice the share of the budget, the other half is a year old. Take one cell whose share changes by the variance q
in a year, and noise of the variance v if all tables are asked every year (v / 4 if half of them are, with Laplace
noise). After many years, the variance of what is known about it is

    every year         p               with  p = (p + q) v / (p + q + v)
    every other year   p + q / 2       with  p = (p + 2 q) (v / 4) / (p + 2 q + v / 4)

on average, and the second is smaller if v > 1.5 q. Answers about other cells tell something about this one, too, which
makes noise matter less: tables take turns only if v > `ENOUGH_NOISE` q. With Gaussian noise, half of the tables have
noise of the variance v / 2, and nothing is gained.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from prade.core.arrays import mass_by_group
from prade.data.public import Public
from prade.planning.plan import Plan
from prade.planning.questions import Level
from prade.planning.settings import Settings
from prade.planning.shares import weighted_asks
from prade.queries.parts import Part
from prade.queries.workload import Workload

# On invented years (`benchmarks/chains.py`, seeds that its figures are not from), turns changed the mean error of four
# years by +8 % at 0.7, +3 % at 1.6, 0 at 4.5, -1 % at 10 and -3 % at 41.
ENOUGH_NOISE = 6.0


def in_turns(plan: Plan, public: Public, asked: Collection[str], rows: float) -> Plan:
    """The simplest plan with only those tables whose turn it is; or the same plan, if more would be lost than gained.

    `public` is carried on from the last release, which asked the tables of these names and whose groups have this
    number of rows on average.
    """
    *above, last = plan.levels
    tables = [part for ask in last.asks for part in ask.workload]
    if plan.law != "laplace" or noise_per_change(plan, public, rows) <= ENOUGH_NOISE:
        return plan
    asks = weighted_asks(Workload(plan.schema, tables_in_turn(tables, asked)))
    return Plan(**{**vars(plan.content), "levels": (*above, Level(last.by, asks, last.total))})


def tables_in_turn(tables: Sequence[Part], asked: Collection[str]) -> list[Part]:
    """Half of the tables: those that were not asked last time; if all were, large and small ones alike.

    >>> from prade.data.schema import Schema
    >>> tables = Workload.all_marginals(Schema.from_mbi({"sex": 2, "age": 16, "work": 5, "home": 3}), 1).parts
    >>> [part.name for part in tables_in_turn(tables, ["sex", "age", "work", "home"])]
    ['age', 'home']
    >>> [part.name for part in tables_in_turn(tables, ["age", "home"])]
    ['sex', 'work']
    """
    waiting = [part for part in tables if part.name not in asked]
    if waiting and len(waiting) <= (len(tables) + 1) // 2:
        return waiting
    by_size = sorted(waiting or tables, key=lambda part: -part.n_cells)
    return [part for part in tables if part in by_size[::2]]


def noise_per_change(plan: Plan, public: Public, rows: float) -> float:
    """The variance of the noise in the shares of a plan's tables, divided by that of what a year changes.

    A year changes the law of a group by the share `change` of the settings of what groups differ by; and other people
    are there, a new sample.
    """
    weight = public.group_weights / public.group_weights.sum()
    noise = change = 0.0
    for question in plan.questions:
        for part in () if question.is_total else question.parts:
            counts = mass_by_group(
                public.group,
                len(weight),
                part.cells(plan.schema, public.prior.codes),
                part.n_cells,
                public.prior.weights,
            )
            shares = counts / np.maximum(public.group_weights, 1e-300)[:, None]
            mean = weight @ shares
            between, sampling = weight @ (shares - mean) ** 2, mean * (1 - mean) / rows
            noise += part.n_cells * question.variance / rows**2
            change += float(np.sum(Settings.change * between + sampling))
    return noise / change if change > 0 else 0.0
