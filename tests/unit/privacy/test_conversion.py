"""Logarithms that are on the declared side of the true one, to the last digit; the results are rounded far coarser."""

from decimal import Context, Decimal
from fractions import Fraction

import pytest

from prade.privacy.budget import _log_above, _log_below


@pytest.mark.parametrize("value", [Fraction(1), Fraction(2), Fraction(10**9), Fraction(4, 3), 1 + Fraction(1, 10**30)])
@pytest.mark.parametrize("digits", [3, 20, 50, 80])
def test_logarithms_are_on_their_side(value: Fraction, digits: int) -> None:
    precise = Context(prec=digits + 60)
    true = Fraction(precise.ln(precise.divide(Decimal(value.numerator), Decimal(value.denominator))))
    below, above = _log_below(value, digits), _log_above(value, digits)
    assert below < true < above
    assert above - below <= 4 * Fraction(10) ** -(digits - 1) * max(abs(true), Fraction(1))
