"""Tables to codes and back: what matches, what does not, and what is restored."""

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from prade.core.errors import DataError, SchemaError
from prade.data.declare.schema import Column, Schema
from prade.data.public.decode import Decoder
from prade.data.public.joint import Coded, encode, outside, read_table
from prade.data.read.tables import write_table
from worlds.survey import plain_decoder


def codes_of(column, cells):
    codes: list[int] = encode(Schema([column]), {column.name: cells}).codes[column.name].tolist()
    return codes


NUMBERS = Column("X", "categorical", values=(2, 1), missing=True)
TEXTS = Column("X", "categorical", values=("1", "02", "x"), missing=True)
TRUTHS = Column("X", "categorical", values=(False, True), missing=True)
AGES = Column("X", "numeric", edges=(18, 65), integer=True, min=0, max=99, missing=True)


@pytest.mark.parametrize(
    ("column", "cells", "expected"),
    [
        (NUMBERS, [1, 2, 3, None], [1, 0, 2, 2]),
        (NUMBERS, [1.0, 2.0, 1.5, None], [1, 0, 2, 2]),
        (NUMBERS, ["1", "2.0", " 1 ", "N", None, "01"], [1, 0, 1, 2, 2, 1]),
        (NUMBERS, [True, False], [1, 2]),
        (NUMBERS, pa.array([True, False]), [1, 2]),
        (NUMBERS, np.array([1, 2], dtype=np.uint64), [1, 0]),
        (TEXTS, ["1", "02", "2", "x", " x", None], [0, 1, 3, 2, 3, 3]),
        (TEXTS, [1, 2], [0, 3]),
        (TEXTS, [1.0, 2.5], [0, 3]),
        (Column("X", "categorical", values=("00100", "02300", "x")), [100, 2300.0, "100", "02300"], [0, 1, 2, 1]),
        (TRUTHS, [True, False, None], [1, 0, 2]),
        (TRUTHS, ["True", "FALSE", "1", "0", "yes", None], [1, 0, 1, 0, 2, 2]),
        (TRUTHS, [0, 1, 2], [0, 1, 2]),
        (AGES, [0, 17, 18, 64, 65, 99, None], [0, 0, 1, 1, 2, 2, 3]),
        (AGES, ["17.0", "1e1", "", "N", "nan", "1e999"], [0, 0, 3, 3, 3, 2]),
        (AGES, [-5, 1000], [0, 2]),
        (AGES, [np.nan, np.inf, -np.inf], [3, 2, 0]),
        (AGES, [None, None], [3, 3]),
    ],
)
def test_the_value_list_decides_how_a_cell_is_read(column, cells, expected):
    assert codes_of(column, cells) == expected


def test_whole_numbers_beyond_float_precision_are_told_apart():
    column = Column("X", "categorical", values=(2**60, 2**60 + 1))
    assert codes_of(column, [2**60 + 1, 2**60]) == [1, 0]
    with_missing = Column("X", "categorical", values=(2**60, 2**60 + 1), missing=True)
    whole = [2**60 + 1, None, 2**60, 2**60 + 2]
    texts = [f" {2**60 + 1}", "N", f"{2**60}.0", "1e18"]
    for cells in (whole, pa.array(whole), pa.array(whole, pa.uint64()), pd.Series(whole, dtype="Int64"), texts):
        assert codes_of(with_missing, cells) == [1, 2, 0, 2]
    unsigned = Column("X", "categorical", values=(2**62, 2**62 + 1))
    assert codes_of(unsigned, np.array([2**62, 2**62 + 1, 2**63 + 2**62], dtype=np.uint64)) == [0, 1, 1]


def test_objects_are_read_one_by_one():
    mixed = pd.Series([1, "2", 2.0, None, "N", True, pd.NA, b"1", 10**400, 10**5000], dtype=object)
    assert codes_of(NUMBERS, mixed) == [1, 0, 0, 2, 2, 1, 2, 1, 2, 2]
    assert codes_of(AGES, [10**5000, -(10**5000), "\ud800", np.float32(18), Fraction(10**5000)]) == [2, 0, 3, 1, 3]
    days = Column("X", "numeric", edges=(18263.0,), dates=True, missing=True)  # 2020-01-02
    west = datetime.timezone(datetime.timedelta(hours=-5))
    times = [
        datetime.date(2020, 1, 2),
        pd.Timestamp("2020-01-01 23:59:59.999999999"),
        datetime.datetime(2020, 1, 1, 23, tzinfo=west),
        np.datetime64("2020-01-02"),
        np.datetime64("NaT"),
        "2020-01-02 05:00:00",
        20200102,
    ]
    assert codes_of(days, times) == [1, 0, 1, 1, 2, 1, 2]


