"""Invented years: the same places every year, other people, and a drift that can be turned off and on."""

import numpy as np
import pytest

from prade import PradeError
from prade.data.invented import ISLANDER
from prade.data.invented_years import census_years

YEARS = (2019, 2021, 2023)


def share(made, column, value):
    return [float(np.mean(table[column].to_numpy() == value)) for table in made.tables.values()]


def test_every_year_has_the_same_places_and_other_people():
    made = census_years(persons=2_000, years=YEARS, seed=1)
    people = [set(table["PERSON"].to_pylist()) for table in made.tables.values()]
    assert [len(each) for each in people] == [2_000] * 3
    assert not people[0] & people[1]
    assert not people[1] & people[2]
    places = set(made.groups["PLACE"].to_pylist())
    assert all(set(table["PLACE"].to_pylist()) <= places for table in made.tables.values())


def test_a_rare_race_grows_only_if_it_is_asked_for():
    without, grown = (
        share(census_years(persons=20_000, years=YEARS, rare_race=rare, seed=1), "RACE", ISLANDER)
        for rare in (False, True)
    )
    assert max(without) < 0.002
    assert grown[0] < 0.002
    assert grown[2] > 5 * max(grown[0], without[2])


def test_without_drift_ages_stay_what_they_were():
    """The means of two samples of 20,000 ages, whose standard deviation is 24, differ by 0.24 years as a rule."""
    risen = {}
    for drift in (0.0, 2.0):
        made = census_years(persons=20_000, years=YEARS, drift=drift, seed=2)
        first, *_, last = (table["AGE"].to_numpy().mean() for table in made.tables.values())
        risen[drift] = last - first
    assert abs(risen[0.0]) < 0.8
    assert risen[2.0] > 1.5


def test_a_year_given_twice_is_refused():
    with pytest.raises(PradeError, match="at least two different years"):
        census_years(years=(2020, 2020, 2021))
