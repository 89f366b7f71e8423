"""Private files of half a million to fifty million rows: counted by `measure` in little memory, beside plain DuckDB.

python benchmarks/large_files.py                   0.5, 5 and 50 million rows (18 GiB of disk are enough; some time)
python benchmarks/large_files.py 500000 5000000    other numbers of rows
python benchmarks/large_files.py --spark 5000000   the same rows counted in Spark, in local mode

The rows are the ACS of New York and Pennsylvania, tiled: in every tile each cell is, with a chance of one in twenty,
another row's cell of the same column, and households have new numbers. They are written in pieces, and read in
processes of their own, whose memory the kernel limits (where it lets us) and whose largest memory is reported.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import DATA, OUT, need_data, report, table
from prade import Budget, Ledger, Level, Plan, Schema, Unit, Workload
from prade.data.read.tables import read_table

ROWS = DATA / "acs2024_ny_pa.parquet"
SIZES = (500_000, 5_000_000, 50_000_000)
KEPT = 5_000_000  # rows; larger files are removed once they are counted
GROUP_ROWS = 2**17
CHANCE = 0.05  # that a cell is another row's
LIMIT = 2 * 2**30  # bytes that the counting process may have
DUCKDB = "1GiB"  # of them for plain DuckDB
PERSON = "SERIALNO"
MOST = 5  # rows of a household that count
WAYS = ("prade", "prade, without a bound", "plain DuckDB")
CGROUP = Path("/sys/fs/cgroup/memory")


# ---------------------------------------------------------------------- files


def tiled(rows: int) -> Path:
    """The file with that many rows, made once."""
    path = OUT / f"tiled-{rows}.parquet"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        schema = Schema.load(DATA / "acs2024.schema.toml")
        source = pq.read_table(ROWS, columns=[PERSON, "STATE", "PUMA", *schema.coded])
        unfinished = path.with_suffix(".unfinished")
        with pq.ParquetWriter(unfinished, source.schema.remove_metadata()) as writer:
            for tile in itertools.count():
                left = rows - tile * len(source)
                if left <= 0:
                    break
                writer.write_table(_tile(source, tile).slice(0, left), row_group_size=GROUP_ROWS)
        unfinished.rename(path)
    return path


def _tile(source: pa.Table, tile: int) -> pa.Table:
    """The rows once more, with noise; STATE and PUMA move together, and a household stays in one place."""
    generator = np.random.default_rng([16, tile])
    rows = len(source)
    columns = {}
    for name in source.column_names:
        column = source[name].combine_chunks()
        if name == PERSON:
            columns[name] = pc.binary_join_element_wise(
                column, *(pa.scalar(each, column.type) for each in (str(tile), "-"))
            )
        elif name in ("STATE", "PUMA"):
            columns[name] = column
        else:
            place = np.arange(rows)
            moved = np.flatnonzero(generator.random(rows) < CHANCE)
            place[moved] = generator.integers(rows, size=len(moved))
            columns[name] = column.take(pa.array(place))
    return pa.table(columns, schema=source.schema.remove_metadata())


# ---------------------------------------------------------------------- counting


def plan_for(unit: Unit) -> Plan:
    """36 one-way tables by PUMA (239) and 50 two-way tables by state (2)."""
    schema = Schema.load(DATA / "acs2024.schema.toml")
    places = read_table(DATA / "acs2024_ny_pa_geography.csv").select(["STATE", "PUMA"])
    pairs = list(itertools.combinations(schema.coded, 2))
    chosen = pairs[:: len(pairs) // 50][:50]
    levels = [
        Level("STATE", Workload.marginals(schema, chosen)),
        Level(("STATE", "PUMA"), Workload.all_marginals(schema, 1)),
    ]
    return Plan("tiles", schema, Budget.pure(1), unit, levels, places)


def by_prade(private: Any, unit: Unit, folder: Path) -> int:
    """The whole of `measure`; how many noisy counts it wrote."""
    from prade.measuring.run import measure

    plan = plan_for(unit)
    release = measure(plan, private, folder / "release", Ledger(folder / "ledger"), cap=Budget.pure(1))
    return sum(part.size for answers in release.noisy for part in answers)


def by_duckdb(path: Path, folder: Path) -> int:
    """GROUP BY of the same columns, uncoded and without a bound on a person's rows; how many counts there are."""
    import duckdb

    plan = plan_for(Unit(1))
    settings = {"memory_limit": DUCKDB, "temp_directory": str(folder), "threads": os.cpu_count()}
    found = 0
    with duckdb.connect(config=settings) as engine:
        for question in plan.questions:
            by = plan.levels[question.level].by
            sets = ", ".join(f"({', '.join([*by, *part.columns])})" for part in question.parts)
            names = list(dict.fromkeys([*by, *(name for part in question.parts for name in part.columns)]))
            select = f"SELECT {', '.join(names)}, count(*) FROM '{path}' GROUP BY GROUPING SETS ({sets})"
            found += len(engine.execute(select).fetchall())
    return found


