"""The update function f of Definition 3.1: give the cells of one part the masses that its answer asks for.

For a row in cell c of the part, with current mass s_c, and with the projected answer y_c as the goal:

    q_j = p_j * y_c / s_c                       where the cell has mass         (cases 1 and 3)
    q_j = y_c / (number of rows in the cell)    where it has none, and may have (cases 2 and 4)

The rows in no cell of the part are one more cell, with the mass that is left. By Theorem 1, no other distribution with
these masses is nearer to p in KL divergence.
"""

from __future__ import annotations

import numpy as np

from prade.core.arrays import Flags, Floats


def update(masses: Floats, goal: Floats, possible: Flags, rows: Floats) -> tuple[Floats, Floats]:
    """Scale and addition per cell: the weight of a row in cell c becomes weight * scale[c] + added[c].

    `possible` marks the cells that a row of the domain can be in, and `rows` has their numbers of rows.

    >>> update(np.array([0.25, 0.75, 0.0]), np.array([0.5, 0.3, 0.2]), np.array([True, True, True]), np.full(3, 2.0))
    (array([2. , 0.4, 0. ]), array([0. , 0. , 0.1]))
    """
    held = masses > 0
    scale = np.divide(goal, masses, out=np.zeros(len(goal)), where=held)
    added = np.where(held | ~possible, 0.0, goal / np.maximum(rows, 1.0))
    return scale, added
