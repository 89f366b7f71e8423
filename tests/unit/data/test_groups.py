"""Lists of groups: levels and their order, every way to give them, rows that know only some columns, refusals."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from prade.core.errors import DataError, SchemaError
from prade.data.declare.groups import Groups

PLACES = {"STATE": [39, 17, 39, 17], "PUMA": ["02", "01", "01", "03"], "YEAR": [2019, 2019, 2019, 2019]}


@pytest.fixture
def places():
    return Groups.of(PLACES)


def test_levels_in_order_of_appearance(places):
    states = places.level("STATE")
    assert (states.by, states.values, states.number.tolist()) == (("STATE",), ((39,), (17,)), [0, 1, 0, 1])
    assert states.labels() == ["STATE 39", "STATE 17"]
    pumas = places.level(["STATE", "PUMA"])
    assert pumas.values == ((39, "02"), (17, "01"), (39, "01"), (17, "03"))
    assert (pumas.number.tolist(), pumas.labels()[0]) == ([0, 1, 2, 3], "STATE 39, PUMA 02")
    other = places.level(["PUMA", "STATE"])  # the order of columns changes how groups are named, not which there are
    assert ([values[::-1] for values in other.values], other.number.tolist()) == ([*pumas.values], [0, 1, 2, 3])
    assert places.level(["PUMA"]).values == (("02",), ("01",), ("03",))
    assert places.level(["PUMA"]).number.tolist() == [0, 1, 1, 2]
    everybody = places.level([])
    assert (everybody.values, everybody.number.tolist(), everybody.labels()) == (((),), [0, 0, 0, 0], ["all"])
    alone = Groups.of(None)
    assert (len(alone), alone.names, alone.to_dict(), alone.level(()).labels()) == (1, (), {}, ["all"])
    for groups, message in ((places, "no column 'STAT'; did you mean 'STATE'"), (alone, "no column 'STAT'")):
        with pytest.raises(DataError, match=message):
            groups.level(["STAT"])


def test_the_same_list_from_anywhere(places, tmp_path):
    frame = pd.DataFrame(PLACES)
    frame.to_csv(tmp_path / "places.csv", index=False)
    frame.to_csv(tmp_path / "places.csv.gz", index=False)
    frame.to_parquet(tmp_path / "places.parquet")
    for table in (
        places,
        frame,
        pl.DataFrame(PLACES),
        pa.table(PLACES),
        pa.table({**PLACES, "PUMA": pa.array(PLACES["PUMA"]).dictionary_encode()}),
        {**PLACES, "STATE": np.array(PLACES["STATE"], np.int16)},
        {**PLACES, "STATE": np.array(PLACES["STATE"], np.float32)},  # whole: a column with a gap once was float
        tmp_path / "places.csv",
        str(tmp_path / "places.csv.gz"),
        tmp_path / "places.parquet",
    ):
        assert Groups.of(table) == places
        assert hash(Groups.of(table)) == hash(places)
    assert Groups.of(places) is places
    assert places.to_dict() == PLACES
    assert places != PLACES
    for other in ({**PLACES, "YEAR": [2019, 2019, 2019, 2020]}, {name: cells[::-1] for name, cells in PLACES.items()}):
        assert places != Groups.of(other)
    for one, other in (([1, 2], ["1", "2"]), ([1, 0], [True, False])):
        assert Groups.of({"G": one}) != Groups.of({"G": other})


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([True, False], [True, False]),
        ([1.0, 2.0], [1, 2]),
        ([2**62, 2**62 + 1], [2**62, 2**62 + 1]),
        ([datetime.date(2020, 2, 29), datetime.date(2019, 1, 1)], ["2020-02-29", "2019-01-01"]),
        (np.array(["2020-02-29", "2019-01-01"], "datetime64[s]"), ["2020-02-29", "2019-01-01"]),
        ([1, "a"], ["1", "a"]),
        ([datetime.datetime(2020, 1, 1, 5), "a"], ["2020-01-01 05:00:00", "a"]),
        (["1", "01", "1.0"], ["1", "01", "1.0"]),
    ],
)
def test_values_of_every_type(cells, values):
    groups = Groups.of({"G": cells})
    assert groups.to_dict() == {"G": values}
    assert [type(value) for value in groups.to_dict()["G"]] == [type(value) for value in values]
    assert groups.codes[:, 0].tolist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("G,H\n06,1\n17,1\n", ["06", "17"]),  # leading zeros are a code
        ("G,H\n1.0,1\n2.0,1\n", [1, 2]),
        ("G,H\n2020-02-29 07:00:00,1\n2019-01-01 00:00:00,1\n", ["2020-02-29 07:00:00", "2019-01-01 00:00:00"]),
        ('G,H\n"a, b",1\n" a",1\n', ["a, b", " a"]),
    ],
)
def test_values_of_a_csv_file(text, values, tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text(text)
    assert Groups.of(path).to_dict() == {"G": values, "H": [1, 1]}


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({}, DataError, "list of groups is empty"),
        ({"G": ["a", None]}, DataError, "empty cell in column 'G'"),
        (pl.DataFrame({"H": [1, 2], "G": [None, 1]}), DataError, "empty cell in column 'G'"),
        (pl.DataFrame({"G": [float("nan"), 1.0]}), SchemaError, "finite"),
        ({"G": ["a", "a", "b"], "H": [1, 1, 1]}, DataError, "contains a group twice"),
        ({"G": [[1], [2]]}, DataError, "column 'G': cells of type list"),
        ("absent.csv", DataError, r"there is no file absent\.csv"),
    ],
)
def test_lists_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        Groups.of(table)


def test_more_combinations_than_numbers():
    wide = Groups.of({f"c{i}": np.arange(2000) for i in range(6)})
    with pytest.raises(DataError, match="leave out columns that follow from others"):
        wide.keyed(wide.names, wide.level(wide.names).number)
    assert wide.keyed(["c0"], wide.level(wide.names).number).size == 2000
