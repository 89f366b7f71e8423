"""Every kind of budget on the ACS and the NIST pair: pure eps, (eps, 1e-9), and the zCDP budget within (eps, 1e-9).

Each cell is rehearsed on public rows, measured through the door, and scored. The zCDP budget is what Gaussian noise has
under (eps, 1e-9), so its row shows what the tuner would get there without Laplace noise. Finished cells are kept in
benchmarks/out, so the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from accuracy import shown
from common import need_data, table
from jobs import PATIENCE, THREADS, TUNING, Job, acs, kept, nist
from prade import Budget, Plan
from prade.core.execution import Execution
from prade.tuning.tune import tune

DELTA = "1e-9"
EPSILONS = ("0.1", "1", "10")
JOBS: dict[str, Callable[[], Job]] = {"acs": acs, "nist": nist}
KINDS: dict[str, Callable[[str], str | Budget]] = {
    "pure": lambda epsilon: epsilon,
    "approx": lambda epsilon: Budget.approx(epsilon, DELTA),
    "zcdp": lambda epsilon: Budget.approx(epsilon, DELTA).zcdp_within(),
}
HEAD = [
    "job", "eps", "budget", "noise", "tables of each place", "of two columns", "tables above", "noise of a count",
    "expected error", "error", "error of two-way tables alone",
]  # fmt: skip


def tables_asked(plan: Plan) -> tuple[int, int, int]:
    """How many tables are asked of the last level, how many of these have two columns, and how many of other levels."""
    last = len(plan.levels) - 1
    asked = [(question.level, part) for question in plan.questions if not question.is_total for part in question.parts]
    mine = [part for level, part in asked if level == last]
    return len(mine), sum(len(part.columns) > 1 for part in mine), len(asked) - len(mine)


def plan_of(job: Job, budget: str | Budget, effort: float) -> Plan:
    """The tuner's plan, made once and kept, with what was tried."""

    def run() -> dict[str, Any]:
        tuned = tune(job.task(budget), job.rows, effort=effort, seconds=PATIENCE, execution=Execution(THREADS))
        trials = [(each.what, round(each.error, 4), each.kept) for each in tuned.trials]
        return {"plan": tuned.plan.to_toml(), "finished": tuned.finished, "trials": trials}

    return Plan.from_toml(kept(f"kinds-{job.name}", f"plan {budget} {effort:g}", run)["plan"])


def cell(name: str, job: Job, epsilon: str, kind: str, options: argparse.Namespace) -> list[Any]:
    """One row of the table."""
    budget = KINDS[kind](epsilon)
    plan = plan_of(job, budget, options.effort)

    def run(number: int) -> dict[str, Any]:
        key = f"ours {budget} {options.effort:g} {number}"
        return kept(f"kinds-{job.name}", key, lambda: job.ours(plan, number))

    found = [run(number) for number in range(options.runs)]
    assert plan.expected is not None
    return [
        name, epsilon, {"pure": "eps", "approx": f"(eps, {DELTA})", "zcdp": "zCDP"}[kind], plan.law,
        *tables_asked(plan), f"{plan.questions[-1].variance ** 0.5:.1f}",
        f"{plan.expected.error:.3f} ± {plan.expected.error_spread:.3f}",
        *((shown(found), shown(found, "raw")) if found else ("", "")),
    ]  # fmt: skip


def rows(options: argparse.Namespace) -> Iterator[list[Any]]:
    for name in options.jobs:
        job = JOBS[name]()
        for epsilon in options.epsilons:
            for kind in options.kinds:
                yield cell(name, job, epsilon, kind, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--epsilons", nargs="+", default=list(EPSILONS), metavar="EPS")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--runs", type=int, default=1, help="releases of each cell")
    parser.add_argument("--effort", type=float, default=TUNING, help="work of the tuner")
    options = parser.parse_args()
    need_data()
    print(table(HEAD, list(rows(options))))


if __name__ == "__main__":
    main()
