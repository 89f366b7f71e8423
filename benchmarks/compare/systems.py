"""The systems of the comparison: each makes coded rows, and the group of each, for one job, epsilon and seed.

Systems that treat groups one by one spend the whole epsilon in each of them, which costs no more than that: a person is
in one group. They take the first groups of an order drawn once, as many as the time allows; errors are then of those,
and times are multiplied up to all.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from accuracy import plan_for
from compare.box import Limits, peak_gib
from compare.gem import GEMPub
from compare.methods import MWEM, Histogram, Method, PrivBayes
from compare.rehearsal import Make, asked, low_marginals, mixed, rehearsed
from jobs import THREADS, Job
from prade import Budget, Column, Plan, Release, Schema
from prade.baselines.algorithm_2 import Algorithm2
from prade.core.errors import PradeError
from prade.core.execution import Execution
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Coded, Joint, Prior, encode
from prade.data.read.tables import read_table, write_table
from prade.pipeline import sample
from prade.sampling.draw import SortedRows
from prade.sampling.draw import sample as drawn_rows
from prade.scoring.evaluation import public_errors

DELTA = "1e-9"
GROUP = "GROUP"  # the column that the groups are where a system knows columns only
MOST_GROUPS = Limits.groups


@dataclass(eq=False)
class Drawn:
    """What a run made, and what it took; `done` are the groups it did, all unless it says which."""

    rows: tuple[Coded, np.ndarray] | None
    seconds: float
    gib: float = field(default_factory=peak_gib)
    done: list[int] | None = None
    errors: np.ndarray | None = None  # of the groups, where there are no rows to score
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Task:
    """One run: what, for which epsilon, with which seed, in how many seconds and for how many groups at most."""

    job: Job
    epsilon: str
    seed: int
    seconds: float
    most: int = MOST_GROUPS  # groups, where they are treated one by one
    began: float = field(default_factory=time.perf_counter)
    marks: list[float] = field(default_factory=list)  # when each group began
    _ordered: tuple[Any, Any] = (None, None)  # the last rows that were drawn from, and their order

    @property
    def budget(self) -> Budget:
        return Budget.pure(self.epsilon)

    @cached_property
    def plan(self) -> Plan:
        return plan_for(self.job, self.epsilon)[0]

    def in_turn(self) -> Iterator[int]:
        """Groups in an order drawn once for all, until three quarters of the time are used; one at least."""
        for place, group in enumerate(np.random.default_rng(0).permutation(len(self.job.listed))[: self.most]):
            self.marks.append(time.perf_counter())
            if place and self.marks[-1] - self.began > 0.75 * self.seconds:
                return
            yield int(group)

    def private_groups(self) -> Iterator[tuple[int, pa.Table]]:
        """The private rows of those groups, each as a table."""
        table, level = read_table(self.job.private, guess=False), self.job.listed.level(self.job.listed.names)
        number = self.job.listed.keyed(table.column_names, level.number).numbers(table)
        for group in self.in_turn():
            yield group, table.filter(pa.array(number == group))

    @cached_property
    def own(self) -> RecurringGroups:
        return RecurringGroups.of(self.job.rows.groups, self.job.listed.level(self.job.listed.names))

    def rows(self, group: int) -> Prior:
        """The public rows that a group starts from, one by one: its own, or all where it has none."""
        if not self.own.recurs[group] or not self.job.listed.names:
            return self.job.rows.prior
        return self.job.rows.take(np.flatnonzero(self.own.rows(self.job.rows.group, group))).prior

    def prior(self, group: int, own: float) -> Prior:
        """Those rows with weight `own` and all public rows with the rest, equal ones as one."""
        mine = self.rows(group)
        return self.everywhere if mine is self.job.rows.prior else mixed(mine, self.everywhere, own)

    @cached_property
    def everywhere(self) -> Prior:
        """All public rows, equal ones as one."""
        return Prior.from_joint(self.job.rows.prior)

    def sampled(self, joint: Joint, total: float) -> Coded:
        """Rows of a distribution, drawn as ours are."""
        first = joint.codes[self.job.schema.coded[0]]
        if self._ordered[0] is not first:  # one order for all distributions on the same rows
            self._ordered = first, SortedRows(joint.codes, self.job.schema)
        rows = drawn_rows(self._ordered[1], joint.weights, max(round(total), 0), self.seed)
        return Coded(joint.schema, {name: code[rows] for name, code in joint.codes.items()})


def joined(parts: dict[int, Coded]) -> tuple[Coded, np.ndarray]:
    """The rows of groups together, and the group of each."""
    first = next(iter(parts.values()))
    codes = {name: np.concatenate([each.codes[name] for each in parts.values()]) for name in first.codes}
    return Coded(first.schema, codes), np.repeat(list(parts), [len(each) for each in parts.values()])


def extrapolated(task: Task, began: float, done: dict[int, Coded]) -> Drawn:
    """Some groups, and the time that all would take; what the first one took beyond the others is taken once."""
    groups, end = len(task.job.listed), time.perf_counter()
    took = np.diff([*task.marks[: len(done)], end])
    usual = took[1:].mean() if len(took) > 1 else took[0]
    seconds = task.marks[0] - began + max(took[0] - usual, 0.0) + usual * groups
    some = list(done) if len(done) < groups else None
    return Drawn(joined(done), float(seconds), done=some, notes={"own seconds": end - began})


# ---------------------------------------------------------------------- prade, the paper, nothing


def prade(task: Task) -> Drawn:
    """The default, from file to file."""
    return measured(task, task.plan)


def prade_approximate(task: Task) -> Drawn:
    """The default under the promise that MST and AIM make."""
    return measured(task, plan_for(task.job, Budget.approx(task.epsilon, DELTA))[0])


def measured(task: Task, plan: Plan) -> Drawn:
    """A plan of prade's, from file to file."""
    job = task.job
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        release = job.release(plan, Path(folder))
        table = sample(release, job.public, seed=task.seed, execution=Execution(THREADS))
        write_table(table, Path(folder) / "synthetic.parquet")
        drawn = Drawn(None, time.perf_counter() - began)
    number = np.zeros(table.num_rows, np.int64)
    if job.listed.names:
        number = job.listed.keyed(job.listed.names, job.listed.level(job.listed.names).number).numbers(table)
    return replace(drawn, rows=(encode(job.schema, table), number))


