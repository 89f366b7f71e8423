"""The inner loops, compiled: passes over the rows, one block's exact step, the small box-bounded quadratic.

Everything here works on plain arrays and releases the interpreter lock, so that row chunks and groups can run in
threads. Sums are taken per chunk in a fixed order: results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints

Codes = NDArray[Any]  # unsigned integers of any width
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

TILE = 1024  # rows handled together: logits of a tile stay in the first-level cache between the two inner loops
LARGEST_MULTIPLIER = 300.0  # of an answer that must hold exactly: e^-300 is no mass
SMALLEST_MASS = 1e-300
LARGEST_EXPONENT = 700.0  # of a ratio: e^700 is a number, and no weight needs a larger one to be a mass again


def compiled(function: Kernel) -> Kernel:
    """Compile with the lock released and the machine code kept on disk."""
    return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


@compiled
def tilt(
    codes: Codes,
    start: Ints,
    logits: Floats,
    base: Floats,
    first: int,
    last: int,
    hist: Floats,
    weights: Floats,
    shifts: Floats,
) -> tuple[float, float]:
    """w_j = base_j * exp(sum_b logits_b[code_b(j)]) for rows first..last, and its mass per bundle cell.

    A running maximum keeps every exponential in range: `weights` are stored divided by e^shift of their tile.
    `hist` must come in zeroed; returns (sum of w) / e^top and top, the largest logit of a row with base > 0.
    """
    eta = np.empty(TILE)
    top = -np.inf
    total = 0.0
    for tile in range(first, last, TILE):
        size = min(TILE, last - tile)
        eta[:size] = 0.0
        for b in range(codes.shape[0]):
            code = codes[b, tile : tile + size]
            logit = logits[start[b] : start[b + 1]]
            for j in range(size):
                eta[j] += logit[code[j]]
        peak = -np.inf
        for j in range(size):
            if eta[j] > peak and base[tile + j] > 0.0:
                peak = eta[j]
        if peak > top:
            if total > 0.0:
                rescale = np.exp(top - peak)
                total *= rescale
                hist *= rescale
            top = peak
        shifts[tile // TILE] = top
        if top == -np.inf:
            weights[tile : tile + size] = 0.0
            continue
        subtotal = 0.0
        for j in range(size):
            # rows without base mass may have any logit: keep them from overflowing
            eta[j] = base[tile + j] * np.exp(min(eta[j] - top, 0.0))
            weights[tile + j] = eta[j]
            subtotal += eta[j]
        total += subtotal
        for b in range(codes.shape[0]):
            code = codes[b, tile : tile + size]
            cell = hist[start[b] : start[b + 1]]
            for j in range(size):
                cell[code[j]] += eta[j]
    return total, top


@compiled
def count(code: Codes, weights: Floats, first: int, last: int, hist: Floats) -> None:
    """Mass per bundle cell of one bundle."""
    for j in range(first, last):
        hist[code[j]] += weights[j]


@compiled
def scale_and_count(
    code: Codes, ratio: Floats, next_code: Codes, weights: Floats, first: int, last: int, hist: Floats
) -> None:
    """The fused step of a sweep: scale the rows by this bundle's ratios and count the next bundle's masses."""
    for j in range(first, last):
        w = weights[j] * ratio[code[j]]
        weights[j] = w
        hist[next_code[j]] += w


@compiled
def scale_add_and_count(
    code: Codes, ratio: Floats, extra: Floats, next_code: Codes, weights: Floats, first: int, last: int, hist: Floats
) -> None:
    """As `scale_and_count`, with a constant added per cell: cases 2 and 4 of Definition 3.1."""
    for j in range(first, last):
        w = weights[j] * ratio[code[j]] + extra[code[j]]
        weights[j] = w
        hist[next_code[j]] += w


@compiled
def systematic(
    codes: Codes,
    start: Ints,
    scores: Floats,
    weights: Floats,
    shifts: Floats,
    top: float,
    number: int,
    offset: float,
    rows: Ints,
    share: Floats,
) -> int:
    """Systematic sample of `number` rows in proportion to q_j score_j, score_j = sum_b scores_b[code_b(j)].

    q_j is weights_j e^(shift of its tile). Each row taken gets the share (times taken) / score_j. Returns how many
    distinct rows were taken.
    """
    chance = np.empty(len(weights))
    total = 0.0
    for tile in range(0, len(weights), TILE):
        last = min(tile + TILE, len(weights))
        chance[tile:last] = 0.0
        for b in range(codes.shape[0]):
            code = codes[b]
            score = scores[start[b] : start[b + 1]]
            for j in range(tile, last):
                chance[j] += score[code[j]]
        scale = np.exp(shifts[tile // TILE] - top)
        for j in range(tile, last):
            chance[j] *= weights[j] * scale
            total += chance[j]
    step = total / number
    threshold = offset * step
    cumulated = 0.0
    taken = 0
    for j in range(len(weights)):
        cumulated += chance[j]
        hits = 0
        while cumulated > threshold:
            hits += 1
            threshold += step
        if hits > 0 and taken < len(rows):
            rows[taken] = j
            share[taken] = hits * weights[j] * np.exp(shifts[j // TILE] - top) / chance[j]
            taken += 1
    return taken


@compiled
def second_moments(
    codes: Codes, start: Ints, indptr: Ints, cells: Ints, rows: Ints, multiplicity: Floats, moments: Floats
) -> None:
    """moments[i, l] + moments[l, i] += multiplicity of the rows that lie in both cells i and l != i; diagonal once."""
    at = np.empty(moments.shape[0], np.int64)
    for t in range(len(rows)):
        filled = 0
        for b in range(codes.shape[0]):
            g = start[b] + codes[b, rows[t]]
            for position in range(indptr[g], indptr[g + 1]):
                at[filled] = cells[position]
                filled += 1
        for i in range(filled):
            target = moments[at[i]]
            for other in range(i + 1):
                target[at[other]] += multiplicity[t]


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
        best = high if y > 0.0 else low  # nobody lives here: the multiplier costs nothing
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
    uncovered: float,
    mass: Floats,
    y: Floats,
    variance: Floats,
    old: Floats,
    low: Floats,
    high: Floats,
    new: Floats,
) -> None:
    """The exact maximum of the dual over one part's multipliers: one unknown, the logarithm of the normaliser Z.

    Z = uncovered + sum_i mass_i e^(new_i(Z) - old_i), bracketed from the current total and closed in on by secants; an
    end that stays has its value halved, or it would stay for ever. Any root is the optimum: the dual is concave.
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
        # infinite excess, the secant is no number between the ends either.
        if turn % 3 == 2 or not min(near, far) < level < max(near, far):
            level = 0.5 * (near + far)
        found = block_excess(level, uncovered, mass, y, variance, old, low, high, new)
        if abs(found) <= exact or level in (near, far):
            break
        if (found > 0.0) == upward:
            near, excess = level, found
            stayed = max(stayed, 0) + 1
            if stayed > 1:
                beyond *= 0.5
        else:
            far, beyond = level, found
            stayed = min(stayed, 0) - 1
            if stayed < -1:
                excess *= 0.5


