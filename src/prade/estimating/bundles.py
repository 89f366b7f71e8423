"""Parts stored together: one code per row for the cells of several parts, and what follows from it.

Parts whose cells occur in few combinations make a bundle: each row stores the combination that it has. A pass over the
rows then looks up one logit and adds to one mass per bundle instead of per part. On census columns 36 one-way parts
make about 8 bundles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, smallest_unsigned
from prade.core.compiled import systematic
from prade.estimating import kernels
from prade.estimating.tilted import Tilted

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST_BUNDLE = 2048  # cells; a bundle's logits and masses (8 bytes each) should stay in the first-level cache
SAMPLE_FOR_BUNDLING = 20_000  # rows: ten for each combination of a full bundle
NEGLIGIBLE = 1e-200  # mass of a cell: inverses of larger masses, and their sums, are finite


@dataclass(frozen=True, eq=False)
class Bundles:
    """The bundles of a workload on some rows.

    Bundle b has the parts parts[b] and the bundle cells start[b] to start[b + 1]; codes[b] says in which of them each
    row is. Bundle cell g lies in the part cells cells[indptr[g] : indptr[g + 1]], of `n_cells` in all (a part that does
    not cover everything may leave it out).
    """

    parts: tuple[Ints, ...]
    codes: NDArray[Any]
    start: Ints
    indptr: Ints
    cells: Ints
    n_cells: int

    @classmethod
    def of(cls, cells: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Bundles:
        """From each row's cell in every part (its size for none)."""
        chosen = choose_bundles(cells, sizes)
        counts = [len(bundle.combinations) for bundle in chosen]
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        codes = np.stack([bundle.code.astype(smallest_unsigned(max(counts))) for bundle in chosen])
        part_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        flat, counted = [], [np.zeros(1, np.int64)]
        for bundle in chosen:
            inside = bundle.combinations < np.array([sizes[k] for k in bundle.parts])
            flat.append((bundle.combinations + part_start[bundle.parts])[inside])
            counted.append(inside.sum(axis=1))
        parts = tuple(bundle.parts for bundle in chosen)
        indptr = np.cumsum(np.concatenate(counted))
        return cls(parts, codes, start, indptr, np.concatenate(flat), int(part_start[-1]))

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def sizes(self) -> Ints:
        """Number of cells of each bundle."""
        return np.diff(self.start)

    @property
    def widest(self) -> int:
        """Number of cells of the largest bundle."""
        return int(self.sizes.max())

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Which bundle cells have rows."""
        counts = [np.bincount(code, minlength=n) for code, n in zip(self.codes, self.sizes, strict=True)]
        return np.concatenate(counts) > 0

    @cached_property
    def membership(self) -> csr_array:
        """0/1 matrix, bundle cells x part cells."""
        from scipy.sparse import csr_array

        shape = (int(self.start[-1]), self.n_cells)
        return csr_array((np.ones(len(self.cells)), self.cells, self.indptr), shape=shape)

    def only(self, within: Ints) -> Bundles:
        """The same rows with some part cells alone, numbered anew; no row with mass may be in any other cell."""
        if len(within) == self.n_cells:
            return self
        number = np.zeros(self.n_cells, np.int64)  # the other cells: any number will do
        number[within] = np.arange(len(within))
        return replace(self, cells=number[self.cells], n_cells=len(within))

    def of_rows(self, rows: Ints) -> Bundles:
        """The same cells with some of the rows alone."""
        return replace(self, codes=np.ascontiguousarray(self.codes[:, rows]))

    def cells_of(self, rows: Ints) -> csr_array:
        """0/1 matrix, some rows x part cells: the transposed W of the paper on the support."""
        return sum(self.membership[self.start[b] + code[rows].astype(np.int64)] for b, code in enumerate(self.codes))

    def cell_masses(self, bundle_masses: Floats) -> Floats:
        """Masses of the parts' cells from masses of the bundles' cells."""
        masses = np.zeros(self.n_cells)
        kernels.cell_masses(self.indptr, self.cells, bundle_masses, masses)
        return masses

    def masses_of(self, weights: Floats) -> Floats:
        """Mass of every part cell for any weights of the rows."""
        counts = np.zeros(int(self.start[-1]))
        for b, code in enumerate(self.codes):
            kernels.count(code, weights, 0, self.rows, counts[self.start[b] : self.start[b + 1]])
        return self.cell_masses(counts)

    def logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each bundle cell."""
        logits = np.empty(len(self.indptr) - 1)
        kernels.bundle_logits(self.indptr, self.cells, multipliers, logits)
        return logits

    def row_logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each row: W' lam."""
        logits = self.logits(multipliers)
        total = np.zeros(self.rows)
        for b, code in enumerate(self.codes):
            total += logits[self.start[b] : self.start[b + 1]][code]
        return total

    def covariance(self, tilted: Tilted, sample: int, offset: float) -> Floats:
        """Covariance of the cells' indicators under q, from about `sample` rows.

        Row j is drawn in proportion to q_j sum_k 1 / m_k(j), m_k(j) being the mass of its cell in part k, and weighs
        the inverse of that sum: every cell is seen about as often as any other, so the estimate is as good for rare
        cells as for common ones (these are upper bounds on leverage scores). Cells that always or never go together in
        the support do so in the sample. With a sample as large as the support the matrix is exact.
        """
        masses = tilted.masses
        if sample >= self.rows:
            rows = np.arange(self.rows)
            share = tilted.normalised()
        else:
            rows, share = self.sampled(tilted, sample, offset)
        moments = np.zeros((self.n_cells, self.n_cells))
        kernels.second_moments(self.codes, self.start, self.indptr, self.cells, rows, share, moments)
        mean = np.diag(moments).copy()
        covariance = moments + moments.T
        covariance.flat[:: self.n_cells + 1] = mean
        covariance -= mean[:, None] * mean
        unseen = np.flatnonzero((mean == 0) & (masses > 0))
        covariance[unseen, unseen] = masses[unseen]
        return covariance

    def sampled(self, tilted: Tilted, sample: int, offset: float) -> tuple[Ints, Floats]:
        """A systematic sample of about `sample` rows, as `covariance` takes it: distinct rows and their weights."""
        masses = tilted.masses
        scores = self.logits(np.divide(1.0, masses, out=np.zeros(self.n_cells), where=masses > NEGLIGIBLE))
        chance, scale = np.empty(self.rows), np.empty(len(tilted.shifts))
        kernels.chances(self.codes, self.start, scores, tilted.weights, tilted.shifts, tilted.top, scale, chance)
        taken = systematic(chance, sample, offset) if chance.any() else np.empty(0, np.int64)
        rows, number = np.unique(taken, return_counts=True)
        share = number * tilted.weights[rows] * scale[rows // kernels.TILE] / chance[rows]
        return rows, share / share.sum()


@dataclass(frozen=True)
class Bundle:
    """Parts stored together: one code per row for the combination of their cells."""

    parts: Ints
    code: NDArray[Any]
    combinations: Ints  # combinations x parts: the cell in each part

    def with_part(self, part: int, cells: NDArray[Any], size: int) -> Bundle:
        """This bundle and one more part: only the combinations that occur get a code."""
        pairs = self.code.astype(np.int64) * size + cells
        present = np.flatnonzero(np.bincount(pairs, minlength=len(self.combinations) * size))
        rank = np.empty(len(self.combinations) * size, np.int64)
        rank[present] = np.arange(len(present))
        combinations = np.column_stack([self.combinations[present // size], present % size])
        return Bundle(np.append(self.parts, part), rank[pairs], combinations)


def choose_bundles(cells: Sequence[NDArray[Any]], sizes: Sequence[int], largest: int | None = None) -> list[Bundle]:
    """Put parts together, greedily, so that the cells of a bundle occur in at most `largest` combinations.

    Each part joins the bundle whose combinations it multiplies least. They are counted on a sample of rows first, where
    most candidates fail, and on all rows before a part joins.
    """
    largest = LARGEST_BUNDLE if largest is None else largest
    sample = slice(None, None, max(1, len(cells[0]) // SAMPLE_FOR_BUNDLING))
    bundles: list[Bundle] = []
    for k in sorted(range(len(cells)), key=lambda k: -sizes[k]):
        size = sizes[k] + 1  # one more for "in no cell"
        seen = cells[k][sample]
        growths = []
        for index, bundle in enumerate(bundles):
            number = len(bundle.combinations)
            if number * size <= 64 * largest:
                occurring = np.count_nonzero(np.bincount(bundle.code[sample].astype(np.int64) * size + seen))
                if occurring <= largest:
                    growths.append((occurring / number, index))
        for _, index in sorted(growths):
            wider = bundles[index].with_part(k, cells[k], size)
            if len(wider.combinations) <= largest:
                bundles[index] = wider
                break
        else:
            bundles.append(Bundle(np.array([k]), cells[k], np.arange(size)[:, None]))
    return bundles