def child(way: str, rows: int) -> None:
    """Count in this process, and print what it took."""
    path = OUT / f"tiled-{rows}.parquet"
    unit = Unit(MOST) if "without" in way else Unit(MOST, person_id=PERSON)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        began, worked = time.perf_counter(), _processor_seconds()
        if way == "plain DuckDB":
            by_duckdb(path, Path(folder))
        elif way == "prade in Spark":
            _in_spark(path, unit, Path(folder))
        else:
            tempfile.tempdir = folder  # spilled rows need room
            by_prade(path, unit, Path(folder))
        took = time.perf_counter() - began
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": took, "processor": _processor_seconds() - worked, "gib": own}))


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _in_spark(path: Path, unit: Unit, folder: Path) -> None:
    """In a Java machine of this process, which opens the file as a table."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    try:
        session.read.parquet(str(path)).createOrReplaceTempView("tiled")
        by_prade("spark://session/tiled", unit, folder)
    finally:
        session.stop()


@contextmanager
def limited() -> Iterator[tuple[list[str], str]]:
    """What to put before a command to limit its memory, pages of files included, and in words how it is limited."""
    group = CGROUP / f"prade-benchmark-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError:
        yield [], "not limited by the kernel: largest resident memory as measured"
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"], "limited to 2 GiB by the kernel"
    finally:
        group.rmdir()


def counted(way: str, rows: int) -> dict[str, float]:
    """One way to count one file, in a process of its own."""
    with limited() as (before, _):
        own = [sys.executable, str(Path(__file__).resolve()), "--child", way, str(rows)]
        prefix = [] if "Spark" in way else before
        done = subprocess.run([*prefix, *own], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{way}, {rows:,} rows: exit code {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(way: str, rows: int, found: dict[str, float]) -> list[str]:
    speed = rows / found["processor"]
    numbers = f"{found['seconds']:.1f}", f"{found['processor']:.1f}", f"{speed:,.0f}", f"{found['gib']:.2f}"
    return [way, f"{rows:,}", *numbers]


HEADER = ["counted by", "rows", "seconds", "processor seconds", "rows per processor second", "largest memory, GiB"]


def sizes(numbers: list[int], spark: list[int], ways: list[str]) -> tuple[str, dict[str, Any]]:
    """The table of all ways and numbers of rows, in Markdown, and its figures."""
    lines: list[list[str]] = []
    figures: dict[str, Any] = {}
    for rows in sorted({*numbers, *spark}):
        path = tiled(rows)
        for way in [*(ways if rows in numbers else ()), *(["prade in Spark"] if rows in spark else ())]:
            figures[f"{way}, {rows}"] = found = counted(way, rows)
            lines.append(line(way, rows, found))
            print(*lines[-1], sep=" | ", flush=True)
        if rows > KEPT:
            path.unlink()
    with limited() as (_, words):
        text = f"Memory: {words}. At most {MOST} rows of a household count; 512 MiB of rows wait in memory.\n\n"
    text += table(HEADER, lines)
    for way in ways:
        points = [(rows, figures[f"{way}, {rows}"]["processor"]) for rows in sorted(numbers)]
        if len(points) > 1:
            figures[f"{way}, exponent"] = exponent = _slope(points)
            text += f"\n\n{way}: processor seconds grow with the rows to the power of {exponent:.2f}."
    return text, figures


def _slope(points: list[tuple[int, float]]) -> float:
    """Of a straight line through the logarithms."""
    x, y = np.log([rows for rows, _ in points]), np.log([spent for _, spent in points])
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="*", help="numbers of rows")
    parser.add_argument("--spark", type=int, nargs="*", default=[], help="numbers of rows to count in Spark")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="how to count them")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    need_data()
    if options.child:
        child(options.child[0], int(options.child[1]))
        return
    numbers = options.rows or ([] if options.spark else list(SIZES))
    report("large_files", *sizes(numbers, options.spark, options.ways))


if __name__ == "__main__":
    main()
