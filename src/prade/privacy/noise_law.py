"""The laws of the noise: all that depends on how noise is distributed, but the exact sampler (`prade.measuring.noise`).

    Laplace    P(z) ~ exp(-|z| / b)                  scale b         variance about 2 b^2
    Gaussian   P(z) ~ exp(-z^2 / (2 sigma^2))        scale sigma     variance about sigma^2

Both are laws of whole numbers. A law is its own name, a text, as files write it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.errors import PradeError

SMALLEST_VARIANCE = 1e-6  # of a count: smaller values would change nothing, and this keeps precisions finite


class _Law(str):
    """One law of noise. `noise_law` returns the law of a name."""

    # Of what one person changes in all counts: 1 if the noise keeps a pure budget, 2 if it keeps rho only.
    norm: ClassVar[Literal[1, 2]]
    unit_variance: ClassVar[float]  # of the continuous law of scale 1
    mean_size: ClassVar[float]  # the mean of |z| under the continuous law of scale 1
    coarse: ClassVar[int]  # at larger scales the variance is the continuous law's, to nine digits
    # The estimator's price of a misfit x, which is -log P(x): x^2 / (2 sigma^2) if `squared`, otherwise |x| / b.
    squared: ClassVar[bool]

    __slots__ = ()

    @property
    def words(self) -> str:
        return f"{self.capitalize()} noise"

    def variance(self, scale: Fraction) -> float:
        """The variance of the noise in one count, which is a whole number; at least `SMALLEST_VARIANCE`."""
        if scale > self.coarse:
            return float(Fraction(self.unit_variance) * scale**2)
        return max(self._discrete_variance(float(scale)), SMALLEST_VARIANCE)

    def _discrete_variance(self, scale: float) -> float:
        raise NotImplementedError


class _Laplace(_Law):
    norm, squared = 1, False
    unit_variance, mean_size, coarse = 2.0, 1.0, 10_000

    __slots__ = ()

    def _discrete_variance(self, scale: float) -> float:
        # 2 p / (1 - p)^2 with p = e^(-1 / b): at b = 1 it is 8 % below the continuous law's
        return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2

    def exceeded(self, chance: float) -> float:
        """How many times its scale the noise exceeds, in either direction, with this chance."""
        return -math.log(chance)

    def bound(self, variance: float, chance: float) -> float:
        """A number that a sum of such noise, of this variance, exceeds with at most this chance (Chernoff)."""
        # E[exp(s X)] <= 1 / (1 - v (cosh(s) - 1)), equal for one draw: a sum of draws has thinner tails than one draw
        # of the same variance
        tried = np.linspace(0.01, 0.99, 99)  # of s: where v (cosh(s) - 1) is the square of these
        x = tried**2 / variance
        s = np.log1p(x + np.sqrt(x * (x + 2)))  # arccosh(1 + x), for however little x
        return float(np.min(-(np.log(chance) + np.log1p(-(tried**2))) / s))

    def log_density_beside(self, x: Floats, a: Floats, scale: Floats) -> Floats:
        """The log density at x >= 0 of a Laplace deviation of scale a plus noise, up to rounding to whole numbers."""
        # (a e^(-x/a) - b e^(-x/b)) / 2 (a^2 - b^2)
        wide, narrow = np.maximum(a, scale), np.minimum(a, scale)
        wide = np.maximum(wide, narrow * (1 + 1e-6))  # equal scales: the limit, near enough
        ratio = narrow / wide
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.where(narrow > 0, ratio * np.exp(-x * (1 / narrow - 1 / wide)), 0.0)
        return np.asarray(-x / wide + np.log1p(-inner) - np.log(2 * wide * (1 - ratio) * (1 + ratio)))

    def simulated(self, scale: float, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
        """Simulated noise, for rehearsals only: it is not exact, and has a seed."""
        # the difference of two geometric numbers, which are exponential ones rounded down
        one, other = (np.floor(generator.exponential(scale, shape)) for _ in range(2))
        return (one - other).astype(np.int64)

    def beyond(self, deviations: Floats) -> Floats:
        """The chance that noise is that many standard deviations away, in either direction."""
        return np.exp(-math.sqrt(2) * deviations)

    def from_laplace(self, draws: Floats) -> Floats:
        """Draws of scale 1 with the same ranks as Laplace draws, so that rehearsals of all laws share their luck."""
        return draws


class _Gaussian(_Law):
    norm, squared = 2, True
    unit_variance, mean_size, coarse = 1.0, math.sqrt(2.0 / math.pi), 4

    __slots__ = ()

    def _discrete_variance(self, scale: float) -> float:
        # sum z^2 w(z) / sum w(z) with w(z) = e^(-z^2 / (2 sigma^2)): at sigma = 1 within 10^-6 of sigma^2
        weights = [math.exp(-(z / scale) * (z / scale) / 2) for z in range(1, 16 * self.coarse)]
        return 2 * sum(z**2 * w for z, w in enumerate(weights, 1)) / (1 + 2 * sum(weights))

    def exceeded(self, chance: float) -> float:
        return NormalDist().inv_cdf(1 - chance / 2)

    def bound(self, variance: float, chance: float) -> float:
        # E[exp(s X)] <= exp(s^2 v / 2). A variance below 1 does not bound the tails of a discrete Gaussian so well, but
        # they are no wider than a discrete Laplace's of the same variance.
        return math.sqrt(2 * variance * math.log(1 / chance)) if variance >= 1 else LAPLACE.bound(variance, chance)

    def log_density_beside(self, x: Floats, a: Floats, scale: Floats) -> Floats:
        from scipy.special import log_ndtr

        # log( e^(-x/a) Phi(x/sigma - sigma/a) + e^(x/a) Phi(-x/sigma - sigma/a) ) + sigma^2 / 2a^2 - log 2a
        a = np.maximum(a, 1e-4 * scale)  # narrower deviations are invisible, and would cancel badly
        with np.errstate(divide="ignore", invalid="ignore"):
            t, u = np.where(scale > 0, x / scale, np.inf), scale / a
            both = np.logaddexp(-x / a + log_ndtr(t - u), np.where(scale > 0, x / a + log_ndtr(-t - u), -np.inf))
        return np.asarray(both + u**2 / 2 - np.log(2 * a))

    def simulated(self, scale: float, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
        if scale > self.coarse:  # a rounded normal number of the same variance is as good; rounding adds 1 / 12
            return np.rint(generator.normal(0.0, np.sqrt(scale**2 - 1 / 12), shape)).astype(np.int64)
        values = np.arange(-64, 65)
        weights = np.exp(-((values / scale) ** 2) / 2)
        return generator.choice(values, size=shape, p=weights / weights.sum())

    def beyond(self, deviations: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(2 * ndtr(-deviations))

    def from_laplace(self, draws: Floats) -> Floats:
        from scipy.special import ndtri

        return np.asarray(-np.sign(draws) * ndtri(np.exp(-np.abs(draws)) / 2))


NoiseLaw = _Laplace | _Gaussian
LAPLACE: NoiseLaw = _Laplace("laplace")
GAUSSIAN: NoiseLaw = _Gaussian("gaussian")
LAWS = (LAPLACE, GAUSSIAN)


def noise_law(name: object) -> NoiseLaw:
    for law in LAWS:
        if name == law:
            return law
    known = " or ".join(repr(str(law)) for law in LAWS)
    raise PradeError(f"the law of the noise is {str(name)[:40]!r}; it is {known}")
