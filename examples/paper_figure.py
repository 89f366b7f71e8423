"""The paper's figure: mean L1 error of 50 random two-way marginals in every group, at epsilon 10.

    python examples/paper_figure.py --output figure                 invented people
    python examples/paper_figure.py --output figure --acs FOLDER    census tables: acs2024_il_oh.parquet (public),
                                                                    acs2024_ny_pa.parquet (private), groups, schema
    python examples/paper_figure.py --output figure --same-table    the paper's own experiment: the private table is
                                                                    also the public one. It shows how good estimates
                                                                    can be, and protects nobody: the rows themselves
                                                                    reappear

The private table is measured with real noise, once for each of the two systems, each with the whole epsilon: a second
run finds the releases in the output folder and spends nothing. Written are figure.svg and figure.csv (a row a group).
Errors are made of the true rows: they may be shown because these people are invented, or their table is public anyway.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from prade import Budget, Groups, Ledger, Plan, Release, Schema, Task, Unit
from prade.baselines.algorithm_2 import Algorithm2
from prade.core.execution import Execution
from prade.data.public.joint import Coded, encode
from prade.data.public.public import Public
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import estimates_of
from prade.examples import census_like
from prade.measuring.run import measure
from prade.sampling.draw import SortedRows
from prade.sampling.draw import sample as drawn_rows
from prade.sampling.table import sample_groups
from prade.scoring.score import Score, score
from prade.tuning.tune import tune

Synthetic = tuple[Coded, Any]  # coded rows, and the number of each row's group

PAIRS = 50
COLOURS = ("#b35900", "#1f5fa8", "#2a7f3f", "#7a3b9c")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 380, 52, 44, 40


@dataclass(frozen=True)
class Job:
    """Two tables, the groups of the private one, and who is protected."""

    name: str
    schema: Schema
    public: Any
    private: Any
    levels: tuple[str | tuple[str, ...], str | tuple[str, ...]]
    groups: Any
    unit: Unit

    @property
    def by(self) -> list[str]:
        """The group columns of the last level."""
        return [name for level in self.levels for name in ([level] if isinstance(level, str) else level)]


def invented(persons: int, seed: int) -> Job:
    """People of `prade.examples.census_like`: states, then places and years."""
    data = census_like(persons=persons, seed=seed)
    unit = Unit(data.max_rows, person_id="PERSON")
    levels = ("STATE", ("PLACE", "YEAR"))
    return Job("invented people", data.schema, data.public, data.private, levels, data.groups, unit)


def census(folder: Path) -> Job:
    """Illinois and Ohio are public; New York and Pennsylvania play the private table."""
    files = (folder / "acs2024_il_oh.parquet", folder / "acs2024_ny_pa.parquet")
    schema = Schema.load(folder / "acs2024.schema.toml")
    return Job("ACS 2024", schema, *files, ("STATE", "PUMA"), folder / "acs2024_ny_pa_geography.csv", Unit(1))


def prior_rows(release: Release, public: Public, seed: int) -> Synthetic:
    """The prior as a table: each group has its noisy number of rows, drawn from all public rows systematically."""
    ordered = SortedRows(public.prior.codes, public.prior.schema)
    last, answers = len(release.plan.levels) - 1, zip(release.plan.questions, release.noisy, strict=True)
    asked = next(noisy[0] for question, noisy in answers if question.level == last and question.is_total)
    sizes = np.maximum(asked[:, 0], 0)
    drawn = [drawn_rows(ordered, public.prior.weights, int(n), seed + g, passes=0) for g, n in enumerate(sizes)]
    rows = np.concatenate(drawn)
    coded = Coded(public.prior.schema, {name: code[rows] for name, code in public.prior.codes.items()})
    return coded, np.repeat(np.arange(len(sizes)), sizes)


def scores(job: Job, tables: Sequence[tuple[str, Synthetic]]) -> dict[str, Score]:
    """The errors of each named synthetic table, all on the same 50 pairs. Wrong row counts are no part of them."""
    listed = Groups.of(job.groups)
    truth = read_table(job.private, guess=False)
    number = listed.keyed(truth.column_names, listed.level(job.by).number).numbers(truth)
    true_rows = (encode(job.schema, truth), number)
    return {
        name: score(true_rows, rows, job.schema, job.by, groups=listed, pairs=PAIRS, bias=None) for name, rows in tables
    }


def picture(found: dict[str, Score], title: str) -> str:
    """A dot for each group and table, the groups in the order of the first table's errors."""
    errors = {name: each.groups for name, each in found.items()}
    first = next(iter(errors.values()))
    order = np.argsort(first)[: int(np.isfinite(first).sum())]  # without rows on either side there is no error
    largest = max(float(np.nanmax(each)) for each in errors.values())
    step = next(s for s in (0.05, 0.1, 0.25, 0.5) if largest / s <= 8)
    room, depth = WIDTH - LEFT - 16, HEIGHT - TOP - BOTTOM

    def height(error: float) -> float:
        return TOP + depth * (1 - error / largest)

    marks = [f'<text x="{LEFT}" y="16" font-weight="700">{escape(title)}</text>']
    for tick in np.arange(0, largest + 1e-9, step):
        y = height(float(tick))
        marks.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 16}" stroke="#e0e0e0"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    across = LEFT
    for (name, each), colour in zip(errors.items(), cycle(COLOURS), strict=False):
        label = f"{name}, mean {np.nanmean(each):.3f}"
        marks.append(f'<circle cx="{across + 4}" cy="30" r="4" fill="{colour}"/>')
        marks.append(f'<text x="{across + 13}" y="34">{escape(label)}</text>')
        across += 34 + 7 * len(label)
        for place, error in enumerate(each[order]):
            x = LEFT + room * (place + 0.5) / len(order)
            marks.append(f'<circle cx="{x:.1f}" cy="{height(error):.1f}" r="2.5" fill="{colour}"/>')
    foot = f"{len(order)} groups, in the order of the first table's errors"
    marks.append(f'<text x="{LEFT + room / 2}" y="{HEIGHT - 12}" text-anchor="middle">{foot}</text>')
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    attributes = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="12"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}><title>{escape(title)}</title>'
        f"{ground}{''.join(marks)}</svg>\n"
    )


