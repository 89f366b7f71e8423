"""A budget for several years: what is left of a cap, divided, so that no year spends what later years need.

    spent before + left * (share of year 1 + ... + share of this year)

is the most that may have been spent at any moment of this year: what a year leaves over stays for the next ones. A year
begins when somebody says so (`Ledger.next_year`), not with the calendar. What is given back, also of what was spent
before the division, may be spent from that year on; no year loses by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from prade.core.errors import BudgetError, PradeError
from prade.core.numbers import exact
from prade.privacy.budget import Budget

MOST_YEARS = 1000


@dataclass(frozen=True)
class Division:
    """What was spent before, what was left, the share of each year (they add up to 1), and the year that it is now.

    >>> division = Division(Budget.pure(1), Budget.pure(3), (Fraction(1, 3), Fraction(2, 3)))
    >>> str(division.open), str(division.of_year(2))
    ('epsilon = 2 (pure differential privacy)', 'epsilon = 2 (pure differential privacy)')
    """

    before: Budget
    left: Budget
    shares: tuple[Fraction, ...]
    year: int = 1

    def __post_init__(self) -> None:
        if sum(self.shares) != 1 or min(self.shares) <= 0 or not 1 <= self.year <= len(self.shares):
            raise ValueError(f"shares must be positive and add up to 1, got {self.shares}")

    @property
    def open(self) -> Budget:
        """The most that may have been spent by the end of this year."""
        return self.before + self.left * sum(self.shares[: self.year])

    def of_year(self, year: int) -> Budget:
        """What a year adds, the first being 1."""
        return self.left * self.shares[year - 1]

    def left_this_year(self, spent: Budget) -> Budget:
        """What may still be spent this year, given all that was spent so far."""
        return self.open - spent if spent <= self.open else spent * 0

    def refuse(self, spent: Budget, cost: Budget, what: str) -> None:
        """Refuse a cost that takes from the years to come; `what` names the data set and its ledger."""
        if not spent + cost <= self.open:
            left = self.left_this_year(spent)
            raise BudgetError(
                f"{what} is in {self.words()} and has {left} left for it, but {cost} was requested; request less",
                left,
                cost,
                remedy="next_year",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with exact fractions."""
        each = [self.of_year(year).to_dict() for year in range(1, len(self.shares) + 1)]
        return {"year": self.year, "years": each}

    def words(self) -> str:
        """The division in one line."""
        each = ", ".join(str(self.of_year(year)).partition(" (")[0] for year in range(1, len(self.shares) + 1))
        return f"year {self.year} of {len(self.shares)} ({each})"


def shares_of(years: int, parts: Sequence[Any] | None = None) -> tuple[Fraction, ...]:
    """The share of each year: equal ones, or in proportion to the `parts`, of which there is one for each year.

    >>> shares_of(2), shares_of(2, ["2", 1])
    ((Fraction(1, 2), Fraction(1, 2)), (Fraction(2, 3), Fraction(1, 3)))
    """
    if isinstance(years, bool) or not isinstance(years, int) or not 1 <= years <= MOST_YEARS:
        raise PradeError(f"years is {years!r}; give a whole number from 1 to {MOST_YEARS}")
    numbers = [Fraction(1)] * years if parts is None else [exact(part, "a share") for part in parts]
    if len(numbers) != years or min(numbers) <= 0:
        raise PradeError(
            f"shares are {', '.join(map(str, parts or ()))} for {years} years; give one positive number for each year"
        )
    return tuple(number / sum(numbers) for number in numbers)
