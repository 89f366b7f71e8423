"""Counts of cells for the groups of any level, with their 95 % intervals: what every answer is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.core.errors import DataError, names_of
from prade.data.declare.groups import Grouping
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.error_bars import Errors, errors
from prade.estimating.levels.public_cells import Cells
from prade.estimating.levels.totals import FEWEST_ROWS, added_up, leverage, variance_of_sums

if TYPE_CHECKING:
    from prade.planning.plan import Plan

# Standard deviations either way: 1.96 where errors are Gaussian, 2.12 where they are Laplace noise; a and w are fitted.
NINETY_FIVE = 2.04


def interval(
    value: Floats | float, sd: Floats | float, least: Floats | float = -np.inf, most: Floats | float = np.inf
) -> tuple[Floats, Floats]:
    """The 95 % interval of an estimate: value - z sd and value + z sd, both from `least` to `most`.

    Every interval that prade states is made here.

    >>> low, high = interval(np.array([3.0, 100.0]), np.array([2.0, 10.0]), least=0.0)
    >>> low.tolist(), high.tolist()
    ([0.0, 79.6], [7.08, 120.4])
    """
    low, high = (np.clip(value + side * NINETY_FIVE * sd, least, most) for side in (-1, 1))
    return low, high


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of cells [groups, cells] and numbers of rows [groups], both with their variances.

    `variance` is that of the count if the number of rows were known, `rows_variance` that of the number of rows. Errors
    of both are assumed to be independent, which is the safe side: n^2 Var(x) + x^2 Var(n).
    """

    grouping: Grouping
    rows: Floats
    rows_variance: Floats
    counts: Floats
    variance: Floats
    variance_by_rows: Floats  # what the unknown numbers of rows add, [groups, cells]
    share_variance_by_rows: Floats | float = 0.0  # the same for shares, times the rows' square; 0 if it is next to none

    @property
    def shares(self) -> Floats:  # of the group's rows
        return np.asarray(self.counts / self._whole)

    @property
    def sd(self) -> Floats:  # of the shares
        return np.asarray(np.sqrt(self.variance + self.share_variance_by_rows) / self._whole)

    @property
    def low(self) -> Floats:  # end of the counts' 95 % intervals
        return self._interval[0]

    @property
    def high(self) -> Floats:
        return self._interval[1]

    @property
    def _interval(self) -> tuple[Floats, Floats]:
        _, most = interval(self.rows, np.sqrt(self.rows_variance))
        return interval(self.counts, np.sqrt(self.variance + self.variance_by_rows), 0.0, most[:, None])

    def limited_to(self, possible: Flags) -> CellCounts:
        """The same counts, where only some cells are possible: the others are empty for certain."""
        return replace(self, variance=np.where(possible, self.variance, 0.0))

    @property
    def _whole(self) -> Floats:
        return np.maximum(self.rows, FEWEST_ROWS)[:, None]


def cell_counts(
    estimates: Distributions,
    by: str | Sequence[str],
    asked: Cells,
    *,
    chosen: Flags | None = None,
    combined: Floats | None = None,
    threads: int = 1,
) -> CellCounts:
    """The counts of the cells that are asked for, in the groups `by`.

    With `chosen`, only rows in these groups of the last level are counted in cells. With `combined`, [combinations,
    cells], the counts are linear combinations of the cells' counts.
    """
    level, last = estimates.plan.groups.level(names_of(by)), estimates.plan.groupings[-1]
    need_known(estimates.plan, level.by)
    shares = estimates.masses(asked, threads=threads)
    # weights are kept in single precision, and may add up to slightly more than 1
    shares = np.minimum(shares, 1.0) if combined is None else shares @ combined.T
    shares = shares if chosen is None else np.where(chosen[:, None], shares, 0.0)
    above = last.above(level)
    rows, counts = np.zeros(len(level)), np.zeros((len(level), shares.shape[1]))
    np.add.at(rows, above, estimates.totals)
    np.add.at(counts, above, estimates.totals[:, None] * shares)
    everybody, how = np.ones((len(shares), 1)), (estimates.totals, above, len(level), estimates.plan)
    of_rows, of_counts = (variance_of_sums(estimates.errors_of_rows, times, *how) for times in (everybody, shares))
    by_rows: Floats | float = 0.0
    if chosen is not None:
        # how many rows the chosen groups have among the others: (s_g - s) / n of every error of n_g
        away = shares - (counts / np.maximum(rows, FEWEST_ROWS)[:, None])[above]
        by_rows = variance_of_sums(estimates.errors_of_rows, away, *how)
        above = np.where(chosen, above, len(level))  # the others are added up too, in a sum that nobody asked for
    known = sum_variances(estimates, [asked], above, len(level) + 1, combined)[: len(level)]
    return CellCounts(level, rows, of_rows[:, 0], counts, known, of_counts, by_rows)


def need_known(plan: Plan, names: Sequence[str]) -> None:
    """Raise a DataError unless these columns of the list of groups are known from the last level's group."""
    if finer := [name for name in names if not follows(plan, name)]:
        raise DataError(
            f"{finer[0]!r} is not a column of the release's levels ({', '.join(plan.groupings[-1].by) or 'none'}), and "
            "does not follow from them: the release does not tell its groups apart"
        )


