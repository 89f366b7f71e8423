"""Synthetic tables: as many rows as estimated, values like the public table's, the same for the same seed."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prade import Ask, Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.public import Public
from prade.estimating.levels.estimates import Estimates
from prade.pipeline import sample
from prade.sampling.table import typed_as_public
from worlds.plans import ONE_ROW, plan_of
from worlds.releases import invented
from worlds.survey import FIVE_PLACES, PERHAPS_WORK, PLACE, SEX, STATE, YEARS

SCHEMA = Schema([STATE, PLACE, YEARS, SEX, PERHAPS_WORK])
ONES = Workload.all_marginals(SCHEMA, 1)
LEVELS = [Level("STATE", ONES), Level("PLACE", Ask(ONES, 3))]


def public_table(seed=0, rows=600):
    """Children do not work: combinations of values that no row has."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 90, rows)
    work = generator.choice(["none", "part", "full"], rows, p=[0.4, 0.2, 0.4])
    return pa.table(
        {
            "WORK": pa.array(np.where(age < 18, "", work), mask=age < 18),
            "STATE": pa.array(generator.choice([3, 4, 5], rows), pa.int16()),
            "PLACE": pa.array(generator.choice(["u", "v"], rows), pa.large_string()),
            "AGE": pa.array(age, pa.int8()),
            "SEX": pa.array(generator.integers(1, 3, rows), pa.int32()),
        }
    )


TABLE = public_table()


def survey(levels=LEVELS, groups=FIVE_PLACES, unit=ONE_ROW):
    return plan_of(SCHEMA, *levels, groups=groups, budget=2, unit=unit)


def released(plan, path="nowhere", rows=(40, 120)):
    return invented(plan, rows=rows, path=Path(path))


RELEASE = released(survey())


@pytest.fixture(scope="module")
def table():
    return sample(RELEASE, TABLE, seed=5, execution=Execution(1))


def test_row_counts_are_the_rounded_totals(table):
    totals = Estimates.of(RELEASE, Public.of(SCHEMA, TABLE, FIVE_PLACES)).totals
    counted = Counter(zip(table["STATE"].to_pylist(), table["PLACE"].to_pylist(), strict=True))
    listed = zip(FIVE_PLACES["STATE"], FIVE_PLACES["PLACE"], strict=True)
    assert counted == {group: round(total) for group, total in zip(listed, totals, strict=True)}
    assert len(set(counted.values())) > 2


def test_columns_and_types_are_the_public_tables(table):
    """The list of groups holds plain numbers and texts; the public table says how wide they are."""
    assert table.column_names[:2] == ["STATE", "PLACE"]
    types = {name: table.schema.field(name).type for name in table.column_names}
    assert types == {name: TABLE.schema.field(name).type for name in TABLE.column_names}


@pytest.mark.parametrize(
    ("listed", "public", "expected"),
    [
        ([6, 17], ["06", "17", "39"], ["06", "17"]),  # as the public table spells them
        ([6, 36], ["01", "17"], ["06", "36"]),  # it has neither, but it has leading zeros
        (["6", "36"], [6, 17], [6, 36]),
        (["06", "36"], [6, 17], [6, 36]),  # which find their codes, all of one width, when measuring
        (["6", "036"], [6, 17], ["6", "036"]),  # as numbers they would be other groups when measuring
    ],
)
def test_group_columns_are_written_as_the_public_table_writes_them(listed, public, expected):
    column, cells = Column("STATE", "group", values=listed), pa.chunked_array([public])
    found = typed_as_public(column, cells)
    assert found.to_pylist() == expected
    assert list(map(type, found.to_pylist())) == list(map(type, expected))


def test_no_groups_at_all_and_a_person_id_that_counts_the_rows():
    found = sample(released(survey([Level((), ONES)], None)), TABLE, execution=Execution(1))
    assert set(found.column_names) == {"AGE", "SEX", "WORK"}
    assert 40 <= found.num_rows <= 130
    found = sample(released(survey(unit=Unit(3, person_id="PERSON"))), TABLE, execution=Execution(1))
    assert found.column_names[0] == "PERSON"
    assert found["PERSON"].to_pylist() == list(range(1, found.num_rows + 1))


def test_what_no_public_row_has_does_not_occur(table):
    """Codes of synthetic rows are codes of public rows, all columns together."""
    known, rows = (
        set(zip(*(prior.codes[name].tolist() for name in prior.columns), strict=True))
        for prior in (Public.of(SCHEMA, each).prior for each in (TABLE, table))
    )
    assert rows <= known
    assert len(known) < SCHEMA.domain_size(SCHEMA.coded)
    young = np.array(table["AGE"]) < 18
    assert young.any()
    assert table["WORK"].filter(young).null_count == young.sum()


@pytest.mark.parametrize("upside_down", [False, True])
def test_the_order_of_rows_does_not_tell_that_of_the_public_rows(upside_down):
    """Public rows that can be told apart: a synthetic row's position says nothing of its public row's, nor of the next.

    Twelve correlations of about 3,000 positions each: one beyond 4.5 standard errors comes once in 12,000 seeds.
    """
    rows = 600
    schema = Schema([Column("X", "numeric", edges=list(range(1, rows))), Column("EVEN", "categorical", values=[0, 1])])
    x = np.arange(rows)[:: -1 if upside_down else 1]
    plan = Plan("x", schema, Budget.pure(5), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
    release = released(plan, rows=(3000, 3001))
    for seed in (1, 2, 3):
        table = sample(release, {"X": x, "EVEN": x % 2}, seed=seed, execution=Execution(1))
        found = np.array(table["X"])
        assert len(found) > 2000
        assert len(set(found.tolist())) > 500
        for one, other in ((found, np.arange(len(found))), (found[1:], found[:-1])):
            assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(len(found))


def test_public_tables_from_files_and_frames_give_the_same_values_and_frames_come_back(tmp_path, table):
    pq.write_table(TABLE, tmp_path / "public.parquet")
    assert sample(RELEASE, tmp_path / "public.parquet", seed=5, execution=Execution(1)).equals(table)
    for kind, frame in (("pandas", TABLE.to_pandas()), ("polars", pl.from_arrow(TABLE))):
        found = sample(RELEASE, frame, seed=5, execution=Execution(1))
        assert type(found).__module__.startswith(kind)
        assert list(found.columns) == table.column_names
        assert found["AGE"].dtype == frame["AGE"].dtype
        arrow = sample(RELEASE, frame, seed=5, execution=Execution(1), like="pyarrow")
        names = ["STATE", "PLACE", "SEX", "AGE"]
        assert arrow.select(names).to_pydict() == table.select(names).to_pydict()


def test_progress_is_told():
    told = []
    sample(RELEASE, TABLE, execution=Execution(2, progress=lambda *news: told.append(news)))
    assert told == [("estimating", n, 5) for n in range(1, 6)] + [("sampling", n, 5) for n in range(1, 6)]
