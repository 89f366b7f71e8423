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
    """What a candidate must pass before all its cells are looked at.

    Its cells in the lines of the first `columns`, `cells` in number, may cost at most `height` more than those of the
    cheapest row so far.
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
def numbered(codes: Codes, rows: Ints, start: Codes, numbers: Codes) -> None:
    """Some rows of a table of codes, with the codes of all columns numbered through; `start` is of the numbers' type.

    Narrow numbers are added several at a time.
    """
    for j in range(len(rows)):
        row, into = codes[rows[j]], numbers[j]
        for a in range(len(into)):
            into[a] = row[a] + start[a]


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


class Clustering(NamedTuple):
    """Columns that are counted together.

    Cluster k has sizes[k] combinations of codes and the columns columns[first[k] : first[k + 1]]. From begin[k] on,
    `numbers` has the codes of its first column in each combination, numbered through, then those of its second column.
    """

    sizes: Ints
    first: Ints
    columns: Ints
    begin: Ints
    numbers: Ints


@compiled
def clustered_tables(
    codes: Codes, times: NDArray[np.int32], clusters: Clustering, start: Ints, sizes: Ints, lines: Lines, number: Any
) -> None:
    """As `tables` with whole weights, from the clusters' codes [clusters, rows]; all pairs of columns must be there."""
    rows = np.uint64(codes.shape[1])
    for one in range(len(codes)):
        mine = codes[one]
        alone = np.zeros(clusters.sizes[one], np.int32)
        for j in range(rows):
            alone[mine[j]] += times[j]
        inside_cluster(alone, one, clusters, lines, number)
        for other in range(0, one, 2):  # two at a time: alike rows wait for each other in one table, not in both
            beside = min(other + 1, one - 1)  # where one is left over, it is counted twice and used once
            theirs, width = codes[other], np.uint32(clusters.sizes[other])
            besides, breadth = codes[beside], np.uint32(clusters.sizes[beside])
            pairs = np.zeros((clusters.sizes[one], clusters.sizes[other]), np.int32)
            others = np.zeros((clusters.sizes[one], clusters.sizes[beside]), np.int32)
            flat, flats = pairs.ravel(), others.ravel()
            for j in range(rows):
                row, number_of_times = np.uint32(mine[j]), times[j]
                flat[row * width + theirs[j]] += number_of_times
                flats[row * breadth + besides[j]] += number_of_times
            between_clusters(pairs, one, other, clusters, start, sizes, lines, number)
            if beside > other:
                between_clusters(others, one, beside, clusters, start, sizes, lines, number)


@compiled
def inside_cluster(alone: NDArray[np.int32], one: int, clusters: Clustering, lines: Lines, number: Any) -> None:
    """Add the counts of a cluster's combinations to the tables of its columns and of their pairs."""
    size, first, last = len(alone), clusters.first[one], clusters.first[one + 1]
    for i in range(last - first):
        a = clusters.columns[first + i]
        of_a = clusters.numbers[clusters.begin[one] + i * size : clusters.begin[one] + (i + 1) * size]
        for x in range(size):
            if alone[x]:  # a combination that no row has may have a number beyond its column
                number[lines.origin[a] + np.uint64(of_a[x]) * lines.length[a]] += alone[x]
        for k in range(i):
            b = clusters.columns[first + k]
            of_b = clusters.numbers[clusters.begin[one] + k * size : clusters.begin[one] + (k + 1) * size]
            for x in range(size):
                if alone[x]:
                    number[cell_of_pair(a, of_a[x], b, of_b[x], lines)] += alone[x]


@compiled
def between_clusters(
    pairs: NDArray[np.int32],
    one: int,
    other: int,
    clusters: Clustering,
    start: Ints,
    sizes: Ints,
    lines: Lines,
    number: Any,
) -> None:
    """Add the counts of two clusters' combinations to the tables of their pairs of columns."""
    height, width = pairs.shape
    for i in range(clusters.first[one + 1] - clusters.first[one]):
        a = clusters.columns[clusters.first[one] + i]
        of_a = clusters.numbers[clusters.begin[one] + i * height : clusters.begin[one] + (i + 1) * height]
        by_code = np.zeros((sizes[a] + 1, width), np.int32)  # one more: for combinations that no row has
        for x in range(height):
            sums, added = by_code[of_a[x] - start[a]], pairs[x]
            for y in range(width):
                sums[y] += added[y]
        for k in range(clusters.first[other + 1] - clusters.first[other]):
            b = clusters.columns[clusters.first[other] + k]
            of_b = clusters.numbers[clusters.begin[other] + k * width : clusters.begin[other] + (k + 1) * width]
            for code in range(sizes[a]):
                for y in range(width):
                    if by_code[code, y]:
                        number[cell_of_pair(a, start[a] + code, b, of_b[y], lines)] += by_code[code, y]


@compiled
def cell_of_pair(a: int, p: int, b: int, q: int, lines: Lines) -> Any:
    """The cell of number p of column a and number q of column b, where every later column is a column's partner."""
    if a > b:
        a, p, b, q = b, q, a, p
    return lines.origin[a] + np.uint64(p) * lines.length[a] + lines.shift[lines.first[a]] + np.uint64(q)


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
def prices(rows: Codes, pool: NDArray[np.int32], slots: Ints, lines: Lines, tally: Tally, found: Ints) -> None:
    """What is gained if each slot is emptied: most where its row is in cells with too many rows."""
    for k in range(len(slots)):
        found[k] = price(rows[pool[slots[k]]], lines, tally.gains, 0, rows.shape[1])


@compiled
def search(
    rows: Codes,
    pool: NDArray[np.int32],
    slots: Ints,
    visits: Ints,
    offsets: Ints,
    lines: Lines,
    tally: Tally,
    hurdle: Hurdle,
) -> int:
    """Visit slots in turn: empty one, fill it with the cheapest of its old row and rows near that one.

    `pool` are indices into `rows`, `slots` indices into the pool; visit v looks at slot visits[v] and at what is
    offsets[v] away from it in the pool. A candidate that is too dear in its first cells is not looked at further. The
    objective never rises. Returns how many slots changed.
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
