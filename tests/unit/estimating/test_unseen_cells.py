"""How far noise alone goes: the bound that decides which absent cells are shown holds, and is not far too careful."""

import math

import pytest
from scipy.stats import dlaplace, norm

from prade.estimating.levels.added_rows import largest_noise


@pytest.mark.parametrize("chance", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("scale", [0.5, 3.0, 36.0])
def test_one_draw_of_laplace_noise_exceeds_the_bound_with_at_most_the_chance(scale, chance):
    noise = dlaplace(1 / scale)
    bound = largest_noise("laplace", noise.var(), chance)
    assert noise.sf(math.floor(bound)) <= chance < noise.sf(math.floor(bound / 2))


@pytest.mark.parametrize("chance", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("scale", [3.0, 36.0])
def test_gaussian_noise_exceeds_the_bound_with_at_most_the_chance(scale, chance):
    bound = largest_noise("gaussian", scale**2, chance)
    assert norm.sf(math.floor(bound) / scale) <= chance < norm.sf(bound / 2 / scale)
