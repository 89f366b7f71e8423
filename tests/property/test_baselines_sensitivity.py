"""How far one person can move the scores that adaptive methods choose by: by exhaustion, and at the extremes."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Schema, Unit
from prade.measuring.adaptive.scores import MOST_ROWS, STEPS_PER_ROW
from prade.measuring.adaptive.session import Dependence, Gain, Misfit
from prade.queries.parts import Cells, Marginal

SCHEMA = Schema.from_mbi({"a": 2, "b": 2, "c": 3})
BOTH = Marginal.of(SCHEMA, ["a", "b"])
THREE = Marginal.of(SCHEMA, ["a", "b", "c"])
SOME = Cells(["c"], table=[0, 2, 1], n_cells=2)  # a row may be in none of its cells


def tables(cells: int, most: int):
    """Every table of up to `most` rows, as counts of its cells."""
    for rows in range(most + 1):
        for chosen in itertools.combinations_with_replacement(range(cells), rows):
            yield np.bincount(np.array(chosen, int), minlength=cells)


def neighbours(table: np.ndarray, unit: Unit):
    """Every table with one person's rows added, or exchanged for another person's."""
    for added in tables(len(table), unit.max_rows):
        if unit.neighbours == "add-remove":
            yield table + added
            continue
        for removed in tables(len(table), unit.max_rows):
            if (table >= removed).all():
                yield table - removed + added


UNITS = [Unit(1), Unit(2), Unit(1, neighbours="replace")]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbour_moves_a_misfit_further_than_declared(unit):
    worst = 0
    for estimate in ([0, 0, 0, 0], [1, 0, 2, 0], [3, 3, 3, 3]):
        score = Misfit(BOTH, estimate, penalty=5)
        for table in tables(4, 4):
            worst = max(worst, *(abs(score.of(other) - score.of(table)) for other in neighbours(table, unit)))
    assert worst == Misfit.sensitivity(unit.rows)  # reached, so nothing smaller would do


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbour_moves_a_gain_further_than_declared(unit):
    """An offer on the other side of the truth than the estimate is moved towards by what the estimate is left by."""
    worst = {True: 0, False: 0}
    for estimate, offer in (([0, 0, 0, 0], [4, 4, 4, 4]), ([1, 0, 2, 0], [0, 3, 1, 5]), ([3, 3, 3, 3], None)):
        score = Gain(BOTH, estimate, offer, penalty=5)
        for table in tables(4, 4):
            moved = (abs(score.of(other) - score.of(table)) for other in neighbours(table, unit))
            worst[offer is not None] = max(worst[offer is not None], *moved)
    assert worst[True] == Gain.sensitivity(unit.rows)  # reached, so nothing smaller would do
    assert worst[False] == unit.rows  # smaller, but one bound holds for a list of both kinds


def test_a_gain_is_what_the_offer_saves():
    assert Gain(BOTH, [5, 0, 0, 0], [1, 2, 1, 1], penalty=1).of(np.array([1, 2, 2, 0])) == 8 - 2 - 1
    assert Gain(BOTH, [5, 0, 0, 0], penalty=1).of(np.array([1, 2, 2, 0])) == 8 - 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([0.5] * 4, None, 0), "the estimate must be 4 whole counts"),
        (([0] * 4, [1, 2], 0), "the offer must be 4 whole counts"),
        (([0] * 4, [2**61] * 4, 0), "the offer is beyond"),
        (([0] * 4, [0] * 4, 0.5), "the penalty is 0.5"),
    ],
)
def test_a_gain_is_made_of_whole_numbers(given, words):
    with pytest.raises(ValueError, match=words):
        Gain(BOTH, *given)


def test_a_part_that_does_not_cover_everything_moves_no_further():
    score, cells = Misfit(SOME, [1, 1]), np.eye(3, dtype=int)[:, :2]  # the last row is in no cell
    worst = max(abs(score.of(table + row) - score.of(table)) for table in tables(2, 4) for row in cells)
    assert worst == Misfit.sensitivity(1)


def exact(table: np.ndarray, columns: int) -> Fraction:
    """n R(X; P) from the definition, in fractions: half the sum of |c - a b / n|."""
    grid = [[Fraction(int(count)) for count in row] for row in table.reshape(-1, columns)]
    below, beside = [sum(row) for row in grid], [sum(column) for column in zip(*grid, strict=True)]
    return sum(
        (abs(grid[p][x] - b * a / max(sum(below), 1)) for p, b in enumerate(below) for x, a in enumerate(beside)),
        Fraction(0),
    ) / 2  # fmt: skip


@pytest.mark.parametrize(("part", "most"), [(BOTH, 7), (THREE, 3)], ids=["2 x 2", "4 x 3"])
def test_no_row_moves_the_dependence_further_than_proved(part, most):
    for table in tables(part.n_cells, most):
        here = exact(table, part.sizes[-1])
        assert abs(Dependence(part).of(table) - STEPS_PER_ROW * here) <= 0.5
        for cell in range(part.n_cells):
            assert abs(exact(table + np.eye(part.n_cells, dtype=int)[cell], part.sizes[-1]) - here) < 2


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbour_moves_the_dependence_further_than_declared(unit):
    score = Dependence(BOTH)
    declared = Dependence.sensitivity(unit.rows)
    for table in tables(4, 4):
        assert all(abs(score.of(other) - score.of(table)) <= declared for other in neighbours(table, unit))


@given(
    rows=st.integers(1, MOST_ROWS - 1),
    shares=st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any),
    cell=st.integers(0, 3),
)
def test_large_tables_stay_within_the_declared_sensitivity(rows, shares, cell):
    table = np.array([rows * share // sum(shares) for share in shares], np.int64)
    score, more = Dependence(BOTH), table + np.eye(4, dtype=np.int64)[cell]
    assert abs(score.of(more) - score.of(table)) <= Dependence.sensitivity(1)


def test_the_worst_table_that_there_can_be_comes_near_the_declared_sensitivity():
    """Nearly all people alike, and one more who differs in both columns: the declared figure is not wasteful."""
    table = np.array([MOST_ROWS - 1, 0, 0, 0], np.int64)
    moved = Dependence(BOTH).of(table + np.array([0, 0, 0, 1])) - Dependence(BOTH).of(table)
    assert Dependence.sensitivity(1) * 0.98 < moved <= Dependence.sensitivity(1)


def test_floats_err_by_less_than_half_a_step():
    """Against fractions, on tables as large as there can be."""
    generator = np.random.default_rng(3)
    for _ in range(5):
        table = (generator.dirichlet(np.ones(12) * 0.3) * MOST_ROWS).astype(np.int64)
        assert abs(Dependence(THREE).of(table) - STEPS_PER_ROW * exact(table, 3)) < 1


def test_the_dependence_is_of_a_marginals_last_column():
    with pytest.raises(ValueError, match="got a Cells"):
        Dependence(SOME)
    assert Dependence(Marginal.of(SCHEMA, ["c"])).of(np.array([5, 7, 1])) == 0
    table = np.array([[8, 0, 0], [0, 8, 0], [0, 8, 0], [0, 0, 8]])  # c is known from a and b together
    off = 2 * (6 + 4 + 2) + 2 * (2 + 4 + 2)  # independent, a row of the table would be 2, 4, 2
    assert Dependence(THREE).of(table.ravel()) == STEPS_PER_ROW * off / 2


def test_the_declared_sensitivity_of_the_dependence_is_that_of_the_proof():
    """Two rows in 64ths, a step for the rounding and a step for the floats, which no table of these tests needs."""
    assert Dependence.sensitivity(1) == 2 * 64 + 2
    assert Dependence.sensitivity(7) == 2 * 64 * 7 + 2
