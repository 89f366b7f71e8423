"""Random numbers that belong to rows: a row gets the same ones whichever other rows are worked on with it.

A table that is made in pieces, in any order and by any number of workers, is then the same as one that is made at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints

STREAM = 2  # keeps these numbers apart from others that are drawn with the same seed


class Chances:
    """A key for every row; a number is a function of the row's key and of what it is for.

    >>> chances = Chances.of_groups(7, [3, 4], [2, 1])
    >>> alone = Chances.of_groups(7, [4], [1])
    >>> bool(chances.uniform("AGE", np.array([2]))[0] == alone.uniform("AGE", np.array([0]))[0])
    True
    """

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        self.keys = keys

    @classmethod
    def of_groups(cls, seed: int, groups: Sequence[int], sizes: Sequence[int]) -> Chances:
        """Of the rows of some groups, group after group; a row's key depends on its place in its own group only."""
        keys = [
            np.random.default_rng([STREAM, group, seed]).integers(0, 2**64, size=size, dtype=np.uint64)
            for group, size in zip(groups, sizes, strict=True)
        ]
        return cls(np.concatenate([np.zeros(0, np.uint64), *keys]))

    def uniform(self, what: str, rows: Ints) -> Floats:
        """A number from 0 up to 1 for each of some rows; other numbers for anything else that they are for."""
        salt = np.frombuffer(hashlib.sha256(what.encode()).digest()[:8], np.uint64)[0]
        return np.asarray((_mixed(self.keys[rows] + salt) >> np.uint64(11)) * 2.0**-53)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a number spread over all bits of the result: the last step of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
