"""Every kind of source gives the same counts, and no cell of any of them shows up in a message, a file or a warning."""

import gzip
import io
import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Column, CsvFile, Schema
from prade.core.errors import DataError
from prade.core.files import spill_folder
from prade.data.public.joint import encode
from prade.measuring.person_bound import PersonRows
from prade.measuring.source import Source, count, open_source
from prade.measuring.streams import Stream, without_secrets
from prade.privacy.protection import Unit
from prade.queries.parts import Marginal

SECRET = "hush-4711"
HUGE = 8_675_309_867_530_912_345

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
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).astype({"SEX": "category"}),
        pd.DataFrame(ROWS, dtype=object),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).with_columns(pl.col("SEX").cast(pl.Categorical)),
        ROWS,
    ],
    ids=["arrow", "batch", "pandas", "categories", "objects", "polars", "polars categories", "dict"],
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


def test_one_cell_does_not_change_how_others_are_read(tmp_path):
    """With guessed types, "06" among whole numbers, or one word, would turn all other cells into text."""
    schema = Schema([Column("x", "categorical", values=("1", "2"), missing=True)])
    part = Marginal.of(schema, ["x"])
    found = []
    for odd in ("", "x\n", "1.5\n", "2020-01-01\n", '"a\nb"\n', "true\n"):
        (tmp_path / "x.csv").write_text(
            "x,y\n" + "".join(f"{cell},0\n" for cell in (1, 2, 1)) + odd.replace("\n", ",0\n", 1)
        )
        with open_source(tmp_path / "x.csv") as source:
            found.append(count(source, schema, [part])[0][0, :2].tolist())
    assert found == [[2, 1]] * len(found)


def test_records_with_too_few_or_too_many_cells_count_by_their_first(tmp_path):
    lines = ["AGE,SEX,CODE,PUMA", "3,f,1,a", "70", "70,m,2", "70,m,2,a,5,6", "70,m,2,b", ""]
    (tmp_path / "odd.csv").write_bytes("\n".join(lines).encode() + b"\n70,\xff\xfe,2,a\n64,m,6,a\n")
    found = answers(tmp_path / "odd.csv")
    assert found[0] == [[0, 0, 1, 0], [1, 1, 2, 0]]
    with open_source(tmp_path / "odd.csv") as source:
        assert count(source, SCHEMA, PARTS[:1])[0].sum() == 7  # every line but the empty one


def young_and_old(path, text):
    """How many rows are below 18 and how many are 65 or more, of CSV text written to a file."""
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
    with open_source(CsvFile(path, line_breaks=True)) as source:
        (found,) = count(source, SCHEMA, PARTS[:1])
    return found[0, 0], found[0, 2]


