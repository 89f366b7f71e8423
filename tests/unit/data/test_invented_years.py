"""Invented years: the same places every year, other people, and a drift that can be turned off and on."""

import numpy as np
import pytest

from prade import PradeError
from prade.data.invented import ISLANDER, Side, places_of
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


def test_steady_places_change_alike_every_year():
    """The changes of factors in the first two years and in the last two are alike, or have nothing in common."""
    agree = {}
    for steady in (0.0, 1.0):
        how = {"place_drift": 0.175 * (1 - steady), "place_trend": 0.0875 * steady}
        made = [places_of(Side((1, 2), (2020,), 1, steps=steps, **how), 50, 3) for steps in (0, 2, 4)]
        first, middle, last = (np.concatenate([each[name] for name in ("urban", "diverse", "older")]) for each in made)
        agree[steady] = np.corrcoef(middle - first, last - middle)[0, 1]
    assert agree[1.0] > 0.999
    assert abs(agree[0.0]) < 0.3  # 300 pairs, of which some are correlated
    assert census_years(persons=50, steady=0.5).tables[2024] != census_years(persons=50).tables[2024]


@pytest.mark.parametrize("steady", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(steady):
    with pytest.raises(PradeError, match="give a share from 0"):
        census_years(steady=steady)


def test_a_year_given_twice_is_refused():
    with pytest.raises(PradeError, match="at least two different years"):
        census_years(years=(2020, 2020, 2021))
