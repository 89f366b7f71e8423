"""How many rows the prior is worth: `n0` by empirical Bayes, on the careful side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prade.core.arrays import Floats
from prade.estimating.base import Answers

SMALLEST, LARGEST = 1e-2, 1e8  # from a prior that hardly counts to one that outweighs any table
STRIDE = 8  # of the first look at the grid
DOUBT = 3.0  # nats of log-likelihood: evidence of 20 to 1 before the prior is trusted less


def prior_worth(answers: Answers) -> float:
    """The largest n0 that the noisy answers do not contradict.

    n0 KL(q || p) is, to second order, the log density of a q whose cell masses vary by s (1 - s) / n0 around the
    prior's s. The prior's errors are uneven, though: a few cells are far off, most are not. So the
    answers are modelled with a long-tailed deviation of that variance, plus the noise by its own law:

        y_i - s_i = Laplace(a_i) + noise_i,      2 a_i^2 = s_i (1 - s_i) / n0

    The result is not the most likely n0 but the largest within `DOUBT` nats of it: where noise drowns the deviations
    every large n0 fits as well, and the estimate stays the prior.
    """
    s = answers.layout.prior_masses
    used = (s > 0) & (s < 1)
    if not used.any():
        return LARGEST
    x = np.abs(answers.y - s)[used]
    unit = np.sqrt(s * (1 - s) / 2)[used]
    scale = np.concatenate([m.scale for m in answers.measurements])[used] / answers.total
    gaussian = np.concatenate([np.full(len(m.counts), m.law == "gaussian") for m in answers.measurements])[used]

    def log_likelihood(log_n0: float) -> float:
        a = unit * np.exp(-log_n0 / 2)
        terms = np.where(gaussian, _log_laplace_plus_normal(x, a, scale), _log_laplace_plus_laplace(x, a, scale))
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


def _log_laplace_plus_laplace(x: Floats, a: Floats, b: Floats) -> Floats:
    """log density at x >= 0 of Laplace(a) + Laplace(b):  (a e^(-x/a) - b e^(-x/b)) / 2 (a^2 - b^2)."""
    wide, narrow = np.maximum(a, b), np.minimum(a, b)
    wide = np.maximum(wide, narrow * (1 + 1e-6))  # equal scales: the limit, near enough
    ratio = narrow / wide
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.where(narrow > 0, ratio * np.exp(-x * (1 / narrow - 1 / wide)), 0.0)
    return np.asarray(-x / wide + np.log1p(-inner) - np.log(2 * wide * (1 - ratio) * (1 + ratio)))


def _log_laplace_plus_normal(x: Floats, a: Floats, sigma: Floats) -> Floats:
    """log density at x >= 0 of Laplace(a) + N(0, sigma^2).

    = log( e^(-x/a) Phi(x/sigma - sigma/a) + e^(x/a) Phi(-x/sigma - sigma/a) ) + sigma^2 / 2a^2 - log 2a
    """
    from scipy.special import log_ndtr

    a = np.maximum(a, 1e-4 * sigma)  # narrower deviations are invisible, and would cancel badly
    with np.errstate(divide="ignore", invalid="ignore"):
        t, u = np.where(sigma > 0, x / sigma, np.inf), sigma / a
        both = np.logaddexp(-x / a + log_ndtr(t - u), np.where(sigma > 0, x / a + log_ndtr(-t - u), -np.inf))
    return np.asarray(both + u**2 / 2 - np.log(2 * a))
