"""Strategies: what to measure so that a workload is answered best (the idea of HDMM).

Asking the workload's own queries is rarely the best use of a budget. Measure other queries A, a *strategy*, and
work out the workload's answers by least squares: W A^+ y. For linear queries and Laplace or Gaussian noise the error is
known before any private row is read,

    total squared error = 2 ||A||_1^2 ||W A^+||_F^2 / eps^2   (Laplace, pure eps)
                          ||A||_2^2 ||W A^+||_F^2 / (2 rho)   (Gaussian, zCDP),

so the best A can be searched for free. `weighted_marginals` does it for workloads of marginals on many columns,
`p_identity` for any 0/1 (or whole-number) matrix on up to a thousand cells, and `best_strategy` picks between them.
Everything here is public: shapes and queries, never counts. All numbers are for one row a person and a budget of 1;
methods take `budget` (eps or rho) and `rows` (how many rows one person may change). Noise drawn from the discrete laws
has at most the variance of the continuous ones, so predicted errors are never too small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from prade.core.errors import WorkloadError
from prade.planning.strategy.base import Norm, Reconstruction, Strategy
from prade.planning.strategy.marginals import MarginalStrategy, Question, weighted_marginals
from prade.planning.strategy.matrix import MatrixStrategy, p_identity
from prade.queries.parts import Marginal, RowCells
from prade.queries.workload import Workload

__all__ = [
    "MarginalStrategy",
    "MatrixStrategy",
    "Question",
    "Reconstruction",
    "Strategy",
    "best_strategy",
    "p_identity",
    "query_matrix",
    "weighted_marginals",
]

LARGEST_DOMAIN = 2**16  # cells of the product of a general workload's columns, before cells that are alike are merged


def best_strategy(workload: Workload, norm: Norm = 1) -> MarginalStrategy | MatrixStrategy:
    """What to measure for a workload: marginals for marginals, p-Identity for anything else on a small domain.

    Answers come back in the workload's order of queries. A `MatrixStrategy` counts the cells of the product of
    `workload.columns`: see `MatrixStrategy.part`. Marginals are preferred where they do, because they are plain counts
    that estimators take as they are. On a small domain and with Gaussian noise `p_identity(query_matrix(workload),
    norm=2)` has the least expected error of all strategies, marginals included.

    >>> from prade.data.schema import Schema
    >>> schema = Schema.from_mbi({"age": 16, "sex": 2})
    >>> best_strategy(Workload.all_ranges(schema, "age"), norm=2)
    MatrixStrategy(optimised, gaussian, expected_error=2...)
    """
    if all(isinstance(part, Marginal) for part in workload):
        return weighted_marginals(workload.schema, workload, norm)
    return p_identity(query_matrix(workload), norm=norm)


def query_matrix(workload: Workload) -> Any:
    """The workload as a sparse 0/1 matrix: its queries x the cells of the product of its columns (C order)."""
    shape = workload.schema.shape(workload.columns)
    domain = math.prod(shape)
    if any(isinstance(part, RowCells) for part in workload) or domain > LARGEST_DOMAIN:
        raise WorkloadError(
            f"{workload!r} is no list of marginals and has {domain:,} cells; a strategy for general queries needs "
            f"queries on columns with at most {LARGEST_DOMAIN:,} cells together: split the workload by columns"
        )
    codes = dict(zip(workload.columns, np.unravel_index(np.arange(domain), shape), strict=True))
    rows, columns, start = [], [], 0
    for part in workload:
        cells = np.asarray(part.cells(workload.schema, codes), dtype=np.int64)
        inside = np.flatnonzero(cells < part.n_cells)
        rows.append(start + cells[inside])
        columns.append(inside)
        start += part.n_cells
    row, column = np.concatenate(rows), np.concatenate(columns)
    matrix = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(start, domain))
    starts = np.cumsum([0, *(part.n_cells for part in workload)])
    part_of, cell_of = workload.origin.T
    return matrix[starts[part_of] + cell_of]
