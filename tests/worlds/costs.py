"""What noise costs, by the definitions of the budgets and nothing of prade's."""

from __future__ import annotations

from fractions import Fraction

from prade.privacy.budget import Budget


def cost_of(budget: Budget, scale: Fraction, l1: int | Fraction, l2_squared: int | Fraction) -> Budget:
    """The cost, as a budget of the same kind, of noise of the kind's usual law and this scale."""
    if l1 == 0:
        return budget * 0
    if budget.kind == "pure":
        return Budget.pure(l1 / Fraction(scale))
    rho = Budget.zcdp(l2_squared / (2 * Fraction(scale) ** 2))
    return rho if budget.kind == "zcdp" else rho.as_approx(budget.delta)
