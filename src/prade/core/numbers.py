"""Exact numbers, and rounding in a known direction: budgets are fractions, so they add up exactly."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational

from prade.core.errors import PradeError

LARGEST_EXPONENT = 1000  # nobody needs more, and a number with an exponent in the millions would take that many digits
MOST_BITS = 14_000  # of a numerator or denominator: Python can still print the number


def exact(value: object, name: str) -> Fraction:
    """Convert a number to a fraction; a float is converted to the decimal number that it prints as."""
    number = None
    try:
        if isinstance(value, float):
            value = repr(float(value))  # float() because a numpy float's repr includes its type
        if isinstance(value, bool):
            pass
        elif isinstance(value, Rational):
            number = Fraction(int(value.numerator), int(value.denominator))  # numpy integers overflow
        elif isinstance(value, str) and "/" in value:
            number = Fraction(value)
        elif isinstance(value, str | Decimal):
            decimal = Decimal(value)
            if decimal.is_finite() and abs(decimal.adjusted()) <= LARGEST_EXPONENT:
                number = Fraction(decimal)
        if number is not None and max(number.numerator.bit_length(), number.denominator.bit_length()) <= MOST_BITS:
            return number
    except (ValueError, ZeroDivisionError, InvalidOperation):
        pass
    given = repr(str(value)[:40]) if number is None else "a number of thousands of digits"
    raise PradeError(f"{name} is {given}; give a number such as 1, 0.1, 1e-9 or 1/3")


def whole(value: object, least: int) -> bool:
    """Whether `value` is an integer (not a Boolean) of at least `least`."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def digits_of(amount: Fraction, digits: int, rounding: str) -> Decimal:
    """A fraction as a decimal number with `digits` significant digits."""
    return Context(prec=digits, rounding=rounding).divide(Decimal(amount.numerator), Decimal(amount.denominator))


def readable(amount: Fraction) -> str:
    """A short text for a number such as 0.1, 1/3 or 1e-9; any other is rounded up and marked "about"."""
    short = digits_of(amount, 12, ROUND_CEILING).normalize()
    if Fraction(short) == amount:
        return f"{short:f}" if -5 <= short.adjusted() < 12 else f"{short:e}"
    if amount.denominator < 1000 and abs(amount.numerator) < 1000:
        return str(amount)
    return f"about {digits_of(amount, 6, ROUND_CEILING):g}"


def float_above(value: Fraction) -> Fraction:
    """The smallest float that is at least `value`, which is positive; returned as a fraction."""
    try:
        nearest = value.numerator / value.denominator  # integer division rounds to the nearest float
    except OverflowError:
        nearest = math.inf
    if nearest < value:
        nearest = math.nextafter(nearest, math.inf)
    if nearest == math.inf:
        raise PradeError("the budget is so small that its noise scale is too large for a float; use a larger budget")
    return Fraction(nearest)


def root_above(value: Fraction) -> Fraction:
    """The square root of a positive number, rounded up with a relative error of about 2^-100; exact where possible."""
    shift = max(0, 110 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = value * 4**shift
    root = math.isqrt(math.floor(scaled))
    return Fraction(root if root**2 == scaled else root + 1, 2**shift)
