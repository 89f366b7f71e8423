"""What an adaptive mechanism may choose by: scores of true counts, each with how far one person can move it.

This list is closed: a score that is not here has no proof of its sensitivity, and the door refuses it. Scores are
whole numbers, so that what is proved of them holds for what is calculated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.errors import PradeError
from prade.parts import Marginal, Part
from prade.rounding import whole

Ints = NDArray[np.int64]

MOST_ROWS = 2**33  # more than there are people
STEPS_A_NAT = 64  # in which the dependence is counted
LARGEST_ESTIMATE = 2**60


@dataclass(frozen=True, eq=False)
class Misfit:
    """How badly an estimate answers a part: sum over cells |true count - estimated count| - penalty.

    One row more or less moves one cell of a part by one, or none; so it moves the sum by one at most. `estimate` (whole
    counts) and `penalty` (a whole number) do not depend on private rows. A part of a single query makes the score of
    MWEM, |true - estimated|.
    """

    part: Part
    estimate: Ints
    penalty: int = 0

    def __init__(self, part: Part, estimate: ArrayLike, penalty: int = 0) -> None:
        values = np.array(estimate)
        if values.shape != (part.n_cells,) or values.dtype.kind not in "iu":
            raise PradeError(
                f"{part.name}: the estimate must be {part.n_cells} whole counts, one a cell, "
                f"got {values.dtype} of shape {values.shape}"
            )
        if float(np.abs(values.astype(np.float64)).sum()) > LARGEST_ESTIMATE or not whole(penalty, -LARGEST_ESTIMATE):
            raise PradeError(f"{part.name}: the estimate or the penalty is beyond 2**60, or no whole number")
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "estimate", values.astype(np.int64))
        object.__setattr__(self, "penalty", int(penalty))

    def of(self, counts: Ints) -> int:
        """The score at these true counts."""
        return int(np.abs(counts - self.estimate).sum()) - self.penalty

    @staticmethod
    def sensitivity(rows: int) -> int:
        """How far so many rows, added or removed, move it."""
        return rows


@dataclass(frozen=True)
class Dependence:
    """How much the last column X of a marginal says about the others, P: n I(X; P), in 64ths of a nat.

    With G(c) = c log c, sums over cells, and the counts c of the marginal, a of X and b of P,

        n I(X; P) = sum G(c) + G(n) - sum G(a) - sum G(b)

    A row added to a cell moves it by g(n) + g(c) - g(a) - g(b), where g(c) = G(c + 1) - G(c) is not negative and rises.
    Since c <= a, b <= n, that lies between -g(n) and g(n), and g(n) <= log(n + 1) + 1. (Zhang et al. give the bound of
    I for exchanged rows and a known n; times n, the one for a binary X or P is g(n - 1) too.) Here n is private: the
    bound is taken at 2**33 rows, more than there are people, where it is 24 nats; at a million rows it would be 15.

    Rounding to 64ths adds at most one step to a difference; one more covers the floats, whose error is below half a
    step for up to 2**33 rows.
    """

    part: Marginal

    def __post_init__(self) -> None:
        if not isinstance(self.part, Marginal):
            raise PradeError(f"the dependence is that of a marginal's last column, got a {type(self.part).__name__}")

    def of(self, counts: Ints) -> int:
        """The score at these true counts."""
        table = counts.reshape(-1, self.part.sizes[-1])
        nats = _g_sum(table) + _g_sum(table.sum()) - _g_sum(table.sum(axis=0)) - _g_sum(table.sum(axis=1))
        return round(STEPS_A_NAT * nats)

    @staticmethod
    def sensitivity(rows: int) -> int:
        """How far so many rows, added or removed, move it."""
        return rows * math.ceil(STEPS_A_NAT * (math.log(MOST_ROWS + 1) + 1)) + 2


Score = Misfit | Dependence


def _g_sum(counts: Any) -> float:
    values = np.asarray(counts, np.float64)
    return float((values * np.log(np.maximum(values, 1.0))).sum())
