"""Exact privacy budgets: how much of one person's change to the table releases may reveal.

What one person can change is a `prade.privacy.protection.Unit`. Budgets are fractions, not floats: shares add up
exactly, and where a number must be rounded, it is rounded towards more noise or towards a larger reported cost.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from prade.core.errors import PradeError
from prade.core.numbers import digits_of, exact, float_above, readable, root_above
from prade.privacy.noise_law import GAUSSIAN, LAPLACE, NoiseLaw, noise_law

BudgetKind = Literal["pure", "zcdp", "approx"]
Number = int | float | str | Fraction | Decimal


class _Kind(NamedTuple):
    words: str
    names: tuple[str, ...]
    law: NoiseLaw  # unless another is chosen


_KINDS: dict[BudgetKind, _Kind] = {
    "pure": _Kind("pure", ("epsilon",), LAPLACE),
    "zcdp": _Kind("zero-concentrated", ("rho",), GAUSSIAN),
    "approx": _Kind("approximate", ("epsilon", "delta"), GAUSSIAN),
}
LARGEST = Fraction(repr(sys.float_info.max))  # noise and its variance are computed in floats


@dataclass(frozen=True, repr=False)
class Budget:
    """How much releases may reveal about one unit: one or two exact numbers that add up from release to release.

    pure(epsilon)           P(M(x) in S) <= e^epsilon P(M(y) in S)               uses Laplace noise
    zcdp(rho)               the Renyi divergence of order a of M(x) from M(y)    uses Gaussian noise
                            is at most a rho, for every a > 1
    approx(epsilon, delta)  P(M(x) in S) <= e^epsilon P(M(y) in S) + delta       uses Gaussian noise

    for neighbouring tables x, y and every set S of releases. The last two may also use Laplace noise (`noise_budget`).
    Budgets of the same kind add up, even if one release is chosen after looking at another. A float stands for the
    decimal number that it prints as: 0.1 is one tenth.

    >>> budget = Budget.pure(1)
    >>> sum([budget / 3] * 3) == budget
    True
    >>> print(budget - Budget.pure(0.9))
    epsilon = 0.1 (pure differential privacy)
    >>> budget.noise_scale(l1=36, l2_squared=36)
    Fraction(36, 1)
    """

    kind: BudgetKind
    amounts: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        amounts = tuple(exact(amount, name) for name, amount in zip(self.names, self.amounts, strict=True))
        object.__setattr__(self, "amounts", amounts)
        for name, amount in zip(self.names, amounts, strict=True):
            if amount < 0:
                raise PradeError(f"{name} would be {readable(amount)}, but a budget is never negative")
            if amount > LARGEST or (name == "delta" and amount >= 1):
                most = "a number far below 1" if name == "delta" else "a few dozen at most"
                raise PradeError(f"{name} is {readable(amount)}, which promises nothing: give {most}")

    @classmethod
    def pure(cls, epsilon: Number) -> Budget:
        """Pure differential privacy: one person changes the probability of any outcome by at most e^epsilon."""
        return cls("pure", (exact(epsilon, "epsilon"),))

    @classmethod
    def zcdp(cls, rho: Number) -> Budget:
        """Zero-concentrated differential privacy (Bun and Steinke 2016): the best way to add up Gaussian noise."""
        return cls("zcdp", (exact(rho, "rho"),))

    @classmethod
    def approx(cls, epsilon: Number, delta: Number) -> Budget:
        """(epsilon, delta) differential privacy. Before dividing it, see `zcdp_within`: its shares add up better."""
        return cls("approx", (exact(epsilon, "epsilon"), exact(delta, "delta")))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers, the one that decides first."""
        return _KINDS[self.kind].names

    @property
    def epsilon(self) -> Fraction:
        return self._amount("epsilon")

    @property
    def rho(self) -> Fraction:
        return self._amount("rho")

    @property
    def delta(self) -> Fraction:
        """Delta of an approx budget; 0 for a pure one."""
        return Fraction(0) if self.kind == "pure" else self._amount("delta")

    @property
    def law(self) -> NoiseLaw:
        return _KINDS[self.kind].law

    def _amount(self, name: str) -> Fraction:
        if name not in self.names:
            raise PradeError(
                f"the budget is {self.kind} and has no {name} of its own; convert it with as_approx(delta), or an "
                "approx budget with zcdp_within()"
            )
        return self.amounts[self.names.index(name)]

    def __repr__(self) -> str:
        return f"Budget.{self.kind}({', '.join(repr(str(amount)) for amount in self.amounts)})"

    def __str__(self) -> str:
        numbers = zip(self.names, self.amounts, strict=True)
        text = " and ".join(f"{name} = {readable(amount)}" for name, amount in numbers)
        return f"{text} ({_KINDS[self.kind].words} differential privacy)"

    def to_dict(self) -> dict[str, str]:
        """The kind, and its numbers as exact fractions in text form."""
        return {"kind": self.kind, **dict(zip(self.names, map(str, self.amounts), strict=True))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Budget:
        for kind, (_, names, _) in _KINDS.items():
            if isinstance(values, Mapping) and values.get("kind") == kind and set(values) == {"kind", *names}:
                return cls(kind, tuple(values[name] for name in names))
        forms = "; ".join(f"kind {kind!r} with {' and '.join(each.names)}" for kind, each in _KINDS.items())
        raise PradeError(f"a budget is one of: {forms}; got {str(values)[:80]!r}")

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.kind, tuple(a + b for a, b in self._beside(other)))

    def __radd__(self, other: object) -> Budget:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts from 0

    def __sub__(self, other: Budget) -> Budget:
        return Budget(self.kind, tuple(a - b for a, b in self._beside(other)))

    def __mul__(self, factor: Number) -> Budget:
        return Budget(self.kind, tuple(amount * exact(factor, "the factor") for amount in self.amounts))

    def __truediv__(self, divisor: Number) -> Budget:
        return self * (1 / exact(divisor, "the divisor"))

    # This is a partial order: neither of approx(1, 1e-6) and approx(2, 1e-9) is within the other. So to test whether
    # a is too much, write `not a <= b`.
    def __le__(self, other: Budget) -> bool:
        return all(a <= b for a, b in self._beside(other))

    def __lt__(self, other: Budget) -> bool:
        return self <= other and self != other

    def _beside(self, other: object) -> zip[tuple[Fraction, Fraction]]:
        if not isinstance(other, Budget):
            raise PradeError(f"expected a Budget.{self.kind}(...), got {other!r}")
        if self.kind != other.kind:
            raise PradeError(
                f"budgets of the kinds {self.kind!r} and {other.kind!r} cannot be added or compared; "
                "convert one of them first, with as_approx(delta) or zcdp_within()"
            )
        return zip(self.amounts, other.amounts, strict=True)

    def as_approx(self, delta: Number) -> Budget:
        """The (epsilon, delta) that this budget implies for a given delta, rounded up; for a pure budget delta is 0.

        >>> print(Budget.zcdp("1/8").as_approx(1e-9))
        epsilon = about 3.05813 and delta = 1e-9 (approximate differential privacy)
        """
        if self.kind == "approx":
            raise PradeError("the budget is approx already; its epsilon for another delta is not known")
        at = Budget.approx(0, delta)._positive_delta()
        if self.kind == "pure" or self.rho == 0:
            return Budget.approx(self.amounts[0], 0)
        return Budget.approx(epsilon_of(self.rho, at), at)

    def zcdp_within(self) -> Budget:
        """The largest rho that can be spent within an approx budget, rounded down.

        Divide this budget rather than the approx one: k equal shares of rho need sqrt(k) times the noise of the whole,
        whereas k equal shares of (epsilon, delta), each converted to noise, need nearly k times the noise.

        >>> Budget.approx(1, 1e-9).zcdp_within().as_approx(1e-9) <= Budget.approx(1, 1e-9)
        True
        """
        if self.kind != "approx":
            raise PradeError(f"the budget is {self.kind}; zcdp_within() is for approx budgets only")
        return Budget.zcdp(rho_within(self.epsilon, self._positive_delta()))

    def _positive_delta(self) -> Fraction:
        if self.delta == 0:
            raise PradeError("delta is 0, but Gaussian noise needs a delta between 0 and 1; give one, or a pure budget")
        return self.delta

    def noise_budget(self, law: str | None = None) -> Budget:
        """The budget that a release divides among its questions if all of its noise has this law (default: `law`).

            kind      laplace          gaussian
            pure      itself           refused: no epsilon bounds it
            zcdp      itself           itself
            approx    pure(epsilon)    zcdp_within()

        *Laplace noise within (epsilon, delta)*: epsilon-DP is (epsilon, 0)-DP. The ledger records the whole (epsilon,
        delta) all the same.

        *Laplace noise within rho.* Let neighbouring tables change count i by d_i. The laws of the noisy count differ by
        a factor of at most exp(|d_i| / b), so their Renyi divergence of order a is at most a d_i^2 / (2 b^2) (Bun and
        Steinke 2016, proposition 3.3). Those of all counts add up to at most a l2_squared / (2 b^2): `noise_scale`
        gives b as it gives sigma. But the variance is 2 b^2 instead of sigma^2.

        >>> Budget.approx(1, 1e-9).noise_budget("laplace")
        Budget.pure('1')
        """
        chosen = self.law if law is None else noise_law(law)
        if self.kind == "pure" and chosen.norm == 2:
            raise PradeError(f"{chosen.words} keeps no pure budget: use {self.law.words}, or a budget with a delta")
        if self.kind != "approx":
            return self
        return Budget.pure(self.epsilon) if chosen.norm == 1 else self.zcdp_within()

    def noise_scale(self, l1: int | Fraction, l2_squared: int | Fraction) -> Fraction:
        """The noise scale that this budget pays for: a fraction that a float represents exactly, never too small.

        pure:    b >= l1 / epsilon, for discrete Laplace noise, P(z) ~ exp(-|z| / b)
        zcdp:    sigma^2 >= l2_squared / (2 rho), for discrete Gaussian noise, P(z) ~ exp(-z^2 / (2 sigma^2)), and
                 the same for b^2 (`noise_budget`)
        approx:  sigma as for `zcdp_within`

        `l1` and `l2_squared` bound how much *all* counts of the release together change between neighbouring tables:
        sum |change| and sum change^2. If a row satisfies at most m = workload.per_row queries, these are unit.rows * m
        and unit.rows^2 * m. Proofs: shifting a discrete Laplace distribution changes probabilities by a factor of at
        most exp(|shift| / b), count by count; for Gaussian noise, see Canonne, Kamath and Steinke 2020, theorem 14.
        """
        change = Fraction(l1 if self.kind == "pure" else l2_squared)
        if change == 0:
            return change
        if not any(self.amounts):
            raise PradeError("this share of the budget is 0, and no noise is large enough for it; give a larger share")
        if self.kind == "approx":
            return self.zcdp_within().noise_scale(l1, l2_squared)
        return float_above(change / self.epsilon if self.kind == "pure" else root_above(change / (2 * self.rho)))


