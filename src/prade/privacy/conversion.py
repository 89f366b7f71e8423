"""Converting zCDP to (epsilon, delta) and back; every rounding errs on the safe side.

rho-zCDP implies (epsilon, delta)-DP whenever, for some t > 0 (1 + t is the order of the Renyi divergence),

    epsilon >= (1 + t) rho + c(t),    c(t) = (ln(1/delta) - ln(1 + t)) / t - ln(1 + 1/t)

(Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", proposition 12 with the Renyi
divergence (1 + t) rho). The statement holds for every t, so t may be chosen in floats; only c(t) has to be rounded
carefully. For a given rho, the right-hand side is smallest where rho t^2 + ln(1 + t) = ln(1/delta). For any rho and
delta it is smaller than the better-known rho + 2 sqrt(rho ln(1/delta)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import digits_of, readable

DIGITS = 20  # of the results: fewer than are computed, more than a float has
HUGE = Fraction(10**250)  # keeps the floats that choose t from overflowing; a worse t is still a valid one
EXPONENT = 5000  # limit for decimal numbers, far below the default: without it one could need a million digits


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon that rho > 0 implies for a given delta, rounded up.

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
        # Take the rho for which 1 + t is the best order: as t grows, this rho and its epsilon fall.
        rest = log_inverse - math.log1p(t)
        return rest <= 0 or (1 + t) * (rest / t / t) + rest / t - math.log1p(1 / t) <= target

    t = _crossing(beyond)
    rho = Fraction(digits_of((epsilon - _constant_above(t, delta)) / (1 + t), DIGITS, ROUND_FLOOR))
    if rho <= 0:
        raise PradeError(
            f"epsilon {readable(epsilon)} with delta {readable(delta)} is too small for any amount of noise; "
            "give a larger share of the budget"
        )
    return rho


def _constant_above(t: Fraction, delta: Fraction) -> Fraction:
    """c(t), rounded up: each step rounds in the direction that makes the result larger."""
    # Terms near 1 may cancel down to the size of delta, so its digits are needed on top of the 50.
    digits = 50 + min(int(_log_inverse(delta)), 2000)
    rest = _log_above(1 / delta, digits) - _log_below(1 + t, digits)
    return rest / t - _log_below(1 + 1 / t, digits)


def _log_above(value: Fraction, digits: int) -> Fraction:
    # Decimal.ln is correct to within half a unit in the last place, so the next number is above the true logarithm.
    context = Context(prec=digits, rounding=ROUND_CEILING, Emin=-EXPONENT, Emax=EXPONENT)
    return Fraction(context.next_plus(context.ln(_decimal(value, context))))


def _log_below(value: Fraction, digits: int) -> Fraction:
    context = Context(prec=digits, rounding=ROUND_FLOOR, Emin=-EXPONENT, Emax=EXPONENT)
    return Fraction(context.next_minus(context.ln(_decimal(value, context))))


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _log_inverse(delta: Fraction) -> float:
    """ln(1/delta), computed from integers because delta may be too small for a float."""
    logarithm = math.log(delta.denominator) - math.log(delta.numerator)
    if logarithm > EXPONENT:
        raise PradeError("delta is practically 0; use Budget.pure, or a delta above 1e-2000")
    return logarithm


def _crossing(beyond: Callable[[float], bool]) -> Fraction:
    """The t at which `beyond(t)` becomes true as t grows, found by bisection on a logarithmic scale."""
    low, high = -250.0, 250.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(math.exp(middle)) else (middle, high)
    return Fraction(math.exp(high))
