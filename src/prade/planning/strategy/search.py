"""Searches for good strategies: plain numbers in, plain numbers out; `prade.planning.strategy.choice` gives them their
meaning.

A strategy A answers a workload W by least squares, W A^+ y. With noise that is scaled to the sensitivity ||A|| (largest
column norm, L1 or L2), its total squared error is proportional to

    ||A||^2 ||W A^+||_F^2 = ||A||^2 tr(V X^+),    V = W^T W,  X = A^T A.

Three searches: weights of marginals (`marginal_weights`), the p-Identity family for L1 (`p_identity_rows`), and the
convex problem over all X for L2 (`gaussian_gram`). The first two families are those of McKenna, Miklau, Hay,
Machanavajjhala, "Optimizing error of high-dimensional statistical queries under differential privacy" (2018).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

ALL_SUBSETS = 12  # with at most this many columns, every subset of them is tried as a marginal to measure
LARGEST_EXCHANGE = 16  # measured marginals among which single columns are exchanged
LARGEST_COVER = 1000  # marginals in a family that is tried for its overlaps
LARGEST_THETA = 1e3  # p-Identity: beyond it a cell's own row is all but gone, and the formulas lose their digits
LARGEST_CLOSURE = 2**14  # subsets of the marginals that are asked for, all together


class Lattice:
    """Marginals seen through the projections that they share.

    The marginal of the column set S has the 0/1 matrix Q_S, and Q_S^T Q_S = (N / N_S) sum_{T subset S} E_T. Here N_S is
    its number of cells, N that of the whole domain, and E_T projects on tables that are constant along the columns
    outside T and sum to zero along each column inside: orthogonal projections of rank r_T = prod_{i in T} (n_i - 1),
    the same ones for all marginals. So for A = union of theta_S Q_S and u = theta^2 the eigenvalues of A^T A / N are

        lambda_T = sum_{S superset T} u_S / N_S.

    `closure` lists the T that matter (subsets of what is `asked`), `candidates` the S that may be measured: those, the
    full table, all `covers`, and all sets of columns when these are few, else what is asked with one column more; none
    with more than `max_cells` cells unless asked for. Sets are written as bits.
    """

    def __init__(self, sizes: Sequence[int], asked: Iterable[int], max_cells: int) -> None:
        self.sizes = tuple(sizes)
        self.full = (1 << len(self.sizes)) - 1
        asked = set(asked)
        self.closure = sorted({part for mask in asked for part in subsets(mask)})
        few = len(self.sizes) <= ALL_SUBSETS
        others = set(range(self.full + 1)) if few else {mask | 1 << i for mask in asked for i in range(len(self.sizes))}
        if len(others) > LARGEST_CLOSURE:
            others = set()
        widest = max(mask.bit_count() for mask in asked)
        self.covers = [
            cover for cover in covers(self.sizes, widest) if max(self.cells_of(mask) for mask in cover) <= max_cells
        ]
        small = {mask for mask in others | {self.full} if self.cells_of(mask) <= max_cells}
        self.candidates = sorted(small.union(self.closure, *self.covers))
        self.place = {mask: k for k, mask in enumerate(self.candidates)}
        self.cells = np.array([float(self.cells_of(mask)) for mask in self.candidates])
        self.ranks = np.array([float(math.prod(self.sizes[i] - 1 for i in members(mask))) for mask in self.closure])
        bits = np.array(self.candidates, dtype=np.int64)
        above = [np.flatnonzero((bits & mask) == mask) for mask in self.closure]
        columns = np.concatenate(above)
        self._shares = sparse.csr_array(
            (1.0 / self.cells[columns], columns, np.cumsum([0, *map(len, above)])),
            shape=(len(self.closure), len(self.candidates)),
        )

    def cells_of(self, mask: int) -> int:
        """N_S."""
        return math.prod(self.sizes[i] for i in members(mask))

    def spectrum(self, squares: Vector) -> Vector:
        """lambda_T for every T of the closure, from u_S for every candidate S."""
        return np.asarray(self._shares @ squares)

    def restricted(self, wanted: NDArray[np.bool_], free: NDArray[np.bool_]) -> Any:
        """The matrix of `spectrum` for some T and some S only; dense where that is small."""
        part = self._shares[np.flatnonzero(wanted)][:, np.flatnonzero(free)]
        return part.toarray() if math.prod(part.shape) <= 2**16 else part

    def trace(self, demand: Vector, squares: Vector) -> float:
        """tr(V X^+) = sum_T demand_T / lambda_T, infinite when something in demand is not measured at all."""
        wanted = demand > 0
        supply = self.spectrum(squares)[wanted]
        return float((demand[wanted] / supply).sum()) if supply.min() > 0 else math.inf


def members(mask: int) -> list[int]:
    """The columns in a set that is written as bits."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def subsets(mask: int) -> Iterable[int]:
    """All subsets of a set that is written as bits, itself and the empty one included."""
    part = mask
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & mask


