"""Attacks on the door: plans, tables and bytes that once told, for nothing, what one person's row holds.

A plan may come from outside. Whatever it asks, whether a run succeeds must not depend on a row
(`tests/property/test_law_of_the_door.py` tries every type of every engine); and if it ever does, the run has been paid
for, and the ledger shows it.
"""

import datetime
import itertools

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from prade import Budget, Column, Ledger, Level, Plan, Schema, Unit, Workload
from prade.core.errors import BudgetError, DataError, PradeError
from prade.data.public.table import PublicFiles
from prade.data.read.cells import text_of_bytes
from prade.data.read.csv import CsvFormat, csv_batches
from prade.measuring.run import measure
from prade.measuring.source import open_source
from worlds.counting import counted, duckdb_file

DAY = datetime.date
CAP = Budget.pure(3)


def tried(plan, private, folder, ledger):
    """What a run says, without the names of its folder; all of it, notes included."""
    try:
        measure(plan, private, folder, ledger)
    except PradeError as error:
        said = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
        return "\n".join(said).replace(str(folder), "FOLDER")
    return "released"


BIRTHS = {"p17": DAY(1961, 5, 4), "p18": DAY(1990, 1, 1), "p19": None}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"edges": (DAY(1000, 1, 1), DAY(1961, 5, 5))}, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        ({"edges": (DAY(1980, 1, 1),), "max": DAY(9999, 12, 31)}, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        ({"edges": (DAY(1980, 1, 1), DAY(9999, 12, 31))}, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    ],
    ids=["early edge", "late limit", "late edge"],
)
def test_dates_beyond_nanoseconds_may_be_in_a_schema(declared, expected, tmp_path):
    """Dates as DuckDB makes them of a pandas frame: as TIMESTAMP_NS, which ends in 1677 and 2262."""
    frame = pd.DataFrame({"PERSON": list(BIRTHS), "BORN": pd.to_datetime(pd.Series(list(BIRTHS.values())))})
    kind = "ALTER TABLE people ALTER BORN TYPE TIMESTAMP_NS"
    births = duckdb_file(tmp_path / "births.duckdb", kind, people=frame)
    column = Column("BORN", "numeric", missing=True, **declared)
    assert counted(births, column, {"PERSON": list(BIRTHS)}).tolist() == expected


@pytest.mark.parametrize(("cell", "kind"), [(10**38, "HUGEINT"), (-(10**38), "HUGEINT"), (2**128 - 1, "UHUGEINT")])
@pytest.mark.parametrize("rows", [0, 1])
def test_numbers_beyond_decimals_are_cells_of_duckdb(cell, kind, rows, tmp_path):
    made = f"CREATE TABLE people AS SELECT CAST('{cell}' AS {kind}) AS x FROM range({rows})"
    private = duckdb_file(tmp_path / "rows.duckdb", made)
    texts = Column("x", "categorical", values=("1", "2"), missing=True)
    assert counted(private, texts).tolist() == [[0, 0, rows]]
    expected = [rows, 0] if cell < 0 else [0, rows]
    assert counted(private, Column("x", "numeric", edges=(1e37,))).tolist() == [expected]


@pytest.mark.parametrize(("unit", "raw"), [("s", 2**45), ("s", -(2**45)), ("ms", 2**60), ("ms", -(2**60))])
def test_times_beyond_microseconds_are_cells_of_duckdb(unit, raw, tmp_path):
    column = Column("x", "numeric", edges=(DAY(2000, 1, 1),), max=DAY(9999, 12, 31))
    private = duckdb_file(tmp_path / "rows.duckdb", people=pa.table({"x": pa.array([raw], pa.timestamp(unit))}))
    assert counted(private, column).tolist() == [[1, 0] if raw < 0 else [0, 1]]


IDS = [10**17 + number for number in range(1000)]
AGES = [number % 90 for number in range(1000)]
FRAMES = {
    "pandas": lambda folder: pd.DataFrame({"AGE": AGES, "ID": pd.Series(IDS, dtype="Int64")}),
    "objects": lambda folder: pd.DataFrame({"AGE": AGES, "ID": pd.Series(IDS, dtype=object)}),
    "polars": lambda folder: pl.DataFrame({"AGE": AGES, "ID": IDS}).with_columns(pl.col("ID").cast(pl.Int128)),
    "decimals": lambda folder: pl.DataFrame({"AGE": AGES, "ID": IDS}).with_columns(
        pl.col("ID").cast(pl.Decimal(38, 0))
    ),
    "csv": lambda folder: written(folder / "people.csv"),
}


def written(place):
    pd.DataFrame({"AGE": AGES, "ID": IDS}).to_csv(place, index=False)
    return place


