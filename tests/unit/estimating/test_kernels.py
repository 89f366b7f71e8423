"""The compiled inner loops against scipy and plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, brentq, minimize
from scipy.special import wrightomega

from prade.core.compiled import systematic
from prade.estimating import block_step, kernels
from prade.estimating.dual import Quadratic, coordinate_sweeps

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


@pytest.mark.parametrize("size", range(10))
def test_only_so_many_exponentials_and_terms_are_touched(size):
    x = -np.arange(10.0)
    assert np.array_equal(exponentials(x, size)[size:], x[size:])
    assert kernels.sum_of(x, size) == x[:size].sum()


def test_wright_omega_against_scipy():
    for z in [*np.linspace(-60, 60, 241), -700.0, -41.0, -40.0, 1e3, 1e6, 1e12, 1.0, np.nextafter(1, 0)]:
        assert block_step.wright_omega(z) == pytest.approx(float(wrightomega(z)), rel=1e-14, abs=1e-320)


# ------------------------------------------------------------------ one cell, and one block


def best_by_root_finding(level, mass, y, variance, old, low, high):
    """The zero of  y - variance x - mass e^(x - old) / level, which falls in x: no closed form involved."""

    def slope(x):
        return y - variance * x - mass * np.exp(x - old) / level

    if slope(low) <= 0:
        return low
    return high if slope(high) >= 0 else brentq(slope, low, high, xtol=1e-13, rtol=1e-15)


@pytest.mark.parametrize("variance", [1e3, 1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-18, 0.0])
def test_cell_multiplier_is_the_best_for_every_variance(variance):
    # a state of a million rows with Gaussian noise of scale 1 and n0 = 1 has variance 1e-12: not an exotic number
    generator = np.random.default_rng(5)
    for _ in range(40):
        y, mass, old = generator.uniform(0.01, 1), generator.uniform(0.01, 1), generator.normal()
        level = generator.uniform(0.5, 2)
        best = block_step.cell_multiplier(np.log(level), mass, y, variance, old, -300.0, 300.0)
        assert best == pytest.approx(best_by_root_finding(level, mass, y, variance, old, -300.0, 300.0), abs=1e-8)


@pytest.mark.parametrize(
    ("mass", "y", "variance", "expected"),
    [
        (0.0, 0.3, 0.0, 4.0),  # nobody lives here, and somebody is missing
        (0.0, -0.3, 0.0, -4.0),
        (0.0, 0.0, 0.0, 0.5),  # nothing to decide: stays
        (0.5, 0.0, 0.0, -4.0),  # an answer of zero empties its cell as far as allowed
        (0.5, -1.0, 0.0, -4.0),
        (0.0, 0.3, 0.1, 3.0),  # the Gaussian term alone: y / variance
        (0.0, 3.0, 0.1, 4.0),
    ],
)
def test_cell_multiplier_edge_cases(mass, y, variance, expected):
    assert block_step.cell_multiplier(0.0, mass, y, variance, 0.5, -4.0, 4.0) == pytest.approx(expected, abs=1e-15)


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
    variance = np.where(generator.random(n) < 0.5, 10.0 ** generator.uniform(-4, 1, n), 0.0)
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


def test_block_without_any_mass_stays_where_it_is():
    old, bound = np.array([0.3, -0.2]), np.ones(2)
    new = multipliers_of_block(0.0, np.zeros(2), np.array([0.5, 0.5]), np.zeros(2), old, -bound, bound)
    assert new.tolist() == old.tolist()


# ------------------------------------------------------------------ the quadratic in a box


def quadratic_problem(seed, *, singular):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 12))
    factor = generator.normal(size=(n, max(1, n - 2) if singular else n + 2))
    curvature = factor @ factor.T / n + (0.0 if singular else 0.05) * np.eye(n)
    low, high = -generator.exponential(size=n), generator.exponential(size=n)
    fixed = generator.random(n) < 0.1
    low[fixed], high[fixed] = 0.0, 0.0
    return curvature, generator.normal(size=n), low, high


def quadratic(x, curvature, slope):
    return float(slope @ x - 0.5 * x @ curvature @ x)


def best_quadratic(curvature, slope, low, high):
    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-12}
    return -minimize(
        lambda x: (-quadratic(x, curvature, slope), curvature @ x - slope),
        np.zeros(len(slope)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options=options,
    ).fun


@settings(max_examples=40)
@given(seeds, st.booleans())
def test_the_quadratic_is_maximised_in_its_box(seed, singular):
    curvature, slope, low, high = quadratic_problem(seed, singular=singular)
    best = best_quadratic(curvature, slope, low, high)
    # a Newton step may stop where the projected slope is 1e-4 of the slope's sum
    x = Quadratic(curvature).maximise(slope, low, high)
    assert ((x >= low) & (x <= high)).all()
    assert quadratic(x, curvature, slope) >= best - 1e-3 * (abs(best) + 1e-12)
    if not singular:
        x, left = np.zeros(len(slope)), slope.copy()
        coordinate_sweeps(curvature, low, high, x, left, 20_000, 1e-14)
        assert ((x >= low) & (x <= high)).all()
        assert left == pytest.approx(slope - curvature @ x, abs=1e-9)
        assert quadratic(x, curvature, slope) >= best - 1e-9


# ------------------------------------------------------------------ passes over the rows


def test_counting_and_scaling_passes():
    generator = np.random.default_rng(2)
    code, following = generator.integers(0, 4, 100).astype(np.uint8), generator.integers(0, 3, 100).astype(np.uint8)
    weights, ratio, extra = generator.random(100), generator.random(4), generator.random(4)
    hist = np.zeros(4)
    kernels.count(code, weights, 10, 90, hist)
    assert hist == pytest.approx(np.bincount(code[10:90], weights=weights[10:90], minlength=4))
    for added in (None, extra):
        scaled, hist, expected = weights.copy(), np.zeros(3), weights.copy()
        expected[10:90] *= ratio[code[10:90]]
        if added is None:
            kernels.scale_and_count(code, ratio, following, scaled, 10, 90, hist)
        else:
            kernels.scale_add_and_count(code, ratio, added, following, scaled, 10, 90, hist)
            expected[10:90] += added[code[10:90]]
        assert scaled == pytest.approx(expected)
        assert hist == pytest.approx(np.bincount(following[10:90], weights=expected[10:90], minlength=3))


def test_systematic_sample_takes_rows_in_proportion():
    generator = np.random.default_rng(4)
    rows, number = 3000, 500
    code = generator.integers(0, 5, rows).astype(np.uint8)[None, :]
    scores, weights, shifts = np.array([1.0, 2.0, 0.5, 4.0, 1.0]), generator.random(rows), np.array([0.0, -1.0, 2.0])
    expected = weights * np.exp(np.repeat(shifts, kernels.TILE)[:rows] - 2.0) * scores[code[0]]
    scale, chance = np.empty(3), np.empty(rows)
    kernels.chances(code, np.array([0, 5]), scores, weights, shifts, 2.0, scale, chance)
    assert scale == pytest.approx(np.exp(shifts - 2.0))
    assert chance == pytest.approx(expected)
    taken = systematic(chance, number, 0.5)
    assert len(taken) == number
    assert (np.diff(taken) >= 0).all()
    assert np.abs(np.bincount(taken, minlength=rows) - number * expected / expected.sum()).max() < 1.0
