"""Benchmarking: the groups of a parent are made to add up to the parent's estimate.

A parent's shares are the mean of its groups' shares, weighted by rows. Its own estimate knows the sum of all its
groups' answers, whose noise is relatively small; the groups' smoothed answers do not meet it. With x_g the smoothed
shares of group g, P_g their variances and c_g = n_g / n its part of the parent's rows, the difference is handed down in
proportion to what the groups do not know (Pfeffermann and Tiller, 2006):

    x_g + c_g P_g / sum_h c_h^2 P_h  *  (x_parent - sum_h c_h x_h)

These are the most likely shares, given that they must add up. The variance that remains is P_g (1 - h_g), where
h_g = c_g^2 P_g / sum_h c_h^2 P_h; an only child is its parent: h = 1.
"""

from __future__ import annotations

import numpy as np

from prade.core.arrays import Floats, Ints


def added_up(values: Floats, parent_of: Ints, parents: int) -> Floats:
    """The sums of the groups' values [groups, ...] by parent."""
    sums = np.zeros((parents, *values.shape[1:]))
    np.add.at(sums, parent_of, values)
    return sums


def parts_of_parents(rows: Floats, parent_of: Ints, parents: int) -> Floats:
    """The part of its parent's rows that each group has, c_g."""
    return np.asarray(rows / np.maximum(added_up(rows, parent_of, parents), 1e-300)[parent_of])


def leverage(rows: Floats, variance: Floats, parent_of: Ints, parents: int) -> Floats:
    """h_g for every group and cell: the share of a group in the uncertainty of its parent's sum."""
    part = rows[:, None] ** 2 * np.maximum(variance, 1e-300)
    return np.asarray(part / np.maximum(added_up(part, parent_of, parents), 1e-300)[parent_of])


def benchmarked(
    shares: Floats, variance: Floats, rows: Floats, rows_variance: Floats, parent_of: Ints, wanted: Floats
) -> Floats:
    """The shares [groups, cells] changed so that they add up to the `wanted` shares of their parents.

    The numbers of rows [groups] have errors themselves, which change the sum of shares by U = sum_g Var(n_g) / n^2
    (x_g - x_parent)^2. What is missing counts by the part P / (P + U) that is not due to them, P = sum_g c_g^2 P_g.
    """
    parents = len(wanted)
    part = parts_of_parents(rows, parent_of, parents)[:, None]
    missing = wanted - added_up(part * shares, parent_of, parents)
    unsure = added_up(part**2 * variance, parent_of, parents)
    away = (shares - wanted[parent_of]) * part / np.maximum(rows, 1e-300)[:, None]
    by_rows = added_up(rows_variance[:, None] * away**2, parent_of, parents)
    missing *= unsure / np.maximum(unsure + by_rows, 1e-300)
    given = leverage(rows, variance, parent_of, parents) / np.maximum(part, 1e-300)
    return np.asarray(shares + given * missing[parent_of])
