"""Exact discrete noise on whole counts, by OpenDP: the only module that draws noise, and it takes no seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prade.core.errors import PradeError
from prade.core.execution import cores, several
from prade.privacy.noise_law import GAUSSIAN, LAPLACE, NoiseLaw, noise_law

LARGEST_COUNT = 2**53
LARGEST_SCALE = 2**53  # count plus noise beyond 2**62 might not fit 64 bits; at this scale it has probability e**-512
CELLS_PER_TASK = 500  # a few milliseconds of work, so that the threads share even the cells of one column


def add_noise(
    counts: ArrayLike, law: str, scale: Fraction, *, threads: int | None = None, cells_per_task: int = CELLS_PER_TASK
) -> NDArray[np.int64]:
    """The counts plus independent noise z on the whole numbers, as an array of the same shape.

        laplace    P(z) proportional to exp(-|z| / scale)
        gaussian   P(z) proportional to exp(-z^2 / (2 scale^2))

    Under the first law a vector with L1 sensitivity s is (s / scale)-DP; under the second a vector with L2 sensitivity
    s is (s^2 / (2 scale^2))-zCDP. `scale` is a positive fraction that a float represents exactly, as
    `Budget.noise_scale` returns it, so that the law is exactly the declared one. It is at most 2**53: noisy counts are
    64-bit numbers, and noise of a larger scale might not fit. The samplers are exact and use the operating system's
    randomness; there is no seed to set.

    Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy (2020).

    >>> add_noise([10, 20, 30], "laplace", Fraction(2)).shape
    (3,)
    """
    exact = _exact(counts)
    mechanism = _mechanism(noise_law(law), checked_scale(scale))
    flat = exact.ravel()
    pieces = [flat[start : start + cells_per_task] for start in range(0, len(flat), cells_per_task)]
    noisy = several(lambda piece: _invoke(mechanism, piece), pieces, threads or cores())
    return np.concatenate([*noisy, np.zeros(0, np.int64)]).reshape(exact.shape)


def checked_scale(scale: Fraction) -> float:
    if not isinstance(scale, Fraction):
        raise PradeError(f"scale is a {type(scale).__name__}; give the Fraction that Budget.noise_scale returns")
    if scale <= 0:
        raise PradeError(f"scale is {scale}; noise needs a scale above 0")
    try:
        nearest = float(scale)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest) or Fraction(nearest) != scale:
        raise PradeError(
            f"scale {nearest!r} is not exact as a float, so the noise would differ from the declared law; "
            "give the Fraction that Budget.noise_scale returns"
        )
    if nearest > LARGEST_SCALE:
        raise PradeError(
            f"scale is {nearest:.3g}, expected at most 2**53 ({LARGEST_SCALE:,}): noisy counts are 64-bit numbers, and "
            "larger noise might not fit; give a larger budget, or ask fewer questions"
        )
    return nearest


def _exact(counts: ArrayLike) -> NDArray[np.int64]:
    """The counts as 64-bit whole numbers; the error names no count."""
    values = np.asarray(counts)
    if values.size and values.dtype.kind not in "iu":
        raise PradeError(f"counts are of type {values.dtype}; noise is added to whole numbers only")
    if values.size and (int(values.max()) > LARGEST_COUNT or int(values.min()) < -LARGEST_COUNT):
        raise PradeError("a count is beyond 2**53; no table has that many rows")
    return values.astype(np.int64)


def _mechanism(law: NoiseLaw, scale: float) -> Any:
    # not its prelude, which loads scikit-learn where that is installed, which takes seconds and is not used
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if law == LAPLACE:
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    if law == GAUSSIAN:
        return make_gaussian(domain, l2_distance(T="i64"), scale=scale)
    raise AssertionError(f"there is no sampler of {law.words}")


def _invoke(mechanism: Any, piece: NDArray[np.int64]) -> NDArray[np.int64]:
    noisy: Sequence[int] = mechanism(piece.tolist())
    return np.asarray(noisy, dtype=np.int64)
