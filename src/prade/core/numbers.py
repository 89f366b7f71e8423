"""Exact numbers, and rounding in one direction.

A budget that is a fraction adds up exactly. Where a float or a short decimal is needed all the same, the functions
here say on which side of the true number it lies.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational

from prade.core.errors import PradeError

LARGEST_EXPONENT = 1000  # an exponent of millions is no budget, and would be written out digit by digit
MOST_BITS = 14_000  # of a numerator or denominator: Python still writes the number out


def exact(value: object, name: str) -> Fraction:
    """A number as a fraction; a float as the decimal number that it prints as.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-9", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000000))
    """
    try:
        if isinstance(value, float):
            value = repr(float(value))  # numpy's float prints its type as well
        if not isinstance(value, bool) and isinstance(value, Rational):
            return _short(Fraction(int(value.numerator), int(value.denominator)), name)  # numpy's would overflow
        if isinstance(value, str) and "/" in value:
            return _short(Fraction(value), name)
        if isinstance(value, str | Decimal):
            number = Decimal(value)
            if number.is_finite() and abs(number.adjusted()) <= LARGEST_EXPONENT:
                return _short(Fraction(number), name)
    except PradeError:
        raise
    except (ValueError, ZeroDivisionError, InvalidOperation):
        pass
    raise PradeError(f"{name} is {str(value)[:40]!r}; give a number such as 1, 0.1, 1e-9 or 1/3")


def _short(value: Fraction, name: str) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise PradeError(f"{name} has thousands of digits; give a number such as 1, 0.1, 1e-9 or 1/3")
    return value


def whole(value: object, least: int) -> bool:
    """Whether it is a whole number (and no truth value), `least` or more."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def digits_of(amount: Fraction, digits: int, rounding: str) -> Decimal:
    """A fraction as a decimal number of so many digits, rounded one way."""
    return Context(prec=digits, rounding=rounding).divide(Decimal(amount.numerator), Decimal(amount.denominator))


def readable(amount: Fraction) -> str:
    """A short text; a number that has none is rounded up, and says "about".

    >>> readable(Fraction(1, 10)), readable(Fraction(1, 3)), readable(Fraction(1, 10**9)), readable(Fraction(10**6, 7))
    ('0.1', '1/3', '1e-9', 'about 142858')
    """
    short = digits_of(amount, 12, ROUND_CEILING).normalize()
    if Fraction(short) == amount:
        return f"{short:f}" if -5 <= short.adjusted() < 12 else f"{short:e}"
    if amount.denominator < 1000 and abs(amount.numerator) < 1000:
        return str(amount)
    return f"about {digits_of(amount, 6, ROUND_CEILING):g}"


def float_above(value: Fraction) -> Fraction:
    """The smallest float that is not below a positive number, as a fraction.

    >>> float_above(Fraction(1, 4)) == Fraction(1, 4), float_above(Fraction(1, 3)) > Fraction(1, 3)
    (True, True)
    """
    try:
        nearest = value.numerator / value.denominator  # the division of integers rounds to nearest
    except OverflowError:
        nearest = math.inf
    if nearest < value:
        nearest = math.nextafter(nearest, math.inf)
    if nearest == math.inf:
        raise PradeError("the budget is so small that no float holds the scale of its noise; give more")
    return Fraction(nearest)


def root_above(value: Fraction) -> Fraction:
    """The square root of a positive number, rounded up at about 2^-100 of itself; exact where it is a short binary.

    >>> root_above(Fraction(9, 16))
    Fraction(3, 4)
    """
    shift = max(0, 110 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = value * 4**shift
    root = math.isqrt(math.floor(scaled))
    return Fraction(root if root**2 == scaled else root + 1, 2**shift)
