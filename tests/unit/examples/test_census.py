"""The invented tables: reproducible, fitting their schema, correlated, drifting, and nothing absurd in them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from prade.core.errors import PradeError
from prade.data.public.joint import encode, outside
from prade.examples import CensusYears, census_like, census_years
from prade.examples.census import ISLANDER

RELATIONS = ("other states", "earlier years")
both_relations = pytest.mark.parametrize("relation", RELATIONS)
both_sides = pytest.mark.parametrize("side", ["public", "private"])


@cache
def census(relation: str = "other states", persons: int = 12_000, seed: int = 5):
    return census_like(persons=persons, relation=relation, seed=seed)


@cache
def frame(side: str, relation: str = "other states"):
    return getattr(census(relation), side).to_pandas()


@cache
def coded(side: str, relation: str = "other states"):
    return encode(census(relation).schema, getattr(census(relation), side))


def total_variation(p: np.ndarray, q: np.ndarray):
    return float(np.abs(p - q).sum() / 2)


def mutual_information(joint: np.ndarray):
    """In nats."""
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


# ---------------------------------------------------------------- the tables as such


def test_same_seed_same_tables_other_seed_other_tables():
    first, again, other = (census_like(persons=300, seed=seed) for seed in (1, 1, 2))
    assert first.public.equals(again.public)
    assert first.private.equals(again.private)
    assert first.groups.equals(again.groups)
    assert first.schema == again.schema == other.schema
    assert not first.private.equals(other.private)
    assert not first.public.equals(other.public)
    assert (first.schema.groups, len(first.schema.coded)) == (("STATE", "PLACE", "YEAR"), 18)
    types = {str(field.type) for field in first.private.schema}  # every type that a codec must carry
    assert {"int32", "int64", "double", "string", "bool", "date32[day]"} <= types
    assert first.private.schema.equals(first.public.schema)
    assert first.private.column_names == ["PERSON", *first.schema.names]


@both_relations
@both_sides
def test_every_value_fits_the_schema(side, relation):
    data = census(relation)
    table = getattr(data, side)
    assert outside(data.schema.select(data.schema.coded), table) == {}
    for column in data.schema:
        if column.numeric and column.name != "ARRIVED":
            assert column.min <= frame(side, relation)[column.name].min()
            assert frame(side, relation)[column.name].max() <= column.max


@both_relations
def test_relation_says_where_and_when_the_public_rows_are(relation):
    public, private = frame("public", relation), frame("private", relation)
    assert set(private.YEAR) == {2021, 2022, 2023, 2024}
    assert set(public.YEAR) == (set(private.YEAR) if relation == "other states" else {2017, 2018, 2019, 2020})
    assert (set(public.STATE) == set(private.STATE)) == (relation == "earlier years")
    assert (set(public.PLACE) & set(private.PLACE) == set()) == (relation == "other states")
    assert set(public.PERSON) & set(private.PERSON) == set()


@both_relations
def test_group_list_names_every_group_and_one_without_rows(relation):
    groups = census(relation).groups.to_pandas()
    listed = set(groups.itertuples(index=False, name=None))
    seen = set(frame("private", relation)[["STATE", "PLACE", "YEAR"]].itertuples(index=False, name=None))
    assert len(listed) == len(groups) == 2 * 10 * 4
    assert seen < listed
    assert len(listed - seen) == 1
    assert (groups.groupby("PLACE").STATE.nunique() == 1).all()


@both_sides
def test_people_are_seen_several_times_but_never_more_than_stated(side):
    rows = frame(side)
    counts = rows.groupby("PERSON").size()
    assert len(counts) == 12_000
    assert counts.max() == census().max_rows == 4
    assert 0.5 < (counts > 1).mean() < 0.9
    assert not rows.duplicated(["PERSON", "YEAR"]).any()
    person = rows.groupby("PERSON")
    for lasting in ("PLACE", "SEX", "RACE", "HISPANIC", "CITIZEN"):
        assert (person[lasting].nunique() == 1).all()
    assert ((rows.YEAR - rows.AGE).groupby(rows.PERSON).nunique() == 1).all()


def test_a_person_stays_alike_over_the_years():
    rows = frame("private").sort_values(["PERSON", "YEAR"])
    pairs = rows.merge(rows.assign(YEAR=rows.YEAR - 1), on=["PERSON", "YEAR"], suffixes=("", "_NEXT"))
    adults = pairs[pairs.AGE >= 30]
    assert (adults.EMPLOY == adults.EMPLOY_NEXT).mean() > 0.7
    assert (adults.TENURE == adults.TENURE_NEXT).mean() > 0.75
    assert adults[["WAGE", "WAGE_NEXT"]].corr(method="spearman").iloc[0, 1] > 0.5
    assert not ((pairs.MARITAL != "never married") & (pairs.MARITAL_NEXT == "never married")).any()
    assert (pairs.EDUC_NEXT < pairs.EDUC).sum() == 0


# ---------------------------------------------------------------- structure


@both_sides
def test_structural_zeros(side):
    rows = frame(side)
    year_of_arrival = pd.to_datetime(rows.ARRIVED).dt.year
    impossible = {
        "a child was married": (rows.AGE < 18) & (rows.MARITAL != "never married"),
        "a child has a degree": (rows.AGE < 18) & (rows.EDUC > 3),
        "a job without employment": (rows.EMPLOY != 1) & (rows.OCCUP.notna() | rows.HOURS.notna()),
        "a commute without a job": (rows.EMPLOY != 1) & rows.COMMUTE.notna(),
        "rent without renting": (rows.TENURE != "rented") & rows.RENT.notna(),
        "arrived before birth": year_of_arrival < rows.YEAR - rows.AGE,
        "arrived in the future": year_of_arrival > rows.YEAR,
        "arrived but born here": (rows.CITIZEN == 1) & rows.ARRIVED.notna(),
        "a couple of one": (rows.MARITAL == "married") & (rows.HHSIZE < 2) & rows.TENURE.notna(),
        "a child alone": (rows.AGE < 18) & (rows.HHSIZE < 2) & rows.TENURE.notna(),
    }
    assert {name: int(found.sum()) for name, found in impossible.items() if found.any()} == {}


@both_sides
def test_missing_where_declared_and_a_little_at_random(side):
    rows = frame(side)
    employed = rows.EMPLOY == 1
    exact = {"EMPLOY": rows.AGE < 16, "WAGE": rows.AGE < 16, "HOURS": ~employed}
    for name, expected in exact.items():
        assert (rows[name].isna() == expected).all(), name
    applies = {
        "ARRIVED": (rows.CITIZEN > 1, 0.04),
        "EDUC": (rows.AGE >= 3, 0.01),
        "OCCUP": (employed, 0.01),
        "INCOME": (rows.AGE >= 16, 0.03),
        "RENT": (rows.TENURE == "rented", 0.03),
    }
    for name, (possible, share) in applies.items():
        assert rows.loc[~possible, name].isna().all(), name
        unanswered = rows.loc[possible, name].isna()
        # Four standard errors of a binomial share.
        assert abs(unanswered.mean() - share) < 4 * np.sqrt(share / len(unanswered)), name
    at_home = rows.loc[employed, "COMMUTE"].isna().mean()
    assert 0.05 < at_home < 0.3
    assert 0.005 < rows.TENURE.isna().mean() < 0.06
    always = [column.name for column in census().schema if not column.missing]
    assert not rows[always].isna().any().any()


PAIRS = {  # mutual information in nats that a census analyst would expect at the very least
    0.02: "SEX OCCUP,RACE HISPANIC,RACE CITIZEN",
    0.04: "AGE DISABLED,AGE TENURE,MARITAL HHSIZE",
    0.1: "EDUC OCCUP,EDUC INCOME,CITIZEN ARRIVED",
    0.3: "AGE MARITAL,AGE EMPLOY,AGE EDUC,OCCUP WAGE,HOURS WAGE,TENURE RENT,WAGE INCOME",
}


@both_sides
def test_columns_depend_on_each_other(side):
    for least, pairs in PAIRS.items():
        for pair in pairs.split(","):
            assert mutual_information(coded(side).project(pair.split())) > least, pair


# ---------------------------------------------------------------- places and drift


@both_relations
def test_drift_has_the_declared_directions(relation):
    public, private = frame("public", relation), frame("private", relation)
    coded_public, coded_private = coded("public", relation), coded("private", relation)
    apart = [total_variation(coded_public.project([n]), coded_private.project([n])) for n in coded_public.columns]
    assert max(apart) < 0.3  # near
    assert sum(distance > 0.01 for distance in apart) >= 11  # but wrong
    care = [(rows.OCCUP == 3).sum() / rows.OCCUP.notna().sum() for rows in (public, private)]
    at_home = [rows.COMMUTE[rows.EMPLOY == 1].isna().mean() for rows in (public, private)]
    assert care[1] > 1.2 * care[0]
    assert at_home[1] > 1.2 * at_home[0]
    islanders = [(rows.RACE == 5).mean() for rows in (public, private)]
    assert islanders[0] < 0.003
    assert 0.004 < islanders[1] < 0.08
    assert islanders[1] > 5 * islanders[0]
    if relation == "earlier years":  # the same places, so nothing but the drift moves these
        assert private.AGE.mean() > public.AGE.mean() + 1
        assert private.WAGE[private.WAGE > 0].median() > 1.2 * public.WAGE[public.WAGE > 0].median()


def test_places_differ_by_more_than_sampling_explains():
    """Mean distance of a place from all, against the largest of 20 random deals of the people to places."""
    rows, everyone = frame("private"), coded("private")
    places, people = pd.factorize(rows.PLACE)[0], pd.factorize(rows.PERSON)[0]
    home = places[np.unique(people, return_index=True)[1]]
    rng = np.random.default_rng(0)
    deals = [rng.permutation(home)[people] for _ in range(20)]

    def spread(name: str, groups: np.ndarray):
        table = np.zeros((groups.max() + 1, everyone.schema.size(name)))
        np.add.at(table, (groups, everyone.codes[name]), 1)
        return float(np.mean([total_variation(row / row.sum(), table.sum(0) / table.sum()) for row in table]))

    ratio = {name: spread(name, places) / max(spread(name, deal) for deal in deals) for name in everyone.columns}
    assert sum(each > 1 for each in ratio.values()) >= 16, ratio
    assert sum(each > 1.4 for each in ratio.values()) >= 11, ratio


# ---------------------------------------------------------------- year after year


YEARS = (2019, 2021, 2023)


def test_every_year_has_the_same_places_and_other_people():
    data = census_years(persons=2_000, years=YEARS, seed=1)
    people = [set(table["PERSON"].to_pylist()) for table in data.tables.values()]
    assert [len(each) for each in people] == [2_000] * 3
    assert not people[0] & people[1]
    assert not people[1] & people[2]
    places = set(data.groups["PLACE"].to_pylist())
    assert all(set(table["PLACE"].to_pylist()) <= places for table in data.tables.values())


def test_a_rare_race_grows_only_if_it_is_asked_for():
    def share(data: CensusYears) -> list[float]:
        return [float(np.mean(table["RACE"].to_numpy() == ISLANDER)) for table in data.tables.values()]

    without, grown = (
        share(census_years(persons=20_000, years=YEARS, rare_race=rare, seed=1)) for rare in (False, True)
    )
    assert max(without) < 0.002
    assert grown[0] < 0.002
    assert grown[2] > 5 * max(grown[0], without[2])


def test_without_drift_ages_stay_what_they_were():
    """The means of two samples of 20,000 ages, whose standard deviation is 24, differ by 0.24 years as a rule."""
    change = {}
    for drift in (0.0, 2.0):
        data = census_years(persons=20_000, years=YEARS, drift=drift, seed=2)
        first, *_, last = (table["AGE"].to_numpy().mean() for table in data.tables.values())
        change[drift] = last - first
    assert abs(change[0.0]) < 0.8
    assert change[2.0] > 1.5


# ---------------------------------------------------------------- arguments


def test_sizes_follow_the_arguments_and_wrong_ones_are_named():
    data = census_like(persons=400, states=3, places_per_state=4, years=(2012, 2010), seed=3)
    assert (data.groups.num_rows, data.max_rows) == (3 * 4 * 2, 2)
    assert len(set(data.private["PERSON"].to_pylist())) == 400
    assert set(data.public["YEAR"].to_pylist()) == {2010, 2012}
    for wrong, message in (
        ({"persons": 0}, "at least 1"),
        ({"places_per_state": -1}, "at least 1"),
        ({"years": (2020,)}, "at least two different years"),
        ({"years": (2020, 2020)}, "each once"),
        ({"relation": "neighbours"}, "earlier years"),
    ):
        with pytest.raises(PradeError, match=message):
            census_like(**wrong)  # type: ignore[arg-type]
    with pytest.raises(PradeError, match="at least two different years"):
        census_years(years=(2020, 2020, 2021))
