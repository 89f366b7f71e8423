"""Do values that belong together stay together? Donors beside drawing each column alone within its bins.

The same drawn codes are decoded in two ways: *alone*, where each column takes a public value of its bin by itself, and
*donors*, where all values of a row come from one public row. Shown are how often orders that hold in the public table
are broken (wages above income), and how far each numeric column is from the true one (the Wasserstein distance, in the
column's own units). *Codes that nobody has* are the same rows with other bins in one numeric column; with `linked`, the
columns that the draft of a schema would link stay together even then.

    python benchmarks/values.py --release RELEASE

RELEASE is a finished release of the ACS job; without it, only invented people are shown. With
`make .venv-peers/sdmetrics/.ready`, SDMetrics scores the ACS rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import wasserstein_distance

import prade
from common import DATA, ROOT, report, table
from prade import Schema, Task
from prade.core.arrays import Chances
from prade.core.execution import Execution, cores
from prade.data.declare.column import Column
from prade.data.declare.draft import proposed_links
from prade.data.public.decode import Decoder, menu_of_public
from prade.data.public.joint import Coded, encode
from prade.data.read.cells import plain_cells
from prade.data.read.coding import numbers_of
from prade.data.read.tables import read_table, write_table
from prade.estimating.levels.estimates import kept_estimates
from prade.examples import census_like
from prade.sampling.table import sample_groups

PEER = ROOT / ".venv-peers" / "sdmetrics" / "bin" / "python"
SCORES = Path(__file__).resolve().parent / "peers" / "sdmetrics_scores.py"
SEED = 1
ACS = "ACS, eps 1"


@dataclass(frozen=True, eq=False)
class World:
    """A public table, the true one, codes drawn for synthetic rows, and the table that was sampled."""

    name: str
    schema: Schema
    public: pa.Table
    truth: pa.Table
    coded: Coded
    sampled: pa.Table


def worlds(release: str | None) -> Iterator[World]:
    """Invented people of other states, one public state from the other, and the ACS job."""
    data = census_like(persons=30_000, places_per_state=10, seed=3)
    yield _world("invented, other states", data.schema, data.public, data.private, data.groups)
    if release is None:
        return
    schema = Schema.load(DATA / "acs2024.schema.toml")
    public = read_table(DATA / "acs2024_il_oh.parquet")
    states = np.array(public["STATE"].to_pylist())
    illinois, ohio = (public.filter(pa.array(states == state)) for state in np.unique(states))
    places = ohio.select(["STATE", "PUMA"]).group_by(["STATE", "PUMA"]).aggregate([])
    yield _world("ACS, Ohio from Illinois", schema, illinois, ohio, places)
    estimates = kept_estimates(prade.Release.load(release))
    coded = sample_groups(estimates, SEED, execution=Execution(cores()))[0]
    sampled = prade.sample(estimates, DATA / "acs2024_il_oh.parquet", seed=SEED, like="pyarrow")
    yield World(ACS, estimates.plan.schema, public, read_table(DATA / "acs2024_ny_pa.parquet"), coded, sampled)


def _world(name: str, schema: Schema, public: pa.Table, private: pa.Table, groups: pa.Table) -> World:
    """A release at eps 1 that measures every one-way table of the groups."""
    levels = groups.column_names[:2]
    listed = groups.select(levels).group_by(levels).aggregate([])
    plan = prade.plan(Task("values", schema, 1, levels=levels, groups=listed), public, tune=False)
    with tempfile.TemporaryDirectory() as folder:
        release = prade.measure(plan, private, Path(folder) / "release", Path(folder) / "ledger", cap=1)
        estimates = prade.estimate(release, public)
        coded = sample_groups(estimates, SEED, execution=Execution(cores()))[0]
        return World(name, schema, public, private, coded, prade.sample(estimates, public, seed=SEED, like="pyarrow"))


def changed(coded: Coded, linked: Schema) -> Coded:
    """The rows with other bins in the first numeric column that is not linked: hardly any public row has the codes."""
    together = {name for each in linked.linked for name in each}
    column = next(column for column in linked if column.numeric and column.name not in together)
    other = (coded.codes[column.name].astype(np.int64) + column.present // 2) % column.size
    return Coded(coded.schema, {**coded.codes, column.name: other})


def numbers(column: Column, rows: pa.Table) -> np.ndarray:
    return numbers_of(column, plain_cells(rows[column.name]).combine_chunks())


def broken(schema: Schema, rows: pa.Table, low: str, high: str) -> float:
    """In what share of the rows with both values the first is above the second."""
    below, above = numbers(schema[low], rows), numbers(schema[high], rows)
    both = ~np.isnan(below) & ~np.isnan(above)
    return float((below > above)[both].mean())


def orders(schema: Schema, public: pa.Table) -> list[tuple[str, str]]:
    """The pairs of linked columns whose order holds in nearly all public rows."""
    sets = proposed_links(schema.columns, public)
    pairs = [(low, high) for each in sets for low in each for high in each if low != high]
    return [pair for pair in pairs if broken(schema, public, *pair) < 0.01]


def compared(world: World) -> tuple[list[list[str]], list[list[str]], dict[str, pa.Table]]:
    """Lines of the table of orders and of the table of distances, and the two tables that were made."""
    schema, pairs = world.schema, orders(world.schema, world.public)
    linked = Schema(schema.columns, linked=proposed_links(schema.columns, world.public))
    decoders = {name: Decoder.fit(each, world.public) for name, each in (("plain", schema), ("linked", linked))}
    menus = [menu_of_public(schema[name], world.public[name], np.ones(len(world.public))) for name in schema.coded]
    chances, other = Chances.of_groups(SEED, [0], [len(world.coded)]), changed(world.coded, linked)
    made, seconds = {}, {}
    for name, act in {
        "alone": lambda: pa.table(
            {menu.column.name: menu.draw(world.coded.codes[menu.column.name], chances) for menu in menus}
        ),
        "donors, by codes": lambda: decoders["plain"].decode(world.coded, seed=SEED),
        "codes that nobody has": lambda: decoders["plain"].decode(other, seed=SEED),
        "the same, with `linked`": lambda: decoders["linked"].decode(other, seed=SEED),
    }.items():
        started = time.perf_counter()
        made[name] = act()
        seconds[name] = time.perf_counter() - started
    made["alone"] = decoders["plain"].types.of_table(made["alone"])
    tables = {"public table": world.public, "true table": world.truth, "donors, as sampled": world.sampled, **made}
    order = [
        [
            world.name,
            name,
            "; ".join(f"{low} > {high}: {100 * broken(schema, rows, low, high):.2f} %" for low, high in pairs),
            f"{100 * decoders['plain'].copied(rows).mean():.1f} %",
            f"{seconds[name]:.1f}" if name in seconds else "",
        ]
        for name, rows in tables.items()
    ]
    far = [[world.name, column.name, *_distances(column, world, made["alone"])] for column in schema if column.cuts]
    return order, far, {"alone": made["alone"], "donors": world.sampled}


def _distances(column: Column, world: World, alone: pa.Table) -> list[str]:
    true, public, one, together = (
        (values := numbers(column, rows))[~np.isnan(values)]
        for rows in (world.truth, world.public, alone, world.sampled)
    )
    before, after = wasserstein_distance(one, true), wasserstein_distance(together, true)
    return [f"{each:.4g}" for each in (wasserstein_distance(public, true), before, after)] + [f"{after / before:.3f}"]


def mean_ratios(lines: list[list[str]]) -> str:
    """The geometric mean of the ratios in the table of distances, by world."""
    names = dict.fromkeys(line[0] for line in lines)
    ratios = {name: [float(line[-1]) for line in lines if line[0] == name] for name in names}
    return ", ".join(f"{np.exp(np.mean(np.log(each))):.3f} ({name})" for name, each in ratios.items())


def limits(world: World) -> dict[str, pa.Table]:
    """What no estimate can exceed: the true rows' own codes with values of public rows, and the true rows again."""
    again = np.random.default_rng(SEED).integers(len(world.truth), size=len(world.truth))
    true_codes = Decoder.fit(world.schema, world.public).decode(encode(world.schema, world.truth), seed=SEED)
    return {"true codes, values of donors": true_codes, "true rows, drawn with repetition": world.truth.take(again)}


