"""`TwoStage`: the paper's exact problem, by linear programming and then least KL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prade.errors import EstimationError
from prade.estimate import Estimate
from prade.estimators.base import Answers, check, solve
from prade.estimators.dual import Dual
from prade.estimators.solvers import Tolerance, best_solver
from prade.layout import Layout
from prade.measurement import Measurement
from prade.prior import Prior

Floats = NDArray[np.float64]

ROWS_AT_ONCE = 20_000  # a linear programme with more columns is solved by column generation
ROWS_PER_ROUND = 2_000


@dataclass(frozen=True)
class Radius:
    """Stage 1: r* = min over distributions z of |Wz - y|_1, with its proof.

    For any prices |lam_i| <= 1 and any z,  |Wz - y|_1 >= lam . y - max_j (W' lam)_j; `lower` is that bound.
    """

    upper: float
    lower: float
    prices: Floats
    reduced: Floats  # max_j (W' prices)_j - (W' prices)_j >= 0, per row
    rounds: int


@dataclass(frozen=True)
class TwoStage:
    """Of all distributions nearest to the answers, the one nearest to the prior.

        stage 1   r* = min |Wz - y|_1             over distributions z on the support
        stage 2   min KL(q || p)  with  |Wq - y|_1 <= r*

    The paper asks for Wq = y* with y* = Wz of a stage 1 optimum, but several y* are optimal; the radius is what stage 1
    determines. By complementary slackness with the prices lam of *any* dual optimum of stage 1, the constraint is:

        rows off the maximum of W' lam have no mass;    |lam_i| < 1:  (Wq)_i = y_i;
        lam_i = 1:  (Wq)_i <= y_i;                      lam_i = -1:  (Wq)_i >= y_i

    so stage 2 is the dual of `dual.py` with half-open boxes, and ends with a duality gap.
    """

    tolerance: float = 1e-8
    max_steps: int = 500

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The paper's optimum. Scales of the measurements are not used."""
        answers = check(prior, measurements, total, layout)
        radius = smallest_radius(answers)
        face = answers.layout.restricted(radius.reduced <= 1e-7)
        slack = 1e-7
        high = np.where(radius.prices >= 1 - slack, 0.0, np.inf)
        low = np.where(radius.prices <= -1 + slack, 0.0, -np.inf)
        # nobody can be in an unreachable cell: it adds a constant to the distance, and nothing to decide
        low, high = (np.where(face.reachable, bound, 0.0) for bound in (low, high))
        dual = Dual(face, answers.y, np.zeros(face.n_cells), low, high)
        return solve(
            answers,
            dual,
            best_solver(dual),
            Tolerance(relative=self.tolerance, absolute=1e-10, misfit=1e-8),
            name="TwoStage",
            scale=1.0,
            max_steps=self.max_steps,
            settings={"solver": type(best_solver(dual)).__name__},
            certificate={
                "radius": radius.upper,
                "radius_lower": radius.lower,
                "rounds": float(radius.rounds),
                "rows_kept": float(np.count_nonzero(face.base)),
            },
        )


def smallest_radius(answers: Answers) -> Radius:
    """Stage 1 by HiGHS; on large supports by column generation, where pricing is one pass over all rows."""
    layout = answers.layout
    rows = np.flatnonzero(layout.base > 0)
    if len(rows) > ROWS_AT_ONCE:
        rows = _first_rows(layout)
    for rounds in range(1, 1000):
        upper, prices = _master(layout, rows, answers.y)
        potential = layout.row_logits(prices)
        potential[layout.base <= 0] = -np.inf
        reduced = potential.max() - potential
        lower = float(prices @ answers.y - potential.max())
        if upper - lower <= 1e-9 * max(1.0, upper):
            return Radius(upper, lower, prices, reduced, rounds)
        # the rows that promise most, and a wide choice of them
        candidates = np.setdiff1d(np.argsort(reduced, kind="stable")[: 4 * ROWS_PER_ROUND], rows)[:ROWS_PER_ROUND]
        if len(candidates) == 0:
            return Radius(upper, lower, prices, reduced, rounds)
        rows = np.union1d(rows, candidates)
    raise EstimationError("stage 1 did not finish in 1000 rounds of column generation; use MAP on this problem")


def _first_rows(layout: Layout) -> NDArray[np.int64]:
    """A row for every cell of every bundle (hence of every part), and the heaviest rows."""
    somebody = [np.unique(code, return_index=True)[1] for code in layout.codes]
    heaviest = np.argsort(-layout.base, kind="stable")[: 2 * ROWS_PER_ROUND]
    chosen: NDArray[np.int64] = np.unique(np.concatenate([*somebody, heaviest]))
    return np.asarray(chosen[layout.base[chosen] > 0])


def _master(layout: Layout, rows: NDArray[np.int64], y: Floats) -> tuple[float, Floats]:
    """min sum(above + below)  with  W z + below - above = y, sum z = 1, all >= 0, on some rows; prices |lam| <= 1."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    cells = layout.n_cells
    identity = eye_array(cells, format="csr")
    answers = hstack([layout.cells_of(rows).T, identity, -identity], format="csr")
    one = np.concatenate([np.ones(len(rows)), np.zeros(2 * cells)])
    result = linprog(
        np.concatenate([np.zeros(len(rows)), np.ones(2 * cells)]),
        A_eq=vstack([answers, csr_array(one[None, :])], format="csr"),
        b_eq=np.append(y, 1.0),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise EstimationError(f"stage 1: the linear programme solver stopped with: {result.message}")
    return float(result.fun), np.clip(np.asarray(result.eqlin.marginals[:-1]), -1.0, 1.0)
