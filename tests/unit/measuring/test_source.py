"""What is a source and what is not; files, DuckDB and memory limits."""

import gzip
import os
import sqlite3
import sys
import tempfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, Schema
from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.public.joint import encode
from prade.measuring.source import count, open_source
from prade.measuring.streams import without_secrets
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal
from worlds.counting import counted, duckdb_file

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=(18, 65), missing=True),
        Column("SEX", "categorical", values=("f", "m"), missing=True),
        Column("CODE", "categorical", values=(1, 2, 6)),
    ]
)
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


def test_the_example_is_what_the_codec_says():
    codes = encode(SCHEMA, ROWS).codes
    place = np.array([GROUPS["PUMA"].index(puma) if puma in "ab" else 2 for puma in ROWS["PUMA"]])
    for part, right in zip(PARTS, RIGHT, strict=True):
        cells = part.cells(SCHEMA, codes)
        assert [np.bincount(cells[place == each], minlength=part.n_cells).tolist() for each in (0, 1)] == right


@pytest.mark.parametrize(
    "table",
    [
        pa.table(ROWS),
        pa.table(ROWS).to_batches()[0],
        pd.DataFrame(ROWS).astype({"SEX": "category"}),
        pd.DataFrame(ROWS, dtype=object),
        pl.DataFrame(ROWS).with_columns(pl.col("SEX").cast(pl.Categorical)),
        ROWS,
    ],
    ids=["arrow", "batch", "pandas categories", "objects", "polars categories", "dict"],
)
def test_tables_in_memory(table):
    assert answers(table) == RIGHT


def test_parquet_files(tmp_path):
    table = pa.table(ROWS)
    pq.write_table(table, tmp_path / "all.parquet")
    pq.write_table(table.slice(0, 3), tmp_path / "part-1.parquet")
    pq.write_table(table.slice(3), tmp_path / "part-2.parquet")
    assert answers(tmp_path / "all.parquet") == RIGHT
    assert answers(str(tmp_path / "part-*.parquet")) == RIGHT
    assert answers([tmp_path / "part-1.parquet", tmp_path / "part-2.parquet"]) == RIGHT


def csv_text():
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in zip(*ROWS.values(), strict=True)]
    return "\n".join([",".join(ROWS), *lines]) + "\n"


def test_csv_files(tmp_path):
    (tmp_path / "all.csv").write_text(csv_text())
    (tmp_path / "windows.csv").write_text("\ufeff" + csv_text().replace("\n", "\r\n"), newline="")
    (tmp_path / "all.csv.gz").write_bytes(gzip.compress(csv_text().encode()))
    for name in ("all.csv", "windows.csv", "all.csv.gz"):
        assert answers(tmp_path / name) == RIGHT, name


@pytest.mark.parametrize("odd", ["", "x,0\n", "1.5,0\n", "2020-01-01,0\n", '"a\nb",0\n', "true,0\n"])
def test_one_cell_does_not_change_how_others_are_read(odd, tmp_path):
    """With guessed types, "06" among whole numbers, or one word, would turn all other cells into text."""
    (tmp_path / "x.csv").write_text("x,y\n1,0\n2,0\n1,0\n" + odd)
    found = counted(tmp_path / "x.csv", Column("x", "categorical", values=("1", "2"), missing=True))
    assert found[0, :2].tolist() == [2, 1]


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


def test_without_a_temporary_folder_the_error_is_a_plain_one(tmp_path, monkeypatch):
    """Only a bound on a person's rows takes one, and only where there are more rows than memory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert answers(ROWS) == RIGHT
    with open_source(ROWS, memory_limit="1B") as source, pytest.raises(DataError, match=r"failed .*FileNotFoundError"):
        count(source, SCHEMA, PARTS, GROUPS, Unit(1, person_id="PUMA"))


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
    ("limit", "size"), [("1GiB", 2**30), ("500 MB", 5 * 10**8), ("0.5kib", 512), ("7", 7), ("7B", 7)]
)
def test_a_memory_limit_is_a_size(limit, size):
    with open_source(ROWS, memory_limit=limit) as source:
        assert source.memory == size


@pytest.mark.parametrize("limit", ["much", "", "-1GiB", "1 GiB of", "1XB"])
def test_other_memory_limits_are_refused(limit):
    with pytest.raises(DataError, match="give a size such as 500MB or 1GiB"):
        open_source(ROWS, memory_limit=limit)


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
    statements = [f"CREATE TABLE {name} AS SELECT 'Atlantis' AS x" for name in ("people", "places")]
    address = duckdb_file(tmp_path / "duck", "CREATE SCHEMA old", "CREATE TABLE old.people AS SELECT 1", *statements)
    with sqlite3.connect(tmp_path / "lite") as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    for place in (address.removesuffix("/people"), f"sqlite://{tmp_path}/lite"):
        for name in ("peple", "main.peple"):
            with pytest.raises(
                DataError, match=rf"no table '{name}' in .*did you mean 'people'.*it has (old.people, )?people, places"
            ) as error:
                open_source(f"{place}/{name}")
            assert "Atlantis" not in str(error.value)


def test_a_name_that_means_two_tables_is_refused(tmp_path):
    tables = [f"CREATE TABLE {name} AS SELECT 1 AS x" for name in ('"a.b".c', 'a."b.c"')]
    duckdb_file(tmp_path / "db", "CREATE SCHEMA a", 'CREATE SCHEMA "a.b"', *tables)
    with pytest.raises(DataError, match=r"'a\.b\.c' means 2 tables"):
        open_source(f"duckdb://{tmp_path}/db/a.b.c")


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
    for names in (["a.parquet", "b.csv"], ["c.xlsx"]):
        with pytest.raises(DataError, match="all parquet or all CSV"):
            open_source([tmp_path / name for name in names])
    with pytest.raises(DataError, match="failed in the engine"):
        open_source(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"d\.csv lacks the column 'x', which another file has"):
        counted([tmp_path / "b.csv", tmp_path / "d.csv"], Column("x", "categorical", values=(1, 2)))
    for header in ("y,y", "y,"):
        (tmp_path / "e.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(DataError, match="without a name or two columns with the same name"):
            open_source(tmp_path / "e.csv")
