"""Counts of every source equal the codec's codes counted with numpy, and what cannot be counted is refused by name."""

import datetime
import decimal
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from prade import Column
from prade.core.errors import DataError
from prade.data.public.joint import encode
from prade.examples import census_like
from prade.measuring.source import open_source
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from worlds.counting import count, counted, duckdb_file

DAY = datetime.date


def test_whole_numbers_beyond_doubles_are_told_apart_in_a_database(tmp_path):
    values = (2**53, 2**53 + 1, 2**62 + 1)
    column = Column("x", "categorical", values=values, missing=True)
    for kind in (pa.int64(), pa.string()):
        table = pa.table({"x": pa.array([str(cell) for cell in (*values, 2**62)]).cast(kind)})
        assert counted(duckdb_file(tmp_path / str(kind), people=table), column).tolist() == [[1, 1, 1, 1]], kind
        with pytest.raises(DataError, match=r"'x' lists whole numbers beyond 2\*\*53"):
            counted(table, column)


CENSUS, DRAW = (
    census_like(persons=900, states=3, places_per_state=3, years=(2023, 2024), seed=5),
    np.random.default_rng(11),
)
NUMBER = CENSUS.private.num_rows
ROWS = CENSUS.private.append_column(
    "ID", pa.array(DRAW.integers(0, NUMBER // 4, NUMBER), mask=DRAW.random(NUMBER) < 0.1)
)
DECLARED = CENSUS.schema.select(["AGE", "SEX", "EDUC", "WAGE", "TENURE"])
AGE = DECLARED["AGE"]
STATES = {"STATE": [14, 15]}  # and not 16
GROUPS = {
    "STATE": [15, 14, 14, 15, 99],
    "PLACE": ["15-002", "14-003", "14-001", "15-001", "14-002"],
}  # out of order, the last one without rows
PARTS = [
    *(Marginal.of(DECLARED, [name]) for name in DECLARED.coded),
    Marginal.of(DECLARED, ["AGE", "SEX", "TENURE"]),
    Cells(["SEX", "EDUC"], table=np.arange(16) % 5, n_cells=4),
    Predicate(parse("AGE >= 65 and not (TENURE == 'owned' or WAGE is missing)", DECLARED), parse("AGE < 5", DECLARED)),
]


@pytest.mark.parametrize("way", ["in memory", "in a database"])
def test_all_kinds_of_parts_by_group(way, tmp_path):
    with open_source(ROWS if way == "in memory" else duckdb_file(tmp_path / "db", people=ROWS)) as source:
        found = count(source, DECLARED, PARTS, GROUPS)
    codes, groups = encode(DECLARED, ROWS).codes, list(zip(*GROUPS.values(), strict=True))
    places = zip(ROWS["STATE"].to_pylist(), ROWS["PLACE"].to_pylist(), strict=True)
    group = np.array([groups.index(each) if each in groups else len(groups) for each in places])
    for part, answer in zip(PARTS, found, strict=True):
        expected = np.zeros((len(groups) + 1, part.n_cells + 1), int)
        np.add.at(expected, (group, part.cells(DECLARED, codes)), 1)
        assert answer.dtype == np.int64
        assert answer.tolist() == expected[:-1, :-1].tolist()
    assert found[0][4].sum() == 0
    assert 0 < found[0].sum() < len(ROWS)


@pytest.mark.parametrize("unit", [None, Unit(2, person_id="ID", per_group=1)], ids=str)
def test_an_empty_table_is_all_zeros(unit):
    with open_source(ROWS.slice(0, 0)) as source:
        for part, answer in zip(PARTS, count(source, DECLARED, PARTS, GROUPS, unit), strict=True):
            assert answer.tolist() == [[0] * part.n_cells] * 5


def rows_kept(unit):
    """How many rows of the two listed states a unit lets count."""
    rows = Counter(zip(ROWS["ID"].to_pylist(), ROWS["STATE"].to_pylist(), strict=True))
    kept = Counter()
    for (person, state), number in rows.items():
        if person is not None and state != 16:
            kept[person] += min(number, unit.per_group or number)
    return sum(min(number, unit.max_rows) for number in kept.values())


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_person_counts_at_most_max_rows_times(most):
    unit = Unit(most, person_id="ID")
    assert counted(ROWS, AGE, STATES, unit).sum() == rows_kept(unit)


@pytest.mark.parametrize("most", [100, 1])
def test_a_person_counts_at_most_per_group_times_in_one_group(most):
    unit = Unit(most, person_id="ID", per_group=1)
    assert counted(ROWS, AGE, STATES, unit).sum() == rows_kept(unit)


@pytest.mark.parametrize("by", [[], ["STATE"], ["STATE", "TOWN"]])
def test_per_group_means_the_groups_of_the_whole_list_at_every_level(by):
    rows = {"AGE": [1] * 7, "STATE": [36, 36, 36, 42, 42, 42, 42], "TOWN": [0, 0, 1, 0, 1, 2, 2], "ID": [1] * 7}
    groups = {"STATE": [36, 36, 42, 42, 42], "TOWN": [0, 1, 0, 1, 2]}
    for most, per_group, expected in ((7, 1, 5), (7, 2, 7), (3, 1, 3)):
        unit = Unit(most, person_id="ID", per_group=per_group)
        assert counted(rows, AGE, groups, unit, by).sum() == expected


def test_all_parts_see_the_same_rows_of_a_person():
    """With one row per person, two queries that no row satisfies together may not both count the same person."""
    persons = 300
    asked = [Predicate(parse("AGE < 5", DECLARED)), Predicate(parse("AGE >= 65", DECLARED))]
    with open_source({"AGE": [3, 80] * persons, "ID": np.repeat(np.arange(persons), 2)}) as source:
        young, old = count(source, DECLARED, asked, None, Unit(1, person_id="ID"))
    assert young.sum() + old.sum() == persons
    assert 90 < young.sum() < 210  # each with probability 1/2; beyond these bounds once in 10^12


@pytest.mark.parametrize("ids", [[1, 1, None, None], ["a", "a", None, None], [1.5, 1.5, float("nan"), None]], ids=str)
def test_rows_without_an_id_are_not_counted(ids):
    table = pa.table({"AGE": [1, 1, 1, 1], "ID": pa.array(ids, from_pandas=False)})
    found = [counted(table, AGE, None, unit).sum() for unit in (Unit(3, person_id="ID"), Unit(3))]
    assert found == [2, 4]


def test_absent_columns_of_groups_and_ids_are_refused_by_name():
    with pytest.raises(DataError, match="has no column 'PUMA'"):
        counted(ROWS, AGE, {"PUMA": [36]})
    with pytest.raises(DataError, match="has no column 'IDS'; did you mean 'ID'"):
        counted(ROWS, AGE, None, Unit(1, person_id="IDS"))


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (["a", "b"], pa.array([1.5, 2.5])),
        (["soon", "late"], pa.array([DAY(2020, 1, 1)])),
        (["a", "b"], pa.array([decimal.Decimal("1.0")])),
        (["yes", "no"], pa.array([True])),
    ],
    ids=["words for numbers", "words for dates", "words for decimals", "words for truths"],
)
def test_a_list_that_no_cell_of_the_type_can_be_in_is_refused(values, cells, tmp_path):
    """By type and list alone: an empty table is refused as well, and one fitting value is enough for both."""
    table = pa.table({"x": cells, "y": pa.array([0] * len(cells))})
    for rows in (1, 0):
        private = duckdb_file(tmp_path / str(rows), people=table.slice(0, rows))
        with pytest.raises(DataError, match=r"column 'x': no cell of the table's type .* can equal a listed value"):
            counted(private, Column("x", "categorical", values=values))
        with pytest.raises(DataError, match=r"write the values as the table does, .*\. Nothing was counted"):
            counted(private, Column("y", "categorical", values=(0, 1)), {"x": values})
    fitting = str(cells[0].as_py()).lower().removesuffix(".0")
    column = Column("x", "categorical", values=[*values, fitting], missing=True)
    assert counted(f"duckdb://{tmp_path}/1/people", column)[0, 2] == 1


def test_a_level_is_counted_from_the_finer_list_and_unlisted_rows_count_nowhere():
    groups = {"STATE": [36, 36, 42], "PUMA": ["a", "b", "c"], "NATION": ["US"] * 3}

    def counts(by, **rows):
        return counted({"AGE": [1] * 5, **rows}, AGE, groups, by=by).sum(axis=1).tolist()

    states, places = [36, 36, 42, 36, 42], ["a", "b", "c", "c", "z"]
    found = [counts(by, STATE=states, PUMA=places) for by in (["STATE"], [], ["PUMA", "STATE"], ["NATION"])]
    assert found == [[2, 1], [3], [1, 1, 1], [3]]  # only the list has the last column
    assert counts(["STATE"], PUMA=["a", "c", "z", "z", "z"]) == [1, 1]  # the state follows from the place
    assert counts(["STATE"], STATE=[36] * 5) == [5, 0]
    with pytest.raises(DataError, match="'PUMA' or 'NATION', and 'STATE' alone cannot identify a row's group"):
        counts(["STATE", "PUMA"], STATE=[36] * 5)
