"""What the columns of a table tell about each other: mutual information, and the tree of the strongest links.

I(a; b) = sum over cells q(a, b) log( q(a, b) / (q(a) q(b)) )      mutual information, in nats
I(a; a) = H(a)                                                     entropy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from prade.core.arrays import Floats
from prade.data.public.joint import Joint

Columns = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Information:
    """nats[a, b] = I(a; b), and on the diagonal H(a)."""

    columns: Columns
    nats: Floats

    @classmethod
    def of(cls, joint: Joint, columns: Sequence[str] | None = None) -> Information:
        """Of the columns of a table, prior or estimate (all of them when None), by its weights."""
        names = joint.columns if columns is None else tuple(columns)
        nats = np.diag([_entropy(joint.project((name,))) for name in names])
        for (i, a), (j, b) in combinations(enumerate(names), 2):
            # H(a) + H(b) - H(a, b) would lose what little there is to rounding
            nats[i, j] = nats[j, i] = _shared(joint.project((a, b)))
        return cls(names, nats)

    def index(self, name: str) -> int:
        """The number of a column in `columns` and `nats`."""
        return self.columns.index(name)

    def between(self, a: str, b: str) -> float:
        """I(a; b)."""
        return float(self.nats[self.index(a), self.index(b)])

    def tree(self) -> list[tuple[int, int]]:
        """The links of the tree with most information (Chow and Liu), as numbers of columns: (known already, new).

        >>> Information(("a", "b", "c"), np.array([[1, 0.2, 0.7], [0.2, 1, 0.3], [0.7, 0.3, 1]])).tree()
        [(0, 2), (2, 1)]
        """
        links: list[tuple[int, int]] = []
        strength, nearest = self.nats[0].copy(), np.zeros(len(self.columns), np.int64)
        left = np.arange(len(self.columns)) > 0
        while left.any():
            new = int(np.argmax(np.where(left, strength, -1.0)))
            links.append((int(nearest[new]), new))
            left[new] = False
            closer = left & (self.nats[new] > strength)
            nearest[closer], strength[closer] = new, self.nats[new][closer]
        return links


def _entropy(mass: Floats) -> float:
    seen = mass[mass > 0]
    return float(-(seen * np.log(seen)).sum())


def _shared(both: Floats) -> float:
    apart = both.sum(axis=1, keepdims=True) * both.sum(axis=0, keepdims=True)
    seen = both > 0
    return float((both[seen] * np.log(both[seen] / apart[seen])).sum())
