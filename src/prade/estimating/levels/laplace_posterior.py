"""The posterior of a group's shares where each answer has one draw of Laplace noise, by expectation propagation.

`prade.estimating.levels.smoothing` conditions on answers as if their noise were Gaussian. With u ~ N(0, S) and answers
y = u + noise of standard deviation sigma, Laplace noise of scale b = sigma / sqrt(2) tells up to twice as much about a
cell: its Fisher information is 1 / b^2 = 2 / sigma^2. The posterior is approximated by

    N(0, S) * product over cells of exp(shift_i u_i - precision_i u_i^2 / 2)        the last factor is the cell's *site*

In a sweep, each cell's site is taken out of this, which leaves the cell's *cavity* N(mu, s^2), what all other answers
say about it. The new site gives cavity times site the same mean and variance as cavity times Laplace likelihood. In
units of s, let t = (y - mu) / s and k = s / b. The product is a mixture of two truncated normal distributions:

    below y    N(mu + s^2 / b, s^2)    of mass proportional to E(k - t),     E(x) = erfcx(x / sqrt(2))
    above y    N(mu - s^2 / b, s^2)    of mass proportional to E(k + t)

A standard normal variable above x exceeds it by h - x on average, with variance 1 - h (h - x), h = sqrt(2 / pi) / E(x).
The Laplace law is log-concave, so no site has a negative precision. All cells' sites are renewed at once; the first
cavities come from the Gaussian posterior. Minka (2001).

*Odd cells.* A Gaussian prior has no outliers, and a Laplace law has some: an answer that the others contradict would be
put down to noise, however improbable such noise is. But some cells do not follow S (a people or a trade that only one
place has), and there the answer is right. A cell is therefore odd with the posterior probability o that follows from

    density of the answer y    the model's, E(k - t) + E(k + t) times exp(-t^2 / 2) / (4 b s), with weight 1 - ODD
                               a Cauchy law around mu of scale sqrt(s^2 + sigma^2), with weight ODD

and its site is (1 - o) times the one above plus o times that of Gaussian noise, which follows the answer. On Illinois
from Ohio at epsilon 10 the squared error of one-way cells more than doubled without this, and hardly changed with it.

`benchmarks/posterior.py` compares this posterior with the linear one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from prade.core.arrays import Flags, Floats

SWEEPS = 2  # the errors of smoothed answers are then those of 30 sweeps, to three digits
ODD = 0.1  # from 0.05 to 0.2 the errors on public and generated tables hardly differ
NEGLIGIBLE = 1e-3  # variance, in units of the noise's: directions of S with less keep their prior variance
SMALLEST = 1e-8  # variance of a cavity in the same units: it is 0 in a cell without public rows
LARGEST = 1e6  # variance of a cavity: where others say less, a cell is its own answer, whatever the law of the noise
FAR = 30.0  # beyond it, the moments of truncated normal variables come from their series
SCALE = math.sqrt(0.5)  # b of Laplace noise of standard deviation 1


def laplace_posterior(
    root: Floats,
    answer: Floats,
    noise: Floats,
    one_draw: Flags,
    start: tuple[Floats, Floats],
    *,
    sweeps: int = SWEEPS,
    odd: float = ODD,
) -> tuple[Floats, Floats]:
    """Mean and variances of u ~ N(0, R R'), given answers u + noise of these standard deviations.

    `root` is R, [cells, directions]. `one_draw` says which answers have one draw of Laplace noise; that of the others
    is Gaussian. `start` has the mean and the variances if all were Gaussian.
    """
    scaled, y = root / noise[:, None], answer / noise  # in units of the noise
    told = np.sum(scaled**2, axis=0) > NEGLIGIBLE
    if not told.any():
        return start
    untold, scaled = np.sum(scaled[:, ~told] ** 2, axis=1), scaled[:, told]
    prior = np.maximum(np.sum(scaled**2, axis=1), SMALLEST)
    precision, shift = np.ones(len(y)), y
    mean, variance = start[0] / noise, start[1] / noise**2 - untold
    for _ in range(sweeps):
        known = 1 / np.maximum(variance, SMALLEST)
        cavity = 1 / np.maximum(known - precision, 1 / prior)
        new_precision, new_shift = _sites(cavity, cavity * (known * mean - shift), y, odd)
        renewed = one_draw & (cavity < LARGEST)
        precision, shift = np.where(renewed, new_precision, 1.0), np.where(renewed, new_shift, y)
        mean, variance = _gaussian(scaled, precision, shift)
    return noise * mean, noise**2 * (variance + untold)


def _gaussian(root: Floats, precision: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Mean and variances of N(0, R R') times the sites: R (1 + R' P R)^-1 R' is the covariance."""
    from scipy.linalg import solve_triangular

    weighted = np.sqrt(precision)[:, None] * root
    curvature = weighted.T @ weighted
    curvature.flat[:: len(curvature) + 1] += 1.0
    half = solve_triangular(np.linalg.cholesky(curvature), root.T, lower=True, check_finite=False)
    return half.T @ (half @ shift), np.sum(half**2, axis=0)


def _sites(cavity: Floats, middle: Floats, y: Floats, odd: float) -> tuple[Floats, Floats]:
    """Precision and shift of each cell's site, from its cavity N(middle, cavity) and its answer."""
    mean, variance, density = _tilted(cavity, middle, y)
    precision, shift = np.maximum(1 / variance - 1 / cavity, 0.0), mean / variance - middle / cavity
    if odd:
        wide = cavity + 1.0
        cauchy = -np.log(math.pi * np.sqrt(wide) * (1 + (y - middle) ** 2 / wide))
        surely = math.log(1 / odd - 1) + density - cauchy
        probability = np.exp(-np.logaddexp(0.0, surely))
        precision, shift = (precision + probability * (1 - precision), shift + probability * (y - shift))
    return precision, shift


def _tilted(cavity: Floats, middle: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Of N(middle, cavity) times Laplace noise around y: mean, variance, and the logarithm of y's density."""
    s = np.sqrt(cavity)
    t, k = (y - middle) / s, s / SCALE
    below, above = _Beyond.of(k - t), _Beyond.of(k + t)
    either = np.logaddexp(below.log_mass, above.log_mass)
    share = np.exp(below.log_mass - either)
    mean = y + s * ((1 - share) * above.excess - share * below.excess)
    apart = share * (1 - share) * (below.excess + above.excess) ** 2
    variance = cavity * (share * below.variance + (1 - share) * above.variance + apart)
    return mean, variance, either - t**2 / 2 - math.log(4 * SCALE)


class _Beyond(NamedTuple):
    """Of a standard normal variable above x: how far it is above on average, its variance, and log E(x)."""

    excess: Floats
    variance: Floats
    log_mass: Floats

    @classmethod
    def of(cls, x: Floats) -> _Beyond:
        from scipy.special import erfcx

        near = np.clip(x, -FAR, FAR)
        hazard = math.sqrt(2 / math.pi) / erfcx(near / math.sqrt(2))
        far, everything = x > FAR, x < -FAR  # is above x
        q = 1 / np.maximum(x, FAR) ** 2
        series = np.sqrt(q) * (1 - q * (2 - q * (10 - 74 * q)))
        excess = np.where(far, series, np.where(everything, -x, hazard - near))
        variance = np.where(far, q * (1 - q * (6 - q * (50 - 518 * q))), 1 - hazard * (hazard - near))
        log_mass = np.log(erfcx(np.maximum(x, -FAR) / math.sqrt(2)))
        return cls(excess, variance, np.where(everything, math.log(2) + x**2 / 2, log_mass))