# ---------------------------------------------------------------------- conversions
# rho implies epsilon = (1 + t) rho + c(t) at delta, for every t > 0, with 1 + t the order of the divergence and
#     c(t) = (ln(1/delta) - ln(1 + t)) / t - ln(1 + 1/t)       (Canonne, Kamath and Steinke 2020, proposition 12)
# The t is chosen with floats, because a worse one is still valid; the rest is exact or rounded to the safe side.


DIGITS = 20  # of the results: fewer than are computed, more than a float has
HUGE = Fraction(10**250)  # keeps the floats that choose t from overflowing; a worse t is still a valid one
EXPONENT = 5000  # limit for decimal numbers, far below the default: without it one could need a million digits


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon that rho > 0 implies for a given delta, rounded up."""
    log_inverse, slope = _log_inverse(delta), float(min(max(rho, 1 / HUGE), HUGE))
    t = _crossing(lambda t: slope * t * t + math.log1p(t) >= log_inverse)
    epsilon = (1 + t) * rho + _constant_above(t, delta)
    return Fraction(digits_of(max(epsilon, Fraction(0)), DIGITS, ROUND_CEILING))


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho that implies (epsilon, delta), rounded down."""
    log_inverse, target = _log_inverse(delta), float(min(epsilon, HUGE))

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
    rest = _log(1 / delta, digits, ROUND_CEILING) - _log(1 + t, digits, ROUND_FLOOR)
    return rest / t - _log(1 + 1 / t, digits, ROUND_FLOOR)


def _log(value: Fraction, digits: int, rounding: str) -> Fraction:
    context = Context(prec=digits, rounding=rounding, Emin=-EXPONENT, Emax=EXPONENT)
    logarithm = context.ln(context.divide(Decimal(value.numerator), Decimal(value.denominator)))
    # Decimal.ln is correct to within half a unit in the last place: the next number is on the side it is rounded to.
    return Fraction(context.next_plus(logarithm) if rounding == ROUND_CEILING else context.next_minus(logarithm))


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
