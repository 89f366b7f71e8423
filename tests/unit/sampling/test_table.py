"""Synthetic tables: as many rows as estimated, values like the public table's, the same for the same seed."""

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from prade import Ask, Budget, Column, DataError, EstimationError, Ledger, Level, Plan, Release, Schema, Unit, Workload
from prade.core.execution import Execution
from prade.data.public.decode import Decoder
from prade.data.public.public import Public
from prade.data.read.files import copied_share
from prade.estimating.levels.estimates import Estimates
from prade.examples import census_like
from prade.measuring.run import measure
from prade.pipeline import sample
from prade.planning.settings import Settings
from prade.release.derived_files import ESTIMATES
from prade.sampling.table import sample_groups, typed_as_public
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


# ---------------------------------------------------------------- what is in it


def test_row_counts_are_the_rounded_totals(table):
    totals = Estimates.of(RELEASE, Public.of(SCHEMA, TABLE, FIVE_PLACES)).totals
    counted = table.group_by(["STATE", "PLACE"]).aggregate([([], "count_all")]).to_pylist()
    found = {(row["STATE"], row["PLACE"]): row["count_all"] for row in counted}
    listed = list(zip(FIVE_PLACES["STATE"], FIVE_PLACES["PLACE"], strict=True))
    assert found == {group: round(total) for group, total in zip(listed, totals, strict=True)}
    assert len(set(found.values())) > 2


def test_columns_and_types_are_the_public_tables(table):
    """The list of groups holds plain numbers and texts; the public table says how wide they are."""
    assert table.column_names[:2] == ["STATE", "PLACE"]
    assert set(table.column_names[2:]) == {"AGE", "SEX", "WORK"}
    for name in table.column_names:
        assert table.schema.field(name).type == TABLE.schema.field(name).type, name


def test_group_columns_that_the_public_table_does_not_hold():
    """A number that its type has no room for, or no such column at all: the list's own type."""
    groups = {"STATE": [100_000, 2], "PLACE": [7, 8]}
    plan = survey([Level("STATE", ONES), Level("PLACE", ONES)], groups)
    found = sample(released(plan), TABLE, execution=Execution(1))
    assert found.schema.field("STATE").type == pa.int64()
    assert set(found["STATE"].to_pylist()) == {100_000, 2}
    assert set(found["PLACE"].to_pylist()) == {"7", "8"}
    without = sample(released(plan), TABLE.drop_columns(["STATE", "PLACE"]), execution=Execution(1))
    assert without.schema.field("STATE").type == pa.int64()


@pytest.mark.parametrize(
    ("listed", "public", "expected"),
    [
        ([6, 17], ["06", "17", "39"], ["06", "17"]),  # as the public table spells them
        ([6, 36], ["01", "17"], ["06", "36"]),  # it has neither, but it has leading zeros
        ([6, 36], ["17", "39"], ["6", "36"]),
        ([6, 36], [" 6", "x"], [" 6", "36"]),
        (["6", "36"], [6, 17], [6, 36]),
        (["06", "36"], [6, 17], [6, 36]),  # which find their codes, all of one width, when measuring
        (["6", "036"], [6, 17], ["6", "036"]),  # as numbers they would be other groups when measuring
        ([6, 36], [6.5, 17.0], [6.0, 36.0]),
        ([1.5, 2.0], [1, 2], [1.5, 2.0]),
    ],
)
def test_group_columns_are_written_as_the_public_table_writes_them(listed, public, expected):
    column, cells = Column("STATE", "group", values=listed), pa.chunked_array([public])
    found = typed_as_public(column, cells)
    assert found.to_pylist() == expected
    assert list(map(type, found.to_pylist())) == list(map(type, expected))


def test_a_group_column_that_follows_from_the_levels_is_there_too():
    groups = {"STATE": [1, 1, 2], "PLACE": ["p", "q", "s"]}
    found = sample(released(survey([Level("PLACE", ONES)], groups)), TABLE, execution=Execution(1))
    pairs = set(zip(found["STATE"].to_pylist(), found["PLACE"].to_pylist(), strict=True))
    assert pairs == {(1, "p"), (1, "q"), (2, "s")}
    states = sample(released(survey([Level("STATE", ONES)], groups)), TABLE, execution=Execution(1))
    assert "PLACE" not in states.column_names  # a row of state 1 is in neither place


def test_no_groups_at_all():
    found = sample(released(survey([Level((), ONES)], None)), TABLE, execution=Execution(1))
    assert set(found.column_names) == {"AGE", "SEX", "WORK"}
    assert 40 <= found.num_rows <= 130


