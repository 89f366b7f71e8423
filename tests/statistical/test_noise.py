"""The noise that is added has the declared law.

Noise takes no seed, so a test of its law fails by chance now and then: all tests of this file together do so once in
10,000 runs (`FALSE_ALARM`, shared out among the checks by Bonferroni's inequality). In simulations of these very bins
chi-square's tail is left as often as it should be.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prade.core.errors import PradeError
from prade.measuring.noise import add_noise
from worlds.chance import masses, p_value_of_noise

FALSE_ALARM = 1e-4
CASES = [
    ("laplace", Fraction(1, 2)),
    ("laplace", Fraction(3)),
    ("laplace", Fraction(36)),
    ("gaussian", Fraction(3, 4)),
    ("gaussian", Fraction(5)),
    ("gaussian", Fraction(40)),
]
CHECKS = len(CASES) + 2 + 2  # laws; neighbouring cells; the two halves of threads
ALPHA = FALSE_ALARM / CHECKS
DRAWS = 30_000


@pytest.mark.parametrize(("law", "scale"), CASES, ids=str)
def test_the_noise_has_the_declared_law(law, scale):
    noise = add_noise(np.zeros(DRAWS, int), law, scale)
    assert noise.dtype == np.int64
    assert p_value_of_noise(noise, law, scale) > ALPHA


@pytest.mark.parametrize(("law", "scale"), CASES, ids=str)
def test_the_check_would_notice_a_tenth_less_noise(law, scale):
    generator = np.random.default_rng(5)
    values, probability = masses(law, scale * Fraction(9, 10))
    assert p_value_of_noise(generator.choice(values, DRAWS, p=probability), law, scale) < ALPHA
    values, probability = masses(law, scale)
    assert p_value_of_noise(generator.choice(values, DRAWS, p=probability), law, scale) > ALPHA


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_cells_are_independent(law):
    """Correlation of neighbouring cells: about normal with variance 1/n when they are independent."""
    noise = add_noise(np.zeros(DRAWS, int), law, Fraction(5)).astype(float)
    correlation = np.corrcoef(noise[:-1], noise[1:])[0, 1]
    assert abs(correlation) * np.sqrt(DRAWS) < stats.norm.isf(ALPHA / 2)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_threads_draw_different_noise_of_the_same_law(law):
    noise = add_noise(np.zeros(DRAWS, int), law, Fraction(9), threads=4, cells_per_task=DRAWS // 4)
    pieces = noise.reshape(4, -1)
    assert len({piece.tobytes() for piece in pieces}) == 4
    assert p_value_of_noise(noise, law, Fraction(9)) > ALPHA


def test_noise_is_added_to_the_counts_it_is_given():
    counts = np.arange(12).reshape(3, 4) * 1000
    noisy = add_noise(counts, "laplace", Fraction(1, 64))  # noise other than 0 has probability 2 exp(-64)
    assert noisy.tolist() == counts.tolist()
    assert add_noise(np.zeros((0, 3), int), "gaussian", Fraction(1)).shape == (0, 3)


@pytest.mark.parametrize(
    ("counts", "law", "scale", "message"),
    [
        ([1], "laplace", Fraction(0), "above 0"),
        ([1], "laplace", Fraction(-1), "above 0"),
        ([1], "laplace", Fraction(1, 3), "not exact as a float"),
        ([1], "laplace", Fraction(10**400), "not exact as a float"),
        ([1], "laplace", Fraction(2**54), "expected at most 2"),
        ([1], "gaussian", Fraction(2**53 + 2), "expected at most 2"),
        ([1], "laplace", 1.5, "scale is a float"),
        ([1], "uniform", Fraction(1), "it is 'laplace' or 'gaussian'"),
        ([1.5], "laplace", Fraction(1), "whole numbers only"),
        ([2**60], "laplace", Fraction(1), "beyond 2"),
    ],
)
def test_what_has_no_exact_law_is_refused(counts, law, scale, message):
    with pytest.raises(PradeError, match=message):
        add_noise(counts, law, scale)


def test_counts_are_not_named_in_errors():
    with pytest.raises(PradeError) as error:
        add_noise([2**60 + 12345], "laplace", Fraction(1))
    assert str(2**60 + 12345) not in str(error.value)
