"""The laws of the noise: variances, bounds, densities and simulated draws, against the distributions themselves."""

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import dlaplace, laplace, norm

from prade import PradeError
from prade.privacy.noise_law import GAUSSIAN, LAPLACE, LAWS, SMALLEST_VARIANCE, noise_law

CONTINUOUS = {LAPLACE: laplace, GAUSSIAN: norm}
PAIRS = [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (1.0, 1.0 + 1e-9), (1.0, 1.00001), (0.01, 1.0), (1.0, 0.01), (1.0, 0.0)]


def discrete(law, scale):
    """Whole numbers and their chances."""
    reach = int(60 * scale) + 1
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(x**2) / (2 * scale**2)) if law.squared else np.exp(-np.abs(x) / scale)
    return x, mass / mass.sum()


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_its_name(law):
    for copy in (noise_law(str(law)), pickle.loads(pickle.dumps(law))):
        assert (copy, type(copy)) == (law, type(law))
    with pytest.raises(PradeError, match="the law of the noise is 'normal'; it is 'laplace' or 'gaussian'"):
        noise_law("normal")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.2, 1, 3.9, 4.1, 40, 9_999, 10_001])
def test_the_variance_is_that_of_whole_numbers(law, scale):
    """By adding up z^2 P(z), of which nothing is left at 60 scales from the middle."""
    z, mass = discrete(law, scale)
    assert law.variance(Fraction(scale)) == pytest.approx(float(mass @ z.astype(float) ** 2), rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_no_scale_is_too_small_or_too_large_for_a_variance(law):
    smallest, small, large = (law.variance(Fraction(scale)) for scale in (1e-300, 1e-3, 2**60))
    assert smallest == small == SMALLEST_VARIANCE
    assert large == law.unit_variance * 2.0**120
    assert law.unit_variance == pytest.approx(float(CONTINUOUS[law].var()))
    assert law.mean_size == pytest.approx(CONTINUOUS[law].expect(abs), rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("chance", [0.05, 1e-4])
def test_exceeded(law, chance):
    assert 2 * CONTINUOUS[law].sf(law.exceeded(chance)) == pytest.approx(chance)


@pytest.mark.parametrize("chance", [1e-2, 1e-7])
@pytest.mark.parametrize("scale", [0.3, 0.6, 1.0, 3.0, 36.0])
@pytest.mark.parametrize("law", LAWS)
def test_noise_exceeds_the_bound_with_at_most_the_chance(law, scale, chance):
    """The bound is not far too careful either: half of it is exceeded more often, but for very little noise."""
    x, mass = discrete(law, scale)
    exact = dlaplace(1 / scale).sf if law == LAPLACE else lambda t: mass[x > t].sum()
    bound = law.bound(float(mass @ x**2), chance)
    assert exact(math.floor(bound)) <= chance
    assert scale < 3 or exact(math.floor(bound / 2)) > chance


@pytest.mark.parametrize("draws", [2, 50])
def test_the_bound_holds_for_sums_of_laplace_draws(draws):
    """100,000 sums: 1 in 100 allowed, and far fewer come out above."""
    sums = LAPLACE.simulated(5.0, (100_000, draws), np.random.default_rng(2)).sum(axis=1)
    assert (sums > LAPLACE.bound(draws * LAPLACE.variance(Fraction(5)), 0.01)).mean() < 0.01


def density(law, x, a, b):
    return float(np.exp(law.log_density_beside(np.array([x]), np.array([a]), np.array([b]))[0]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_densities_integrate_to_one_and_are_those_of_the_sum(law, a, b):
    """Against the convolution itself, by quadrature."""
    edges = sorted({0.0, *(width * k for width in (a, b) for k in (0.5, 2.0, 8.0, 60.0))})
    half = sum(quad(lambda x: density(law, x, a, b), low, high)[0] for low, high in pairwise(edges))
    assert 2 * half == pytest.approx(1.0, abs=1e-5)
    for x in (0.0, 0.3, 1.0, 5.0) if b else ():
        ends = sorted({-60.0, 60.0, 0.0, x, *(c + k * w for c in (0.0, x) for w in (a, b) for k in (-9, -3, 3, 9))})
        expected = sum(
            quad(lambda t, x=x: laplace.pdf(t, scale=a) * CONTINUOUS[law].pdf(x - t, scale=b), *each)[0]
            for each in pairwise(ends)
        )
        assert density(law, x, a, b) == pytest.approx(expected, rel=2e-5, abs=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_densities_stay_finite_at_the_ends_and_leave_the_noise(law):
    """A deviation too narrow to be seen leaves the noise."""
    for a in (1e-12, 1e-6, 1.0, 1e3):
        for b in (0.0, 1e-12, 1e-6, 1.0, 1e3):
            log_density = law.log_density_beside(np.array([0.0, 1e-9, 1.0, 50.0]), np.full(4, a), np.full(4, b))
            assert not np.isnan(log_density).any()
            assert (log_density < 40).all()
    x = np.array([0.0, 0.5, 2.0, 6.0])
    narrow = law.log_density_beside(x, np.full(4, 1e-9), np.full(4, 1.5))
    assert narrow == pytest.approx(CONTINUOUS[law].logpdf(x, scale=1.5), abs=1e-5)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_simulated_noise_has_the_law_of_the_noise(law, scale):
    """Means and variances of 200,000 draws; each is off by more than five standard errors once in a million times."""
    draws = law.simulated(scale, (1000, 200), np.random.default_rng(1)).astype(float)
    variance = law.variance(Fraction(scale))
    assert abs(draws.mean()) < 5 * np.sqrt(variance / draws.size)
    fourth = np.mean((draws**2 - variance) ** 2)
    assert abs(np.mean(draws**2) - variance) < 5 * np.sqrt(fourth / draws.size)


@pytest.mark.parametrize("law", LAWS)
def test_the_chance_of_noise_far_away_is_that_of_its_law(law):
    deviations = np.array([0.0, 0.5, 2.0, 6.0])
    expected = 2 * CONTINUOUS[law].sf(deviations * CONTINUOUS[law].std())
    assert law.beyond(deviations) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_all_laws_share_the_luck_of_laplace_draws(law):
    draws = np.random.default_rng(3).laplace(size=1000)
    own = law.from_laplace(draws)
    assert (np.argsort(own) == np.argsort(draws)).all()
    assert CONTINUOUS[law].cdf(own) == pytest.approx(laplace.cdf(draws), rel=1e-6)
