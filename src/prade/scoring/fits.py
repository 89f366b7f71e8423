"""Least squares and logistic regression with standard errors, and the overlap of two confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Floats
from prade.scoring.sides import NotAvailable

NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations
STEPS, SMALL, LARGEST = 50, 1e-9, 30.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients and their standard errors."""

    estimate: Floats
    error: Floats

    @property
    def low(self) -> Floats:
        """The lower ends of the 95 % confidence intervals."""
        return np.asarray(self.estimate - NORMAL * self.error)

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return np.asarray(self.estimate + NORMAL * self.error)


def least_squares(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Linear regression; `weights` have mean one. Errors are the usual ones, of equal variances."""
    inverse = _inverse(x, weights)
    estimate = inverse @ (x.T @ (weights * y))
    residual = y - x @ estimate
    variance = float((weights * residual**2).sum()) / (len(y) - x.shape[1])
    return Fit(estimate, np.sqrt(variance * np.diag(inverse)))


def logistic(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Logistic regression of zeros and ones by Newton's method; errors come from the Fisher information."""
    estimate = np.zeros(x.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(x @ estimate, -500.0, 500.0)))
        inverse = _inverse(x, weights * chance * (1.0 - chance))
        step = inverse @ (x.T @ (weights * (y - chance)))
        estimate += step
        if np.abs(estimate).max() > LARGEST:
            break
        if np.abs(step).max() < SMALL:
            return Fit(estimate, np.sqrt(np.diag(inverse)))
    raise NotAvailable("the predictors tell the outcome of some rows for certain, so that the fit has no end")


def _inverse(x: Floats, weights: Floats) -> Floats:
    """The inverse of X' W X."""
    information = x.T @ (weights[:, None] * x)
    scale = np.sqrt(np.diag(information))
    if (scale <= 0.0).any() or np.linalg.cond(information / np.outer(scale, scale)) > 1e12:
        raise NotAvailable("one predictor follows from the others; name others")
    return np.asarray(np.linalg.inv(information))


def overlap(one: Fit, other: Fit) -> Floats:
    """For each coefficient, what share of the two confidence intervals they have in common, 0 to 1.

    It is the mean of the common part's share of each (Karr, Kohnen, Oganian, Reiter and Sanil 2006), and 0 for
    intervals that do not meet.
    """
    common = np.minimum(one.high, other.high) - np.maximum(one.low, other.low)
    widths = one.high - one.low, other.high - other.low
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (common / widths[0] + common / widths[1]) / 2.0
    exact = (widths[0] <= 0.0) | (widths[1] <= 0.0)
    return np.where(exact, (common >= 0.0).astype(np.float64), np.maximum(mean, 0.0))
