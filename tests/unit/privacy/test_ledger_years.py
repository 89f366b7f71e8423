"""A budget divided over years: no year spends what later ones need, whatever else happens to the ledger."""

from fractions import Fraction

import pytest

from prade import Budget, BudgetError, Ledger, PradeError, Unit
from prade.privacy.ledger.records import Division, shares_of


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "people.ledger")
    book.open_dataset("people", Unit(1), Budget.pure(4))
    return book


def spend(ledger, cost, plan="a"):
    return ledger.reserve("people", plan, Budget.pure(cost), again=True)


def test_shares_may_differ_and_dividing_again_divides_what_is_left(ledger):
    ledger.divide("people", 3, ["2", 1, "1"])
    spend(ledger, 2)
    with pytest.raises(BudgetError, match=r"is in year 1 of 3 .* has epsilon = 0 .* left for it.*begin the next year"):
        spend(ledger, "1/8")
    assert shares_of(3, ["0.5", "1/4", 0.25]) == (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    division = ledger.divide("people", 4).division
    assert (division.before, division.left, division.year) == (Budget.pure(2), Budget.pure(2), 1)
    spend(ledger, "1/2")
    with pytest.raises(BudgetError):
        spend(ledger, "1/8")
    # a raised cap belongs to no year until it is divided
    ledger.raise_cap("people", Budget.pure(9), "approved")
    with pytest.raises(BudgetError):
        spend(ledger, "1/8")
    ledger.divide("people", 1)
    spend(ledger, "13/2")


def test_the_division_is_in_the_account_and_survives_the_file(ledger):
    assert "years" not in ledger.account("people")
    ledger.divide("people", 2)
    again = Ledger(ledger.path)
    assert again.dataset("people").division == Division(Budget.pure(0), Budget.pure(4), (Fraction(1, 2),) * 2)
    assert "years      year 1 of 2 (epsilon = 2, epsilon = 2)" in again.account("people")
    assert again.statement("people").to_dict()["division"]["year"] == 1


@pytest.mark.parametrize(("years", "shares"), [(0, None), (True, None), (2, ["1"]), (2, [1, 0]), (2, [1, -1])])
def test_bad_divisions_are_refused(ledger, years, shares):
    with pytest.raises(PradeError, match="give"):
        ledger.divide("people", years, shares)
    assert ledger.dataset("people").division is None


def test_a_budget_that_is_not_divided_has_no_next_year(ledger):
    with pytest.raises(PradeError, match=r"is not divided over years .*divide it with Ledger\.divide"):
        ledger.next_year("people")
    with pytest.raises(PradeError, match="no data set"):
        ledger.divide("persons", 2)
