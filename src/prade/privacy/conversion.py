"""From zCDP to (epsilon, delta) and back, with every rounding on the safe side.

rho-zCDP implies (epsilon, delta)-DP whenever, for some t > 0 (1 + t is the order of the Renyi divergence),

    epsilon >= (1 + t) rho + c(t),    c(t) = (ln(1/delta) - ln(1 + t)) / t - ln(1 + 1/t)

(Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", proposition 12 with the Renyi
divergence (1 + t) rho). Every t gives a true statement, so floats may choose it; only c(t) has to be rounded with
care. For a given rho the right side is least where rho t^2 + ln(1 + t) = ln(1/delta). It is smaller than the better
known rho + 2 sqrt(rho ln(1/delta)), for any rho and delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import digits_of, readable

DIGITS = 20  # of the results: shorter than what is computed, longer than a float
HUGE = Fraction(10**250)  # floats that choose t are kept from overflowing; a worse t is no wrong one
EXPONENT = 5000  # of the decimal numbers: far below the default, so that none takes a million digits to write out


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The least epsilon that rho > 0 implies at delta, rounded up.

    >>> float(epsilon_of(Fraction(1, 2), Fraction(1, 10**6)))
    5.2215...
    """
    log_inverse = _log_inverse(delta)
    slope = float(min(max(rho, 1 / HUGE), HUGE))

    def beyond(t: float) -> bool:
        return slope * t * t + math.log1p(t) >= log_inverse

    t = _crossing(beyond)
    epsilon = (1 + t) * rho + _constant_above(t, delta)
    return Fraction(digits_of(max(epsilon, Fraction(0)), DIGITS, ROUND_CEILING))


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho that implies (epsilon, delta), rounded down.

    >>> float(rho_within(Fraction(1), Fraction(1, 10**6)))
    0.02435...
    """
    log_inverse = _log_inverse(delta)
    target = float(min(epsilon, HUGE))

    def beyond(t: float) -> bool:
        # rho runs through the values whose best order is 1 + t: epsilon falls as t grows
        rest = log_inverse - math.log1p(t)
        return rest <= 0 or (1 + t) * (rest / t / t) + rest / t - math.log1p(1 / t) <= target

    t = _crossing(beyond)
    rho = Fraction(digits_of((epsilon - _constant_above(t, delta)) / (1 + t), DIGITS, ROUND_FLOOR))
    if rho <= 0:
        raise PradeError(
            f"epsilon {readable(epsilon)} with delta {readable(delta)} is too little for any noise; "
            "give a larger share of the budget"
        )
    return rho


def _constant_above(t: Fraction, delta: Fraction) -> Fraction:
    """c(t), rounded up: each step in the direction that makes the result larger."""
    # Terms of size 1 may cancel down to the size of delta, hence its digits on top of the 50.
    digits = 50 + min(int(_log_inverse(delta)), 2000)
    rest = _log_above(1 / delta, digits) - _log_below(1 + t, digits)
    return rest / t - _log_below(1 + 1 / t, digits)


def _log_above(value: Fraction, digits: int) -> Fraction:
    # Decimal.ln is correct to within half a unit of its last digit: one unit further is on the other side
    context = Context(prec=digits, rounding=ROUND_CEILING, Emin=-EXPONENT, Emax=EXPONENT)
    return Fraction(context.next_plus(context.ln(_decimal(value, context))))


def _log_below(value: Fraction, digits: int) -> Fraction:
    context = Context(prec=digits, rounding=ROUND_FLOOR, Emin=-EXPONENT, Emax=EXPONENT)
    return Fraction(context.next_minus(context.ln(_decimal(value, context))))


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _log_inverse(delta: Fraction) -> float:
    """ln(1/delta), by integers: a float may not hold delta."""
    logarithm = math.log(delta.denominator) - math.log(delta.numerator)
    if logarithm > EXPONENT:
        raise PradeError("delta is so small that it is as good as 0; use Budget.pure, or a delta above 1e-2000")
    return logarithm


def _crossing(beyond: Callable[[float], bool]) -> Fraction:
    """Where, as t grows, `beyond(t)` turns true; by halving on the scale of logarithms."""
    low, high = -250.0, 250.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(math.exp(middle)) else (middle, high)
    return Fraction(math.exp(high))
