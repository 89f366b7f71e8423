"""Published numbers of rows: estimates meet them exactly, at their level and added up from and to the other levels."""

from __future__ import annotations

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


def variance_of_sums(
    variance: Floats,
    times: Floats,
    totals: Floats,
    above: Ints,
    n_sums: int,
    plan: Plan,
    added_to: tuple[Ints, Floats] | None = None,
) -> Floats:
    """Variances of sums over the last level's groups of n_g times some numbers: [sums, cells].

    `variance` are those of the errors of n_g, which are independent, before `with_published` made them `totals`;
    `above` says which sum each group is in. Where a parent's number N is published, an error in n_g is shared out among
    its children: e_g - (n_g / N) (sum of e over the parent's children). The sum of all n_g has no error then.

    Where nothing is published, `added_to` has each group's parent and the variances P of the parents' numbers, which
    their groups add up to. What was missing went to the groups in proportion to their variances v, so that their errors
    are e_g - (v_g / V) (sum of e) + (v_g / V) E, with V the sum of v over the parent's groups and E the parent's error.
    """
    level, size = len(plan.levels) - 1, times.shape[1]
    total = np.zeros((n_sums, size))
    if level in plan.published:
        return total
    if not plan.published:
        np.add.at(total, above, times**2 * variance[:, None])
        if added_to is not None:
            total += _of_parents(variance, times, above, n_sums, *added_to)
        return np.maximum(total, 0.0)
    parents = plan.groupings[max(plan.published)]
    parent_of = plan.groupings[level].above(parents)
    published = plan.published[max(plan.published)][parent_of]
    variance = np.where(published > 0, variance, 0.0)  # an empty parent has empty children
    np.add.at(total, above, times**2 * variance[:, None])
    pairs, pair = np.unique(above * len(parents) + parent_of, return_inverse=True)  # of a sum and a parent
    mean, covariance = np.zeros((2, len(pairs), size))
    np.add.at(mean, pair, times * (totals / np.maximum(published, 1.0))[:, None])
    np.add.at(covariance, pair, times * variance[:, None])
    shared = mass_per_cell(parent_of, variance, len(parents))[pairs % len(parents)]
    np.add.at(total, pairs // len(parents), mean**2 * shared[:, None] - 2 * mean * covariance)
    return np.maximum(total, 0.0)


def _of_parents(
    variance: Floats, times: Floats, above: Ints, n_sums: int, parent_of: Ints, of_parents: Floats
) -> Floats:
    """What adding up to parents changes in the variances of sums: (sum of v times)^2 (P - V) / V^2 for each parent."""
    added = mass_per_cell(parent_of, variance, len(of_parents))
    pairs, pair = np.unique(above * len(of_parents) + parent_of, return_inverse=True)  # of a sum and a parent
    weighted, total = np.zeros((len(pairs), times.shape[1])), np.zeros((n_sums, times.shape[1]))
    np.add.at(weighted, pair, times * variance[:, None])
    factor = np.divide(of_parents - added, added**2, out=np.zeros(len(added)), where=added > 0)
    np.add.at(total, pairs // len(of_parents), weighted**2 * factor[pairs % len(of_parents), None])
    return total


def _known(level: int, plan: Plan) -> Floats | None:
    """The numbers of rows of a level's groups that follow from those published at the level or below; None if none."""
    below = [number for number in plan.published if number >= level]
    if not below:
        return None
    above = plan.groupings[min(below)].above(plan.groupings[level])
    return mass_per_cell(above, plan.published[min(below)], len(plan.groupings[level]))
