"""Strategies for general queries on a small domain: whole-number combinations of cell counts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from prade.core.arrays import Floats
from prade.core.errors import EstimationError, WorkloadError
from prade.core.threads import single_threaded_blas
from prade.planning.strategy.base import Choice, Norm, Reconstruction, Strategy, check_norm, checked_importance, choose
from prade.planning.strategy.search import gaussian_gram, p_identity_rows, p_identity_starts
from prade.queries.parts import Cells

LARGEST_MATRIX = 1024  # distinct cells of a general workload; the searches take cubes of it
GRID = 2**20  # real coefficients become whole multiples of 1 / GRID, because exact noise is added to whole numbers
RIDGE = 1e-5  # weight of the identity beside a strategy of lower rank, so that rounding cannot make it useless
BLOCK = 4096  # rows of a long matrix that are made dense at a time

Integers = NDArray[np.int64]


class MatrixStrategy(Strategy):
    """Measure `matrix` times the counts of the merged cells, with one noise scale for all entries.

    `cell_of[j]` is the merged cell of domain cell j, -1 where no query looks. Adding a row to cell j adds column
    cell_of[j] of `matrix` to the answers, so the sensitivities to one row are exact whole numbers: `l1`, the largest
    column sum of absolute values, and `l2_squared`, the largest column sum of squares. Noise: Laplace of scale
    rows l1 / eps, or Gaussian of variance rows^2 l2_squared / (2 rho), the same for all entries.
    """

    matrix: Integers
    cell_of: Integers

    def __init__(
        self,
        queries: Any,
        cell_of: Integers,
        matrix: Integers,
        norm: Norm,
        choice: Choice,
        errors: Mapping[str, float],
    ) -> None:
        self.norm, self.choice, self.errors = norm, choice, dict(errors)
        self.matrix, self.cell_of, self._queries = matrix, cell_of, queries
        self._covariance = _inverse(_gram(matrix))
        self.variances = _unit(matrix, norm) * _quadratic(queries, self._covariance)

    @property
    def l1(self) -> int:
        """L1 sensitivity to one row."""
        return int(np.abs(self.matrix).sum(axis=0).max())

    @property
    def l2_squared(self) -> int:
        """Square of the L2 sensitivity to one row."""
        return int((self.matrix**2).sum(axis=0).max())

    def part(self, columns: Sequence[str]) -> Cells:
        """The cells to count before `matrix` is applied, as a part over the columns that span the domain."""
        n = self.matrix.shape[1]
        return Cells(columns, np.where(self.cell_of < 0, n, self.cell_of), n)

    def exact(self, histogram: ArrayLike) -> Integers:
        """True answers to the questions, from counts of the domain's cells (or of the merged cells)."""
        counts = np.asarray(histogram).ravel()
        if counts.dtype.kind not in "iu" or len(counts) not in (len(self.cell_of), self.matrix.shape[1]):
            raise EstimationError(
                f"expected {len(self.cell_of)} whole counts of cells, or {self.matrix.shape[1]} of merged cells, "
                f"got {len(counts)} of type {counts.dtype}"
            )
        if len(counts) == len(self.cell_of):
            merged = np.zeros(self.matrix.shape[1], dtype=np.int64)
            np.add.at(merged, self.cell_of[self.cell_of >= 0], counts[self.cell_of >= 0])
            counts = merged
        return np.asarray(self.matrix @ counts.astype(np.int64))

    def reconstruct(self, noisy: ArrayLike, budget: float | Fraction = 1, rows: int = 1) -> Reconstruction:
        """One noisy answer a row of `matrix` -> the workload's answers W (A^T A)^+ A^T y."""
        values = np.asarray(noisy, dtype=np.float64)
        if values.shape != (len(self.matrix),) or not np.isfinite(values).all():
            raise EstimationError(f"expected {len(self.matrix)} finite answers, got an array of shape {values.shape}")
        cells = self._covariance @ (self.matrix.T @ values)
        return Reconstruction(np.asarray(self._queries @ cells), self.expected_std(budget, rows))


def p_identity(
    matrix: Any,
    p: int | None = None,
    norm: Norm = 1,
    *,
    importance: Sequence[float] | None = None,
    restarts: int | None = None,
    seed: int = 0,
) -> MatrixStrategy:
    """What to measure for the queries of a whole-number matrix W (queries x cells), dense or scipy sparse.

    Norm 1 (Laplace): A = [I; Theta] D, all cells and p weighted sums of them, columns summing to 1; Theta >= 0 by
    gradient descent from several starts. `p` None tries a few values around n / 16. A local optimum.

    Norm 2 (Gaussian): the best strategy of all, min tr(V X^+) over X = A^T A with X_jj <= 1, which is convex; `p` does
    not matter there.

    Cells with equal columns in W are merged first, and cells in no query are left out: no query could tell them apart.
    Coefficients are then rounded to whole multiples of 1 / 2^20 and `errors` and `variances` are those of the rounded
    strategy. Never worse than measuring W itself or its (merged) cells.

    >>> strategy = p_identity(np.tri(16), norm=2)
    >>> strategy.choice, strategy.errors["optimised"] < 0.5 * strategy.errors["identity"]
    ('optimised', True)
    >>> p_identity([[1, 1, 1, 1]]).expected_error(budget=1)  # a total: one count with variance 2 / eps^2
    2.0
    """
    check_norm(norm)
    queries, cell_of = _merged(matrix)
    m, n = queries.shape
    weights = np.array(checked_importance(importance, m))
    if n > LARGEST_MATRIX:
        raise WorkloadError(
            f"the queries tell {n:,} cells apart, a strategy can be searched for up to {LARGEST_MATRIX:,}; use coarser "
            "bins, or marginals with weighted_marginals"
        )
    if p is not None and not 1 <= p <= n:
        raise WorkloadError(f"p is {p}; expected a whole number from 1 to {n}, the number of cells told apart")
    demand = _gram(queries, weights)
    first, _ = _distinct(queries)
    options: dict[Choice, Any] = {"workload": queries[first], "identity": np.eye(n, dtype=np.int64)}
    with single_threaded_blas():
        gram, bound = gaussian_gram(demand)
        if norm == 1:
            options["optimised"] = _whole_p_identity(demand, p, restarts, seed)
        else:
            options["optimised"] = _whole_root(gram, np.linalg.matrix_rank(demand, hermitian=True) < n)
        errors: dict[str, float] = {
            name: _unit(option, norm) * float((demand * _inverse(_gram(option))).sum())
            for name, option in options.items()
        }
    errors["raw"] = _unit(queries, norm) * float(weights.sum())
    errors["bound"] = (2.0 if norm == 1 else 0.5) * bound
    choice = choose(errors)
    chosen = options[choice]
    whole = np.asarray(chosen.toarray() if choice == "workload" else chosen, dtype=np.int64)
    return MatrixStrategy(queries, cell_of, whole, norm, choice, errors)