def follows(plan: Plan, name: str) -> bool:
    """Whether a column of the list of groups is known from the last level's group: its own, or a PUMA's state."""
    last = plan.groupings[-1]
    return name in last.by or len(plan.groups.level((*last.by, name))) == len(last)


# ---------------------------------------------------------------------- standard errors of sums over groups

# The groups of a parent add up to it (`prade.estimating.levels.tree`), so the error of a group is its parent's error
# plus one of its own, e_g = l_g e_parent + d_g, and a sum over all groups of a parent has the parent's error alone. A
# sum is therefore put together from the coarsest groups that it consists of; of these, d_g is independent from group to
# group. Only groups that start from the same public rows (several years of a place) have all of R in common, what is
# left of the prior's error.
#
#     Var(sum_g c_g e_g) = sum_g c_g^2 Var(d_g) + Var(sum_parents (sum_g c_g l_g) e_parent)
#
# The variance of the sum of parents is worked out the same way, one level up. Where raw answers were taken, groups
# inherit only what their answers left of the prior's error, l_g^2 = R / S_QQ, and a sum is put together from the last
# level's groups.


def sum_variances(
    estimates: Distributions,
    asked: Sequence[Cells],
    above: Ints,
    n_sums: int,
    combined: Floats | None = None,
    *,
    kept: dict[int, Errors] | None = None,
) -> Floats:
    """Variances of the errors of sums over the last level's groups of n_g times their shares: [sums, all cells].

    `above` says which sum each group is in. With `combined`, [combinations, cells], the variances are those of linear
    combinations of the cells. `kept` takes the errors of each level, for other sums over the same cells.
    """
    kept = {} if kept is None else kept
    size = sum(number for _, number in asked) if combined is None else len(combined)
    total = np.zeros((n_sums, size))
    level, sum_of = _coarsest(estimates, above) if estimates.benchmarked else (len(estimates.levels) - 1, above)
    rows = _rows(estimates, level)
    terms = _Terms(sum_of, np.arange(len(sum_of)), np.repeat(rows[:, None], size, axis=1))
    while True:
        if level not in kept:
            kept[level] = errors(estimates, level, asked, combined)
        here = _Level(estimates, level, kept[level])
        here.add_to(total, terms)
        if level == 0:
            return total
        terms, level = here.inherited_by(terms), level - 1


def _coarsest(estimates: Distributions, above: Ints) -> tuple[int, Ints]:
    """The first level whose groups are each in one sum, and the sums of its groups."""
    last = estimates.plan.groupings[-1]
    for level, grouping in enumerate(estimates.foundation.groupings):
        group = last.above(grouping)
        sum_of = np.zeros(len(grouping), np.int64)
        sum_of[group] = above
        if np.array_equal(sum_of[group], above):
            return level, sum_of
    raise AssertionError("every group of the last level is in one sum")


def _rows(estimates: Distributions, level: int) -> Floats:
    """The numbers of rows of a level's groups, added up from the last level's."""
    grouping = estimates.foundation.groupings[level]
    return added_up(estimates.totals, estimates.plan.groupings[-1].above(grouping), len(grouping))


@dataclass(frozen=True)
class _Terms:
    """The terms of the sums at one level: term t adds times[t] * (error of group[t]) to the sum of_sum[t]."""

    of_sum: Ints
    group: Ints
    times: Floats  # [terms, cells]

    def collected(self, key: Ints, n_keys: int, factor: Floats) -> _Terms:
        """The terms of each sum added up by the key of their group, times a factor [groups, cells]: group -> key."""
        pairs, pair = np.unique(self.of_sum * n_keys + key[self.group], return_inverse=True)
        times = np.zeros((len(pairs), self.times.shape[1]))
        np.add.at(times, pair, self.times * factor[self.group])
        return _Terms(pairs // n_keys, pairs % n_keys, times)


class _Level:
    """How the errors of one level's groups are correlated."""

    def __init__(self, estimates: Distributions, level: int, known: Errors) -> None:
        self.priors, self.parent_of = estimates.priors[level], estimates.foundation.parents(level)
        self.n_parents = len(estimates.levels[level - 1].totals) if level else 0
        self.own, left = known.variance, known.left  # variance of d_g, and what the prior's error is of it
        self.inherited = np.ones_like(left)  # l_g
        if level and estimates.benchmarked:
            unknown = 1 - leverage(_rows(estimates, level), known.variance, self.parent_of, self.n_parents)
            self.own, left = self.own * unknown, left * unknown
        elif level:
            self.inherited = np.sqrt(np.where(self.priors.recurs[:, None], 0.0, known.left / known.prior))
        self.family = np.where(self.priors.recurs[:, None], left, 0.0)

    def add_to(self, total: Floats, terms: _Terms) -> None:
        """Add to the sums' variances all that is not inherited."""
        recurs, independent = self.priors.recurs, self.own - self.family
        np.add.at(total, terms.of_sum, terms.times**2 * independent[terms.group])
        family_of = np.where(recurs, self.priors.recurring.of_group, np.arange(len(recurs)))
        families = terms.collected(family_of, len(recurs), np.sqrt(np.maximum(self.family, 0.0)))
        np.add.at(total, families.of_sum, families.times**2)

    def inherited_by(self, terms: _Terms) -> _Terms:
        """The terms of the parents' errors."""
        return terms.collected(self.parent_of, self.n_parents, self.inherited)
