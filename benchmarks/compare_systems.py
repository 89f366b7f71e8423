"""The systems of the comparison: each makes coded rows, and the group of each, for one job, epsilon and seed.

Systems that treat groups one by one spend the whole epsilon in each of them, which costs no more than that: a person is
in one group. Where groups take long, they are taken in an order drawn once, as many as the time allows; errors are then
of those, and times are multiplied up to all.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from accuracy import plan_for
from compare_box import peak_gib
from jobs import THREADS, Job, kept
from prade import Budget, Coded, Column, Ledger, Plan, Prior, Release, Schema, Workload, encode
from prade.baselines import MWEM, Baseline, Histogram, PMWPub, PrivBayes, run
from prade.errors import PradeError
from prade.evaluate import joint_errors, public_errors
from prade.joint import Joint
from prade.published import published_plan, published_rows
from prade.same_groups import SameGroups
from prade.sample import ordering, sample
from prade.synthesize import synthesize
from prade.tables import read_table, write_table

DELTA = "1e-9"
GROUP = "GROUP"  # the column that the groups are where a system knows columns only
MOST_GROUPS = 24
ROUNDS = (2, 5, 10, 20, 40)
REHEARSED = 3  # public groups
REHEARSAL_ROWS = 20_000


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
    """One run: what, for which epsilon, with which seed, in how many seconds at most."""

    job: Job
    epsilon: str
    seed: int
    seconds: float
    began: float = field(default_factory=time.perf_counter)

    @property
    def budget(self) -> Budget:
        return Budget.pure(self.epsilon)

    @cached_property
    def plan(self) -> Plan:
        return plan_for(self.job, self.epsilon)[0]

    def in_turn(self) -> Iterator[int]:
        """Groups in an order drawn once for all, until three quarters of the time are used; one at least."""
        for place, group in enumerate(np.random.default_rng(0).permutation(len(self.job.listed))[:MOST_GROUPS]):
            if place and time.perf_counter() - self.began > 0.75 * self.seconds:
                return
            yield int(group)

    @cached_property
    def own(self) -> SameGroups:
        return SameGroups.of(self.job.rows, self.job.listed.level(self.job.listed.names))

    def prior(self, group: int) -> Prior:
        """The public rows that a group starts from, as `public_errors` has them: its own, or else all."""
        if not self.own.found[group] or not self.job.listed.names:
            return self.job.rows.prior
        return self.job.rows.take(np.flatnonzero(self.own.rows(self.job.rows, group))).prior

    def sampled(self, joint: Joint, total: float) -> Coded:
        """Rows of a distribution, drawn as ours are."""
        key = id(joint.codes[self.job.schema.coded[0]])  # one order for all distributions on the same rows
        if key not in self._orders:
            self._orders[key] = ordering(joint.codes, self.job.schema)
        return sample(joint, max(round(total), 0), self.seed, order=self._orders[key])

    @cached_property
    def _orders(self) -> dict[int, np.ndarray]:
        return {}


def joined(parts: dict[int, Coded]) -> tuple[Coded, np.ndarray]:
    """The rows of groups together, and the group of each."""
    first = next(iter(parts.values()))
    codes = {name: np.concatenate([each.codes[name] for each in parts.values()]) for name in first.codes}
    return Coded(first.schema, codes), np.repeat(list(parts), [len(each) for each in parts.values()])


def extrapolated(task: Task, began: float, done: dict[int, Coded]) -> Drawn:
    """Some groups, and the time that all would take."""
    groups, taken = len(task.job.listed), time.perf_counter() - began
    some = list(done) if len(done) < groups else None
    return Drawn(joined(done), taken * groups / len(done), done=some, notes={"own seconds": taken})


# ---------------------------------------------------------------------- prade, the paper, nothing


def prade(task: Task) -> Drawn:
    """The default, from file to file."""
    job, plan = task.job, task.plan
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        release = job.release(plan, Path(folder))
        table = synthesize(release, job.public, settings=plan.settings, seed=task.seed, threads=THREADS)
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
    plan = published_plan(job.name, job.schema, task.budget, job.unit, job.levels, job.listed, job.rows)
    with tempfile.TemporaryDirectory() as folder:
        rows = published_rows(job.release(plan, Path(folder)), job.rows, task.seed, threads=THREADS)
    return Drawn(rows, time.perf_counter() - began)


def prior(task: Task) -> Drawn:
    """The public rows as they are."""
    job, began = task.job, time.perf_counter()
    level = job.listed.level(job.listed.names)
    errors = public_errors(job.truth, job.rows, level, "all", threads=THREADS)
    return Drawn(None, 0.0, 0.0, errors=errors, notes={"scoring": time.perf_counter() - began})


# ---------------------------------------------------------------------- baselines


def asked(baseline: Baseline, prior: Prior, table: pa.Table, epsilon: Any, job: Job) -> tuple[Joint, float]:
    """A baseline's estimate of one table through the door, and its number of rows; a ledger for each table."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger")
        ledger.open_dataset(job.name, job.unit, Budget.pure(epsilon))
        estimate = run(
            baseline, prior, table, Path(folder) / "answers.json", ledger,
            dataset=job.name, budget=Budget.pure(epsilon), unit=job.unit,
        )  # fmt: skip
    return estimate, estimate.report.total


