"""Attacks on the door: plans, tables and bytes that once told, for nothing, what one person's row holds.

A plan may come from outside. Whatever it asks, whether a run succeeds must not depend on a row; and if it ever does,
the run has been paid for, and the ledger shows it.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Budget, Column, Ledger, Level, Plan, Schema, Unit, Workload
from prade.core.errors import BudgetError, DataError, PradeError
from prade.data.public.table import PublicFiles
from prade.data.read.cells import text_of_bytes
from prade.data.read.csv import CsvFormat, csv_batches
from prade.measuring.run import measure
from prade.measuring.source import open_source
from worlds.counting import counted, duckdb_file, sqlite_file

DAY = datetime.date
CAP = Budget.pure(3)


def tried(plan: Plan, private: Any, folder: Path, ledger: Ledger) -> str:
    """What a run says, without the names of its folder; all of it, notes included."""
    try:
        measure(plan, private, folder, ledger)
    except PradeError as error:
        said = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
        return "\n".join(said).replace(str(folder), "FOLDER")
    return "released"


# ---------------------------------------------------------------------- dates of birth, one question after the other

BORN = DAY(1961, 5, 4)
BIRTHS = {"p17": BORN, "p18": DAY(1990, 1, 1), "p19": None}


@pytest.fixture
def births(tmp_path: Path) -> str:
    """A table as DuckDB makes it of a pandas frame: dates are TIMESTAMP_NS, which ends in 1677 and 2262."""
    frame = pd.DataFrame({"PERSON": list(BIRTHS), "BORN": pd.to_datetime(pd.Series(list(BIRTHS.values())))})
    kind = "ALTER TABLE people ALTER BORN TYPE TIMESTAMP_NS"
    return duckdb_file(tmp_path / "births.duckdb", kind, people=frame)


def test_a_date_beyond_nanoseconds_and_a_column_that_is_not_there_tell_nothing(births: str, tmp_path: Path) -> None:
    """Seventeen such plans once gave a date of birth: whether a run missed the column or overflowed was the answer.

    The column is missed before a row is read, whatever the date; so nothing is spent, and nothing is learned.
    """
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.open_dataset("people", Unit(1), CAP)
    low, high, said = DAY(1900, 1, 1), DAY(2020, 1, 1), []
    for _ in range(17):
        middle = low + (high - low) / 2
        born = Column("BORN", "numeric", edges=(DAY(1000, 1, 1), middle))
        schema = Schema([born, Column("GONE", "numeric", edges=(1,))])
        levels = [Level("PERSON", Workload.marginals(schema, [name])) for name in ("BORN", "GONE")]
        plan = Plan("people", schema, Budget.pure(1), Unit(1), levels, {"PERSON": ["p17"]})
        said.append(tried(plan, births, tmp_path / "release", ledger))
        low, high = (middle, high) if middle <= BORN else (low, middle)  # as an attacker would, had it been told
    assert low == BORN
    assert set(said) == {said[0]}
    assert "'GONE'" in said[0]
    assert ledger.entries("people") == []
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"edges": (DAY(1000, 1, 1), DAY(1961, 5, 5))}, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        ({"edges": (DAY(1980, 1, 1),), "max": DAY(9999, 12, 31)}, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        ({"edges": (DAY(1980, 1, 1), DAY(9999, 12, 31))}, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    ],
    ids=["early edge", "late limit", "late edge"],
)
def test_dates_beyond_nanoseconds_may_be_in_a_schema(births: str, declared: Any, expected: Any) -> None:
    column = Column("BORN", "numeric", missing=True, **declared)
    assert counted(births, column, {"PERSON": list(BIRTHS)}).tolist() == expected


# ---------------------------------------------------------------------- ids that doubles cannot tell apart

IDS = [10**17 + number for number in range(1000)]
NUMBERS = {"AGE": [number % 90 for number in range(1000)]}
AGE = Column("AGE", "numeric", edges=(18, 65))


def people(ids: list[int], kind: str = "int64") -> pa.Table:
    made = {
        "text": lambda: pa.array(list(map(str, ids))),
        "decimal": lambda: pa.array(list(map(Decimal, ids)), pa.decimal128(38, 0)),
        "decimal with a scale": lambda: pa.array(list(map(Decimal, ids)), pa.decimal128(38, 10)),
    }
    column = made[kind]() if kind in made else pa.array(ids, kind)
    return pa.table({"AGE": pa.array(NUMBERS["AGE"][: len(ids)], pa.int64()), "ID": column})


def parquet(ids: list[int], kind: str, folder: Path) -> Path:
    pq.write_table(people(ids, kind), folder / "people.parquet")
    return folder / "people.parquet"


def csv(ids: list[int], kind: str, folder: Path) -> Path:
    people(ids).to_pandas().to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def duckdb(ids: list[int], kind: str, folder: Path) -> str:
    cast = f"CREATE TABLE people AS SELECT AGE, CAST(ID AS {kind}) AS ID FROM raw"
    return duckdb_file(folder / f"{len(ids)}.duckdb", cast, raw=people(ids))


def sqlite(ids: list[int], kind: str, folder: Path) -> str:
    rows = zip(NUMBERS["AGE"], ids, strict=False)
    return sqlite_file(folder / f"{len(ids)}.sqlite", f"AGE INTEGER, ID {kind}", rows)


def pandas(ids: list[int], kind: str, folder: Path) -> pd.DataFrame:
    return people(ids).to_pandas().assign(ID=pd.Series(ids, dtype=kind))


def polars(ids: list[int], kind: str, folder: Path) -> pl.DataFrame:
    exact = pl.Decimal(38, 0) if kind == "Decimal" else getattr(pl, kind)
    return pl.from_arrow(people(ids)).with_columns(pl.col("ID").cast(exact))


ARROW = ["int64", "uint64", "text", "decimal", "decimal with a scale"]
SOURCES: dict[Callable[[list[int], str, Path], Any], list[str]] = {
    lambda ids, kind, folder: people(ids, kind): ARROW,
    parquet: ARROW,
    pandas: ["int64", "UInt64", "Int64", "object"],
    polars: ["Int64", "UInt64", "Int128", "String", "Decimal"],
    csv: [""],
    duckdb: ["BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "VARCHAR", "DECIMAL(38, 0)", "DECIMAL(38, 5)"],
    sqlite: ["INTEGER", "TEXT", "NUMERIC", ""],
}


def each_is_a_person(opened: Callable[[list[int]], Any]) -> None:
    """A thousand ids are a thousand persons, and the last one of them changes one count by one."""
    without, everybody = (counted(opened(ids), AGE, None, Unit(1, person_id="ID")) for ids in (IDS[:-1], IDS))
    assert everybody.sum() == 1000
    assert np.abs(everybody - without).sum() == 1


@pytest.mark.parametrize(("source", "kind"), [(source, kind) for source, kinds in SOURCES.items() for kind in kinds])
def test_each_id_is_a_person(source: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    each_is_a_person(lambda ids: source(ids, kind, tmp_path))


@contextmanager
def postgres_table(url: str, columns: str, rows: str) -> Iterator[str]:
    """The address of a table of PostgreSQL that is gone afterwards; `rows` is a statement that selects its rows."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS attacked")
        database.execute(f"CREATE TABLE attacked ({columns})")
        if rows:
            database.execute(f"INSERT INTO attacked {rows}")
        yield f"{url}/attacked"
        database.execute("DROP TABLE attacked")