def write_errors(found: dict[str, Score], path: Path) -> None:
    """One row a group: its columns, its true rows, and the error of each table."""
    import pyarrow as pa

    first = next(iter(found.values()))
    table = first.table().select([*first.grouping.by, "true_rows"])
    for name, each in found.items():
        table = table.append_column(name, pa.array(each.groups, from_pandas=True))
    write_table(table, path)


def summary(found: dict[str, Score]) -> str:
    """The table that is printed: quartiles and mean over the groups."""
    lines = [f"{'':<24}{'mean':>8}{'lower':>8}{'median':>8}{'upper':>8}{'worst':>8}"]
    for name, each in found.items():
        quartiles = np.nanquantile(each.groups, [0.25, 0.5, 0.75, 1])
        lines.append(f"{name:<24}" + "".join(f"{value:>8.4f}" for value in (each.mean, *quartiles)))
    return "\n".join(lines)


def synthetic_tables(published: Release, ours: Release, public: Public, seed: int) -> list[tuple[str, Synthetic]]:
    """What is compared: each a name, and coded rows with their groups."""
    return [
        ("paper's system", Algorithm2().rows(published, public, seed)),
        ("public table", prior_rows(published, public, seed)),
        ("prade", sample_groups(estimates_of(ours, public, execution=Execution(2)), seed, execution=Execution(2))),
    ]


def tuned_plan(task: Task, public: Public, effort: float) -> Plan:
    """The plan that a rehearsal on the public table finds best."""
    return tune(task, public, effort=effort).plan


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, synthesize, compare, draw."""
    parser = argparse.ArgumentParser(description="The paper's figure: error of 50 two-way marginals in every group.")
    parser.add_argument("--output", type=Path, default=Path("figure"), help="folder for the figure and the release")
    parser.add_argument("--acs", type=Path, metavar="FOLDER", help="census tables instead of invented people")
    parser.add_argument("--epsilon", type=str, default="10", help="privacy budget, a number or a fraction")
    parser.add_argument("--persons", type=int, default=40_000, help="invented people in each of the two tables")
    parser.add_argument("--effort", type=float, default=60, help="how much work the tuner may do")
    parser.add_argument("--seed", type=int, default=0, help="of invented people and of all that comes after the noise")
    parser.add_argument(
        "--same-table", action="store_true", help="let the private table be the public one, as in the paper"
    )
    given = parser.parse_args(arguments)
    given.output.mkdir(parents=True, exist_ok=True)

    job = invented(given.persons, given.seed) if given.acs is None else census(given.acs)
    if given.same_table:
        job = replace(job, name=f"{job.name}, the same table as public and private", public=job.private)
    budget = Budget.pure(given.epsilon)
    public = Public.of(job.schema, job.public, job.by)
    task = Task(job.name, job.schema, budget, job.unit, job.levels, job.groups)
    ledger = Ledger(given.output / "ledger")
    ledger.open_dataset(job.name, job.unit, cap=budget * 2)
    releases = []
    for name, make in (("published", Algorithm2().plan), ("prade", partial(tuned_plan, effort=given.effort))):
        kept = given.output / name
        plan = Release.load(kept).plan if kept.exists() else make(task, public)
        print(plan.describe())
        releases.append(measure(plan, job.private, kept, ledger))
    found = scores(job, synthetic_tables(*releases, public, given.seed))
    title = f"Mean L1 error of {PAIRS} two-way marginals by group: {job.name}, epsilon {given.epsilon}"
    print(f"\n{title}\n{summary(found)}")
    (given.output / "figure.svg").write_text(picture(found, title), "utf-8")
    write_errors(found, given.output / "figure.csv")
    print(f"\nWritten: {given.output / 'figure.svg'}, {given.output / 'figure.csv'}")


if __name__ == "__main__":
    main()
