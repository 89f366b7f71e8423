"""Columns counted together: all one- and two-way tables of many rows, without a look at every pair of columns.

Columns whose codes occur in few combinations make a cluster (`prade.estimating.bundles`), and each row stores the
combination that it has. Rows are counted for each pair of clusters, a dozen pairs of columns at a time, in a table that
fits in the first-level cache; the tables of the columns are sums of its cells. The counts are the same whole numbers
that `kernels.tables` finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Ints, smallest_unsigned
from prade.estimating.bundles import choose_bundles
from prade.sampling.kernels import Clustering, clustered_tables
from prade.sampling.pair_tables import PairTables

LARGEST_CLUSTER = 96  # combinations: a table of 96 x 96 counts takes 36 KB
FEWEST_ROWS = 4096  # with fewer, to add up the clusters' tables takes longer than to look at every pair of columns


class Clusters:
    """The clusters of some rows, given by their codes [rows, columns], each column's from 0 on; all pairs count."""

    def __init__(self, tables: PairTables, codes: NDArray[Any]) -> None:
        self.tables = tables
        chosen = choose_bundles([codes[:, a] for a in range(codes.shape[1])], tables.sizes.tolist(), LARGEST_CLUSTER)
        sizes = [len(each.combinations) for each in chosen]
        self.codes = np.stack([each.code.astype(smallest_unsigned(max(sizes))) for each in chosen])
        numbers = [each.combinations + tables.start[each.parts] for each in chosen]
        self.clustering = Clustering(
            np.array(sizes),
            np.concatenate([[0], np.cumsum([len(each.parts) for each in chosen])]),
            np.concatenate([each.parts for each in chosen]),
            np.concatenate([[0], np.cumsum([each.size for each in numbers])]),
            np.concatenate([each.T.ravel() for each in numbers]),
        )

    def counts(self, rows: Ints, times: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many rows are in every cell of the tables, each of some rows `times` times."""
        number = np.zeros(self.tables.cells, np.int32)
        codes = np.stack([code[rows] for code in self.codes])
        clustered_tables(codes, times, self.clustering, self.tables.start, self.tables.sizes, self.tables.lines, number)
        return number