@compiled
def top_and_total(mass: Floats, change: Floats) -> tuple[float, float]:
    """The largest change of a cell that has mass, and sum_g mass_g e^(change_g - largest)."""
    top, total = -np.inf, 0.0
    for g in range(len(change)):
        if mass[g] > 0.0:
            top = max(top, change[g])
    for g in range(len(change)):
        if mass[g] > 0.0:
            total += mass[g] * np.exp(change[g] - top)
    return top, total


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
    rows' weights are to be multiplied with; their sum stays. Same as visiting the parts one by one over all rows.
    Ratios are kept as logarithms on the way: one part may all but empty a cell that the next one fills again.
    """
    size = stop - start
    cell_of = np.empty(size, np.int64)
    change = np.zeros(size)
    for member in range(len(parts)):
        a, b = part_start[parts[member]], part_start[parts[member] + 1]
        top, total = top_and_total(hist, change)
        # weights may underflow, but the rows are there: with a trace of mass instead the step is at worst too small
        mass = np.zeros(b - a)
        uncovered = 0.0
        for g in range(size):
            cell_of[g] = -1
            for position in range(indptr[start + g], indptr[start + g + 1]):
                if a <= cells[position] < b:
                    cell_of[g] = cells[position] - a
            share = hist[g] * np.exp(min(change[g] - top, 0.0)) / total
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
    top, total = top_and_total(hist, change)
    # a sum of 1 again: with ratios below 1, hundreds of visits would take all weights below the smallest number
    for g in range(size):
        ratio[g] = np.exp(min(min(change[g] - top, 0.0) - np.log(total), LARGEST_EXPONENT))


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


@cache
def load() -> None:
    """Load the compiler: every layout does, so that it is done before there are threads.

    It loads its parts with the first kernel that is called; an interrupt amid such an import can leave threads waiting
    for the import's lock for ever.
    """
    wright_omega(0.0)
