"""A support and a workload in memory: collapsed rows, bundled parts, one fast evaluation.

Rows that share all their cells move together: they are merged, their prior masses added, and the estimate's mass is
divided among them as in the prior. Parts whose cells occur in few combinations are stored as one code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from operator import is_
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Floats, mass_per_cell
from prade.core.errors import EstimationError
from prade.data.public.joint import Joint, distinct_rows
from prade.estimating import kernels
from prade.estimating.block_step import load
from prade.estimating.kernels import LARGEST_BUNDLE, NEGLIGIBLE, Bundles, Tilted, normalised

if TYPE_CHECKING:
    from prade.queries.workload import Workload

MOST_CHUNKS = 16  # enough for the cores of most machines; each has a table of all cells of its own
FEWEST_TILES = 64  # per chunk: handing out smaller ones would take longer than the work


class Layout:
    """A support's rows seen through a workload.

    >>> from prade import Schema, Workload
    >>> from prade.data.public.joint import Prior
    >>> schema = Schema.from_mbi({"a": 2, "b": 3})
    >>> layout = Layout(Prior.uniform(schema), Workload.marginals(schema, [("a",)]))
    >>> layout.rows, layout.n_cells          # six rows, of two kinds: only a counts
    (2, 2)
    >>> layout.evaluate(np.array([0.0, np.log(3.0)])).masses
    array([0.25, 0.75])
    """

    def __init__(
        self, prior: Joint, workload: Workload, *, collapse: bool = True, largest_bundle: int = LARGEST_BUNDLE
    ) -> None:
        if len(prior) == 0 or len(workload) == 0:
            raise EstimationError("the prior has no rows, or the workload no parts: give at least one of both")
        load()
        cells = [part.cells(prior.schema, prior.codes) for part in workload]
        kind, base = None, prior.weights
        if collapse:
            first, kind_of_row = distinct_rows(cells)
            if len(first) < len(prior):
                cells, kind = [c[first] for c in cells], kind_of_row
                base = mass_per_cell(kind, prior.weights, len(first))
        self.prior = prior
        self.base = base  # the prior's mass in each collapsed row
        self.workload = workload
        self.kind = kind  # which collapsed row each row of the prior went into; None where none was merged
        self.bundles = Bundles.of(cells, [part.n_cells for part in workload], largest_bundle)
        self.chunks = chunks_of(self.rows)
        self._starts, self._samples = Latest[Floats, Tilted](np.array_equal), Latest[Tilted, Layout](is_)
        self._evaluated: tuple[Floats, Tilted] | None = None  # what was evaluated last: it is often asked for again
        self.part_start = np.concatenate([[0], np.cumsum([part.n_cells for part in workload])]).astype(np.int64)

    def _changed(self, **changes: Any) -> Layout:
        """The same layout with other rows or masses, of which nothing has been evaluated."""
        other = Layout.__new__(Layout)
        other.__dict__ = {**self.__getstate__(), **changes}
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be worked out again from the masses."""
        kept = {name: value for name, value in self.__dict__.items() if name not in _OF_MASSES}
        return {**kept, "_evaluated": None}

    @property
    def rows(self) -> int:
        """Number of collapsed rows."""
        return self.bundles.rows

    @property
    def n_cells(self) -> int:
        """Number of cells of all parts."""
        return self.bundles.n_cells

    def masses_of(self, weights: Floats) -> Floats:
        """Mass of every part cell for any weights of the collapsed rows."""
        return self.bundles.masses_of(weights)

    @cached_property
    def start(self) -> Tilted:
        """The prior as solvers see it, which groups that have the same one share."""
        return self._starts.of(self.base, lambda: self.evaluate(np.zeros(self.n_cells)))

    @cached_property
    def few(self) -> Layout | None:
        """Few of the rows, which stand for all, with the same cells: where a climb begins; None where all are few."""
        return self._samples.of(self.start, self._sample) if self.rows >= ONE_IN * FEWEST else None

    def _sample(self) -> Layout:
        rows, weights = self.bundles.sampled(self.start, self.rows // ONE_IN, offset=0.5)
        bundles = replace(self.bundles, codes=np.ascontiguousarray(self.bundles.codes[:, rows]))
        return self._changed(
            base=weights,
            kind=None,
            bundles=bundles,
            chunks=chunks_of(len(rows)),
            _starts=Latest(np.array_equal),
            _samples=Latest(is_),
        )

    @cached_property
    def occupied(self) -> NDArray[np.bool_]:
        """Which bundle cells have prior mass."""
        if (self.base > 0).all():
            return self.bundles.present
        occupied = np.zeros(int(self.bundles.start[-1]), np.bool_)
        for start, code in zip(self.bundles.start, self.bundles.codes, strict=False):
            occupied[start + code[self.base > 0].astype(np.int64)] = True
        return occupied

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """Which part cells have prior mass: the others cannot be reached by any estimate on this support."""
        return self.bundles.cell_masses(self.occupied.astype(np.float64)) > 0.0

    def part(self, k: int) -> slice:
        """Where part k's cells are in a vector of all cells."""
        return slice(int(self.part_start[k]), int(self.part_start[k + 1]))

    def reweighted(self, prior: Joint) -> Layout:
        """The same rows under another prior: one whose rows are those of this layout's prior, in the same order."""
        if len(prior) != len(self.prior):
            raise EstimationError(f"the layout is of {len(self.prior):,} rows, the other prior has {len(prior):,}")
        return self._changed(prior=prior, base=self.collapsed(prior.weights))

    def collapsed(self, weights: Floats) -> Floats:
        """Weights of the collapsed rows from weights of the prior's rows."""
        return weights if self.kind is None else mass_per_cell(self.kind, weights, self.rows)

    def restricted(self, allowed: NDArray[np.bool_]) -> Layout:
        """The same layout with the prior's mass taken away from the other collapsed rows (not renormalised)."""
        return self._changed(base=np.where(allowed, self.base, 0.0))

    def evaluate(self, multipliers: Floats) -> Tilted:
        """One pass over the rows: q for these multipliers with all its cell masses."""
        latest = self._evaluated
        if latest is not None and np.array_equal(latest[0], multipliers):
            return latest[1]
        hist = np.zeros((len(self.chunks), int(self.bundles.start[-1])))
        totals, tops, weights, shifts = self._pass(multipliers, hist)
        top = float(tops.max())
        scale = np.exp(tops - top)
        total = float(totals @ scale)
        masses = self.bundles.cell_masses(scale @ hist) / total
        tilted = Tilted(masses, float(np.log(total)) + top, top, weights, shifts)
        self._evaluated = multipliers.copy(), tilted
        return tilted

    def weights(self, multipliers: Floats) -> Floats:
        """q on the prior's rows: as `evaluate` and `expand`, without the masses of the cells, half of a pass."""
        _, _, weights, shifts = self._pass(multipliers, np.zeros((len(self.chunks), 0)))
        return self.expand(normalised(weights, shifts))

    def _pass(self, multipliers: Floats, hist: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """For each chunk the sum of the weights and the largest logit; the weights, and the shifts of their tiles.

        `hist` has a row per chunk; it is filled with the masses of the bundles' cells, or has no columns.
        """
        bundles, logits = self.bundles, self.bundles.logits(multipliers)
        weights = np.empty(self.rows)
        shifts = np.empty(-(-self.rows // kernels.TILE))
        each = [
            kernels.tilt(bundles.codes, bundles.start, logits, self.base, a, b, hist[i], weights, shifts)
            for i, a, b in self.chunks
        ]
        totals, tops = np.array(each).T
        return totals, tops, weights, shifts

    def count(self, bundle: int, weights: Floats, hist: Floats) -> None:
        """Mass of each cell of a bundle; `hist` has a row per chunk."""
        hist[:] = 0.0
        code = self.bundles.codes[bundle]
        for i, a, b in self.chunks:
            kernels.count(code, weights, a, b, hist[i])

    def scale_and_count(
        self, bundle: int, ratio: Floats, then: int, weights: Floats, hist: Floats, extra: Floats | None = None
    ) -> None:
        """weights *= ratio of their cell in a bundle (plus `extra`), and `count` for the bundle that comes next."""
        hist[:] = 0.0
        code, following = self.bundles.codes[bundle], self.bundles.codes[then]
        for i, a, b in self.chunks:
            if extra is None:
                kernels.scale_and_count(code, ratio, following, weights, a, b, hist[i])
            else:
                kernels.scale_add_and_count(code, ratio, extra, following, weights, a, b, hist[i])

    def expand(self, collapsed: Floats) -> Floats:
        """Weights of the prior's rows from weights of the collapsed rows, divided among them as in the prior."""
        if self.kind is None:
            return collapsed
        weights = np.empty(len(self.kind))
        kernels.divided(collapsed, self.base, self.kind, self.prior.weights, NEGLIGIBLE, weights)
        return weights


_OF_MASSES = ("start", "few", "occupied", "reachable")  # what is worked out once from a layout's masses


def chunks_of(rows: int) -> list[tuple[int, int, int]]:
    """Numbered ranges of rows whose sums are added up in order; the number of rows alone decides them."""
    tiles = -(-rows // (MOST_CHUNKS * kernels.TILE))
    length = max(FEWEST_TILES, tiles) * kernels.TILE
    return [(i, first, min(first + length, rows)) for i, first in enumerate(range(0, rows, length))]


# ---------------------------------------------------------------------- what groups share

# Groups with the same prior start from the same masses of cells and from the same few rows, which are a systematic
# sample (`Bundles.sampled`). A climb on these ends close to the optimum on all rows and takes a fraction of the time.


Key = TypeVar("Key")
Value = TypeVar("Value")

ONE_IN = 4  # rows: with one in eight, the climb on all rows takes one pass more
FEWEST = 2**15  # rows of a sample
MOST_KEPT = 4  # starts, and samples: groups come parent by parent, in a few threads


class Latest(Generic[Key, Value]):
    """The values that were used last, by keys that `same` compares."""

    def __init__(self, same: Callable[[Key, Key], bool]) -> None:
        self._same = same
        self._lock = Lock()
        self._kept: list[tuple[Key, Value]] = []

    def __reduce__(self) -> tuple[type[Latest[Any, Any]], tuple[Any]]:
        return Latest, (self._same,)  # another process works them out again

    def of(self, key: Key, work_out: Callable[[], Value]) -> Value:
        """The value of a key: `work_out` is called if it is not among those kept."""
        with self._lock:
            for known, value in reversed(self._kept):
                if self._same(known, key):
                    return value
        value = work_out()
        with self._lock:
            self._kept = [*self._kept[1 - MOST_KEPT :], (key, value)]
        return value
