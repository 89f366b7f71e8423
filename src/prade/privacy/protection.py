"""Budgets that protect so little that the user has to accept this explicitly.

A budget is weak if its epsilon is above 20, its delta is 1/1000 or more, or its rho implies an epsilon above 20 for
delta = 10^-6. Before anything is read or spent, the user is told in numbers what such a budget means.
"""

from __future__ import annotations

from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import readable
from prade.privacy.budget import Budget
from prade.privacy.conversion import epsilon_of

MOST_EPSILON = Fraction(20)
LEAST_WEAK_DELTA = Fraction(1, 1000)
USUAL_DELTA = Fraction(1, 10**6)  # the delta for which a rho is converted to an epsilon


def weakness(budget: Budget) -> str | None:
    """What is weak about a budget, in numbers; None if nothing is.

    >>> weakness(Budget.pure(20)) is None, weakness(Budget.approx(1, "1/1001")) is None
    (True, True)
    >>> print(weakness(Budget.approx(1, "1/500")))
    a delta of 0.002 allows a mechanism to publish all rows of one person in 500
    """
    reasons = []
    epsilon, at_delta = _judged(budget)
    if epsilon > MOST_EPSILON:
        factor = f"e^{readable(epsilon).removeprefix('about ')}"
        reasons.append(
            f"the release may change the odds that a given person is in the table by a factor of {factor}{at_delta}; "
            "someone who thought it a 50:50 chance may then be more than 99.9999997 % sure"
        )
    if budget.kind == "approx" and budget.delta >= LEAST_WEAK_DELTA:
        people = readable(Fraction(int(1 / budget.delta)))
        reasons.append(
            f"a delta of {readable(budget.delta)} allows a mechanism to publish all rows of one person in {people}"
        )
    return "; ".join(reasons) or None


def _judged(budget: Budget) -> tuple[Fraction, str]:
    """The epsilon that a budget is judged by, and a note on its delta if the budget is zCDP."""
    if budget.kind != "zcdp":
        return budget.epsilon, ""
    epsilon = epsilon_of(budget.rho, USUAL_DELTA) if budget.rho else Fraction(0)
    return epsilon, f" (at delta = {readable(USUAL_DELTA)})"


def refuse_weak(budget: Budget, accepted: bool) -> None:
    """Refuse a weak budget unless the caller has explicitly accepted it."""
    if not accepted and (why := weakness(budget)):
        raise PradeError(
            f"{budget} is weak protection: {why}. Nothing was read or spent. Make a plan with an epsilon of at most "
            f"{MOST_EPSILON} and a delta below {LEAST_WEAK_DELTA}",
            remedy="weak_protection",
        )
