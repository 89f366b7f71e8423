"""Compiled functions: how the inner loops of this project are made, and systematic samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from prade.core.arrays import Floats, Ints

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Compile a function; it runs without the interpreter's lock, and its machine code is kept on disk."""
    return cast(Kernel, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def systematic(weights: Floats, n: int, offset: float) -> Ints:
    """Systematic sample: n indices in rising order, index j about n weights_j / sum(weights) times.

    The indices are laid end to end, each as long as its weight; n equally spaced marks, the first at `offset` (0 to 1)
    of the space between two, each pick the index that they fall on.

    >>> systematic(np.array([0.5, 0.0, 0.25, 0.25]), 4, 0.5)
    array([0, 0, 2, 3])
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
