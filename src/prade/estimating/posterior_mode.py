"""`MAP`: the posterior mode under the noise that was added. The default estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prade.core.errors import EstimationError
from prade.data.public.joint import Prior
from prade.estimating.base import Answers, check, check_limits, hopeless, solve
from prade.estimating.dual import Dual
from prade.estimating.estimate import Estimate
from prade.estimating.layout import Layout
from prade.estimating.solvers import LBFGSB, BlockAscent, Newton, Solver, Tolerance, best_solver
from prade.release.release import Measurement


@dataclass(frozen=True)
class MAP:
    """Where noise is small it follows the answers, where noise is large it keeps the prior.

        minimise  n0 KL(q || p) + sum_k (total / b_k) |W_k q - y_k|_1                     (Laplace, scale b_k)
                                + sum_k (total^2 / 2 sigma_k^2) |W_k q - y_k|_2^2         (Gaussian)

    y_k are the noisy counts over `total`. `n0` is how many rows of the table the prior is worth: a number, or "auto"
    (empirical Bayes, see `prior_worth`), which is multiplied by `trust`. Answers of scale 0 are met exactly. `limit`
    bounds every noisy cell's multiplier: no answer may raise or lower the rows of its cell by more than a factor
    e^limit (Huber's loss instead of the square).

    `solver`: "newton", "block" (block ascent), "lbfgs", or "auto": Newton up to 2,000 cells. All climb one dual and
    stop when the duality gap is below `tolerance` times the objective and exact answers are met to `misfit` (L1, as a
    share of the total).

    >>> from prade import Schema, Workload
    >>> from prade.estimating import MAP, Measurement, Prior
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    >>> part = Workload.marginals(schema, ["a"])[0]
    >>> noisy = [Measurement(part, [40, 60], scale=2.0)]
    >>> [MAP(n0=n0).fit(prior, noisy, total=100).project(["a"]).round(2).tolist() for n0 in (10, 1000)]
    [[0.4, 0.6], [0.73, 0.27]]
    """

    n0: float | Literal["auto"] = "auto"
    solver: Literal["auto", "newton", "block", "lbfgs"] = "auto"
    tolerance: float = 1e-4
    misfit: float = 1e-9
    limit: float | None = None
    trust: float = 1.0
    max_steps: int = 500

    def __post_init__(self) -> None:
        check_limits(self.max_steps, tolerance=self.tolerance, misfit=self.misfit)
        given: object = self.n0
        number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool) and bool(0 < given < np.inf)
        if given != "auto" and not number:
            raise EstimationError(f"n0 is {self.n0!r}: give a positive number of rows, or 'auto'")
        if not 0 < self.trust < np.inf:
            raise EstimationError(f"trust is {self.trust!r}: give a positive number, such as 3")
        if self.limit is not None and not self.limit > 0:
            raise EstimationError(f"limit is {self.limit!r}: give a positive number, such as 5")
        if self.solver not in ("auto", "newton", "block", "lbfgs"):
            raise EstimationError(f"solver is {self.solver!r}, expected 'auto', 'newton', 'block' or 'lbfgs'")

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The posterior mode."""
        answers = check(prior, measurements, total, layout)
        if answers.hopeless:
            return hopeless(self, answers)
        n0 = self.trust * prior_worth(answers) if self.n0 == "auto" else float(self.n0)
        dual, tolerance = self.problem(answers, n0), Tolerance(relative=self.tolerance, misfit=self.misfit)
        solvers: dict[str, Solver] = {"newton": Newton(), "block": BlockAscent(), "lbfgs": LBFGSB()}
        solver = best_solver(dual, tolerance) if self.solver == "auto" else solvers[self.solver]
        return solve(self, answers, dual, solver, tolerance, scale=n0, n0=n0)

    def problem(self, answers: Answers, n0: float) -> Dual:
        """The objective over n0: bounds total / (b n0) on Laplace multipliers, variances n0 sigma^2 / total^2."""
        total, sizes = answers.total, [len(m.counts) for m in answers.measurements]
        scale = np.concatenate([m.scale for m in answers.measurements])
        squared = np.repeat([m.law.squared for m in answers.measurements], sizes)
        variance, noisy = np.concatenate([m.variance for m in answers.measurements]), scale > 0
        variance = np.where(noisy & squared, n0 * variance / total**2, 0.0)
        with np.errstate(divide="ignore"):
            bound = np.where(squared, np.inf, total / (scale * n0))
        limit = np.inf if self.limit is None else self.limit
        high = np.where(noisy, np.minimum(bound, limit), np.inf)
        return Dual(answers.layout, answers.y, variance, -high, high)


# ---------------------------------------------------------------------- n0 by empirical Bayes, on the careful side


SMALLEST, LARGEST = 1e-2, 1e8  # from a prior that hardly counts to one that outweighs any table
STRIDE = 8  # of the first look at the grid
DOUBT = 3.0  # nats of log-likelihood: evidence of 20 to 1 before the prior is trusted less


def prior_worth(answers: Answers) -> float:
    """The largest n0 that the noisy answers do not contradict.

    n0 KL(q || p) is, to second order, the log density of a q whose cell masses vary by s (1 - s) / n0 around the
    prior's s. A few cells are far off, most are not, so the answers are modelled with a long-tailed deviation:

        y_i - s_i = Laplace(a_i) + noise_i,      2 a_i^2 = s_i (1 - s_i) / n0

    The result is the largest n0 within `DOUBT` nats of the most likely one.
    """
    s = answers.layout.start.masses
    used = (s > 0) & (s < 1)
    if not used.any():
        return LARGEST
    x = np.abs(answers.y - s)[used]
    unit = np.sqrt(s * (1 - s) / 2)[used]
    scale = np.concatenate([m.scale for m in answers.measurements])[used] / answers.total
    laws = list(dict.fromkeys(m.law for m in answers.measurements))
    law_of = np.concatenate([np.full(len(m.counts), laws.index(m.law)) for m in answers.measurements])[used]

    def log_likelihood(log_n0: float) -> float:
        a = unit * np.exp(-log_n0 / 2)
        terms = np.choose(law_of, [law.log_density_beside(x, a, scale) for law in laws])
        return float(terms.sum())

    grid = np.linspace(np.log(SMALLEST), np.log(LARGEST), 231)  # steps of ten percent
    careful = grid[last_likely(lambda k: log_likelihood(float(grid[k])), len(grid))]
    return min(float(np.exp(careful)), LARGEST)


def last_likely(log_likelihood: Callable[[int], float], size: int) -> int:
    """The last of `size` numbers whose likelihood is within `DOUBT` of the largest.

    Every eighth is looked at, then all around the largest and after the last that is likely enough: with one hill, the
    result is that of looking at all.
    """
    found: dict[int, float] = {k: log_likelihood(k) for k in (*range(0, size, STRIDE), size - 1)}

    def look_at(first: int, last: int) -> None:
        found.update({k: log_likelihood(k) for k in range(max(first, 0), min(last, size)) if k not in found})

    top = max(found, key=found.__getitem__)
    look_at(top - STRIDE + 1, top + STRIDE)
    least = max(found.values()) - DOUBT
    last = max(k for k, value in found.items() if value >= least)
    look_at(last + 1, last + STRIDE)
    return max(k for k, value in found.items() if value >= least)
