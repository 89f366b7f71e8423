"""The invented tables: reproducible, fitting their schema, drifting, and nothing absurd in them."""

from functools import cache

import pytest

from prade.core.errors import PradeError
from prade.data.public.joint import outside
from prade.examples import census_like

RELATIONS = ("other states", "earlier years")
both_relations = pytest.mark.parametrize("relation", RELATIONS)
both_sides = pytest.mark.parametrize("side", ["public", "private"])


@cache
def census(relation="other states", persons=12_000, seed=5):
    return census_like(persons=persons, relation=relation, seed=seed)


@cache
def frame(side, relation="other states"):
    return getattr(census(relation), side).to_pandas()


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


@both_sides
def test_structural_zeros(side):
    rows = frame(side)
    impossible = {
        "a child was married": (rows.AGE < 18) & (rows.MARITAL != "never married"),
        "a child has a degree": (rows.AGE < 18) & (rows.EDUC > 3),
        "a job without employment": (rows.EMPLOY != 1) & (rows.OCCUP.notna() | rows.HOURS.notna()),
        "a commute without a job": (rows.EMPLOY != 1) & rows.COMMUTE.notna(),
        "rent without renting": (rows.TENURE != "rented") & rows.RENT.notna(),
    }
    assert {name: int(found.sum()) for name, found in impossible.items() if found.any()} == {}


@both_relations
def test_drift_has_the_declared_directions(relation):
    public, private = frame("public", relation), frame("private", relation)
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