def _merged(matrix: Any) -> tuple[Any, Integers]:
    """W with equal columns merged and zero columns left out, and which column each became."""
    given = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "biuf":
        raise WorkloadError(f"expected a matrix of numbers, queries x cells, got shape {given.shape}")
    columns = sparse.csc_array(given, dtype=np.float64)
    columns.sum_duplicates()
    columns.eliminate_zeros()
    if not bool(np.all(columns.data == np.round(columns.data))) or (np.abs(columns.data) > 2**20).any():
        raise WorkloadError("the matrix must hold whole numbers up to 2^20; use importance= to weigh queries")
    if columns.nnz == 0:
        raise WorkloadError("all entries of the matrix are zero: there is nothing to measure")
    first, cell_of = _distinct(columns)
    queries = sparse.csr_array(columns[:, first])
    queries.sort_indices()
    return queries, cell_of


def _distinct(compressed: Any) -> tuple[list[int], Integers]:
    """First of each kind of non-zero column (csc; of row for csr), and the kind of each column, -1 for zero."""
    seen: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    ends = compressed.indptr.tolist()
    kinds = np.full(len(ends) - 1, -1, dtype=np.int64)
    for j, (low, high) in enumerate(itertools.pairwise(ends)):
        if low == high:
            continue
        key = compressed.indices[low:high].tobytes(), compressed.data[low:high].tobytes()
        if key not in seen:
            seen[key] = len(first)
            first.append(j)
        kinds[j] = seen[key]
    return first, kinds


def _whole_p_identity(demand: Floats, p: int | None, restarts: int | None, seed: int) -> Integers:
    """The best [I; Theta] D found, times GRID, in whole numbers with columns that sum to exactly GRID."""
    n = len(demand)
    if restarts is None:
        restarts = 2 if n <= 128 else 0  # starts differ by less than a hundredth there, and each takes seconds
    some = {1, max(1, n // 16), max(1, n // 8)} if n <= 64 else {n // 16}
    tries = sorted(some) if p is None else [p]
    theta, _ = min(
        (p_identity_rows(demand, k, p_identity_starts(n, k, restarts, seed)) for k in tries), key=lambda pair: pair[1]
    )
    sums = np.floor(GRID * theta / (1.0 + theta.sum(axis=0))).astype(np.int64)
    sums = sums[sums.any(axis=1)]
    # what rounding leaves goes to the cell itself, so that nothing of the sensitivity is wasted
    return np.concatenate([np.diag(GRID - sums.sum(axis=0)), sums])


def _whole_root(gram: Floats, deficient: bool) -> Integers:
    """X^1/2 times GRID in whole numbers; the ridge makes up for directions that no query needs but rounding touches."""
    ridge = RIDGE if deficient else 0.0
    values, vectors = np.linalg.eigh(gram + ridge * np.eye(len(gram)))
    root = (vectors * np.sqrt(np.maximum(values, ridge))) @ vectors.T
    return np.asarray(np.trunc(GRID * root), dtype=np.int64)


def _gram(matrix: Any, weights: Floats | None = None) -> Floats:
    """A^T diag(weights) A, some thousand rows at a time: in real numbers and dense, which BLAS does fastest."""
    total = np.zeros((matrix.shape[1],) * 2)
    for k in range(0, matrix.shape[0], BLOCK):
        block = matrix[k : k + BLOCK].astype(np.float64)
        block = block if isinstance(block, np.ndarray) else block.toarray()
        total += block.T @ (block if weights is None else block * weights[k : k + BLOCK, None])
    return total


def _inverse(gram: Floats) -> Floats:
    """(A^T A)^+; what is below rounding counts as not measured."""
    return np.asarray(np.linalg.pinv(gram, rcond=1e-11, hermitian=True))


def _unit(matrix: Any, norm: int) -> float:
    """Variance of one answer for budget 1 and one row a person: 2 ||A||_1^2 or ||A||_2^2 / 2."""
    if norm == 1:
        return 2.0 * float(abs(matrix).sum(axis=0).max()) ** 2
    return 0.5 * float((matrix * matrix).sum(axis=0).max())


def _quadratic(queries: Any, covariance: Floats) -> Floats:
    """w^T C w for every row w."""
    blocks = [queries[k : k + BLOCK] for k in range(0, queries.shape[0], BLOCK)]
    return np.concatenate(
        [np.asarray((block * np.asarray(block @ covariance)).sum(axis=1)).ravel() for block in blocks]
    )
