"""One person's cell decided how everybody else's rows were read: the cases in which it did, one by one."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from prade import Column, Unit
from prade.core.errors import DataError
from prade.data.read.cells import object_cells, texts_of
from prade.data.read.coding import exact_ids
from worlds.counting import counted

HOURS = Column("HOURS", "numeric", edges=(20, 38, 60), missing=True)
MOMENT = datetime.datetime

ONE = Unit(1, person_id="ID")


def change(column, before, after):
    """How far the counts of two tables are apart."""
    return int(np.abs(counted(after, column) - counted(before, column)).sum())


def parquet_of(folder, *tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def test_a_missing_value_in_one_file_does_not_round_the_numbers_of_the_next(tmp_path):
    """The first file's type was imposed on all others: 37.5 became 38, unless a value of that file was missing."""
    first, others = {"HOURS": [40, 40, 10]}, pa.table({"HOURS": [37.5] * 1000})
    before = parquet_of(tmp_path / "before", pa.table(first), others)
    after = parquet_of(tmp_path / "after", pa.table({"HOURS": [40.0, 40.0, 10.0, None]}), others)
    assert counted(before, HOURS).tolist() == [[1, 1000, 2, 0, 0]]
    assert counted(after, HOURS).tolist() == [[1, 1000, 2, 0, 1]]


@pytest.mark.parametrize("large", [100, 300])
def test_a_number_that_a_narrower_file_could_not_hold_is_counted(large, tmp_path):
    kinds = (([1], pa.int8()), ([large], pa.int64()))
    files = [pa.table({"HOURS": pa.array(cells, kind)}) for cells, kind in kinds]
    assert counted(parquet_of(tmp_path / "files", *files), HOURS).tolist() == [[1, 0, 0, 1, 0]]


BOTH_TRUTHS = Column("X", "categorical", values=(0, 1), missing=True)
LISTED = Column("X", "categorical", values=("37.5", "40", "1234567890123456", "2020-01-01", "true"), missing=True)
NOON = [MOMENT(2020, 1, 1, 12, tzinfo=zone) for zone in (datetime.UTC, datetime.timezone(datetime.timedelta(hours=9)))]
DATES = Column("X", "numeric", edges=(datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)), missing=True)


@pytest.mark.parametrize(
    ("column", "cells", "odd"),
    [
        (BOTH_TRUTHS, [True] * 250 + [False] * 251, None),
        (LISTED, [True] * 250 + [False] * 251, None),
        (LISTED, [True] * 250 + [False] * 251, "soon"),
        (LISTED, [MOMENT(2020, 1, 1)] * 300, "soon"),
        (DATES, [MOMENT(2020, 1, 1)] * 300, "soon"),
        (DATES, [NOON[0]] * 300, NOON[1]),
        (LISTED, [37.5, 40.0] * 100, "many"),
        (LISTED, [1234567890123456] * 100, float("nan")),
        (LISTED, [40] * 100, None),
        (Column("X", "numeric", edges=(20, 38), missing=True), [MOMENT(2020, 1, 1)] * 5, "text"),
        (BOTH_TRUTHS, [], datetime.date(2020, 1, 1)),
    ],
)
def test_one_cell_more_in_a_pandas_frame_is_one_cell_more(column, cells, odd):
    """It turned a column into another type, and every row got another code, or the run failed."""
    assert change(column, pd.DataFrame({"X": cells}), pd.DataFrame({"X": [*cells, odd]})) == 1


class Unwilling(str):
    """A text that cannot be turned into one."""

    def __str__(self):
        raise RuntimeError(f"do not look at me, I am {self!r}")


class Nowhere(datetime.tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, moment):
        raise RuntimeError("nobody knows")


@pytest.mark.parametrize("odd", [Unwilling("me"), MOMENT(2020, 1, 1, tzinfo=Nowhere())], ids=["text", "time"])
def test_an_object_that_fails_when_it_is_looked_at_is_one_cell(odd):
    cells = [37.5, 40.0] * 100
    frames = [pd.DataFrame({"X": pd.Series(each, dtype=object)}) for each in (cells, [*cells, odd])]
    assert change(LISTED, *frames) == 1


@pytest.mark.parametrize(
    "cells",
    [
        pa.nulls(3),
        pa.array([2**45, 0, None], pa.timestamp("s")),
        pa.array([2**62, -(2**62), None], pa.timestamp("ms")),
        pa.array([1, 2**62, None], pa.timestamp("ns")),
        pa.array([[1], None, [2]]),
        pa.array([b"\xff", None, b"1"]),
        pa.array([{"a": 1}, None, {"a": 2}]),
        pa.array([1, None, 3], pa.duration("s")),
    ],
    ids=lambda cells: str(cells.type),
)
@pytest.mark.parametrize(
    "column", [BOTH_TRUTHS, LISTED, DATES, Column("X", "numeric", edges=(1,))], ids=lambda each: each.kind
)
def test_no_type_of_a_file_makes_a_run_fail(cells, column, tmp_path):
    """Types follow rows: a column is of the type null only as long as nobody has a value."""
    pq.write_table(pa.table({"X": cells}), tmp_path / "rows.parquet")
    found = counted(tmp_path / "rows.parquet", column)
    assert found.sum() == 3
    if column.missing:
        assert found[0, -1] >= cells.null_count


