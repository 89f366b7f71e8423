"""Carrying a release on: the rows stand for the estimates, the file says what it was made from, nothing is random."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import prade
from invented_years import census_years
from prade import Budget, Column, DataError, Ledger, Release, Schema, Task, Unit
from prade.estimating.levels.estimates import kept_estimates
from prade.sampling.carried import WEIGHT, carried_rows, chosen_rows, header_of, learned_change, raked
from worlds.plans import ONE_ROW

YEARS = census_years(persons=600, states=1, places_per_state=3, years=(2021, 2022))
COLUMNS = ("STATE", "PLACE", "AGE", "SEX", "EDUC", "TENURE")
SCHEMA = YEARS.schema.select(COLUMNS)


def task(dataset="people", unit=ONE_ROW, schema=SCHEMA, levels=("STATE", "PLACE"), groups=YEARS.groups):
    return Task(dataset, schema, Budget.pure(4), unit, levels=list(levels), groups=groups)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release of 2022 that started from 2021."""
    here = tmp_path_factory.mktemp("chain")
    pq.write_table(YEARS.tables[2021].select(COLUMNS), here / "2021.parquet")
    plan = prade.plan(task(), here / "2021.parquet", tune=False)
    ledger = Ledger(here / "people.ledger")
    release = prade.measure(plan, YEARS.tables[2022].select(COLUMNS), here / "r2022", ledger, cap=8)
    prade.estimate(release)
    return here


def test_the_carried_rows_have_the_tables_and_sizes_of_the_estimates(folder, monkeypatch):
    release = Release.load(folder / "r2022")
    estimates, table = kept_estimates(release), prade.pipeline.public_of(release.plan)
    monkeypatch.setattr("prade.sampling.carried.MOST_ROWS", 450)  # far fewer than the groups' rows
    monkeypatch.setattr("prade.sampling.carried.FEWEST_ROWS", 60)
    rows = carried_rows(estimates, table)
    assert rows.num_rows <= 450
    public = prade.pipeline.PublicTable(rows, WEIGHT).rows(SCHEMA, task().groups)
    for group, values in enumerate(estimates.plan.groupings[-1].values):
        mine = [tuple(map(str, each)) for each in public.groups.values].index(tuple(map(str, values)))
        weights = np.where(public.group == mine, public.prior.weights, 0.0)
        of_group = public.prior.with_weights(weights)
        assert weights.sum() == pytest.approx(estimates.totals[group] / estimates.totals.sum())
        for name in SCHEMA.coded:
            wanted = estimates.joint(group).project([name])
            # a rare cell may have no row among 150, which leaves its share to the others
            np.testing.assert_allclose(of_group.project([name]), wanted, atol=0.03)


def test_the_next_plan_names_the_release_by_hash_and_expects_its_change(folder):
    release = Release.load(folder / "r2022")
    plan = prade.plan(task(), release, tune=False)
    path = folder / "r2022" / "carried.parquet"
    assert [Path(file) for file in plan.public.files] == [path]
    assert plan.public.weight == WEIGHT
    assert header_of(path).release == release.fingerprint
    assert plan.settings.change == header_of(path).change == learned_change(kept_estimates(release))
    before = path.read_bytes()
    assert prade.plan(task(), release, tune=False).public.sha256 == plan.public.sha256
    path.unlink()
    (folder / "r2022" / "carried.json").unlink()
    prade.plan(task(), release, tune=False)
    assert path.read_bytes() == before  # nothing is random, and nothing tells when it was made


THREE_SEXES = Column("SEX", "categorical", values=(1, 2, 3))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": SCHEMA.select(COLUMNS[:-1])}, r"another schema, which differs in TENURE; .* use its schema"),
        (
            {"schema": Schema([THREE_SEXES if column.name == "SEX" else column for column in SCHEMA])},
            r"another schema, which differs in SEX",
        ),
        (
            {"levels": ("STATE", "PLACE", "BLOCK"), "groups": {"STATE": [1, 1], "PLACE": [1, 1], "BLOCK": [1, 2]}},
            r"has no BLOCK: its groups are STATE\+PLACE; plan the same levels",
        ),
    ],
)
def test_a_release_of_another_kind_is_refused(folder, changed, message):
    with pytest.raises(DataError, match=message):
        prade.plan(task(**changed), Release.load(folder / "r2022"), tune=False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dataset": "private"}, r"r2022 is about the data set 'people', and this plan about the data set 'private'"),
        ({"unit": Unit(2)}, r"the unit Unit\(max_rows=1, .*, and this plan about the unit Unit\(max_rows=2, "),
    ],
)
def test_other_people_have_to_be_said(folder, changed, message):
    """A forgotten name would give the same people a second budget."""
    release, other = Release.load(folder / "r2022"), task(**changed)
    with pytest.raises(DataError, match=rf"{message}.*pass other_people=True if these are other people"):
        prade.plan(other, release, tune=False)
    assert prade.plan(other, release, tune=False, other_people=True).task == other


def test_a_damaged_file_is_refused(folder):
    release = Release.load(folder / "r2022")
    path = Path(prade.plan(task(), release, tune=False).public.files[0])
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(DataError, match=r"carried\.parquet has changed since it was made"):
        prade.plan(task(), release, tune=False)
    path.write_bytes(good)


def test_few_rows_stand_for_all_without_bias():
    """Rows above the threshold keep their weight; the tables of the others are right to within one row's weight."""
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.full(2000, 0.2))
    cells = np.sort(generator.integers(4, size=2000))
    rows, kept = chosen_rows(weights, 200, np.arange(2000))
    assert len(rows) == 200
    assert kept.sum() == pytest.approx(1)
    found, true = np.bincount(cells[rows], kept, 4), np.bincount(cells, weights, 4)
    np.testing.assert_allclose(found, true, atol=2 * kept.min())
    again = raked(rows, kept, weights, [(cells, 4)])
    np.testing.assert_allclose(np.bincount(cells[rows], again, 4), true, atol=1e-12)
    every, same = chosen_rows(weights, 3000, np.arange(2000))
    assert np.array_equal(every, np.flatnonzero(weights))
    assert np.array_equal(same, weights[every])
