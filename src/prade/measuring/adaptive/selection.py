"""Private selection by OpenDP: which of several scores is the largest, revealed with noise; it takes no seed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from prade.core.errors import PradeError
from prade.core.numbers import exact, float_above, whole

LARGEST_SCORE = 2**62


def select(scores: Sequence[int], sensitivity: int, epsilon: Fraction) -> int:
    """The index of a large score; epsilon-DP if scores of neighbouring tables differ by at most `sensitivity`.

    With s = max score and b = 2 sensitivity / epsilon, the candidates are tried in random order: candidate i is
    accepted with probability exp(-(s - score_i) / b), otherwise the next one is tried. This is permute-and-flip, which
    OpenDP uses for pure budgets: it gives the same guarantee as the exponential mechanism, whose law is proportional to
    exp(score_i / b), and its expected score is never lower.

    McSherry and Talwar: Mechanism Design via Differential Privacy (2007). McKenna and Sheldon: Permute-and-Flip
    (2020).

    >>> select([0, 1000, 3], sensitivity=1, epsilon=Fraction(50))
    1
    """
    values = [int(score) for score in scores]
    if not values or not whole(sensitivity, 1):
        raise PradeError("a selection needs at least one score and a sensitivity that is a whole number, 1 or more")
    if max(map(abs, values)) > LARGEST_SCORE:
        raise PradeError("a score is beyond 2**62; no table has that many rows")
    if (share := exact(epsilon, "epsilon")) <= 0:
        raise PradeError(f"epsilon is {share}; a selection needs an epsilon above 0")
    return _invoke(values, float(selection_scale(sensitivity, share)))


def selection_scale(sensitivity: int, epsilon: Fraction) -> Fraction:
    """b = 2 sensitivity / epsilon, rounded up to a float so that the mechanism is never less private than declared."""
    return float_above(2 * sensitivity / epsilon)


def _invoke(values: list[int], scale: float) -> int:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return int(make_noisy_max(*space, max_divergence(), scale=scale)(values))
