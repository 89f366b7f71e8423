"""How far one person can move the scores that adaptive methods choose by: by exhaustion, and at the extremes."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade import Schema, Unit
from prade.measure.adaptive import Dependence, Misfit
from prade.measure.scores import MOST_ROWS, STEPS_A_NAT
from prade.parts import Cells, Marginal

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


def test_a_part_that_does_not_cover_everything_moves_no_further():
    score, cells = Misfit(SOME, [1, 1]), np.eye(3, dtype=int)[:, :2]  # the last row is in no cell
    worst = max(abs(score.of(table + row) - score.of(table)) for table in tables(2, 4) for row in cells)
    assert worst == Misfit.sensitivity(1)


def nats(table: np.ndarray, columns: int) -> float:
    """n I(X; P) from the definition: sum of c log(c n / (a b))."""
    grid = table.reshape(-1, columns).astype(float)
    expected = np.outer(grid.sum(axis=1), grid.sum(axis=0)) / max(grid.sum(), 1.0)
    inside = grid > 0
    return float((grid[inside] * np.log(grid[inside] / expected[inside])).sum())


def growth(rows: int) -> float:
    """g(n) = (n + 1) log(n + 1) - n log n, the largest move of n I by a row that joins n others."""
    return (rows + 1) * math.log(rows + 1) - (rows * math.log(rows) if rows else 0.0)


@pytest.mark.parametrize(("part", "most"), [(BOTH, 7), (THREE, 3)], ids=["2 x 2", "4 x 3"])
def test_no_row_moves_the_dependence_further_than_proved(part, most):
    reached = np.zeros(most + 1)
    for table in tables(part.n_cells, most):
        here = nats(table, part.sizes[-1])
        assert abs(Dependence(part).of(table) - STEPS_A_NAT * here) <= 0.5 + 1e-6
        for cell in range(part.n_cells):
            moved = abs(nats(table + np.eye(part.n_cells, dtype=int)[cell], part.sizes[-1]) - here)
            reached[table.sum()] = max(reached[table.sum()], moved)
    assert all(reached[rows] <= growth(rows) + 1e-9 for rows in range(most + 1))
    # the bound is met by a row that is alone in its value of X and of P
    assert reached[most] == pytest.approx(growth(most), abs=1e-9)


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
    assert Dependence.sensitivity(1) * 0.99 < moved <= Dependence.sensitivity(1)


def total(counts) -> Decimal:
    """Sum of c log c to 40 digits."""
    with localcontext(prec=40):
        return sum((Decimal(int(c)) * Decimal(int(c)).ln() for c in np.ravel(counts) if c), Decimal(0))


def test_floats_err_by_less_than_half_a_step():
    """Against exact logarithms, on tables as large as there can be."""
    generator = np.random.default_rng(3)
    for _ in range(5):
        table = (generator.dirichlet(np.ones(12) * 0.3) * MOST_ROWS).astype(np.int64)
        grid = table.reshape(4, 3)
        exact = total(grid) + total(grid.sum()) - total(grid.sum(axis=0)) - total(grid.sum(axis=1))
        assert abs(Dependence(THREE).of(table) - STEPS_A_NAT * exact) < 1


def test_the_dependence_is_of_a_marginals_last_column():
    with pytest.raises(ValueError, match="got a Cells"):
        Dependence(SOME)
    assert Dependence(Marginal.of(SCHEMA, ["c"])).of(np.array([5, 7, 1])) == 0
    table = np.array([[9, 0, 0], [0, 9, 0], [0, 9, 0], [0, 0, 9]])  # c is known from a and b together
    by_hand = 18 * math.log(2) + 18 * math.log(4)  # half the rows have a value of share 1/2, half one of 1/4
    assert Dependence(THREE).of(table.ravel()) == round(STEPS_A_NAT * by_hand)
