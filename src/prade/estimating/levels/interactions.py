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
from prade.core.threads import single_threaded_blas
from prade.estimating.levels.distributions import Distributions
from prade.estimating.levels.public_cells import OneWayCells


def share_of_interactions(
    estimates: Distributions, cells: Sequence[NDArray[Any]], sizes: Sequence[int], combined: Floats | None = None
) -> Floats:
    """The share of each cell's variance that is an interaction, from 0 to 1; `combined` as in `VariationOfCells`."""
    one_way: OneWayCells = estimates.cells.one_way
    further = one_way.variation.further(cells, sizes, combined)
    with single_threaded_blas():
        explained = np.sum((further.within @ one_way.inverse) * further.within, axis=1)
    seen = further.within_variance > 0
    share = 1 - np.divide(explained, further.within_variance, out=np.ones(len(seen)), where=seen)
    return np.asarray(np.clip(share, 0.0, 1.0))
