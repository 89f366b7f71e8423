"""A group's base distribution by hand: the public table, and the group's own public rows where it has any."""

import numpy as np
import pytest

from prade import Column, Level, Schema, Workload
from prade.data.public.public import Public
from prade.estimating.levels.foundation import Foundation, GroupPriors
from prade.estimating.levels.public_cells import PublicCells
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
ROWS = np.array(TABLE["W"])
SEXES = Workload.marginals(SCHEMA, ["SEX"])
PLAN = plan_of(SCHEMA, Level((), SEXES), Level("STATE", SEXES), Level("PUMA", SEXES), groups=GROUPS)
FOUND = Foundation.of(PLAN, PublicCells(PUBLIC), Settings(own=0.6))


def test_own_rows_and_those_of_the_table():
    np.testing.assert_allclose(FOUND.priors(1).weights(0), 0.4 * ROWS + 0.6 * np.array([1, 2, 3, 0, 0]) / 6, atol=1e-16)
    np.testing.assert_allclose(FOUND.priors(2).weights(1), 0.4 * ROWS + 0.6 * np.array([0, 0, 0, 1, 0]), atol=1e-16)


def test_groups_without_public_rows_and_everybody_have_those_of_the_table():
    for level, group in ((0, 0), (2, 2), (2, 3)):
        np.testing.assert_allclose(FOUND.priors(level).weights(group), ROWS, atol=1e-16)


@pytest.mark.parametrize("level", range(3))
def test_shares_of_cells_are_those_of_the_weights(level):
    priors, sexes = FOUND.priors(level), PUBLIC.prior.codes["SEX"]
    expected = [np.bincount(sexes, priors.weights(group)) for group in range(len(priors.recurs))]
    np.testing.assert_allclose(priors.masses(FOUND.support, FOUND.layout), expected, atol=1e-15)


def test_estimates_start_from_it_moved_by_the_parents_multipliers():
    above, sexes = np.array([0.5, -0.3]), PUBLIC.prior.codes["SEX"]
    for group in range(4):
        base = FOUND.priors(2).weights(group)
        np.testing.assert_allclose(FOUND.base(group).weights(np.zeros(2)), base, atol=1e-15)
        moved = base * np.exp(above[sexes])
        np.testing.assert_allclose(FOUND.start(group, above).weights(np.zeros(2)), moved / moved.sum(), atol=1e-15)


def test_what_few_public_rows_vary_by():
    """Everybody has the table's five rows; the first state its own three, and the table only through its parent."""
    assert FOUND.priors(0).sampling(top=True).tolist() == pytest.approx([1 / 5])
    assert FOUND.priors(1).sampling(top=False).tolist() == pytest.approx([0.36 / (0.6 * 5), 0.36 / (0.4 * 5), 0.0])


def test_sizes_are_those_of_one_year_where_there_are_several():
    schema = Schema([PLACE, Column("YEAR", "group"), SEX])
    table = {"PLACE": ["a", "a", "a", "b"], "YEAR": [2018, 2018, 2019, 2019], "SEX": [1, 2, 1, 2]}
    public = Public.of(schema, table, ["PLACE", "YEAR"])
    sexes = Workload.marginals(schema, ["SEX"])
    plan = plan_of(schema, Level(("PLACE", "YEAR"), sexes), groups={"PLACE": ["a", "b"], "YEAR": [2020, 2020]})
    np.testing.assert_allclose(GroupPriors(public, plan.groupings[0], Settings()).sizes(), [0.75 / 2, 0.25])
