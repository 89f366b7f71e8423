"""The inner loops of sampling, compiled: tables of pairs, and the search for a better row for each slot.

All tables of pairs live in one square array: columns have consecutive places (column a's code c is place
start_a + c), and cell (c, d) of the pair (a, b) is at [start_a + c, start_b + d]. A row is its places, one a column.
`first` and `partner` say which pairs there are: column a goes with partner[first[a] : first[a + 1]], itself included
(that is its one-way table).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.kernels import Codes, Floats, Ints, compiled

Singles = NDArray[np.float32]
Slopes = NDArray[np.int16]
Counts = NDArray[np.int32]
Links = NDArray[np.uint32]

ONE = 2**14  # a slope of one: whole numbers add up the same on every machine and in every order


@compiled
def tables(places: Codes, weights: Floats, first: Links, partner: Links, mass: Floats) -> None:
    """Add the weights of the rows to every pair's table."""
    for j in range(places.shape[0]):
        row, weight = places[j], weights[j]
        for a in range(len(row)):
            line = mass[row[a]]
            for t in range(first[a], first[a + 1]):
                line[row[partner[t]]] += weight


@compiled
def slope(count: int, wanted: Any, steepness: Any) -> Any:
    """What one more row in a cell costs: clip((count + 1/2 - wanted) * steepness, -1, 1), in units of 1 / ONE."""
    rise = (np.float32(count) + np.float32(0.5) - wanted) * steepness
    return np.int16(min(max(rise, np.float32(-1.0)), np.float32(1.0)) * np.float32(ONE))


@compiled
def all_slopes(wanted: Singles, steepness: Singles, counts: Counts, slopes: Slopes) -> None:
    """The slope of every cell."""
    for i in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            slopes[i, j] = slope(counts[i, j], wanted[i, j], steepness[i, j])


@compiled
def shift(
    row: Codes,
    by: int,
    first: Links,
    partner: Links,
    wanted: Singles,
    steepness: Singles,
    counts: Counts,
    slopes: Slopes,
) -> None:
    """Add a row to the counts (by = 1) or take it away (by = -1), and bring the slopes of its cells up to date."""
    for a in range(len(row)):
        i = row[a]
        count, want, steep, line = counts[i], wanted[i], steepness[i], slopes[i]
        for t in range(first[a], first[a + 1]):
            j = row[partner[t]]
            count[j] += by
            line[j] = slope(count[j], want[j], steep[j])


@compiled
def price(row: Codes, first: Links, partner: Links, slopes: Slopes) -> int:
    """What adding this row costs: the sum of the slopes of its cells."""
    total = 0
    for a in range(len(row)):
        line = slopes[row[a]]
        for t in range(first[a], first[a + 1]):
            total += line[row[partner[t]]]
    return total


@compiled
def search(
    places: Codes,
    slots: Ints,
    visits: Ints,
    offsets: Ints,
    first: Links,
    partner: Links,
    wanted: Singles,
    steepness: Singles,
    counts: Counts,
    slopes: Slopes,
) -> int:
    """Visit slots in turn: empty one, fill it with the cheapest of its old row and rows near that one.

    `slots` are indices into the pool's `places`; visit v looks at slot visits[v] and at the pool's rows that are
    offsets[v] away from its row. The objective never rises. Returns how many slots changed.
    """
    changed = 0
    for v in range(len(visits)):
        old = slots[visits[v]]
        shift(places[old], -1, first, partner, wanted, steepness, counts, slopes)
        best, lowest = old, price(places[old], first, partner, slopes)
        for k in range(offsets.shape[1]):
            candidate = (old + offsets[v, k]) % len(places)
            cost = price(places[candidate], first, partner, slopes)
            if cost < lowest:
                best, lowest = candidate, cost
        shift(places[best], 1, first, partner, wanted, steepness, counts, slopes)
        slots[visits[v]] = best
        changed += best != old
    return changed
