"""A group's prior by hand: its parent's estimate, its own public rows, public groups that resemble it."""

import numpy as np

from prade import Budget, Column, Level, Plan, Schema, Unit, Workload
from prade.data.public.public import Public
from prade.estimating.levels.foundation import HANDED_ON, GroupPriors
from prade.planning.settings import Settings
from worlds.plans import plan_of
from worlds.survey import PLACE, SEX, STATE

SCHEMA = Schema([STATE, Column("PUMA", "group"), SEX])
TABLE = {
    "STATE": [1, 1, 1, 2, 2],
    "PUMA": ["a", "a", "b", "a", "c"],
    "SEX": [1, 2, 1, 1, 2],
    "W": [0.1, 0.2, 0.3, 0.15, 0.25],
}
GROUPS = {"STATE": [1, 2, 2, 3], "PUMA": ["a", "a", "z", "y"]}  # the last two have no public rows
PUBLIC = Public.of(SCHEMA, TABLE, ["STATE", "PUMA"], weight="W")
PARENT = np.array([0.4, 0.1, 0.1, 0.1, 0.3])


def priors(level, **settings):
    sexes = Workload.marginals(SCHEMA, ["SEX"])
    levels = [Level((), sexes), Level("STATE", sexes), Level("PUMA", sexes)]
    plan = plan_of(SCHEMA, *levels, groups=GROUPS)
    return GroupPriors(PUBLIC, plan, level, Settings(**settings))


def test_own_rows_and_what_is_handed_on():
    handed = HANDED_ON * PARENT + (1 - HANDED_ON) * np.array(TABLE["W"])
    found = priors(1, own=0.6).weights(0, PARENT)
    np.testing.assert_allclose(found, 0.4 * handed + 0.6 * np.array([1, 2, 3, 0, 0]) / 6, atol=1e-16)
    found = priors(2, own=0.6).weights(1, PARENT)
    np.testing.assert_allclose(found, 0.4 * handed + 0.6 * np.array([0, 0, 0, 1, 0]), atol=1e-16)


def test_a_group_without_public_rows_has_what_its_parent_hands_on():
    handed = HANDED_ON * PARENT + (1 - HANDED_ON) * np.array(TABLE["W"])
    for group in (2, 3):
        np.testing.assert_allclose(priors(2, own=0.6).weights(group, PARENT), handed, atol=1e-16)


def test_sizes_are_those_of_one_year_where_there_are_several():
    schema = Schema([PLACE, Column("YEAR", "group"), SEX])
    table = {"PLACE": ["a", "a", "a", "b"], "YEAR": [2018, 2018, 2019, 2019], "SEX": [1, 2, 1, 2]}
    public = Public.of(schema, table, ["PLACE", "YEAR"])
    sexes = Workload.marginals(schema, ["SEX"])
    plan = Plan(
        "x",
        schema,
        Budget.pure(1),
        Unit(1),
        [Level(("PLACE", "YEAR"), sexes)],
        {"PLACE": ["a", "b"], "YEAR": [2020, 2020]},
    )
    np.testing.assert_allclose(GroupPriors(public, plan, 0, Settings()).sizes(), [0.75 / 2, 0.25])
