"""The passes over the rows, compiled.

Everything here works on plain arrays and releases the interpreter lock, so that row chunks and groups can run in
threads. Sums are taken per chunk in a fixed order: results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import compiled, systematic
from prade.estimating import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    """sums_j += sum_b values_b[code_b(first + j)]; four bundles at a time, so that no lookup waits for another."""
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
    """masses_b[code_b(first + j)] += weights_j; four bundles at a time, whose cells do not wait for each other."""
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
    """Scale the rows by this bundle's ratios and count the next bundle's masses."""
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


# ---------------------------------------------------------------------- bundles of parts

# Parts whose cells occur in few combinations make a bundle: each row stores the combination that it has. On census
# columns 36 one-way parts make about 8 bundles.


LARGEST_BUNDLE = 2048  # cells; a bundle's logits and masses (8 bytes each) should stay in the first-level cache
SAMPLE_FOR_BUNDLING = 20_000  # rows: ten for each combination of a full bundle
NEGLIGIBLE = 1e-200  # mass of a cell: inverses of larger masses, and their sums, are finite


@dataclass(frozen=True, eq=False)
class Bundles:
    """The bundles of a workload on some rows.

    Bundle b has the parts parts[b] and the bundle cells start[b] to start[b + 1]; codes[b] says in which of them each
    row is. Bundle cell g lies in the part cells cells[indptr[g] : indptr[g + 1]], of `n_cells` in all.
    """

    parts: tuple[Ints, ...]
    codes: NDArray[Any]
    start: Ints
    indptr: Ints
    cells: Ints
    n_cells: int

    @classmethod
    def of(cls, cells: Sequence[NDArray[Any]], sizes: Sequence[int], largest: int) -> Bundles:
        """From each row's cell in every part (its size for none); see `choose_bundles`."""
        chosen = choose_bundles(cells, sizes, largest)
        counts = [len(bundle.combinations) for bundle in chosen]
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        codes = np.stack([bundle.code.astype(np.min_scalar_type(max(counts))) for bundle in chosen])
        part_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat, counted = [], [np.zeros(1, np.int64)]
        for bundle in chosen:
            inside = bundle.combinations < np.array([sizes[k] for k in bundle.parts])
            flat.append((bundle.combinations + part_start[bundle.parts])[inside])
            counted.append(inside.sum(axis=1))
        parts = tuple(bundle.parts for bundle in chosen)
        indptr = np.cumsum(np.concatenate(counted))
        return cls(parts, codes, start, indptr, np.concatenate(flat), int(part_start[-1]))

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:  # their number
        return int(self.codes.shape[1])

    @property
    def sizes(self) -> Ints:  # numbers of cells
        return np.diff(self.start)

    @property
    def widest(self) -> int:  # number of cells of the largest bundle
        return int(self.sizes.max())

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which bundle cells have rows."""
        counts = [np.bincount(code, minlength=n) for code, n in zip(self.codes, self.sizes, strict=True)]
        return np.concatenate(counts) > 0

    @cached_property
    def membership(self) -> csr_array:
        """0/1 matrix, bundle cells x part cells."""
        from scipy.sparse import csr_array

        shape = (int(self.start[-1]), self.n_cells)
        return csr_array((np.ones(len(self.cells)), self.cells, self.indptr), shape=shape)

    def only(self, within: Ints) -> Bundles:
        """The same rows with some part cells alone, numbered anew; no row with mass may be in any other cell."""
        if len(within) == self.n_cells:
            return self
        number = np.zeros(self.n_cells, np.int64)  # the other cells: any number will do
        number[within] = np.arange(len(within))
        return replace(self, cells=number[self.cells], n_cells=len(within))

    def cells_of(self, rows: Ints) -> csr_array:
        """0/1 matrix, some rows x part cells: the transposed W of the paper on the support."""
        return sum(self.membership[self.start[b] + code[rows].astype(np.int64)] for b, code in enumerate(self.codes))

    def cell_masses(self, bundle_masses: Floats) -> Floats:
        """Masses of the parts' cells from masses of the bundles' cells."""
        masses = np.zeros(self.n_cells)
        kernels.cell_masses(self.indptr, self.cells, bundle_masses, masses)
        return masses

    def masses_of(self, weights: Floats) -> Floats:
        """Mass of every part cell for any weights of the rows."""
        counts = np.zeros(int(self.start[-1]))
        for b, code in enumerate(self.codes):
            kernels.count(code, weights, 0, self.rows, counts[self.start[b] : self.start[b + 1]])
        return self.cell_masses(counts)

    def logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each bundle cell."""
        logits = np.empty(len(self.indptr) - 1)
        kernels.bundle_logits(self.indptr, self.cells, multipliers, logits)
        return logits

    def row_logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each row: W' lam."""
        logits = self.logits(multipliers)
        total = np.zeros(self.rows)
        for b, code in enumerate(self.codes):
            total += logits[self.start[b] : self.start[b + 1]][code]
        return total

    def covariance(self, tilted: Tilted, sample: int, offset: float) -> Floats:
        """Covariance of the cells' indicators under q, from about `sample` rows.

        Row j is drawn in proportion to q_j sum_k 1 / m_k(j), m_k(j) being the mass of its cell in part k, and weighs
        the inverse of that sum (an upper bound on leverage scores): the estimate is as good for rare cells as for
        common ones. With a sample as large as the support the matrix is exact.
        """
        masses = tilted.masses
        if sample >= self.rows:
            rows, share = np.arange(self.rows), tilted.normalised()
        else:
            rows, share = self.sampled(tilted, sample, offset)
        moments = np.zeros((self.n_cells, self.n_cells))
        kernels.second_moments(self.codes, self.start, self.indptr, self.cells, rows, share, moments)
        mean = np.diag(moments).copy()
        covariance = moments + moments.T
        covariance.flat[:: self.n_cells + 1] = mean
        covariance -= mean[:, None] * mean
        unseen = np.flatnonzero((mean == 0) & (masses > 0))
        covariance[unseen, unseen] = masses[unseen]
        return covariance

    def sampled(self, tilted: Tilted, sample: int, offset: float) -> tuple[Ints, Floats]:
        """A systematic sample of about `sample` rows, as `covariance` takes it: distinct rows and their weights."""
        masses = tilted.masses
        scores = self.logits(np.divide(1.0, masses, out=np.zeros(self.n_cells), where=masses > NEGLIGIBLE))
        chance, scale = np.empty(self.rows), np.empty(len(tilted.shifts))
        kernels.chances(self.codes, self.start, scores, tilted.weights, tilted.shifts, tilted.top, scale, chance)
        taken = systematic(chance, sample, offset) if chance.any() else np.empty(0, np.int64)
        rows, number = np.unique(taken, return_counts=True)
        share = number * tilted.weights[rows] * scale[rows // kernels.TILE] / chance[rows]
        return rows, share / share.sum()


@dataclass(frozen=True)
class Bundle:
    """Parts stored together: one code per row for the combination of their cells."""

    parts: Ints
    code: NDArray[Any]
    combinations: Ints  # combinations x parts: the cell in each part

    def with_part(self, part: int, cells: NDArray[Any], size: int) -> Bundle:
        """This bundle and one more part: only the combinations that occur get a code."""
        pairs = self.code.astype(np.int64) * size + cells
        present = np.flatnonzero(np.bincount(pairs, minlength=len(self.combinations) * size))
        rank = np.empty(len(self.combinations) * size, np.int64)
        rank[present] = np.arange(len(present))
        combinations = np.column_stack([self.combinations[present // size], present % size])
        return Bundle(np.append(self.parts, part), rank[pairs], combinations)


def choose_bundles(cells: Sequence[NDArray[Any]], sizes: Sequence[int], largest: int) -> list[Bundle]:
    """Put parts together, greedily, so that the cells of a bundle occur in at most `largest` combinations.

    Each part joins the bundle whose combinations it multiplies least, counted on a sample of rows and then on all.
    """
    sample = slice(None, None, max(1, len(cells[0]) // SAMPLE_FOR_BUNDLING))
    bundles: list[Bundle] = []
    for k in sorted(range(len(cells)), key=lambda k: -sizes[k]):
        size = sizes[k] + 1  # one more for "in no cell"
        seen = cells[k][sample]
        growths = []
        for index, bundle in enumerate(bundles):
            number = len(bundle.combinations)
            if number * size <= 64 * largest:
                occurring = np.count_nonzero(np.bincount(bundle.code[sample].astype(np.int64) * size + seen))
                if occurring <= largest:
                    growths.append((occurring / number, index))
        for _, index in sorted(growths):
            wider = bundles[index].with_part(k, cells[k], size)
            if len(wider.combinations) <= largest:
                bundles[index] = wider
                break
        else:
            bundles.append(Bundle(np.array([k]), cells[k], np.arange(size)[:, None]))
    return bundles


# ---------------------------------------------------------------------- the prior tilted by multipliers


@dataclass(frozen=True)
class Tilted:
    """The distribution q_j = p_j exp(sum_k lam_k[c_k(j)]) / Z, as far as a solver needs it."""

    masses: Floats  # q's mass in every cell of every part
    log_z: float
    top: float  # the largest exponent of a row: proves unreachable answers (see `Dual.refuted`)
    weights: Floats  # unnormalised, scaled by e^-shift of their tile
    shifts: Floats

    def normalised(self) -> Floats:  # q on the collapsed rows
        return normalised(self.weights, self.shifts)


def normalised(weights: Floats, shifts: Floats) -> Floats:
    """Weights that are scaled by e^-shift of their tile as shares."""
    scale, whole = np.exp(shifts - shifts.max()), len(weights) // TILE * TILE
    q = np.empty(len(weights))
    np.multiply(weights[:whole].reshape(-1, TILE), scale[: whole // TILE, None], out=q[:whole].reshape(-1, TILE))
    np.multiply(weights[whole:], scale[whole // TILE :], out=q[whole:])
    q /= q.sum()
    return q
