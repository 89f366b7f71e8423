"""Two rising lists, walked along together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prade.core.compiled import compiled


@compiled
def places_among(edges: NDArray[np.float64], marks: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many edges are at or below each mark; both are in rising order.

    >>> places_among(np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.5, 9.0]))
    array([0, 1, 3, 4])
    """
    places = np.empty(len(marks), np.int64)
    place = 0
    for k in range(len(marks)):
        while place < len(edges) and edges[place] <= marks[k]:
            place += 1
        places[k] = place
    return places
