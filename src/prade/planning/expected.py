"""The error that rehearsals on public data lead to expect from a plan, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from prade.core.errors import PradeError

NOT_REHEARSED = (
    "The plan was not rehearsed: nobody asked for it, or there are too few public rows. Its error is unknown."
)


@dataclass(frozen=True)
class TargetError:
    """The error to expect of one thing that a target names, at one level, beside that of the public table alone.

    It is within `spread` of `error` about two times in three; `prade.planning.targets` says how each is measured.

    >>> print(TargetError("AGE x SEX", "STATE", 0.0061, 0.0012, 0.0413))
    target AGE x SEX by STATE: expected error 0.0061 ± 0.0012 (public table alone: 0.0413)
    """

    what: str
    by: str
    error: float
    spread: float
    prior: float

    def __post_init__(self) -> None:
        _check_numbers(self, "error", "spread", "prior")

    def __str__(self) -> str:
        return (
            f"target {self.what} by {self.by}: expected error {self.error:.4f} ± {self.spread:.4f} (public table "
            f"alone: {self.prior:.4f})"
        )


@dataclass(frozen=True)
class Expected:
    """The expected error: the mean distance of two-way tables (0 to 2), beside that of the public table alone.

    `prior` is the error of the public table alone. The improvement on it will be within `spread` of the expected one,
    and the error within `error_spread` of `error`, about two times in three (`prade.tuning.expectation`); plans of
    earlier versions have no `error_spread`, which is then 0. The plan's file has these names. `advice` says in plain
    words what to do. `targets` are the errors of what the task's targets name.

    >>> print(Expected(0.182, 0.011, 0.339, error_spread=0.02))
    expected error 0.182 ± 0.020 (public table alone: 0.339; improvement 0.157 ± 0.011)
    """

    error: float
    spread: float
    prior: float
    advice: str = ""
    error_spread: float = 0.0
    targets: tuple[TargetError, ...] = ()

    def __post_init__(self) -> None:
        _check_numbers(self, "error", "spread", "prior", "error_spread")

    @property
    def harmful(self) -> bool:
        """Whether the result is expected to be worse than the public table, by more than the precision of that."""
        return self.error - self.prior > self.spread

    def __str__(self) -> str:
        improvement = round(self.prior, 3) - round(self.error, 3)  # of the numbers shown, so that they add up
        precision = f" ± {self.error_spread:.3f}" if self.error_spread else ""
        return (
            f"expected error {self.error:.3f}{precision} (public table alone: {self.prior:.3f}; "
            f"improvement {improvement:.3f} ± {self.spread:.3f})"
        )


def _check_numbers(record: object, *names: str) -> None:
    for name in names:
        value = getattr(record, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise PradeError(f"{name} is {value!r}: give a number that is not negative")


def advice_of(expected: Expected | None) -> str:
    """Whether to measure, by the rehearsals of a plan; None if there were none."""
    if expected is None:
        return NOT_REHEARSED
    return expected.advice or str(expected)
