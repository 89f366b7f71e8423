"""How much of a cell is an interaction: what the one-way shares of all columns do not say about it.

A cell of two columns moves with the shares of each of them, and beyond that if the columns come to depend on each other
otherwise. Shares move from place to place and from year to year, dependences less. Of the variance of a row's being in
the cell, the share that is left by a regression on its one-way cells is that of the interaction; it comes from public
rows alone. A cell of one column has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.execution import single_threaded_blas
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import OneWayCells


def share_of_interactions(
    estimates: Distributions, cells: Sequence[NDArray[Any]], sizes: Sequence[int], combined: Floats | None = None
) -> Floats:
    """The share of each cell's variance that is an interaction, from 0 to 1; `combined` as in `VariationOfCells`."""
    one_way: OneWayCells = estimates.cells.one_way
    within, variance = one_way.variation.further_within(cells, sizes, combined)
    with single_threaded_blas():
        explained = np.sum((within @ one_way.inverse) * within, axis=1)
    share = 1 - np.divide(explained, variance, out=np.ones(len(variance)), where=variance > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))
