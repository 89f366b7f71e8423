"""`TwoStage`: the paper's exact problem, by linear programming and then least KL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prade.data.public.joint import Prior
from prade.estimating.base import check, check_limits, hopeless, settings_of, solve
from prade.estimating.dual import Dual
from prade.estimating.estimate import Estimate
from prade.estimating.layout import Layout
from prade.estimating.radius import smallest_radius
from prade.estimating.solvers import Tolerance, best_solver
from prade.release.release import Measurement


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

    >>> from prade import Schema, Workload
    >>> from prade.release.release import Measurement
    >>> from prade.data.public.joint import Prior
    >>> from prade.estimating.two_stage import TwoStage
    >>> schema = Schema.from_mbi({"a": 2, "b": 2})
    >>> prior = Prior.from_table(schema, {"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]})
    >>> part = Workload.marginals(schema, ["a"])[0]
    >>> estimate = TwoStage().fit(prior, [Measurement(part, [70, 70], scale=2.0)], total=100)
    >>> estimate.project(["a"]).round(3), round(estimate.report.certificate["radius"], 3)
    (array([0.7, 0.3]), 0.4)
    """

    tolerance: float = 1e-8
    max_steps: int = 500

    def __post_init__(self) -> None:
        check_limits(self.max_steps, tolerance=self.tolerance)

    def fit(
        self, prior: Prior, measurements: Sequence[Measurement], total: float, *, layout: Layout | None = None
    ) -> Estimate:
        """The paper's optimum. Scales of the measurements are not used."""
        answers = check(prior, measurements, total, layout)
        if answers.hopeless:
            return hopeless(answers, "TwoStage", settings_of(self))
        radius = smallest_radius(answers.layout, answers.y, np.ones(answers.layout.n_cells))
        face = answers.layout.restricted(radius.reduced <= 1e-7)
        slack = 1e-7
        high = np.where(radius.prices >= 1 - slack, 0.0, np.inf)
        low = np.where(radius.prices <= -1 + slack, 0.0, -np.inf)
        # nobody can be in an unreachable cell: it adds a constant to the distance, and nothing to decide
        low, high = (np.where(face.reachable, bound, 0.0) for bound in (low, high))
        dual = Dual(face, answers.y, np.zeros(face.n_cells), low, high)
        tolerance = Tolerance(relative=self.tolerance, absolute=1e-10, misfit=1e-8)
        solver = best_solver(dual, tolerance)
        return solve(
            answers,
            dual,
            solver,
            tolerance,
            name="TwoStage",
            scale=1.0,
            max_steps=self.max_steps,
            settings=settings_of(self, solver=type(solver).__name__),
            certificate={
                "radius": radius.upper,
                "radius_lower": radius.lower,
                "rounds": float(radius.rounds),
                "rows_kept": float(np.count_nonzero(face.base)),
            },
        )
