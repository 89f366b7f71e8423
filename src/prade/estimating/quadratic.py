"""A concave quadratic maximised in a box: the model behind a Newton step."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.compiled import compiled


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


def maximise_in_box(curvature: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    """argmax of  slope . x - x' curvature x / 2  over low <= x <= high, near enough for a Newton step."""
    return Quadratic(curvature).maximise(slope, low, high)


def _within(matrix: Floats, slope: Floats, low: Floats, high: Floats, guess: Floats) -> Floats:
    """The maximum where bounds hold, from a first guess, or from 0 if that is better.

    Coordinate sweeps find out which; a factorisation solves for the rest exactly; repeated until the projected slope is
    small beside the slope at 0.
    """
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
