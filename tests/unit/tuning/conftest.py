"""The table that tuning is tried on: six columns of invented people in two states of five places."""

from dataclasses import replace

import pytest

from prade.data.public.public import Public
from prade.examples import census_like
from prade.tuning.rehearse import Rehearsal

LEVELS = ["STATE", "PLACE"]
COLUMNS = ["STATE", "PLACE", "AGE", "SEX", "RACE", "EMPLOY"]


@pytest.fixture(scope="module")
def data():
    found = census_like(persons=2_000, places_per_state=5, seed=2)
    return replace(
        found,
        schema=found.schema.select(COLUMNS),
        public=found.public.select(COLUMNS),
        groups=found.groups.select(LEVELS).group_by(LEVELS).aggregate([]),
    )


@pytest.fixture(scope="module")
def rehearsal(data):
    return Rehearsal.of(Public.of(data.schema, data.public, LEVELS), data.groups, LEVELS, threads=1)


@pytest.fixture(scope="module")
def few(data):
    """The same with three columns of few values, for whole searches that are not about what is found: quick ones."""
    columns = [*LEVELS, "SEX", "RACE", "EMPLOY"]
    return replace(data, schema=data.schema.select(columns), public=data.public.select(columns))