@pytest.mark.parametrize("kind", ["bigint", "numeric", "numeric(30, 5)", "text", "char(20)"])
def test_ids_of_postgres(kind: str, postgres_url: str) -> None:
    found = []
    for most in (998, 999):
        rows = f"SELECT n % 90, (100000000000000000 + n)::{kind} FROM generate_series(0, {most}) AS n"
        with postgres_table(postgres_url, f'"AGE" integer, "ID" {kind}', rows) as address:
            found.append(counted(address, AGE, None, Unit(1, person_id="ID")))
    assert found[1].sum() == 1000
    assert np.abs(found[1] - found[0]).sum() == 1


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_ids_of_spark(spark: Any) -> None:
    for kind in ("BIGINT", "STRING", "DECIMAL(38, 0)"):

        def view(ids: list[int], kind: str = kind) -> str:
            rows = spark.session.createDataFrame(people(ids)).selectExpr("AGE", f"CAST(ID AS {kind}) AS ID")
            rows.createOrReplaceTempView("attacked")
            return "spark://session/attacked"

        each_is_a_person(view)


# ---------------------------------------------------------------------- cells on which an engine fails


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT"])
@pytest.mark.parametrize("cell", [10**38, 2**127 - 1, -(10**38)])
def test_numbers_beyond_decimals_are_cells_of_duckdb(kind: str, cell: int, tmp_path: Path) -> None:
    if kind == "UHUGEINT" and cell < 0:
        cell = 2**128 - 1
    for rows in (0, 1):
        made = f"CREATE TABLE people AS SELECT CAST('{cell}' AS {kind}) AS x FROM range({rows})"
        private = duckdb_file(tmp_path / f"{rows}.duckdb", made)
        texts = Column("x", "categorical", values=("1", "2"), missing=True)
        assert counted(private, texts).tolist() == [[0, 0, rows]]
        expected = [rows, 0] if cell < 0 else [0, rows]
        assert counted(private, Column("x", "numeric", edges=(1e37,))).tolist() == [expected]


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("sign", [1, -1])
def test_times_beyond_microseconds_are_cells_of_duckdb(unit: str, sign: int, tmp_path: Path) -> None:
    column = Column("x", "numeric", edges=(DAY(2000, 1, 1),), max=DAY(9999, 12, 31))
    for rows in (0, 1):
        raw = [sign * (2**45 if unit == "s" else 2**60)] * rows
        given = pa.table({"x": pa.array(raw, pa.timestamp(unit))})
        private = duckdb_file(tmp_path / f"{rows}.duckdb", people=given)
        assert counted(private, column).tolist() == [[rows, 0] if sign < 0 else [0, rows]]


