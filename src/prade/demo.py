"""A demonstration on invented people: `python -m prade.demo --output demo`.

It makes a public and a private census-like table, asks the private one for marginals with noise, estimates the
private joint distribution with every estimator, and compares each with the truth and with the prior.

**This is a simulation of noise, not a private release.** The people are invented; the noise is numpy's Laplace
generator with a fixed seed, in floating point; the true table is kept to measure errors and is shown on the page. None
of that may be done with real people: see `docs/known-limitations.md`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prade.codec import Coded, Decoder, encode, write_table
from prade.datasets import CensusLike, census_like
from prade.demo_page import HEADINGS, Comparison, Outcome, page, picture
from prade.estimate import Estimate
from prade.estimators.base import Estimator
from prade.estimators.ide import IDE
from prade.estimators.map_ import MAP
from prade.estimators.two_stage import TwoStage
from prade.joint import Joint
from prade.layout import Layout
from prade.measurement import Measurement
from prade.prior import Prior
from prade.privacy import Unit
from prade.select import Information, strongest_pairs
from prade.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

EPSILONS = (0.1, 1.0, 10.0)
SHOWN_EPSILON = 1.0  # the page's marginals are those of MAP at this budget
SHOWN_COLUMNS = 3
TWO_WAY_PARTS = 3
MOST_CELLS = 100  # of a two-way part: noise comes once a cell, so small tables survive it better

WARNING = (
    "Invented people and simulated noise: a demonstration of estimators, not a private release. "
    "The errors are known because the truth is; with real people it never would be."
)

Pair = tuple[str, str]


@dataclass(frozen=True)
class Setting:
    """Everything that is the same for all budgets."""

    data: CensusLike
    public: Coded
    private: Coded
    prior: Prior
    workload: Workload
    layout: Layout

    @classmethod
    def make(cls, persons: int, seed: int) -> Setting:
        """Tables, prior and workload. The workload is chosen from the public table alone."""
        data = census_like(persons=persons, seed=seed)
        public, private = encode(data.schema, data.public), encode(data.schema, data.private)
        prior = Prior.from_joint(public)
        singles = [(name,) for name in data.schema.coded]
        workload = Workload.marginals(data.schema, [*singles, *most_informative_pairs(public)[:TWO_WAY_PARTS]])
        return cls(data, public, private, prior, workload, Layout(prior, workload))

    @property
    def unit(self) -> Unit:
        """What one person can change: all rows of theirs."""
        return Unit(self.data.max_rows)

    def estimators(self) -> dict[str, Estimator]:
        """IDE in the cyclic order that its authors used, ten rounds (our choice); the others as they come."""
        return {"IDE": IDE(order="cyclic", steps=10 * len(self.workload)), "TwoStage": TwoStage(), "MAP": MAP()}


def pairs_of(joint: Joint) -> list[Pair]:
    """All pairs of columns."""
    return list(itertools.combinations(joint.columns, 2))


def most_informative_pairs(public: Joint) -> list[Pair]:
    """Pairs of columns with a small table, those that tell most about each other first."""
    pairs = strongest_pairs(Information.of(public))
    return [pair for pair in pairs if public.schema.domain_size(pair) <= MOST_CELLS]


def simulated_answers(
    workload: Workload, private: Coded, unit: Unit, epsilon: float, rng: np.random.Generator
) -> list[Measurement]:
    """Counts of all parts plus Laplace noise of scale b = sensitivity / epsilon: what a release would cost in accuracy.

    Every part is a marginal, so a row is in one cell of each: the sensitivity is max_rows times the number of parts,
    and the whole list of answers has the privacy loss epsilon. (Had the noise been drawn as it must be for that.)
    """
    scale = workload.sensitivity(unit) / epsilon
    return [
        Measurement(part, len(private) * share + rng.laplace(0.0, scale, part.n_cells), scale)
        for part, share in zip(workload, workload.answer(private), strict=True)
    ]


def total_of(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from the noisy marginals themselves: at no further cost in privacy.

    Each marginal sums to the total plus noise of variance proportional to its cells; this is the mean with the
    inverse of that as weights, at least 1.
    """
    weights = np.array([1.0 / m.variance.sum() for m in measurements])
    sums = np.array([m.counts.sum() for m in measurements])
    return max(float(weights @ sums / weights.sum()), 1.0)


def mean_error(joint: Joint, truth: Mapping[Pair, np.ndarray]) -> float:
    """Mean over all pairs of columns of the L1 distance (0 to 2) between their two-way marginals."""
    return float(np.mean([np.abs(joint.project(pair) - table).sum() for pair, table in truth.items()]))


def compile_loops(setting: Setting, measurements: Sequence[Measurement]) -> None:
    """Let numba compile before the clock runs: it does so once, on the first run after installation."""
    first: list[Estimator] = [IDE(steps=2), MAP(max_steps=1), MAP(solver="block", max_steps=1)]
    for estimator in first:
        estimator.fit(setting.prior, measurements, 1.0, layout=setting.layout)