@pytest.mark.parametrize(
    "cells", [[b"x"], [datetime.time(1)], [datetime.date(2020, 1, 1)], [(1,)], [datetime.timedelta(1)]]
)
@pytest.mark.parametrize("wrap", [list, lambda cells: pd.Series(cells, dtype=object)])
def test_objects_of_the_wrong_kind_are_outside_the_domain(cells, wrap):
    assert codes_of(AGES, wrap(cells)) == [3]
    assert codes_of(AGES, wrap([*cells, 3])) == [3, 0]
    assert codes_of(NUMBERS, wrap([*cells, 1])) == [2, 1]
    assert codes_of(AGES, pd.Series([datetime.time(3), 3, None], dtype="category")) == [3, 0, 3]


def test_policies():
    values = ("a", "b", "rest")
    assert codes_of(Column("X", "categorical", values=values), ["z", None]) == [2, 2]
    assert codes_of(Column("X", "categorical", values=values, other="a"), ["z", None]) == [0, 0]
    with_missing = Column("X", "categorical", values=values, other="a", missing=True)
    assert codes_of(with_missing, ["z", None]) == [0, 3]
    strict = Column("X", "numeric", edges=(5,), min=0, max=9, missing=True, unknown="missing")
    assert codes_of(strict, [-1, 0, 9, 10, None]) == [2, 0, 1, 2, 2]
    named = Column("X", "categorical", values=("a", "b"), missing=True, other="a", unknown="missing")
    assert codes_of(named, ["z", "a"]) == [2, 0]
    clipped = Column("X", "numeric", edges=(5,), min=0, max=9, missing=True, unknown="clip")
    assert codes_of(clipped, [-1, 0, 9, 10, None]) == [0, 0, 1, 1, 2]
    assert codes_of(Column("X", "numeric", edges=(5,)), ["N", None, 7]) == [0, 0, 1]


def test_types_that_do_not_fit_are_refused_by_type_alone():
    for cells in (pa.array([[1]]), pa.array([datetime.time(1)])):
        with pytest.raises(DataError, match="cannot be coded"):
            codes_of(AGES, cells)
    days = [datetime.date(2020, 1, 1)]
    for cells in (pa.array(days), pl.Series(days), np.array(days, dtype="datetime64[D]"), pd.to_datetime(days)):
        with pytest.raises(DataError, match="schema has numbers, but the table has the type "):
            codes_of(AGES, cells)
    with pytest.raises(DataError, match="schema has dates, but the table has the type int64"):
        codes_of(Column("X", "numeric", edges=(0.0,), dates=True), np.array([20200101]))


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "dict": dict}

PLACED = Schema([Column("PLACE", "group"), Column("C", "categorical", values=("a", "b")), AGES])


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_table(kind):
    table = FRAMES[kind]({"X": [5, 70, None], "C": ["b", "a", "a"], "W": [1, 1, 2]})
    coded = encode(PLACED, table, weight="W")
    assert coded.columns == ("C", "X")
    assert coded.codes["X"].tolist() == [0, 2, 3]
    assert coded.codes["C"].tolist() == [1, 0, 0]
    assert coded.weights.tolist() == [0.25, 0.25, 0.5]
    assert coded.project(("C",)).tolist() == [0.75, 0.25]


def test_columns_can_be_chosen_and_an_absent_one_is_named():
    table = {"PLACE": ["q", "p"], "C": ["a", "b"]}
    with pytest.raises(SchemaError, match=r"'PLACE'.*with_groups"):
        encode(PLACED, table, columns=["PLACE"])
    filled = PLACED.with_groups({"PLACE": ["p", "q"]})
    assert encode(filled, table, columns=["PLACE"]).codes["PLACE"].tolist() == [1, 0]
    with pytest.raises(DataError, match="no column 'X'"):
        encode(PLACED, {"C": ["a"], "Y": [1]})
    with pytest.raises(DataError, match=r"no column 'SEX'; did you mean 'SEXX'"):
        encode(Schema([Column("SEX", "categorical", values=(1,))]), {"SEXX": [1]})


