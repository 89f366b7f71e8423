"""How many one-way tables suit the noise, and which law of the noise suits a choice.

Laplace noise grows with the number of tables, Gaussian noise with its square root, so each law has its own best tables.
Where a budget allows both laws, each has a search of its own (`prade.tuning.tune`). The one-way tables that are
predicted to leave the least error (`prade.tuning.gain`) are tried early: steps of a ladder might end before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from prade.core.arrays import Floats
from prade.core.errors import many
from prade.planning.plan import Plan
from prade.privacy.budget import Budget
from prade.privacy.noise_law import LAPLACE, NoiseLaw
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


def laws_within(budget: Budget) -> tuple[NoiseLaw | None, ...]:
    """The laws worth trying; None is the usual one. Under zCDP, Laplace noise only doubles the variance."""
    return (LAPLACE, None) if budget.kind == "approx" else (None,)


def with_least_noise(candidates: Candidates, choice: Choice) -> Choice:
    """The choice with the law under which the counts of its last question have the least variance."""
    choices = [replace(choice, law=law) for law in laws_within(candidates.plan_of(choice).budget)]
    return min(choices, key=lambda each: candidates.plan_of(each).questions[-1].variance)


def predicted_best(candidates: Candidates, best: Callable[[], Choice]) -> Iterator[Change]:
    """As many one-way tables as are predicted to leave the least error with the noise of the best choice so far."""
    choices = [with_one_way(candidates, best(), number) for number in sorted(set(candidates.numbers()))]
    left = []
    for each in choices:
        asked = [candidates.single.index(part) for part in each.parts if len(part) == 1]
        noise = candidates.noise_in_shares(each)
        left.append(predicted_rest(candidates.moments, candidates.cells, noise, asked))
    found = choices[int(np.argmin(left))]
    if set(found.parts) != set(best().parts):
        number = sum(len(part) == 1 for part in found.parts)
        yield f"{many(number, 'one-way table')} predicted to be best", found


def with_one_way(candidates: Candidates, choice: Choice, number: int) -> Choice:
    """The choice with this many one-way tables, those that tell most at its noise."""
    pairs = tuple(part for part in choice.parts if len(part) > 1)
    any_ones = replace(choice, parts=candidates.single[:number] + pairs)  # the noise depends on their number only
    noise = candidates.noise_in_shares(any_ones)
    kept = telling_parts(candidates.moments, candidates.cells, noise, number)
    return replace(choice, parts=tuple(candidates.single[k] for k in sorted(kept)) + pairs)
