"""The one problem behind MAP, the exact two-stage optimum and raking, seen from its dual side.

    primal    min over q      KL(q || p) + sum_i phi_i(y_i - (Wq)_i)
    dual      max over lam    lam . y - log sum_j p_j exp((W' lam)_j) - sum_i phi_i*(lam_i)
    q(lam)_j = p_j exp((W' lam)_j) / Z

phi_i is what a misfit r in cell i costs, phi_i* its conjugate, both given by three numbers per cell:

    phi_i*(lam) = variance_i lam^2 / 2   on   low_i <= lam <= high_i

    Laplace noise      variance 0, bounds -C .. C       phi(r) = C |r|
    Gaussian noise     variance v, no bounds            phi(r) = r^2 / 2v
    exact answer       variance 0, no bounds            r = 0
    r >= 0 required    variance 0, bounds -inf .. 0     (the second stage of the paper's exact problem)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prade.kernels import LARGEST_MULTIPLIER
from prade.layout import Layout, Tilted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """How near to optimal: `value` <= optimum <= `value` + `gap` once `misfit` is zero."""

    value: float  # the dual objective, a lower bound on the primal optimum
    gap: float  # primal minus dual
    misfit: float  # L1 distance to the answers that must hold exactly (no bound on the multiplier)
    kl: float  # KL(q || p)

    @property
    def objective(self) -> float:
        """The primal objective at q."""
        return self.value + self.gap


@dataclass(frozen=True)
class Dual:
    """Answers y per cell with the cost of missing them, on a layout."""

    layout: Layout
    y: Floats
    variance: Floats
    low: Floats
    high: Floats

    @property
    def box(self) -> tuple[Floats, Floats]:
        """The bounds as numbers that can be calculated with."""
        return np.maximum(self.low, -LARGEST_MULTIPLIER), np.minimum(self.high, LARGEST_MULTIPLIER)

    def start(self) -> Floats:
        """Multipliers of the prior, except where the best one is plain from the start.

        An answer that is not positive can only be missed from above, so without a variance its multiplier belongs at
        the lower bound (an exact zero empties its cell). A cell that nobody can reach is decided by its answer alone.
        """
        low, high = self.box
        plain = self.variance == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(plain, np.where(np.isinf(self.high), 0.0, high), self.y / self.variance)
        guess = np.where(plain & (self.y <= 0), low, np.where(self.layout.reachable, 0.0, alone))
        return np.clip(guess, low, high)

    def value(self, multipliers: Floats, tilted: Tilted) -> float:
        """The dual objective."""
        return float(multipliers @ self.y - tilted.log_z - 0.5 * (self.variance @ multipliers**2))

    def slope(self, multipliers: Floats, tilted: Tilted) -> Floats:
        """Its gradient: what is missing in each cell, less the noise's share."""
        return self.y - tilted.masses - self.variance * multipliers

    def certify(self, multipliers: Floats, tilted: Tilted) -> Certificate:
        """Duality gap by Fenchel and Young: sum_i phi_i(r_i) + phi_i*(lam_i) - lam_i r_i, with r = y - Wq.

        The KL terms of primal and dual cancel, so the gap needs the masses alone. A cell whose answer must hold
        exactly has no finite phi: its |lam r| counts towards the gap and its |r| towards the misfit.
        """
        r = self.y - tilted.masses
        noisy = self.variance > 0
        bound = np.where(r > 0, self.high, self.low)
        rigid = ~noisy & np.isinf(bound) & (r != 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaussian = (r - self.variance * multipliers) ** 2 / (2 * self.variance)
            laplace = (bound - multipliers) * r
        terms = np.where(noisy, gaussian, np.where(rigid, np.abs(multipliers * r), np.where(r == 0, 0.0, laplace)))
        kl = float(multipliers @ tilted.masses - tilted.log_z)
        return Certificate(
            self.value(multipliers, tilted), float(terms.sum()), float(np.abs(r[rigid]).sum()), max(kl, 0.0)
        )

    def refuted(self, multipliers: Floats, tilted: Tilted) -> bool:
        """Whether these multipliers prove that the exact answers cannot all hold on this support (Farkas).

        Every distribution q on the support has lam . Wq <= max_j (W' lam)_j. If lam . y exceeds that by more than the
        other terms can ever cost, no q has Wq = y. Only multipliers without bounds may grow, so only they count.
        """
        free = (self.variance == 0) & np.where(multipliers > 0, np.isinf(self.high), np.isinf(self.low))
        if not free.any():
            return False
        # KL(q || p) <= log(1 / smallest p) for every q: a dual value above the largest possible primal is a proof
        smallest = float(np.log(self.layout.base[self.layout.base > 0].min()))
        r = np.abs(self.y) + 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            noisy = np.where(self.variance > 0, r**2 / (2 * self.variance), 0.0)
            bounded = np.where(free | (self.variance > 0), 0.0, np.maximum(np.abs(self.low), np.abs(self.high)) * r)
        largest = -smallest + float(noisy.sum()) + float(np.where(np.isinf(bounded), 0.0, bounded).sum())
        return self.value(multipliers, tilted) > largest