def learnt(make: Callable[[Workload, int], MWEM], name: str, task: Task) -> Drawn:
    """MWEM or PMW^Pub, group by group, with as many rounds as a rehearsal on public groups found best."""
    job = task.job
    rounds = rehearsed(make, name, job, task.epsilon)
    table = read_table(job.private, guess=False)
    group = job.listed.keyed(table.column_names, job.listed.level(job.listed.names).number).numbers(table)
    began, done = time.perf_counter(), dict[int, Coded]()
    for number in task.in_turn():
        mine = table.filter(pa.array(group == number))
        found, total = asked(make(low_marginals(job.schema), rounds), task.prior(number), mine, task.epsilon, job)
        done[number] = task.sampled(found, total)
    drawn = extrapolated(task, began, done)
    return replace(drawn, notes={**drawn.notes, "rounds": rounds})


def low_marginals(schema: Schema) -> Workload:
    """All one- and two-way marginals: what is scored, and what noise hurts least."""
    return Workload(schema, [*Workload.all_marginals(schema, 1), *Workload.all_marginals(schema, 2)])


def rehearsed(make: Callable[[Workload, int], MWEM], name: str, job: Job, epsilon: str) -> int:
    """The number of rounds that did best where public rows played the private ones.

    As prade's tuner has it: where the public table has the same groups, half of a group's rows play against the other
    half; else one group plays against the others. Epsilon is scaled so that noise is, beside the rows that play, what
    it will be beside a private group's.
    """

    def task() -> dict[str, Any]:
        public, rng = job.rows, np.random.default_rng(0)
        raw = read_table(job.public, guess=False)
        sizes, half = np.bincount(public.group), rng.random(len(public)) < 0.5
        level = job.listed.level(job.listed.names)
        same = bool(job.listed.names) and SameGroups.of(public, level).found.mean() > 0.5
        errors = dict[str, float]()
        for rounds in ROUNDS:
            found = []
            for group in rng.permutation(np.flatnonzero(sizes >= 100))[:REHEARSED]:
                whole = public.group == group
                mine, others = (whole & half, whole & ~half) if same else (whole, ~whole)
                start = public.take(rng.permutation(np.flatnonzero(others))[:REHEARSAL_ROWS]).prior
                truth = Coded(job.schema, {name: code[mine] for name, code in public.prior.codes.items()})
                scaled = round(float(epsilon) * len(public) / len(job.listed) / mine.sum(), 6)
                baseline = make(low_marginals(job.schema), rounds)
                estimate, _ = asked(baseline, start, raw.filter(pa.array(mine)), str(scaled), job)
                found.append(joint_errors(truth, estimate, "all").mean())
            errors[str(rounds)] = float(np.mean(found))
        return {"errors": errors, "rounds": int(min(errors, key=lambda each: errors[each]))}

    return int(kept("compare-rounds", f"{job.name} {name} {epsilon} {ROUNDS}", task)["rounds"])


def mwem(task: Task) -> Drawn:
    return learnt(lambda workload, rounds: MWEM(workload, rounds), "mwem", task)


def pmw_average(task: Task) -> Drawn:
    return learnt(lambda workload, rounds: PMWPub(workload, rounds), "pmw-average", task)


def pmw_last(task: Task) -> Drawn:
    return learnt(lambda workload, rounds: PMWPub(workload, rounds, iterate="last"), "pmw-last", task)


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


def whole(baseline: Baseline, task: Task) -> Drawn:
    """A baseline that looks at the whole table at once and starts from nothing."""
    began = time.perf_counter()
    schema, table = with_group_column(task.job)
    columns = Prior(schema, {name: np.zeros(1, np.int64) for name in schema.coded}, np.ones(1))
    found, total = asked(baseline, columns, table, task.epsilon, task.job)
    rows = np.repeat(np.arange(len(found.weights)), np.rint(found.weights * total).astype(np.int64))
    codes = {name: code[rows] for name, code in found.codes.items()}
    return Drawn(by_group(task.job, codes), time.perf_counter() - began)


def by_group(job: Job, codes: dict[str, np.ndarray]) -> tuple[Coded, np.ndarray]:
    """Rows whose group is a column of theirs."""
    group = codes.get(GROUP, np.zeros(len(next(iter(codes.values()))))).astype(np.int64)
    return Coded(job.schema, {name: codes[name] for name in job.schema.coded}), group


def histogram(task: Task) -> Drawn:
    return whole(Histogram(), task)


def privbayes(task: Task) -> Drawn:
    return whole(PrivBayes(seed=task.seed), task)


def released(task: Task, folder: Path) -> Release:
    """The very measurements that prade makes."""
    if not task.plan.questions:
        raise PradeError("the plan asks for nothing")
    return task.job.release(task.plan, folder)
