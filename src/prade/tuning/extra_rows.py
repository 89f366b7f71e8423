"""Whether to add rows of no public person to the support: what the stand-ins tell about it, and what is tried.

A stand-in's rows are not among those that stay public, so a rehearsal shows what is out of reach of the support: its
true tables have rows in cells that no remaining public row is in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prade.data.declare.schema import Schema
from prade.queries.parts import Marginal
from prade.tuning.gain import Columns, StandInLevel

# Shares of the prior's weight on added rows, upwards and downwards: the error is flat around the best.
EXTRA = (0.003, 0.01, 0.03, 0.1), (0.01, 0.003, 0.001, 0.0)
EXTRA_OF_DOMAIN = 0.01  # the first share that is tried for the rest of a small domain
MOST_COUNTED = 2**18  # cells of the table of all columns, over all groups: a rehearsal of more takes minutes
LEAST_OUT_OF_REACH = 0.001  # of the rows, on average over the tables: below it, nothing is to be gained


def out_of_reach(levels: Sequence[StandInLevel], schema: Schema, parts: Sequence[Columns]) -> float:
    """The mean, over parts and stand-ins, of the share of rows in cells that no remaining public row is in."""
    found = []
    for level in levels:
        for columns in parts:
            part, stand_in = Marginal.of(schema, columns), level.stand_in
            seen = np.zeros(part.n_cells, np.bool_)
            seen[part.cells(schema, stand_in.public.prior.codes)] = True
            mine = ~np.isin(level.group, level.left_out)
            found.append(float(np.mean(~seen[part.cells(schema, stand_in.codes)[mine]])) if mine.any() else 0.0)
    return float(np.mean(found)) if found else 0.0