def published(task: Task) -> Drawn:
    """Algorithm 2, workloads chosen from the public table as published."""
    job = task.job
    began = time.perf_counter()
    plan = Algorithm2().plan(job.task(task.budget), job.rows)
    with tempfile.TemporaryDirectory() as folder:
        rows = Algorithm2().rows(job.release(plan, Path(folder)), job.rows, task.seed, threads=THREADS)
    return Drawn(rows, time.perf_counter() - began)


def prior(task: Task) -> Drawn:
    """The public baseline."""
    job, began = task.job, time.perf_counter()
    level = job.listed.level(job.listed.names)
    errors = public_errors(job.truth, job.rows, level, job.pairs, threads=THREADS).mean(axis=1)
    return Drawn(None, 0.0, 0.0, errors=errors, notes={"scoring": time.perf_counter() - began})


# ---------------------------------------------------------------------- other methods


def _settled(settings: dict[str, float]) -> dict[str, Any]:
    """What a rehearsal chose, as arguments of MWEM."""
    return {
        "rounds": int(settings["rounds"]),
        "passes": int(settings["passes"]),
        "total_share": settings["total_share"],
    }


LEARNERS: dict[str, Make] = {
    "mwem": lambda workload, chosen: MWEM(workload, **_settled(chosen)),
    "pmw-average": lambda workload, chosen: MWEM(workload, **_settled(chosen), public=True),
    "pmw-last": lambda workload, chosen: MWEM(workload, **_settled(chosen), public=True, last=True),
    "gem-pub": lambda workload, chosen: GEMPub(
        workload, rounds=int(chosen["rounds"]), total_share=chosen["total_share"], average=False
    ),
}


def rehearse(name: str, task: Task) -> dict[str, Any]:
    """The settings of one of the learners, made once and kept."""
    return rehearsed(LEARNERS[name], name, task.job, task.epsilon)


