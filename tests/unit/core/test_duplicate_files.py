"""One file under two names: a private file given twice, a public one given twice, the private one as a public one."""

import gzip
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prade
from prade import DataError, Synthesizer, Unit, Workload
from prade.core.files import OPENING, content_hash, find_duplicate, found_files, refuse_duplicates
from prade.data.public.table import PublicFiles
from prade.measuring.run import measure
from prade.measuring.source import open_source, refuse_public, refuse_same_contents, refuse_same_files
from worlds.counting import count
from worlds.plans import EVERYBODY, SCHEMA, ledger_for, plan_of

TEXT = b"AGE\n3\n70\n80\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_bytes(TEXT)
    (tmp_path / "y.csv").write_bytes(TEXT + b"12\n")
    (tmp_path / "there").mkdir()
    return tmp_path


def rows_in(source):
    (counts,) = count(source, SCHEMA, Workload.all_marginals(SCHEMA, 1).parts, None, Unit(1))
    return int(counts.sum())


def again(way):
    """The file x.csv under another name."""
    os.symlink("x.csv", "link.csv")
    os.symlink(".", "way")
    os.link("x.csv", "hard.csv")
    shutil.copy("x.csv", "there/copy.csv")
    Path("x.csv.gz").write_bytes(gzip.compress(TEXT + b"99\n"))  # a newer row would be counted with the old ones
    Path("there/copy.csv.gz").write_bytes(gzip.compress(TEXT))
    return WAYS[way]


