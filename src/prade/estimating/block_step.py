"""The exact maximum of the dual over one part's multipliers, compiled: a block step of `BlockAscent`."""

from __future__ import annotations

from functools import cache

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.compiled import compiled
from prade.estimating.kernels import exponentials

SMALLEST_MASS = 1e-300  # of a cell that has rows, whatever rounding made of it
LARGEST_RATIO = 1e304  # still a finite number, and no weight needs a larger factor


@compiled
def wright_omega(z: float) -> float:
    """The w > 0 with w + log w = z."""
    if z < -40.0:
        return float(np.exp(z))
    w = float(np.exp(z)) if z < 1.0 else z - float(np.log(z))
    for _ in range(20):
        step = (w + float(np.log(w)) - z) / (1.0 + 1.0 / w)
        # the function is concave: a full step from the left may leave the positive numbers
        w = w - step if step < w else w / 2.0
        if abs(step) <= 1e-15 * w:
            break
    return w


@compiled
def cell_multiplier(
    log_level: float, mass: float, y: float, variance: float, old: float, low: float, high: float
) -> float:
    """argmax over x in [low, high] of  x y - variance x^2 / 2 - mass e^(x - old - log_level)."""
    if variance > 0.0:
        best = y / variance
        if mass > 0.0:
            offset = np.log(mass) - log_level - old
            w = wright_omega(offset - np.log(variance) + best)
            # the same number two ways: the difference cancels when the variance is small, the logarithm when w is
            best = np.log(w) + np.log(variance) - offset if w > 1.0 else best - w
    elif mass > 0.0:
        best = old + np.log(y) + log_level - np.log(mass) if y > 0.0 else low
    elif y != 0.0:
        best = high if y > 0.0 else low  # no row is here: the multiplier costs nothing
    else:
        best = old
    return min(max(best, low), high)


@compiled
def block_excess(
    log_level: float,
    uncovered: float,
    mass: Floats,
    y: Floats,
    variance: Floats,
    old: Floats,
    low: Floats,
    high: Floats,
    new: Floats,
) -> float:
    """log(uncovered + sum_i mass_i e^(new_i - old_i)) - log_level, with every `new_i` optimal for that level."""
    top = 0.0 if uncovered > 0.0 else -np.inf
    for i in range(len(y)):
        new[i] = cell_multiplier(log_level, mass[i], y[i], variance[i], old[i], low[i], high[i])
        if mass[i] > 0.0:
            top = max(top, new[i] - old[i])
    total = uncovered * np.exp(-top) if uncovered > 0.0 else 0.0
    for i in range(len(y)):
        if mass[i] > 0.0:
            total += mass[i] * np.exp(new[i] - old[i] - top)
    return float(np.log(total) + top - log_level) if total > 0.0 else -np.inf


@compiled
def block_multipliers(
    uncovered: float, mass: Floats, y: Floats, variance: Floats, old: Floats, low: Floats, high: Floats, new: Floats
) -> None:
    """The exact maximum of the dual over one part's multipliers: one unknown, the logarithm of the normaliser Z.

    Z = uncovered + sum_i mass_i e^(new_i(Z) - old_i), bracketed from the current total and closed in on by secants; an
    end that stays has its value halved, or it would stay for ever.
    """
    total = uncovered + mass.sum()
    if total <= 0.0:
        new[:] = old
        return
    near = np.log(total)
    excess = block_excess(near, uncovered, mass, y, variance, old, low, high, new)
    # as exact as the exponents allow; beyond, a part whose exact answers leave Z free would be driven off by rounding
    exact = 1e-14 + 1e-15 * np.abs(new - old).max() + 1e-15 * np.abs(old).max()
    if abs(excess) <= exact:
        return
    upward = excess > 0.0
    far, beyond, stride = near, excess, 0.5
    for _ in range(60):
        far = near + stride if upward else near - stride
        beyond = block_excess(far, uncovered, mass, y, variance, old, low, high, new)
        if (beyond > 0.0) != upward:
            break
        near, excess = far, beyond
        stride *= 2.0
    stayed = 0  # for how many turns the far end did, or as a negative number the near one
    for turn in range(200):
        level = near + (far - near) * excess / (excess - beyond)
        # halved now and then: secants crawl where the excess is all but flat on one side. Without a bracket, or with an
        # infinite excess, the secant does not lie between the ends either.
        if turn % 3 == 2 or not min(near, far) < level < max(near, far):
            level = 0.5 * (near + far)
        there = block_excess(level, uncovered, mass, y, variance, old, low, high, new)
        if abs(there) <= exact or level in (near, far):
            break
        if (there > 0.0) == upward:
            near, excess = level, there
            stayed = max(stayed, 0) + 1
            if stayed > 1:
                beyond *= 0.5
        else:
            far, beyond = level, there
            stayed = min(stayed, 0) - 1
            if stayed < -1:
                excess *= 0.5


