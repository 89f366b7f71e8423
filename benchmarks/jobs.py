"""Three jobs on real tables, run and scored alike: what the accuracy benchmarks share.

A run is real: counts from the private file, exact noise through `measure`, a ledger, a release folder. The score looks
at the truth, which only a benchmark may. Finished runs are kept in benchmarks/out, so an interrupted benchmark goes on.
"""

from __future__ import annotations

import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from common import DATA, OUT, ROOT
from prade import Budget, Groups, Ledger, Plan, Release, Schema, Task, Unit
from prade.baselines.algorithm_2 import Algorithm2
from prade.core.arrays import mass_by_group
from prade.core.execution import Execution, cores
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Coded, encode
from prade.data.public.public import Public, group_columns
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import Estimates
from prade.measuring.run import measure
from prade.pipeline import sample
from prade.planning.settings import Settings
from prade.sampling.table import sample_groups
from prade.scoring.distances import distances_of
from prade.scoring.evaluation import public_errors
from prade.scoring.score import Score, chosen_pairs, score
from prade.tuning.tune import Tuned, tune

THREADS = cores()
TUNING = 30  # effort
PATIENCE = 3600  # seconds that it may take on a busy machine
ALGORITHM_2 = "baselines"  # a room that decides none of prade's own results
ONLY_SHOW = "cli", "reporting"  # rooms that decide no result


