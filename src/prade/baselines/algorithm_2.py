"""Algorithm 2 as the paper has it: two levels, Laplace noise, IDE, independent draws. The default is compared with it.

    level    groups              asked of each group, with epsilon / 4 each
    1        for example STATE   number of rows;  W_S: cliques of columns with much mutual information
    2        PUMA and YEAR       number of rows;  W_G: one-way parts on columns with little of it

Counts are divided by the noisy number of rows that was asked for at their level. IDE takes T = 2 x number of parts
steps in random order: a level-1 group starts from the public table, a level-2 group from the estimate of the level-1
group that it is in. Each level-2 group gets its noisy number of rows, drawn from its estimate one by one.

IDE's projection is the Euclidean one here: of the answers that are L1-nearest, which the paper does not tell apart, it
is one that does not look at the estimate under way. The least-KL one, `IDE`'s own default, does, and is better at small
epsilon; choosing it is no part of what was published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import EstimationError, PradeError
from prade.data.encode import Coded
from prade.data.prior import Prior
from prade.data.public import Public
from prade.estimating.ide import IDE
from prade.estimating.layout import Layout
from prade.estimating.levels.descent import GroupEstimate
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.planning.task import Task
from prade.queries.workload import Workload
from prade.release.release import Release
from prade.tuning.information import MOST_CELLS, Information, cliques, independent_columns, strongest_pairs

Projection = Literal["euclidean", "least-kl"]

PAIRS = 40  # edges of the graph; more of them are more parts, and noise grows with the number of parts
ONE_WAY = 8  # parts of the second level, where groups are small: 8 make the noise of a count 32 rows at epsilon 1
FEWEST_ROWS = 1.0  # that counts are divided by


def published_workloads(
    public: Public, *, pairs: int = PAIRS, one_way: int = ONE_WAY, most_cells: int = MOST_CELLS
) -> tuple[Workload, Workload]:
    """W_S and W_G, chosen from the public table: see `prade.tuning.information`.

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
    """The plan of Algorithm 2: epsilon / 4 for the number of rows and for the parts, at each of two levels.

        b(total) = 4 rows / epsilon        b(parts) = 4 rows * number of parts / epsilon

    The task's levels are the group columns of the first level and those that the second adds, as in ["STATE", ("PUMA",
    "YEAR")]. `workloads` are W_S and W_G; `published_workloads` chooses them when None.

    >>> from prade import Schema
    >>> schema = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
    >>> public = Public.of(schema, {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
    >>> workloads = published_workloads(public, pairs=1, one_way=1)
    >>> groups = {"STATE": [17, 17, 39], "PUMA": [1, 2, 1]}
    >>> task = Task("survey", schema, 4, levels=["STATE", "PUMA"], groups=groups)
    >>> print(published_plan(task, public, workloads=workloads).describe())
    3 groups, 2 levels, epsilon = 4 (pure differential privacy)
    STATE (2 groups)
      number of rows: epsilon = 1, Laplace scale 1
      2 parts, 6 counts a group: epsilon = 1, Laplace scale 2
    STATE+PUMA (3 groups)
      number of rows: epsilon = 1, Laplace scale 1
      1 part, 2 counts a group: epsilon = 1, Laplace scale 1
    """
    if task.budget.kind != "pure":
        raise PradeError(
            f"the paper's system adds Laplace noise for a pure budget, got {task.budget}: give Budget.pure(...)"
        )
    if len(task.levels) != 2:
        raise PradeError(
            f'the paper\'s system has two levels, got {len(task.levels)}: give two, as in ["STATE", "PUMA"]'
        )
    chosen = published_workloads(public) if workloads is None else workloads
    levels = [Level(by, Ask(workload, 1), total=1) for by, workload in zip(task.levels, chosen, strict=True)]
    return Plan.of(task, levels)


def published_estimates(
    release: Release, public: Public, seed: int, *, projection: Projection = "euclidean", threads: int = 1
) -> Iterator[GroupEstimate]:
    """The estimates of the last level's groups, in order, each with its noisy number of rows.

    Counts are divided by that number. One below 1, of which the paper does not speak, is taken as 1 there: the answers
    then add up to more than everybody, and IDE's projection makes them shares again. `seed` is that of the random
    orders of IDE's steps; `threads` do not change the result.

    The release needs an asked total and parts at each level, as `published_plan` has them; there may be more than two
    levels. A group that asks for nothing that the public rows have keeps its parent's distribution.
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

    A group gets its noisy number of rows, rounded, and none where that is not positive. They are drawn from its
    estimate independently of each other. The result depends on the arguments only, not on `threads`.
    """
    drawn = []
    for found in published_estimates(release, public, seed, projection=projection, threads=threads):
        generator = np.random.default_rng([seed, len(release.plan.levels), found.group])  # no stream of IDE's
        drawn.append(generator.choice(len(public), max(round(found.total), 0), p=found.estimate.weights))
    rows = np.concatenate(drawn)
    coded = Coded(public.prior.schema, {name: code[rows] for name, code in public.prior.codes.items()})
    return coded, np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])


def asked_totals(release: Release, level: int) -> Floats:
    """The noisy numbers of rows that were asked for at a level, without what its parts say about them."""
    for question, noisy in zip(release.plan.questions, release.noisy, strict=True):
        if question.level == level and question.is_total:
            return noisy[0][:, 0].astype(np.float64)
    raise EstimationError(
        f"level {release.plan.levels[level].name} was not asked for its number of rows, by which the paper's system "
        "divides: make the plan with published_plan"
    )


def _level(
    release: Release, level: int, above: Sequence[Prior], parent_of: Ints, ide: IDE, threads: int
) -> Iterator[GroupEstimate]:
    """IDE for each group of a level, from its parent's distribution, each group with an order of its own."""
    totals = asked_totals(release, level)
    measured = [release.measurements(level, group) for group in range(len(totals))]
    if not measured[0]:
        raise EstimationError(
            f"level {release.plan.levels[level].name} was asked for no parts: make the plan with published_plan"
        )
    workload = Workload(release.plan.schema, [measurement.part for measurement in measured[0]])
    layout = Layout(above[0], workload, threads=threads)
    layouts = [layout.reweighted(prior) for prior in above]
    for group, total in enumerate(totals):
        parent = parent_of[group]
        seeded = replace(ide, seed=int(np.random.SeedSequence([ide.seed, level, group]).generate_state(1)[0]))
        estimate = seeded.fit(above[parent], measured[group], max(total, FEWEST_ROWS), layout=layouts[parent])
        yield GroupEstimate(group, float(total), estimate)
