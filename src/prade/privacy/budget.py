"""Exact privacy budgets: how much of one person's change to the table releases may reveal.

What one person can change is a `prade.privacy.protection.Unit`. Budgets are fractions, not floats: shares add up
exactly, and where a number must be rounded, it is rounded towards more noise or towards a larger reported cost.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal

from prade.core.errors import PradeError
from prade.core.numbers import digits_of, exact, float_above, readable, root_above
from prade.privacy.noise_law import GAUSSIAN, LAPLACE, NoiseLaw, noise_law

BudgetKind = Literal["pure", "zcdp", "approx"]
Number = int | float | str | Fraction | Decimal

_AMOUNTS: dict[BudgetKind, tuple[str, ...]] = {"pure": ("epsilon",), "zcdp": ("rho",), "approx": ("epsilon", "delta")}
LARGEST = Fraction(repr(sys.float_info.max))  # noise and its variance are computed in floats
_WORDS: dict[BudgetKind, str] = {"pure": "pure", "zcdp": "zero-concentrated", "approx": "approximate"}


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
    >>> budget.split([1, 2])
    [Budget.pure('1/3'), Budget.pure('2/3')]
    >>> sum(budget.split([1, 2])) == budget
    True
    >>> print(budget - Budget.pure(0.9))
    epsilon = 0.1 (pure differential privacy)
    >>> budget.noise_scale(l1=36, l2_squared=36)
    Fraction(36, 1)
    """

    kind: BudgetKind
    amounts: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.kind not in _AMOUNTS:
            raise PradeError(f"kind is {self.kind!r}; a budget has one of the kinds {', '.join(map(repr, _AMOUNTS))}")
        names = _AMOUNTS[self.kind]
        if len(self.amounts) != len(names):
            raise PradeError(
                f"a budget of kind {self.kind!r} needs {' and '.join(names)}; the number of amounts given is "
                f"{len(self.amounts)}"
            )
        amounts = tuple(exact(amount, name) for amount, name in zip(self.amounts, names, strict=True))
        for amount, name in zip(amounts, names, strict=True):
            if amount < 0:
                raise PradeError(f"{name} would be {readable(amount)}, but a budget is never negative")
            if amount > LARGEST:
                raise PradeError(
                    f"{name} is {readable(amount)}; a budget that large promises nothing: give a few dozen at most"
                )
            if name == "delta" and amount >= 1:
                raise PradeError(
                    f"delta is {readable(amount)}; a delta of 1 or more promises nothing: give a number far below 1"
                )
        object.__setattr__(self, "amounts", amounts)

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
        """(epsilon, delta) differential privacy. Before splitting it, see `zcdp_within`: its shares add up better."""
        return cls("approx", (exact(epsilon, "epsilon"), exact(delta, "delta")))

    # ---------------------------------------------------------------- values

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of a pure or an approx budget."""
        if self.kind == "zcdp":
            raise PradeError("a zcdp budget has an epsilon only for a given delta; use as_approx(delta)")
        return self.amounts[0]

    @property
    def rho(self) -> Fraction:
        """Rho of a zcdp budget."""
        if self.kind != "zcdp":
            other = "as_zcdp()" if self.kind == "pure" else "zcdp_within()"
            raise PradeError(f"the budget is {self.kind} and has no rho of its own; use {other}")
        return self.amounts[0]

    @property
    def delta(self) -> Fraction:
        """Delta of an approx budget; 0 for a pure one."""
        if self.kind == "zcdp":
            raise PradeError("a zcdp budget has an epsilon for every delta; choose one with as_approx(delta)")
        return self.amounts[1] if self.kind == "approx" else Fraction(0)

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise that this kind of budget uses unless another one is chosen."""
        return LAPLACE if self.kind == "pure" else GAUSSIAN

    def __repr__(self) -> str:
        return f"Budget.{self.kind}({', '.join(repr(str(amount)) for amount in self.amounts)})"

    def __str__(self) -> str:
        named = zip(_AMOUNTS[self.kind], self.amounts, strict=True)
        text = " and ".join(f"{name} = {readable(amount)}" for name, amount in named)
        return f"{text} ({_WORDS[self.kind]} differential privacy)"

    def to_dict(self) -> dict[str, str]:
        """The kind, and its numbers as exact fractions in text form."""
        return {"kind": self.kind, **dict(zip(_AMOUNTS[self.kind], map(str, self.amounts), strict=True))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Budget:
        """The budget that `to_dict` wrote."""
        if not isinstance(values, Mapping):
            raise PradeError(f"a budget is a table of names and values, got {str(values)[:40]!r}")
        for kind, names in _AMOUNTS.items():
            if values.get("kind") == kind and set(values) == {"kind", *names}:
                return cls(kind, tuple(exact(values[name], name) for name in names))
        forms = "; ".join(f"kind {kind!r} with {' and '.join(names)}" for kind, names in _AMOUNTS.items())
        raise PradeError(
            f"a budget is one of: {forms}; got kind {values.get('kind')!r} with the fields {sorted(map(str, values))}"
        )

    # ---------------------------------------------------------------- arithmetic

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.kind, tuple(a + b for a, b in self._beside(other)))

    def __radd__(self, other: object) -> Budget:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts from 0

    def __sub__(self, other: Budget) -> Budget:
        return Budget(self.kind, tuple(a - b for a, b in self._beside(other)))

    def __mul__(self, factor: Number) -> Budget:
        return Budget(self.kind, tuple(amount * exact(factor, "the factor") for amount in self.amounts))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> Budget:
        if (by := exact(divisor, "the divisor")) == 0:
            raise PradeError("a budget cannot be divided by 0")
        return self * (1 / by)

    # This is a partial order: neither of approx(1, 1e-6) and approx(2, 1e-9) is within the other. So to test whether
    # a is too much, write `not a <= b`.
    def __le__(self, other: Budget) -> bool:
        return all(a <= b for a, b in self._beside(other))

    def __ge__(self, other: Budget) -> bool:
        return all(a >= b for a, b in self._beside(other))

    def __lt__(self, other: Budget) -> bool:
        return self <= other and self != other

    def __gt__(self, other: Budget) -> bool:
        return self >= other and self != other

    def split(self, weights: Iterable[Number]) -> list[Budget]:
        """Shares in proportion to the weights; they add up to the budget exactly."""
        exact_weights = [exact(weight, "a weight") for weight in weights]
        if not exact_weights or min(exact_weights) < 0 or sum(exact_weights) == 0:
            raise PradeError("a budget is split by weights; give at least one, none of them negative and not all 0")
        total = sum(exact_weights)
        return [self * (weight / total) for weight in exact_weights]

    def _beside(self, other: object) -> zip[tuple[Fraction, Fraction]]:
        if not isinstance(other, Budget):
            raise PradeError(f"expected a Budget.{self.kind}(...), got {other!r}")
        if self.kind != other.kind:
            raise PradeError(
                f"budgets of the kinds {self.kind!r} and {other.kind!r} cannot be added or compared; "
                "convert one of them first, with as_zcdp() or as_approx(delta)"
            )
        return zip(self.amounts, other.amounts, strict=True)

    # ---------------------------------------------------------------- conversions

    def as_zcdp(self) -> Budget:
        """The rho that this budget implies: epsilon^2 / 2 for a pure one (Bun and Steinke 2016, proposition 1.4)."""
        if self.kind == "approx":
            raise PradeError("(epsilon, delta) does not imply a rho; zcdp_within() gives the rho to spend within it")
        return self if self.kind == "zcdp" else Budget.zcdp(self.epsilon**2 / 2)

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

        Split this budget rather than the approx one: k equal shares of rho need sqrt(k) times the noise of the whole,
        whereas k equal shares of (epsilon, delta), each converted to noise, need nearly k times the noise.

        >>> Budget.approx(1, 1e-9).zcdp_within().as_approx(1e-9) <= Budget.approx(1, 1e-9)
        True
        """
        if self.kind != "approx":
            raise PradeError(f"the budget is {self.kind}; zcdp_within() is for approx budgets only")
        return Budget.zcdp(rho_within(self.epsilon, self._positive_delta()))

    def _positive_delta(self) -> Fraction:
        if self.delta == 0:
            raise PradeError(
                f"delta is {readable(self.delta)}, but Gaussian noise needs a delta between 0 and 1; "
                "give one, or use a pure budget"
            )
        return self.delta

    # ---------------------------------------------------------------- noise

    def noise_budget(self, law: str | None = None) -> Budget:
        """The budget that a release splits among its questions if all of its noise has this law (default: `law`).

            kind      laplace          gaussian
            pure      itself           refused: no epsilon bounds it
            zcdp      itself           itself
            approx    pure(epsilon)    zcdp_within()

        *Laplace noise within (epsilon, delta).* If the shares of the questions add up to pure(epsilon), the release is
        epsilon-DP, which is (epsilon, 0)-DP, and a larger delta promises less. Its entry in a ledger is the whole
        (epsilon, delta) all the same, so it adds up with other releases as any (epsilon, delta) does. With m tables b
        grows with m and sigma with sqrt(m): Laplace noise is better for few tables, Gaussian noise for many.

        *Laplace noise within rho.* Let neighbouring tables change count i by d_i. With noise of scale b the two laws of
        the noisy count differ by a factor of at most exp(|d_i| / b), so their Renyi divergence of order a is at most
        a d_i^2 / (2 b^2) (Bun and Steinke 2016, proposition 3.3). The noise of different counts is independent, so the
        divergences add up to at most a l2_squared / (2 b^2): `noise_scale` gives b as it gives sigma, and `cost_of` is
        right for both. But the variance is 2 b^2 instead of sigma^2.

        >>> Budget.approx(1, 1e-9).noise_budget("laplace")
        Budget.pure('1')
        """
        chosen = self.law if law is None else noise_law(law)
        if self.kind == "pure" and chosen.norm == 2:
            raise PradeError(
                f"{chosen.words} keeps no pure budget, whatever its scale: use {self.law.words}, or a budget with a "
                "delta"
            )
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
        change = self._largest_change(l1, l2_squared)
        if change == 0:
            return Fraction(0)
        if not any(self.amounts):
            raise PradeError(
                "this share of the budget is 0, and no noise is large enough for that; give a larger share"
            )
        if self.kind != "approx":
            return float_above(change / self.epsilon if self.kind == "pure" else root_above(change / (2 * self.rho)))
        scale = self.zcdp_within().noise_scale(l1, l2_squared)
        # The two directions of the conversion are optimised separately: make sure that their last digits agree.
        slack = Fraction(1, 2**52)
        while not self.cost_of(scale, l1, l2_squared) <= self:
            scale, slack = float_above(scale * (1 + slack)), 2 * slack
        return scale

    def cost_of(self, scale: float | Fraction, l1: int | Fraction, l2_squared: int | Fraction) -> Budget:
        """The cost of a release with this noise scale, as a budget of this kind (and delta); never too low.

        The noise has the distribution `law`, or under zCDP either one; `l1` and `l2_squared` are as in `noise_scale`. A
        float is taken at its exact binary value, because the noise is drawn with that value.

        >>> Budget.zcdp(1).cost_of(scale=10, l1=4, l2_squared=8)
        Budget.zcdp('1/25')
        """
        change = self._largest_change(l1, l2_squared)
        finite = isinstance(scale, float) and math.isfinite(scale) and scale >= 0
        exact_scale = Fraction(float(scale)) if finite else _not_negative(scale, "scale")
        if change == 0:
            return self * 0
        if exact_scale == 0:
            raise PradeError("counts without noise would cost more than any budget; give a scale above 0")
        if self.kind == "pure":
            return Budget.pure(change / exact_scale)
        cost = Budget.zcdp(change / (2 * exact_scale**2))
        return cost if self.kind == "zcdp" else cost.as_approx(self._positive_delta())

    def _largest_change(self, l1: object, l2_squared: object) -> Fraction:
        """The one of the two bounds that this kind of noise needs; both are checked."""
        bounds = _not_negative(l1, "l1"), _not_negative(l2_squared, "l2_squared")
        return bounds[0] if self.kind == "pure" else bounds[1]


def _not_negative(value: object, name: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Rational) or (number := exact(value, name)) < 0:
        hint = "; it is the square of the L2 norm, because the root may not be exact" if name == "l2_squared" else ""
        raise PradeError(f"{name} is {value!r}; give an int or Fraction that is not negative{hint}")
    return number


# ---------------------------------------------------------------------- conversions


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
