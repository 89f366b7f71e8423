"""Coded rows in an order in which neighbours are alike: made once, then used for all distributions on these rows.

A row's *rank* is its place in the order. Samples are drawn and improved as ranks, because what lies close together in
the order also lies close together in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.compiled import marked
from prade.data.joint import Codes
from prade.sampling import kernels
from prade.sampling.clusters import FEWEST_ROWS, Clusters
from prade.sampling.draw import checked_order, checked_weights, ordering
from prade.sampling.pair_tables import Pairs, PairTables

if TYPE_CHECKING:
    from prade.data.schema import Schema


class SortedRows:
    """Rows, their order, and the one- and two-way tables that samples of them are to meet, some of them `first`."""

    def __init__(
        self,
        codes: Codes,
        schema: Schema,
        *,
        pairs: Pairs = "all",
        order: Ints | None = None,
        first: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.tables = PairTables(schema, codes, pairs, first)
        found = ordering(codes, schema, pairs=pairs) if order is None else checked_order(order, self.tables.rows)
        self.order: NDArray[Any] = found.astype(np.uint32 if len(found) <= 2**32 else np.uint64)
        self._clusters: Clusters | None = None

    def __len__(self) -> int:
        return len(self.order)

    def edges(self, weights: NDArray[Any]) -> Floats:
        """The cumulative sum of the weights along the order."""
        edges = np.empty(len(self.order))
        kernels.running_sum(checked_weights(weights), self.order, edges)
        return edges

    def ranks_of(self, rows: Ints) -> Ints:
        """The ranks of some rows."""
        rank = np.empty(len(self.order), np.int64)
        rank[self.order] = np.arange(len(self.order))
        return rank[rows]

    def coded(self, ranks: Ints) -> NDArray[Any]:
        """The codes of the rows with these ranks, as the tables number them: [rows, columns]."""
        coded = np.empty((len(ranks), len(self.tables.names)), self.tables.number_type)
        kernels.numbered(self._codes, ranks, self.tables.start.astype(coded.dtype), coded)
        return coded

    def cluster(self) -> None:
        """Have columns counted together from now on: worth the while where many large pools are counted."""
        if self.tables.all_pairs:
            self._clusters = Clusters(self.tables, self._codes)

    def counts(self, ranks: Ints, coded: NDArray[Any], times: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many rows are in every cell, each of those with some ranks `times` times; `coded` are their codes."""
        if self._clusters is None or len(ranks) < FEWEST_ROWS:
            return self.tables.counts(coded, times)
        return self._clusters.counts(ranks, times)

    @cached_property
    def _codes(self) -> NDArray[Any]:
        """The codes of all rows along the order, a row's codes side by side, in the narrowest type."""
        return self.tables.side_by_side(self.order)


def drawn_ranks(edges: Floats, n: int, generator: np.random.Generator) -> Ints:
    """A systematic sample of n ranks, in rising order, from cumulative weights."""
    return marked(edges, n, generator.random())
