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


def test_a_year_spends_no_more_than_its_share_and_what_is_left_of_the_years_before(ledger):
    ledger.divide("people", 4)
    spend(ledger, "1/2")
    with pytest.raises(
        BudgetError, match=r"is in year 1 of 4 .* has epsilon = 0\.5 .* left for it.*begin the next year"
    ):
        spend(ledger, "0.51")
    division = ledger.dataset("people").division
    assert division.left_this_year(Budget.pure("1/2")) == Budget.pure("1/2")
    assert division.left_this_year(Budget.pure(2)) == Budget.pure(0)
    ledger.check("people", "b", Budget.pure("1/2"))
    with pytest.raises(BudgetError, match="year 1 of 4"):
        ledger.check("people", "b", Budget.pure("0.51"))
    assert ledger.next_year("people").division.year == 2
    spend(ledger, "3/2")  # the half that was left over, and this year's
    with pytest.raises(BudgetError):
        spend(ledger, "1/1000")
    ledger.next_year("people")
    ledger.next_year("people")
    spend(ledger, 2)
    assert ledger.remaining("people") == Budget.pure(0)
    with pytest.raises(PradeError, match=r"has no year after 4"):
        ledger.next_year("people")


def test_shares_may_differ_and_dividing_again_divides_what_is_left(ledger):
    ledger.divide("people", 3, ["2", 1, "1"])
    spend(ledger, 2)
    with pytest.raises(BudgetError):
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
