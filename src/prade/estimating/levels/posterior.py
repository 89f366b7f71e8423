"""What all answers tell about one group: its shares and its number of rows, under the law of the noise that was added.

The answers of a group, divided by a first number of rows n, are

    y = v (m + u) + noise,  about  v m + u + noise,      u ~ N(0, s F + r C)
    z = v + noise                                        where the number of rows was asked for

F is what groups differ by, r C what few rows do (`prade.estimating.levels.random_effects`), and v ~ N(e, t^2) the
number of rows, divided by n. So y and z have one covariance, and one linear system gives the posterior of u and of v:
a number of rows that is off puts all cells off alike, and a table tells that number as far as S lets it.

Some places differ from the rest far more than most: s is a scale of the group's own, log-normal around 1 before any
answer, so that u has heavy tails. It is the most likely one, given all answers of the group and Gaussian noise.

Laplace noise of scale b = sigma / sqrt(2) tells up to twice as much about a cell as Gaussian noise would: its Fisher
information is 1 / b^2 = 2 / sigma^2. The posterior is approximated by the prior times

    product over cells of exp(shift_i y_i - precision_i y_i^2 / 2)         each factor is the cell's *site*

In a sweep of expectation propagation, each cell's site is taken out, which leaves the cell's *cavity* N(mu, s^2), what
all other answers say about it; the new site gives cavity times site the mean and variance of cavity times Laplace
likelihood. With t = (y - mu) / s and k = s / b that product is a mixture of two truncated normal distributions:

    below y    N(mu + s^2 / b, s^2)    of mass proportional to E(k - t),     E(x) = erfcx(x / sqrt(2))
    above y    N(mu - s^2 / b, s^2)    of mass proportional to E(k + t)

A standard normal variable above x exceeds it by h - x on average, with variance 1 - h (h - x), h = sqrt(2 / pi) / E(x).
The Laplace law is log-concave, so no site has a negative precision. Minka (2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.core.compiled import factorised, inverted, solved
from prade.estimating.levels.random_effects import UNSURE_COLUMNS, with_ridge

SWEEPS, DAMPING = 3, 0.8  # with 30 sweeps and less of each, the errors are the same to three digits
LARGEST_SCALE = 3  # of the logarithm of s, either way
LEAST = 1e-6  # precision of a site, as a share of that of Gaussian noise
FAR = 30.0  # beyond it, the moments of truncated normal variables come from their series
SCALE = math.sqrt(0.5)  # b of Laplace noise of standard deviation 1


@dataclass(frozen=True, eq=False)
class Observed:
    """Answers of one group in the cells that were asked for: deviations from their prior means, and noise variances.

    `drawn` says which have one draw of Laplace noise; that of the others is Gaussian.
    """

    away: Floats
    noise: Floats
    drawn: Flags


@dataclass(frozen=True, eq=False)
class Posterior:
    """Mean and variances of u in all cells, those of v, the precision of the cells' sites times their noise, and s."""

    mean: Floats
    variance: Floats
    rows: float
    rows_variance: float
    told: float
    scale: float


def posterior(
    differing: Floats,
    chance: Floats,
    seen: Flags,
    shares: Floats,
    answers: Observed,
    rows_variance: float,
    counted: Observed | None = None,
) -> Posterior:
    """The posterior of a group's u and v - e, from answers to the `seen` cells.

    `differing` is F, `chance` r C, `shares` m and `rows_variance` t^2. `counted` is the answer z, if there is one.
    """
    both = [answers] if counted is None else [answers, counted]
    away, noise, drawn = (np.concatenate([getattr(each, name) for each in both]) for name in ("away", "noise", "drawn"))
    if not len(away):
        return Posterior(np.zeros(len(chance)), np.diag(differing + chance), 0.0, rows_variance, 1.0, 1.0)
    along = np.concatenate([shares[seen], np.ones(len(away) - len(answers.away))])
    beside = np.zeros((len(away), len(away)))  # what s has no part in
    beside[: len(answers.away), : len(answers.away)] = chance[np.ix_(seen, seen)]
    beside += rows_variance * np.outer(along, along)
    scale = _scale(differing[np.ix_(seen, seen)], beside + np.diag(noise), away)
    covariance = scale * differing + chance
    mixed = np.zeros((len(covariance), len(away)))  # of u with what was observed
    mixed[:, : len(answers.away)] = covariance[:, seen]
    prior = beside
    prior[: len(answers.away), : len(answers.away)] += scale * differing[np.ix_(seen, seen)]
    precision, shift = 1 / noise, away / noise
    factor = factorised(with_ridge(prior + np.diag(1 / precision)))
    for _ in range(SWEEPS if drawn.any() else 0):
        precision, shift = _renewed(prior, away, noise, drawn, precision, shift, factor)
        factor = factorised(with_ridge(prior + np.diag(1 / precision)))
    pull = solved(factor, (shift / precision)[:, None])[:, 0]
    half = solved(factor, np.column_stack([mixed.T, rows_variance * along]), half=True)
    left = np.append(np.diag(covariance), rows_variance) - np.einsum("ij,ij->j", half, half)
    left = np.maximum(left, 0.0)
    told = float(np.mean(precision * noise))
    return Posterior(mixed @ pull, left[:-1], float(rows_variance * along @ pull), float(left[-1]), told, scale)


def _scale(differing: Floats, beside: Floats, away: Floats) -> float:
    """The most likely s, given deviations with the covariance s F + the rest: the top of a parabola.

    Whole logarithms are tried, outwards from 1 as long as the density rises.
    """
    size, fits = len(differing), dict[int, float]()
    best, wanted = 0, [-1, 0, 1]
    while wanted:
        for logarithm in wanted:
            covariance = beside.copy()
            covariance[:size, :size] += math.exp(logarithm) * differing
            factor = factorised(with_ridge(covariance))
            surprise = float(np.sum(solved(factor, away[:, None], half=True) ** 2)) / 2
            surprise += float(np.log(np.diag(factor)).sum())
            fits[logarithm] = -surprise - (logarithm / UNSURE_COLUMNS) ** 2 / 2
        best = max(fits, key=lambda each: fits[each])
        wanted = [each for each in (best - 1, best + 1) if each not in fits and abs(each) <= LARGEST_SCALE]
    best = min(max(best, min(fits) + 1), max(fits) - 1)
    below, here, above = fits[best - 1], fits[best], fits[best + 1]
    bend = below - 2 * here + above
    top = best + ((below - above) / (2 * bend) if bend < 0 else 0.0)
    return math.exp(min(max(top, -LARGEST_SCALE), LARGEST_SCALE))


def _renewed(
    prior: Floats, away: Floats, noise: Floats, drawn: Flags, precision: Floats, shift: Floats, factor: Floats
) -> tuple[Floats, Floats]:
    """New sites from the old ones: precisions and shifts. `factor` is that of the prior plus the old sites' noise."""
    mean = prior @ solved(factor, (shift / precision)[:, None])[:, 0]
    known = np.diag(inverted(factor))
    variance = np.maximum(1 / precision - known / precision**2, 1e-12 * noise)
    cavity = 1 / np.maximum(1 / variance - precision, LEAST / noise)
    middle = cavity * (mean / variance - shift)
    sd = np.sqrt(noise)
    told, spread, _ = under_laplace_noise(cavity / noise, middle / sd, away / sd)
    new = np.maximum(1 / (spread * noise) - 1 / cavity, LEAST / noise)
    moved = told * sd / (spread * noise) - middle / cavity
    return (
        np.where(drawn, precision + DAMPING * (new - precision), precision),
        np.where(drawn, shift + DAMPING * (moved - shift), shift),
    )


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
