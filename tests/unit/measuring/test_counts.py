"""Counts of every source equal the codec's codes counted with numpy, and nothing private gets out with an error."""

import datetime
import decimal
import sqlite3
import tempfile
from contextlib import contextmanager
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from prade import Budget, Column, Schema, Workload
from prade.core.errors import DataError, PradeError, SchemaError, WorkloadError
from prade.data.public.joint import encode
from prade.measuring.noise import add_noise
from prade.measuring.run import measure
from prade.measuring.source import count, open_source
from prade.planning.questions import Level
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from worlds.plans import ledger_for, plan_of

DAY = datetime.date


@contextmanager
def in_database(table):
    """The table in a DuckDB file of its own, which declares its types."""
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect(f"{folder}/rows.db") as connection:
            connection.register("given", pa.table(table))
            connection.execute('CREATE TABLE "rows" AS SELECT * FROM given')
        with open_source(f"duckdb://{folder}/rows.db/rows") as source:
            yield source


ways = pytest.mark.parametrize("way", [open_source, in_database], ids=["in memory", "in a database"])


@ways
def test_edges_just_above_a_round_number_are_exact(way):
    edge = float(np.nextafter(20, np.inf))
    schema = Schema([Column("x", "numeric", edges=(0.1, edge, 1e17 + 16))])
    table = {"x": [20.0, edge, float(np.nextafter(0.1, 0)), 0.1, 1e17, 1e17 + 16]}
    with way(table) as source:
        (found,) = count(source, schema, [Marginal.of(schema, ["x"])])
    assert found.tolist() == [np.bincount(encode(schema, table).codes["x"], minlength=4).tolist()]
    assert found.tolist() == [[1, 2, 2, 1]]


@ways
def test_long_lists_keep_their_order(way):
    values = tuple(np.random.default_rng(1).permutation(700).tolist())
    schema = Schema(
        [Column("x", "categorical", values=values), Column("y", "categorical", values=tuple(map(str, values)))]
    )
    x = np.random.default_rng(2).integers(-5, 705, 3000)
    table = {"x": x, "y": x.astype(str)}
    parts = [Marginal.of(schema, ["x"]), Marginal.of(schema, ["y"])]
    with way(table) as source:
        found = count(source, schema, parts)
    codes = encode(schema, table).codes
    for answer, name in zip(found, "xy", strict=True):
        assert answer[0].tolist() == np.bincount(codes[name], minlength=700).tolist()


@ways
def test_long_lists_may_hold_more_than_a_narrow_column(way):
    schema = Schema([Column("x", "categorical", values=tuple(range(-500, 500)), missing=True)])
    table = pa.table({"x": pa.array([-128, 127, 5, None], pa.int8())})
    with way(table) as source:
        (found,) = count(source, schema, [Marginal.of(schema, ["x"])])
    assert np.flatnonzero(found[0]).tolist() == [372, 505, 627, 1000]


def test_whole_numbers_beyond_doubles_are_told_apart_in_a_database():
    values = (2**53, 2**53 + 1, 2**62 + 1)
    schema = Schema([Column("x", "categorical", values=values, missing=True)])
    cells = [*values, 2**62]
    for kind in (pa.int64(), pa.string()):
        table = pa.table({"x": pa.array([str(cell) for cell in cells]).cast(kind)})
        with in_database(table) as source:
            (found,) = count(source, schema, [Marginal.of(schema, ["x"])])
        assert found.tolist() == [[1, 1, 1, 1]], kind
        with open_source(table) as source, pytest.raises(DataError, match=r"'x' lists whole numbers beyond 2\*\*53"):
            count(source, schema, [Marginal.of(schema, ["x"])])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e999", 1),
        ("-1e999", 0),
        ("1e-999", 1),
        ("9" * 400, 1),
        ("0." + "0" * 400 + "1", 1),
        ("1e299", 1),
        ("9e-299", 1),
        ("1" * 150, 1),
    ],
)
@ways
def test_no_number_as_text_is_too_long(text, expected, way):
    schema = Schema([Column("x", "numeric", edges=(0,), missing=True)])
    with way(pa.table({"x": [text]})) as source:
        assert np.flatnonzero(count(source, schema, [Marginal.of(schema, ["x"])])[0][0]).tolist() == [expected]


