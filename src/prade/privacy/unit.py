"""The unit of protection: what one person can change in the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from prade.core.errors import PradeError, Remedy
from prade.core.numbers import whole

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class Unit:
    """What one person can change: all of their rows, at most `max_rows` of them (Delta in the paper).

    Neighbouring tables differ in one person's rows, which are added or removed ("add-remove") or exchanged for another
    person's rows ("replace"). If `person_id` names the column that identifies the person, the limit is enforced when
    the rows are counted: at most `max_rows` rows per person are chosen at random and, with `per_group`, at most
    `per_group` of them in any one group on the list of groups, at every level. Without `person_id`, the limit is an
    assumption about the table that nothing checks.

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
        object.__setattr__(self, "max_rows", int(self.max_rows))
        if self.person_id is not None and not (isinstance(self.person_id, str) and self.person_id):
            raise PradeError(
                f"person_id is {self.person_id!r}; give the name of the column that identifies the person, or leave it "
                "out"
            )
        if self.neighbours not in get_args(Neighbours):
            raise PradeError(f"neighbours is {self.neighbours!r}; give 'add-remove' or 'replace'")
        if self.per_group is None:
            return
        if not whole(self.per_group, 1) or self.per_group > self.max_rows:
            raise PradeError(
                f"per_group is {self.per_group!r}; give a whole number from 1 to max_rows ({self.max_rows}), or leave "
                "it out"
            )
        object.__setattr__(self, "per_group", int(self.per_group))
        if self.person_id is None:
            raise PradeError(
                "per_group limits each person's rows in a group, so it needs to know whose rows they are; "
                "give person_id as well"
            )

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
        """The unit that `to_dict` wrote."""
        if not isinstance(values, Mapping):
            raise PradeError(f"a unit is a table of names and values, got {str(values)[:40]!r}")
        names = [field.name for field in fields(cls)]
        if unknown := sorted(set(values) - set(names)):
            raise PradeError(f"a unit has the fields {', '.join(names)}; unknown: {', '.join(map(str, unknown))}")
        if "max_rows" not in values:
            raise PradeError("the unit has no max_rows; give the largest number of rows that one person may have")
        return cls(**values)
