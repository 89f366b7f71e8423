"""`MAP`: the posterior mode under the noise that was actually added. The default estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from prade.errors import EstimationError
from prade.estimate import Estimate
from prade.estimators.base import Answers, check, solve
from prade.estimators.dual import Dual
from prade.estimators.solvers import LBFGSB, BlockAscent, Newton, Solver, Tolerance, best_solver
from prade.layout import Layout
from prade.measurement import Measurement
from prade.prior import Prior

Floats = NDArray[np.float64]

SMALLEST_WORTH, LARGEST_WORTH = 1e-2, 1e12


@dataclass(frozen=True)
class MAP:
    """Where noise is small it obeys the answers, where noise is large it keeps the prior.

        minimise  n0 KL(q || p) + sum_k (total / b_k) |W_k q - y_k|_1                     (Laplace, scale b_k)
                                + sum_k (total^2 / 2 sigma_k^2) |W_k q - y_k|_2^2         (Gaussian)

    y_k are the noisy counts over `total`. `n0` says how many rows of the table the prior is worth: given, or "auto"
    (empirical Bayes, see `prior_worth`). `loss="squared"` uses the second form with the noise's variance for Laplace
    answers too. Answers of scale 0 are met exactly.

    `solver`: "newton", "block" (block ascent), "lbfgs", or "auto": Newton up to a few thousand cells, block ascent
    beyond. All climb the same dual and stop when the duality gap is below `tolerance` times the objective.
    """

    n0: float | Literal["auto"] = "auto"
    loss: Literal["noise", "squared"] = "noise"
    solver: Literal["auto", "newton", "block", "lbfgs"] = "auto"
    tolerance: float = 1e-4
    max_steps: int = 500

    def __post_init__(self) -> None:
        if self.n0 != "auto" and not (isinstance(self.n0, (int, float)) and 0 < self.n0 < np.inf):
            raise EstimationError(f"n0 is {self.n0!r}: give a positive number of rows, or 'auto'")
        if self.loss not in ("noise", "squared"):
            raise EstimationError(f"loss is {self.loss!r}, expected 'noise' or 'squared'")
        if self.solver not in ("auto", "newton", "block", "lbfgs"):
            raise EstimationError(f"solver is {self.solver!r}, expected 'auto', 'newton', 'block' or 'lbfgs'")

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The posterior mode."""
        answers = check(prior, measurements, total, layout)
        n0 = prior_worth(answers) if self.n0 == "auto" else float(self.n0)
        dual = self.problem(answers, n0)
        solvers: dict[str, Solver] = {"newton": Newton(), "block": BlockAscent(), "lbfgs": LBFGSB()}
        solver = best_solver(dual) if self.solver == "auto" else solvers[self.solver]
        return solve(
            answers,
            dual,
            solver,
            Tolerance(relative=self.tolerance),
            name="MAP",
            scale=n0,
            max_steps=self.max_steps,
            settings={"n0": n0, "loss": self.loss, "solver": type(solver).__name__},
        )

    def problem(self, answers: Answers, n0: float) -> Dual:
        """The objective over n0: bounds total / (b n0) on Laplace multipliers, variances n0 sigma^2 / total^2."""
        total = answers.total
        variance, bound = [], []
        for m in answers.measurements:
            squared = m.law == "gaussian" or self.loss == "squared"
            exact = m.scale == 0
            variance.append(np.where(exact | (not squared), 0.0, n0 * m.variance / total**2))
            with np.errstate(divide="ignore"):
                bound.append(np.where(exact | squared, np.inf, total / (m.scale * n0)))
        high = np.concatenate(bound)
        return Dual(answers.layout, answers.y, np.concatenate(variance), -high, high)


def prior_worth(answers: Answers) -> float:
    """How many rows the prior is worth, by empirical Bayes.

    n0 KL(q || p) is, to second order, the log density of a distribution around p whose cell masses vary by
    s (1 - s) / n0, s being the prior's mass. The noisy answers scatter around s by that plus the noise:

        y_i - s_i ~ N(0, s_i (1 - s_i) / n0 + noise_i)

    and n0 maximises this likelihood over all reachable cells. If noise alone explains the scatter, n0 is as large as
    it may be, and the estimate is the prior.
    """
    s = answers.layout.prior_masses
    noise = answers.noise_variance
    used = (s > 0) & (s < 1)
    if not used.any():
        return LARGEST_WORTH
    spread, noise = s[used] * (1 - s[used]), noise[used]
    square = (answers.y[used] - s[used]) ** 2

    def surprise(log_n0: Floats) -> Floats:
        variance = spread[:, None] * np.exp(-log_n0)[None, :] + noise[:, None]
        return np.asarray((np.log(variance) + square[:, None] / variance).sum(axis=0))

    low, high = np.log(SMALLEST_WORTH), np.log(LARGEST_WORTH)
    for _ in range(4):  # a grid refined around its best point: the likelihood may have several local maxima
        grid = np.linspace(low, high, 41)
        best = int(np.argmin(surprise(grid)))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return float(np.exp(grid[best]))
