"""How estimates are made from a release: choices that cost no budget, may be edited, and may be made again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from prade.core.errors import EstimationError

Kind = Literal["map", "two-stage", "ide"]


@dataclass(frozen=True)
class Settings:
    """How a group's estimate is made; what `prade.tuning.tune` chooses.

    own: weight of the same group's public rows in its prior, where there are any. mixture: weight of public groups that
    resemble the group. n0: rows that the prior is worth against smoothed answers. smooth: False leaves the noisy
    answers as they are, with the squared loss and an n0 that they suggest themselves. estimator: "map" weighs answers
    by their noise; "two-stage" and "ide" are the paper's, and take the noisy answers as they are.
    """

    own: float = 0.98
    mixture: float = 0.0
    n0: float = 10.0
    smooth: bool = True
    estimator: Kind = "map"

    def __post_init__(self) -> None:
        for name in ("own", "mixture"):
            if not 0 <= getattr(self, name) <= 1:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give a weight from 0 to 1")
        if self.estimator not in get_args(Kind):
            raise EstimationError(f"estimator is {self.estimator!r}: give {', '.join(map(repr, get_args(Kind)))}")
        if not 0 < self.n0 < math.inf:
            raise EstimationError(f"n0 is {self.n0!r}: give a positive number of rows")
