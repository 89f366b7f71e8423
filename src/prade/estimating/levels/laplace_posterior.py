"""The posteriors of groups' shares where each answer has one draw of Laplace noise, by expectation propagation.

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


def laplace_posteriors(
    root: Floats,
    answers: Floats,
    noise: Floats,
    one_draw: Flags,
    start: tuple[Floats, Floats],
    *,
    sweeps: int = SWEEPS,
    odd: float = ODD,
) -> tuple[Floats, Floats]:
    """Means and variances of u ~ N(0, R R') in several groups, given answers u + noise of these standard deviations.

    `root` is R, [cells, directions]; all others are [groups, cells]. `one_draw` says which answers have one draw of
    Laplace noise; that of the others is Gaussian. `start` has the means and the variances if all were Gaussian.
    """
    y, squares, unit = answers / noise, root**2, 1 / noise**2  # in units of the noise
    told = np.cumsum(unit @ squares > NEGLIGIBLE, axis=1) > 0  # eigenvalues rise: the last directions, without gaps
    untold, prior = (unit * (which.astype(np.float64) @ squares.T) for which in (~told, told))
    prior = np.maximum(prior, SMALLEST)
    precision, shift = np.ones_like(y), y
    mean, variance = start[0] / noise, start[1] * unit - untold
    for _ in range(sweeps):
        known = 1 / np.maximum(variance, SMALLEST)
        cavity = 1 / np.maximum(known - precision, 1 / prior)
        new_precision, new_shift = _sites(cavity, cavity * (known * mean - shift), y, odd)
        renewed = one_draw & (cavity < LARGEST)
        precision, shift = np.where(renewed, new_precision, 1.0), np.where(renewed, new_shift, y)
        mean, variance = gaussian_posteriors(root, noise, told, precision, shift)
    some = np.asarray(told.any(axis=1) & one_draw.any(axis=1))[:, None]
    return (
        np.where(some, noise * mean, start[0]),
        np.where(some, noise**2 * (variance + untold), start[1]),
    )


def gaussian_posteriors(
    root: Floats, noise: Floats, told: Flags, precision: Floats, shift: Floats
) -> tuple[Floats, Floats]:
    """Means and variances of N(0, R R') times the sites, in units of the noise, in the last directions: those told.

    R (1 + R' P R)^-1 R' is the covariance of a group.
    """
    from scipy.linalg.lapack import dpotrf, dtrtrs

    means, variances = np.zeros_like(shift), np.zeros_like(shift)
    for group, first in enumerate(np.sum(~told, axis=1)):
        if first == root.shape[1]:  # noise drowns all directions, and LAPACK complains about empty matrices
            continue
        scaled = root[:, first:] / noise[group, :, None]
        weighted = np.sqrt(precision[group])[:, None] * scaled
        curvature = weighted.T @ weighted
        curvature.flat[:: len(curvature) + 1] += 1.0
        factor, failed = dpotrf(curvature.T, lower=1, clean=0, overwrite_a=1)
        assert not failed, "1 + R' P R is positive definite"
        half = dtrtrs(factor, scaled.T, lower=1, overwrite_b=1)[0]
        means[group], variances[group] = half.T @ (half @ shift[group]), np.einsum("dc,dc->c", half, half)
    return means, variances


def _sites(cavity: Floats, middle: Floats, y: Floats, odd: float) -> tuple[Floats, Floats]:
    """Precision and shift of each cell's site, from its cavity N(middle, cavity) and its answer."""
    mean, variance, density = under_laplace_noise(cavity, middle, y)
    precision, shift = np.maximum(1 / variance - 1 / cavity, 0.0), mean / variance - middle / cavity
    if odd:
        wide = cavity + 1.0
        cauchy = -np.log(math.pi * np.sqrt(wide) * (1 + (y - middle) ** 2 / wide))
        surely = math.log(1 / odd - 1) + density - cauchy
        probability = np.exp(-np.logaddexp(0.0, surely))
        precision, shift = (precision + probability * (1 - precision), shift + probability * (y - shift))
    return precision, shift


def under_laplace_noise(cavity: Floats, middle: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Of N(middle, cavity) times Laplace noise around y: mean, variance, and the logarithm of y's density.

    The noise has the standard deviation 1.
    """
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