def test_a_person_id_counts_the_rows():
    plan = survey(unit=Unit(3, person_id="PERSON"))
    found = sample(released(plan), TABLE, execution=Execution(1))
    assert found.column_names[0] == "PERSON"
    assert found["PERSON"].to_pylist() == list(range(1, found.num_rows + 1))


def test_what_no_public_row_has_does_not_occur(table):
    """Codes of synthetic rows are codes of public rows, all columns together."""
    public = Public.of(SCHEMA, TABLE).prior
    known = set(zip(*(public.codes[name].tolist() for name in public.columns), strict=True))
    made = Public.of(SCHEMA, table).prior
    rows = list(zip(*(made.codes[name].tolist() for name in public.columns), strict=True))
    assert set(rows) <= known
    assert len(known) < SCHEMA.domain_size(SCHEMA.coded)
    ages = np.array(table["AGE"])
    assert (ages < 18).any()
    assert all(work is None for work, age in zip(table["WORK"].to_pylist(), ages, strict=True) if age < 18)


def test_the_rows_are_like_the_estimates():
    release = released(survey(), rows=(2000, 4000))
    estimates = Estimates.of(release, Public.of(SCHEMA, TABLE, FIVE_PLACES))
    coded, group = sample_groups(estimates, seed=1)
    for number in range(5):
        mine, joint = coded.take(group == number), estimates.joint(number)
        for pair in (["AGE", "SEX"], ["AGE", "WORK"], ["SEX", "WORK"]):
            assert np.abs(mine.project(pair) - joint.project(pair)).sum() < 0.02


@pytest.mark.parametrize("passes", [0, 4])
def test_the_order_of_rows_says_nothing(passes):
    """Within a group, positions are uncorrelated with each column and with the row's weight.

    20 correlations of about 3,000 positions each: standard error 0.018; one beyond 4.5 of them comes once in 7,000
    seeds of this test.
    """
    release = released(survey(groups={"STATE": [1, 1], "PLACE": ["p", "q"]}), rows=(2900, 3100))
    estimates = Estimates.of(release, Public.of(SCHEMA, TABLE, FIVE_PLACES))
    for seed in (1, 2):
        coded, group = sample_groups(estimates, seed, passes=passes)
        assert (np.diff(group) >= 0).all()  # groups one after the other
        public = estimates.public.prior
        place = {row: k for k, row in enumerate(zip(*(public.codes[n].tolist() for n in public.columns), strict=True))}
        rows = np.array([place[row] for row in zip(*(coded.codes[n].tolist() for n in public.columns), strict=True)])
        for number in range(2):
            mine = np.flatnonzero(group == number)
            told = [coded.codes[name][mine].astype(float) for name in public.columns]
            told.append(estimates.weights(1, number)[rows[mine]])
            for values in told:
                far = np.corrcoef(np.arange(len(mine)), values)[0, 1]
                assert abs(far) < 4.5 / np.sqrt(len(mine)), far
            neighbours = np.corrcoef(told[0][:-1], told[0][1:])[0, 1]
            assert abs(neighbours) < 4.5 / np.sqrt(len(mine)), neighbours


@pytest.mark.parametrize("passes", [0, 4])
@pytest.mark.parametrize("upside_down", [False, True])
def test_the_order_of_rows_does_not_tell_that_of_the_public_rows(passes, upside_down):
    """Public rows that can be told apart: a synthetic row's position says nothing of its public row's, nor of the next.

    12 correlations of about 3,000 positions each: one beyond 4.5 standard errors comes once in 12,000 seeds.
    """
    rows = 600
    schema = Schema([Column("X", "numeric", edges=list(range(1, rows))), Column("EVEN", "categorical", values=[0, 1])])
    x = np.arange(rows)[:: -1 if upside_down else 1]
    plan = Plan("x", schema, Budget.pure(5), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
    release = released(plan, rows=(3000, 3001))
    for seed in (1, 2, 3):
        found = np.array(
            sample(release, {"X": x, "EVEN": x % 2}, seed=seed, passes=passes, execution=Execution(1))["X"]
        )
        assert len(found) > 2000
        assert len(set(found.tolist())) > 500
        for one, other in ((found, np.arange(len(found))), (found[1:], found[:-1])):
            assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(len(found))


def test_values_within_a_bin_are_drawn_by_weight():
    """Of three ages in one bin, one has no weight and one weighs three times the other.

    The share of about 3,000 rows is within 4.5 standard errors of 3/4 but once in 150,000 seeds.
    """
    table = pa.table(
        {"AGE": [20, 30, 39] * 50, "SEX": [1, 2, 1] * 50, "WORK": ["none"] * 150, "W": [3.0, 0.0, 1.0] * 50}
    )
    release = released(survey([Level((), ONES)], None), rows=(3000, 3001))
    estimates = Estimates.of(release, Public.of(SCHEMA, table, weight="W"), Settings(unseen=False))
    ages = np.array(sample(estimates, table, weight="W", passes=1, execution=Execution(1))["AGE"])
    assert set(ages.tolist()) == {20, 39}
    assert abs((ages == 20).mean() - 0.75) < 4.5 * np.sqrt(0.75 * 0.25 / len(ages))


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, float("nan")], [None, 1.0]], ids=str)
def test_weights_of_values_are_checked(weights):
    schema = Schema([Column("X", "numeric", edges=[1])])
    with pytest.raises(DataError, match="weights in 'W' must be finite and not negative"):
        Decoder.fit(schema, {"X": [0.0, 2.0], "W": weights}, weight="W")


