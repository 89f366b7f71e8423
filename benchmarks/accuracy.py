"""Error against epsilon: the public baseline, Algorithm 2 as published (where there are two levels), and ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from common import ROOT, report, table
from jobs import Job, kept, seconds_of
from prade import Budget, Plan

ALL = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30")
MAIN = ("10", "1", "0.1")
PUBLISHED_RUNS = 3
DRAWN = 2
NAMES = {"euclidean": "published", "least-kl": "published, least-KL projection"}


def plan_for(job: Job, budget: str | Budget) -> tuple[Plan, dict[str, Any]]:
    """The tuner's plan for a budget or an epsilon, made once and kept: it sees no private row."""

    def run() -> dict[str, Any]:
        tuned = job.tuned(budget)
        return {"plan": tuned.plan.to_toml(), "advice": tuned.plan.advice, "trials": len(tuned.trials)}

    found = kept(job.name, f"plan {budget}", run)
    return Plan.from_toml(found["plan"]), found


def errors_of(job: Job, epsilon: str, runs: int) -> list[dict[str, Any]]:
    """Our runs at a budget."""
    plan, _ = plan_for(job, epsilon)
    return [kept(job.name, f"ours {epsilon} {run}", lambda run=run: job.ours(plan, run)) for run in range(runs)]


def drawn_of(job: Job, epsilon: str) -> list[dict[str, Any]]:
    """The public baseline, with as many rows as our release has."""
    plan, _ = plan_for(job, epsilon)
    return [
        kept(job.name, f"drawn {epsilon} {run}", lambda run=run: job.prior_drawn(plan, run)) for run in range(DRAWN)
    ]


def published_of(job: Job, epsilon: str, runs: int, projection: str) -> list[dict[str, Any]]:
    """Runs of Algorithm 2 at a budget."""
    return [
        kept(job.name, f"{projection} {epsilon} {run}", lambda run=run: job.published(epsilon, run, projection))
        for run in range(runs)
    ]


def shown(results: Sequence[dict[str, Any]], what: str = "error") -> str:
    """Mean and standard deviation of the runs' errors."""
    errors = [found[what] for found in results]
    return f"{statistics.mean(errors):.4f}" + (f" ± {statistics.stdev(errors):.4f}" if len(errors) > 1 else "")


def compare(
    job: Job, epsilons: Sequence[str], runs: int, targets: dict[str, float], published: Sequence[str] = ()
) -> str:
    """The table of one job.

    "No worse": our mean is at most one standard deviation of our runs above that of the public baseline, drawn with as
    many rows as ours, both for the contest's score and for two-way tables alone.
    """
    prior = kept(job.name, "prior", lambda: {"error": job.prior_error()})["error"]
    head = [
        "eps",
        "public baseline",
        "the same, with as many rows as ours",
        *(NAMES[each] for each in published),
        "ours",
    ]
    head += ["no worse", "our two-way tables alone", "groups off by 250", "expected by the tuner", "target"]
    rows = []
    for epsilon in epsilons:
        plan, _ = plan_for(job, epsilon)
        ours = errors_of(job, epsilon, runs)
        # The public baseline needs numbers of rows too, and loses groups that are off by 250 as well.
        drawn = drawn_of(job, epsilon)
        no_worse = []
        for what in ("error", "raw"):
            errors = [found[what] for found in ours]
            theirs = statistics.mean(found[what] for found in drawn)
            no_worse.append(statistics.mean(errors) <= theirs + statistics.stdev(errors))
        rows.append([
            epsilon,
            f"{prior:.4f}",
            shown(drawn),
            *(shown(published_of(job, epsilon, runs, each)) for each in published),
            shown(ours),
            "yes" if all(no_worse) else "NO",
            shown(ours, "raw"),
            f"{statistics.mean(found['biased'] for found in ours):.1f} of {len(job.listed)}",
            f"{plan.expected.error:.3f} (baseline {plan.expected.prior:.3f})" if plan.expected else "",
            targets.get(epsilon, ""),
        ])  # fmt: skip
    return table(head, rows)


def sources(job: Job, epsilons: Sequence[str]) -> str:
    """Where the error comes from."""
    rows = []
    for epsilon in epsilons:
        plan, _ = plan_for(job, epsilon)
        found = kept(job.name, f"sources {epsilon}", lambda plan=plan: job.where_from(plan, 0))
        rows.append([
            epsilon,
            f"{found['exact answers']:.4f}",
            f"+{found['noisy answers'] - found['exact answers']:.4f}",
            f"+{found['rows'] - found['noisy answers']:.4f}",
            f"{found['unreachable']:.4f}",
        ])  # fmt: skip
    head = ["eps", "exact answers", "their noise", "drawing rows", "of which unreachable"]
    return table(head, rows)


def scaling(job: Job, epsilon: str, sizes: Sequence[tuple[int, float]]) -> str:
    """Time against the number of groups and of public rows."""
    plan, _ = plan_for(job, epsilon)
    rows = []
    for groups, share in sizes:
        found = kept(
            job.name,
            f"scaling {epsilon} {groups} {share}",
            lambda groups=groups, share=share: seconds_of(job, plan, groups, share),
        )
        public = f"{round(share * len(job.rows)):,}"
        rows.append([groups, public, f"{found['estimating']:.1f}", f"{found['sampling']:.1f}"])
    return table(["groups", "public rows", "estimating, s", "drawing rows, s"], rows)


def plot(job: Job, epsilons: Sequence[str], runs: int, name: str, published: Sequence[str] = ()) -> None:
    """docs/NAME.svg: error against epsilon, of two-way tables alone: the page has the numbers of rows."""
    prior = kept(job.name, "prior", lambda: {"error": job.prior_error()})["error"]
    x = [float(each) for each in epsilons]
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.axhline(prior, color="#777777", linestyle="--", label="public baseline")
    marks = {"euclidean": ("s", "#D55E00"), "least-kl": ("^", "#CC79A7")}
    for each in published:
        means = [statistics.mean(found["raw"] for found in published_of(job, e, PUBLISHED_RUNS, each)) for e in MAIN]
        axes.plot([float(e) for e in MAIN], means, marker=marks[each][0], color=marks[each][1], label=NAMES[each])
    ours = [[found["raw"] for found in errors_of(job, e, runs)] for e in epsilons]
    axes.errorbar(
        x, [statistics.mean(each) for each in ours], [statistics.stdev(each) if len(each) > 1 else 0 for each in ours],
        marker="o", color="#0072B2", label="prade",
    )  # fmt: skip
    axes.set(xscale="log", xlabel="epsilon", ylabel="mean L1 of two-way tables", ylim=(0, None))
    axes.legend()
    figure.savefig(ROOT / "docs" / f"{name}.svg", metadata={"Date": None})


def write(job: Job, text: str) -> None:
    """Keep a page for `run.py`."""
    report(job.name, text, {})
