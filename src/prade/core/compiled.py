"""Compiled functions without the interpreter's lock: the inner loops of this project, systematic samples, LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_char, c_int64, c_void_p
from functools import cache
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import get_cython_function_address

from prade.core.arrays import Floats, Ints

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function; it runs without the interpreter's lock, and its machine code is kept on disk."""
    return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def systematic(weights: Floats, n: int, offset: float) -> Ints:
    """Systematic sample: n indices in rising order, index j about n weights_j / sum(weights) times.

    The indices are laid end to end, each as long as its weight; n equally spaced marks, the first at `offset` (0 to 1)
    of the space between two, each pick the index that they fall on.
    """
    return marked(np.cumsum(weights), n, offset)


def marked(edges: Floats, n: int, offset: float) -> Ints:
    """As `systematic`, from the cumulative sum of the weights."""
    # rounding may carry the last mark to the end, where it would pick an index without weight
    return _passed(edges, int(n), float(offset), edges[-1] / max(n, 1), np.nextafter(edges[-1], 0.0))


@compiled
def _passed(edges: Floats, n: int, offset: float, space: float, last: float) -> Ints:
    """How many edges each mark has passed: marks and edges rise, so one walk along both is enough."""
    passed = np.empty(n, np.int64)
    j = 0
    for k in range(n):
        mark = min((k + offset) * space, last)
        while j < len(edges) and edges[j] <= mark:
            j += 1
        passed[k] = j
    return passed


# scipy's functions for these routines hold the lock, so that threads would wait for each other. But scipy also gives
# their addresses, to modules in Cython: numba finds them, and ctypes releases the lock while it calls one.
def factorised(matrix: Floats) -> Floats:
    """The lower Cholesky factor L of a positive definite matrix; what is above its diagonal means nothing."""
    factor = np.array(matrix, np.float64, order="F")  # a copy in LAPACK's order, for it writes over it
    _call("dpotrf", b"L", len(factor), factor, max(len(factor), 1))
    return factor


def inverted(factor: Floats) -> Floats:
    """The inverse of L L', from L."""
    inverse = np.array(factor, order="F")
    _call("dpotri", b"L", len(inverse), inverse, max(len(inverse), 1))
    half = np.tril(inverse)
    return half + np.tril(half, -1).T


def solved(factor: Floats, vectors: Floats, *, half: bool = False) -> Floats:
    """(L L')^-1 V, or L^-1 V for `half`, for the columns V [size, vectors]."""
    found, size = np.array(vectors, np.float64, order="F"), max(len(factor), 1)
    ways = (b"L", b"N", b"N") if half else (b"L",)
    _call("dtrtrs" if half else "dpotrs", *ways, len(factor), vectors.shape[1], factor, size, found, size)
    return found


def _call(name: str, *arguments: bytes | int | Floats) -> None:
    """Call one of LAPACK's routines, which takes the address of each argument and, last, of where to say what failed.

    Whole numbers have 64 bits here. In scipy's LAPACK they have 32, or in some builds 64: those are the first half of
    ours, as the processors that numba knows store the low half first.
    """
    failed = c_int64(0)
    numbers = [
        c_char(each) if isinstance(each, bytes) else c_int64(each) if isinstance(each, int) else each
        for each in arguments
    ]
    addresses = [each.ctypes.data if isinstance(each, np.ndarray) else byref(each) for each in numbers]
    _routine(name, len(arguments) + 1)(*addresses, byref(failed))
    if failed.value:
        raise AssertionError(f"LAPACK's {name} refused its arguments: info is {failed.value}")


@cache
def _routine(name: str, arguments: int) -> Callable[..., None]:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return CFUNCTYPE(None, *[c_void_p] * arguments)(address)
