"""The past years of a chain: each release adds its own, the file is checked, and next year's tables are carried on."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import prade
from prade import Budget, DataError, Ledger, Release, Task, Unit
from prade.data.groups import Groups
from prade.data.invented_years import census_years
from prade.estimating.levels.kept_estimates import kept_estimates
from prade.release.release import file_hash
from prade.sampling.carried import WEIGHT, header_of, years_before
from prade.sampling.past_years import (
    OneWayTable,
    PastYear,
    _years,
    group_names,
    next_year,
    odd_cells,
    past_years,
    read_past,
    release_year,
    write_past,
)

WORLD = census_years(persons=1_200, states=2, places_per_state=3, years=(2020, 2021, 2022, 2023))
COLUMNS = ("STATE", "PLACE", "AGE", "SEX", "TENURE")
SCHEMA = WORLD.schema.select(COLUMNS)


def task():
    return Task("people", SCHEMA, Budget.pure(6), Unit(1), levels=["STATE", "PLACE"], groups=WORLD.groups)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Releases of 2021 and 2022, a chain from the public table of 2020, both carried on."""
    here = tmp_path_factory.mktemp("chain")
    pq.write_table(WORLD.tables[2020].select(COLUMNS), here / "2020.parquet")
    ledger, prior = Ledger(here / "people.ledger"), here / "2020.parquet"
    ledger.open_dataset("people", Unit(1), Budget.pure(24))
    for year in (2021, 2022):
        plan = prade.plan(task(), prior, tune=False)
        rows = WORLD.tables[year].select(COLUMNS)
        prior = prade.measure(plan, rows, here / str(year), ledger, again=True, weak_protection=True)
        prade.estimate(prior)
    prade.plan(task(), prior, tune=False)
    return here


def test_every_release_adds_its_year_to_those_before(chain):
    first, second = (Release.load(chain / year) for year in ("2021", "2022"))
    header = header_of(chain / "2022" / "carried.parquet")
    assert years_before(first) is None
    past = read_past(chain / "2022" / "past.parquet", header.past)
    assert len(past) == 3
    public, *releases = past
    true = WORLD.tables[2020].to_pandas()
    women = true[true["PLACE"] == "11-001"]["SEX"].eq(2).mean()
    place = public.groups.index(group_names(first.plan.groupings[-1])[0])
    assert public.tables["SEX"].shares[place, 1] == pytest.approx(women)
    assert public.rows.sum() == pytest.approx(1_200)
    assert not public.tables["SEX"].variance.any()
    for release, year in zip((first, second), releases, strict=True):
        mine = release_year(kept_estimates(release))
        assert mine.groups == year.groups
        for name in SCHEMA.coded:
            np.testing.assert_array_equal(mine.tables[name].shares, year.tables[name].shares)
            np.testing.assert_array_equal(mine.tables[name].variance, year.tables[name].variance)


def test_the_carried_rows_have_the_expected_tables(chain):
    release = Release.load(chain / "2022")
    estimates = kept_estimates(release)
    ahead = next_year(estimates, past_years(estimates, years_before(release)))
    rows = prade.pipeline.PublicTable(chain / "2022" / "carried.parquet", WEIGHT).rows(SCHEMA, task().groups)
    numbers = {tuple(map(str, values)): k for k, values in enumerate(rows.groups.values)}
    for group, values in enumerate(release.plan.groupings[-1].values):
        weights = np.where(rows.group == numbers[tuple(map(str, values))], rows.prior.weights, 0.0)
        of_group = rows.prior.with_weights(weights)
        for name in SCHEMA.coded:
            np.testing.assert_allclose(of_group.project([name]), ahead.tables[name][group], atol=0.005)
    assert header_of(chain / "2022" / "carried.parquet").change == ahead.forecast.change
    codes = estimates.public.prior.codes
    last = {name: estimates.masses((codes[name].astype(np.int64), SCHEMA[name].size)) for name in SCHEMA.coded}
    assert max(np.abs(ahead.tables[name] - last[name]).max() for name in last) > 0.01  # or the above tells nothing


def test_a_missing_or_changed_past_is_refused(chain):
    path = chain / "2021" / "past.parquet"
    good = path.read_bytes()
    release = Release.load(chain / "2022")
    try:
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(DataError, match=r"past\.parquet has changed since it was made; put the file back"):
            years_before(release)
        path.unlink()
        with pytest.raises(DataError, match=r"there is no .*past\.parquet, in which the releases before that one are"):
            years_before(release)
    finally:
        path.write_bytes(good)
    assert len(years_before(release)) == 2


