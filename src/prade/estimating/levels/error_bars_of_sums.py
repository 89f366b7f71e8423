"""Standard errors of sums over groups: how the errors of groups are correlated.

Noise is independent from group to group; what is left of the priors' errors is not. Let K_g be the variance that a
group's error e_g has in common with others:

    inherited    a group that starts from its parent's estimate inherits its error, l_g e_parent, l_g^2 = R / S_QQ:
                 K_g = l_g^2 Var(e_parent)
    shared       of the others' priors, the public table or their own public rows, the share `shared` of what is left
                 is the same error for all: K_g = shared * R
    family       groups that start from the same public rows (several years of a place) have all of R in common

    Var(sum_g c_g e_g) = sum_g c_g^2 (Var(e_g) - K_g) + Var(sum_parents (sum_g c_g l_g) e_parent)     inherited
                         sum_g c_g^2 (Var(e_g) - K_g) + (sum_g c_g sqrt(K_g))^2                       shared

The variance of the sum of parents is worked out the same way, one level up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from prade.core.arrays import Flags, Floats, Ints
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.error_bars import Errors, errors
from prade.estimating.levels.group_prior import HANDED_ON, GroupPriors
from prade.estimating.levels.public_cells import Cells


def sum_variances(
    estimates: Distributions, asked: Sequence[Cells], above: Ints, n_sums: int, combined: Floats | None = None
) -> Floats:
    """Variances of the errors of sums over the last level's groups of n_g times their shares: [sums, all cells].

    `above` says which sum each group is in. With `combined`, [combinations, cells], the variances are those of linear
    combinations of the cells.
    """
    size = sum(number for _, number in asked) if combined is None else len(combined)
    total = np.zeros((n_sums, size))
    terms = _Terms(above, np.arange(len(above)), np.repeat(estimates.totals[:, None], size, axis=1))
    level = len(estimates.levels) - 1
    known = errors(estimates, level, asked, combined)
    if n_sums == len(above):  # every group by itself
        terms.add_independent(total, known.variance)
        return total
    while True:
        priors = estimates.priors[level]
        inherits = ~priors.recurs & (level > 0)
        parents = _handed_on(errors(estimates, level - 1, asked, combined)) if inherits.any() else None
        here = _Level(priors, known, inherits, parents)
        here.add_to(total, terms)
        if parents is None:
            return total
        terms, known, level = here.inherited_by(terms), parents, level - 1


def _handed_on(parents: Errors) -> Errors:
    """The errors of what parents hand on: a little of it is the public table, which is off by as much as any prior."""
    return replace(parents, variance=parents.variance + (1 - HANDED_ON) ** 2 * parents.prior)


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

    def collected(self, key: Ints, n_keys: int, factor: Floats, mine: Flags | None = None) -> _Terms:
        """The terms of each sum added up by the key of their group, times a factor [groups, cells]: group -> key."""
        chosen = slice(None) if mine is None else mine[self.group]
        group = self.group[chosen]
        pairs, pair = np.unique(self.of_sum[chosen] * n_keys + key[group], return_inverse=True)
        times = np.zeros((len(pairs), self.times.shape[1]))
        np.add.at(times, pair, self.times[chosen] * factor[group])
        return _Terms(pairs // n_keys, pairs % n_keys, times)


class _Level:
    """How the errors of one level's groups are correlated; `parents` are the errors that they inherit, if any."""

    def __init__(self, priors: GroupPriors, known: Errors, inherits: Flags, parents: Errors | None) -> None:
        self.priors = priors
        self.known = known
        self.inherits = inherits
        self.n_parents = 0 if parents is None else len(parents.variance)
        self.common = known.shared * known.left  # K_g
        self.share_inherited = np.zeros_like(known.left)  # l_g^2
        if parents is not None:
            of_parent = parents.variance[priors.parent_of]
            self.share_inherited = known.left / np.maximum(known.prior, of_parent)
            self.common = np.where(inherits[:, None], self.share_inherited * of_parent, self.common)
        self.family = np.where(priors.recurs[:, None], known.left - self.common, 0.0)

    def add_to(self, total: Floats, terms: _Terms) -> None:
        """Add to the sums' variances all that is not inherited."""
        recurs = self.priors.recurs
        terms.add_independent(total, self.known.variance - self.common - self.family)
        family_of = np.where(recurs, self.priors.recurring.of_group, np.arange(len(recurs)))
        families = terms.collected(family_of, len(recurs), np.sqrt(np.maximum(self.family, 0.0)))
        np.add.at(total, families.of_sum, families.times**2)
        for alike in (recurs, ~recurs & ~self.inherits):
            terms.add_common(total, self.common, alike)

    def inherited_by(self, terms: _Terms) -> _Terms:
        """The terms of the parents' errors that remain."""
        return terms.collected(self.priors.parent_of, self.n_parents, np.sqrt(self.share_inherited), self.inherits)
