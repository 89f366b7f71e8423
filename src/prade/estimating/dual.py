"""The one problem behind MAP, the exact two-stage optimum and raking, seen from its dual side.

    primal    min over q      KL(q || p) + sum_i phi_i(y_i - (Wq)_i)
    dual      max over lam    lam . y - log sum_j p_j exp((W' lam)_j) - sum_i phi_i*(lam_i)
    q(lam)_j = p_j exp((W' lam)_j) / Z

phi_i is what a misfit r in cell i costs, phi_i* its conjugate, both given by three numbers per cell:

    phi_i*(lam) = variance_i lam^2 / 2   on   low_i <= lam <= high_i

    Laplace noise      variance 0, bounds -C .. C       phi(r) = C |r|
    Gaussian noise     variance v, no bounds            phi(r) = r^2 / 2v
    the same, robust   variance v, bounds -C .. C       phi(r) = r^2 / 2v up to |r| = C v, then C |r| - C^2 v / 2
    exact answer       variance 0, no bounds            r = 0
    r >= 0 required    variance 0, bounds -inf .. 0     (the second stage of the paper's exact problem)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.compiled import compiled
from prade.estimating.kernels import Tilted
from prade.estimating.layout import Layout

LARGEST_MULTIPLIER = 300.0  # of an answer that must hold exactly: a factor of e^-300 leaves no mass


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
    """Answers y for every cell of a layout, and the cost of missing them."""

    layout: Layout
    y: Floats
    variance: Floats
    low: Floats
    high: Floats

    @cached_property
    def rigid(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Cells whose mass must not be below the answer, and cells whose mass must not be above it."""
        exact = self.variance == 0
        return exact & np.isinf(self.high), exact & np.isinf(self.low)

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """Finite bounds that lose nothing.

        A Gaussian multiplier is (y - m) / variance at the optimum, with a mass m between 0 and 1. An answer that must
        hold exactly gets a number large enough to outbid all noisy parts together; in an unreachable cell it stays 0.
        """
        with np.errstate(divide="ignore"):
            most = np.where(self.variance > 0, (np.abs(self.y) + 1.0) / self.variance, np.inf)
        soft = np.minimum(most, np.maximum(np.abs(self.low), np.abs(self.high)))
        soft = np.where(np.isinf(soft), 0.0, soft)
        large = LARGEST_MULTIPLIER + float(np.maximum.reduceat(soft, self.layout.part_start[:-1]).sum())
        limit = np.where(self.variance > 0, most, np.where(self.layout.reachable, large, 0.0))
        below, above = (np.where(np.isinf(bound), limit, np.abs(bound)) for bound in (self.low, self.high))
        return -below, above

    def start(self) -> Floats:
        """Multipliers to start from: 0, as in the prior, except where the best one is known beforehand.

        An answer that is not positive can only be missed from above, so without a variance its multiplier belongs at
        the lower bound (an exact zero empties its cell). In an unreachable cell the answer alone decides.
        """
        low, high = self.box
        exact = self.variance == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(exact, high, self.y / self.variance)
        guess = np.where(exact & (self.y <= 0), low, np.where(self.layout.reachable, 0.0, alone))
        return np.clip(guess, low, high)

    def value(self, multipliers: Floats, tilted: Tilted) -> float:  # the dual objective
        return float(multipliers @ self.y - tilted.log_z - 0.5 * (self.variance @ multipliers**2))

    def slope(self, multipliers: Floats, tilted: Tilted) -> Floats:
        """The gradient of the dual objective: what is missing in each cell, less the noise's share."""
        return self.y - tilted.masses - self.variance * multipliers

    def certify(self, multipliers: Floats, tilted: Tilted) -> Certificate:
        """Duality gap by Fenchel and Young: sum_i phi_i(r_i) + phi_i*(lam_i) - lam_i r_i, with r = y - Wq.

        The KL terms of primal and dual cancel, so the gap needs the masses alone. A cell whose answer must hold
        exactly has no finite phi: its |lam r| counts towards the gap and its |r| towards the misfit.
        """
        gap, misfit = _gap_and_misfit(self.y, self.variance, self.low, self.high, multipliers, tilted.masses)
        kl = float(multipliers @ tilted.masses - tilted.log_z)
        return Certificate(self.value(multipliers, tilted), gap, misfit, max(kl, 0.0))

    def refuted(self, multipliers: Floats, tilted: Tilted) -> bool:
        """Whether these multipliers prove that the exact answers cannot all hold on this support (Farkas).

        Let f be the multipliers of the answers that must hold, 0 elsewhere. Every distribution q on the support has
        f . Wq <= max_j (W'f)_j, so f . y above that leaves no q with Wq = y.
        """
        short, over = self.rigid
        held = np.where((short & (multipliers > 0)) | (over & (multipliers < 0)), multipliers, 0.0)
        largest = float(np.abs(held).max())
        if largest == 0.0:
            return False
        if np.array_equal(held, multipliers):
            top = tilted.top
        else:
            top = float(self.layout.bundles.row_logits(held)[self.layout.base > 0].max())
        return float(held @ self.y) - top > 1e-9 * largest


