"""The elbow: the smallest budget worth spending, beyond which a doubling of the budget takes off less than a tenth."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prade.tuning.explore import LITTLE, elbow, off_per_doubling

BUDGETS = [Fraction(each) for each in ("1/10", "3/10", "1", "3", "10")]
ALL = [True] * 5


def test_each_doubling_takes_the_same_share_off():
    assert off_per_doubling((Fraction(1), Fraction(8)), (0.8, 0.1)) == pytest.approx(0.5)
    assert off_per_doubling((Fraction(1), Fraction(2)), (0.2, 0.19)) == pytest.approx(0.05)
    assert off_per_doubling((Fraction(1), Fraction(4)), (0.2, 0.3)) < 0
    assert off_per_doubling((Fraction(1), Fraction(2)), (0.0, 0.0)) == 0


def test_the_elbow_is_where_more_budget_starts_to_buy_little():
    number, words = elbow(BUDGETS, [0.4, 0.3, 0.2, 0.12, 0.11], ALL)
    assert number == 3
    assert words == "Beyond epsilon = 3, you pay twice the budget for at most 5 % less error."


def test_a_late_fall_moves_the_elbow():
    flat_then_falling = [0.4, 0.39, 0.38, 0.37, 0.05]
    assert elbow(BUDGETS, flat_then_falling, ALL)[0] is None
    assert elbow(BUDGETS[:4], flat_then_falling[:4], ALL[:4])[0] == 0


def test_a_budget_that_is_not_worth_spending_is_not_the_elbow():
    errors = [0.4, 0.4, 0.2, 0.19, 0.18]
    assert elbow(BUDGETS, errors, ALL)[0] == 2
    assert elbow(BUDGETS, [0.2, 0.2, 0.2, 0.19, 0.19], [False, False, False, True, True])[0] == 3


def test_an_error_that_does_not_fall_is_said_to_stay():
    assert elbow(BUDGETS, [0.2, 0.2, 0.2, 0.21, 0.2], ALL) == (0, "Beyond epsilon = 0.1, the error stays.")


@pytest.mark.parametrize(
    ("worthwhile", "words"),
    [
        ([False] * 5, "At none of these budgets is the result expected to be better than the public table alone."),
        ([False] * 4 + [True], "Only at rho = 10 is the result expected to be better than the public table."),
        (
            ALL,
            "Up to rho = 10, the largest budget that was rehearsed, more budget still buys 10 % less error or more per "
            "doubling.",
        ),
    ],
)
def test_without_an_elbow_there_are_words(worthwhile, words):
    assert elbow(BUDGETS, [0.5, 0.4, 0.3, 0.2, 0.1], worthwhile, "rho") == (None, words)


def test_one_budget_has_no_elbow():
    assert elbow(BUDGETS[:1], [0.1], [True]) == (None, "")


@given(st.lists(st.tuples(st.floats(0.01, 2), st.booleans()), min_size=2, max_size=5))
def test_no_larger_budget_buys_much_beyond_the_elbow_and_every_smaller_one_is_not_an_elbow(points):
    errors, worthwhile = [error for error, _ in points], [worth for _, worth in points]
    budgets = BUDGETS[: len(points)]
    number, _ = elbow(budgets, errors, worthwhile)

    def flat(k):
        later = range(k + 1, len(points))
        return all(off_per_doubling((budgets[k], budgets[j]), (errors[k], errors[j])) < LITTLE for j in later)

    candidates = [k for k in range(len(points) - 1) if worthwhile[k] and flat(k)]
    assert number == (candidates[0] if candidates else None)