WAYS = {
    "path": "x.csv",
    "dots": "there/../x.csv",
    "symlink": "link.csv",
    "folder": "way/x.csv",
    "hard link": "hard.csv",
    "zipped": "x.csv.gz",
    "copy": "there/copy.csv",
    "zipped copy": "there/copy.csv.gz",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_private_file_given_twice_is_refused(here, way):
    other = again(way)
    for files in (["x.csv", "y.csv", other], [other, "y.csv", "x.csv"]):
        with pytest.raises(DataError, match="would count twice; give each file once") as refused, ExitStack() as stack:
            rows_in(stack.enter_context(open_source(files)))
        assert "row" not in str(refused.value)
        if "copy" in way:
            open_source(files).close()  # contents are compared when rows are read
        else:
            with pytest.raises(DataError, match="would count twice"):
                open_source(files)


@pytest.mark.parametrize("way", WAYS)
def test_a_public_file_given_twice_is_refused(here, way):
    other = again(way)
    with pytest.raises(DataError, match="would count twice; give each file once"):
        PublicFiles.at(["x.csv", "y.csv", other]).source()
    assert PublicFiles.at(["x.csv", "y.csv"]).source().num_rows == 7


@pytest.mark.parametrize(
    ("text", "rows"),
    [(b"AGE", 0), (b"\xef\xbb\xbfAGE\r\n", 0), (b'"A\nGE"\n', 0), (b"AGE\n\n", 1), (b"AGE\n" + b"x" * 200_000, 1)],
)
def test_files_without_rows_may_be_alike_and_others_not(here, text, rows):
    (here / "a.csv").write_bytes(text)
    (here / "b.csv.gz").write_bytes(gzip.compress(text))
    for name in ("a", "b"):
        pq.write_table(pa.table({"AGE": pa.array([3] * rows, pa.int64())}), here / f"{name}.parquet")
    assert (find_duplicate([["a.parquet"], ["b.parquet"]]) is None) == (rows == 0)
    assert find_duplicate([["a.csv"], ["b.csv.gz"]]) == (("a.csv", "b.csv.gz") if rows else None)


@pytest.mark.parametrize("place", [3, OPENING - 1, OPENING, -1])
def test_one_byte_makes_another_file(here, place):
    """Wherever it is: in the opening, beyond it, at the end; with the same size or another one."""
    text = bytearray(b"AGE\n" + b"17\n" * 2**20)
    (here / "a.csv").write_bytes(text)
    text[place] = ord("9")
    for changed in (text, text + b"1"):
        (here / "b.csv").write_bytes(changed)
        assert find_duplicate([["a.csv"], ["b.csv"]]) is None


@pytest.mark.parametrize("content", [b"no gzip file", gzip.compress(TEXT)[:-9]], ids=["other", "cut"])
def test_what_cannot_be_decompressed_is_named(here, content):
    (here / "z.csv.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"z.csv.gz cannot be read \(not a complete gzip file\)"):
        refuse_duplicates(["x.csv", "z.csv.gz"])


def planned(*public, weight=None):
    plan = plan_of(SCHEMA, EVERYBODY, dataset="people")
    return plan.with_public(PublicFiles.at(public, weight)) if public else plan


@pytest.fixture
def ledger(here):
    return ledger_for(planned(), here / "ledger", 20)


PUBLISHED = "the private table is also given as the public table.*: give a table that is already public"


@pytest.mark.parametrize("way", WAYS)
def test_measure_refuses_the_plans_public_files(here, ledger, way):
    """Each of the private files is compared with each of the public ones."""
    other, plan = again(way), planned("y.csv", "x.csv")
    (here / "z.csv").write_bytes(b"AGE\n1\n")
    for private in (other, here / other, ["z.csv", other]):
        with pytest.raises(DataError, match=PUBLISHED):
            measure(plan, private, here / "release", ledger)
        with pytest.raises(DataError, match=PUBLISHED):
            measure(planned(), private, here / "release", ledger, public=["y.csv", here / "x.csv"])
    with pytest.raises(DataError, match=PUBLISHED):
        measure(plan, "[x-z].csv", here / "release", ledger)
    # comparing contents reads private rows, so a refusal has its entry
    stages = [{failure.stage for failure in entry.failures} for entry in ledger.entries("people")]
    assert stages == ([{"count"}] if "copy" in way else [])
    assert not (here / "release").exists()
    measure(plan, "z.csv", here / "release", ledger)


def test_hashes_that_a_plan_brings_tell_nothing(here, ledger):
    """Guesses of what the private file may be: they are true of one of the two files, and all is the same."""
    guessed = PublicFiles(("a.csv", "b.csv"), sha256=(content_hash("x.csv"), "0" * 64), folder=str(here))
    plan = planned().with_public(guessed)
    (here / "z.csv").write_bytes(b"AGE\n1\n")
    for private in ("x.csv", "z.csv"):
        with pytest.raises(DataError, match=r"there is no public file a\.csv"):
            prade.measure(plan, private, here / "release", ledger)
        refuse_same_files(private, guessed)
        refuse_same_contents(private, guessed)
    assert ledger.entries("people") == []


FRAME = pd.DataFrame({"AGE": np.array([3, 70, 80]), "WHERE": ["a", "b", "c"]})
ARROW = pa.table({"AGE": [3, 70, 80], "WHERE": ["a", "b", "c"]})
POLARS = pl.DataFrame({"AGE": [3, 70, 80], "WHERE": ["a", "b", "c"]})
CELLS = {"AGE": [3, 70, 80]}
KINDS = pa.table({"YES": [True, False, True], "PAIR": [{"a": 1}, {"a": 2}, {"a": 3}], "LIST": [[1], [2], [3]]})
OWN_TYPES = pd.DataFrame(  # each kept by pandas in an array of its own kind
    {
        "AGE": pd.array([3, 70, None], dtype="Int64"),
        "TEXT": pd.array(["a", "b", "c"], dtype="string[python]"),
        "ARROW": pd.array(["a", "b", "c"], dtype="string[pyarrow]"),
        "KIND": pd.Categorical(["a", "b", "a"]),
        "WHEN": pd.to_datetime(["2020-01-01"] * 3).tz_localize("UTC"),
    }
)
THE_SAME_MEMORY = {
    "a column under another name": (FRAME.rename(columns={"WHERE": "PLACE"}), FRAME),
    "one of the columns": (ARROW.select(["AGE"]), ARROW),
    "another frame around it": (pa.Table.from_pandas(FRAME), FRAME),
    "a batch": (ARROW.to_batches()[0], ARROW),
    "one more column": (ARROW, ARROW.append_column("MORE", [[1, 2, 3]])),
    "another column's name": (POLARS.drop("AGE").rename({"WHERE": "AGE"}), POLARS),
    "cells": (CELLS, dict(CELLS)),
    "an array": ({"AGE": FRAME["AGE"].to_numpy()}, FRAME),
    "a lazy frame": (POLARS, POLARS.lazy()),
    "rows that overlap": (FRAME.iloc[1:], FRAME.iloc[:2]),
    "every other row": (FRAME.iloc[::2], FRAME.iloc[2:]),
    "texts that overlap": (ARROW.select(["WHERE"]).slice(0, 2), ARROW.slice(1)),
    "the end and the beginning": (POLARS.tail(2), POLARS.head(2)),
    **{name: (KINDS, KINDS.select([name]).slice(1)) for name in KINDS.column_names},
    **{name: (OWN_TYPES[[name]].copy(deep=False), OWN_TYPES) for name in OWN_TYPES},
}
OTHER_MEMORY = {
    "Arrow": (pa.table({"AGE": [3, 70, 80]}), ARROW),
    "pandas": (pd.DataFrame({"AGE": [3, 70, 80]}), FRAME),
    "Polars": (POLARS.head(1), POLARS.tail(2)),
    "cells": ({"AGE": [3, 70, 80]}, CELLS),
    "all kinds": (KINDS.slice(0, 1), KINDS.slice(1)),
    "own types": (OWN_TYPES.iloc[:1], OWN_TYPES.iloc[1:]),
    "every other row": (FRAME.iloc[::2], FRAME.iloc[1::2]),
    "a file": (ARROW, "x.csv"),
    "a lazy file": (pl.scan_csv("x.csv"), POLARS),
    "a database": ("duckdb://people.db/people", ARROW),
}


@pytest.mark.parametrize("case", THE_SAME_MEMORY)
def test_a_table_in_memory_that_is_the_public_one_is_refused(here, ledger, case):
    private, public = THE_SAME_MEMORY[case]
    with pytest.raises(DataError, match=PUBLISHED):
        measure(planned(), private, here / "release", ledger, public=public)
    assert ledger.entries("people") == []


@pytest.mark.parametrize("case", OTHER_MEMORY)
def test_equal_cells_elsewhere_are_not_compared(here, case):
    """No cell of a table in memory decides whether a run starts."""
    refuse_public(*OTHER_MEMORY[case], None)


def test_the_memory_of_a_column_that_is_gone_is_not_taken_for_the_next(here):
    """Copies of columns are kept until all are compared."""
    texts = pd.Series(["a", "b", "c"], dtype="string[python]")
    for _ in range(200):
        refuse_public(pd.DataFrame({"A": texts.copy()}), pd.DataFrame({"A": texts.copy(), "B": texts.copy()}))


@pytest.mark.parametrize(
    "private",
    [
        pd.DataFrame({"WHERE": pd.array(["SECRET\ud800", "b", "c"], dtype=pd.StringDtype("python"))}),
        pl.DataFrame({"WHERE": pl.Series([object(), 1, "SECRET"], dtype=pl.Object)}),
        pd.DataFrame({"WHERE": pd.interval_range(0, 3)}),
        {"WHERE": ("SECRET\ud800", 1)},
    ],
    ids=range(4),
)
def test_no_cell_is_converted_in_order_to_compare(private):
    for public in (ARROW, FRAME, POLARS, CELLS):
        refuse_public(private, public)
        refuse_public(public, private)


def test_a_release_does_not_take_another_file_for_its_public_one(here, ledger):
    """A plan has the hashes of its public files, so nothing of the private one has to be written anywhere."""
    given = {"folder": here / "r", "dataset": "people", "ledger": ledger, "tune": False}
    # At this budget the estimated number of rows is not 0, but for one run in a million.
    Synthesizer(20, schema=SCHEMA, public="y.csv", **given).fit("x.csv")
    with pytest.raises(DataError, match=r"x\.csv is not one of the public files that the plan was made with"):
        Synthesizer.load("r", public="x.csv")
    for file in (here / "r").iterdir():
        assert content_hash("x.csv").encode() not in file.read_bytes()
    (here / "y.csv").rename("there/moved.csv")
    assert len(Synthesizer.load("r", public="there/moved.csv").sample(5, seed=1)) == 5
    (here / "there" / "moved.csv.gz").write_bytes(gzip.compress((here / "there" / "moved.csv").read_bytes()))
    assert len(Synthesizer.load("r", public="there/moved.csv.gz").sample(5, seed=1)) == 5


def test_a_pattern_does_not_follow_links_to_folders(tmp_path):
    """Else other people's files, or a loop of links, would be counted unasked."""
    for folder in ("mine", "others"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.csv").write_bytes(TEXT)
    os.symlink(tmp_path / "others", tmp_path / "mine" / "archive")
    os.symlink(tmp_path / "mine", tmp_path / "mine" / "loop")
    assert found_files([str(tmp_path / "mine" / "**/*.csv")]) == [str(tmp_path / "mine" / "rows.csv")]
