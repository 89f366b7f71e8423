"""Private selection by OpenDP: which of several scores is the largest, told with noise; it takes no seed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import exact, float_above, whole

LARGEST_SCORE = 2**62


def select(scores: Sequence[int], sensitivity: int, epsilon: Fraction) -> int:
    """The place of a large score, epsilon-DP when no score moves by more than `sensitivity` between neighbours.

    With s = max score and b = 2 sensitivity / epsilon, candidates are taken in random order, and candidate i is the
    answer with probability exp(-(s - score_i) / b); if not, the next one is tried. This is permute-and-flip, what
    OpenDP offers for pure budgets: it promises what the exponential mechanism promises, whose law is proportional to
    exp(score_i / b), and its expected score is never lower.

    McSherry and Talwar: Mechanism Design via Differential Privacy (2007). McKenna and Sheldon: Permute-and-Flip
    (2020).

    >>> select([0, 1000, 3], sensitivity=1, epsilon=Fraction(50))
    1
    """
    values = [int(score) for score in scores]
    if not values or not whole(sensitivity, 1):
        raise PradeError("a selection needs at least one score and a sensitivity, a whole number of 1 or more")
    if max(map(abs, values)) > LARGEST_SCORE:
        raise PradeError("a score is beyond 2**62; no table has that many rows")
    if (share := exact(epsilon, "epsilon")) <= 0:
        raise PradeError(f"epsilon is {share}; a selection needs one above 0")
    return _invoke(values, float(selection_scale(sensitivity, share)))


def selection_scale(sensitivity: int, epsilon: Fraction) -> Fraction:
    """b = 2 sensitivity / epsilon, rounded up to a float: the mechanism is never less private than declared."""
    return float_above(2 * sensitivity / epsilon)


def _invoke(values: list[int], scale: float) -> int:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    return int(dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)(values))
