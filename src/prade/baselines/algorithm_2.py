"""Algorithm 2 of the paper, as published: two levels, Laplace noise, IDE, independent draws. A baseline for prade.

Its functions are called `published_workloads`, `published_plan`, `published_estimates` and `published_rows`.

    level    groups              questions about each group, with epsilon / 4 each
    1        for example STATE   number of rows;  W_S: cliques of columns with much mutual information
    2        PUMA and YEAR       number of rows;  W_G: one-way tables of columns with little mutual information

Counts are divided by the noisy number of rows measured at their level. IDE takes T = 2 x number of parts steps in
random order: a level-1 group starts from the public table, a level-2 group from the estimate of the level-1 group that
contains it. Each level-2 group gets its noisy number of rows, drawn from its estimate independently.

IDE uses the Euclidean projection here. The paper does not say which of the L1-nearest answers to take; this one does
not depend on the current estimate. The least-KL projection, `IDE`'s own default, does and is better at small epsilon,
but it is not part of what was published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import EstimationError, PradeError
from prade.data.encoding import Coded
from prade.data.information import Information
from prade.data.prior import Prior
from prade.data.public import Public
from prade.estimating.layout import Layout
from prade.estimating.levels.descent import GroupEstimate
from prade.estimating.paper_estimators import IDE
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.planning.task import Task
from prade.queries.workload import Workload
from prade.release.release import Release
from prade.tuning.mutual_information import MOST_CELLS, cliques, independent_columns, strongest_pairs

Projection = Literal["euclidean", "least-kl"]

PAIRS = 40  # edges of the graph; more edges make more parts, and noise grows with the number of parts
ONE_WAY = 8  # one-way tables at the second level, where groups are small; with 8, the noise scale is 32 at epsilon 1
FEWEST_ROWS = 1.0  # counts are divided by at least this


def published_workloads(
    public: Public, *, pairs: int = PAIRS, one_way: int = ONE_WAY, most_cells: int = MOST_CELLS
) -> tuple[Workload, Workload]:
    """Algorithm 2's workloads W_S and W_G, chosen from the public table: see `prade.tuning.mutual_information`.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
    >>> public = Public.of(schema, {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
    >>> upper, lower = published_workloads(public, pairs=1)
    >>> [part.columns for part in upper], [part.columns for part in lower]
    ([('a', 'b'), ('c',)], [('a',), ('c',)])
    """
    schema = public.prior.schema
    known = Information.of(public.prior)
    together = cliques(schema, known, strongest_pairs(known, pairs), most_cells=most_cells)
    return Workload.marginals(schema, together), Workload.marginals(schema, independent_columns(known, one_way))


def published_plan(task: Task, public: Public, *, workloads: tuple[Workload, Workload] | None = None) -> Plan:
    """Algorithm 2's plan: at each of two levels, epsilon / 4 for the number of rows and epsilon / 4 for the parts.

        b(total) = 4 rows / epsilon        b(parts) = 4 rows * number of parts / epsilon

    The task's levels are the group columns of the first level and those that the second adds, as in ["STATE", ("PUMA",
    "YEAR")]; if it has one level, the first one is everybody. `workloads` are W_S and W_G; `published_workloads`
    chooses them when None.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
    >>> public = Public.of(schema, {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
    >>> workloads = published_workloads(public, pairs=1, one_way=1)
    >>> groups = {"STATE": [17, 17, 39], "PUMA": [1, 2, 1]}
    >>> task = Task("survey", schema, 4, levels=["STATE", "PUMA"], groups=groups)
    >>> print(published_plan(task, public, workloads=workloads).describe())
    3 groups, 2 levels, epsilon = 4 (pure differential privacy)
    STATE (2 groups)
      number of rows: epsilon = 1, Laplace noise of scale 1
      2 tables (a x b, c), 6 counts in each of 2 groups: epsilon = 1, Laplace noise of scale 2
    STATE+PUMA (3 groups)
      number of rows: epsilon = 1, Laplace noise of scale 1
      1 one-way table (a), 2 counts in each of 3 groups: epsilon = 1, Laplace noise of scale 1
    """
    if task.budget.kind != "pure":
        raise PradeError(f"Algorithm 2 adds Laplace noise for a pure budget, got {task.budget}: give Budget.pure(...)")
    both = task.levels if len(task.levels) > 1 or not task.levels[0] else ((), *task.levels)
    if len(both) != 2:
        raise PradeError(f'Algorithm 2 has two levels, got {len(both)}: give two, as in ["STATE", "PUMA"]')
    chosen = published_workloads(public) if workloads is None else workloads
    levels = [Level(by, Ask(workload, 1), total=1) for by, workload in zip(both, chosen, strict=True)]
    return Plan.of(task, levels)


def published_estimates(
    release: Release, public: Public, seed: int, *, projection: Projection = "euclidean", threads: int = 1
) -> Iterator[GroupEstimate]:
    """Algorithm 2's estimates of the last level's groups, in order, each with its noisy number of rows.

    Counts are divided by that number. The paper does not say what to do with a number below 1; here counts are then
    divided by 1, so the shares may add up to more than 1, which IDE's projection corrects. `seed` determines the random
    order of IDE's steps; `threads` do not change the result.

    Each level of the release needs a measured total and parts, as in `published_plan`; there may be more than two
    levels. A group whose answers concern no public row keeps its parent's distribution.
    """
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise EstimationError(f"seed is {seed!r}: give a whole number, 0 or more")
    groupings = release.plan.groupings
    above = [public.prior]
    parent_of = np.zeros(len(groupings[0]), np.int64)
    for level, grouping in enumerate(groupings[:-1]):
        estimates = _level(release, level, above, parent_of, IDE(projection=projection, seed=seed), threads)
        above = [Prior(each.estimate.schema, each.estimate.codes, each.estimate.weights) for each in estimates]
        below = groupings[level + 1]
        parent_of = np.zeros(len(below), np.int64)
        parent_of[below.number] = grouping.number
    yield from _level(release, len(groupings) - 1, above, parent_of, IDE(projection=projection, seed=seed), threads)


def published_rows(
    release: Release, public: Public, seed: int, *, projection: Projection = "euclidean", threads: int = 1
) -> tuple[Coded, Ints]:
    """Algorithm 2's synthetic table, coded, and for each row the number of its group at the last level.

    A group gets its noisy number of rows, rounded, or none if that is not positive. They are drawn from its estimate
    independently. The result depends on the arguments only, not on `threads`.
    """
    drawn = []
    for each in published_estimates(release, public, seed, projection=projection, threads=threads):
        generator = np.random.default_rng([seed, len(release.plan.levels), each.group])  # not one of IDE's streams
        drawn.append(generator.choice(len(public), max(round(each.total), 0), p=each.estimate.weights))
    rows = np.concatenate(drawn)
    coded = Coded(public.prior.schema, {name: code[rows] for name, code in public.prior.codes.items()})
    return coded, np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])


def asked_totals(release: Release, level: int) -> Floats:
    """The noisy numbers of rows that were measured at a level, without those derived from its parts."""
    for question, noisy in zip(release.plan.questions, release.noisy, strict=True):
        if question.level == level and question.is_total:
            return noisy[0][:, 0].astype(np.float64)
    raise EstimationError(
        f"level {release.plan.levels[level].name} has no measured number of rows, by which Algorithm 2 divides: make "
        "the plan with published_plan"
    )


def _level(
    release: Release, level: int, above: Sequence[Prior], parent_of: Ints, ide: IDE, threads: int
) -> Iterator[GroupEstimate]:
    """IDE for each group of a level, starting from its parent's distribution, with a separate order of steps."""
    totals = asked_totals(release, level)
    measured = [release.measurements(level, group) for group in range(len(totals))]
    if not measured[0]:
        raise EstimationError(
            f"level {release.plan.levels[level].name} has no measured parts: make the plan with published_plan"
        )
    workload = Workload(release.plan.schema, [measurement.part for measurement in measured[0]])
    layout = Layout(above[0], workload, threads=threads)
    layouts = [layout.reweighted(prior) for prior in above]
    for group, total in enumerate(totals):
        parent = parent_of[group]
        seeded = replace(ide, seed=int(np.random.SeedSequence([ide.seed, level, group]).generate_state(1)[0]))
        estimate = seeded.fit(above[parent], measured[group], max(total, FEWEST_ROWS), layout=layouts[parent])
        yield GroupEstimate(group, float(total), estimate)