VARIANTS = ["va", "VA", "Va", "vA", "vb"]
LONG = [f"w{place}" for place in range(100)] + VARIANTS


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_a_row_counts_once_whatever_the_collation_takes_for_equal(collation, tmp_path):
    """Under NOCASE the cell va equals four values of the list: one of them is its place, no others."""
    cells = ["va", "VA", "vb", "VB", "v\u00e4", "w7", None]
    with duckdb.connect(str(tmp_path / "rows.db")) as database:
        database.execute(f"CREATE TABLE t (x VARCHAR COLLATE {collation}, y INTEGER)")
        database.executemany("INSERT INTO t VALUES (?, 1)", [[cell] for cell in cells])
    schema = Schema([Column("x", "categorical", values=LONG, missing=True), Column("y", "categorical", values=(0, 1))])
    table = {"x": cells, "y": [1] * len(cells)}
    codes = encode(schema, table).codes["x"]
    with open_source(f"duckdb://{tmp_path}/rows.db/t") as source:
        (found,) = count(source, schema, [Marginal.of(schema, ["x"])])
        (by_group,) = count(source, schema, [Marginal.of(schema, ["y"])], {"x": LONG})
    assert found[0].tolist() == np.bincount(codes, minlength=106).tolist()
    assert by_group[:, 1].tolist() == [cells.count(value) for value in LONG]


@pytest.mark.parametrize("name", ["key", "rows", "prade_place_0"])
@ways
def test_a_table_may_have_columns_of_any_name(name, way):
    values = list(range(200))
    schema = Schema([Column("x", "categorical", values=values, missing=True)])
    table = {"x": [1, 2, 3], name: [7, 7, 7], "place": [1, 2, 5], "id": [1, 1, 2]}
    groups = {"place": [5, 1, 2, *range(100, 200)], "state": ["a", "b", *["c"] * 101]}
    part = Marginal.of(schema, ["x"])
    with way(table) as source:
        (found,) = count(source, schema, [part])
        (by_state,) = count(source, schema, [part], groups, Unit(2, person_id="id", per_group=1), ["state"])
    assert np.flatnonzero(found[0]).tolist() == [1, 2, 3]
    assert np.argwhere(by_state).tolist() == [[0, 3], [1, 1], [2, 2]]
    other = Schema([Column(name, "categorical", values=values, missing=True)])
    with way(table) as source:
        (found,) = count(source, other, [Marginal.of(other, [name])], None, Unit(1, person_id=name))
    assert {place: found[0, place] for place in np.flatnonzero(found[0])} == {7: 1}


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


@ways
def test_all_kinds_of_parts_by_group(way):
    schema, table = people()
    parts = all_kinds(schema)
    with way(table) as source:
        found = count(source, schema, parts, GROUP_TABLE)
    for answer, expected in zip(found, by_numpy(schema, table, parts, GROUPS), strict=True):
        assert answer.dtype == np.int64
        assert answer.tolist() == expected.tolist()
    assert found[0][4].sum() == 0
    assert found[0].sum() < len(table)


