"""Systematic samples against a search for each mark."""

from __future__ import annotations

import numpy as np
import pytest

from prade.core.compiled import marked, systematic


@pytest.mark.parametrize("n", [0, 1, 7, 1000, 5000])
def test_every_mark_picks_the_index_that_it_falls_on(n: int) -> None:
    generator = np.random.default_rng(n)
    weights = np.where(generator.random(1000) < 0.3, 0.0, generator.exponential(size=1000))
    for offset in (0.0, 0.37, 1.0):
        edges = np.cumsum(weights)
        marks = np.minimum((np.arange(n) + offset) * (edges[-1] / max(n, 1)), np.nextafter(edges[-1], 0.0))
        found = systematic(weights, n, offset)
        assert np.array_equal(found, np.searchsorted(edges, marks, side="right"))
        assert (weights[found] > 0).all()


def test_a_mark_on_an_edge_picks_what_comes_after_it() -> None:
    assert systematic(np.array([1.0, 0.0, 1.0]), 2, 0.0).tolist() == [0, 2]


def test_rounding_carries_no_mark_beyond_the_last_weight() -> None:
    weights = np.append(np.full(999, 0.1), [0.0, 0.0])
    assert systematic(weights, 7, 1.0).max() == 998


def test_without_any_weight_no_index_is_picked() -> None:
    assert marked(np.zeros(3), 2, 0.5).tolist() == [3, 3]
