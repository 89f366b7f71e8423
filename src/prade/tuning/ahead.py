"""Which draws a search will probably ask for next, the likeliest first.

A search from the best choice so far goes up one ladder of candidates after the other, and rehearses each candidate with
one stand-in after the other. Most candidates are not kept, so what comes next is mostly a change of the same best
choice: the next rung of the ladder, unless this one is clearly worse, and the first rung of the next ladder. A draw's
probability is the product of those of the steps that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush
from itertools import count

from prade.tuning.candidates import Candidates, Change, Choice
from prade.tuning.trials import Draw

# How often a search takes each step: counted in searches on the American Community Survey at epsilon 0.1, 1 and 10.
NEXT_STAND_IN = 0.6  # after a stand-in, the candidate is not clearly worse, and the next stand-in is asked
NEXT_RUNG = 0.4  # a candidate is neither kept nor worse, and the ladder goes on
NEXT_LADDER = 0.85  # nothing of a ladder is kept, and the next ladder starts from the same choice


class Ladders:
    """All candidates that change one choice, each worked out when it is first looked at."""

    def __init__(self, candidates: Candidates, best: Choice) -> None:
        self.best = best
        self._remaining = candidates.ladders(lambda: best)
        self._ladders: list[tuple[list[Choice], Iterator[Change]]] = []

    def rungs(self, ladder: int) -> Iterator[Choice] | None:
        """The choices of a ladder, from simple to elaborate; None if there is no such ladder."""
        while len(self._ladders) <= ladder:
            if (found := next(self._remaining, None)) is None:
                return None
            self._ladders.append(([], found))
        return self._rungs(*self._ladders[ladder])

    def _rungs(self, known: list[Choice], others: Iterator[Change]) -> Iterator[Choice]:
        for rung in count():
            if rung == len(known):
                if (change := next(others, None)) is None:
                    return
                known.append(change[1])
            yield known[rung]


def likely_draws(
    ladders: Ladders,
    first: int,
    tried: Collection[Choice],
    stand_ins: int,
    draws: Callable[[Choice, int], Iterator[Draw]],
) -> Iterator[Draw]:
    """The draws of candidates that were not tried, from the ladder `first` on, then of the ladders before it.

    `draws(choice, stand_in)` are those of one candidate with one stand-in.
    """
    order = count()  # of candidates that are equally likely
    waiting: list[tuple[float, int, int, int, Iterator[Choice], int, Choice]] = []

    def enter(chance: float, ladder: int, rung: int, rungs: Iterator[Choice]) -> bool:
        choice = next((each for each in rungs if each not in tried), None)
        if choice is not None:
            heappush(waiting, (-chance, next(order), ladder, rung, rungs, 0, choice))
        return choice is not None

    def enter_ladder(chance: float, ladder: int) -> None:
        """The first ladder from this one on that has something new."""
        while (rungs := ladders.rungs(ladder)) is not None and not enter(chance, ladder, 0, rungs):
            ladder += 1

    for start in (first, 0):
        enter_ladder(1.0, start)
        while waiting:
            negative, _, ladder, rung, rungs, stand_in, choice = heappop(waiting)
            yield from draws(choice, stand_in)
            if stand_in + 1 < stand_ins:
                after = negative * NEXT_STAND_IN, next(order), ladder, rung, rungs, stand_in + 1, choice
                heappush(waiting, after)
            if stand_in == 0:
                enter(-negative * NEXT_RUNG, ladder, rung + 1, rungs)
            if stand_in == rung == 0:
                enter_ladder(-negative * NEXT_LADDER, ladder + 1)
