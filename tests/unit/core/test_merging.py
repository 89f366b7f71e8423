"""A walk along two rising lists finds what a search does."""

import numpy as np
import pytest

from prade.core.arrays import MANY_MARKS, marked
from prade.core.merging import places_among


@pytest.mark.parametrize(("edges", "marks"), [(0, 3), (3, 0), (1, 1), (1000, 200), (200, 1000)])
def test_places_are_those_of_a_search(edges, marks):
    generator = np.random.default_rng(edges)
    line = np.sort(generator.integers(50, size=edges)).astype(np.float64)  # many are equal
    asked = np.sort(np.concatenate([generator.uniform(-5, 55, marks), line[:marks]]))
    np.testing.assert_array_equal(places_among(line, asked), np.searchsorted(line, asked, side="right"))


def test_few_and_many_marks_agree():
    edges = np.cumsum(np.random.default_rng(0).exponential(size=1000))
    every = 8
    few, many = MANY_MARKS // every, MANY_MARKS
    np.testing.assert_array_equal(marked(edges, many, 0.0)[::every], marked(edges, few, 0.0))
