"""Counts of cells for the groups of any level, with their 95 % intervals: what every answer is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints
from prade.core.errors import DataError, names_of
from prade.data.declare.groups import Grouping
from prade.estimating.levels.answers import RawAnswers
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
    known = sum_variances(estimates, [asked], above, len(level) + 1, combined, counts=counts)[: len(level)]
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

# The groups of a parent add up to its estimate (`prade.estimating.levels.totals`), so the error of a group is its
# parent's error plus one of its own, e_g = l_g e_parent + d_g, and a sum over all groups of a parent has the parent's
# error alone. A sum is therefore put together from the coarsest groups that it consists of; of these, d_g is
# independent from group to group, except for what their priors have in common:
#
#     shared       of groups without a parent, the share `shared` of what is left of the prior's error, R, is the same
#                  for all
#     family       groups that start from the same public rows (several years of a place) have all of R in common
#
#     Var(sum_g c_g e_g) = sum_g c_g^2 Var(d_g) + Var(sum_parents (sum_g c_g l_g) e_parent)
#
# The variance of the sum of parents is worked out the same way, one level up. A sum of measured cells has at most the
# error that its raw answers allow (`direct_variances`). Where groups are not benchmarked, because their raw answers
# were taken, they inherit only what their answers left of the prior's error, l_g^2 = R / S_QQ, and a sum is put
# together from the last level's groups.


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
        here = _Level(estimates, level, kept[level])
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

    def collected(self, key: Ints, n_keys: int, factor: Floats) -> _Terms:
        """The terms of each sum added up by the key of their group, times a factor [groups, cells]: group -> key."""
        pairs, pair = np.unique(self.of_sum * n_keys + key[self.group], return_inverse=True)
        times = np.zeros((len(pairs), self.times.shape[1]))
        np.add.at(times, pair, self.times * factor[self.group])
        return _Terms(pairs // n_keys, pairs % n_keys, times)


class _Level:
    """How the errors of one level's groups are correlated."""

    def __init__(self, estimates: Distributions, level: int, known: Errors) -> None:
        self.priors = priors = estimates.priors[level]
        self.n_parents = len(estimates.levels[level - 1].totals) if level else 0
        self.own, left = known.variance, known.left  # variance of d_g, and what the prior's error is of it
        self.inherited = np.ones_like(left)  # l_g
        if level and estimates.benchmarked:
            unknown = 1 - leverage(_rows(estimates, level), known.variance, priors.parent_of, self.n_parents)
            self.own, left = self.own * unknown, left * unknown
        elif level:
            self.inherited = np.sqrt(np.where(priors.recurs[:, None], 0.0, known.left / known.prior))
        self.common = np.zeros_like(left) if level else known.shared * left
        self.family = np.where(priors.recurs[:, None], left - self.common, 0.0)

    def add_to(self, total: Floats, terms: _Terms) -> None:
        """Add to the sums' variances all that is not inherited."""
        recurs, independent = self.priors.recurs, self.own - self.common - self.family
        np.add.at(total, terms.of_sum, terms.times**2 * independent[terms.group])
        family_of = np.where(recurs, self.priors.recurring.of_group, np.arange(len(recurs)))
        families = terms.collected(family_of, len(recurs), np.sqrt(np.maximum(self.family, 0.0)))
        np.add.at(total, families.of_sum, families.times**2)
        for alike in (recurs, ~recurs):  # up to its variance in each, they have this error in common
            chosen, summed = alike[terms.group], np.zeros_like(total)
            deviation = np.sqrt(self.common[terms.group[chosen]])
            np.add.at(summed, terms.of_sum[chosen], terms.times[chosen] * deviation)
            total += summed**2

    def inherited_by(self, terms: _Terms) -> _Terms:
        """The terms of the parents' errors."""
        return terms.collected(self.priors.parent_of, self.n_parents, self.inherited)


# ---------------------------------------------------------------------- what the raw answers alone say about a sum