def test_the_file_has_what_was_written(tmp_path):
    generator = np.random.default_rng(0)
    past = [
        PastYear(names, np.arange(1.0, 1 + len(names)), {
            column: OneWayTable(generator.random((len(names), size)), generator.random(len(names)))
            for column, size in (("A", 2), ("B", 3))
        })
        for names in (("x", "y"), ("y", "z", "x"))
    ]  # fmt: skip
    write_past(past, tmp_path / "past.parquet")
    read = read_past(tmp_path / "past.parquet", file_hash(tmp_path / "past.parquet"))
    for mine, theirs in zip(past, read, strict=True):
        assert mine.groups == theirs.groups
        np.testing.assert_array_equal(mine.rows, theirs.rows)
        for name, table in mine.tables.items():
            np.testing.assert_array_equal(table.shares, theirs.tables[name].shares)
            np.testing.assert_array_equal(table.variance, theirs.tables[name].variance)
    years = _years(read, ("x", "z"), ["B"])
    np.testing.assert_array_equal(years.rows, [[1, 0], [3, 2]])  # nothing is known about z in the first year
    np.testing.assert_array_equal(years.shares[1, 0], past[1].tables["B"].shares[2])


def test_a_file_of_something_else_is_refused(tmp_path):
    pq.write_table(WORLD.groups, tmp_path / "past.parquet")
    with pytest.raises(DataError, match="does not contain past years of a chain"):
        read_past(tmp_path / "past.parquet", file_hash(tmp_path / "past.parquet"))


def test_a_column_that_a_year_lacks_keeps_its_table(chain):
    release = Release.load(chain / "2022")
    estimates = kept_estimates(release)
    past = past_years(estimates, years_before(release))
    fewer = {name: table for name, table in past[1].tables.items() if name != "AGE"}
    past[1] = PastYear(past[1].groups, past[1].rows, fewer)
    assert set(next_year(estimates, past).tables) == set(SCHEMA.coded) - {"AGE"}
    assert next_year(estimates, past[-1:]) is None


def test_odd_cells_keep_what_the_last_release_found(chain):
    release = Release.load(chain / "2022")
    estimates = kept_estimates(release)
    assert not odd_cells(estimates, "TENURE").any()
    last = estimates.levels[-1]
    start = sum(part.n_cells for part in last.parts[: [part.columns for part in last.parts].index(("TENURE",))])
    last.excess[:, start + 1] = 0.01
    assert odd_cells(estimates, "TENURE").tolist() == [False, True, *[False] * (SCHEMA["TENURE"].size - 2)]
    ahead = next_year(estimates, past_years(estimates, years_before(release))).tables["TENURE"]
    kept = estimates.masses((estimates.public.prior.codes["TENURE"].astype(np.int64), SCHEMA["TENURE"].size))
    np.testing.assert_allclose(ahead[:, 1], kept[:, 1], rtol=0.2)  # but for shares that add up to 1


def test_groups_have_the_same_names_every_year():
    of = [group_names(Groups.of({"PLACE": ["a", "b"], "YEAR": [year, year]}).level(["PLACE", "YEAR"]))
          for year in (2020, 2021)]  # fmt: skip
    assert of[0] == of[1] == ('["a"]', '["b"]')
    both = Groups.of({"PLACE": ["a", "a"], "YEAR": [2020, 2021]}).level(["PLACE", "YEAR"])
    assert len(set(group_names(both))) == 2


def test_a_chain_of_an_earlier_version_has_no_past(chain, tmp_path):
    """Files of format 1 have no past years: the release that started from one begins anew."""
    table = pq.read_table(chain / "2021" / "carried.parquet")
    kept = dict(table.schema.metadata)
    kept[b"prade"] = kept[b"prade"].replace(b'"format": 2', b'"format": 1')
    pq.write_table(table.replace_schema_metadata(kept), tmp_path / "carried.parquet")
    release = Release.load(chain / "2022")
    moved = release.plan.with_public(prade.data.public_files.PublicFiles.at([tmp_path / "carried.parquet"], WEIGHT))

    class Old:
        plan = moved

    assert years_before(Old()) == []
    assert Path(release.plan.public.files[0]) == chain / "2021" / "carried.parquet"
