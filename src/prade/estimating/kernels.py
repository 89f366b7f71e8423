"""The passes over the rows, compiled.

Everything here works on plain arrays and releases the interpreter lock, so that row chunks and groups can run in
threads. Sums are taken per chunk in a fixed order: results do not depend on the number of threads.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled

Codes = NDArray[Any]  # unsigned integers of any width

TILE = 1024  # rows handled together: logits of a tile stay in the first-level cache between the two inner loops
LOWEST = -708.0  # exponent of e: a smaller one gives 0 instead of a number with fewer digits
PER_DOUBLING, DOUBLING_HIGH, DOUBLING_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
ONE, DIGITS = 1023, 52  # the exponent of 1.0 in a double's bits, and how many bits stand below it
SERIES = tuple(1.0 / factorial(k) for k in range(14))


@compiled
def exponentials(x: Floats, size: int, bits: Ints, doublings: Floats) -> None:
    """x_j = e^(x_j) for x_j <= 0, j < size, to within 3e-16 of it; several at a time, which no library call is.

    e^x = 2^n e^r with |r| <= log(2) / 2: 13 terms of the series for e^r, and 2^n written into the bits of a double.
    `doublings` must be `bits` seen as doubles, and have room for `size`.
    """
    for j in range(size):
        n = np.floor(x[j] * PER_DOUBLING + 0.5)
        r = (x[j] - n * DOUBLING_HIGH) - n * DOUBLING_LOW
        p = SERIES[13]
        p = p * r + SERIES[12]
        p = p * r + SERIES[11]
        p = p * r + SERIES[10]
        p = p * r + SERIES[9]
        p = p * r + SERIES[8]
        p = p * r + SERIES[7]
        p = p * r + SERIES[6]
        p = p * r + SERIES[5]
        p = p * r + SERIES[4]
        p = p * r + SERIES[3]
        p = p * r + SERIES[2]
        bits[j] = (np.int64(n) + ONE) << DIGITS if x[j] > LOWEST else 0
        x[j] = 1.0 + (r + r * r * p) if x[j] > LOWEST else 0.0
    for j in range(size):
        x[j] *= doublings[j]


@compiled
def sum_of(x: Floats, size: int) -> float:
    """x_0 + ... + x_(size - 1), as four sums that do not wait for each other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(0, size - 3, 4):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
    for j in range(size - size % 4, size):
        a += x[j]
    return (a + b) + (c + d)


@compiled
def add_looked_up(codes: Codes, start: Ints, values: Floats, first: int, sums: Floats) -> None:
    """sums_j += sum_b values_b[code_b(first + j)], bundle by bundle in their order.

    Four bundles at a time: a sum is read and written once for them, and no lookup waits for another.
    """
    size, last, fours = len(sums), first + len(sums), codes.shape[0] // 4 * 4
    for b in range(0, fours, 4):
        code_0, code_1 = codes[b, first:last], codes[b + 1, first:last]
        code_2, code_3 = codes[b + 2, first:last], codes[b + 3, first:last]
        value_0, value_1 = values[start[b] : start[b + 1]], values[start[b + 1] : start[b + 2]]
        value_2, value_3 = values[start[b + 2] : start[b + 3]], values[start[b + 3] : start[b + 4]]
        for j in range(size):
            two = sums[j] + value_0[code_0[j]] + value_1[code_1[j]]
            sums[j] = two + value_2[code_2[j]] + value_3[code_3[j]]
    for b in range(fours, codes.shape[0]):
        code, value = codes[b, first:last], values[start[b] : start[b + 1]]
        for j in range(size):
            sums[j] += value[code[j]]


