"""Counts of every source equal the codec's codes counted with numpy, and what cannot be counted is refused by name."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

from prade import Column, Schema
from prade.core.errors import DataError
from prade.data.public.joint import encode
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


def people(rows=2000, seed=7):
    generator = np.random.default_rng(seed)
    table = pa.table(
        {
            "AGE": generator.integers(0, 100, rows),
            "SEX": pa.array(generator.choice(["f", "m", None], rows).tolist()),
            "INCOME": generator.lognormal(10, 1, rows),
            "STATE": generator.choice(["36", "42", "99"], rows),
            "TOWN": generator.integers(0, 6, rows).astype(float),
            "ID": generator.integers(0, rows // 4, rows),
        }
    )
    schema = Schema(
        [
            Column("AGE", "numeric", edges=(5, 18, 65), integer=True),
            Column("SEX", "categorical", values=("f", "m"), missing=True),
            Column("INCOME", "numeric", edges=(1e4, 3e4)),
            Column("STATE", "group"),
            Column("TOWN", "group"),
        ]
    )
    return schema, table


def all_kinds(schema):
    return [
        Marginal.of(schema, ["AGE"]),
        Marginal.of(schema, ["INCOME", "AGE", "SEX"]),
        Cells(["SEX", "AGE"], table=np.arange(12) // 3 % 4, n_cells=3, labels="abc"),
        Predicate(parse("AGE >= 65 and (SEX == 'f' or not INCOME < 30000)", schema)),
        Predicate(parse("AGE < 5", schema), parse("AGE >= 65 and SEX is missing", schema)),
    ]


def by_numpy(schema, table, parts, groups):
    """The same counts, made row by row from the codec's codes."""
    codes = encode(schema, table).codes
    cells = [part.cells(schema, codes) for part in parts]
    place = {group: index for index, group in enumerate(groups)}
    found = [np.zeros((len(groups), part.n_cells), int) for part in parts]
    for row, (state, town) in enumerate(zip(table["STATE"].to_pylist(), table["TOWN"].to_pylist(), strict=True)):
        group = place.get((int(state), int(town)))
        for answer, part, cell in zip(found, parts, cells, strict=True):
            if group is not None and cell[row] < part.n_cells:
                answer[group, cell[row]] += 1
    return found


GROUPS = [(42, 1), (36, 0), (36, 1), (42, 5), (77, 1)]  # not all combinations, out of order, one without rows
GROUP_TABLE = {"STATE": [state for state, _ in GROUPS], "TOWN": [town for _, town in GROUPS]}


@pytest.mark.parametrize("way", ["in memory", "in a database"])
def test_all_kinds_of_parts_by_group(way, tmp_path):
    schema, table = people()
    parts = all_kinds(schema)
    with open_source(table if way == "in memory" else duckdb_file(tmp_path / "db", people=table)) as source:
        found = count(source, schema, parts, GROUP_TABLE)
    for answer, expected in zip(found, by_numpy(schema, table, parts, GROUPS), strict=True):
        assert answer.dtype == np.int64
        assert answer.tolist() == expected.tolist()
    assert found[0][4].sum() == 0
    assert found[0].sum() < len(table)


def test_an_empty_table_is_all_zeros():
    schema, table = people()
    with open_source(table.slice(0, 0)) as source:
        for unit in (None, Unit(2, person_id="ID", per_group=1)):
            found = count(source, schema, all_kinds(schema), GROUP_TABLE, unit)
            assert [answer.shape for answer in found] == [(5, 4), (5, 36), (5, 3), (5, 1), (5, 2)]
            assert not any(answer.any() for answer in found)


# ---------------------------------------------------------------------- at most so many rows a person


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_person_counts_at_most_max_rows_times(most):
    schema, table = people()
    each = np.bincount(table["ID"].to_numpy())
    with open_source(table) as source:
        parts = [Marginal.of(schema, [name]) for name in ("AGE", "SEX")]
        found = count(source, schema, parts, None, Unit(most, person_id="ID"))
    assert [answer.sum() for answer in found] == [np.minimum(each, most).sum()] * 2


