"""Which public groups a private one resembles: few weights, which can be estimated in spite of much noise.

    w = argmin  sum_i ((A w - y)_i / s_i)^2 / 2  +  KL(w || uniform)        over distributions w on public groups

A: cells of every public group. y: the group's answers as shares, s: their standard deviations.
"""

from __future__ import annotations

import numpy as np

from prade.core.arrays import Floats


def resemblance(cells: Floats, answers: Floats, deviation: Floats, *, steps: int = 300) -> Floats:
    """Weights of the public groups; each is a column of `cells`.

    >>> cells = np.array([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
    >>> resemblance(cells, np.array([0.85, 0.15]), np.array([0.01, 0.01])).round(1)
    array([0.9, 0.1, 0. ])
    """
    from scipy.optimize import minimize

    usable = deviation > 0
    matrix = cells[usable] / deviation[usable, None]
    target = answers[usable] / deviation[usable]
    number = cells.shape[1]

    def objective(logits: Floats) -> tuple[float, Floats]:
        w = _softmax(logits)
        log = np.log(np.maximum(w * number, 1e-300))
        miss = matrix @ w - target
        slope = matrix.T @ miss + log
        return 0.5 * float(miss @ miss) + float(w @ log), w * (slope - w @ slope)

    result = minimize(objective, np.zeros(number), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return _softmax(result.x)


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max())
    return np.asarray(raised / raised.sum())