def test_noisy_totals_below_one_give_no_row():
    release = released(survey(), rows=(40, 120))
    emptied = tuple(tuple(np.where(np.arange(len(c))[:, None] == 1, -50, c) for c in part) for part in release.noisy)
    found = sample(Release(Path("nowhere"), release.plan, emptied), TABLE, execution=Execution(1))
    places = list(zip(found["STATE"].to_pylist(), found["PLACE"].to_pylist(), strict=True))
    assert places.count((1, "q")) == 0
    assert len(set(places)) == 4


def test_weights_of_public_rows_count():
    """A weight column that leaves out everybody of one sex."""
    weights = pa.array(np.where(np.array(TABLE["SEX"]) == 1, 1.0, 0.0))
    weighted = TABLE.append_column("W", weights)
    estimates = Estimates.of(RELEASE, Public.of(SCHEMA, weighted, FIVE_PLACES, weight="W"), Settings(unseen=False))
    found = sample(estimates, weighted, weight="W", execution=Execution(1))
    assert set(found["SEX"].to_pylist()) == {1}
    assert "W" not in found.column_names


# ---------------------------------------------------------------- the same again


def test_the_same_seed_gives_the_same_table_whatever_the_threads(table):
    assert sample(RELEASE, TABLE, seed=5, execution=Execution(3)).equals(table)


def test_another_seed_gives_another_table(table):
    other = sample(RELEASE, TABLE, seed=6, execution=Execution(1))
    assert other.num_rows == table.num_rows
    assert not other.equals(table)


def test_public_tables_from_files_and_frames_give_the_same_values(tmp_path, table):
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "public.parquet")
    assert sample(RELEASE, tmp_path / "public.parquet", seed=5, execution=Execution(1)).equals(table)
    frame = sample(RELEASE, TABLE.to_pandas(), seed=5, execution=Execution(1), like="pyarrow")
    assert frame.select(["STATE", "PLACE", "SEX", "AGE"]).to_pydict() == {
        name: table[name].to_pylist() for name in ("STATE", "PLACE", "SEX", "AGE")
    }


def test_estimates_are_kept_and_used_again(tmp_path, monkeypatch, table):
    release = released(survey(), tmp_path)
    assert sample(release, TABLE, seed=5, execution=Execution(1)).equals(table)
    kept = (tmp_path / ESTIMATES).read_bytes()

    def refuse(*_, **__):
        raise AssertionError("estimated again")

    monkeypatch.setattr(Estimates, "of", refuse)
    assert sample(release, TABLE, seed=5, execution=Execution(1)).equals(table)
    assert (tmp_path / ESTIMATES).read_bytes() == kept


def test_another_public_table_is_refused_as_long_as_estimates_are_kept(tmp_path):
    release = released(survey(), tmp_path)
    sample(release, TABLE, execution=Execution(1))
    with pytest.raises(DataError, match="was made from another release or public table; remove it"):
        sample(release, public_table(1), execution=Execution(1))


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(EstimationError, match="give a whole number, 0 or more"):
        sample(RELEASE, TABLE, seed=seed, execution=Execution(1))


def test_threads_must_be_some():
    with pytest.raises(EstimationError, match="threads is 0: give a whole number, 1 or more"):
        sample(RELEASE, TABLE, execution=Execution(0))