def covers(sizes: Sequence[int], k: int) -> list[list[int]]:
    """Families of column sets such that every k columns are together in one of them.

    Deal the columns into g groups of about equal size; the unions of k groups are such a family, few and large when
    g is small, many and small when it is large.
    """
    found = []
    for g in range(k + 1, len(sizes)):
        if k == 0 or math.comb(g, k) > LARGEST_COVER:
            break
        groups, weights = [0] * g, [0.0] * g
        for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            lightest = min(range(g), key=lambda h: (weights[h], groups[h].bit_count()))
            groups[lightest] |= 1 << i
            weights[lightest] += math.log(sizes[i])
        found.append([sum(chosen) for chosen in itertools.combinations(groups, k)])
    return found


def marginal_weights(
    lattice: Lattice, demand: Vector, norm: int, asked: Vector, *, restarts: int = 48, seed: int = 0
) -> Vector:
    """Weights theta_S >= 0 that minimise ||A||^2 tr(V X^+), summing to 1 (norm 1) or with squares that do (norm 2).

    `demand` is r_T mu_T with mu the workload's own spectrum, `asked` the weights of the workload itself. For norm 2 the
    problem is convex in u = theta^2 and one start is enough. For norm 1 it is not, and good solutions measure a
    few large marginals that overlap: random starts, then the best three are improved by exchanging columns.
    """
    everything = np.ones(len(lattice.candidates))
    if norm == 2:
        theta, value = _descend(lattice, demand, norm, everything)
        theta = _thinned(lattice, demand, norm, theta, value)[0]
        return np.asarray(theta / math.sqrt(float(theta @ theta)))
    rng = np.random.default_rng([seed, len(everything)])
    starts = [everything, asked + 0.01, 0.1 * everything + (np.array(lattice.candidates) == lattice.full)]
    for cover in lattice.covers:
        chosen = [lattice.place[mask] for mask in cover]
        start = np.zeros(len(everything))
        start[chosen] = np.cbrt(lattice.cells[chosen])  # the best weights when nothing overlaps
        starts.append(start)
    starts += [rng.lognormal(sigma=1.0 + k % 3, size=len(everything)) for k in range(restarts)]
    found = sorted((_descend(lattice, demand, norm, start) for start in starts), key=lambda pair: pair[1])
    best = min((_exchanged(lattice, demand, *_thinned(lattice, demand, norm, *pair)) for pair in found[:3]), key=_value)
    return np.asarray(best[0] / best[0].sum())


def _value(pair: tuple[Vector, float]) -> float:
    return pair[1]


def _thinned(lattice: Lattice, demand: Vector, norm: int, theta: Vector, value: float) -> tuple[Vector, float]:
    """Without the marginals that hardly matter: each costs a scan of the private table."""
    for threshold in (0.1, 0.03, 0.01, 1e-3, 1e-4):
        fewer, loss = _descend(lattice, demand, norm, np.where(theta >= threshold * theta.max(), theta, 0.0))
        if loss <= value + 1e-6:
            return fewer, loss
    return theta, value


def _exchanged(lattice: Lattice, demand: Vector, theta: Vector, value: float) -> tuple[Vector, float]:
    """Local search for norm 1: put a column into a measured marginal, take one out, or drop the marginal."""
    improved = bool(np.count_nonzero(theta) <= LARGEST_EXCHANGE)
    while improved:
        improved = False
        for k in np.flatnonzero(theta):
            near = [lattice.candidates[k] ^ (1 << i) for i in range(len(lattice.sizes))]
            for to in [None, *(lattice.place[mask] for mask in near if mask in lattice.place)]:
                moved = theta.copy()
                moved[k] = 0.0
                if to is not None:
                    moved[to] += theta[k]
                other, other_value = _descend(lattice, demand, 1, moved)
                if other_value < value - 1e-7:
                    theta, value, improved = np.where(other > 1e-6 * other.max(), other, 0.0), other_value, True
                    break
            if improved:
                break
    return theta, value


def _descend(lattice: Lattice, demand: Vector, norm: int, start: Vector) -> tuple[Vector, float]:
    """A local minimum of log(||A||^2 tr(V X^+)) over the positive weights of `start`; zeros stay zero.

    The logarithm does not change when all weights grow alike, so no constraint is needed.
    """
    free, wanted = start > 0, demand > 0
    if not free.any():
        return start, math.inf
    shares, needed = lattice.restricted(wanted, free), demand[wanted]
    transposed = shares.T

    def objective(x: Vector) -> tuple[float, Vector]:
        terms = needed / (supply := shares @ (x * x))
        trace = float(terms.sum())
        slope = -2.0 * x * (transposed @ (terms / supply)) / trace
        if norm == 1:
            total = float(x.sum())
            return 2.0 * math.log(total) + math.log(trace), slope + 2.0 / total
        total = float(x @ x)
        return math.log(total) + math.log(trace), slope + 2.0 * x / total

    x0 = start[free] / start.max()
    if not (shares @ x0 > 0).all():
        return start, math.inf
    # kept off zero by a hair: at zero the gradient says nothing and a weight could never come back
    floor = 1e-9
    found = minimize(
        objective,
        np.maximum(x0, floor),
        jac=True,
        method="L-BFGS-B",
        bounds=[(floor, None)] * len(x0),
        options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-8},
    )
    theta = np.zeros_like(start)
    theta[free] = found.x / found.x.max()
    return theta, float(found.fun)