def run(setting: Setting, seed: int, bar: Progress) -> tuple[list[Outcome], dict[float, Estimate]]:
    """Every estimator at every budget; returns the outcomes and MAP's estimates by epsilon."""
    truth = {pair: setting.private.project(pair) for pair in pairs_of(setting.private)}
    prior_error = mean_error(setting.prior, truth)
    estimators = setting.estimators()
    task = bar.add_task("compiling the inner loops", total=len(EPSILONS) * len(estimators))
    rng = np.random.default_rng([seed, 1])
    by_epsilon = {e: simulated_answers(setting.workload, setting.private, setting.unit, e, rng) for e in EPSILONS}
    compile_loops(setting, by_epsilon[EPSILONS[-1]])
    outcomes, kept = [], {}
    for epsilon, measurements in by_epsilon.items():
        total = total_of(measurements)
        outcomes.append(Outcome(epsilon, "prior", prior_error, "", 0.0, 0.0))
        for name, estimator in estimators.items():
            bar.update(task, description=f"eps {epsilon:g}: {name}")
            began = time.perf_counter()
            estimate = estimator.fit(setting.prior, measurements, total, layout=setting.layout)
            seconds = time.perf_counter() - began
            error = mean_error(estimate, truth)
            outcomes.append(Outcome(epsilon, name, error, estimate.status.value, estimate.report.kl, seconds))
            bar.advance(task)
        kept[epsilon] = estimate  # the last estimator is MAP
    return outcomes, kept


def write_synthetic(setting: Setting, estimate: Estimate, seed: int, path: Path) -> tuple[int, float]:
    """Rows drawn from an estimate, with values like the public table's; returns their number and their error."""
    coded = estimate.sample(round(estimate.report.total), seed)
    write_table(Decoder.fit(setting.data.schema, setting.data.public).decode(coded, seed=seed), path)
    return len(coded), mean_error(coded, {pair: setting.private.project(pair) for pair in pairs_of(setting.private)})


def comparisons(setting: Setting, estimate: Estimate) -> list[Comparison]:
    """Marginals of the columns in which the prior is furthest off: truth, prior, estimate."""

    def miss(name: str) -> float:
        return float(np.abs(setting.prior.project([name]) - setting.private.project([name])).sum())

    return [
        Comparison(
            name,
            setting.data.schema[name].labels(),
            *(joint.project([name]).tolist() for joint in (setting.private, setting.prior, estimate)),
        )
        for name in sorted(setting.private.columns, key=miss, reverse=True)[:SHOWN_COLUMNS]
    ]


def show(outcomes: Sequence[Outcome], console: Console) -> None:
    """The table of errors: boxed on a terminal, plain columns elsewhere."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("estimator", "status") else "right")
    for outcome in outcomes:
        table.add_row(*outcome.cells(next(o.error for o in outcomes if o.estimator == "prior")))
        if outcome.estimator == "MAP":
            table.add_section()
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demonstration and write its files."""
    from rich.console import Console
    from rich.progress import Progress

    parser = argparse.ArgumentParser(prog="python -m prade.demo", description=WARNING)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the page and the synthetic table")
    parser.add_argument("--persons", type=int, default=40_000, help="people in each of the two tables")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tables, the simulated noise and the sample")
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)

    console = Console(highlight=False, soft_wrap=True)
    console.print(WARNING, style="yellow")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        making = bar.add_task("inventing people", total=None)
        setting = Setting.make(given.persons, given.seed)
        bar.remove_task(making)
        parts = len(setting.workload)
        facts = (
            f"{len(setting.public):,} public and {len(setting.private):,} private rows, at most "
            f"{setting.unit.max_rows} a person. {parts} marginals with {setting.workload.n_queries} cells; "
            f"noise scale {setting.unit.max_rows} x {parts} / eps."
        )
        console.print(facts)
        outcomes, kept = run(setting, given.seed, bar)
        best = min((o for o in outcomes if o.estimator == "MAP"), key=lambda o: o.error)
        synthetic = given.output / "synthetic.parquet"
        rows, error = write_synthetic(setting, kept[best.epsilon], given.seed, synthetic)
    console.print("\nMean L1 error (0 to 2) over all two-way marginals, against the private truth:")
    show(outcomes, console)
    drawn = f"{rows:,} synthetic rows from MAP at eps {best.epsilon:g}; their own error is {error:.4f}."
    shown = comparisons(setting, kept[SHOWN_EPSILON])
    (given.output / "index.html").write_text(page(outcomes, shown, SHOWN_EPSILON, WARNING, facts, drawn), "utf-8")
    (given.output / "errors.svg").write_text(picture(outcomes), "utf-8")
    console.print(f"\n{drawn}\nWritten: {synthetic}, {given.output / 'index.html'}, {given.output / 'errors.svg'}")


if __name__ == "__main__":
    main()