def test_sums_of_duckdb_may_be_counted(tmp_path: Path) -> None:
    """A sum of BIGINT is a HUGEINT."""
    made = "CREATE TABLE people AS SELECT sum(n) AS x FROM range(10) AS t(n) GROUP BY n % 5"
    found = counted(duckdb_file(tmp_path / "sums.duckdb", made), Column("x", "numeric", edges=(8, 12)))
    assert found.tolist() == [[2, 2, 1]]


def test_an_oid_and_a_long_list_of_texts(postgres_url: str) -> None:
    listed = [str(number) for number in range(100, 200)] + ["4294967295"]
    for rows, expected in (("", 0), ("SELECT 4294967295 UNION ALL SELECT 7", 1)):
        with postgres_table(postgres_url, "x oid", rows) as address:
            found = counted(address, Column("x", "categorical", values=listed, missing=True))
        assert (found[0, 100], found[0, 101]) == (expected, expected)


# ---------------------------------------------------------------------- sources that are none


def test_an_ibis_table_is_refused_by_name() -> None:
    """One of the polars backend was in memory, and was taken."""
    table = type("Table", (), {"__module__": "ibis.expr.types.relations", "columns": ("AGE",)})()
    with pytest.raises(DataError, match=r"(?i)ibis.*parquet"):
        open_source(table)


@pytest.mark.parametrize(
    "address", ["mysql://me:hush@host/db/people", "bigquery://project/set/people", "file:///x/people"]
)
def test_other_databases_are_refused_by_name(address: str) -> None:
    with pytest.raises(DataError, match=address.partition(":")[0]) as refused:
        open_source(address)
    assert "hush" not in str(refused.value)


# ---------------------------------------------------------------------- bytes

LONG = 1000  # bytes of a line that count, in these tests


def batches(place: Path, text: bytes) -> list[tuple[Any, ...]]:
    """The records of a file whose lines may have few bytes, in any order: of each the first and the third cell."""
    place.write_bytes(b"a,b,c\n" + text)
    found = []
    for columns in csv_batches(str(place), CsvFormat(), 3, [0, 2], longest=LONG):
        found += list(zip(*(column.to_pylist() for column in columns), strict=True))
    return sorted(found, key=str)


LONG_LINES = [
    b"x" * (LONG - 4) + b",2,3,4",
    b"1,2," + b"y" * 3 * LONG,
    b'1,"' + b"z" * LONG + b'",3',
    b"1,2,3" + b"," * LONG + b'"' * 7,
    b"1,2," + b"w" * (LONG - 4),
    b"1,2," + b"w" * (LONG - 4) + b"\r",
]


