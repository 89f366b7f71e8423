"""Columns counted together give the counts of columns counted one by one, however many columns there are."""

import numpy as np
import pytest

from prade import Schema
from prade.sampling import draw as sorted_rows
from prade.sampling.draw import SortedRows
from prade.sampling.pair_tables import LARGEST_CLUSTER

SIZES = {"a": 3, "b": 150, "c": 2, "d": 7, "e": 5, "f": 1, "g": 40, "h": 4}


def coded_rows(number, seed=0):
    """Columns that depend on each other, one with more codes than a cluster has room for, one with a single code."""
    generator = np.random.default_rng(seed)
    hidden = generator.random(number)
    return {
        name: np.minimum((size * (hidden + generator.normal(0, 0.2, number)) % size).astype(np.int64), size - 1)
        for name, size in SIZES.items()
    }


@pytest.mark.parametrize("rows", [1, 50, 3000])
def test_the_counts_are_those_of_single_columns_and_pairs(rows, monkeypatch):
    monkeypatch.setattr(sorted_rows, "FEWEST_ROWS", 0)
    assert max(SIZES.values()) > LARGEST_CLUSTER
    table = SortedRows(coded_rows(rows), Schema.from_mbi(SIZES))
    generator = np.random.default_rng(1)
    ranks = np.sort(generator.integers(rows, size=700))
    times = generator.integers(0, 5, size=700).astype(np.int32)
    coded = table.coded(ranks)
    expected = table.counts(ranks, coded, times)
    table.cluster()
    assert len(table._clusters.codes) < len(SIZES)
    np.testing.assert_array_equal(table.counts(ranks, coded, times), expected)
    assert expected.sum() == times.sum() * (8 + 28)  # columns and pairs


def test_chosen_pairs_are_not_clustered():
    table = SortedRows(coded_rows(100), Schema.from_mbi(SIZES), pairs=[("a", "b"), ("b", "c")])
    table.cluster()
    assert table._clusters is None
