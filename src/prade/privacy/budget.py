"""What is promised, and to whom: the unit of privacy, and budgets as exact values.

A `Unit` says what one person can change, a `Budget` how much of that change may show. Budgets are fractions, not
floats: shares add up to the whole, and where a number must be rounded, it is rounded towards more noise or towards a
larger claimed cost.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal, get_args

from prade.core.errors import PradeError
from prade.core.numbers import exact, float_above, readable, root_above, whole
from prade.privacy.conversion import epsilon_of, rho_within

Law = Literal["laplace", "gaussian"]  # of the noise
Neighbours = Literal["add-remove", "replace"]
Kind = Literal["pure", "zcdp", "approx"]
Number = int | float | str | Fraction | Decimal

_AMOUNTS: dict[Kind, tuple[str, ...]] = {"pure": ("epsilon",), "zcdp": ("rho",), "approx": ("epsilon", "delta")}
LARGEST = Fraction(repr(sys.float_info.max))  # noise and its variance are worked out in floats
_WORDS: dict[Kind, str] = {"pure": "pure", "zcdp": "zero-concentrated", "approx": "approximate"}


@dataclass(frozen=True)
class Unit:
    """What one person can change: all of their rows, of which at most `max_rows` (the paper's Delta) count.

    Neighbouring tables differ by one person's rows, added or removed ("add-remove"), or exchanged for another
    person's ("replace"). With `person_id`, the column that says whose row it is, the bound is to be enforced where
    the rows are counted: a random choice keeps at most max_rows rows of a person and, with `per_group`, at most that
    many in one group of the whole list of groups, at every level. Without it the bound is a statement about the table,
    which nothing checks.

    >>> Unit(7).enforced, Unit(7, person_id="ID").enforced
    (False, True)
    >>> Unit(7, neighbours="replace").rows
    14
    """

    max_rows: int = 1
    person_id: str | None = None
    per_group: int | None = None
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        if not whole(self.max_rows, 1):
            raise PradeError(
                f"max_rows is {self.max_rows!r}; a person has a row at least: give a whole number, 1 or more"
            )
        object.__setattr__(self, "max_rows", int(self.max_rows))
        if self.person_id is not None and not (isinstance(self.person_id, str) and self.person_id):
            raise PradeError(
                f"person_id is {self.person_id!r}; give the name of the column that says whose row it is, or none"
            )
        if self.neighbours not in get_args(Neighbours):
            raise PradeError(f"neighbours is {self.neighbours!r}; give 'add-remove' or 'replace'")
        if self.per_group is None:
            return
        if not whole(self.per_group, 1) or self.per_group > self.max_rows:
            raise PradeError(
                f"per_group is {self.per_group!r}; give a whole number from 1 to max_rows ({self.max_rows}), or None"
            )
        object.__setattr__(self, "per_group", int(self.per_group))
        if self.person_id is None:
            raise PradeError("per_group drops a person's rows and must know whose they are: give person_id as well")

    @property
    def enforced(self) -> bool:
        """Whether the bound on a person's rows is imposed when they are counted, rather than believed."""
        return self.person_id is not None

    @property
    def rows(self) -> int:
        """The rows by which neighbouring tables may differ: max_rows, or twice as many for "replace"."""
        return self.max_rows if self.neighbours == "add-remove" else 2 * self.max_rows

    def promise(self) -> str:
        """In plain words: what is protected, and what that rests on."""
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"
        change = "added or removed" if self.neighbours == "add-remove" else "exchanged for another person"
        if self.person_id is None:
            bound = f"Assumed, not enforced: nobody has more than {rows}. Whoever has more is protected less."
        else:
            groups = "" if self.per_group is None else f", at most {self.per_group} of them in one group"
            bound = (
                f"Enforced: at most {rows} of a person {'is' if self.max_rows == 1 else 'are'} counted{groups}, "
                f"chosen at random; the column {self.person_id!r} says whose row it is."
            )
        return f"Protected: one person with all of their rows, {change}. {bound}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a file holds them; what is None is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Unit:
        """The unit that `to_dict` wrote."""
        if not isinstance(values, Mapping):
            raise PradeError(f"a unit is written as names with values, got {str(values)[:40]!r}")
        names = [field.name for field in fields(cls)]
        if unknown := sorted(set(values) - set(names)):
            raise PradeError(f"a unit is made of {', '.join(names)}; unknown: {', '.join(map(str, unknown))}")
        if "max_rows" not in values:
            raise PradeError("the unit does not say max_rows; write down the most rows that one person may have")
        return cls(**values)


@dataclass(frozen=True, repr=False)
class Budget:
    """How much may be learnt about one unit: one exact number, or two, adding up from release to release.

    pure(epsilon)           P(M(x) in S) <= e^epsilon P(M(y) in S)               paid in Laplace noise
    zcdp(rho)               Renyi divergence of M(x) from M(y) of order a        paid in Gaussian noise
                            at most a rho, for every a > 1
    approx(epsilon, delta)  P(M(x) in S) <= e^epsilon P(M(y) in S) + delta       paid in Gaussian noise

    for neighbouring tables x, y and every set S of releases. Budgets of a kind add up, also when one release is
    chosen by looking at another. A float stands for the decimal number that it prints as: 0.1 is a tenth.

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

    kind: Kind
    amounts: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if self.kind not in _AMOUNTS:
            raise PradeError(f"kind is {self.kind!r}; a budget is {', '.join(map(repr, _AMOUNTS))}")
        names = _AMOUNTS[self.kind]
        if len(self.amounts) != len(names):
            raise PradeError(f"a {self.kind} budget is made of {' and '.join(names)}; got {len(self.amounts)} numbers")
        amounts = tuple(exact(amount, name) for amount, name in zip(self.amounts, names, strict=True))
        for amount, name in zip(amounts, names, strict=True):
            if amount < 0:
                raise PradeError(f"{name} would be {readable(amount)}, but a budget is never negative")
            if amount > LARGEST:
                raise PradeError(
                    f"{name} is {readable(amount)}; such a budget promises nothing: give one of at most a few dozen"
                )
            if name == "delta" and amount >= 1:
                raise PradeError(f"delta is {readable(amount)}; from 1 on nothing is promised: give one far below 1")
        object.__setattr__(self, "amounts", amounts)

    @classmethod
    def pure(cls, epsilon: Number) -> Budget:
        """Pure differential privacy: nothing becomes more than e^epsilon times as likely by one person."""
        return cls("pure", (exact(epsilon, "epsilon"),))

    @classmethod
    def zcdp(cls, rho: Number) -> Budget:
        """Zero-concentrated differential privacy (Bun and Steinke 2016): what Gaussian noise adds up in best."""
        return cls("zcdp", (exact(rho, "rho"),))

    @classmethod
    def approx(cls, epsilon: Number, delta: Number) -> Budget:
        """(epsilon, delta) differential privacy. Before splitting it, see `zcdp_within`: that adds up better."""
        return cls("approx", (exact(epsilon, "epsilon"), exact(delta, "delta")))

    # ---------------------------------------------------------------- what it is

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of a pure or an approx budget."""
        if self.kind == "zcdp":
            raise PradeError("a zcdp budget has an epsilon only at a given delta: use as_approx(delta)")
        return self.amounts[0]

    @property
    def rho(self) -> Fraction:
        """Rho of a zcdp budget."""
        if self.kind != "zcdp":
            other = "as_zcdp()" if self.kind == "pure" else "zcdp_within()"
            raise PradeError(f"the budget is {self.kind} and has no rho of its own: use {other}")
        return self.amounts[0]

    @property
    def delta(self) -> Fraction:
        """Delta of an approx budget; 0 for a pure one."""
        if self.kind == "zcdp":
            raise PradeError("a zcdp budget allows any delta, each with its epsilon: use as_approx(delta)")
        return self.amounts[1] if self.kind == "approx" else Fraction(0)

    @property
    def law(self) -> Law:
        """The noise that this kind of budget is paid in."""
        return "laplace" if self.kind == "pure" else "gaussian"

    def __repr__(self) -> str:
        return f"Budget.{self.kind}({', '.join(repr(str(amount)) for amount in self.amounts)})"

    def __str__(self) -> str:
        named = zip(_AMOUNTS[self.kind], self.amounts, strict=True)
        text = " and ".join(f"{name} = {readable(amount)}" for name, amount in named)
        return f"{text} ({_WORDS[self.kind]} differential privacy)"

    def to_dict(self) -> dict[str, str]:
        """The kind, and its numbers as texts of exact fractions."""
        return {"kind": self.kind, **dict(zip(_AMOUNTS[self.kind], map(str, self.amounts), strict=True))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Budget:
        """The budget that `to_dict` wrote."""
        if not isinstance(values, Mapping):
            raise PradeError(f"a budget is written as names with values, got {str(values)[:40]!r}")
        for kind, names in _AMOUNTS.items():
            if values.get("kind") == kind and set(values) == {"kind", *names}:
                return cls(kind, tuple(exact(values[name], name) for name in names))
        forms = "; ".join(f"kind {kind!r} with {' and '.join(names)}" for kind, names in _AMOUNTS.items())
        raise PradeError(f"a budget is written as {forms}; got {sorted(map(str, values))}, {values.get('kind')!r}")

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

    # A partial order: of approx(1, 1e-6) and approx(2, 1e-9) neither is within the other, so test `not a <= b`
    # where "a is too much" is meant.
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
        parts = [exact(weight, "a weight") for weight in weights]
        if not parts or min(parts) < 0 or sum(parts) == 0:
            raise PradeError("a budget is split by weights: give at least one, none negative and not all 0")
        total = sum(parts)
        return [self * (part / total) for part in parts]

    def _beside(self, other: object) -> zip[tuple[Fraction, Fraction]]:
        if not isinstance(other, Budget):
            raise PradeError(f"expected a Budget.{self.kind}(...), got {other!r}")
        if self.kind != other.kind:
            raise PradeError(
                f"a {self.kind} and a {other.kind} budget neither add up nor compare; "
                "say first what one is in the other's kind: as_zcdp(), as_approx(delta)"
            )
        return zip(self.amounts, other.amounts, strict=True)

    # ---------------------------------------------------------------- other kinds

    def as_zcdp(self) -> Budget:
        """The rho that this budget implies: epsilon^2 / 2 for a pure one (Bun and Steinke 2016, proposition 1.4)."""
        if self.kind == "approx":
            raise PradeError("(epsilon, delta) implies no rho; zcdp_within() is the rho that may be spent within it")
        return self if self.kind == "zcdp" else Budget.zcdp(self.epsilon**2 / 2)

    def as_approx(self, delta: Number) -> Budget:
        """The (epsilon, delta) that this budget implies at a delta, rounded up; a pure one needs no delta, it stays 0.

        >>> print(Budget.zcdp("1/8").as_approx(1e-9))
        epsilon = about 3.05813 and delta = 1e-9 (approximate differential privacy)
        """
        if self.kind == "approx":
            raise PradeError("the budget is approx already; what it implies at another delta is not known")
        at = Budget.approx(0, delta)._positive_delta()
        if self.kind == "pure" or self.rho == 0:
            return Budget.approx(self.amounts[0], 0)
        return Budget.approx(epsilon_of(self.rho, at), at)

    def zcdp_within(self) -> Budget:
        """The largest rho that may be spent so that an approx budget is kept, rounded down.

        Split this one: k equal shares of rho need sqrt(k) times the noise of the whole, while k equal shares of
        (epsilon, delta), each turned into noise, need nearly k times as much.

        >>> Budget.approx(1, 1e-9).zcdp_within().as_approx(1e-9) <= Budget.approx(1, 1e-9)
        True
        """
        if self.kind != "approx":
            raise PradeError(f"the budget is {self.kind}; only within an approx one is there a rho to be found")
        return Budget.zcdp(rho_within(self.epsilon, self._positive_delta()))

    def _positive_delta(self) -> Fraction:
        if self.delta == 0:
            raise PradeError(
                f"delta is {readable(self.delta)}; Gaussian noise needs one between 0 and 1: give it, or none at all"
            )
        return self.delta

    # ---------------------------------------------------------------- noise

    def noise_scale(self, l1: int | Fraction, l2_squared: int | Fraction) -> Fraction:
        """The scale of the noise that this budget pays for: a fraction that a float holds, never too small.

        pure:    b >= l1 / epsilon, for discrete Laplace noise, P(z) ~ exp(-|z| / b)
        zcdp:    sigma^2 >= l2_squared / (2 rho), for discrete Gaussian noise, P(z) ~ exp(-z^2 / (2 sigma^2))
        approx:  sigma as for `zcdp_within`

        `l1` and `l2_squared` bound how far *all* counts of the release together move between neighbouring tables:
        sum |change| and sum change^2. When a row satisfies at most m = workload.per_row queries, that is unit.rows * m
        and unit.rows^2 * m. Proofs: two discrete Laplace laws differ by exp(|shift| / b) at most, count by count; for
        Gaussian noise Canonne, Kamath and Steinke 2020, theorem 14.
        """
        moved = self._moved(l1, l2_squared)
        if moved == 0:
            return Fraction(0)
        if not any(self.amounts):
            raise PradeError("this share of the budget is 0, and no noise is large enough for it; give it some")
        if self.kind != "approx":
            return float_above(moved / self.epsilon if self.kind == "pure" else root_above(moved / (2 * self.rho)))
        scale = self.zcdp_within().noise_scale(l1, l2_squared)
        # The conversion is optimised apart in its two directions: make sure that the last digits agree.
        slack = Fraction(1, 2**52)
        while not self.cost_of(scale, l1, l2_squared) <= self:
            scale, slack = float_above(scale * (1 + slack)), 2 * slack
        return scale

    def cost_of(self, scale: float | Fraction, l1: int | Fraction, l2_squared: int | Fraction) -> Budget:
        """What a release with noise of this scale costs, in this budget's kind (and at its delta); never too little.

        The noise is of this kind's law; `l1` and `l2_squared` are as in `noise_scale`. A float is taken at its binary
        value, because that is what the noise is drawn with.

        >>> Budget.zcdp(1).cost_of(scale=10, l1=4, l2_squared=8)
        Budget.zcdp('1/25')
        """
        moved = self._moved(l1, l2_squared)
        finite = isinstance(scale, float) and math.isfinite(scale) and scale >= 0
        width = Fraction(float(scale)) if finite else _not_negative(scale, "scale")
        if moved == 0:
            return self * 0
        if width == 0:
            raise PradeError("true counts without noise cost more than any budget; give a scale above 0")
        if self.kind == "pure":
            return Budget.pure(moved / width)
        cost = Budget.zcdp(moved / (2 * width**2))
        return cost if self.kind == "zcdp" else cost.as_approx(self._positive_delta())

    def _moved(self, l1: object, l2_squared: object) -> Fraction:
        """The bound that this kind of noise needs, once both are known to be sound."""
        sums = _not_negative(l1, "l1"), _not_negative(l2_squared, "l2_squared")
        return sums[0] if self.kind == "pure" else sums[1]


def _not_negative(value: object, name: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Rational) or (number := exact(value, name)) < 0:
        hint = "; of the L2 norm give the square, the root may have no exact value" if name == "l2_squared" else ""
        raise PradeError(f"{name} is {value!r}; give an exact number that is not negative, int or Fraction{hint}")
    return number