@pytest.mark.parametrize("block", [64, 997, 1000, 1001, 4096])
def test_a_record_that_is_too_long_changes_no_other(block: int, tmp_path: Path, monkeypatch: Any) -> None:
    """Which bytes of it count does not depend on the records before and after it, wherever they are cut into blocks."""
    monkeypatch.setattr("prade.data.read.csv.BLOCK", block)
    short = [b"1,2,3", b'4,"5",6', b"7,8"]
    alone = {each: batches(tmp_path / "rows.csv", each + b"\n") for each in (*LONG_LINES, *short)}
    assert all(len(records) == 1 for records in alone.values())
    for others in itertools.permutations(LONG_LINES, 2):
        lines = [short[0], others[0], short[1], others[1], short[2]]
        expected = sorted(itertools.chain(*(alone[line] for line in lines)), key=str)
        assert batches(tmp_path / "rows.csv", b"\n".join(lines) + b"\n") == expected


def test_different_bytes_are_different_texts() -> None:
    assert text_of_bytes(b"\xff\x5c\x78\x66\x66") != text_of_bytes(b"\x5c\x78\x66\x66\xff")
    letters = [b"\xff", b"\\", b"x", b"f", b"\xef", b"\xbf", b"\xbd", b"e", b"\xef\xbf\xbd"]
    every = {b"".join(each) for size in range(5) for each in itertools.product(letters, repeat=size)}
    assert len({text_of_bytes(raw) for raw in every}) == len(every)


# ---------------------------------------------------------------------- what a probe costs

SECRET = "hush-4711"


def probe(number: int) -> Plan:
    """A plan, another one for each number."""
    schema = Schema([Column("X", "numeric", edges=(10 + number,))])
    return Plan("people", schema, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(schema, 1))])


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A view of the custodian's that fails on a cell: a bug that is still there, for all that a plan knows."""
    view = "CREATE VIEW people AS SELECT CAST(cell AS BIGINT) AS X FROM raw"
    return duckdb_file(tmp_path / "broken.duckdb", view, raw={"cell": ["1", SECRET]})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budget.ledger")
    made.open_dataset("people", Unit(1), CAP)
    return made


def test_a_plan_from_outside_cannot_probe_for_free(broken: str, ledger: Ledger, tmp_path: Path) -> None:
    """As many questions as the cap allows, each on the record; then the ledger refuses before a row is read."""
    for number in range(3):
        said = tried(probe(number), broken, tmp_path / f"release-{number}", ledger)
        assert said != "released"
        assert SECRET not in said
        entry = ledger.entries("people")[-1]
        assert (entry.state, entry.drawn, [failure.stage for failure in entry.failures]) == ("failed", False, ["count"])
        assert not (tmp_path / f"release-{number}").exists()
    assert ledger.remaining("people") == Budget.pure(0)
    assert SECRET.encode() not in ledger.path.read_bytes()
    with pytest.raises(BudgetError):
        measure(probe(3), broken, tmp_path / "release-3", ledger)
    assert len(ledger.entries("people")) == 3


# ---------------------------------------------------------------------- plans that leave something out


def with_public(folder: Path, version: int) -> Plan:
    """A plan with a public file and its hash."""
    (folder / "public.csv").write_text("X\n1\n")
    files = PublicFiles.at([folder / "public.csv"]).hashed()
    return probe(0).changed(public=files, version=version)


def test_a_plan_whose_hash_leaves_out_its_public_files_is_not_measured(tmp_path: Path, ledger: Ledger) -> None:
    """Else plans with other public files would share one payment. Files of version 0.9 are of this kind."""
    rows = pa.table({"X": [1, 70]})
    with pytest.raises(DataError, match="the plan's hash leaves out its public files"):
        measure(with_public(tmp_path, 1), rows, tmp_path / "release", ledger)
    assert ledger.entries("people") == []
    measure(with_public(tmp_path, 2), rows, tmp_path / "release", ledger)


@pytest.mark.parametrize("manifest", ["{}", '{"plan": "another"}', "[]", "not JSON"])
def test_a_manifest_of_another_plan_does_not_widen_the_folder(manifest: str, tmp_path: Path) -> None:
    """Only the release of this very plan may use files beside its own folder."""
    plan, folder = with_public(tmp_path, 2), tmp_path / "inside"
    folder.mkdir()
    plan.save(folder / "plan.toml")
    (folder / "release.json").write_text(manifest)
    with pytest.raises(DataError, match="lies outside the plan's folder"):
        Plan.load(folder / "plan.toml").public.checked()
    (folder / "release.json").write_text(f'{{"plan": "{plan.hash}"}}')
    assert Plan.load(folder / "plan.toml").public.checked().files == plan.public.files