@pytest.mark.parametrize("batch", [65536, 2])
def test_rows_of_every_batch_count_once(batch):
    """Of a column of Python objects every batch was the first one again: one row moved as many counts as batches."""
    rows = 3 * batch + 1
    cells = np.arange(rows) % 100
    table = pd.DataFrame({"HOURS": pd.Series(cells.tolist(), dtype=object), "ID": [str(each) for each in range(rows)]})
    table["PLACE"] = pd.Series([bool(each % 2) for each in range(rows)], dtype=object)
    expected = np.bincount(np.searchsorted([20, 38, 60], cells, side="right"), minlength=5)
    assert counted(table, HOURS, None, ONE, rows_per_batch=batch).tolist() == [expected.tolist()]
    by_place = counted(table, HOURS, {"PLACE": [True, False]}, rows_per_batch=batch)
    assert by_place.sum(axis=1).tolist() == [rows // 2, rows - rows // 2]


def test_python_objects_of_polars_are_not_read_as_addresses():
    ids = ["".join(["per", "son"]) for _ in range(50)]  # equal, and each an object of its own
    table = pl.DataFrame({"HOURS": pl.Series([3, 30.0] * 25, dtype=pl.Object), "ID": pl.Series(ids, dtype=pl.Object)})
    assert counted(table, HOURS, None, ONE).sum() == 1
    assert counted(table, HOURS).tolist() == [[25, 25, 0, 0, 0]]


def test_groups_beyond_doubles_are_refused_by_their_list_alone():
    for cells in ([2**53 + 1, 2**53 + 3], [2**53 + 1, None]):
        with pytest.raises(DataError, match="BLOCK"):
            counted(pd.DataFrame({"HOURS": [1, 1], "BLOCK": cells}), HOURS, {"BLOCK": [2**53 + 1, 2**53 + 3]})


@pytest.mark.parametrize(
    "wrap",
    [
        lambda cells: pa.array(cells).dictionary_encode(),
        lambda cells: pc.run_end_encode(pa.array(cells)),
        lambda cells: pa.array([cell.encode() for cell in cells]),
        lambda cells: pa.array([cell.encode() for cell in cells], pa.binary_view()),
        lambda cells: pa.array(cells, pa.string_view()),
        lambda cells: pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(cells)),
        lambda cells: pa.UnionArray.from_sparse(pa.array([0] * len(cells), pa.int8()), [pa.array(cells)]),
        lambda cells: pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.uint8()), pa.array(cells)),
    ],
    ids=["dictionary", "runs", "bytes", "bytes seen", "text seen", "extension", "sparse union", "narrow indices"],
)
def test_a_wrapped_column_counts_like_a_plain_one(wrap):
    """A dictionary of just as many values as its indices can tell apart failed, and others counted as nothing."""
    cells = [str(number) for number in range(256)]
    table = pa.table({"HOURS": wrap(cells), "ID": wrap(cells)})
    assert counted(table, HOURS, None, ONE).tolist() == [[20, 18, 22, 196, 0]]


def test_a_csv_file_is_one_file_whatever_its_name(tmp_path):
    """Its name was taken for a pattern of files, and the names of its folders for columns."""
    (tmp_path / "c0=5").mkdir()
    cells = {"part[1].csv": 3, "part1.csv": 50, "a*.csv": 3, "ab.csv": 30, "c0=5/x.csv": 3}
    for name, cell in cells.items():
        (tmp_path / name).write_text(f"HOURS\n{cell}\n")
    assert counted(tmp_path / "part[1].csv", HOURS).tolist() == [[1, 0, 0, 0, 0]]
    assert counted([tmp_path / "a*.csv", tmp_path / "ab.csv"], HOURS).tolist() == [[1, 1, 0, 0, 0]]
    assert counted(tmp_path / "c0=5" / "x.csv", HOURS).tolist() == [[1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    "cells",
    [pa.nulls(3), pa.array([[1], None, [2]]), pa.array([1, None, 3], pa.duration("s"))],
    ids=lambda c: str(c.type),
)
def test_no_type_of_a_groups_or_persons_column_makes_a_run_fail(cells, tmp_path):
    """A cell of such a type is in no listed group, and belongs to nobody."""
    rows = {"HOURS": [1, 20, 30], "TOWN": ["a", "b", "a"], "ID": [1, 2, 3]}
    for name in ("TOWN", "ID"):
        pq.write_table(pa.table({**rows, name: cells}), tmp_path / "rows.parquet")
        assert counted(tmp_path / "rows.parquet", HOURS, {"TOWN": ["a", "b"]}, ONE).sum() == 0


@pytest.mark.parametrize(
    ("ids", "persons"),
    [
        ([7, 7, 8, 2.5, 2.5, 10**17, 10**17 + 1], [0, 0, 2, 3, 3, 5, 6]),
        ([7.0, 7.0, 8.0, 2.5, 2.5, 1.5], [0, 0, 2, 3, 3, 5]),
        ([7.0, 7, "7", "8", 8, 2.5, "2.5", 10**17, str(10**17), 2**70, str(2**70)], [0, 0, 0, 3, 3, 5, 5, 7, 7, 9, 9]),
    ],
    ids=["objects", "floats", "words among numbers"],
)
def test_a_person_is_the_same_whatever_type_the_id_has(ids, persons):
    """As numbers, and as numbers among texts; exactly, however many digits there are."""
    keys = exact_ids(object_cells(ids)).to_pylist()
    assert [keys.index(key) for key in keys] == persons
    table = pd.DataFrame({"HOURS": [20] * len(ids), "ID": pd.Series(ids, dtype=object)})
    assert counted(table, HOURS, None, ONE).sum() == len(set(persons))


@pytest.mark.parametrize("number", [0, -1, 40, 2**53 - 1, 2**53, 2**60])
def test_a_whole_number_has_the_same_text_as_a_float(number):
    """Floats do not tell whole numbers from 2**53 on apart, so these have no text, whatever the type."""
    columns = pa.array([number, None], pa.int64()), pa.array([float(number), None], pa.float64())
    texts = [texts_of(column).to_pylist() for column in columns]
    assert texts == [[str(number) if abs(number) < 2**53 else None, None]] * 2