@compiled
def _gap_and_misfit(
    y: Floats, variance: Floats, low: Floats, high: Floats, multipliers: Floats, masses: Floats
) -> tuple[float, float]:
    """`gap` and `misfit` of `Certificate`, cell by cell: solvers ask for them after every pass."""
    gap, misfit = 0.0, 0.0
    for i in range(len(y)):
        r, v, lam = y[i] - masses[i], variance[i], multipliers[i]
        bound = high[i] if r > 0 else low[i]
        if v > 0 and np.isinf(bound):
            gap += (r - v * lam) ** 2 / (2 * v)
        elif v > 0:
            best = min(max(r / v, low[i]), high[i])
            gap += (best - lam) * (r - v * (best + lam) / 2)
        elif r != 0 and np.isinf(bound):  # the answer must hold exactly, on this side at least
            gap += abs(lam * r)
            misfit += abs(r)
        elif r != 0:
            gap += (bound - lam) * r
    return gap, misfit


# ---------------------------------------------------------------------- the model behind a Newton step


class Quadratic:
    """slope . x - x' curvature x / 2 for one curvature and any slope; its factorisation is kept from step to step."""

    def __init__(self, curvature: Floats) -> None:
        # marginals overlap (each sums to one), so the curvature is singular: a trace of ridge makes it invertible.
        # It must stay below the curvature of rows whose mass is on its way to zero, or they would get there slowly.
        self.matrix = curvature.copy()
        self.matrix.flat[:: len(curvature) + 1] += 1e-11 * np.diag(curvature) + 1e-30

    @cached_property
    def _factor(self) -> Any:
        """A factorisation of the whole matrix; None where it is too near to singular."""
        from scipy.linalg import cho_factor

        try:
            return cho_factor(self.matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None

    def maximise(self, slope: Floats, low: Floats, high: Floats) -> Floats:
        """argmax over low <= x <= high: exactly where no bound holds, otherwise near enough for a Newton step."""
        from scipy.linalg import cho_solve

        x = np.zeros(len(slope))
        if self._factor is not None:
            free = np.asarray(cho_solve(self._factor, slope, check_finite=False))
            if (free >= low).all() and (free <= high).all():
                return free
            x = np.clip(free, low, high)
        return _within(self.matrix, slope, low, high, x)


def _within(matrix: Floats, slope: Floats, low: Floats, high: Floats, guess: Floats) -> Floats:
    """From a first guess, or from 0: coordinate sweeps find which bounds hold, a factorisation solves for the rest."""
    from scipy.linalg import cho_factor, cho_solve

    def unblocked() -> float:
        blocked = ((x >= high) & (left > 0)) | ((x <= low) & (left < 0))
        return float(np.abs(left[~blocked]).sum())

    def gain(candidate: Floats) -> float:
        return float(slope @ candidate - 0.5 * candidate @ (matrix @ candidate))

    x, left = np.zeros(len(slope)), slope.copy()
    goal = 1e-3 * unblocked()
    if gain(guess) > 0.0:
        x = guess
        left = slope - matrix @ x
    for _ in range(10):
        coordinate_sweeps(matrix, low, high, x, left, 30, 1e-12)
        if unblocked() <= goal:
            break
        free = (x > low) & (x < high)
        if not free.any():
            continue
        try:
            factor = cho_factor(matrix[np.ix_(free, free)], lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue  # too near to singular to factorise: coordinate sweeps alone go on
        move = np.zeros(len(slope))
        move[free] = cho_solve(factor, left[free], check_finite=False)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # next to no move has all the room
            room = np.where(move > 0, (high - x) / move, np.where(move < 0, (low - x) / move, np.inf))
        inside = np.clip(x + min(1.0, float(room.min())) * move, low, high)
        x = max((x, np.clip(x + move, low, high), inside), key=gain)
        left = slope - matrix @ x
    return x


@compiled
def coordinate_sweeps(
    curvature: Floats, low: Floats, high: Floats, x: Floats, slope: Floats, sweeps: int, tolerance: float
) -> None:
    """Coordinate ascent on  g.x - x'Hx / 2  over the box, with slope = g - Hx kept up to date."""
    for _ in range(sweeps):
        largest = 0.0
        for i in range(len(x)):
            h = curvature[i, i]
            moved = min(max(x[i] + slope[i] / h, low[i]), high[i])
            step = moved - x[i]
            if step != 0.0:
                x[i] = moved
                row = curvature[i]
                for j in range(len(x)):
                    slope[j] -= step * row[j]
                largest = max(largest, abs(step) * np.sqrt(h))
        if largest <= tolerance:
            break
