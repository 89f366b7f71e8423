"""The scores by which an adaptive mechanism may choose, each with a bound on how far one person can move it.

The list is closed: no other score has a proof of its sensitivity, so the door refuses it. Scores are whole numbers, so
that what is proved about them also holds for what is computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prade.core.arrays import Ints
from prade.core.errors import PradeError
from prade.core.numbers import whole
from prade.queries.parts import Marginal, Part

MOST_ROWS = 2**33  # more than there are people
STEPS_PER_ROW = 64  # the unit in which the dependence is counted
LARGEST_ESTIMATE = 2**60


@dataclass(frozen=True, eq=False)
class Misfit:
    """How badly an estimate answers a part: sum over cells |true count - estimated count| - penalty.

    Adding or removing a row changes at most one cell of a part, by one, so it moves the sum by at most one. `estimate`
    (whole counts) and `penalty` (a whole number) do not depend on private rows. For a part with a single query this is
    MWEM's score, |true - estimated|.
    """

    part: Part
    estimate: Ints
    penalty: int = 0

    def __init__(self, part: Part, estimate: ArrayLike, penalty: int = 0) -> None:
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "estimate", _whole_counts(part, estimate, "estimate"))
        object.__setattr__(self, "penalty", _penalty(part, penalty))

    def of(self, counts: Ints) -> int:
        """The score for these true counts."""
        return int(np.abs(counts - self.estimate).sum()) - self.penalty

    @staticmethod
    def sensitivity(rows: int) -> int:
        """How far adding or removing this many rows can move the score."""
        return rows


@dataclass(frozen=True, eq=False)
class Gain:
    """How much is gained if an offer takes the place of an estimate of a part.

        sum over cells |true count - estimated count|  -  sum over cells |true count - offered count|  -  penalty

    The offer is made of public rows, say. Without one (None) the part would be asked for, its answer being as far from
    the truth as the noise is expected to be, and that is the penalty. Adding or removing a row changes at most one cell
    of a part, by one, so it moves each sum by at most one, and the difference by at most two. It moves by two if the
    true count lies between the estimated one and the offered one. `estimate`, `offer` (whole counts) and `penalty` (a
    whole number) do not depend on private rows.
    """

    part: Part
    estimate: Ints
    offer: Ints | None = None
    penalty: int = 0

    def __init__(self, part: Part, estimate: ArrayLike, offer: ArrayLike | None = None, penalty: int = 0) -> None:
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "estimate", _whole_counts(part, estimate, "estimate"))
        object.__setattr__(self, "offer", None if offer is None else _whole_counts(part, offer, "offer"))
        object.__setattr__(self, "penalty", _penalty(part, penalty))

    def of(self, counts: Ints) -> int:
        """The score for these true counts."""
        offered = 0 if self.offer is None else int(np.abs(counts - self.offer).sum())
        return int(np.abs(counts - self.estimate).sum()) - offered - self.penalty

    @staticmethod
    def sensitivity(rows: int) -> int:
        """How far adding or removing this many rows can move the score, whether there is an offer or not."""
        return 2 * rows


@dataclass(frozen=True)
class Dependence:
    """The dependence of a marginal's last column X on its other columns P: n R(X; P), in 64ths of a row.

    With the counts c of the marginal, a of X, b of P, and n of all rows,

        n R(X; P) = 1/2 sum over cells |c - a b / n|

    Adding a row to a cell moves one c by 1. Let e and f be 1 at the row's values of X and P and 0 elsewhere; then the
    row moves the products a b / n by

        (a + e) (b + f) / (n + 1) - a b / n  =  (n (a f + e b + e f) - a b) / (n (n + 1))

    whose absolute values sum to at most (n (2 n + 1) + n^2) / (n (n + 1)) < 3. So the score moves by less than
    (1 + 3) / 2 = 2, and by nearly 2 if no other row shares the new row's values of X and P. (Zhang et al. prefer R to
    the mutual information for its small sensitivity, and bound it by 3 + 2 / n for an exchanged row and a known n.)

    Rounding to 64ths adds at most one step to a difference; one more step covers floating-point error, which is below
    half a step for up to 2**33 rows.
    """

    part: Marginal

    def __post_init__(self) -> None:
        if not isinstance(self.part, Marginal):
            raise PradeError(f"a dependence score needs a marginal, got a {type(self.part).__name__}")

    def of(self, counts: Ints) -> int:
        """The score for these true counts."""
        table = counts.reshape(-1, self.part.sizes[-1]).astype(np.float64)
        independent = np.outer(table.sum(axis=1), table.sum(axis=0) / max(table.sum(), 1.0))
        return round(STEPS_PER_ROW * float(np.abs(table - independent).sum()) / 2)

    @staticmethod
    def sensitivity(rows: int) -> int:
        """How far adding or removing this many rows can move the score."""
        return 2 * STEPS_PER_ROW * rows + 2


Score = Misfit | Gain | Dependence


def _whole_counts(part: Part, given: ArrayLike, what: str) -> Ints:
    """Counts that a score compares with the true ones."""
    values = np.array(given)
    if values.shape != (part.n_cells,) or values.dtype.kind not in "iu":
        raise PradeError(
            f"{part.name}: the {what} must be {part.n_cells} whole counts, one per cell, "
            f"got {values.dtype} of shape {values.shape}"
        )
    if float(np.abs(values.astype(np.float64)).sum()) > LARGEST_ESTIMATE:
        raise PradeError(f"{part.name}: the {what} is beyond 2**60; no table has that many rows")
    return values.astype(np.int64)


def _penalty(part: Part, given: int) -> int:
    if not whole(given, -LARGEST_ESTIMATE):
        raise PradeError(f"{part.name}: the penalty is {given!r}; give a whole number, at least -2**60")
    return int(given)
