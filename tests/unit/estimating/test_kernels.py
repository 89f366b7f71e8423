"""The compiled inner loops against scipy and plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from prade.estimating import block_step, kernels

seeds = st.integers(0, 2**32 - 1)


def exponentials(x, size=None):
    values, bits = x.copy(), np.empty(len(x), np.int64)
    kernels.exponentials(values, len(x) if size is None else size, bits, bits.view(np.float64))
    return values


def test_exponentials_are_exact_to_the_last_digits():
    generator = np.random.default_rng(0)
    x = -np.concatenate([[0.0, 5e-324, 1e-17, 707.9], generator.random(50_000) * 708, generator.random(50_000) ** 9])
    np.testing.assert_allclose(exponentials(x), np.exp(x), rtol=5e-16, atol=0.0)
    assert exponentials(np.array([-708.1, -745.0, -1e300, -np.inf])).tolist() == [0.0] * 4


def test_wright_omega_against_scipy():
    for z in [*np.linspace(-60, 60, 241), -700.0, -41.0, -40.0, 1e3, 1e6, 1e12, 1.0, np.nextafter(1, 0)]:
        assert block_step.wright_omega(z) == pytest.approx(float(wrightomega(z)), rel=1e-14, abs=1e-320)


def block_problem(seed):
    """Masses, answers and bounds of one part: Laplace, Gaussian and exact cells mixed, empty cells, partial parts."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 7))
    shares = generator.dirichlet(np.full(n + 1, 0.7))
    uncovered = float(shares[-1]) if generator.random() < 0.5 else 0.0
    mass = np.where(generator.random(n) < 0.15, 0.0, shares[:-1])
    mass[0] += (mass.sum() + uncovered == 0) * 1.0
    whole = mass.sum() + uncovered
    y = generator.dirichlet(np.ones(n)) * generator.uniform(0.6, 1.4) - 0.05
    variance = np.where(generator.random(n) < 0.5, 10.0 ** generator.uniform(-18, 3, n), 0.0)
    bound = np.where(variance > 0, 300.0, 10.0 ** generator.uniform(-2, 1, n))
    old = np.clip(generator.normal(size=n), -bound, bound)
    return uncovered / whole, mass / whole, y, variance, old, -bound, bound


def multipliers_of_block(uncovered, mass, y, variance, old, low, high):
    new = np.full(len(y), np.nan)
    block_step.block_multipliers(uncovered, mass, y, variance, old, low, high, new)
    return new


def largest_projected_slope(new, uncovered, mass, y, variance, old, low, high):
    """The dual is concave, so a projected slope of zero proves a maximum."""
    top = (new - old).max()
    tilted = mass * np.exp(new - old - top)
    slope = y - variance * new - tilted / (uncovered * np.exp(-top) + tilted.sum())
    blocked = ((new >= high) & (slope > 0)) | ((new <= low) & (slope < 0))
    return np.abs(np.where(blocked, 0.0, slope)).max()


@settings(max_examples=70)
@given(seeds)
def test_block_multipliers_are_the_true_maximum(seed):
    problem = block_problem(seed)
    new = multipliers_of_block(*problem)
    low, high = problem[-2:]
    assert (new >= low).all()
    assert (new <= high).all()
    assert largest_projected_slope(new, *problem) <= 1e-9


def test_bounds_that_are_far_away_do_not_keep_the_maximum_from_being_found():
    """Laplace answers of large tables: next to the root the excess is nearly flat on one side."""
    generator = np.random.default_rng(3)
    first = (
        np.array([0.2132097964616553, 0.7867902035383446]),
        np.array([0.34124418025464404, 0.6587558573835405]),
        361156.45,
    )
    drawn = [
        (generator.dirichlet(np.full(n, 0.7)), generator.dirichlet(np.ones(n)) + 1e-7, 10.0 ** generator.uniform(0, 6))
        for n in generator.integers(2, 8, 3_000)
    ]
    for mass, y, bound in [first, *drawn]:
        zeros, bounds = np.zeros(len(y)), np.full(len(y), bound)
        problem = 0.0, mass, y, zeros, zeros, -bounds, bounds
        assert largest_projected_slope(multipliers_of_block(*problem), *problem) <= 1e-9
