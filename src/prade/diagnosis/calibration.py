"""Chances of many statistics at once: which of them are larger than the null's draws explain, family-wise.

    a = chance that a gamma variable with the statistic's null mean and variance exceeds it, times the number of tests
        in its level
    chance of the family = (1 + number of draws whose smallest a is below this a) / (1 + number of draws)

Gamma tails only put statistics of different columns and levels on one scale: whatever their shape, the smallest a of
the answers is exchangeable with the smallest a of the draws if the public table is right everywhere. So the chance that
any of the tests raises a false alarm is at most the family's rate (Westfall and Young's min-p; the other hypotheses
being false does not change the law of a statistic). Every level has the same part in the family, however many groups
it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from prade.core.arrays import Floats

SMALLEST = 1e-9  # mean of a statistic
POOLED = 50  # draws' worth of the mean over a column's groups in the moments of one of them


@dataclass
class Moments:
    """Sums of statistics and of their squares over draws."""

    draws: int = 0
    sums: list[Floats] = field(default_factory=list)
    squares: list[Floats] = field(default_factory=list)

    def add(self, statistics: Sequence[Floats]) -> None:
        """Take in one draw of the statistics of all levels, each [groups, columns]."""
        if not self.draws:
            self.sums = [np.zeros(each.shape) for each in statistics]
            self.squares = [np.zeros(each.shape) for each in statistics]
        self.draws += 1
        for total, square, each in zip(self.sums, self.squares, statistics, strict=True):
            total += each
            square += each**2

    def tails(self) -> list[Tail]:
        """The gamma tails of all levels."""
        return [Tail.of(*each, self.draws) for each in zip(self.sums, self.squares, strict=True)]


@dataclass(frozen=True, eq=False)
class Tail:
    """Gamma distributions of a level's statistics, [groups, columns], by their shapes and means."""

    shape: Floats
    mean: Floats

    @classmethod
    def of(cls, sums: Floats, squares: Floats, draws: int) -> Tail:
        """From sums over draws; the moments of a group are drawn towards those of all groups."""
        mean, square = sums / draws, squares / draws
        own = draws / (draws + POOLED) if len(sums) > 1 else 1.0
        mean = np.maximum(own * mean + (1 - own) * mean.mean(axis=0), SMALLEST)  # 0 if there is hardly any noise
        variance = own * (square - (sums / draws) ** 2) + (1 - own) * (square - (sums / draws) ** 2).mean(axis=0)
        return cls(mean**2 / np.maximum(variance, 1e-12 * mean**2), mean)

    def chances(self, statistics: Floats) -> Floats:
        """The chance that each statistic is exceeded, times the number of statistics."""
        from scipy.special import gammaincc

        return np.asarray(statistics.size * gammaincc(self.shape, self.shape * statistics / self.mean))

    def limits(self, chance: float) -> Floats:
        """The statistics that have this `chances`."""
        from scipy.special import gammainccinv

        return np.asarray(self.mean / self.shape * gammainccinv(self.shape, min(chance / self.mean.size, 1.0)))


def smallest(tails: Iterable[Tail], statistics: Iterable[Floats]) -> float:
    """The smallest chance of one draw, over all levels."""
    return min(float(tail.chances(each).min()) for tail, each in zip(tails, statistics, strict=True))


def of_the_family(chances: Floats, drawn: Floats) -> Floats:
    """The family's chances, given the smallest chance of each draw.

    >>> of_the_family(np.array([0.001, 0.3, 5.0]), np.array([0.2, 0.4, 0.1, 0.7]))
    array([0.2, 0.6, 1. ])
    """
    below = np.searchsorted(np.sort(drawn), chances, side="right")
    return np.asarray((1 + below) / (1 + len(drawn)))


def lowest_allowed(drawn: Floats, rate: float) -> float:
    """A chance that the smallest chance of one more draw is below with at most this rate."""
    place = int(rate * (1 + len(drawn)) + 1e-9)
    return float(np.sort(drawn)[place - 1]) if place else 0.0
