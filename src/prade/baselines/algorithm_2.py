"""Algorithm 2 of the paper, as published: two levels, Laplace noise, IDE, independent draws.

    level    groups              questions about each group, with epsilon / 4 each
    1        for example STATE   number of rows;  W_S: cliques of columns with much mutual information
    2        PUMA and YEAR       number of rows;  W_G: one-way tables of columns with little mutual information

Counts are divided by the noisy number of rows measured at their level. IDE takes T = 2 x number of parts steps in
random order: a level-1 group starts from the public table, a level-2 group from the estimate of the level-1 group that
contains it. Each level-2 group gets its noisy number of rows, drawn from its estimate independently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from prade.core.arrays import Ints
from prade.core.errors import EstimationError, PradeError
from prade.core.execution import Execution
from prade.data.public.joint import Coded, Information, Prior
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.estimating.estimate import Estimate
from prade.estimating.layout import Layout
from prade.estimating.paper_estimators import IDE
from prade.planning.plan import Plan
from prade.planning.questions import Ask, Level
from prade.planning.task import Task
from prade.queries.workload import Workload
from prade.release.release import Release
from prade.sampling.draw import check_whole
from prade.sampling.row_files import RowFiles, write_batches
from prade.sampling.table import Batch, TableOfRows
from prade.tuning.mutual_information import MOST_CELLS, cliques, independent_columns, strongest_pairs

FEWEST_ROWS = 1.0  # counts are divided by at least this


class Estimated(NamedTuple):
    """A group of a level, its noisy number of rows, and its distribution on the public rows."""

    group: int
    total: float
    estimate: Estimate


@dataclass(frozen=True)
class Algorithm2:
    """The paper's method. `plan` and `rows` are its two halves, and `measure` comes between them.

    pairs: edges of the graph whose cliques are W_S; more edges make more parts, and noise grows with their number.
    one_way: tables of W_G, where groups are small. most_cells: of a part. projection: the paper does not say which of
    the L1-nearest answers to take; the Euclidean one does not depend on the current estimate. The least-KL projection
    does, and is better at small epsilon, but it is not part of what was published.
    """

    pairs: int = 40
    one_way: int = 8
    most_cells: int = MOST_CELLS
    projection: Literal["euclidean", "least-kl"] = "euclidean"

    def workloads(self, public: Public) -> tuple[Workload, Workload]:
        """W_S and W_G, chosen from the public table: see `prade.tuning.mutual_information`.

        >>> from prade import Schema
        >>> schema = Schema.from_mbi({"a": 2, "b": 2, "c": 2})
        >>> public = Public.of(schema, {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
        >>> upper, lower = Algorithm2(pairs=1).workloads(public)
        >>> [part.columns for part in upper], [part.columns for part in lower]
        ([('a', 'b'), ('c',)], [('a',), ('c',)])
        """
        schema = public.prior.schema
        known = Information.of(public.prior)
        together = cliques(schema, known, strongest_pairs(known, self.pairs), most_cells=self.most_cells)
        return Workload.marginals(schema, together), Workload.marginals(
            schema, independent_columns(known, self.one_way)
        )

    def plan(self, task: Task, public: Public, workloads: tuple[Workload, Workload] | None = None) -> Plan:
        """At each of two levels, epsilon / 4 for the number of rows and epsilon / 4 for the parts of its workload.

            b(total) = 4 rows / epsilon        b(parts) = 4 rows * number of parts / epsilon

        The task's levels are the group columns of the first level and those that the second adds, as in ["STATE",
        ("PUMA", "YEAR")]; if it has one level, the first one is everybody.
        """
        if task.budget.kind != "pure":
            raise PradeError(f"Algorithm 2 adds Laplace noise for a pure budget, got {task.budget}: give an epsilon")
        both = task.levels if len(task.levels) > 1 or not task.levels[0] else ((), *task.levels)
        if len(both) != 2:
            raise PradeError(f'Algorithm 2 has two levels, got {len(both)}: give two, as in ["STATE", "PUMA"]')
        if task.targets or task.invariants:
            raise PradeError("Algorithm 2 knows neither targets nor invariants: leave them out, or use prade's method")
        chosen = self.workloads(public) if workloads is None else workloads
        return Plan.of(task, [Level(by, Ask(asked, 1), total=1) for by, asked in zip(both, chosen, strict=True)])

    def estimates(self, release: Release, public: Public, seed: int) -> Iterator[Estimated]:
        """The last level's groups, in order.

        Counts are divided by the noisy number of rows. The paper does not say what to do with a number below 1; here
        counts are then divided by 1, so the shares may add up to more than 1, which IDE's projection corrects. `seed`
        determines the random order of IDE's steps. A group whose answers concern no public row keeps its parent's
        distribution.
        """
        check_whole(seed=seed)
        groupings, ide = release.plan.groupings, IDE(projection=self.projection, seed=seed)
        above = [public.prior]
        parent_of = np.zeros(len(groupings[0]), np.int64)
        for level, grouping in enumerate(groupings[:-1]):
            estimates = [each.estimate for each in _level(release, level, above, parent_of, ide)]
            above = [Prior(each.schema, each.codes, each.weights) for each in estimates]
            below = groupings[level + 1]
            parent_of = np.zeros(len(below), np.int64)
            parent_of[below.number] = grouping.number
        yield from _level(release, len(groupings) - 1, above, parent_of, ide)

    def rows(self, release: Release, public: Public, seed: int) -> tuple[Coded, Ints]:
        """The synthetic table, coded, and for each row the number of its group at the last level.

        A group gets its noisy number of rows, rounded, or none if that is not positive. They are drawn from its
        estimate independently.
        """
        drawn = [each for _, each in self._drawn(release, public, seed)]
        numbers = np.concatenate(drawn)
        coded = Coded(public.prior.schema, {name: code[numbers] for name, code in public.prior.codes.items()})
        return coded, np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])

    def write_rows(
        self, release: Release, table: PublicTable, seed: int, *, execution: Execution = Execution()
    ) -> RowFiles:
        """Write the synthetic rows to the release's folder, with values of public rows; the file names the method."""
        public, groups = table.rows(release.plan.schema, release.plan.groups), len(release.plan.groupings[-1])
        drawn = []
        for group, numbers in self._drawn(release, public, seed):
            drawn.append(numbers)
            execution.tell("sampling", group + 1, groups)
        sizes = np.array([len(each) for each in drawn])
        made = TableOfRows(release.plan, public, sizes, table, seed, method="Algorithm 2")
        return write_batches(release, made, [Batch(0, np.arange(groups), sizes, np.concatenate(drawn))])

    def _drawn(self, release: Release, public: Public, seed: int) -> Iterator[tuple[int, Ints]]:
        for each in self.estimates(release, public, seed):
            generator = np.random.default_rng([seed, len(release.plan.levels), each.group])  # not one of IDE's streams
            yield each.group, generator.choice(len(public), max(round(each.total), 0), p=each.estimate.weights)


def _level(release: Release, level: int, above: Sequence[Prior], parent_of: Ints, ide: IDE) -> Iterator[Estimated]:
    """IDE for each group of a level, starting from its parent's distribution, with a separate order of steps."""
    pairs = zip(release.plan.questions, release.noisy, strict=True)
    asked = next((noisy[0] for question, noisy in pairs if question.level == level and question.is_total), None)
    if asked is None:  # a number that is derived from parts is none
        raise EstimationError(
            f"level {release.plan.levels[level].name} has no measured number of rows, by which Algorithm 2 divides: "
            "make the plan with Algorithm2().plan"
        )
    totals = asked[:, 0].astype(np.float64)
    measured = [release.measurements(level, group) for group in range(len(totals))]
    if not measured[0]:
        raise EstimationError(
            f"level {release.plan.levels[level].name} has no measured parts: make the plan with Algorithm2().plan"
        )
    workload = Workload(release.plan.schema, [measurement.part for measurement in measured[0]])
    layout = Layout(above[0], workload)
    layouts = [layout.reweighted(prior) for prior in above]
    for group, total in enumerate(totals):
        parent = parent_of[group]
        seeded = replace(ide, seed=int(np.random.SeedSequence([ide.seed, level, group]).generate_state(1)[0]))
        estimate = seeded.fit(above[parent], measured[group], max(total, FEWEST_ROWS), layout=layouts[parent])
        yield Estimated(group, float(total), estimate)
