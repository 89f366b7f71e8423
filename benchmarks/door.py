"""The door: seconds and memory to count the ACS job from every kind of source, this version beside another.

python benchmarks/door.py                         this version alone
python benchmarks/door.py --beside ../other       this version and that of another checkout, in turns
python benchmarks/door.py --only parquet postgres some of the sources
python benchmarks/door.py --repeat 5 --rows 10000000

The rows are the ACS of New York and Pennsylvania (344,497), counted in 36 one-way tables by STATE and by PUMA; for the
file of ten million rows they are repeated. The rows of "persons" have an id of 18 digits, and at most 3 rows of a
person count. Every run is a process of its own, whose clock starts when libraries, and Spark's Java machine, are ready.
Counts are compared to the last unit between sources and versions, except where rows are chosen at random: there, the
number of rows that count is compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
ROWS = DATA / "acs2024_ny_pa.parquet"
LEVELS = (("STATE",), ("STATE", "PUMA"))
PERSON, MOST, FIRST_ID = "ID", 3, 10**17
GROUP_ROWS = 2**17
WAYS = ("parquet", "csv", "duckdb", "postgres", "spark", "persons", "large")
NAMES = {"parquet": "parquet", "csv": "CSV", "duckdb": "DuckDB", "postgres": "PostgreSQL", "spark": "Spark"}


# ---------------------------------------------------------------------- one run, in a process of its own


def child(way: str, private: str) -> None:
    """Count in this process, with the prade that it finds, and print what it took and what came out."""
    import prade
    from prade import Schema, Unit
    from prade.data.declare.groups import Groups
    from prade.data.read.tables import read_table
    from prade.measuring.source import counts_of, open_source, tally_of
    from prade.queries.parts import Marginal

    schema = Schema.load(DATA / "acs2024.schema.toml")
    places = Groups.of(read_table(DATA / "acs2024_ny_pa_geography.csv").select(["STATE", "PUMA"]))
    parts = [Marginal.of(schema, [name]) for name in schema.coded]
    unit = Unit(MOST, person_id=PERSON) if way == "persons" else None
    with _ready(way, private) as address:
        began, worked = time.perf_counter(), _processor_seconds()
        with open_source(address) as source:
            answers = [counts_of(source, tally_of(source, schema, [(by, parts)], places, unit))[0] for by in LEVELS]
        took, work = time.perf_counter() - began, _processor_seconds() - worked
    sums = [[int(part.sum()) for part in level] for level in answers]
    content = repr([[part.tolist() for part in level] for level in answers] if unit is None else sums)
    found = {
        "seconds": took,
        "processor": work,
        "gib": _largest_memory(),
        "counts": hashlib.sha256(content.encode()).hexdigest(),
        "rows": sums[0][0],
        "code": str(Path(prade.__file__).parents[2]),
    }
    print(json.dumps(found))


@contextmanager
def _ready(way: str, private: str) -> Iterator[str]:
    """The address, once what it needs runs in this process."""
    if way != "spark":
        yield private
        return
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "2g")
    session = builder.config("spark.sql.warehouse.dir", str(Path(private).parent / "warehouse")).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.sql(f"CREATE TABLE acs USING parquet LOCATION '{private}'")
    session.sql("SELECT count(*) FROM acs").collect()
    try:
        yield "spark://session/default.acs"
    finally:
        session.stop()


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _largest_memory() -> float:
    """GiB of this process; `getrusage` would begin with those of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 2**20


# ---------------------------------------------------------------------- sources


@contextmanager
def sources(ways: list[str], rows: int) -> Iterator[dict[str, str]]:
    """The addresses of the same rows in all kinds of sources; those that cannot be made here are left out."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prade-door-")))
        makers: dict[str, Any] = {
            "parquet": lambda: str(ROWS),
            "csv": lambda: _csv(folder),
            "duckdb": lambda: _duckdb(folder),
            "postgres": lambda: stack.enter_context(_postgres(folder)),
            "spark": lambda: _spark(folder),
            "persons": lambda: _persons(folder),
            "large": lambda: _large(folder, rows),
        }
        made = {}
        for way in ways:
            try:
                made[way] = makers[way]()
            except ImportError as error:
                print(f"{way} is left out: {error}", flush=True)
        yield made


def _csv(folder: Path) -> str:
    import pyarrow.csv
    import pyarrow.parquet as pq

    place = folder / "acs.csv"
    if not place.exists():
        pyarrow.csv.write_csv(pq.read_table(ROWS), place)
    return str(place)


def _duckdb(folder: Path) -> str:
    import duckdb

    with duckdb.connect(folder / "acs.duckdb") as database:
        database.execute(f"CREATE TABLE acs AS SELECT * FROM '{ROWS}'")
    return f"duckdb://{folder / 'acs.duckdb'}/acs"


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    """A server of our own, as the tests have it."""
    sys.path.append(str(ROOT / "tests"))
    import psycopg
    import pyarrow as pa
    import pyarrow.parquet as pq

    from worlds.postgres_server import absent, server

    if words := absent():
        raise ImportError(words)

    def declared(kind: pa.DataType) -> str:
        return "bigint" if pa.types.is_integer(kind) else "float8" if pa.types.is_floating(kind) else "text"

    columns = ", ".join(f'"{field.name}" {declared(field.type)}' for field in pq.read_schema(ROWS))
    with server() as url:
        with psycopg.connect(url) as database, database.cursor() as cursor:
            cursor.execute(f"CREATE TABLE acs ({columns})")
            with cursor.copy("COPY acs FROM STDIN (FORMAT csv, HEADER)") as copy, open(_csv(folder), "rb") as file:
                while piece := file.read(2**20):
                    copy.write(piece)
        yield f"{url}/acs"


def _spark(folder: Path) -> str:
    import pyarrow.parquet as pq
    import pyspark  # noqa: F401

    (folder / "spark").mkdir()
    pq.write_table(pq.read_table(ROWS), folder / "spark" / "acs.parquet", row_group_size=GROUP_ROWS)
    return str(folder / "spark")


def _persons(folder: Path) -> str:
    """Persons with 1 to 8 rows, here and there in the file, and consecutive ids of 18 digits."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(ROWS)
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 9, len(table))
    ids = generator.permutation(np.repeat(np.arange(len(sizes)), sizes)[: len(table)]) + FIRST_ID
    pq.write_table(table.append_column(PERSON, pa.array(ids)), folder / "persons.parquet", row_group_size=GROUP_ROWS)
    return str(folder / "persons.parquet")


