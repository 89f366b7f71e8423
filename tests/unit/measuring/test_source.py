"""What is a source and what is not; files and DuckDB."""

import gzip
import os
import sys
import tempfile

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column
from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.read.csv import DEFAULT_FORMAT
from prade.data.read.tables import PARQUET
from prade.measuring.source import open_source
from prade.measuring.streams import file_stream, without_secrets
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.counting import count, counted, duckdb_file, sqlite_file
from worlds.secret_rows import SCHEMA

PARTS = [Marginal.of(SCHEMA, [name]) for name in SCHEMA.coded]
ROWS = {
    "AGE": [3, 18, 64, 70, None, 99, 17],
    "SEX": ["f", "m", None, "f", "x", "m", "f"],
    "CODE": [1, 2, 6, 6, 2, 1, 9],
    "PUMA": ["a", "b", "a", "c", "b", "a", "a"],
}
GROUPS = {"PUMA": ["b", "a"]}
RIGHT = [[[0, 1, 0, 1], [2, 1, 1, 0]], [[0, 1, 1], [2, 1, 1]], [[0, 2, 0], [2, 0, 2]]]


def answers(source, **settings):
    with open_source(source, **settings) as opened:
        return [answer.tolist() for answer in count(opened, SCHEMA, PARTS, GROUPS)]


def csv_text():
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in zip(*ROWS.values(), strict=True)]
    return "\n".join([",".join(ROWS), *lines]) + "\n"


def test_csv_files(tmp_path):
    (tmp_path / "all.csv").write_text(csv_text())
    (tmp_path / "windows.csv").write_text("\ufeff" + csv_text().replace("\n", "\r\n"), newline="")
    (tmp_path / "all.csv.gz").write_bytes(gzip.compress(csv_text().encode()))
    for name in ("all.csv", "windows.csv", "all.csv.gz"):
        assert answers(tmp_path / name) == RIGHT, name


def test_records_with_too_few_or_too_many_cells_count_by_their_first(tmp_path):
    lines = ["AGE,SEX,CODE,PUMA", "3,f,1,a", "70", "70,m,2", "70,m,2,a,5,6", "70,m,2,b", ""]
    (tmp_path / "odd.csv").write_bytes("\n".join(lines).encode() + b"\n70,\xff\xfe,2,a\n64,m,6,a\n")
    found = answers(tmp_path / "odd.csv")
    assert found[0] == [[0, 0, 1, 0], [1, 1, 2, 0]]
    with open_source(tmp_path / "odd.csv") as source:
        assert count(source, SCHEMA, PARTS[:1])[0].sum() == 7  # every line but the empty one


def sweep_at(moment, monkeypatch):
    """Another run sweeps the first spill folder, before it is locked or while this run waits for it."""
    import fcntl

    made, swept = [], []
    make, lock = tempfile.mkdtemp, fcntl.flock

    def making(*arguments, **named):
        made.append(make(*arguments, **named))
        if moment == "before" and len(made) == 1:
            swept.append(os.rmdir(made[0]))
        return made[-1]

    def locking(handle, operation):
        if moment == "while" and not swept and not operation & fcntl.LOCK_NB:
            swept.append(os.rmdir(made[0]))
        return lock(handle, operation)

    monkeypatch.setattr("tempfile.mkdtemp", making)
    monkeypatch.setattr("fcntl.flock", locking)
    return made, swept


