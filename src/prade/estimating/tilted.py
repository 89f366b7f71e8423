"""A distribution as solvers see it: the prior tilted by multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats
from prade.estimating.kernels import TILE


@dataclass(frozen=True)
class Tilted:
    """The distribution q_j = p_j exp(sum_k lam_k[c_k(j)]) / Z, as far as a solver needs it."""

    masses: Floats  # q's mass in every cell of every part
    log_z: float
    top: float  # the largest exponent of a row: proves unreachable answers (see `Dual.refuted`)
    weights: Floats  # unnormalised, scaled by e^-shift of their tile
    shifts: Floats

    def normalised(self) -> Floats:
        """q on the collapsed rows."""
        return normalised(self.weights, self.shifts)


def normalised(weights: Floats, shifts: Floats) -> Floats:
    """Weights that are scaled by e^-shift of their tile as shares."""
    scale, whole = np.exp(shifts - shifts.max()), len(weights) // TILE * TILE
    q = np.empty(len(weights))
    np.multiply(weights[:whole].reshape(-1, TILE), scale[: whole // TILE, None], out=q[:whole].reshape(-1, TILE))
    np.multiply(weights[whole:], scale[whole // TILE :], out=q[whole:])
    q /= q.sum()
    return q
