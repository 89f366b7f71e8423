"""Standard errors of sums over groups: how the errors of groups are correlated.

The groups of a parent add up to its estimate (`prade.estimating.levels.benchmarking`), so the error of a group is its
parent's error plus one of its own, e_g = l_g e_parent + d_g, and a sum over all groups of a parent has the parent's
error alone. A sum is therefore put together from the coarsest groups that it consists of; of these, d_g is independent
from group to group, except for what their priors have in common:

    shared       of groups without a parent, the share `shared` of what is left of the prior's error, R, is the same
                 for all
    family       groups that start from the same public rows (several years of a place) have all of R in common

    Var(sum_g c_g e_g) = sum_g c_g^2 Var(d_g) + Var(sum_parents (sum_g c_g l_g) e_parent)

The variance of the sum of parents is worked out the same way, one level up. A sum of measured cells has at most the
error that its raw answers allow (`prade.estimating.levels.direct_sums`). Where groups are not benchmarked, because
their raw answers were taken, they inherit only what their answers left of the prior's error, l_g^2 = R / S_QQ, and a
sum is put together from the last level's groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.estimating.levels.benchmarking import added_up, leverage
from prade.estimating.levels.direct_sums import direct_variances
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.error_bars import Errors, errors
from prade.estimating.levels.group_prior import GroupPriors
from prade.estimating.levels.public_cells import Cells


def sum_variances(
    estimates: Distributions,
    asked: Sequence[Cells],
    above: Ints,
    n_sums: int,
    combined: Floats | None = None,
    *,
    counts: Floats | None = None,
    kept: dict[int, Errors] | None = None,
) -> Floats:
    """Variances of the errors of sums over the last level's groups of n_g times their shares: [sums, all cells].

    `above` says which sum each group is in. With `combined`, [combinations, cells], the variances are those of linear
    combinations of the cells. `counts` are the sums themselves, of the first sums at least, where they are known: then
    raw answers limit the variances. `kept` takes the errors of each level, for other sums over the same cells.
    """
    kept = {} if kept is None else kept
    size = sum(number for _, number in asked) if combined is None else len(combined)
    total = np.zeros((n_sums, size))
    level, sum_of = _coarsest(estimates, above) if estimates.benchmarked else (len(estimates.levels) - 1, above)
    limits = None if counts is None else direct_variances(estimates, level, asked, sum_of, counts, combined)
    rows = _rows(estimates, level)
    terms = _Terms(sum_of, np.arange(len(sum_of)), np.repeat(rows[:, None], size, axis=1))
    while True:
        if level not in kept:
            kept[level] = errors(estimates, level, asked, combined)
        here = _Level(
            estimates.priors[level],
            kept[level],
            _rows(estimates, level),
            0 if level == 0 else len(estimates.levels[level - 1].totals),
            estimates.benchmarked,
        )
        here.add_to(total, terms)
        if level == 0:
            if limits is not None:
                total[: len(limits)] = np.minimum(total[: len(limits)], limits)
            return total
        terms, level = here.inherited_by(terms), level - 1


def _coarsest(estimates: Distributions, above: Ints) -> tuple[int, Ints]:
    """The first level whose groups are each in one sum, and the sums of its groups."""
    last = estimates.plan.groupings[-1]
    for level, grouping in enumerate(estimates.plan.groupings):
        group = last.above(grouping)
        sum_of = np.zeros(len(grouping), np.int64)
        sum_of[group] = above
        if np.array_equal(sum_of[group], above):
            return level, sum_of
    raise AssertionError("every group of the last level is in one sum")


def _rows(estimates: Distributions, level: int) -> Floats:
    """The numbers of rows of a level's groups, added up from the last level's."""
    grouping = estimates.plan.groupings[level]
    return added_up(estimates.totals, estimates.plan.groupings[-1].above(grouping), len(grouping))


@dataclass(frozen=True)
class _Terms:
    """The terms of the sums at one level: term t adds times[t] * (error of group[t]) to the sum of_sum[t]."""

    of_sum: Ints
    group: Ints
    times: Floats  # [terms, cells]

    def add_independent(self, total: Floats, variance: Floats) -> None:
        """Add the variances of independent errors of these variances, [groups, cells]."""
        np.add.at(total, self.of_sum, self.times**2 * variance[self.group])

    def add_common(self, total: Floats, variance: Floats, mine: Flags) -> None:
        """Add the variance of an error that all groups in `mine` have in common, up to its variance in each."""
        chosen, summed = mine[self.group], np.zeros_like(total)
        deviation = np.sqrt(variance[self.group[chosen]])
        np.add.at(summed, self.of_sum[chosen], self.times[chosen] * deviation)
        total += summed**2

    def collected(self, key: Ints, n_keys: int, factor: Floats) -> _Terms:
        """The terms of each sum added up by the key of their group, times a factor [groups, cells]: group -> key."""
        pairs, pair = np.unique(self.of_sum * n_keys + key[self.group], return_inverse=True)
        times = np.zeros((len(pairs), self.times.shape[1]))
        np.add.at(times, pair, self.times * factor[self.group])
        return _Terms(pairs // n_keys, pairs % n_keys, times)


class _Level:
    """How the errors of one level's groups are correlated."""

    def __init__(self, priors: GroupPriors, known: Errors, rows: Floats, n_parents: int, benchmarked: bool) -> None:
        self.priors = priors
        self.n_parents = n_parents
        self.own, left = known.variance, known.left  # variance of d_g, and what the prior's error is of it
        self.inherited = np.ones_like(left)  # l_g
        if n_parents and benchmarked:
            unknown = 1 - leverage(rows, known.variance, priors.parent_of, n_parents)
            self.own, left = self.own * unknown, left * unknown
        elif n_parents:
            self.inherited = np.sqrt(np.where(priors.recurs[:, None], 0.0, known.left / known.prior))
        self.common = np.zeros_like(left) if n_parents else known.shared * left
        self.family = np.where(priors.recurs[:, None], left - self.common, 0.0)

    def add_to(self, total: Floats, terms: _Terms) -> None:
        """Add to the sums' variances all that is not inherited."""
        recurs = self.priors.recurs
        terms.add_independent(total, self.own - self.common - self.family)
        family_of = np.where(recurs, self.priors.recurring.of_group, np.arange(len(recurs)))
        families = terms.collected(family_of, len(recurs), np.sqrt(np.maximum(self.family, 0.0)))
        np.add.at(total, families.of_sum, families.times**2)
        for alike in (recurs, ~recurs):
            terms.add_common(total, self.common, alike)

    def inherited_by(self, terms: _Terms) -> _Terms:
        """The terms of the parents' errors."""
        return terms.collected(self.priors.parent_of, self.n_parents, self.inherited)