@pytest.mark.parametrize("kind", FRAMES)
def test_each_id_is_a_person(kind, tmp_path):
    """A thousand ids are a thousand persons, also where a type is none of Arrow's."""
    ages = Column("AGE", "numeric", edges=(18, 65))
    assert counted(FRAMES[kind](tmp_path), ages, None, Unit(1, person_id="ID")).sum() == 1000


def test_an_ibis_table_is_refused_by_name():
    """One of the polars backend was in memory, and was taken."""
    table = type("Table", (), {"__module__": "ibis.expr.types.relations", "columns": ("AGE",)})()
    with pytest.raises(DataError, match=r"(?i)ibis.*parquet"):
        open_source(table)


@pytest.mark.parametrize(
    "address", ["mysql://me:hush@host/db/people", "bigquery://project/set/people", "file:///x/people"]
)
def test_other_databases_are_refused_by_name(address):
    with pytest.raises(DataError, match=address.partition(":")[0]) as refused:
        open_source(address)
    assert "hush" not in str(refused.value)


LONG = 1000  # bytes of a line that count, in these tests


def batches(place, text, block):
    """The records of a file whose lines may have few bytes, in any order: of each the first and the third cell."""
    place.write_bytes(b"a,b,c\n" + text)
    found = []
    for columns in csv_batches(str(place), CsvFormat(), 3, [0, 2], longest=LONG, block=block):
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
def test_a_record_that_is_too_long_changes_no_other(block, tmp_path):
    """Which bytes of it count does not depend on the records before and after it, wherever they are cut into blocks."""

    def read(*lines):
        return batches(tmp_path / "rows.csv", b"\n".join([*lines, b""]), block)

    short = [b"1,2,3", b'4,"5",6', b"7,8"]
    alone = {each: read(each) for each in (*LONG_LINES, *short)}
    assert all(len(records) == 1 for records in alone.values())
    for others in itertools.permutations(LONG_LINES, 2):
        lines = [short[0], others[0], short[1], others[1], short[2]]
        assert read(*lines) == sorted(itertools.chain(*(alone[line] for line in lines)), key=str)


def test_different_bytes_are_different_texts():
    assert text_of_bytes(b"\xff\x5c\x78\x66\x66") != text_of_bytes(b"\x5c\x78\x66\x66\xff")
    letters = [b"\xff", b"\\", b"x", b"f", b"\xef", b"\xbf", b"\xbd", b"e", b"\xef\xbf\xbd"]
    every = {b"".join(each) for size in range(5) for each in itertools.product(letters, repeat=size)}
    assert len({text_of_bytes(raw) for raw in every}) == len(every)


SECRET = "hush-4711"


def probe(number):
    """A plan, another one for each number."""
    schema = Schema([Column("X", "numeric", edges=(10 + number,))])
    return Plan("people", schema, Budget.pure(1), Unit(1), [Level((), Workload.all_marginals(schema, 1))])


@pytest.fixture
def broken(tmp_path):
    """A view of the custodian's that fails on a cell: a bug that is still there, for all that a plan knows."""
    view = "CREATE VIEW people AS SELECT CAST(cell AS BIGINT) AS X FROM raw"
    return duckdb_file(tmp_path / "broken.duckdb", view, raw={"cell": ["1", SECRET]})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.ledger")
    made.open_dataset("people", Unit(1), CAP)
    return made


def test_a_plan_from_outside_cannot_probe_for_free(broken, ledger, tmp_path):
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


def with_public(folder, version):
    """A plan with a public file and its hash."""
    (folder / "public.csv").write_text("X\n1\n")
    files = PublicFiles.at([folder / "public.csv"]).hashed()
    return probe(0).changed(public=files, version=version)


def test_a_plan_whose_hash_leaves_out_its_public_files_is_not_measured(tmp_path, ledger):
    """Else plans with other public files would share one payment. Files of version 0.9 are of this kind."""
    rows = pa.table({"X": [1, 70]})
    with pytest.raises(DataError, match="the plan's hash leaves out its public files"):
        measure(with_public(tmp_path, 1), rows, tmp_path / "release", ledger)
    assert ledger.entries("people") == []
    measure(with_public(tmp_path, 2), rows, tmp_path / "release", ledger)


@pytest.mark.parametrize("manifest", ["{}", '{"plan": "another"}', "[]", "not JSON"])
def test_a_manifest_of_another_plan_does_not_widen_the_folder(manifest, tmp_path):
    """Only the release of this very plan may use files beside its own folder."""
    plan, folder = with_public(tmp_path, 2), tmp_path / "inside"
    folder.mkdir()
    plan.save(folder / "plan.toml")
    (folder / "release.json").write_text(manifest)
    with pytest.raises(DataError, match="lies outside the plan's folder"):
        Plan.load(folder / "plan.toml").public.checked()
    (folder / "release.json").write_text(f'{{"plan": "{plan.hash}"}}')
    assert Plan.load(folder / "plan.toml").public.checked().files == plan.public.files