def test_the_rows_of_a_sqlite_table_are_streamed(tmp_path):
    schema, table = people()
    parts = all_kinds(schema)
    with sqlite3.connect(tmp_path / "rows.sqlite") as database:
        database.execute("CREATE TABLE people (AGE INTEGER, SEX TEXT, INCOME REAL, STATE TEXT, TOWN REAL, ID INTEGER)")
        database.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", zip(*table.to_pydict().values(), strict=True)
        )
    database.close()
    with open_source(f"sqlite://{tmp_path}/rows.sqlite/people") as source:
        found = count(source, schema, parts, GROUP_TABLE)
        bounded = count(source, schema, [Marginal.of(schema, ["AGE"])], None, Unit(1, person_id="ID"))
    for answer, expected in zip(found, by_numpy(schema, table, parts, GROUPS), strict=True):
        assert answer.tolist() == expected.tolist()
    assert bounded[0].sum() == len(set(table["ID"].to_pylist()))
    with pytest.raises(DataError, match="there is no table 'nobody'"):
        open_source(f"sqlite://{tmp_path}/rows.sqlite/nobody")


def test_no_groups_means_one_group_of_all_rows():
    schema, table = people()
    with open_source(table) as source:
        (found,) = count(source, schema, [Marginal.of(schema, ["SEX"])])
    assert found.shape == (1, 3)
    assert found.sum() == len(table)


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
    parts = [Marginal.of(schema, ["AGE"]), Marginal.of(schema, ["SEX"])]
    each = np.bincount(table["ID"].to_numpy())
    with open_source(table) as source:
        found = count(source, schema, parts, None, Unit(most, person_id="ID"))
    assert [answer.sum() for answer in found] == [np.minimum(each, most).sum()] * 2


def test_a_person_counts_at_most_per_group_times_in_one_group():
    schema, table = people()
    states = table["STATE"].to_pylist()
    with open_source(table) as source:
        (found,) = count(
            source, schema, [Marginal.of(schema, ["AGE"])], {"STATE": [36, 42]}, Unit(100, person_id="ID", per_group=1)
        )
        (tight,) = count(
            source, schema, [Marginal.of(schema, ["AGE"])], {"STATE": [36, 42]}, Unit(1, person_id="ID", per_group=1)
        )
    seen = set(zip(table["ID"].to_pylist(), states, strict=True))
    assert found.sum(axis=1).tolist() == [sum(state == each for _, state in seen) for each in ("36", "42")]
    assert tight.sum() == len({person for person, state in seen if state in ("36", "42")})


@pytest.mark.parametrize("by", [[], ["STATE"], ["STATE", "TOWN"]])
def test_per_group_means_the_groups_of_the_whole_list_at_every_level(by):
    schema, _ = people(8)
    rows = {"AGE": [1] * 7, "STATE": [36, 36, 36, 42, 42, 42, 42], "TOWN": [0, 0, 1, 0, 1, 2, 2], "ID": [1] * 7}
    groups = {"STATE": [36, 36, 42, 42, 42], "TOWN": [0, 1, 0, 1, 2]}
    with open_source(rows) as source:
        for most, per_group, counted in ((7, 1, 5), (7, 2, 7), (3, 1, 3)):
            unit = Unit(most, person_id="ID", per_group=per_group)
            (found,) = count(source, schema, [Marginal.of(schema, ["AGE"])], groups, unit, by)
            assert found.sum() == counted


def test_all_parts_see_the_same_rows_of_a_person():
    """With one row per person, two queries that no row satisfies together may not both count the same person."""
    schema, _ = people()
    persons = 300
    table = {"AGE": [3, 80] * persons, "ID": np.repeat(np.arange(persons), 2)}
    parts = [Predicate(parse("AGE < 5", schema)), Predicate(parse("AGE >= 65", schema))]
    with open_source(table) as source:
        young, old = count(source, schema, parts, None, Unit(1, person_id="ID"))
    assert young.sum() + old.sum() == persons
    assert 90 < young.sum() < 210  # each with probability 1/2; beyond these bounds once in 10^12


