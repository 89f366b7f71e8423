"""What a budget means, in a sentence for readers who do not know what epsilon is."""

from __future__ import annotations

import math

from prade.core.numbers import readable
from prade.privacy.budget import Budget
from prade.privacy.unit import Neighbours

LARGE_EPSILON = 700  # e to a larger power overflows a float


def meaning(budget: Budget, neighbours: Neighbours = "add-remove") -> str:
    """A budget as a sentence.

    >>> meaning(Budget.pure(1))
    'Removing any one person would change the probability of any outcome by at most a factor of 2.72.'
    """
    removing = "Removing any one person" if neighbours == "add-remove" else "Exchanging any one person for another"
    change = f"{removing} would change the probability of any outcome"
    if budget.kind == "zcdp":
        return (
            f"{change} only as much as zero-concentrated differential privacy with rho = {readable(budget.rho)} allows."
        )
    epsilon = float(budget.epsilon)
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < LARGE_EPSILON else f"10^{math.ceil(epsilon / math.log(10)):,}"
    extra = f" and an added probability of {float(budget.delta):.2g}" if budget.delta else ""
    return f"{change} by at most a factor of {factor}{extra}."
