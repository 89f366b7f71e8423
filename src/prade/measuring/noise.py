"""Exact discrete noise on whole counts, by OpenDP: the only place where noise is drawn, and it takes no seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.errors import PradeError
from prade.core.threads import cores

if TYPE_CHECKING:
    from prade.privacy.budget import Law

LARGEST_COUNT = 2**53
LARGEST_SCALE = 2**53  # noise beyond 2**62, which 64 bits might not hold with the count, then has probability e**-512
CELLS_A_TASK = 20_000


def add_noise(counts: ArrayLike, law: Law, scale: Fraction, *, threads: int | None = None) -> NDArray[np.int64]:
    """Counts plus independent noise z on the whole numbers, an array of the same shape.

        laplace    P(z) proportional to exp(-|z| / scale)
        gaussian   P(z) proportional to exp(-z^2 / (2 scale^2))

    A vector release with L1 sensitivity s is (s / scale)-DP under the first law, one with L2 sensitivity s is
    (s^2 / (2 scale^2))-zCDP under the second. `scale` is a positive fraction that a float holds exactly, as
    `Budget.noise_scale` gives it, so that the law is the declared one to the last bit, and at most 2**53: noisy counts
    are 64-bit numbers, and beyond that some would be cut off at their ends. The samplers are exact and use
    the operating system's randomness; there is no seed to set.

    Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy (2020).

    >>> add_noise([10, 20, 30], "laplace", Fraction(2)).shape
    (3,)
    """
    exact = _exact(counts)
    mechanism = _mechanism(law, checked_scale(scale))
    flat = exact.ravel()
    pieces = [flat[start : start + CELLS_A_TASK] for start in range(0, len(flat), CELLS_A_TASK)]
    workers = min(threads or cores(), len(pieces))
    if workers <= 1:
        noisy = [_invoke(mechanism, piece) for piece in pieces]
    else:
        with ThreadPoolExecutor(workers) as pool:
            noisy = list(pool.map(lambda piece: _invoke(mechanism, piece), pieces))
    return np.concatenate([*noisy, np.zeros(0, np.int64)]).reshape(exact.shape)


def checked_scale(scale: Fraction) -> float:
    """The scale as a float that equals it."""
    if not isinstance(scale, Fraction):
        raise PradeError(f"scale is a {type(scale).__name__}; give the Fraction that Budget.noise_scale returns")
    if scale <= 0:
        raise PradeError(f"scale is {scale}; noise needs a scale above 0")
    try:
        found = float(scale)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or Fraction(found) != scale:
        raise PradeError(
            f"scale {found!r} is not exact as a float, so the noise would differ from the declared law; "
            "give the Fraction that Budget.noise_scale returns"
        )
    if found > LARGEST_SCALE:
        raise PradeError(
            f"scale is {found:.3g}, expected at most 2**53 ({LARGEST_SCALE:,}): noisy counts are 64-bit numbers, and "
            "some would be cut off at their ends; give a larger budget, or ask less"
        )
    return found


def _exact(counts: ArrayLike) -> NDArray[np.int64]:
    found = np.asarray(counts)
    if found.size and found.dtype.kind not in "iu":
        raise PradeError(f"counts are of type {found.dtype}; noise is added to whole numbers only")
    if found.size and (int(found.max()) > LARGEST_COUNT or int(found.min()) < -LARGEST_COUNT):
        raise PradeError("a count is beyond 2**53; no table has that many rows")
    return found.astype(np.int64)


def _mechanism(law: str, scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    if law == "gaussian":
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    raise PradeError(f"law is {law!r}, expected 'laplace' or 'gaussian'")


def _invoke(mechanism: Any, piece: NDArray[np.int64]) -> NDArray[np.int64]:
    noisy: Sequence[int] = mechanism(piece.tolist())
    return np.asarray(noisy, dtype=np.int64)
