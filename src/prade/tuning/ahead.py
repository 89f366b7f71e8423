"""Which draws a search will probably ask for next, the likeliest first.

A search from the best choice so far goes up one ladder of candidates after the other, and rehearses each candidate with
one stand-in after the other. Draws that have been made already tell how it goes on: which candidates will be kept,
which ladders end. Where they are missing, most candidates are not kept, so what comes next is mostly a change of the
same best choice: the next rung of the ladder, unless this one is clearly worse, and the first rung of the next ladder.
A draw's probability is the product of those of the steps that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

from prade.tuning.candidates import Candidates
from prade.tuning.choice import Change, Choice
from prade.tuning.trials import Draw

# How often a search may take each step: guesses. Others gave 4.5 instead of 4.7 times the speed with 16 workers
# (`benchmarks/running_ahead.py`).
NEXT_STAND_IN = 0.6  # after a stand-in, the candidate is not clearly worse, and the next stand-in is asked
NEXT_RUNG = 0.4  # a candidate is neither kept nor worse, and the ladder goes on
NEXT_LADDER = 0.85  # nothing of a ladder is kept, and the next ladder starts from the same choice
OTHERWISE = 0.1  # what looks as if it were kept is not, or the reverse
LEAST = 1e-4  # probability: what is less likely is not looked at

Likely = Iterator[tuple[float, Draw]]


@dataclass(frozen=True)
class Outlook:
    """What the draws that were made tell about a candidate: the stand-in that is asked next, or else the outcome."""

    next: int | None
    kept: bool = False
    goes_on: bool = False  # the ladder, with its next rung


class Scene(Protocol):
    """A search as it would go on from some best choice."""

    @property
    def stand_ins(self) -> int:
        """How many stand-ins there are."""

    def draws(self, choice: Choice, stand_in: int) -> Iterator[Draw]:
        """The draws of a candidate with one stand-in."""

    def outlook(self, choice: Choice) -> Outlook:
        """What is known of a candidate by now."""

    def after(self, choice: Choice) -> tuple[Scene, Ladders]:
        """The search once this candidate is the best choice."""


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


class _Walk:
    """The steps that a search may take from one best choice, the likeliest first."""

    def __init__(self, scene: Scene, ladders: Ladders, tried: Collection[Choice]) -> None:
        self.scene, self.ladders, self.tried = scene, ladders, tried
        self._order = count()  # of steps that are equally likely
        self._steps: list[tuple[float, int, Callable[[float], Likely]]] = []

    def from_ladder(self, first: int) -> Likely:
        """All draws from this ladder on, with their probabilities, then those of the ladders before it."""
        for start in dict.fromkeys((first, 0)):
            self._ladder(1.0, start)
            while self._steps:
                negative, _, step = heappop(self._steps)
                yield from step(-negative)

    def _push(self, chance: float, step: Callable[[float], Likely]) -> None:
        if chance > LEAST:
            heappush(self._steps, (-chance, next(self._order), step))

    def _ladder(self, chance: float, ladder: int) -> None:
        """Go to the first ladder from this one on that has something new."""
        while (rungs := self.ladders.rungs(ladder)) is not None and not self._rung(chance, ladder, rungs, first=True):
            ladder += 1

    def _rung(self, chance: float, ladder: int, rungs: Iterator[Choice], *, first: bool = False) -> bool:
        """Go to the next rung of a ladder that is new, if there is one."""
        if (choice := next((each for each in rungs if each not in self.tried), None)) is None:
            return False
        self._push(chance, lambda chance: self._candidate(chance, ladder, rungs, choice, first=first))
        return True

    def _candidate(self, chance: float, ladder: int, rungs: Iterator[Choice], choice: Choice, *, first: bool) -> Likely:
        """A candidate is tried, and what comes after it."""
        outlook = self.scene.outlook(choice)
        undecided = outlook.next is not None
        after = NEXT_LADDER if undecided or outlook.goes_on else OTHERWISE if outlook.kept else 1.0
        if first:
            self._ladder(chance * after, ladder + 1)
        if undecided:
            self._rung(chance * NEXT_RUNG, ladder, rungs)
            yield from self._stand_in(chance, choice, 0)
        elif outlook.kept:
            best = iter(_Walk(*self.scene.after(choice), {*self.tried, choice}).from_ladder(ladder))
            self._push(chance, lambda chance: self._nested(chance, chance, best))
        elif outlook.goes_on:
            self._rung(chance, ladder, rungs)

    def _stand_in(self, chance: float, choice: Choice, stand_in: int) -> Likely:
        """A candidate is tried with a stand-in, unless it is decided by now."""
        known = self.scene.outlook(choice).next
        if known is None or stand_in >= self.scene.stand_ins:
            return
        asked = max(stand_in, known)
        for draw in self.scene.draws(choice, asked):
            yield chance, draw
        self._push(chance * NEXT_STAND_IN, lambda chance: self._stand_in(chance, choice, asked + 1))

    def _nested(self, chance: float, whole: float, others: Likely) -> Likely:
        """The next draw of a search from another best choice."""
        if (found := next(others, None)) is not None:
            inner, draw = found
            yield whole * inner, draw
            self._push(whole * inner, lambda chance: self._nested(chance, whole, others))


def likely_draws(scene: Scene, ladders: Ladders, first: int, tried: Collection[Choice]) -> Iterator[Draw]:
    """The draws of candidates that were not tried, from the ladder `first` on, then of the ladders before it."""
    return (draw for _, draw in _Walk(scene, ladders, tried).from_ladder(first))