@compiled
def changed_total(mass: Floats, change: Floats, factor: Floats, bits: Ints) -> float:
    """sum_g mass_g e^(change_g - largest); `factor` receives the exponentials, and `bits` is room for as many."""
    top, total = -np.inf, 0.0
    for g in range(len(change)):
        if mass[g] > 0.0:
            top = max(top, change[g])
    for g in range(len(change)):
        factor[g] = min(change[g] - top, 0.0)
    exponentials(factor, len(change), bits, bits.view(np.float64))
    for g in range(len(change)):
        if mass[g] > 0.0:
            total += mass[g] * factor[g]
    return total


@compiled
def ascend_bundle(
    hist: Floats,
    start: int,
    stop: int,
    indptr: Ints,
    cells: Ints,
    parts: Ints,
    part_start: Ints,
    occupied: Flags,
    y: Floats,
    variance: Floats,
    low: Floats,
    high: Floats,
    lam: Floats,
    ratio: Floats,
) -> None:
    """Exact block steps for the parts of one bundle, one after the other, inside the bundle's small table.

    `hist` are the masses of the bundle's cells (sum 1). `lam` is updated; `ratio` receives, per bundle cell, what its
    rows' weights are to be multiplied with; their sum stays. Ratios are kept as logarithms on the way: one part may all
    but empty a cell that the next one fills again.
    """
    size = stop - start
    cell_of, position = np.empty(size, np.int64), indptr[start:stop].copy()  # a bundle cell's cells come part by part
    change, factor, bits = np.zeros(size), np.empty(size), np.empty(size, np.int64)
    for member in range(len(parts)):
        a, b = part_start[parts[member]], part_start[parts[member] + 1]
        total = changed_total(hist, change, factor, bits)
        # weights may underflow, but the rows are there: with a trace of mass instead the step is at worst too small
        mass = np.zeros(b - a)
        uncovered = 0.0
        for g in range(size):
            cell_of[g] = -1
            if position[g] < indptr[start + g + 1] and a <= cells[position[g]] < b:
                cell_of[g] = cells[position[g]] - a
                position[g] += 1
            share = hist[g] * factor[g] / total
            if occupied[start + g]:
                share = max(share, SMALLEST_MASS)
            if cell_of[g] >= 0:
                mass[cell_of[g]] += share
            else:
                uncovered += share
        new = np.empty(b - a)
        block_multipliers(uncovered, mass, y[a:b], variance[a:b], lam[a:b], low[a:b], high[a:b], new)
        for g in range(size):
            if cell_of[g] >= 0:
                change[g] += new[cell_of[g]] - lam[a + cell_of[g]]
        lam[a:b] = new
    total = changed_total(hist, change, factor, bits)
    # a sum of 1 again: with ratios below 1, hundreds of visits would take all weights below the smallest number
    for g in range(size):
        ratio[g] = min(factor[g] / total, LARGEST_RATIO)


@cache
def load() -> None:
    """Load the compiler before there are threads: an interrupt while it imports could leave them waiting for ever."""
    wright_omega(0.0)