@pytest.mark.skipif(sys.platform == "win32", reason="there nothing is locked, and nothing swept")
@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_spill_folder_that_another_run_sweeps_is_made_anew_and_held(moment, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made, swept = sweep_at(moment, monkeypatch)
    with spill_folder():
        assert len(made) == 2
        assert len(swept) == 1
        with spill_folder():  # would sweep it if nobody had locked it
            assert os.path.isdir(made[1])
    assert list(tmp_path.iterdir()) == []


def test_a_table_in_a_duckdb_file(tmp_path, monkeypatch):
    statements = (
        "CREATE TYPE sex AS ENUM ('f', 'm', 'x')",
        "CREATE TABLE listed AS SELECT * REPLACE (SEX::sex AS SEX) FROM people",
        "CREATE SCHEMA other",
        "CREATE TABLE other.elsewhere AS SELECT * FROM people",
        'CREATE TABLE "dotted.name" AS SELECT * FROM people',
    )
    address = duckdb_file(tmp_path / "rows.db", *statements, people=ROWS).removesuffix("people")
    before = (tmp_path / "rows.db").read_bytes()
    for name in ("people", "listed", "other.elsewhere", "dotted.name"):
        assert answers(f"{address}{name}") == RIGHT
    monkeypatch.chdir(tmp_path)
    assert answers("duckdb://rows.db/people") == RIGHT
    assert counted("duckdb://rows.db/people", SCHEMA["AGE"], None, Unit(1, person_id="PUMA")).sum() == 3
    assert (tmp_path / "rows.db").read_bytes() == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "a int is not a source of rows"),
        (pl.LazyFrame(ROWS), r"a LazyFrame has no rows yet; give its \.collect\(\)"),
        ("nothing.parquet", "there is no file nothing.parquet"),
        ("*.nothing", r"there is no file \*.nothing"),
        ("duckdb://nothing.db/rows", "there is no DuckDB file nothing.db"),
        ("duckdb://nothing", "does not end in the name of a table"),
        ("gopher://host/rows", "gopher:// is not a known kind of address"),
        ("postgres://user:word@127.0.0.1:1/database/rows", r"the postgres table 'rows' failed: .*port 1 .*refused"),
        ("postgres://user:word@127.0.0.1:0/database/rows?token=word", r"the postgres table 'rows' failed: "),
    ],
)
def test_what_is_no_source_is_refused(source, message):
    with pytest.raises(DataError, match=message) as error:
        open_source(source)
    assert "word" not in str(error.value)


def test_a_table_that_does_not_exist_is_answered_with_those_that_do(tmp_path):
    address = duckdb_file(tmp_path / "duck", "CREATE SCHEMA old", "CREATE TABLE old.people AS SELECT 1", people=ROWS)
    for place in (address, sqlite_file(tmp_path / "lite", "x", [])):
        with pytest.raises(
            DataError, match=r"no table 'peple' in .*did you mean 'people'.*it has (old.people, )?people"
        ):
            open_source(place.removesuffix("people") + "peple")


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ann:s3cr%40t@host/people/rows",
        "postgres://ann:s3cr@t@host/people/rows",
        "postgres://host/people/rows?user=ann&password=s3cr%40t",
        "postgres://ann:s3cr@t@[host/people/rows",
        "postgres://ann:s3cr@t/@host/people/rows",
    ],
)
def test_a_drivers_message_is_shown_without_the_password(address):
    said = without_secrets(f'cannot parse\n{address}, host "host", password s3cr@t or s3cr%40t', address)
    assert "s3cr" not in said
    assert "\n" not in said


def test_files_of_two_kinds_or_none_are_refused(tmp_path):
    for name, text in (("a.parquet", "x\n1\n"), ("b.csv", "x\n1\n"), ("c.xlsx", "x\n1\n"), ("d.csv", "y\n1\n")):
        (tmp_path / name).write_text(text)
    refused = {"one format, parquet or CSV": ["a.parquet", "b.csv"], r"ends in \.parquet, \.csv": ["c.xlsx"]}
    for message, names in refused.items():
        with pytest.raises(DataError, match=message):
            open_source([tmp_path / name for name in names])
    with pytest.raises(DataError, match="not a well-formed parquet file"):
        open_source(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"d\.csv has no column 'x'"):
        counted([tmp_path / "b.csv", tmp_path / "d.csv"], Column("x", "categorical", values=(1, 2)))
    for header in ("y,y", "y,"):
        (tmp_path / "e.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(DataError, match="without a name or two columns with the same name"):
            open_source(tmp_path / "e.csv")


@pytest.mark.parametrize("group_rows", [2**14, 2**19], ids=["many row groups", "one row group"])
def test_a_parquet_file_is_never_in_memory_as_a_whole(group_rows, tmp_path):
    numbers = np.random.default_rng(0).random(2**19)  # 4 MiB that no compression makes smaller
    pq.write_table(pa.table({"x": numbers}), tmp_path / "rows.parquet", row_group_size=group_rows, use_dictionary=False)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for (cells,) in PARQUET.batches(tmp_path / "rows.parquet", ["x"], DEFAULT_FORMAT, 2**12, buffer=2**14):
        rows += len(cells)
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == len(numbers)
    assert most < 2**20


def test_row_groups_and_batches_lose_no_row(tmp_path):
    table = pa.table({"x": range(100), "a.b": [str(number) for number in range(100)]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=9)
    batches = list(file_stream([str(tmp_path / "rows.parquet")], rows_per_batch=7).read(["a.b", "x"]))
    assert all(list(batch) == ["a.b", "x"] for batch in batches)
    assert [cell for batch in batches for cell in batch["x"].to_pylist()] == list(range(100))
    assert [cell for batch in batches for cell in batch["a.b"].to_pylist()] == [str(number) for number in range(100)]