def test_rows_without_an_id_are_not_counted():
    schema, _ = people()
    part = Marginal.of(schema, ["AGE"])
    for ids in ([1, 1, None, None], ["a", "a", None, None], [1.5, 1.5, float("nan"), None]):
        with open_source(pa.table({"AGE": [1, 1, 1, 1], "ID": pa.array(ids, from_pandas=False)})) as source:
            assert count(source, schema, [part], None, Unit(3, person_id="ID"))[0].sum() == 2
            assert count(source, schema, [part], None, Unit(3))[0].sum() == 4


# ---------------------------------------------------------------------- what is refused


def test_what_cannot_be_counted_is_refused_by_name():
    schema, table = people(50)
    part = Marginal.of(schema, ["AGE"])
    with open_source(table) as source:
        with pytest.raises(WorkloadError, match="no part to count"):
            count(source, schema, [])
        with pytest.raises(DataError, match="contains a group twice"):
            count(source, schema, [part], {"STATE": [36, 36]})
        with pytest.raises(DataError, match="empty cell in column 'STATE'"):
            count(source, schema, [part], {"STATE": [36, None]})
        with pytest.raises(DataError, match="list of groups is empty"):
            count(source, schema, [part], {"STATE": []})
        with pytest.raises(DataError, match="has no column 'PUMA'"):
            count(source, schema, [part], {"PUMA": [36]})
        with pytest.raises(DataError, match="has no column 'IDS'; did you mean 'ID'"):
            count(source, schema, [part], None, Unit(1, person_id="IDS"))
        with pytest.raises(SchemaError, match="not known yet"):
            Marginal.of(schema, ["STATE"]) if schema.size("STATE") else None
        other = Schema([Column("AGE", "numeric", edges=(1,))])
        with pytest.raises(WorkloadError, match="codes in column 'AGE', but this schema has"):
            count(source, other, [part])


def test_cells_without_a_code_are_refused_by_their_type_only():
    schema = Schema([Column("x", "categorical", values=(1, 2))])
    table = pa.table({"x": pa.array([[987654321]], pa.list_(pa.int64()))})
    with open_source(table) as source:  # whose types follow its rows
        assert count(source, schema, [Marginal.of(schema, ["x"])])[0].tolist() == [[0, 1]]
    with in_database(table) as source, pytest.raises(DataError, match="the schema has numbers") as refused:
        count(source, schema, [Marginal.of(schema, ["x"])])
    assert "987654321" not in str(refused.value)


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
def test_a_list_that_no_cell_of_the_type_can_be_in_is_refused(values, cells):
    """By type and list alone: an empty table is refused as well, and one fitting value is enough for both."""
    schema = Schema([Column("x", "categorical", values=values), Column("y", "categorical", values=(0, 1))])
    table = pa.table({"x": cells, "y": pa.array([0] * len(cells))})
    for rows in (table, table.slice(0, 0)):
        with in_database(rows) as source:
            with pytest.raises(DataError, match=r"column 'x': no cell of the table's type .* can equal a listed value"):
                count(source, schema, [Marginal.of(schema, ["x"])])
            with pytest.raises(DataError, match=r"write the values as the table does, .*\. Nothing was counted"):
                count(source, schema, [Marginal.of(schema, ["y"])], {"x": values})
    fitting = str(cells[0].as_py()).lower().removesuffix(".0") if isinstance(values[0], str) else cells[0].as_py()
    schema = Schema([Column("x", "categorical", values=[*values, fitting], missing=True)])
    with in_database(table) as source:
        assert count(source, schema, [Marginal.of(schema, ["x"])])[0][0, 2] == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(25, 2), pa.string()])
@ways
def test_codes_of_one_width_are_found_where_a_table_keeps_them_as_numbers(way, kind):
    schema = Schema([Column("x", "categorical", values=("00100", "00200", "other"), missing=True)])
    cells = ["00100", "00200", "00100"] if kind == pa.string() else pa.array([100, 200, 100]).cast(kind)
    with way({"x": cells}) as source:
        assert count(source, schema, [Marginal.of(schema, ["x"])])[0].tolist() == [[2, 1, 0, 0]]


