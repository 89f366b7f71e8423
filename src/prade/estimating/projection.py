"""The distribution nearest to a noisy answer (the projection inside Algorithm 1)."""

from __future__ import annotations

import numpy as np

from prade.core.arrays import Floats


def nearest_l1(y: Floats, reference: Floats, *, covers: bool) -> Floats:
    """The L1-nearest z >= 0 to y with sum 1 (at most 1 if the part does not cover everything).

    There are many such z: y = (0.7, 0.7) has (0.3, 0.7), (0.5, 0.5) and (0.7, 0.3) all at distance 0.4. With
    y+ = max(y, 0) they are all z <= y+ when y+ sums to more than 1, all z >= y+ when it sums to less. Taken is the one
    with the least KL divergence from `reference`, the current masses r:

        min(y+, c r)  or  max(y+, c r),  with c such that the sum is 1.

    >>> nearest_l1(np.array([0.7, 0.7]), np.array([0.9, 0.1]), covers=True)
    array([0.7, 0.3])
    """
    z = np.maximum(y, 0.0)
    total = z.sum()
    if total > 1.0:
        return _capped(z, reference)
    if total < 1.0 and covers:
        return _raised(z, reference)
    return np.asarray(z)


def nearest_l2(y: Floats, reference: Floats, *, covers: bool) -> Floats:
    """The Euclidean-nearest z >= 0 with sum 1 (at most 1): another member of the L1-nearest set."""
    z = np.maximum(y, 0.0)
    if not covers and z.sum() <= 1.0:
        return np.asarray(z)
    ordered = np.sort(y)[::-1]
    shift = (np.cumsum(ordered) - 1.0) / np.arange(1, len(y) + 1)
    kept = np.flatnonzero(ordered > shift)[-1]
    return np.asarray(np.maximum(y - shift[kept], 0.0))


def _capped(z: Floats, reference: Floats) -> Floats:
    """min(z, c r) with sum 1, given that z sums to more."""
    held = reference > 0
    if z[held].sum() <= 1.0:
        # what is left must go where the reference has nothing, and no KL tells how: in proportion to the answer
        rest = np.where(held, 0.0, z)
        return np.asarray(np.where(held, z, rest * (1.0 - z[held].sum()) / rest.sum()))
    level, mass = z[held], reference[held]
    order = np.argsort(level / mass)
    below = np.concatenate([[0.0], np.cumsum(level[order])[:-1]])  # cells that stay under c r
    above = np.cumsum(mass[order][::-1])[::-1]
    c = (1.0 - below) / above
    # the first cell whose own threshold z/r is beyond the c that it would give
    fits = c * mass[order] <= level[order]
    fits[-1] = True  # by construction, whatever rounding says
    chosen = c[np.argmax(fits)]
    return np.asarray(np.where(held, np.minimum(z, chosen * reference), 0.0))


def _raised(z: Floats, reference: Floats) -> Floats:
    """max(z, c r) with sum 1, given that z sums to less."""
    held = reference > 0
    if not held.any():
        return np.asarray(z + (1.0 - z.sum()) / len(z))
    level, mass = z[held], reference[held]
    order = np.argsort(level / mass)
    inside = np.cumsum(mass[order])  # cells that are raised to c r
    outside = z.sum() - np.cumsum(level[order])
    c = (1.0 - outside) / inside
    following = np.concatenate([(level / mass)[order][1:], [np.inf]])
    chosen = c[np.argmax(c <= following)]
    return np.asarray(np.maximum(z, chosen * reference))