@dataclass(frozen=True, eq=False)
class Job:
    """A public table, a private one, a list of groups, levels."""

    name: str
    schema: Schema
    public: Path
    private: Path
    groups: Any
    levels: tuple[str | tuple[str, ...], ...]
    unit: Unit

    @cached_property
    def rows(self) -> Public:
        return Public.of(self.schema, self.public, group_columns(self.listed, self.schema))

    @cached_property
    def listed(self) -> Groups:
        return Groups.of(self.groups)

    @cached_property
    def truth(self) -> tuple[Coded, np.ndarray]:
        table = read_table(self.private, guess=False)
        level = self.listed.level(self.listed.names)
        return encode(self.schema, table), self.listed.keyed(table.column_names, level.number).numbers(table)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return chosen_pairs(self.schema.coded, "all")

    def score(self, coded: Coded, group: np.ndarray) -> dict[str, float]:
        """Mean distance, as the contest has it but over all pairs, and how many groups were off by 250 rows."""
        found = self.scored(coded, group)
        return {"error": found.mean, "biased": found.why.count("bias"), "raw": float(np.nanmean(found.detail))}

    def scored(self, coded: Coded, group: np.ndarray) -> Score:
        """The contest's score of coded rows, over all pairs."""
        return score(
            self.truth, (coded, group), self.schema, self.listed.names, groups=self.listed, pairs="all", threads=THREADS
        )

    def prior_error(self) -> float:
        """The error of the public baseline: the rows of the same group if there are any, or else all of them."""
        level = self.listed.level(self.listed.names)
        return float(public_errors(self.truth, self.rows, level, self.pairs, threads=THREADS).mean(axis=1).mean())

    def distance(self, weights_of: Callable[[int], np.ndarray], every: int = 1, rows: Public | None = None) -> float:
        """Mean distance of distributions on the public rows, or on others, one a group, from the truth: no sampling."""
        prior = (rows or self.rows).prior
        coded, group = self.truth
        errors = []
        for number in range(0, len(self.listed), every):
            mine = {name: code[group == number] for name, code in coded.codes.items()}
            errors.append(distances_of(mine, prior, self.pairs, weights_of(number), threads=THREADS).mean())
        return float(np.mean(errors))

    # ---------------------------------------------------------------- runs

    def tuned(self, budget: str | Budget) -> Tuned:
        """The plan for a budget or an epsilon, from public data alone."""
        return tune(self.task(budget), self.rows, effort=TUNING, seconds=PATIENCE, execution=Execution(THREADS))

    def task(self, budget: str | Budget) -> Task:
        """What a release for a budget is for."""
        groups = self.listed if self.levels else None
        return Task(self.name, self.schema, budget, self.unit, self.levels, groups)

    def ours(self, plan: Plan, seed: int) -> dict[str, Any]:
        """One run of the default, from file to file."""
        with tempfile.TemporaryDirectory() as folder:
            place, began = Path(folder), time.perf_counter()
            release = self.release(plan, place)
            table = sample(release, self.public, seed=seed, execution=Execution(THREADS))
            write_table(table, place / "synthetic.parquet")
            seconds = time.perf_counter() - began
            keyed = self.listed.keyed(self.listed.names, self.listed.level(self.listed.names).number)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            number = keyed.numbers(table) if self.listed.names else np.zeros(table.num_rows, np.int64)
            return {**self.score(encode(self.schema, table), number), "seconds": seconds, "GiB": memory}

    def prior_drawn(self, plan: Plan, seed: int) -> dict[str, Any]:
        """The public table published in our place: as many rows as our release would give each group, drawn as ours."""
        with tempfile.TemporaryDirectory() as folder:
            settings = replace(plan.settings or Settings(), extra=0.0, unseen=False)
            found = Estimates.of(self.release(plan, Path(folder)), self.rows, settings, execution=Execution(THREADS))
            rows = found.support.public  # large tables are thinned
            own, weights = RecurringGroups.of(rows.groups, plan.groupings[-1]), rows.prior.weights

            def as_it_is(_: int, group: int) -> np.ndarray:
                mine = np.where(own.rows(rows.group, group), weights, 0.0) if own.recurs[group] else weights
                return mine / mine.sum()

            found.weights = as_it_is  # in the place of what was estimated
            return self.score(*sample_groups(found, seed, execution=Execution(THREADS)))

    def published(self, epsilon: str, seed: int, projection: Any) -> dict[str, Any]:
        """One run of Algorithm 2 as published."""
        plan = Algorithm2(projection=projection).plan(self.task(epsilon), self.rows)
        with tempfile.TemporaryDirectory() as folder:
            release = self.release(plan, Path(folder))
            return self.score(*Algorithm2(projection=projection).rows(release, self.rows, seed))

    def release(self, plan: Plan, folder: Path) -> Release:
        ledger = Ledger(folder / "ledger")
        ledger.open_dataset(plan.dataset, plan.unit, plan.budget)
        # Weak protection may be asked for, because these tables are public.
        return measure(
            plan, self.private, folder / "release", ledger, execution=Execution(THREADS), weak_protection=True
        )

    def where_from(self, plan: Plan, seed: int) -> dict[str, float]:
        """The error in steps, on some 40 groups: exact answers, noisy ones, rows drawn; and what no row can reach."""
        every = max(1, len(self.listed) // 40)
        with tempfile.TemporaryDirectory() as folder:
            release = self.release(plan, Path(folder))
            noisy = Estimates.of(release, self.rows, plan.settings, execution=Execution(THREADS))
            exact = Estimates.of(self.without_noise(release), self.rows, plan.settings, execution=Execution(THREADS))
            last = len(plan.levels) - 1
            rows = sample_groups(noisy, seed, execution=Execution(THREADS))
            return {
                "exact answers": self.distance(lambda group: exact.weights(last, group), every, exact.support.public),
                "noisy answers": self.distance(lambda group: noisy.weights(last, group), every, noisy.support.public),
                "rows": float(np.nanmean(self.scored(*rows).detail[::every])),
                "unreachable": self.unreachable(),
            }

    def without_noise(self, release: Release) -> Release:
        """The true counts of a release's questions, which the benchmark knows, with next to no noise declared."""
        coded, group = self.truth
        asked, inside = release.plan, group >= 0
        plan = Plan(
            asked.dataset, asked.schema, asked.budget * 10**6, asked.unit, asked.levels, asked.groups,
            settings=asked.settings, noise=asked.law,
        )  # fmt: skip
        answers = []
        for question in plan.questions:
            level, last = plan.groupings[question.level], plan.groupings[-1]
            mine, counted = last.above(level)[group[inside]], []
            for part in question.parts:
                cells = part.cells(self.schema, coded.codes)[inside]
                counted.append(mass_by_group(mine, len(level), cells, part.n_cells))
            answers.append(tuple(counted))
        return Release(release.path / "nowhere", plan, tuple(answers))

    def unreachable(self) -> float:
        """Mean true mass of pairs' cells in which there is no public row: a bound for anything made of those rows."""
        coded, group = self.truth
        missed = []
        for a, b in self.pairs:
            size = self.schema.size(b)
            cell = coded.codes[a].astype(np.int64) * size + coded.codes[b]
            public = self.rows.prior.codes[a].astype(np.int64) * size + self.rows.prior.codes[b]
            seen = np.zeros(self.schema.size(a) * size, np.bool_)
            seen[public] = True
            rows = np.bincount(group[group >= 0], minlength=len(self.listed))
            lost = np.bincount(group[(group >= 0) & ~seen[cell]], minlength=len(self.listed))
            missed.append((lost / np.maximum(rows, 1)).mean())
        return float(np.mean(missed))


def seconds_of(job: Job, plan: Plan, groups: int, share: float) -> dict[str, float]:
    """Time of estimating and of drawing rows, for the first groups of the list and a share of the public rows."""
    listed = {name: values[:groups] for name, values in job.listed.to_dict().items()}
    rows = np.random.default_rng(0).permutation(len(job.rows))[: round(share * len(job.rows))]
    public = job.rows.take(np.sort(rows))
    asked = Plan(
        plan.dataset, plan.schema, plan.budget, plan.unit, plan.levels, listed, settings=plan.settings, noise=plan.law
    )
    with tempfile.TemporaryDirectory() as folder:
        release = job.release(asked, Path(folder))
        began = time.perf_counter()
        estimates = Estimates.of(release, public, plan.settings, execution=Execution(THREADS))
        between = time.perf_counter()
        sample_groups(estimates, 0, execution=Execution(THREADS))
        return {"estimating": between - began, "sampling": time.perf_counter() - between}


def acs(max_rows: int = 1) -> Job:
    """New York and Pennsylvania from Illinois and Ohio."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    files = DATA / "acs2024_il_oh.parquet", DATA / "acs2024_ny_pa.parquet", DATA / "acs2024_ny_pa_geography.csv"
    name = "acs" if max_rows == 1 else f"acs{max_rows}"
    return Job(name, schema, *files, ("STATE", "PUMA"), Unit(max_rows))


def nist(name: str = "nist", **infer: Any) -> Job:
    """2019 from 2018, the same places; the schema is inferred from 2018."""
    files = DATA / "nist_national2018.csv.gz", DATA / "nist_national2019.csv.gz"
    schema = Schema.infer(files[0], groups=["PUMA"], **infer)
    places = sorted(set(read_table(files[0], ["PUMA"])["PUMA"].to_pylist()))
    return Job(name, schema, *files, {"PUMA": places}, ((), "PUMA"), Unit(1))


def texas() -> Job:
    """A bad prior: Texas from a national table, no levels."""
    files = DATA / "nist_national2019.csv.gz", DATA / "nist_tx2019.csv.gz"
    schema = Schema.infer(files[0], groups=["PUMA"])  # a public group column; the plan has no levels
    return Job("texas", schema, *files, None, (), Unit(1))


def sources(*rooms: str) -> list[Path]:
    """The source files of some rooms; of the whole package, if none is named."""
    return sorted(file for room in rooms or (".",) for file in (ROOT / "src" / "prade" / room).rglob("*.py"))


@cache
def code() -> str:
    """A fingerprint of all code that decides prade's own results."""
    left_out = set(sources(ALGORITHM_2, *ONLY_SHOW))
    files = [file for file in sources() if file not in left_out]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def kept(name: str, key: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of a run, or the one that an earlier benchmark of the same code kept under this key."""
    OUT.mkdir(exist_ok=True)
    file = OUT / f"{name}.jsonl"
    if file.exists():
        for line in file.read_text().splitlines():
            found: dict[str, Any] = json.loads(line)
            if (found["key"], found.get("code")) == (key, code()):
                return found
    began = time.perf_counter()
    result = {"key": key, "code": code(), **run()}
    result["took"] = time.perf_counter() - began
    with open(file, "a") as end:
        end.write(json.dumps(result) + "\n")
    print(json.dumps(result), flush=True)
    return result