def p_identity_rows(gram: Matrix, p: int, starts: Iterable[Matrix]) -> tuple[Matrix, float]:
    """Theta >= 0 (p x n) that minimises tr(V X^-1) for A = [I; Theta] D, D = diag(1 / s), s = 1 + column sums of Theta.

    All columns of A sum to 1, so the sensitivity is 1. With M = (I + Theta^T Theta)^-1 = I - Theta^T F,
    F = (I + Theta Theta^T)^-1 Theta (p unknowns instead of n), X^-1 = diag(s) M diag(s), and with U = (F diag(s)) V

        value       sum_i s_i^2 V_ii - sum_ki s_i Theta_ki U_ki
        d / d s_i   2 s_i V_ii - 2 sum_k Theta_ki U_ki
        d / d Theta -2 (U diag(s) - U diag(s) Theta^T F)  at fixed s, plus the line above for every row.
    """
    n = len(gram)
    diagonal = np.diag(gram).copy()

    def objective(x: Vector) -> tuple[float, Vector]:
        theta = x.reshape(p, n)
        s = 1.0 + theta.sum(axis=0)
        f = np.linalg.solve(np.eye(p) + theta @ theta.T, theta)
        u = (f * s) @ gram
        crossed = (theta * u).sum(axis=0)
        value = float((s * s * diagonal).sum() - (s * crossed).sum())
        by_s = 2.0 * (s * diagonal - crossed)
        by_theta = -2.0 * (u * s - ((u * s) @ theta.T) @ f)
        # the logarithm makes the stopping rule mean the same for every workload
        return math.log(value), ((by_theta + by_s) / value).ravel()

    best, best_value = np.zeros((p, n)), float(diagonal.sum())
    for start in starts:
        found = minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, LARGEST_THETA)] * start.size,
            options={"maxiter": 500, "maxfun": 1000, "ftol": 1e-10, "gtol": 1e-7},
        )
        if math.exp(found.fun) < best_value * (1 - 1e-9):
            best, best_value = found.x.reshape(p, n), math.exp(found.fun)
    return best, best_value


def p_identity_starts(n: int, p: int, restarts: int, seed: int) -> list[Matrix]:
    """Where to begin: p blocks of neighbouring cells, nested halves (both good for ranges), the others random."""
    rng = np.random.default_rng([seed, n, p])
    edges = np.linspace(0, n, p + 1).astype(int)
    blocks, halves = (0.1 * rng.random((p, n)) for _ in range(2))
    for row, (low, high) in enumerate(itertools.pairwise(edges)):
        blocks[row, low:high] += 1.0
    for row, (low, high) in zip(range(p), _halves(n), strict=False):
        halves[row, low:high] += 1.0
    return [blocks, halves, *(rng.random((p, n)) for _ in range(restarts))]


def _halves(n: int) -> Iterable[tuple[int, int]]:
    """Halves, quarters, eighths ... of n cells in a row."""
    for depth in itertools.count(1):
        if 2**depth > n:
            return
        yield from itertools.pairwise(np.linspace(0, n, 2**depth + 1).astype(int).tolist())


def gaussian_gram(gram: Matrix) -> tuple[Matrix, float]:
    """The best X = A^T A for L2 sensitivity 1 (up to rounding), and a proven lower bound of tr(V X^+).

    The problem  min tr(V X^+)  subject to  X_jj <= 1  is convex in X. One multiplier a cell gives its dual,

        g(y) = 2 tr((Y^1/2 V Y^1/2)^1/2) - sum y,   Y = diag(y) >= 0,

    a lower bound at every y (at the best constant y it is the well-known (sum of singular values of W)^2 / n), with
    slope diag(X(y)) - 1 where X(y) = Y^-1/2 (Y^1/2 V Y^1/2)^1/2 Y^-1/2 is also the solution when y is. It has n
    unknowns instead of n^2 / 2. The rows that X measures are those of W, whatever its rank.
    """
    n = len(gram)

    def parts(y: Vector) -> tuple[Matrix, Vector]:
        """Eigenvectors divided by y^1/2; roots of the eigenvalues, 0 for mere rounding, or the bound would lie."""
        root = np.sqrt(y)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        return vectors / root[:, None], np.sqrt(np.where(values > 1e-13 * n * values[-1], values, 0.0))

    def objective(t: Vector) -> tuple[float, Vector]:
        y = np.exp(t)
        vectors, singular = parts(y)
        bound = 2.0 * float(singular.sum()) - float(y.sum())
        return -bound / scale, -y * ((vectors**2) @ singular - 1.0) / scale

    nuclear = float(parts(np.ones(n))[1].sum())
    start = np.full(n, 2.0 * math.log(nuclear / n))
    scale = nuclear**2 / n
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(value - 40.0, value + 40.0) for value in start],
        options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 30},
    )
    vectors, singular = parts(np.exp(found.x))
    best: Any = (vectors * singular) @ vectors.T
    return best / np.diag(best).max(), max(-float(found.fun) * scale, scale)
