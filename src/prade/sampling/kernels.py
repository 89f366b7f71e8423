"""The inner loops of sampling, compiled: tables of pairs, and the search for a better row for each slot.

The codes of all columns are numbered through: code c of column a has the number start_a + c, and a row is one such
number per column. All tables are in one flat array. Each code of column a has a line of cells: one for itself (the
one-way table), then one for each code of a's partners (the two-way tables). A pair is in the lines of one of its
columns only, so there is exactly one cell for each code and for each pair of codes. Consecutive partners are a run;
`Lines` says where it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Ints
from prade.core.compiled import compiled

Codes = NDArray[Any]  # unsigned integers of any width
Pool = NDArray[np.int32]
Numbers = NDArray[np.uint64]  # unsigned, so that the compiled loops need not ask whether an index is negative

ONE = 2**14  # a slope of one: whole numbers add up the same on every machine and in every order


class Lines(NamedTuple):
    """Number p of column a has its line at origin[a] + p * length[a], modulo 2^64 like all sums of numbers.

    The runs of a's partners are first[a] to first[a + 1]; run r has the columns low[r] to high[r], and the pair with
    number p' of one of them is p' + shift[r] further on.
    """

    origin: Numbers
    length: Numbers
    first: Numbers
    low: Numbers
    high: Numbers
    shift: Numbers


class Tally(NamedTuple):
    """For every cell: the wanted count, one over the width of its H, the count, and the cost of rows.

    `slopes` are what one more row costs, `gains` what is gained by one row less.
    """

    wanted: NDArray[np.float32]
    steepness: NDArray[np.float32]
    counts: NDArray[np.int32]
    slopes: NDArray[np.int16]
    gains: NDArray[np.int16]


class Hurdle(NamedTuple):
    """A candidate's cells in the lines of the first `columns`, `cells` in number, may cost at most `height` more than
    those of the cheapest row so far; else its other cells are not looked at.
    """

    columns: int
    cells: int
    height: int


@compiled
def running_sum(weights: NDArray[np.float64], order: Codes, edges: NDArray[np.float64]) -> None:
    """The cumulative sum of the weights along an order."""
    total = 0.0
    for j in range(len(order)):
        total += weights[order[j]]
        edges[j] = total


@compiled
def find_cells(row: Codes, lines: Lines, cells: Codes) -> None:
    """The cells that a row is in."""
    k = np.uint64(0)
    for a in range(np.uint64(len(row))):
        line = lines.origin[a] + row[a] * lines.length[a]
        cells[k] = line
        k += np.uint64(1)
        for r in range(lines.first[a], lines.first[a + np.uint64(1)]):
            start = line + lines.shift[r]
            for b in range(lines.low[r], lines.high[r]):
                cells[k] = start + row[b]
                k += np.uint64(1)


@compiled
def tables(rows: Codes, weights: NDArray[Any], lines: Lines, mass: NDArray[Any]) -> None:
    """Add the weights of the rows, whole numbers or not, to every table."""
    for j in range(len(rows)):
        row, weight = rows[j], weights[j]
        for a in range(np.uint64(len(row))):
            line = lines.origin[a] + row[a] * lines.length[a]
            mass[line] += weight
            for r in range(lines.first[a], lines.first[a + np.uint64(1)]):
                start = line + lines.shift[r]
                for b in range(lines.low[r], lines.high[r]):
                    mass[start + row[b]] += weight


@compiled
def slope(count: int, wanted: Any, steepness: Any) -> Any:
    """What one more row in a cell costs: clip((count + 1/2 - wanted) * steepness, -1, 1), in units of 1 / ONE."""
    rise = (np.float32(count) + np.float32(0.5) - wanted) * steepness
    return np.int16(min(max(rise, np.float32(-1.0)), np.float32(1.0)) * np.float32(ONE))


@compiled
def all_slopes(tally: Tally) -> None:
    """The slope and the gain of every cell."""
    for c in range(len(tally.counts)):
        tally.slopes[c] = slope(tally.counts[c], tally.wanted[c], tally.steepness[c])
        tally.gains[c] = slope(tally.counts[c] - 1, tally.wanted[c], tally.steepness[c])


@compiled
def price(row: Codes, lines: Lines, slopes: NDArray[np.int16], low: int, high: int) -> int:
    """What adding this row costs in the lines of the columns low to high: the sum of the slopes of its cells."""
    total = 0
    for a in range(np.uint64(low), np.uint64(high)):
        line = lines.origin[a] + row[a] * lines.length[a]
        total += slopes[line]
        for r in range(lines.first[a], lines.first[a + np.uint64(1)]):
            start = line + lines.shift[r]
            for b in range(lines.low[r], lines.high[r]):
                total += slopes[start + row[b]]
    return total


@compiled
def prices(rows: Codes, pool: Pool, slots: Ints, lines: Lines, tally: Tally, found: Ints) -> None:
    """What is gained if each slot is emptied: most where its row is in cells with too many rows."""
    for k in range(len(slots)):
        found[k] = price(rows[pool[slots[k]]], lines, tally.gains, 0, rows.shape[1])


@compiled
def search(
    rows: Codes, pool: Pool, slots: Ints, visits: Ints, offsets: Ints, lines: Lines, tally: Tally, hurdle: Hurdle
) -> int:
    """Visit slots in turn: empty one, fill it with the cheapest of its old row and rows near that one.

    `pool` are indices into `rows`, `slots` indices into the pool; visit v looks at slot visits[v] and at what is
    offsets[v] away from it in the pool. Returns how many slots changed.
    """
    wanted, steepness, counts, slopes, gains = tally
    columns = rows.shape[1]
    cells = np.empty(columns + (lines.high - lines.low).sum(), np.uint32)
    kept = np.empty(len(cells), np.int16)
    changed = 0
    for v in range(len(visits)):
        old = slots[visits[v]]
        find_cells(rows[pool[old]], lines, cells)
        best, lowest, lowest_start = old, 0, 0
        for k in range(len(cells)):
            c = cells[k]
            kept[k] = slopes[c]
            slopes[c] = gains[c]
            lowest += gains[c]
            if k < hurdle.cells:
                lowest_start += gains[c]
        for k in range(offsets.shape[1]):
            candidate = (old + offsets[v, k]) % len(pool)
            if pool[candidate] != pool[old]:
                row = rows[pool[candidate]]
                start = price(row, lines, slopes, 0, hurdle.columns)
                if start < lowest_start + hurdle.height:
                    cost = start + price(row, lines, slopes, hurdle.columns, columns)
                    if cost < lowest:
                        best, lowest, lowest_start = candidate, cost, start
        if best == old:  # the usual case: nothing has changed
            for k in range(len(cells)):
                slopes[cells[k]] = kept[k]
            continue
        for c in cells:
            counts[c] -= 1
            gains[c] = slope(counts[c] - 1, wanted[c], steepness[c])
        find_cells(rows[pool[best]], lines, cells)
        for c in cells:
            counts[c] += 1
            gains[c] = slopes[c]
            slopes[c] = slope(counts[c], wanted[c], steepness[c])
        slots[visits[v]] = best
        changed += 1
    return changed
