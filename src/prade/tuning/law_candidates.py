"""What the tuner may try about the law of the noise: the other law, and for each law the tables that suit it.

Laplace noise grows with the number of tables, Gaussian noise with its square root. Where one law does best with few
tables and the other with many, no change of the law alone or of the tables alone leads across; so both are changed at
once, to the one-way tables that are predicted to leave the least error (`prade.tuning.gain`). That step also takes a
search with a single law to a good number of tables at once, where steps of a ladder might end before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from prade.core.arrays import Floats
from prade.core.words import many
from prade.planning.plan import Plan
from prade.privacy.budget import Law
from prade.tuning.choice import Change, Choice
from prade.tuning.gain import Columns, predicted_rest, telling_parts


class Candidates(Protocol):
    """What is known about all candidates: how a choice becomes a plan, and what public rows tell about one-way tables.

    `single` are the one-way tables. `moments` are those of what the prior is off by in their cells, of which table k
    has `cells[k]`.
    """

    plan_of: Callable[[Choice], Plan]
    single: tuple[Columns, ...]
    moments: Floats
    cells: list[slice]

    def numbers(self) -> list[int]:
        """Numbers of one-way tables that are tried."""

    def noise_in_shares(self, choice: Choice) -> float:
        """Variance of the noise in the shares of the last level's cells."""


def law_ladders(candidates: Candidates, best: Callable[[], Choice]) -> Iterator[Iterator[Change]]:
    """Changes of the best choice so far that fit law and tables to each other."""
    law = best().law
    # A whole table is unlike the single public groups that stand in for it: it does not get fewer tables because of
    # them.
    grouped = bool(candidates.plan_of(best()).groups.names)
    if grouped and best().settings.smooth and best().total < 1:
        for each in _every_law(candidates, best()):
            yield predicted_best(candidates, best, each.law)
    if best().law == law:
        yield other_law(candidates, best)


def with_least_noise(candidates: Candidates, choice: Choice) -> Choice:
    """The choice with the law under which the counts of its last question have the least variance."""
    return min(_every_law(candidates, choice), key=lambda each: candidates.plan_of(each).questions[-1].variance)


def _every_law(candidates: Candidates, choice: Choice) -> list[Choice]:
    """The choice with every law worth trying: under zCDP, Laplace noise only doubles the variance."""
    approx = candidates.plan_of(choice).budget.kind == "approx"
    laws: tuple[Law | None, ...] = (None, "laplace") if approx else (None,)
    return [replace(choice, law=law) for law in laws]


def other_law(candidates: Candidates, best: Callable[[], Choice]) -> Iterator[Change]:
    """The same choice with noise of another law."""
    for other in _every_law(candidates, best()):
        if other.law != best().law:
            yield f"{candidates.plan_of(other).law.capitalize()} noise", other


def predicted_best(candidates: Candidates, best: Callable[[], Choice], law: Law | None) -> Iterator[Change]:
    """As many one-way tables as are predicted to leave the least error with noise of this law."""
    start = replace(best(), law=law)
    choices = [with_one_way(candidates, start, number) for number in sorted(set(candidates.numbers()))]
    left = []
    for each in choices:
        asked = [candidates.single.index(part) for part in each.parts if len(part) == 1]
        noise = candidates.noise_in_shares(each)
        left.append(predicted_rest(candidates.moments, candidates.cells, noise, asked))
    found = choices[int(np.argmin(left))]
    if set(found.parts) != set(best().parts):
        noise_words = f", {candidates.plan_of(found).law.capitalize()} noise" if law != best().law else ""
        number = sum(len(part) == 1 for part in found.parts)
        yield f"{many(number, 'one-way table')} predicted to be best{noise_words}", found


def with_one_way(candidates: Candidates, choice: Choice, number: int) -> Choice:
    """The choice with this many one-way tables, those that tell most at its noise."""
    pairs = tuple(part for part in choice.parts if len(part) > 1)
    any_ones = replace(choice, parts=candidates.single[:number] + pairs)  # the noise depends on their number only
    noise = candidates.noise_in_shares(any_ones)
    kept = telling_parts(candidates.moments, candidates.cells, noise, number)
    return replace(choice, parts=tuple(candidates.single[k] for k in sorted(kept)) + pairs)
