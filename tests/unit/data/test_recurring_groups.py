"""Which public groups are a plan's own: by all columns, by the first ones where the last are new, or not at all."""

import numpy as np
import pytest

from prade import Column, Groups, Schema
from prade.data.declare.groups import RecurringGroups
from prade.data.public.public import Public

SCHEMA = Schema([Column(name, "group") for name in ("STATE", "PUMA", "YEAR")] + [Column("AGE", "numeric", edges=[18])])
TABLE = {
    "STATE": [17, 17, 39, 39, 39],
    "PUMA": ["a", "b", "a", "a", "c"],
    "YEAR": [2018, 2018, 2018, 2019, 2019],
    "AGE": [3, 40, 70, 20, 90],
}


def public(*by, **columns):
    return Public.of(SCHEMA, {**TABLE, **columns}, by)


def owners(rows, listed, by):
    """For each group, the public rows that are its own."""
    recurring = RecurringGroups.of(rows.groups, Groups.of(listed).level(by))
    return [np.flatnonzero(recurring.rows(rows.group, group)).tolist() for group in range(len(recurring.recurs))]


PLACES, YEARS = ["STATE", "PUMA"], ["STATE", "PUMA", "YEAR"]


@pytest.mark.parametrize(
    ("by_public", "listed", "by", "own"),
    [
        (PLACES, None, [], [[0, 1, 2, 3, 4]]),
        ([], None, [], [[0, 1, 2, 3, 4]]),
        (PLACES, {"STATE": [39, 42, 17]}, ["STATE"], [[2, 3, 4], [], [0, 1]]),
        # a place of the same name in another state is another place, whatever the order of columns
        (PLACES, {"STATE": [39, 17, 36], "PUMA": ["a", "b", "c"]}, PLACES, [[2, 3], [1], []]),
        (YEARS, {"STATE": [39, 17, 39], "PUMA": ["a", "b", "z"], "YEAR": [2020] * 3}, YEARS, [[2, 3], [1], []]),
        (YEARS, {"YEAR": [2020, 2020], "STATE": [39, 17], "PUMA": ["a", "b"]}, ["YEAR", *PLACES], [[2, 3], [1]]),
        # new states have no own rows though names within them recur, and new places in a known state are not the state
        (PLACES, {"STATE": [36, 36, 42], "PUMA": ["a", "b", "a"]}, PLACES, [[], [], []]),
        (PLACES, {"STATE": [17, 17, 39, 39], "PUMA": ["x", "y", "z", "w"]}, PLACES, [[], [], [], []]),
        (["STATE"], {"STATE": [17, 17, 39, 39], "PUMA": ["x", "y", "x", "y"]}, PLACES, [[], [], [], []]),
    ],
)
def test_whose_rows_are_a_groups_own(by_public, listed, by, own):
    assert owners(public(*by_public), listed, by) == own


def test_one_public_row_may_be_the_own_of_several_years_unless_the_public_table_has_the_year():
    rows = public(*YEARS)
    listed = {"STATE": [39, 39, 39, 17, 17], "PUMA": ["a"] * 3 + ["b"] * 2, "YEAR": [2019, 2020, 2021, 2020, 2021]}
    assert owners(rows, listed, YEARS) == [[3], [2, 3], [2, 3], [1], [1]]
    recurring = RecurringGroups.of(rows.groups, Groups.of(listed).level(YEARS))
    assert recurring.times.tolist() == [1, 2, 2, 1, 1]  # public years
    np.testing.assert_allclose(recurring.sums(rows.group_weights), [0.2, 0.4, 0.4, 0.2, 0.2])


def test_a_column_that_the_public_table_does_not_have_is_new():
    rows = Public.of(SCHEMA, {name: TABLE[name] for name in ("PUMA", "AGE")}, ["PUMA"])
    assert owners(rows, {"PUMA": ["a", "b"], "YEAR": [2021, 2022]}, ["PUMA", "YEAR"]) == [[0, 2, 3], [1]]
    assert owners(rows, {"PUMA": ["a", "b"], "WARD": [1, 2]}, ["PUMA", "WARD"]) == [[], []]
    assert owners(rows, {"STATE": [17, 39], "PUMA": ["a", "b"]}, ["STATE", "PUMA"]) == [[], []]
    nation = {"NATION": ["US", "US"], "PUMA": ["a", "b"]}  # the same for all: it tells nothing apart
    assert owners(rows, nation, ["NATION", "PUMA"]) == [[0, 2, 3], [1]]


@pytest.mark.parametrize("texts", [["17", "17", "39", "39", "39"], ["017", "17.0", "39", "039", " 39"]])
def test_a_list_of_numbers_reads_text_as_numbers(texts):
    """As it does with private rows: a public CSV file with "017" means the listed 17."""
    assert owners(public("STATE", STATE=texts), {"STATE": [39, 17]}, ["STATE"]) == [[2, 3, 4], [0, 1]]


def test_a_list_of_text_compares_text():
    """ "1" is not the listed "01"; numbers are written without a decimal point."""
    assert owners(public("PUMA", PUMA=["01", "1", "02", "02", "x"]), {"PUMA": ["01", "02"]}, ["PUMA"]) == [[0], [2, 3]]
    assert owners(public("PUMA", PUMA=[1, 2, 2, 2, 7]), {"PUMA": ["2", "1"]}, ["PUMA"]) == [[1, 2, 3], [0]]
