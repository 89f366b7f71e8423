"""Blocks of cells that are smoothed together, small enough for dense matrices, and families of cells within them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prade.core.arrays import Ints
from prade.queries.parts import Part

MOST_SMOOTHED = 1_000  # cells in a block: the time for a covariance grows with the cube of their number
PIECE = 200  # cells in each piece of a part that is larger than a block: of thousands of cells, few vary together


def blocks_of(parts: Sequence[Part]) -> list[slice]:
    """The cells of some parts, cut into blocks."""
    return blocks([part.n_cells for part in parts], MOST_SMOOTHED, PIECE)


def blocks(sizes: Sequence[int], most: int, piece: int) -> list[slice]:
    """All cells of neighbouring parts, at most `most` in a block; a part that has more is cut into pieces.

    >>> blocks([4, 4, 3, 20, 2], most=8, piece=7)
    [slice(0, 8, None), slice(8, 11, None), slice(11, 18, None), slice(18, 25, None), slice(25, 31, None), \
slice(31, 33, None)]
    """
    made: list[slice] = []
    start, room = 0, 0
    for size in sizes:
        stop = start + size
        if size > most:
            made += [slice(first, min(first + piece, stop)) for first in range(start, stop, piece)]
            room = 0
        elif size > room:
            made.append(slice(start, stop))
            room = most - size
        else:
            made[-1] = slice(made[-1].start, stop)
            room -= size
        start = stop
    return made


def families_of(parts: Sequence[Part]) -> Ints:
    """A number for every cell of some parts: parts have the same if they share a column, at once or through others."""
    numbers: list[int] = []
    for k, part in enumerate(parts):
        alike = {numbers[j] for j in range(k) if set(part.columns) & set(parts[j].columns)}
        numbers = [k if number in alike else number for number in numbers] + [k]
    return np.repeat(np.array(numbers, np.int64), [part.n_cells for part in parts])