def test_progress_is_told():
    told = []
    sample(RELEASE, TABLE, execution=Execution(2, progress=lambda *news: told.append(news)))
    assert told == [("estimating", n, 7) for n in range(1, 8)] + [("sampling", n, 5) for n in range(1, 6)]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_comes_back_as_a_frame(kind, tmp_path):
    data = census_like(persons=300, places_per_state=2, seed=4)
    schema = data.schema
    groups = data.groups.select(["STATE", "PLACE"]).group_by(["STATE", "PLACE"]).aggregate([])
    level = Level(["STATE", "PLACE"], Workload.all_marginals(schema, 1))
    plan = Plan("x", schema, Budget.pure(50), Unit(4), [level], groups)
    ledger = Ledger(tmp_path / "ledger")
    ledger.open_dataset("x", plan.unit, plan.budget)
    release = measure(plan, data.private, tmp_path / "release", ledger, weak_protection=True)
    frame = data.public.to_pandas() if kind == "pandas" else pl.from_arrow(data.public)
    arrow = sample(release, data.public, seed=2, passes=1)
    found = sample(release, frame, seed=2, passes=1)
    assert type(found).__module__.startswith(kind)
    assert list(found.columns) == arrow.column_names
    assert found["AGE"].dtype == frame["AGE"].dtype
    assert found["AGE"].to_list() == arrow["AGE"].to_pylist()
    again = sample(release, frame, seed=2, passes=1, like="pyarrow")
    assert again.to_pydict() == arrow.to_pydict()


def test_types_and_missing_cells_of_a_frame_come_back():
    """Dates, whole numbers with missing cells, categories, texts with leading zeros, true and false."""
    import pandas as pd

    generator = np.random.default_rng(1)
    rows = 400
    absent = generator.random(rows) < 0.3
    born = pd.Series(pd.to_datetime("1950-01-01") + pd.to_timedelta(generator.integers(0, 20_000, rows), "D"))
    frame = pd.DataFrame(
        {
            "BORN": born.astype("datetime64[ns]").mask(absent),
            "PAY": pd.array(generator.integers(0, 100, rows), dtype="Int16"),
            "STATUS": pd.Categorical(generator.choice(["low", "high"], rows), ["low", "high"], ordered=True),
            "CODE": generator.choice(["01", "02"], rows),
            "ABLE": generator.random(rows) < 0.5,
        }
    )
    frame.loc[absent, "PAY"] = pd.NA
    schema = Schema(
        [
            Column("BORN", "numeric", edges=[date(1970, 1, 1), date(1990, 1, 1)], missing=True),
            Column("PAY", "numeric", integer=True, edges=[10, 50], missing=True),
            Column("STATUS", "categorical", values=["low", "high"]),
            Column("CODE", "categorical", values=["01", "02"]),
            Column("ABLE", "categorical", values=[False, True]),
        ]
    )
    plan = Plan("x", schema, Budget.pure(5), Unit(1), [Level((), Workload.all_marginals(schema, 1))])
    found = sample(released(plan, rows=(300, 301)), frame, execution=Execution(1))
    assert found.dtypes.to_dict() == frame.dtypes.to_dict()
    assert 0 < found["PAY"].isna().sum() < len(found)
    assert found["BORN"].isna().equals(found["PAY"].isna())  # as in every public row
    assert set(found["BORN"].dropna()) <= set(frame["BORN"].dropna())
    assert set(found["CODE"]) == {"01", "02"}


# ---------------------------------------------------------------- values that go together


MONEY = Schema(
    [
        *(Column(name, "numeric", edges=[10_000, 30_000, 60_000], integer=True) for name in ("WAGES", "INCOME")),
        Column("SEX", "categorical", values=[1, 2]),
    ]
)
MONEY_PLAN = Plan("x", MONEY, Budget.pure(5), Unit(1), [Level((), Workload.all_marginals(MONEY, 1))])


def earners(rows=2000, seed=0):
    """Nobody's wages are above their income; within the bins of both, two values of three in another order would be."""
    generator = np.random.default_rng(seed)
    wages = generator.integers(0, 90_000, rows)
    income = wages + generator.choice([0, 500], rows)
    return pa.table({"WAGES": wages, "INCOME": income, "SEX": generator.integers(1, 3, rows)})


def test_wages_stay_part_of_income():
    """The finding: drawn alone within bins, wages were above income in one row of three here."""
    public = earners()
    found = sample(released(MONEY_PLAN, rows=(3000, 3001)), public, seed=1, execution=Execution(1))
    assert found.num_rows > 2000
    assert (np.array(found["WAGES"]) <= np.array(found["INCOME"])).all()
    known = set(zip(*(public[name].to_pylist() for name in MONEY.names), strict=True))
    assert set(zip(*(found[name].to_pylist() for name in MONEY.names), strict=True)) <= known
    assert copied_share(found.schema) == 1