# Let a question be made up of whole cells of a measured part, such as AGEP >= 65 of the one-way table of AGEP. Let y
# be the sum of the raw answers to these cells over all groups, V the variance of the noise in it, and q the estimate.
# The mean square of the error of q, given what is known, is V + (y - q)^2 if nothing is assumed about the truth. A
# model of groups usually expects less; it expects too much where it takes columns for unrelated of which one follows
# from the other, as whether somebody rents and whether there is a rent.
#
# Public rows tell which cells make up the question. A cell without public rows may belong to it and have private rows,
# so a part with such cells only tells about its own cells, one by one.


LOOKED_AT = 1_000  # public rows that rule out most parts before all rows are looked at


def direct_variances(
    estimates: Distributions,
    level: int,
    asked: Sequence[Cells],
    sum_of: Ints,
    counts: Floats,
    combined: Floats | None = None,
) -> Floats:
    """V + (y - q)^2 of sums over a level's groups, [sums, all cells]; infinite where no measured part tells them.

    `sum_of` says which sum each group is in. `counts` are the estimates q of the first sums; others are not asked for.
    With `combined`, [combinations, cells], both are of linear combinations of the cells of the one part that is asked.
    """
    answers, schema, codes = estimates.answers[level], estimates.plan.schema, estimates.public.prior.codes
    both, n_sums = [], len(counts)
    sum_of = np.minimum(sum_of, n_sums)
    some = np.linspace(0, len(estimates.public) - 1, LOOKED_AT).astype(np.int64)
    few = {name: code[some] for name, code in codes.items()}
    cells_of_few = [part.cells(schema, few) for part in answers.parts]
    for cells, size in asked:
        best, least = np.full((2, n_sums, size), np.nan), np.inf
        for number, part in enumerate(answers.parts):
            noise = float(answers.variance[:, number].sum())
            seldom = _cells_in(cells_of_few[number], part.n_cells, cells[some], size)
            if seldom is None or noise * (seldom < size).sum() >= least:  # all rows are in no fewer cells than some
                continue
            into = _whole_cells(part.cells(schema, codes), part.n_cells, cells, size)
            if into is not None and (told := noise * float((into < size).sum())) < least:
                best, least = _summed(answers, number, into, size, sum_of, n_sums + 1)[:, :n_sums], told
        both.append(best)
    direct, variance = np.concatenate(both, axis=2)
    if combined is not None:
        direct, variance = direct @ combined.T, variance @ combined.T**2
    return np.where(np.isnan(direct), np.inf, variance + (direct - counts) ** 2)


def _cells_in(part: NDArray[Any], n_cells: int, cells: NDArray[Any], size: int) -> Ints | None:
    """The cell of the question, or `size` for none, that each cell of a part lies in; None if one lies in several.

    Both are given by the cells of the same rows. A cell without rows is in none.
    """
    into = np.full(n_cells + 1, size)
    into[part] = cells
    return into[:-1] if into[-1] == size and np.array_equal(into[part], cells) else None


def _whole_cells(part: NDArray[Any], n_cells: int, cells: NDArray[Any], size: int) -> Ints | None:
    """As `_cells_in`; None also if a cell without rows may be part of the question: private rows may well be in it.

    Only a question about the part's own cells, one by one, is known not to have it.
    """
    into = _cells_in(part, n_cells, cells, size)
    if into is None or (size == n_cells and np.array_equal(part, cells)):
        return into
    return into if len(np.unique(part[part < n_cells])) == n_cells else None


def _summed(answers: RawAnswers, number: int, into: Ints, size: int, sum_of: Ints, n_sums: int) -> Floats:
    """The sums y and variances V, [2, sums, cells], of the raw answers to a part; NaN for cells that it has none in."""
    asked = into < size
    counts, variance = np.zeros((len(sum_of), size)), np.bincount(into[asked], minlength=size).astype(np.float64)
    np.add.at(counts.T, into[asked], answers.counts[number].T[asked])
    variances = answers.variance[:, number, None] * variance
    both = np.stack([added_up(each, sum_of, n_sums) for each in (counts, variances)])
    both[:, :, variance == 0] = np.nan
    return both