def _large(folder: Path, rows: int) -> str:
    import pyarrow.parquet as pq

    from prade import Schema

    wanted = ["STATE", "PUMA", *Schema.load(DATA / "acs2024.schema.toml").coded]
    table = pq.read_table(ROWS, columns=wanted)
    with pq.ParquetWriter(folder / "large.parquet", table.schema) as writer:
        for start in range(0, rows, len(table)):
            writer.write_table(table.slice(0, min(len(table), rows - start)), row_group_size=GROUP_ROWS)
    return str(folder / "large.parquet")


# ---------------------------------------------------------------------- all runs


def run(way: str, private: str, code: Path) -> dict[str, Any]:
    """One run of the version in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(code / "src"), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--child", way, private]
    with tempfile.TemporaryDirectory() as folder:  # Spark writes a database to the current folder
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if Path(found["code"]) != code.resolve():
        sys.exit(f"the run used the code in {found['code']}, not that in {code}")
    return found


def measured(addresses: dict[str, str], versions: dict[str, Path], repeat: int) -> dict[str, dict[str, Any]]:
    """For every source and version, medians and counts. Versions take turns, so that both meet the same machine."""
    figures: dict[str, dict[str, Any]] = {}
    for way, private in addresses.items():
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in versions}
        for _ in range(1 if way == "large" else repeat):
            for name, code in versions.items():
                runs[name].append(run(way, private, code))
        for name, found in runs.items():
            good = [each for each in found if "error" not in each]
            if len(good) < len(found):
                figures.setdefault(way, {})[name] = next(each for each in found if "error" in each)
                continue
            medians = {key: statistics.median(each[key] for each in good) for key in ("seconds", "processor")}
            largest = max(each["gib"] for each in good)
            same = len({each["counts"] for each in good}) == 1
            figures.setdefault(way, {})[name] = {
                **medians,
                "gib": largest,
                "counts": good[0]["counts"] if same else "differ from run to run",
                "rows": good[0]["rows"],
            }
        print(way, json.dumps(figures[way]), flush=True)
    return figures


def lines(figures: dict[str, dict[str, Any]], versions: list[str], rows: int) -> tuple[list[str], list[list[str]]]:
    """The table: a line per source and version."""
    head = ["source", "version", "seconds", "processor seconds", "largest memory, GiB", "rows counted", "counts"]
    head += ["seconds beside the other"] if len(versions) > 1 else []
    names = {**NAMES, "persons": f"parquet, at most {MOST} rows of a person", "large": f"parquet, {rows:,} rows"}
    expected = next(
        (one["counts"] for way in NAMES if way in figures for one in figures[way].values() if "counts" in one), ""
    )
    written = []
    for way, found in figures.items():
        first = next((one for one in found.values() if "counts" in one), None)
        for version in versions:
            one = found[version]
            if "error" in one:
                written.append([names[way], version, one["error"], "", "", "", "", ""][: len(head)])
                continue
            right = expected if way in NAMES else first["counts"] if first else ""
            line = [names[way], version, f"{one['seconds']:.2f}", f"{one['processor']:.2f}", f"{one['gib']:.2f}"]
            line += [f"{one['rows']:,}", "identical" if one["counts"] == right else "different"]
            other = [found[each] for each in versions if each != version and "seconds" in found[each]]
            ratio = f"{one['seconds'] / other[0]['seconds']:.2f}" if other and version == versions[0] else ""
            written.append([*line, ratio][: len(head)])
    return head, written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="another checkout, whose src/ is measured in turns with this one")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS), help="kinds of sources")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind (the large file: one)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large file")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    from common import need_data, report, table

    need_data()
    versions = {"this": ROOT} | ({"other": options.beside.resolve()} if options.beside else {})
    with sources(options.only, options.rows) as addresses:
        figures = measured(addresses, versions, options.repeat)
    head, written = lines(figures, list(versions), options.rows)
    report("door", table(head, written), figures)


if __name__ == "__main__":
    main()
