"""What a plan says besides its questions: settings of the estimation, and the error that rehearsals lead to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import msgspec

from prade.core.errors import EstimationError
from prade.core.numbers import whole

EstimatorName = Literal["map", "two-stage", "ide"]
Size = Annotated[float, msgspec.Meta(ge=0)]  # in a file
MOST_EXTRA = 0.5  # of the prior's weight: with more, it would no longer be the public table's


def settings_of_file(written: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a file. Those of earlier versions also had a `posterior`, and a `mixture`, which is read if 0."""
    if mixture := written.get("mixture", 0):
        raise EstimationError(
            f"mixture is {mixture!r}: version 0.10 has no priors of groups that resemble each other; remove the line, "
            "and estimate anew"
        )
    return {name: value for name, value in written.items() if name not in ("mixture", "posterior")}


@dataclass(frozen=True)
class Settings:
    """How each group's estimate is made; `prade.tuning.tune` chooses these settings.

    own: weight of the same group's public rows, where it has any, in the group's prior. n0: how many rows the prior
    counts for against smoothed answers. smooth: False uses the raw answers, with the squared loss and an n0 derived
    from them, times `trust`. estimator: "map" weights answers by their noise; "two-stage" and "ide" are the paper's,
    and use the raw answers. support: how many public rows estimates from smoothed answers start from, if the table has
    half as many more; 0 takes all. extra: share of the prior's weight on rows of no public person. unseen: whether
    values that no public row has, but that the answers show, get rows too (`prade.estimating.levels.added_rows`).
    change: by how much a group is expected to differ from its own public rows, as a share of the variance between
    public groups.
    """

    # On invented tables of earlier years, 0.8 was better than 0.98 by 3 to 13 % where places changed, and between 4 %
    # better and 2 % worse where they did not. Less gains more where places change (0.5: up to 22 %), but loses up to
    # 14 % at small budgets where they do not. The tuner tries others.
    own: float = 0.8
    n0: float = 10.0
    smooth: bool = True
    estimator: EstimatorName = "map"
    # On public rehearsals, errors of 0.19 were larger by 0.0005 with 200,000 rows of 1.5 million, by 0.001 with 100,000
    # (`benchmarks/support.py`). The more a place differs from the public table, the more rows it needs.
    support: int = 200_000
    extra: float = 0.0
    unseen: bool = True
    # An assumption: places change within a year by a sixth (the square root) of what they differ by. The next release
    # of a chain takes what the last one found (`prade.sampling.carried`).
    change: float = 0.03
    trust: float = 1.0

    def __post_init__(self) -> None:
        for name, most in (("own", 1), ("extra", MOST_EXTRA)):
            if not 0 <= getattr(self, name) <= most:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give a share from 0 to {most}")
        for name in ("n0", "change", "trust"):
            if not 0 < getattr(self, name) < math.inf:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give a positive number")
        names = {"estimator": get_args(EstimatorName), "unseen": (True, False)}
        for name, known in names.items():
            if getattr(self, name) not in known:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give {' or '.join(map(repr, known))}")
        if not whole(self.support, 0):
            raise EstimationError(f"support is {self.support!r}: give a number of public rows, or 0 for all of them")

    @property
    def thins(self) -> bool:
        """Whether a large public table is thinned: raw answers of pairs tell more of its rows apart."""
        return self.support > 0 and self.smooth and self.estimator == "map"


NOT_REHEARSED = (
    "The plan was not rehearsed: nobody asked for it, or there are too few public rows. Its error is unknown."
)


@dataclass(frozen=True)
class TargetError:
    """The error to expect of one thing that a target names, at one level, beside that of the public table alone.

    It is within `spread` of `error` about two times in three; `prade.planning.task` says how each is measured.
    """

    what: str
    by: str
    error: Size
    spread: Size
    prior: Size

    def __str__(self) -> str:
        return (
            f"target {self.what} by {self.by}: expected error {self.error:.4f} ± {self.spread:.4f} (public table "
            f"alone: {self.prior:.4f})"
        )


@dataclass(frozen=True)
class Expected:
    """The expected error: the mean distance of two-way tables (0 to 2), beside that of the public table alone.

    `prior` is the error of the public table alone. The improvement on it will be within `spread` of the expected one,
    and the error within `error_spread` of `error`, about two times in three (`prade.tuning.expectation`). The plan's
    file has these names. `advice` says in plain words what to do. `targets` are the errors of what the task's targets
    name.

    >>> print(Expected(0.182, 0.011, 0.339, error_spread=0.02))
    expected error 0.182 ± 0.020 (public table alone: 0.339; improvement 0.157 ± 0.011)
    """

    error: Size
    spread: Size
    prior: Size
    advice: str = ""
    error_spread: Size = 0.0
    targets: tuple[TargetError, ...] = ()

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