@compiled
def add_masses(codes: Codes, start: Ints, weights: Floats, first: int, masses: Floats) -> None:
    """masses_b[code_b(first + j)] += weights_j.

    Four bundles at a time: rows in the same cell of a bundle wait for each other, and other bundles' cells meanwhile do
    not.
    """
    size, last, fours = len(weights), first + len(weights), codes.shape[0] // 4 * 4
    for b in range(0, fours, 4):
        code_0, code_1 = codes[b, first:last], codes[b + 1, first:last]
        code_2, code_3 = codes[b + 2, first:last], codes[b + 3, first:last]
        mass_0, mass_1 = masses[start[b] : start[b + 1]], masses[start[b + 1] : start[b + 2]]
        mass_2, mass_3 = masses[start[b + 2] : start[b + 3]], masses[start[b + 3] : start[b + 4]]
        for j in range(size):
            weight = weights[j]
            mass_0[code_0[j]] += weight
            mass_1[code_1[j]] += weight
            mass_2[code_2[j]] += weight
            mass_3[code_3[j]] += weight
    for b in range(fours, codes.shape[0]):
        code, mass = codes[b, first:last], masses[start[b] : start[b + 1]]
        for j in range(size):
            mass[code[j]] += weights[j]


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
    `hist` must come in zeroed, or empty where masses are not wanted; returns (sum of w) / e^top and top, the largest
    logit of a row with base > 0.
    """
    eta, bits = np.empty(TILE), np.empty(TILE, np.int64)
    doublings = bits.view(np.float64)
    top = -np.inf
    total = 0.0
    for tile in range(first, last, TILE):
        size = min(TILE, last - tile)
        eta[:size] = 0.0
        add_looked_up(codes, start, logits, tile, eta[:size])
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
        mine, written = base[tile : tile + size], weights[tile : tile + size]
        for j in range(size):
            eta[j] = min(eta[j] - top, 0.0)  # rows without base mass may have any logit: keep them from overflowing
        exponentials(eta, size, bits, doublings)
        for j in range(size):
            eta[j] *= mine[j]
            written[j] = eta[j]
        total += sum_of(eta, size)
        if len(hist):
            add_masses(codes, start, eta[:size], tile, hist)
    return total, top


@compiled
def bundle_logits(indptr: Ints, cells: Ints, multipliers: Floats, logits: Floats) -> None:
    """logits_g = the sum of the multipliers of the part cells that bundle cell g lies in."""
    for g in range(len(logits)):
        total = 0.0
        for position in range(indptr[g], indptr[g + 1]):
            total += multipliers[cells[position]]
        logits[g] = total


@compiled
def cell_masses(indptr: Ints, cells: Ints, bundle_masses: Floats, masses: Floats) -> None:
    """Add the mass of each bundle cell to the part cells that it lies in; `masses` must come in zeroed."""
    for g in range(len(bundle_masses)):
        for position in range(indptr[g], indptr[g + 1]):
            masses[cells[position]] += bundle_masses[g]


@compiled
def count(code: Codes, weights: Floats, first: int, last: int, hist: Floats) -> None:
    """Mass per bundle cell of one bundle."""
    for j in range(first, last):
        hist[code[j]] += weights[j]


@compiled
def divided(collapsed: Floats, base: Floats, kind: Ints, weights: Floats, least: float, found: Floats) -> None:
    """The mass of each collapsed row, divided among the rows that went into it in proportion to their weights.

    `base` is the sum of these weights; a collapsed row with less than `least` of it has no mass to divide.
    """
    ratio = np.zeros(len(base))
    for k in range(len(base)):
        if base[k] > least:
            ratio[k] = collapsed[k] / base[k]
    for j in range(len(kind)):
        found[j] = weights[j] * ratio[kind[j]]


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
def chances(
    codes: Codes,
    start: Ints,
    scores: Floats,
    weights: Floats,
    shifts: Floats,
    top: float,
    scale: Floats,
    chance: Floats,
) -> None:
    """chance_j = q_j score_j for every row, score_j = sum_b scores_b[code_b(j)].

    q_j is weights_j times the `scale` of its tile, e^(shift - top), which is written too.
    """
    for tile in range(0, len(weights), TILE):
        last = min(tile + TILE, len(weights))
        chance[tile:last] = 0.0
        add_looked_up(codes, start, scores, tile, chance[tile:last])
        scale[tile // TILE] = np.exp(shifts[tile // TILE] - top)
        for j in range(tile, last):
            chance[j] *= weights[j] * scale[tile // TILE]


@compiled
def second_moments(
    codes: Codes, start: Ints, indptr: Ints, cells: Ints, rows: Ints, multiplicity: Floats, moments: Floats
) -> None:
    """moments[i, l] + moments[l, i] += multiplicity of the rows that lie in both cells i and l != i; diagonal once."""
    at = np.empty(moments.shape[0], np.uint64)  # unsigned: an index need not be asked whether it is negative
    for t in range(len(rows)):
        filled, weight = 0, multiplicity[t]
        for b in range(codes.shape[0]):
            g = start[b] + codes[b, rows[t]]
            for position in range(indptr[g], indptr[g + 1]):
                at[filled] = cells[position]
                filled += 1
        for i in range(filled):
            target = moments[at[i]]
            for other in range(i + 1):
                target[at[other]] += weight
