"""Stage 1 of the paper's exact problem: how near to the answers a distribution on the support can come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.errors import EstimationError
from prade.estimating.layout import Layout

ROWS_AT_ONCE = 20_000  # a linear programme with more columns is solved by column generation
ROWS_PER_ROUND = 2_000


@dataclass(frozen=True)
class Radius:
    """Stage 1: r* = min over distributions z of sum_i cost_i |(Wz - y)_i|, with its proof (the paper: all costs 1).

    For any prices |lam_i| <= cost_i and any z, the sum is at least lam . y - max_j (W' lam)_j: `lower` is that bound.
    """

    upper: float
    lower: float
    prices: Floats
    reduced: Floats  # max_j (W' prices)_j - (W' prices)_j >= 0, per row
    rounds: int


def smallest_radius(layout: Layout, y: Floats, cost: Floats) -> Radius:
    """Stage 1 by HiGHS; on large supports by column generation, where pricing is one pass over all rows."""
    rows = np.flatnonzero(layout.base > 0)
    if len(rows) > ROWS_AT_ONCE:
        rows = _first_rows(layout)
    for rounds in range(1, 1000):
        upper, prices = _master(layout, rows, y, cost)
        potential = layout.bundles.row_logits(prices)
        potential[layout.base <= 0] = -np.inf
        reduced = potential.max() - potential
        lower = float(prices @ y - potential.max())
        if upper - lower <= 1e-9 * max(1.0, upper):
            return Radius(upper, lower, prices, reduced, rounds)
        order = np.argsort(reduced, kind="stable")  # the rows that promise most
        candidates = order[np.isfinite(reduced[order]) & ~np.isin(order, rows)][:ROWS_PER_ROUND]
        if len(candidates) == 0:
            return Radius(upper, lower, prices, reduced, rounds)
        rows = np.union1d(rows, candidates)
    raise EstimationError("stage 1 did not finish in 1000 rounds of column generation; use MAP on this problem")


def _first_rows(layout: Layout) -> NDArray[np.int64]:
    """A row for every cell of every bundle (hence of every part), and the heaviest rows."""
    somebody = [np.unique(code, return_index=True)[1] for code in layout.bundles.codes]
    heaviest = np.argsort(-layout.base, kind="stable")[: 2 * ROWS_PER_ROUND]
    chosen: NDArray[np.int64] = np.unique(np.concatenate([*somebody, heaviest]))
    return np.asarray(chosen[layout.base[chosen] > 0])


def _master(layout: Layout, rows: NDArray[np.int64], y: Floats, cost: Floats) -> tuple[float, Floats]:
    """min cost . (above + below)  with  W z + below - above = y, sum z = 1, all >= 0, on some rows; and the prices."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    counted = cost > 0
    cells = int(np.count_nonzero(counted))
    identity = eye_array(cells, format="csr")
    answers = hstack([layout.bundles.cells_of(rows).T.tocsr()[counted], identity, -identity], format="csr")
    one = np.concatenate([np.ones(len(rows)), np.zeros(2 * cells)])
    result = linprog(
        np.concatenate([np.zeros(len(rows)), cost[counted], cost[counted]]),
        A_eq=vstack([answers, csr_array(one[None, :])], format="csr"),
        b_eq=np.append(y[counted], 1.0),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise EstimationError(f"stage 1: the linear programme solver stopped with: {result.message}")
    prices = np.zeros(layout.n_cells)
    prices[counted] = np.clip(result.eqlin.marginals[:-1], -cost[counted], cost[counted])
    return float(result.fun), prices
