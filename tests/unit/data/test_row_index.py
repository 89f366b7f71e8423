"""An index of rows: what it finds is what a comparison of all rows finds."""

import numpy as np
import pytest

from prade.data.public import donors as row_index
from prade.data.public.donors import RowIndex


@pytest.mark.parametrize("seed", range(5))
def test_runs_are_the_equal_rows_in_their_order(seed):
    generator = np.random.default_rng(seed)
    sizes = [3, 4, 2]
    rows = [generator.integers(0, size, 200).astype(np.uint8) for size in sizes]
    wanted = [generator.integers(0, size + 1, 50) for size in sizes]  # some codes that no row has
    index = RowIndex(rows, sizes)
    first, stop = index.runs(wanted)
    for k in range(50):
        equal = np.flatnonzero(np.all([rows[c] == wanted[c][k] for c in range(3)], axis=0))
        assert index.order[first[k] : stop[k]].tolist() == equal.tolist()


def test_codes_outside_every_column_are_like_no_row():
    index = RowIndex([np.array([0, 1]), np.array([1, 0])], [2, 2])
    first, stop = index.runs([np.array([-1, 5, 0]), np.array([1, 1, 1])])
    assert (stop - first).tolist() == [0, 0, 1]


def test_sums_that_collide_are_drawn_again(monkeypatch):
    """All sums are equal at first: the index must not take different rows for equal ones."""
    real, calls = np.random.default_rng, []

    class Poor:
        def __init__(self, seed):
            self.generator = real(seed)

        def integers(self, *arguments, size, dtype):
            calls.append(size)
            good = self.generator.integers(*arguments, size=size, dtype=dtype)
            return good if len(calls) > 2 else np.zeros(size, dtype)

    monkeypatch.setattr(row_index.np.random, "default_rng", Poor)
    index = RowIndex([np.array([0, 1]), np.array([0, 1])], [2, 2])
    first, stop = index.runs([np.array([1]), np.array([1])])
    assert index.order[first[0] : stop[0]].tolist() == [1]
    assert len(calls) == 4


def test_a_sum_that_only_looks_alike_is_not_taken():
    index = RowIndex([np.array([0, 1])], [2])
    index._values = [np.array([index._values[0][0]] * 3, np.uint64)]  # 1 and whatever is outside look like 0 now
    first, stop = index.runs([np.array([0, 1, 7])])
    assert (stop - first).tolist() == [1, 0, 0]