def sdmetrics_scores(world: World, tables: dict[str, pa.Table]) -> list[list[str]]:
    """The lines of the table of SDMetrics' scores."""
    kinds = {name: "numerical" if world.schema[name].numeric else "categorical" for name in world.schema.coded}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kinds.json").write_text(json.dumps(kinds))
        paths = []
        for number, rows in enumerate([world.truth, *tables.values()]):
            paths.append(str(Path(folder) / f"{number}.parquet"))
            write_table(rows, paths[-1])
        done = subprocess.run(
            [str(PEER), str(SCORES), str(Path(folder) / "kinds.json"), *paths],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        [name, *(f"{each[key]:.3f}" for key in ("shapes", "trends", "within")), f"{each['types']} of {len(kinds)}"]
        for name, each in zip(tables, found, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", help="the folder of a finished release of the ACS job")
    options = parser.parse_args()
    order_lines, far_lines, score_lines = [], [], []
    for world in worlds(options.release):
        order, far, tables = compared(world)
        order_lines += order
        far_lines += far
        print(table(["world", "values", "broken orders", "copied", "seconds"], order), flush=True)
        if world.name == ACS and PEER.exists():
            score_lines = sdmetrics_scores(world, {"public table": world.public, **tables, **limits(world)})
    text = [
        "*Copied* is the share of rows that have all values of one public row. As sampled, a row's donor is the public "
        "row that was drawn; by codes, it is drawn from the public rows with the same codes. Orders are those that the "
        "draft of a schema would link; the share is of the rows that have both values.",
        table(["world", "values", "broken orders", "copied", "seconds to decode"], order_lines),
        "The Wasserstein distance of each numeric column from the true one, in the column's units. The last column is "
        f"the ratio of the two before it; its geometric mean is {mean_ratios(far_lines)}.",
        table(["world", "column", "public table", "alone", "donors", "donors / alone"], far_lines),
    ]
    if score_lines:
        text += [
            "SDMetrics 0.32, quality report of the ACS rows against the true ones (categorical columns as in the "
            "schema). It divides a numeric column into ten bins between the smallest and the largest number of *each* "
            "table, so that a single dwelling with 18 rooms, where the public table has at most 17, moves all bins of "
            "one of them; the last score limits both tables to the range that they have in common.",
            table(
                [
                    "rows",
                    "column shapes",
                    "column pair trends",
                    "pair trends, common range",
                    "types as the true file's",
                ],
                score_lines,
            ),
        ]
    report("values", "\n\n".join(text), {"orders": order_lines, "distances": far_lines, "scores": score_lines})


if __name__ == "__main__":
    main()
