"""Compiled functions: LAPACK as in scipy while other threads go on, and systematic samples."""

import threading
import time

import numpy as np
import pytest

from prade.core.compiled import factorised, inverted, marked, solved, systematic
from prade.core.execution import single_threaded_blas


def covariance(cells):
    generator = np.random.default_rng(cells)
    root = generator.normal(size=(cells, cells + 3))
    return root @ root.T, generator.normal(size=(cells, 5))


@pytest.mark.parametrize("cells", [1, 2, 33, 150])
def test_numbers_are_those_of_dense_algebra(cells):
    matrix, vectors = covariance(cells)
    factor = factorised(matrix)
    assert np.tril(factor) == pytest.approx(np.linalg.cholesky(matrix), rel=1e-9, abs=1e-9)
    assert inverted(factor) @ matrix == pytest.approx(np.eye(cells), abs=1e-6)
    assert matrix @ solved(factor, vectors) == pytest.approx(vectors, abs=1e-6)
    assert np.tril(factor) @ solved(factor, vectors, half=True) == pytest.approx(vectors, abs=1e-9)


def longest_pause(work):
    """The longest pause of a thread that ticks while `work()` runs, as a share of the time that it takes."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    time.sleep(0.01)
    begun = time.perf_counter()
    work()
    ended = time.perf_counter()
    done.set()
    ticking.join()
    within = [begun, *(each for each in ticks if begun < each < ended), ended]
    return max(np.diff(within)) / (ended - begun)


def test_another_thread_goes_on_meanwhile():
    """With scipy's functions, it waits for nearly all of the call. A busy machine has three tries."""
    matrix, _ = covariance(2_000)
    with single_threaded_blas():
        inverted(factorised(np.eye(3)))  # loads the routines
        assert min(longest_pause(lambda: factorised(matrix)) for _ in range(3)) < 0.5
    assert longest_pause(lambda: sum(range(3_000_000))) > 0.5  # what holds the lock would be seen


@pytest.mark.parametrize("n", [0, 1, 7, 1000, 5000])
def test_every_mark_picks_the_index_that_it_falls_on(n):
    """Against a search for each mark."""
    generator = np.random.default_rng(n)
    weights = np.where(generator.random(1000) < 0.3, 0.0, generator.exponential(size=1000))
    for offset in (0.0, 0.37, 1.0):
        edges = np.cumsum(weights)
        marks = np.minimum((np.arange(n) + offset) * (edges[-1] / max(n, 1)), np.nextafter(edges[-1], 0.0))
        sample = systematic(weights, n, offset)
        assert np.array_equal(sample, np.searchsorted(edges, marks, side="right"))
        assert (weights[sample] > 0).all()


def test_edges_rounding_and_no_weight_at_all():
    assert systematic(np.array([1.0, 0.0, 1.0]), 2, 0.0).tolist() == [0, 2]  # a mark on an edge picks what comes after
    assert systematic(np.append(np.full(999, 0.1), [0.0, 0.0]), 7, 1.0).max() == 998  # rounding leads no mark beyond
    assert marked(np.zeros(3), 2, 0.5).tolist() == [3, 3]
