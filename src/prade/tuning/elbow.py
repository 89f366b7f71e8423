"""The elbow: the budget beyond which more budget buys little.

Let e(b) be the expected error at budget b. From budget b to a larger one c, each doubling of the budget takes

    r(b, c) = 1 - (e(c) / e(b))^(1 / log2(c / b))

off the error. The elbow is the smallest budget that is worth spending and beyond which every larger rehearsed budget
takes less than a tenth off per doubling. (If noise were the only error, each doubling would take off half of it.) It is
a remark about errors, and does not say what a budget means for people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from prade.core.numbers import readable

LITTLE = 0.1  # of the error that a doubling of the budget takes off


def off_per_doubling(budgets: tuple[Fraction, Fraction], errors: tuple[float, float]) -> float:
    """By which share each doubling of the budget lowers the error, from one budget to a larger one.

    >>> off_per_doubling((Fraction(1), Fraction(4)), (0.4, 0.1))
    0.5
    """
    (small, large), (before, after) = budgets, errors
    return 1 - (after / before) ** (1 / math.log2(large / small)) if before > 0 else 0.0


def elbow(
    amounts: Sequence[Fraction], errors: Sequence[float], worthwhile: Sequence[bool], name: str = "epsilon"
) -> tuple[int | None, str]:
    """The number of the elbow among ascending budgets, and a sentence about it; None where there is none.

    >>> elbow([Fraction(1), Fraction(3), Fraction(6)], [0.4, 0.2, 0.19], [True, True, True])
    (1, 'Beyond epsilon = 3, you pay twice the budget for at most 5 % less error.')
    """
    if not any(worthwhile):
        return None, "At none of these budgets is the result expected to be better than the public table alone."
    if len(amounts) == 1:
        return None, ""
    last = len(amounts) - 1
    for k in range(last):
        further = [off_per_doubling((amounts[k], amounts[j]), (errors[k], errors[j])) for j in range(k + 1, last + 1)]
        if worthwhile[k] and max(further) < LITTLE:
            most = round(100 * max(further))
            bought = f"you pay twice the budget for at most {most} % less error" if most > 0 else "the error stays"
            return k, f"Beyond {name} = {readable(amounts[k])}, {bought}."
    if not any(worthwhile[:last]):
        return (
            None,
            f"Only at {name} = {readable(amounts[last])} is the result expected to be better than the public table.",
        )
    return None, (
        f"Up to {name} = {readable(amounts[last])}, the largest budget that was rehearsed, more budget still buys "
        f"{100 * LITTLE:.0f} % less error or more per doubling."
    )
