"""Compiled functions: LAPACK as in scipy while other threads go on, and systematic samples."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import lapack

from prade.core.compiled import _call, marked, systematic, tridiagonal
from prade.core.execution import single_threaded_blas


def symmetric(cells, vectors=3):
    generator = np.random.default_rng(cells)
    matrix = generator.normal(size=(cells, cells))
    return matrix + matrix.T, generator.normal(size=(vectors, cells))


@pytest.mark.parametrize(("cells", "vectors"), [(2, 3), (3, 1), (33, 5), (150, 90), (60, 200)])
def test_numbers_are_those_of_scipys_functions(cells, vectors):
    matrix, given = symmetric(cells, vectors)
    reflected, diagonal, beside, sizes, _ = lapack.dsytrd(matrix, lower=1, lwork=64 * cells)
    room = 64 * (max(cells, vectors) + 65)
    expected = lapack.dormqr("L", "T", reflected[1:, :-1], sizes, given.T[1:], room)[0].T
    found = tridiagonal(matrix, given)
    assert found[0] == pytest.approx(diagonal, rel=1e-12, abs=1e-12)
    assert found[1] == pytest.approx(beside, rel=1e-12, abs=1e-12)
    assert found[2][:, 1:] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.array_equal(found[2][:, 0], given[:, 0])


def test_what_is_given_stays_and_may_lie_anyhow():
    matrix, given = symmetric(40)
    before = matrix.copy(), given.copy()
    expected = tridiagonal(matrix, given)
    larger, wider = np.zeros((80, 40)), np.zeros((3, 120))
    larger[::2], wider[:, ::3] = matrix, given
    for one, other in ((np.asfortranarray(matrix), np.asfortranarray(given)), (larger[::2], wider[:, ::3])):
        assert all(np.array_equal(*each) for each in zip(tridiagonal(one, other), expected, strict=True))
    assert np.array_equal(matrix, before[0])
    assert np.array_equal(given, before[1])


def test_whole_numbers_are_made_into_fractions():
    found = tridiagonal(np.array([[2, 1], [1, 3]]), np.array([[1, 1]], np.float32))
    assert all(each.dtype == np.float64 for each in found)
    assert found[0].tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("cells", "vectors"), [(0, 0), (0, 2), (1, 2), (4, 0)])
def test_little_or_nothing_to_turn(cells, vectors):
    matrix, given = symmetric(cells, vectors)
    diagonal, beside, turned = tridiagonal(matrix, given)
    assert (diagonal.shape, beside.shape, turned.shape) == ((cells,), (max(cells - 1, 0),), (vectors, cells))
    assert diagonal.sum() == pytest.approx(np.trace(matrix))
    if cells == 1:
        assert np.array_equal(turned, given)


@pytest.mark.parametrize(("matrix", "vectors"), [((3, 2), (1, 3)), ((3, 3), (1, 2)), ((3, 3), (3,)), ((9,), (1, 9))])
def test_shapes_that_do_not_fit_are_refused(matrix, vectors):
    with pytest.raises(ValueError, match=r"give \[n, n\] and \[vectors, n\]"):
        tridiagonal(np.zeros(matrix), np.zeros(vectors))


def test_a_refusal_of_lapack_is_an_error():
    """By the number of cells, which is its second argument; a matrix that it could write to is not needed."""
    with pytest.raises(AssertionError, match="dsytrd refused its arguments: info is"):
        _call("dsytrd", b"L", -1, *(1 if at in (1, 6) else np.zeros(1) for at in range(7)))


@pytest.mark.parametrize("array", [np.zeros((4, 4))[:, ::2], np.zeros(4, np.float32)])
def test_lapack_is_given_no_array_that_it_would_misread(array):
    with pytest.raises(AssertionError):
        _call("dsytrd", b"L", 2, array)


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
    matrix, given = symmetric(900, 90)
    with single_threaded_blas():
        tridiagonal(*symmetric(10))  # loads the routines
        assert min(longest_pause(lambda: tridiagonal(matrix, given)) for _ in range(3)) < 0.5
    assert longest_pause(lambda: sum(range(3_000_000))) > 0.5  # what holds the lock would be seen


# ---------------------------------------------------------------- systematic samples, against a search for each mark


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