def test_a_person_counts_at_most_per_group_times_in_one_group():
    schema, table = people()
    loose, tight = (
        counted(table, schema["AGE"], {"STATE": [36, 42]}, Unit(most, person_id="ID", per_group=1)) for most in (100, 1)
    )
    seen = set(zip(table["ID"].to_pylist(), table["STATE"].to_pylist(), strict=True))
    assert loose.sum(axis=1).tolist() == [sum(state == each for _, state in seen) for each in ("36", "42")]
    assert tight.sum() == len({person for person, state in seen if state in ("36", "42")})


@pytest.mark.parametrize("by", [[], ["STATE"], ["STATE", "TOWN"]])
def test_per_group_means_the_groups_of_the_whole_list_at_every_level(by):
    rows = {"AGE": [1] * 7, "STATE": [36, 36, 36, 42, 42, 42, 42], "TOWN": [0, 0, 1, 0, 1, 2, 2], "ID": [1] * 7}
    groups = {"STATE": [36, 36, 42, 42, 42], "TOWN": [0, 1, 0, 1, 2]}
    for most, per_group, expected in ((7, 1, 5), (7, 2, 7), (3, 1, 3)):
        unit = Unit(most, person_id="ID", per_group=per_group)
        assert counted(rows, people(8)[0]["AGE"], groups, unit, by).sum() == expected


def test_all_parts_see_the_same_rows_of_a_person():
    """With one row per person, two queries that no row satisfies together may not both count the same person."""
    schema, _ = people(8)
    persons = 300
    table = {"AGE": [3, 80] * persons, "ID": np.repeat(np.arange(persons), 2)}
    parts = [Predicate(parse("AGE < 5", schema)), Predicate(parse("AGE >= 65", schema))]
    with open_source(table) as source:
        young, old = count(source, schema, parts, None, Unit(1, person_id="ID"))
    assert young.sum() + old.sum() == persons
    assert 90 < young.sum() < 210  # each with probability 1/2; beyond these bounds once in 10^12


@pytest.mark.parametrize("ids", [[1, 1, None, None], ["a", "a", None, None], [1.5, 1.5, float("nan"), None]], ids=str)
def test_rows_without_an_id_are_not_counted(ids):
    table = pa.table({"AGE": [1, 1, 1, 1], "ID": pa.array(ids, from_pandas=False)})
    found = [counted(table, people(8)[0]["AGE"], None, unit).sum() for unit in (Unit(3, person_id="ID"), Unit(3))]
    assert found == [2, 4]


# ---------------------------------------------------------------------- what is refused


def test_a_list_of_groups_without_a_column_of_the_table_is_refused():
    schema, table = people(50)
    with pytest.raises(DataError, match="has no column 'PUMA'"):
        counted(table, schema["AGE"], {"PUMA": [36]})


def test_an_absent_column_of_ids_is_refused_with_a_hint():
    schema, table = people(50)
    with pytest.raises(DataError, match="has no column 'IDS'; did you mean 'ID'"):
        counted(table, schema["AGE"], None, Unit(1, person_id="IDS"))


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
        return counted({"AGE": [1] * 5, **rows}, people(8)[0]["AGE"], groups, by=by).sum(axis=1).tolist()

    states, places = [36, 36, 42, 36, 42], ["a", "b", "c", "c", "z"]
    found = [counts(by, STATE=states, PUMA=places) for by in (["STATE"], [], ["PUMA", "STATE"], ["NATION"])]
    assert found == [[2, 1], [3], [1, 1, 1], [3]]  # only the list has the last column
    assert counts(["STATE"], PUMA=["a", "c", "z", "z", "z"]) == [1, 1]  # the state follows from the place
    assert counts(["STATE"], STATE=[36] * 5) == [5, 0]
    with pytest.raises(DataError, match="'PUMA' or 'NATION', and 'STATE' alone cannot identify a row's group"):
        counts(["STATE", "PUMA"], STATE=[36] * 5)