def test_what_is_no_table_or_weight_is_refused():
    for table, message in (
        (5, "is not a table"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'"),
        ({"a": [1], "b": [1, 2]}, "differ in length"),
    ):
        with pytest.raises(DataError, match=message):
            read_table(table)
    for weights in ([1, -1], [1, None], [0, 0], [1, np.inf], ["a", "1"]):
        with pytest.raises(DataError, match=r"the weight of row|not all zero"):
            encode(PLACED, {"X": [1, 2], "C": ["a", "b"], "W": weights}, weight="W")


def test_coded_tables_take_rows_and_check_codes():
    part = encode(PLACED, {"X": [5, 70, 30], "C": ["b", "a", "a"]}).take(np.array([2, 0]))
    assert (part.codes["X"].tolist(), part.weights.tolist()) == ([1, 0], [0.5, 0.5])
    assert len(part.take(np.array([], dtype=np.int64))) == 0
    for codes in ({"C": np.array([2])}, {"C": np.array([0.5])}, {"C": np.array([1]), "X": np.array([1, 1])}):
        with pytest.raises(DataError, match=r"integers in the range from 0 to 1|different lengths"):
            Coded(PLACED, codes)


def test_outside_reports_public_misfits():
    schema = Schema([Column("C", "categorical", values=("a",)), AGES])
    report = outside(schema, {"C": ["a", "z", "z", None], "X": ["5", "N", "120", None]})
    assert report == {"C": {"z": 2, None: 1}, "X": {"N": 1, "120": 1}}
    assert outside(schema, {"C": ["a"] * 4, "X": [5, 120, 120, b"N"]}) == {"X": {120: 2, "N": 1}}


TABLE = pa.table({"N": [1, None], "T": ["06", "07"], "F": [1.5, 2.0], "B": [True, False], "S": ["a,b", 'q"']})


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz", "T.CSV"])
def test_there_and_back(tmp_path, name):
    write_table(TABLE, tmp_path / name)
    back = read_table(tmp_path / name)
    assert back.to_pydict() == TABLE.to_pydict()
    assert back.schema.types == TABLE.schema.types
    assert read_table(tmp_path / name, ["F", "N"]).column_names == ["F", "N"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_csv_types_are_guessed_cell_by_cell(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f\n1,N,2020-01-01,007,,2020-13-01\n-2,3,2020-01-02,1,,2020-01-01\n")
    types = [str(kind) for kind in read_table(tmp_path / "t.csv").schema.types]
    assert types == ["int64", "string", "date32[day]", "string", "string", "string"]


def test_only_iso_times_in_every_cell_are_times(tmp_path):
    cells = {
        "2020-01-01T05:00:00,2020-01-01 05:00:00.25": "timestamp[ms]",
        "2020-01-01T05:00:00Z,2020-01-01 05:00:00.2500Z": "timestamp[us, tz=UTC]",
        "2020-01-01T05:00:00,2020-01-01T05:00:00Z": "string",
        "2020-01-01T05:00:00,2020-01-01T05:00:00+01:00": "string",
        "2020-01-01T05:00:00,2020-01-01T25:00:00": "string",
    }
    for pair, expected in cells.items():
        (tmp_path / "t.csv").write_text("T\n" + pair.replace(",", "\n") + "\n")
        assert str(read_table(tmp_path / "t.csv")["T"].type) == expected, pair
    for kind in (*map(pa.timestamp, ("s", "ms", "us", "ns")), pa.timestamp("us", "UTC")):
        table = pa.table({"T": pa.array([0, None, 86_400 * 10**6], pa.timestamp("us")).cast(kind), "N": [1, 2, 3]})
        write_table(table, tmp_path / "t.csv")
        assert read_table(tmp_path / "t.csv").equals(table)


def test_a_cell_that_is_no_text_is_outside_the_domain(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"X,C\n\xff,a\n7,\xfc\n")
    schema = Schema([AGES, Column("C", "categorical", values=("a", "b"))])
    coded = encode(schema, tmp_path / "t.csv")
    assert (coded.codes["X"].tolist(), coded.codes["C"].tolist()) == ([3, 0], [0, 1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv.gz", b"a,b\ns3cret,2\n", "not a well-formed CSV"),
        ("t.csv.gz", b"\x1f\x8b\x08s3cret", "not a well-formed CSV"),
        ("t.csv", b"\xff\xfe,b\ns3cret,2\n", "not text in the encoding utf-8"),
        ("t.csv", b"a,b\n1,2\ns3cret\n", "not a well-formed CSV"),
        ("t.parquet", b"s3cret", "not a well-formed parquet"),
        ("t.xls", b"s3cret", r"ends in \.parquet, \.csv, \.csv\.gz"),
    ],
)
def test_errors_name_the_file_and_never_a_line_of_it(tmp_path, name, content, message):
    with pytest.raises(DataError, match=r"no file|ends in"):
        read_table(tmp_path / name)
    (tmp_path / name).write_bytes(content)
    for read in (read_table, lambda path: encode(Schema([Column("a", "categorical", values=[1])]), path)):
        with pytest.raises(DataError, match=message) as caught:
            read(tmp_path / name)
        assert "s3cret" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_without_public_values_uniform_within_the_bin_and_its_bounds():
    schema = Schema(
        [AGES, Column("Y", "numeric", edges=(0.5, 1.0), max=4.0), Column("Z", "numeric", edges=(10,), integer=True)]
    )
    rows = 20_000
    for code, low, high in ((0, 0, 17), (1, 18, 64), (2, 65, 99)):
        drawn = plain_decoder(schema).decode(Coded(schema, {"X": np.full(rows, code)}), seed=3)["X"].to_numpy()
        assert (drawn.min(), drawn.max()) == (low, high)
        assert np.bincount(drawn)[low:].min() > 0.5 * rows / (high - low + 1)
    for code, low, high in ((0, 0.0, 0.5), (1, 0.5, 1.0), (2, 1.0, 4.0)):
        drawn = plain_decoder(schema).decode(Coded(schema, {"Y": np.full(rows, code)}), seed=3)["Y"].to_numpy()
        assert low <= drawn.min() < drawn.max() <= high
        assert abs(drawn.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * rows)
    assert plain_decoder(schema).decode(Coded(schema, {"Z": [0, 1]}), seed=3)["Z"].to_pylist() == [9, 10]  # type: ignore[dict-item]


def test_what_is_drawn_fits_the_schema_and_is_written_as_the_public_table_writes_it():
    number = Schema([Column("X", "numeric", edges=(5,), integer=True, min=0, max=9)])
    decoder = Decoder.fit(number, {"X": [-3.0, 2.5, 40.0, 7.0, np.inf, np.nan]})  # only 7 is within the bounds
    drawn = decoder.decode(Coded(number, {"X": np.tile([0, 1], 200)}), seed=0)["X"].to_numpy()
    assert 0 <= drawn[0::2].min() <= drawn[0::2].max() <= 4
    assert set(drawn[1::2]) == {7.0}
    wide = Schema([Column("X", "numeric", edges=(300,), integer=True, min=0, max=999)])
    public = pa.table({"X": pa.array([1, 2], pa.uint8())})  # a type too narrow for the second bin
    drawn = Decoder.fit(wide, public).decode(Coded(wide, {"X": np.array([0, 1])}), seed=0)["X"]
    assert drawn.type == pa.int64()
    assert drawn[1].as_py() >= 300
    texts = Schema([Column("S", "categorical", values=(6, 7, 36)), AGES])
    public = {"X": ["12.0", "N", "70.0"], "S": ["06", "06", "36"]}
    coded = Coded(texts, {"S": np.array([0, 1, 2]), "X": np.array([0, 3, 2])})
    table = Decoder.fit(texts, public).decode(coded, seed=0)
    assert table.to_pydict() == {"X": ["12.0", None, "70.0"], "S": ["06", "7", "36"]}
    mixed = Schema([Column("S", "categorical", values=("1", "x"))])  # a value that the public type cannot hold
    table = Decoder.fit(mixed, {"S": [1, 1]}).decode(Coded(mixed, {"S": np.array([1, 0])}), seed=0)
    assert table.to_pydict() == {"S": ["x", "1"]}


def test_what_the_decoder_does_not_know():
    schema = Schema([AGES, Column("C", "categorical", values=("a",))])
    with pytest.raises(DataError, match="no column 'C'"):
        Decoder.fit(schema, {"X": [1]})
    coded = Coded(schema, {"X": np.array([1])})
    with pytest.raises(DataError, match="like is 'spark'"):
        plain_decoder(schema).decode(coded, seed=0, like="spark")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="'X' was not in the public table"):
        plain_decoder(schema.select(["C"])).decode(coded, seed=0)


def test_columns_coded_in_threads_have_the_same_codes_and_the_same_first_error():
    numeric = Schema([Column(f"N{number}", "numeric", edges=[1, 2]) for number in range(6)])
    cells = {f"N{number}": pa.array([number % 2, 1, 2]) for number in range(6)}
    alone, together = (encode(numeric, cells, threads=threads) for threads in (1, 4))
    assert all(np.array_equal(alone.codes[name], together.codes[name]) for name in numeric.coded)
    dates = pa.array([datetime.date(2020, 1, 1)] * 3)
    for threads in (1, 4):
        with pytest.raises(DataError, match="N2"):
            encode(numeric, {**cells, "N2": dates, "N4": dates}, threads=threads)
