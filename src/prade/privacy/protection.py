"""When a budget protects so little that whoever spends it has to say that they know.

Weak are an epsilon above 20, a delta of 1/1000 or more, and a rho whose epsilon at delta = 10^-6 is above 20. What
such a budget means is said in numbers, before anything is read or spent.
"""

from __future__ import annotations

from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import readable
from prade.privacy.budget import Budget
from prade.privacy.conversion import epsilon_of

MOST_EPSILON = Fraction(20)
LEAST_WEAK_DELTA = Fraction(1, 1000)
USUAL_DELTA = Fraction(1, 10**6)  # at which a rho is judged


def weakness(budget: Budget) -> str | None:
    """What is weak about a budget, in numbers; None where nothing is.

    >>> weakness(Budget.pure(20)) is None, weakness(Budget.approx(1, "1/1001")) is None
    (True, True)
    >>> print(weakness(Budget.approx(1, "1/500")))
    a delta of 0.002 lets a mechanism publish all rows of one person in 500
    """
    found = []
    epsilon, where = _judged(budget)
    if epsilon > MOST_EPSILON:
        factor = f"e^{readable(epsilon).removeprefix('about ')}"
        found.append(
            f"the odds that a given person is in the table may change by a factor of {factor}{where}, and whoever held "
            "it to be as likely as not may be more than 99.9999997 % sure after the release"
        )
    if budget.kind == "approx" and budget.delta >= LEAST_WEAK_DELTA:
        most = readable(Fraction(int(1 / budget.delta)))
        found.append(f"a delta of {readable(budget.delta)} lets a mechanism publish all rows of one person in {most}")
    return "; ".join(found) or None


def _judged(budget: Budget) -> tuple[Fraction, str]:
    """The epsilon that a budget is judged by, and at which delta it holds, where that has to be said."""
    if budget.kind != "zcdp":
        return budget.epsilon, ""
    epsilon = epsilon_of(budget.rho, USUAL_DELTA) if budget.rho else Fraction(0)
    return epsilon, f" (at delta = {readable(USUAL_DELTA)})"


def refuse_weak(budget: Budget, accepted: bool) -> None:
    """Refuse a weak budget that the caller has not accepted as one."""
    if not accepted and (why := weakness(budget)):
        raise PradeError(
            f"{budget} is weak protection: {why}. Nothing was read or spent: make a plan with an epsilon of at most "
            f"{MOST_EPSILON} and a delta below {LEAST_WEAK_DELTA}, or accept it with weak_protection=True"
        )
