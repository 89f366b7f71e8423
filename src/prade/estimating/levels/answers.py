"""The raw answers of a level: its own noisy counts joined with the sums of its descendants' counts for the same parts.

Answers to the same question are averaged with their inverse variances as weights, which is the most precise unbiased
mean. Everything here is post-processing of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, PreciseMean
from prade.core.errors import EstimationError
from prade.data.declare.groups import Grouping
from prade.planning.plan import Plan
from prade.queries.parts import Part
from prade.release.release import Release


@dataclass(frozen=True)
class RawAnswers:
    """All that is measured about a level's groups, before shares are smoothed.

    `counts` has an array [groups, cells] for each part, `variance` the noise variances [groups, parts]. `totals` are
    the noisy numbers of rows [groups], `total_variance` their noise variances; `counted` and `counted_variance` are
    the same without the sums of tables, None if numbers of rows were not asked for, and `counted_once` says whether
    these have single draws of Laplace noise. `one_draw` says which counts have one, [groups, parts]; None if that is
    not known.
    """

    parts: tuple[Part, ...]
    counts: list[Floats]
    variance: Floats
    totals: Floats
    total_variance: Floats
    one_draw: Flags | None = None
    counted: Floats | None = None
    counted_variance: Floats | None = None
    counted_once: bool = False

    def variances_of(self, parts: Sequence[Part]) -> tuple[Flags, Floats]:
        """Which cells of some parts there are answers for, and the noise variances of counts, [groups, cells]."""
        seen = [np.full(part.n_cells, part in self.parts) for part in parts]
        variances = [
            np.repeat(self.variance[:, [self.parts.index(part)]], part.n_cells, axis=1)
            if part in self.parts
            else np.full((len(self.totals), part.n_cells), np.inf)
            for part in parts
        ]
        return np.concatenate(seen), np.concatenate(variances, axis=1)


def parts_of(plan: Plan, level: int) -> tuple[Part, ...]:
    """The parts that a level's groups are estimated from, which are measured at the level or below it.

    If only numbers of rows are measured, these are the part.
    """
    asked = [question for question in plan.questions if question.level >= level]
    totals = [question.parts[0] for question in asked if question.is_total]
    parts = dict.fromkeys(part for question in asked if not question.is_total for part in question.parts)
    return tuple(parts) or tuple(totals[-1:])


def raw_answers(release: Release, level: int, everybody: Grouping | None = None) -> RawAnswers:
    """The raw answers of a level's groups, with the answers of deeper levels added up to them.

    With `everybody`, those of level 0 are added up to the one group of it.
    """
    plan, grouping = release.plan, everybody or release.plan.groupings[level]
    size = len(grouping)
    totals, counted, means, draws = PreciseMean(size), PreciseMean(size), dict[Part, PreciseMean](), dict[Part, Ints]()
    whole: Part | None = None
    times = 0  # that a group of the level, or one below it, was counted
    for question, noisy in zip(plan.questions, release.noisy, strict=True):
        if question.level < level:
            continue
        above = plan.groupings[question.level].above(grouping)
        descendants = np.bincount(above, minlength=size)
        summed = [_summed(counts, above, size) for counts in noisy]
        for part_number, variance in question.total_variances(descendants):
            for mean in (totals, counted) if question.is_total else (totals,):
                mean.add(summed[part_number].sum(axis=1), variance)
        if question.is_total:
            (whole,) = question.parts
            times += descendants.max()
            continue
        for part, counts in zip(question.parts, summed, strict=True):
            means.setdefault(part, PreciseMean(size, part.n_cells)).add(
                counts, np.asarray(question.variance * descendants, np.float64)
            )
            draws[part] = descendants + draws.get(part, 0)
    if not totals.known:
        raise EstimationError(
            f"level {plan.levels[level].name}: nothing that was measured there or below says how many rows there "
            "are; a plan needs a total, or a part that covers everybody"
        )
    once = not plan.law.squared and times == 1
    if not means and whole is not None:  # only numbers of rows were measured: nothing contradicts the prior
        # they are the one cell of the plan, if it has no others
        told = () if parts_of(plan, 0) == (whole,) else (None, counted.value, counted.variance, once)
        one = [totals.value[:, None]], totals.variance[:, None]
        return RawAnswers((whole,), *one, totals.value, totals.variance, *told)
    return RawAnswers(
        tuple(means),
        [mean.value for mean in means.values()],
        np.stack([mean.variance for mean in means.values()], axis=1),
        totals.value,
        totals.variance,
        np.stack([draws[part] == 1 for part in means], axis=1) if not plan.law.squared else None,
        counted.value if counted.known else None,
        counted.variance if counted.known else None,
        once,
    )


def _summed(counts: Ints, above: Ints, size: int) -> Floats:
    """The counts of deeper groups [deeper groups, cells] added up to those of the level: [size, cells]."""
    added = np.zeros((size, counts.shape[1]))
    np.add.at(added, above, counts)
    return added
