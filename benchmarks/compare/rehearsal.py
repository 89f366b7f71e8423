"""How the methods that start from public rows get their settings: by a rehearsal on public rows, as prade does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from compare.asking import Table
from compare.methods import Method
from jobs import Job, kept
from prade import Schema, Workload
from prade.data.declare.groups import RecurringGroups
from prade.data.public.joint import Coded, Prior
from prade.data.read.tables import read_table
from prade.scoring.distances import mean_distance
from prade.scoring.score import chosen_pairs

REHEARSED = 4  # public groups
REHEARSAL_ROWS = 20_000
# What a rehearsal chooses from, one setting after the other, the first value being the one to begin with. When the most
# rounds are best, twice as many are tried.
CHOICES: dict[str, tuple[float, ...]] = {
    "rounds": (10, 1, 2, 5, 20, 40),
    "passes": (20, 5, 1),
    "total_share": (0.05, 0.2, 0.4),
    "own": (1.0, 0.8),  # the weight of the group's own public rows, the rest being all public rows
}

Make = Callable[[Workload, dict[str, float]], Method]


def asked(method: Method, prior: Prior, rows: pa.Table, epsilon: Any, job: Job) -> tuple[Prior, float]:
    """A method's estimate of one table, and its number of rows."""
    return method.ask(prior, Table(rows, prior.schema, job.unit, epsilon))


def mixed(own: Prior, all_rows: Prior, share: float) -> Prior:
    """Some rows with this share of the weight, and all with the rest."""
    codes = {name: np.concatenate([code, all_rows.codes[name]]) for name, code in own.codes.items()}
    weights = np.concatenate([share * own.weights, (1 - share) * all_rows.weights])
    return Prior.from_joint(Coded(own.schema, codes, weights))


def low_marginals(schema: Schema) -> Workload:
    """All one- and two-way marginals: what is scored, and what noise hurts least."""
    return Workload(schema, [*Workload.all_marginals(schema, 1), *Workload.all_marginals(schema, 2)])


def rehearsed(make: Make, name: str, job: Job, epsilon: str) -> dict[str, Any]:
    """The settings that did best where public rows played the private ones.

    As prade's tuner has it: where the public table has the same groups, half of a group's rows play against the other
    half; else one group plays against the others. Epsilon is scaled so that noise is, beside the rows that play, what
    it will be beside a private group's. A total that is off by 250 counts as in the score.
    """

    def task() -> dict[str, Any]:
        stages, errors = list(staged(job)), dict[str, float]()
        chosen = {setting: values[0] for setting, values in CHOICES.items()}  # until something does better
        same = any(stage.own is not None for stage in stages)

        def error(settings: dict[str, float]) -> float:
            method = make(low_marginals(job.schema), settings)
            found = [stage.error(method, settings["own"], epsilon, job) for stage in stages]
            off = float(np.exp(-250 * float(epsilon) * settings["total_share"]))
            return (1 - off) * float(np.mean(found)) + 2 * off

        for setting, values in CHOICES.items():
            if setting == "own" and not same:
                continue
            trials = [{**chosen, setting: value} for value in values]
            for trial in trials:
                if str(trial) not in errors:
                    errors[str(trial)] = error(trial)
                # the most rounds are the best ones: perhaps more of them would be better still
                if trial is trials[-1] and setting == "rounds" and min(errors, key=errors.__getitem__) == str(trial):
                    trials.append({**chosen, setting: 2 * trial[setting]})
            chosen = min(trials, key=lambda trial: errors[str(trial)])
        return {"errors": errors, "settings": chosen}

    return kept("compare-rehearsed", f"{job.name} {name} {epsilon} {CHOICES}", task)


@dataclass(eq=False)
class Stage:
    """Public rows that play private ones, in a rehearsal, and those that are public there."""

    truth: Coded
    played: pa.Table
    own: Prior | None  # of the same group, where the job has the same groups
    others: Prior
    expected_rows: float  # of a group in earnest

    def error(self, method: Method, own: float, epsilon: str, job: Job) -> float:
        """One run of a method: the mean distance of two-way tables."""
        prior = self.others if self.own is None else mixed(self.own, self.others, own)
        scaled = round(float(epsilon) * self.expected_rows / len(self.truth), 6)
        estimate, _ = asked(method, prior, self.played, str(scaled), job)
        columns = [name for name in self.truth.schema.coded if name in self.truth.codes and name in estimate.codes]
        return mean_distance(self.truth.codes, estimate, chosen_pairs(columns, "all"))


def staged(job: Job) -> Iterator[Stage]:
    """A few public groups, each as it would be played; the same ones for all settings."""
    public, rng = job.rows, np.random.default_rng(0)
    raw = read_table(job.public, guess=False)
    sizes, half = np.bincount(public.group), rng.random(len(public)) < 0.5
    level = job.listed.level(job.listed.names)
    same = bool(job.listed.names) and RecurringGroups.of(public.groups, level).recurs.mean() > 0.5
    rows = float(sizes[sizes > 0].mean()) if job.listed.names else float(len(public))

    def some(mask: np.ndarray) -> Prior:
        return Prior.from_joint(public.take(rng.permutation(np.flatnonzero(mask))[:REHEARSAL_ROWS]).prior)

    for group in rng.permutation(np.flatnonzero(sizes >= 100))[:REHEARSED]:
        whole = public.group == group
        mine = whole & half if same else whole
        truth = Coded(job.schema, {name: code[mine] for name, code in public.prior.codes.items()})
        own = some(whole & ~half) if same else None
        yield Stage(truth, raw.filter(pa.array(mine)), own, some(~mine if same else ~whole), rows)