@pytest.mark.parametrize(
    ("name", "cut", "size"),
    [
        ("rows.csv", 2**23, 70),
        ("rows.csv", 2**23, 700),
        ("rows.csv", 2**23, 20_000_000),
        ("rows.csv.gz", 2**23, 700),
        ("rows.csv.gz", 2**23, 1_000_000),
    ],
)
def test_lines_inside_a_quoted_cell_are_no_rows(name, cut, size, tmp_path):
    """Files are read in pieces of 2**22 bytes; a cell full of lines lies across a cut."""
    header, line, inner = b"AGE,NOTE\r\n", b"70," + b"x" * 500 + b"\r\n", b"\r\n3,x"
    note = inner * (size // len(inner))
    before, rest = divmod(max(cut - len(header) - len(note) // 2, 10_000), len(line))
    filler = line.replace(b"x", b"x" * (rest + 1), 1)  # so that the middle of the cell is at the cut
    text = header + filler + line * (before - 1) + b'3,"' + note + b'"\r\n' + line * 5000
    assert young_and_old(tmp_path / name, text) == (1, before + 5000)


def test_what_a_killed_run_spilled_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with spill_folder() as made:
        left = made.with_name("prade-spill-left")
        shutil.copytree(made, left)  # with the mark; nobody holds it
    (left / "rows.tmp").write_text("private")
    with spill_folder():
        own = {path.name for path in tmp_path.iterdir()}
        assert len(own) == 1
        assert left.name not in own
        with spill_folder():  # leaves the living one's folder alone
            assert own < {path.name for path in tmp_path.iterdir()}
        assert own == {path.name for path in tmp_path.iterdir()}
    assert list(tmp_path.iterdir()) == []


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
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.db")) as database:
        database.register("memory", pa.table(ROWS))
        database.execute("CREATE TABLE people AS SELECT * FROM memory")
        database.execute("CREATE TYPE sex AS ENUM ('f', 'm', 'x')")
        database.execute("CREATE TABLE listed AS SELECT * REPLACE (SEX::sex AS SEX) FROM memory")
        database.execute("CREATE SCHEMA other")
        database.execute("CREATE TABLE other.elsewhere AS SELECT * FROM memory")
        database.execute('CREATE TABLE "dotted.name" AS SELECT * FROM memory')
    before = (tmp_path / "rows.db").read_bytes()
    assert answers(f"duckdb://{tmp_path}/rows.db/people") == RIGHT
    for name in ("listed", "other.elsewhere", "dotted.name"):
        assert answers(f"duckdb://{tmp_path}/rows.db/{name}") == RIGHT
    monkeypatch.chdir(tmp_path)
    assert answers("duckdb://rows.db/people") == RIGHT
    with open_source("duckdb://rows.db/people") as source:
        (young, *_) = count(source, SCHEMA, PARTS, None, Unit(1, person_id="PUMA"))
    assert young.sum() == 3
    assert (tmp_path / "rows.db").read_bytes() == before


@pytest.mark.parametrize(
    ("limit", "size"), [("1GiB", 2**30), ("500 MB", 5 * 10**8), ("0.5kib", 512), ("7", 7), ("7B", 7)]
)
def test_a_memory_limit_is_a_size(limit, size):
    with open_source(ROWS, memory_limit=limit) as source:
        assert source._memory == size


@pytest.mark.parametrize("limit", ["much", "", "-1GiB", "1 GiB of", "1XB"])
def test_other_memory_limits_are_refused(limit):
    with pytest.raises(DataError, match="give a size such as 500MB or 1GiB"):
        open_source(ROWS, memory_limit=limit)


def test_it_spills_to_a_private_folder_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    rows = 300_000
    table = pa.table({"AGE": np.arange(rows) % 100, "ID": np.arange(rows) // 2})
    seen = []
    spill = PersonRows._spill

    def watched(self, folder):
        spill(self, folder)
        seen.append((oct(folder.stat().st_mode)[-3:], len(list(folder.iterdir()))))

    monkeypatch.setattr(PersonRows, "_spill", watched)
    with open_source(table, memory_limit="2MiB") as source:
        (found,) = count(source, SCHEMA, PARTS[:1], None, Unit(1, person_id="ID"))
    assert found.sum() == rows // 2
    assert len(seen) > 2
    assert set(seen) == {("700", 257)}  # a file for each pile of persons, and the mark
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


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
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.db")) as database, sqlite3.connect(tmp_path / "rows.sqlite") as other:
        database.execute("CREATE SCHEMA old")
        database.execute("CREATE TABLE old.people AS SELECT 1 AS x")
        for name in ("people", "places"):
            database.execute(f"CREATE TABLE {name} AS SELECT 'Atlantis' AS x")
            other.execute(f"CREATE TABLE {name} AS SELECT 'Atlantis' AS x")
    for address in (f"duckdb://{tmp_path}/rows.db", f"sqlite://{tmp_path}/rows.sqlite"):
        for name in ("peple", "main.peple"):
            with pytest.raises(
                DataError, match=rf"no table '{name}' in .*did you mean 'people'.*it has (old.people, )?people, places"
            ) as error:
                open_source(f"{address}/{name}")
            assert "Atlantis" not in str(error.value)


def test_a_name_that_means_two_tables_is_refused(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.db")) as database:
        database.execute("CREATE SCHEMA a")
        database.execute('CREATE SCHEMA "a.b"')
        for name in ('"a.b".c', 'a."b.c"'):
            database.execute(f"CREATE TABLE {name} AS SELECT 1 AS x")
    with pytest.raises(DataError, match=r"'a\.b\.c' means 2 tables"):
        open_source(f"duckdb://{tmp_path}/rows.db/a.b.c")


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


def test_files_of_two_kinds_or_none_are_refused(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("a.parquet", "b.csv", "c.xlsx"):
        (tmp_path / name).write_text("x\n1\n")
    for names in (["a.parquet", "b.csv"], ["c.xlsx"]):
        with pytest.raises(DataError, match="all parquet or all CSV"):
            open_source([tmp_path / name for name in names])
    with pytest.raises(DataError, match="failed in the engine"):
        open_source(tmp_path / "a.parquet")
    (tmp_path / "d.csv").write_text("y\n1\n")
    schema = Schema([Column("x", "categorical", values=(1, 2))])
    with open_source([tmp_path / "b.csv", tmp_path / "d.csv"]) as source:
        assert source.columns == ()
        with pytest.raises(DataError, match=r"d\.csv lacks the column 'x', which another file has"):
            count(source, schema, [Marginal.of(schema, ["x"])])
    for header in ("y,y", "y,"):
        (tmp_path / "e.csv").write_text(f"{header}\n1,2\n")
        with pytest.raises(DataError, match="without a name or two columns with the same name"):
            open_source(tmp_path / "e.csv")
    assert os.listdir(tmp_path / "temporary") == []


def test_a_source_is_returned_as_it_is():
    with open_source(ROWS) as source:
        assert open_source(source) is source
        assert isinstance(source, Source)
        assert repr(source) == "Source('the private table', engine='arrow', 4 columns)"


# ---------------------------------------------------------------------- planted secrets


def planted():
    """Rows with a rare category, a huge number, and text where numbers belong."""
    return {
        "AGE": [3, HUGE, None, 70],
        "SEX": ["f", SECRET, "m", None],
        "CODE": ["1", SECRET, str(HUGE), "6"],
        "PUMA": ["a", "b", SECRET, "a"],
    }


def secrets_in(text):
    return [each for each in (SECRET, str(HUGE), "4711", "8675309") if each in text]


def quoting(names):
    """A reader that stumbles over a row and quotes it."""
    yield {name: pa.array(planted()[name]).slice(0, 1) for name in names}
    raise ValueError(f"{SECRET} is not a number")


@pytest.mark.parametrize("kind", ["memory", "objects", "parquet", "csv", "malformed csv"])
@pytest.mark.parametrize("unit", [None, Unit(1, person_id="SEX")])
def test_planted_secrets_stay_inside(kind, unit, tmp_path, capfd, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path / "temporary")
    table = pa.table(planted())
    source = {"memory": table, "objects": pd.DataFrame(planted(), dtype=object)}.get(
        kind, tmp_path / f"rows.{kind[-7:]}"
    )
    if kind == "parquet":
        pq.write_table(table, source)
    elif kind.endswith("csv"):
        source = tmp_path / "rows.csv"
        pd.DataFrame(planted()).to_csv(source, index=False)
        if kind.startswith("malformed"):
            with open(source, "a") as file:
                file.write(f'70,{SECRET},1\n{HUGE},"{SECRET}" {SECRET},1,a,a,a\n"{SECRET}\n')
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with open_source(source) as opened:
            out.write(repr(opened) + repr([answer.tolist() for answer in count(opened, SCHEMA, PARTS, GROUPS, unit)]))
            failing = Source(Stream(opened.columns, quoting), opened.engine, opened.name)
            try:
                count(failing, SCHEMA, PARTS, GROUPS, unit)
            except DataError:
                out.write("".join(traceback.format_exception(*sys.exc_info())))
                out.write(repr(sys.exc_info()[1].__context__))
            written = [
                path.read_bytes().decode(errors="replace")
                for path in (tmp_path / "temporary").rglob("*")
                if path.is_file()
            ]
            names = [str(path) for path in tmp_path.rglob("*")]
    printed = capfd.readouterr()
    assert "failed in the engine" in out.getvalue()
    everything = [
        out.getvalue(),
        printed.out,
        printed.err,
        caplog.text,
        *(str(each.message) for each in warned),
        *written,
        *names,
    ]
    assert secrets_in("\n".join(everything)) == []
    assert os.listdir(tmp_path / "temporary") == []


def test_an_engine_that_quotes_a_row_is_not_quoted(tmp_path):
    """Its own words do quote the row: without `guarded` they would come out."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "rows.duckdb") as database:
        database.register("given", pa.table(planted()))
        database.execute("CREATE TABLE people AS SELECT * FROM given")
        database.execute("CREATE VIEW broken AS SELECT * REPLACE (CAST(CODE AS BIGINT) AS CODE) FROM people")
        with pytest.raises(Exception, match=SECRET):
            database.execute("SELECT sum(CODE) FROM broken").fetchall()
    with (
        open_source(f"duckdb://{tmp_path}/rows.duckdb/broken") as source,
        pytest.raises(DataError, match="failed in the engine") as refused,
    ):
        count(source, SCHEMA, PARTS, GROUPS)
    assert secrets_in("".join(traceback.format_exception(refused.value))) == []
    assert refused.value.__context__ is None
