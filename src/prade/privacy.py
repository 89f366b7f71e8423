"""What one person can change: the unit of privacy."""

from __future__ import annotations

from dataclasses import dataclass

from prade.errors import PradeError


@dataclass(frozen=True)
class Unit:
    """Add or remove one person with all of their rows, at most `max_rows` of them (the paper's Delta)."""

    max_rows: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.max_rows, int) or self.max_rows < 1:
            raise PradeError(
                f"max_rows is {self.max_rows!r}; a person has a row at least: give a whole number, 1 or more"
            )
