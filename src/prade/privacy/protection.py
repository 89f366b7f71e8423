"""What is protected, and how well: the unit of protection, what a budget means, weak budgets, names of data sets.

A budget is weak if its epsilon is above 20, its delta is 1/1000 or more, or its rho implies an epsilon above 20 for
delta = 10^-6. Before anything is read or spent, the user is told in numbers what such a budget means.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal, get_args

from prade.core.errors import PradeError, Remedy
from prade.core.numbers import readable, whole
from prade.privacy.budget import Budget

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class Unit:
    """What one person can change: all of their rows, at most `max_rows` of them (Delta in the paper).

    Neighbouring tables differ in one person's rows, which are added or removed ("add-remove") or exchanged for another
    person's rows ("replace"). If `person_id` names the column that identifies the person, at most `max_rows` rows per
    person are chosen at random when rows are counted, of which at most `per_group` are in any one group of any level.
    Without `person_id`, the limit is an unchecked assumption.

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
                f"max_rows is {self.max_rows!r}, but must be a whole number, 1 or more", remedy=Remedy("max_rows", 1)
            )
        object.__setattr__(self, "max_rows", int(self.max_rows))  # a small NumPy integer would overflow
        if self.person_id is not None and not (isinstance(self.person_id, str) and self.person_id):
            raise PradeError(f"person_id is {self.person_id!r}; give the column that identifies the person, or nothing")
        if self.neighbours not in get_args(Neighbours):
            raise PradeError(f"neighbours is {self.neighbours!r}; give 'add-remove' or 'replace'")
        if self.per_group is None:
            return
        if self.person_id is None or not whole(self.per_group, 1) or self.per_group > self.max_rows:
            raise PradeError(
                f"per_group is {self.per_group!r} with person_id {self.person_id!r}; give person_id, and a whole "
                f"number from 1 to max_rows ({self.max_rows}), or leave it out"
            )
        object.__setattr__(self, "per_group", int(self.per_group))

    @property
    def enforced(self) -> bool:
        """Whether the limit on a person's rows is enforced when they are counted, rather than assumed."""
        return self.person_id is not None

    @property
    def rows(self) -> int:
        """The number of rows in which neighbouring tables may differ: max_rows, or twice that for "replace"."""
        return self.max_rows if self.neighbours == "add-remove" else 2 * self.max_rows

    def promise(self) -> str:
        """In plain words: who is protected, and on what assumption."""
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"
        change = "added or removed" if self.neighbours == "add-remove" else "exchanged for another person"
        if self.person_id is None:
            bound = f"Assumed, not enforced: nobody has more than {rows}. Anyone who has more is protected less."
        else:
            groups = "" if self.per_group is None else f", at most {self.per_group} of them in any one group"
            bound = (
                f"Enforced: at most {rows} per person {'is' if self.max_rows == 1 else 'are'} counted{groups}, "
                f"chosen at random; the column {self.person_id!r} identifies the person."
            )
        return f"Protected: one person with all of their rows, {change}. {bound}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; fields that are None are left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Unit:
        names = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or "max_rows" not in values or not set(values) <= set(names):
            raise PradeError(f"a unit has max_rows, and perhaps {', '.join(names[1:])}; got {str(values)[:80]!r}")
        return cls(**values)


MOST_EPSILON = Fraction(20)
LEAST_WEAK_DELTA = Fraction(1, 1000)
USUAL_DELTA = Fraction(1, 10**6)  # the delta for which a rho is converted to an epsilon
LARGE_EPSILON = 700  # e to a larger power overflows a float


def weakness(budget: Budget) -> str | None:
    """What is weak about a budget, in numbers; None if nothing is."""
    converted = budget.kind == "zcdp"
    epsilon = budget.as_approx(USUAL_DELTA).epsilon if converted else budget.epsilon
    reasons = []
    if epsilon > MOST_EPSILON:
        at_delta = f" (at delta = {readable(USUAL_DELTA)})" if converted else ""
        reasons.append(
            "the release may change the odds that a given person is in the table by a factor of "
            f"e^{readable(epsilon).removeprefix('about ')}{at_delta}; someone who thought it a 50:50 chance may then "
            "be more than 99.9999997 % sure"
        )
    if not converted and budget.delta >= LEAST_WEAK_DELTA:
        people = readable(Fraction(int(1 / budget.delta)))
        reasons.append(
            f"a delta of {readable(budget.delta)} allows a mechanism to publish all rows of one person in {people}"
        )
    return "; ".join(reasons) or None


def refuse_weak(budget: Budget, accepted: bool) -> None:
    """Refuse a weak budget unless the caller has explicitly accepted it."""
    if not accepted and (why := weakness(budget)):
        raise PradeError(
            f"{budget} is weak protection: {why}. Nothing was read or spent. Make a plan with an epsilon of at most "
            f"{MOST_EPSILON} and a delta below {LEAST_WEAK_DELTA}",
            remedy="weak_protection",
        )


def meaning(budget: Budget, neighbours: Neighbours = "add-remove") -> str:
    removing = "Removing any one person" if neighbours == "add-remove" else "Exchanging any one person for another"
    change = f"{removing} would change the probability of any outcome"
    if budget.kind == "zcdp":
        return (
            f"{change} only as much as zero-concentrated differential privacy with rho = {readable(budget.rho)} allows."
        )
    epsilon = float(budget.epsilon)
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < LARGE_EPSILON else f"10^{math.ceil(epsilon / math.log(10)):,}"
    extra = f" and an added probability of {float(budget.delta):.2g}" if budget.delta else ""
    return f"{change} by at most a factor of {factor}{extra}."


# ---------------------------------------------------------------------- names of data sets
# Each has a budget in the ledger, so two spellings of one name must not count as two names.


# Greek and Cyrillic letters of which either case looks like a Latin letter, and below each that letter.
_LOOK_ALIKES = str.maketrans(
    "αβεζηικμνορτυχωавеѕіјкмнорстухүһӏԁԛԝ",
    "abezhikmnoptyxwabesijkmhopctyxyhldqw",
)


def dataset_name(name: object) -> str:
    """A data set's name in normal form (NFKC); a PradeError if it has invisible characters, or no letter and no digit.

    >>> dataset_name("ｃｅｎｓｕｓ ２０２０")
    'census 2020'
    """
    normal = unicodedata.normalize("NFKC", name) if isinstance(name, str) else ""
    if not normal.isprintable() or not any(character.isalnum() for character in normal):
        raise PradeError(
            f"the name of a data set is {name!a}: give one that has a letter or a digit, and no invisible characters"
        )
    return normal


def confusable(one: str, other: str) -> bool:
    """Whether two names differ only in case, spaces, punctuation, symbols or letters that look alike."""
    return _plain(one) == _plain(other)


def _plain(name: str) -> str:
    """The letters, accents and digits of a name, without case, in Latin letters where these look the same."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    return "".join(each for each in folded if unicodedata.category(each)[0] in "LMN").translate(_LOOK_ALIKES)
