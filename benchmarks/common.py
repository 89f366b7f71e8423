"""What the benchmarks share: the ACS job's data, timing, tables."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from prade import Schema, Workload
from prade.data.public.joint import Coded, Prior, encode
from prade.data.read.tables import read_table
from prade.release.release import Measurement
from results import keep

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
OUT = Path(__file__).resolve().parent / "out"


def need_data() -> None:
    """Leave with a message when the census files are not beside the project."""
    if not (DATA / "acs2024_il_oh.parquet").exists():
        sys.exit("This benchmark needs the ACS 2024 files in ../shared/data beside the project; they are not there.")


def acs_prior() -> tuple[Schema, Prior]:
    """Illinois and Ohio as the prior."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    return schema, Prior.from_table(schema, DATA / "acs2024_il_oh.parquet")


def acs_groups(schema: Schema) -> list[Coded]:
    """The 239 PUMAs of New York and Pennsylvania, in the order of the public list."""
    table = read_table(DATA / "acs2024_ny_pa.parquet")
    places = read_table(DATA / "acs2024_ny_pa_geography.csv")["PUMA"].to_pylist()
    where = np.asarray(table["PUMA"].to_pylist())
    coded = encode(schema, table)
    return [coded.take(np.flatnonzero(where == place)) for place in places]


def one_way(schema: Schema) -> Workload:
    """All one-way marginals."""
    return Workload.marginals(schema, schema.coded)


def noisy(workload: Workload, group: Coded, epsilon: float | None, seed: int) -> list[Measurement]:
    """A group's answers with Laplace noise for pure epsilon (None: exact), simulated for the benchmark."""
    generator = np.random.default_rng(seed)
    scale = 0.0 if epsilon is None else len(workload) / epsilon
    return [
        Measurement(part, np.round(share * len(group) + scale * generator.laplace(size=len(share))), scale)
        for part, share in zip(workload, workload.answer(group), strict=True)
    ]


def seconds(task: Callable[[], object], repeat: int = 5) -> float:
    """Median wall time after one run to warm up."""
    task()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def copy_bandwidth() -> float:
    """GB/s of a plain array copy (bytes read plus bytes written)."""
    source = np.ones(2**24)
    target = np.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: np.copyto(target, source)) / 1e9


def random_rows(rows: int, sizes: Sequence[int], seed: int) -> tuple[Schema, Prior]:
    """Rows whose columns lean on one hidden number, so that they are correlated as real columns are."""
    generator = np.random.default_rng(seed)
    schema = Schema.from_mbi({f"c{k}": size for k, size in enumerate(sizes)})
    hidden = generator.random(rows)
    codes = {}
    for k, size in enumerate(sizes):
        value = np.where(generator.random(rows) < 0.5, hidden, generator.random(rows))
        codes[f"c{k}"] = np.minimum(value * size, size - 1).astype(np.uint8)
    return schema, Prior(schema, codes, np.ones(rows))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def report(name: str, text: str, figures: dict[str, object]) -> None:
    """Print a result, keep its tables in benchmarks/results, and its figures in benchmarks/out."""
    print(text, flush=True)
    keep(name, text)
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(figures, indent=1))
