"""How a support meets a workload in memory: collapsed rows, bundled parts, one fast evaluation.

Two exact savings, made once for a support and a workload and shared by every group that is estimated on them:

* *Collapse.* A row's multiplier depends on its cells alone, so rows that share all their cells move together: they
  are merged, their prior masses added, and the estimate is handed back in the prior's proportions.
* *Bundles.* Parts whose cells occur in few combinations are stored as one code (the combination). A pass over the rows
  then looks up one logit and adds to one mass a bundle instead of one a part. On census columns 36 one-way parts make
  about 8 bundles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, distinct_rows, mass_per_cell, smallest_unsigned
from prade.core.errors import EstimationError
from prade.data.joint import Joint
from prade.estimating import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from prade.queries.workload import Workload


LARGEST_BUNDLE = 2048  # cells; a bundle's logits and masses (8 bytes each) should stay in the first-level cache
SAMPLE_FOR_BUNDLING = 20_000
NEGLIGIBLE = 1e-200  # of a cell's mass: its inverse, and sums of such, must stay finite
MOST_CHUNKS = 16


@dataclass(frozen=True)
class Tilted:
    """The distribution q_j = p_j exp(sum_k lam_k[c_k(j)]) / Z, as far as a solver needs it."""

    masses: Floats  # q's mass in every cell of every part
    log_z: float
    top: float  # the largest exponent of a row: proves unreachable answers (see `Dual.refuted`)
    weights: Floats  # unnormalised, scaled by e^-shift of their tile
    shifts: Floats

    def normalised(self) -> Floats:
        """q on the collapsed rows."""
        scale = np.repeat(np.exp(self.shifts - self.shifts.max()), kernels.TILE)[: len(self.weights)]
        q = self.weights * scale
        return np.asarray(q / q.sum())


class Layout:
    """A support's rows seen through a workload.

    >>> from prade import Schema, Workload
    >>> from prade.data.prior import Prior
    >>> schema = Schema.from_mbi({"a": 2, "b": 3})
    >>> layout = Layout(Prior.uniform(schema), Workload.marginals(schema, [("a",)]))
    >>> layout.rows, layout.n_cells          # six rows, alike but for a
    (2, 2)
    >>> layout.evaluate(np.array([0.0, np.log(3.0)])).masses
    array([0.25, 0.75])
    """

    def __init__(self, prior: Joint, workload: Workload, *, threads: int = 1, collapse: bool = True) -> None:
        if len(prior) == 0:
            raise EstimationError("the prior has no rows: give a public table with at least one row")
        if threads < 1:
            raise EstimationError(f"threads is {threads}: give a whole number, 1 or more")
        if len(workload) == 0:
            raise EstimationError("the workload has no parts: name at least one marginal or query to estimate from")
        kernels.load()
        self.prior = prior
        self.workload = workload
        self.threads = threads
        cells = [part.cells(prior.schema, prior.codes) for part in workload]
        sizes = [part.n_cells for part in workload]
        self.part_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_cells = int(self.part_start[-1])
        self.rows = len(prior)
        self.base: Floats = prior.weights
        self.kind: Ints | None = None  # which collapsed row each row of the prior went into
        if collapse:
            first, kind = distinct_rows(cells)
            if len(first) < self.rows:
                cells = [c[first] for c in cells]
                self.rows, self.kind = len(first), kind
                self.base = mass_per_cell(kind, prior.weights, self.rows)
        self._bundle(cells, sizes)
        chunk = -(-self.rows // MOST_CHUNKS)
        self._chunk = max(64, -(-chunk // kernels.TILE)) * kernels.TILE

    def _bundle(self, cells: Sequence[NDArray[Any]], sizes: Sequence[int]) -> None:
        bundles = choose_bundles(cells, sizes)
        counts = [len(bundle.combinations) for bundle in bundles]
        self.start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.codes = np.stack([bundle.code.astype(smallest_unsigned(max(counts))) for bundle in bundles])
        self.bundles = [bundle.parts for bundle in bundles]
        # for each bundle cell, the cells of the parts that it lies in (a partial part may leave it out)
        flat, counted = [], [np.zeros(1, np.int64)]
        for bundle in bundles:
            inside = bundle.combinations < np.array([sizes[k] for k in bundle.parts])
            flat.append((bundle.combinations + self.part_start[bundle.parts])[inside])
            counted.append(inside.sum(axis=1))
        self.indptr = np.cumsum(np.concatenate(counted))
        self.cells = np.concatenate(flat)

    @cached_property
    def membership(self) -> csr_array:
        """0/1 matrix, bundle cells x part cells."""
        from scipy.sparse import csr_array

        shape = (int(self.start[-1]), self.n_cells)
        return csr_array((np.ones(len(self.cells)), self.cells, self.indptr), shape=shape)

    @cached_property
    def _membership_transposed(self) -> csr_array:
        return self.membership.T.tocsr()

    def cells_of(self, rows: Ints) -> csr_array:
        """0/1 matrix, some collapsed rows x part cells: the transposed W of the paper on the support."""
        return sum(self.membership[self.start[b] + code[rows].astype(np.int64)] for b, code in enumerate(self.codes))

    def masses_of(self, weights: Floats) -> Floats:
        """Mass of every part cell for any weights of the collapsed rows."""
        sizes = np.diff(self.start)
        counts = [mass_per_cell(code, weights, n) for code, n in zip(self.codes, sizes, strict=True)]
        return self.cell_masses(np.concatenate(counts))

    @cached_property
    def prior_masses(self) -> Floats:
        """The prior's mass in every cell."""
        return self.evaluate(np.zeros(self.n_cells)).masses

    @cached_property
    def occupied(self) -> NDArray[np.bool_]:
        """Which bundle cells have prior mass."""
        found = np.zeros(int(self.start[-1]), np.bool_)
        for b, code in enumerate(self.codes):
            found[self.start[b] + code[self.base > 0].astype(np.int64)] = True
        return found

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """Which part cells have prior mass: the others cannot be reached by any estimate on this support."""
        return self.cell_masses(self.occupied.astype(np.float64)) > 0.0

    def part(self, k: int) -> slice:
        """Where part k's cells are in a vector of all cells."""
        return slice(int(self.part_start[k]), int(self.part_start[k + 1]))

    def chunks(self) -> list[tuple[int, int]]:
        """Row ranges that threads may take; fixed by the number of rows, so that sums never depend on threads."""
        return [(a, min(a + self._chunk, self.rows)) for a in range(0, self.rows, self._chunk)]

    def over_chunks(self, task: Callable[[int, int, int], Any]) -> list[Any]:
        """Run task(chunk number, first row, last row) for all chunks."""
        chunks = self.chunks()
        if self.threads == 1 or len(chunks) == 1:
            return [task(i, a, b) for i, (a, b) in enumerate(chunks)]
        return list(self._pool.map(lambda i: task(i, *chunks[i]), range(len(chunks))))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="prade")

    def logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each bundle cell."""
        return np.asarray(self.membership @ multipliers)

    def row_logits(self, multipliers: Floats) -> Floats:
        """The sum of the multipliers of each collapsed row: W' lam."""
        logits = self.logits(multipliers)
        total = np.zeros(self.rows)
        for b, code in enumerate(self.codes):
            total += logits[self.start[b] : self.start[b + 1]][code]
        return total

    def reweighted(self, prior: Joint) -> Layout:
        """The same rows under another prior: one whose rows are those of this layout's prior, in the same order."""
        if len(prior) != len(self.prior):
            raise EstimationError(f"the layout is of {len(self.prior):,} rows, the other prior has {len(prior):,}")
        other = self._with_base(self.collapsed(prior.weights))
        other.prior = prior
        return other

    def collapsed(self, weights: Floats) -> Floats:
        """Weights of the collapsed rows from weights of the prior's rows."""
        return weights if self.kind is None else mass_per_cell(self.kind, weights, self.rows)

    def restricted(self, allowed: NDArray[np.bool_]) -> Layout:
        """The same layout with the prior's mass taken away from the other collapsed rows (not renormalised)."""
        return self._with_base(np.where(allowed, self.base, 0.0))

    def _with_base(self, base: Floats) -> Layout:
        other = copy(self)
        other.base = base
        for cached in ("prior_masses", "occupied", "reachable"):
            other.__dict__.pop(cached, None)
        return other

    def cell_masses(self, bundle_masses: Floats) -> Floats:
        """Masses of the parts' cells from masses of the bundles' cells."""
        return np.asarray(self._membership_transposed @ bundle_masses)

    def evaluate(self, multipliers: Floats) -> Tilted:
        """One pass over the rows: q for these multipliers with all its cell masses."""
        logits = self.logits(multipliers)
        weights = np.empty(self.rows)
        shifts = np.empty(-(-self.rows // kernels.TILE))
        hist = np.zeros((len(self.chunks()), len(logits)))

        def task(i: int, a: int, b: int) -> tuple[float, float]:
            return kernels.tilt(self.codes, self.start, logits, self.base, a, b, hist[i], weights, shifts)

        totals, tops = np.array(self.over_chunks(task)).T
        top = float(tops.max())
        scale = np.exp(tops - top)
        total = float(totals @ scale)
        masses = self.cell_masses(scale @ hist) / total
        return Tilted(masses, float(np.log(total)) + top, top, weights, shifts)

    def count(self, bundle: int, weights: Floats, hist: Floats) -> None:
        """Mass of each cell of a bundle; `hist` has a row a chunk."""
        hist[:] = 0.0
        code = self.codes[bundle]
        self.over_chunks(lambda i, a, b: kernels.count(code, weights, a, b, hist[i]))

    def scale_and_count(
        self, bundle: int, ratio: Floats, then: int, weights: Floats, hist: Floats, extra: Floats | None = None
    ) -> None:
        """weights *= ratio of their cell in a bundle (plus `extra`), and `count` for the bundle that comes next."""
        hist[:] = 0.0
        code, following = self.codes[bundle], self.codes[then]
        if extra is None:
            self.over_chunks(lambda i, a, b: kernels.scale_and_count(code, ratio, following, weights, a, b, hist[i]))
        else:
            self.over_chunks(
                lambda i, a, b: kernels.scale_add_and_count(code, ratio, extra, following, weights, a, b, hist[i])
            )

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
            rarity = self.logits(np.divide(1.0, masses, out=np.zeros(self.n_cells), where=masses > NEGLIGIBLE))
            rows, share = np.empty(sample + 1, np.int64), np.empty(sample + 1)
            taken = kernels.systematic(
                self.codes, self.start, rarity, tilted.weights, tilted.shifts, tilted.top, sample, offset, rows, share
            )
            rows, share = rows[:taken], share[:taken] / share[:taken].sum()
        moments = np.zeros((self.n_cells, self.n_cells))
        kernels.second_moments(self.codes, self.start, self.indptr, self.cells, rows, share, moments)
        mean = np.diag(moments).copy()
        covariance = moments + moments.T
        covariance[np.diag_indices(self.n_cells)] = mean
        covariance -= np.outer(mean, mean)
        unseen = np.flatnonzero((mean == 0) & (masses > 0))
        covariance[unseen, unseen] = masses[unseen]
        return covariance

    def expand(self, collapsed: Floats) -> Floats:
        """Weights of the prior's rows from weights of the collapsed rows: each kind shared out as in the prior."""
        if self.kind is None:
            return collapsed
        ratio = np.divide(collapsed, self.base, out=np.zeros(self.rows), where=self.base > NEGLIGIBLE)
        return np.asarray(self.prior.weights * ratio[self.kind])


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


def choose_bundles(cells: Sequence[NDArray[Any]], sizes: Sequence[int]) -> list[Bundle]:
    """Group parts greedily so that each group's cells occur in at most LARGEST_BUNDLE combinations.

    Each part joins the bundle that it multiplies least. Combinations are counted on a sample of rows first (most
    candidates fail there), and on all rows before a part is admitted.
    """
    sample = slice(None, None, max(1, len(cells[0]) // SAMPLE_FOR_BUNDLING))
    bundles: list[Bundle] = []
    for k in sorted(range(len(cells)), key=lambda k: -sizes[k]):
        size = sizes[k] + 1  # one more for "in no cell"
        seen = cells[k][sample]
        growths = []
        for index, bundle in enumerate(bundles):
            number = len(bundle.combinations)
            if number * size <= 64 * LARGEST_BUNDLE:
                occurring = np.count_nonzero(np.bincount(bundle.code[sample].astype(np.int64) * size + seen))
                if occurring <= LARGEST_BUNDLE:
                    growths.append((occurring / number, index))
        for _, index in sorted(growths):
            wider = bundles[index].with_part(k, cells[k], size)
            if len(wider.combinations) <= LARGEST_BUNDLE:
                bundles[index] = wider
                break
        else:
            bundles.append(Bundle(np.array([k]), cells[k], np.arange(size)[:, None]))
    return bundles
