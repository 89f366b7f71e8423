"""Published numbers of rows: estimates meet them exactly, at their level and added up from and to the other levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, Ints, mass_per_cell, shared_out

if TYPE_CHECKING:
    from prade.planning.plan import Plan


def with_published(totals: Floats, level: int, plan: Plan) -> Floats:
    """The numbers of rows of a level's groups, with what is published about them.

    Published there or further down: these numbers, added up. Published further up only: whole numbers in proportion to
    `totals` that add up to the published number of each parent.
    """
    if (known := _known(level, plan)) is not None:
        return known
    above = [number for number in plan.published if number < level]
    if not above:
        return totals
    parent_of = plan.groupings[level].above(plan.groupings[max(above)])
    shared = np.zeros(len(totals))
    for parent, rows in enumerate(plan.published[max(above)]):
        mine = np.flatnonzero(parent_of == parent)
        shared[mine] = shared_out(int(rows), totals[mine])
    return shared


@dataclass(frozen=True)
class ErrorsOfRows:
    """Variances of the errors in numbers of rows, level by level, before each level's add up to those above it.

    Those of the last level's groups come first, then those of their parents, and so on. `parents[k]` says which group
    of `variances[k + 1]` each group of `variances[k]` is in.
    """

    variances: tuple[Floats, ...]
    parents: tuple[Ints, ...] = ()


def variance_of_sums(
    errors: ErrorsOfRows, times: Floats, totals: Floats, above: Ints, n_sums: int, plan: Plan
) -> Floats:
    """Variances of sums over the last level's groups of n_g times some numbers: [sums, cells].

    `totals` are the n_g; `above` says which sum each group is in. Where a parent's number N is published, an error e_g
    is shared out among its children: e_g - (n_g / N) (sum of e over the parent's children). The sum of all n_g has no
    error then. Where nothing is published, groups add up to their parents' numbers all the same (`_adding_up`).
    """
    level, size = len(plan.levels) - 1, times.shape[1]
    total = np.zeros((n_sums, size))
    if level in plan.published:
        return total
    if not plan.published:
        return np.maximum(_adding_up(errors, times, above, np.arange(len(times)), n_sums), 0.0)
    parents = plan.groupings[max(plan.published)]
    parent_of = plan.groupings[level].above(parents)
    published = plan.published[max(plan.published)][parent_of]
    variance = np.where(published > 0, errors.variances[0], 0.0)  # an empty parent has empty children
    np.add.at(total, above, times**2 * variance[:, None])
    pairs, pair = np.unique(above * len(parents) + parent_of, return_inverse=True)  # of a sum and a parent
    mean, covariance = np.zeros((2, len(pairs), size))
    np.add.at(mean, pair, times * (totals / np.maximum(published, 1.0))[:, None])
    np.add.at(covariance, pair, times * variance[:, None])
    shared = mass_per_cell(parent_of, variance, len(parents))[pairs % len(parents)]
    np.add.at(total, pairs // len(parents), mean**2 * shared[:, None] - 2 * mean * covariance)
    return np.maximum(total, 0.0)


def _adding_up(errors: ErrorsOfRows, times: Floats, above: Ints, group: Ints, n_sums: int) -> Floats:
    """Variances of sums of n_g times some numbers, where groups add up to their parents, and these to theirs.

    What was missing went to the groups in proportion to their variances v, so that the error of a group is

        e_g - (v_g / V) (sum of e over its parent's groups) + (v_g / V) E

    with V the sum of v over the parent's groups and E the parent's own error, which consists of the same terms. In a
    sum, E then counts (sum of v times) / V times. Groups without any variance have equal shares of E.
    """
    variance, *further = errors.variances
    total = np.zeros((n_sums, times.shape[1]))
    np.add.at(total, above, times**2 * variance[group, None])
    if not further:
        return total
    parent_of, of_parents = errors.parents[0], len(further[0])
    unsure = np.where(mass_per_cell(parent_of, variance, of_parents)[parent_of] > 0, variance, 1.0)
    added = mass_per_cell(parent_of, unsure, of_parents)
    pairs, pair = np.unique(above * of_parents + parent_of[group], return_inverse=True)  # of a sum and a parent
    sums, parents = pairs // of_parents, pairs % of_parents
    weighted, counted = np.zeros((2, len(pairs), times.shape[1]))
    np.add.at(weighted, pair, times * variance[group, None])
    np.add.at(counted, pair, times * (unsure / added[parent_of])[group, None])
    np.add.at(total, sums, -weighted * counted)
    return total + _adding_up(ErrorsOfRows(tuple(further), errors.parents[1:]), counted, sums, parents, n_sums)


def _known(level: int, plan: Plan) -> Floats | None:
    """The numbers of rows of a level's groups that follow from those published at the level or below; None if none."""
    below = [number for number in plan.published if number >= level]
    if not below:
        return None
    above = plan.groupings[min(below)].above(plan.groupings[level])
    return mass_per_cell(above, plan.published[min(below)], len(plan.groupings[level]))
