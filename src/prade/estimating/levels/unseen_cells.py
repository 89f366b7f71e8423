"""Cells that no public row is in, although the noisy answers show that private rows are there.

An answer about an absent cell is noise alone unless private rows are in the cell. A chance of a false alarm is set for
all that is looked at together and divided by the number of answers (Bonferroni); an answer shows private rows if noise
alone exceeds it less often. The noise X of an answer is a sum of independent draws with weights of at most 1, and its
variance v is known. For every s > 0, P(X >= t) <= E[exp(s X)] exp(-s t) (Chernoff), where

    discrete Laplace draws     E[exp(s X)] <= 1 / (1 - v (cosh(s) - 1))     equal for one draw
    discrete Gaussian draws    E[exp(s X)] <= exp(s^2 v / 2)

(A sum of Laplace draws has thinner tails than one draw of the same variance. A discrete Gaussian of a variance below 1
has tails that v does not bound so well, but no wider ones than a discrete Laplace of the same variance.)

All of it is post-processing: nothing but noisy answers, public rows and the plan is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats
from prade.estimating.levels.answers import RawAnswers, raw_answers
from prade.planning.invariants import possible_cells
from prade.queries.parts import Marginal

if TYPE_CHECKING:
    from prade.privacy.noise_law import NoiseLaw
    from prade.queries.parts import Part
    from prade.release.release import Release

FALSE_ALARM = 0.01  # chance that any cell is shown that no private row is in
LARGEST_SHARE = 0.25  # of one cell: answers of a small table may be anything


@dataclass(frozen=True)
class ShownCell:
    """A cell of a marginal that answers show, and its share of all rows, as a power of 1/2 (it is a rough figure)."""

    part: Marginal
    cell: int
    halvings: int

    @property
    def share(self) -> float:
        """The share of all rows."""
        return float(0.5**self.halvings)


def shown_cells(release: Release, absent_in: Callable[[Part], Flags]) -> tuple[ShownCell, ...]:
    """Cells of the measured marginals that are absent, but that the answers about all rows or about a group show.

    `absent_in(part)` says which cells of a part no public row is in. Cells that the rules forbid are not shown.
    """
    plan, found = release.plan, list[ShownCell]()
    measured = dict.fromkeys(
        part for each in plan.questions if not each.is_total for part in each.parts if isinstance(part, Marginal)
    )
    absent = {part: absent_in(part) for part in measured}
    absent = {part: each for part, each in absent.items() if each.any()}
    if not absent:
        return ()
    looked_at = sum(int(each.sum()) for each in absent.values())
    first, last = (raw_answers(release, level) for level in (0, len(plan.levels) - 1))
    law, rows = plan.law, max(float(first.totals.sum()), 1.0)
    for part, none in absent.items():
        number = first.parts.index(part)
        counts = first.counts[number].sum(axis=0)
        limit = law.bound(float(first.variance[:, number].sum()), FALSE_ALARM / 2 / looked_at)
        estimate = np.where(counts > limit, counts, 0.0)
        if part in last.parts:
            estimate = np.maximum(estimate, _in_groups(last, part, law, FALSE_ALARM / 2 / looked_at))
        shown = none & (estimate > 0)
        if shown.any():
            shown &= possible_cells(part, plan.invariants, plan.schema)
        for cell in np.flatnonzero(shown).tolist():
            share = min(float(estimate[cell]) / rows, LARGEST_SHARE)
            found.append(ShownCell(part, cell, round(-math.log2(share))))
    return tuple(found)


def _in_groups(answers: RawAnswers, part: Part, law: NoiseLaw, chance: float) -> Floats:
    """Of each cell of a part, the rows in those groups whose own answers show it."""
    number, groups = answers.parts.index(part), len(answers.totals)
    counts, variances = answers.counts[number], answers.variance[:, number]
    limits = {v: law.bound(v, chance / groups) for v in np.unique(variances).tolist()}
    limit = np.array([limits[v] for v in variances.tolist()])
    return np.asarray(np.where(counts > limit[:, None], counts, 0.0).sum(axis=0))
