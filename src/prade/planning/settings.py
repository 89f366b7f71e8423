"""Settings of the estimation: they cost no budget and may be changed after measuring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from prade.core.errors import EstimationError

EstimatorName = Literal["map", "two-stage", "ide"]
PosteriorName = Literal["laplace", "linear"]
# settings that files of earlier versions leave out, and what they mean
IN_EARLIER_FILES = {"posterior": "linear", "support": 0, "extra": 0.0, "unseen": False, "change": 0.03, "trust": 1.0}
MOST_EXTRA = 0.5  # of the prior's weight: with more, it would no longer be the public table's


@dataclass(frozen=True)
class Settings:
    """How each group's estimate is made; `prade.tuning.tune` chooses these settings.

    own: weight of the same group's public rows, where it has any, in the group's prior. mixture: weight of public
    groups that resemble the group. n0: how many rows the prior counts for against smoothed answers. smooth: False uses
    the raw answers, with the squared loss and an n0 derived from them, times `trust`. estimator: "map" weights answers
    by their noise; "two-stage" and "ide" are the paper's, and use the raw answers. posterior: "laplace" smooths answers
    under the law of Laplace noise, "linear" as if that noise were Gaussian; with Gaussian noise both are the same.
    support: how many public rows estimates from smoothed answers start from, if the table has half as many more; 0
    takes all of them (`prade.estimating.levels.thinning`). extra: share of the prior's weight on rows of no public
    person: all other rows of a small domain, or crossings of public rows. unseen: whether values that no public row
    has, but that the answers show, get rows too (`prade.estimating.levels.added_rows`). change: by how much a group is
    expected to differ from its own public rows, as a share of the variance between public groups; answers that say more
    about it decide.
    """

    # On invented tables of earlier years, 0.8 was better than 0.98 by 3 to 13 % where places changed, and between 4 %
    # better and 2 % worse where they did not. Less gains more where places change (0.5: up to 22 %), but loses up to
    # 14 % at small budgets where they do not. The tuner tries others.
    own: float = 0.8
    mixture: float = 0.0
    n0: float = 10.0
    smooth: bool = True
    estimator: EstimatorName = "map"
    posterior: PosteriorName = "laplace"
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
        for name in ("own", "mixture"):
            if not 0 <= getattr(self, name) <= 1:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give a weight from 0 to 1")
        if not 0 <= self.extra <= MOST_EXTRA:
            raise EstimationError(f"extra is {self.extra!r}: give a share of the prior's weight from 0 to {MOST_EXTRA}")
        if not isinstance(self.unseen, bool):
            raise EstimationError(f"unseen is {self.unseen!r}: give true or false")
        for name, known in (("estimator", get_args(EstimatorName)), ("posterior", get_args(PosteriorName))):
            if getattr(self, name) not in known:
                raise EstimationError(f"{name} is {getattr(self, name)!r}: give {' or '.join(map(repr, known))}")
        if not 0 < self.n0 < math.inf:
            raise EstimationError(f"n0 is {self.n0!r}: give a positive number of rows")
        if not 0 < self.change < math.inf:
            raise EstimationError(f"change is {self.change!r}: give a positive number, 1 for as much as groups differ")
        if not 0 < self.trust < math.inf:
            raise EstimationError(f"trust is {self.trust!r}: give a positive number, such as 3")
        if isinstance(self.support, bool) or not isinstance(self.support, int) or self.support < 0:
            raise EstimationError(f"support is {self.support!r}: give a number of public rows, or 0 for all of them")

    @property
    def thins(self) -> bool:
        """Whether a large public table is thinned: raw answers of pairs tell more of its rows apart."""
        return self.support > 0 and self.smooth and self.estimator == "map"