def learn(name: str, settings_of: str, task: Task) -> Drawn:
    """MWEM, PMW^Pub or GEM^Pub, group by group, with the settings that a rehearsal on public groups found best."""
    job, chosen = task.job, rehearse(settings_of, task)
    began = time.perf_counter()
    method, done = LEARNERS[name](low_marginals(job.schema), chosen["settings"]), dict[int, Coded]()
    for number, mine in task.private_groups():
        found, total = asked(method, task.prior(number, chosen["settings"]["own"]), mine, task.epsilon, job)
        done[number] = task.sampled(found, total)
    drawn = extrapolated(task, began, done)
    settings = ", ".join(f"{setting} {value:g}" for setting, value in chosen["settings"].items())
    return replace(drawn, notes={**drawn.notes, "settings": settings})


def tuned(task: Task) -> dict[str, Any]:
    """The plan of prade's tuner, made once and kept."""
    return plan_for(task.job, task.epsilon)[1]


def tuned_approximate(task: Task) -> dict[str, Any]:
    """The plan of prade's tuner for (epsilon, delta), made once and kept."""
    return plan_for(task.job, Budget.approx(task.epsilon, DELTA))[1]


def with_group_column(job: Job) -> tuple[Schema, pa.Table]:
    """The schema and the private table with the groups as one more categorical column, where there are several."""
    table = read_table(job.private, guess=False)
    groups = len(job.listed)
    if groups == 1:
        return job.schema, table
    number = job.listed.keyed(table.column_names, job.listed.level(job.listed.names).number).numbers(table)
    column = Column(GROUP, "categorical", values=tuple(range(groups)))
    listed = table.append_column(GROUP, pa.array(number)).filter(pa.array(number >= 0))
    return Schema([*job.schema, column]), listed


def whole(method: Method, task: Task) -> Drawn:
    """A method that looks at the whole table at once and starts from nothing."""
    began = time.perf_counter()
    schema, table = with_group_column(task.job)
    codes = from_nothing(method, schema, table, task)
    return Drawn(by_group(task.job, codes), time.perf_counter() - began)


def each_place(method: Method, task: Task) -> Drawn:
    """The same for the table of each place, with the whole epsilon: a person is in one place."""
    began, schema = time.perf_counter(), task.job.schema
    tables = {group: from_nothing(method, schema, table, task) for group, table in task.private_groups()}
    return extrapolated(task, began, {group: Coded(schema, codes) for group, codes in tables.items()})


def from_nothing(method: Method, schema: Schema, table: pa.Table, task: Task) -> dict[str, np.ndarray]:
    """Codes of a method's rows; each row of its estimate as often as its weight says, or once more."""
    columns = Prior(schema, {name: np.zeros(1, np.int64) for name in schema.coded}, np.ones(1))
    found, total = asked(method, columns, table, task.epsilon, task.job)
    start = np.random.default_rng(task.seed).random()
    ends = np.floor(np.append(0.0, np.cumsum(found.weights)) * round(total) + start)
    rows = np.repeat(np.arange(len(found.weights)), np.diff(ends).astype(np.int64))
    return {name: code[rows] for name, code in found.codes.items()}


def by_group(job: Job, codes: dict[str, np.ndarray]) -> tuple[Coded, np.ndarray]:
    """Rows whose group is a column of theirs."""
    group = codes.get(GROUP, np.zeros(len(next(iter(codes.values()))))).astype(np.int64)
    return Coded(job.schema, {name: codes[name] for name in job.schema.coded}), group


def histogram(task: Task) -> Drawn:
    return whole(Histogram(), task)


def privbayes(task: Task) -> Drawn:
    return whole(PrivBayes(seed=task.seed), task)


def privbayes_each_place(task: Task) -> Drawn:
    return each_place(PrivBayes(seed=task.seed), task)


def released(task: Task, folder: Path) -> Release:
    """The very measurements that prade makes."""
    if not task.plan.questions:
        raise PradeError("the plan asks for nothing")
    return task.job.release(task.plan, folder)
