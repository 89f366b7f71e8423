"""What a rehearsal on public data says of a plan before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from prade.core.errors import PradeError

CLEARLY = 2  # standard errors


@dataclass(frozen=True)
class Expected:
    """What a rehearsal on public data promises: the mean distance of 2-way marginals (0 to 2), and the prior's own.

    `spread` is the standard error of the difference between the two. `advice` says in plain words what to do.
    """

    error: float
    spread: float
    prior: float
    advice: str = ""

    def __post_init__(self) -> None:
        for name in ("error", "spread", "prior"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                raise PradeError(f"{name} is {value!r}: give a number that is not negative")

    @property
    def worthwhile(self) -> bool:
        """Whether the private data are clearly expected to improve on the prior: by two standard errors."""
        return self.prior - self.error > CLEARLY * self.spread

    @property
    def harmful(self) -> bool:
        """Whether the outcome is expected to be worse than the prior by more than the spread."""
        return self.error - self.prior > self.spread

    def __str__(self) -> str:
        return f"expected error {self.error:.3f}, the prior's {self.prior:.3f} (difference to within {self.spread:.3f})"
