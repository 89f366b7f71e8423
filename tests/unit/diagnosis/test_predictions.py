"""Predictions: a group's own public rows, or those of the group above it, or the whole public table."""

import numpy as np

from prade import Column, Schema
from prade.data.declare.groups import Groups
from prade.data.public.public import Public
from prade.diagnosis.null import predictions

SCHEMA = Schema([Column("STATE", "group"), Column("PLACE", "group"), Column("SEX", "categorical", values=[1, 2])])
PUBLIC = {
    "STATE": [1, 1, 1, 1, 9, 9],
    "PLACE": ["p", "p", "p", "q", "x", "x"],
    "SEX": [1, 1, 2, 2, 1, 2],
    "W": [1.0, 1.0, 2.0, 4.0, 1.0, 1.0],
}
GROUPS = Groups.of({"STATE": [1, 1, 2], "PLACE": ["p", "new", "far"]})


def test_the_nearest_public_rows_predict():
    public = Public.of(SCHEMA, PUBLIC, ["STATE", "PLACE"], weight="W")
    whole, state, place = predictions(public, [GROUPS.level(by) for by in ((), ["STATE"], ["STATE", "PLACE"])])
    np.testing.assert_allclose(whole.shares[whole.source], [[0.3, 0.7]])
    np.testing.assert_allclose(state.shares[state.source], [[2 / 8, 6 / 8], [0.3, 0.7]])  # state 2 has no public rows
    np.testing.assert_allclose(place.shares[place.source], [[0.5, 0.5], [2 / 8, 6 / 8], [0.3, 0.7]])


def test_weighted_rows_count_as_fewer():
    """Weights 1, 1, 2 are worth 16 / 6 rows; equal weights all count."""
    public = Public.of(SCHEMA, PUBLIC, ["STATE", "PLACE"], weight="W")
    place = predictions(public, [GROUPS.level(["STATE", "PLACE"])])[0]
    np.testing.assert_allclose(place.rows[place.source], [16 / 6, 100 / 24, 100 / 24])
    table = {name: values for name, values in PUBLIC.items() if name != "W"}
    (whole,) = predictions(Public.of(SCHEMA, table, ["STATE", "PLACE"]), [GROUPS.level(())])
    np.testing.assert_allclose(whole.rows, [6])