def test_a_list_that_fits_no_cell_is_refused_before_anything_is_spent(tmp_path):
    schema, _ = people(8)
    level = Level("PUMA", Workload(schema, [Marginal.of(schema, ["AGE"])]))
    plan = plan_of(schema, level, groups={"PUMA": ["here", "there"]}, dataset="rows")
    ledger = ledger_for(plan, tmp_path / "ledger")
    table = {"AGE": [3, 70], "PUMA": [100, 200]}
    with in_database(table) as source, pytest.raises(DataError, match="column 'PUMA': no cell"):
        measure(plan, source, tmp_path / "release", ledger)
    assert ledger.remaining("rows") == Budget.pure(1)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_noise_that_64_bits_do_not_hold_is_refused(law):
    largest = add_noise(np.full(2000, 2**53), law, Fraction(2**53))
    assert np.abs(largest.astype(float)).max() < 2**60
    for scale in (2**53 + 2, 2**62, 10**300):
        with pytest.raises(PradeError, match=r"expected at most 2\*\*53"):
            add_noise([0], law, Fraction(float(scale)))


def test_too_many_keys_are_refused():
    schema = Schema.from_mbi({f"c{place}": 2**10 for place in range(3)})
    parts = [Marginal.of(schema, ["c0", "c1", "c2"])]
    groups = {"a": list(range(2**17)), "b": list(range(2**17))}
    table = {"c0": [0], "c1": [0], "c2": [0], "a": [0], "b": [0]}
    with (
        open_source(table) as source,
        pytest.raises(WorkloadError, match="more than the 2,147,483,648 that fit in memory"),
    ):
        count(source, schema, parts, groups)


def test_a_level_is_counted_from_the_finer_list_and_unlisted_rows_count_nowhere():
    schema, _ = people(8)
    part = Marginal.of(schema, ["AGE"])
    groups = {"STATE": [36, 36, 42], "PUMA": ["a", "b", "c"], "NATION": ["US"] * 3}
    rows = {"AGE": [1, 1, 1, 1, 1], "STATE": [36, 36, 42, 36, 42], "PUMA": ["a", "b", "c", "c", "z"]}
    with open_source(rows) as source:
        by_state, by_nation, by_all = (
            count(source, schema, [part], groups, by=by)[0].sum(axis=1).tolist()
            for by in (["STATE"], [], ["PUMA", "STATE"])
        )
        assert count(source, schema, [part], groups, by=["NATION"])[0].sum() == 3  # a column that only the list has
    assert (by_state, by_nation, by_all) == ([2, 1], [3], [1, 1, 1])
    with open_source({"AGE": [1, 1, 1], "PUMA": ["a", "c", "z"]}) as source:  # the state follows from the place
        assert count(source, schema, [part], groups, by=["STATE"])[0].sum(axis=1).tolist() == [1, 1]
    with open_source({"AGE": [1], "STATE": [36]}) as source:
        assert count(source, schema, [part], groups, by=["STATE"])[0].sum(axis=1).tolist() == [1, 0]
        with pytest.raises(DataError, match="'PUMA' or 'NATION', and 'STATE' alone cannot identify a row's group"):
            count(source, schema, [part], groups, by=["STATE", "PUMA"])


def test_levels_are_counted_by_the_numbers_of_their_groups():
    schema, table = people(400)
    parts = [Marginal.of(schema, ["AGE"])]
    generator = np.random.default_rng(4)
    puma = generator.integers(0, 30, 400)
    groups = {"STATE": [place % 3 for place in range(25)], "PUMA": list(range(25))}
    rows = {"AGE": table["AGE"], "PUMA": puma}
    with open_source(rows) as source:
        (found,) = count(source, schema, parts, groups, by=["STATE"])
    assert found.sum(axis=1).tolist() == [int(((puma % 3 == state) & (puma < 25)).sum()) for state in range(3)]
