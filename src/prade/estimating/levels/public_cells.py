"""The public table seen through the parts of a level: support, shares by group, how cells vary. Each is made once.

The table may have added rows (`prade.estimating.levels.added_rows`), which are then like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, mass_by_group
from prade.core.execution import single_threaded_blas
from prade.data.declare.groups import Grouping
from prade.data.public.public import Public
from prade.estimating.layout import Layout
from prade.estimating.levels.added_rows import with_extra, with_shown
from prade.estimating.levels.blocks import MOST_SMOOTHED, blocks_of
from prade.estimating.levels.thinning import WORTHWHILE, Support, own_rows, thinned
from prade.estimating.levels.unseen_cells import shown_cells
from prade.estimating.levels.variation import PublicVariation, VariationOfCells
from prade.planning.invariants import rules_of
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.release.release import Release

MOST_TABLES = 4  # with added rows that are kept: other noise may show other cells
RIDGE, TINY = 1e-6, 1e-12  # the cells of a part add up to 1: their covariance has no inverse without
Cells = tuple[NDArray[Any], int]  # each public row's cell of a part, and the number of the part's cells


@dataclass(frozen=True)
class OneWayCells:
    """How the one-way cells of all columns vary together, and the inverse of their covariance within groups."""

    variation: VariationOfCells
    inverse: Floats


class PublicCells:
    """What descents on one public table share: it depends on the parts they estimate from, not on any answer.

    `seed` chooses the sample of rows that covariances are estimated from.
    """

    def __init__(self, public: Public, seed: int = 0) -> None:
        self.public = public
        self.seed = seed
        self._whole = Support(public, None, len(public))
        self._supports: dict[Hashable, Support] = {}
        self._group_masses: dict[tuple[Part, ...], Floats] = {}
        self._variations: dict[tuple[Part, ...], list[tuple[slice, PublicVariation]]] = {}
        self._latest: tuple[tuple[Part, ...], slice, VariationOfCells] | None = None
        self._absent: dict[Part, Flags] = {}
        self._with_added: dict[Hashable, PublicCells] = {}

    def with_added(self, release: Release, settings: Settings) -> PublicCells:
        """The same table with the rows that the settings add to it for a release; itself, if none are."""
        plan = release.plan
        rules = rules_of(plan.invariants, plan.schema)
        if settings.extra:
            key = settings.extra, plan.invariants
            table = self._kept(key, lambda: with_extra(self.public, settings.extra, rules))
            return table.with_added(release, replace(settings, extra=0.0))
        shown = shown_cells(release, self.absent) if settings.unseen else ()
        if not shown:
            return self
        return self._kept((shown, plan.invariants), lambda: with_shown(self.public, shown, rules))

    def _kept(self, key: Hashable, make: Callable[[], Public]) -> PublicCells:
        """The table under a key, made unless it is there; the oldest is let go of where there are too many."""
        if (found := self._with_added.get(key)) is None:
            public = make()
            found = PublicCells(public, self.seed) if public is not self.public else self
            while len(self._with_added) >= MOST_TABLES:
                self._with_added.pop(next(iter(self._with_added)), None)
            self._with_added[key] = found
        return found

    def absent(self, part: Part) -> Flags:
        """Which cells of a part no row of the table is in."""
        if part not in self._absent:
            cells = part.cells(self.public.prior.schema, self.public.prior.codes)
            self._absent[part] = np.bincount(cells, minlength=part.n_cells)[: part.n_cells] == 0
        return self._absent[part]

    def support(self, settings: Settings, parts: tuple[Part, ...], groupings: Sequence[Grouping]) -> Support:
        """The rows that estimates of these parts, in groups of these levels, start from."""
        if not settings.thins or len(self.public) < WORTHWHILE * settings.support:
            return self._whole
        key = parts, settings.support, tuple(grouping.values for grouping in groupings)
        if key not in self._supports:
            own = own_rows(self.public, groupings)
            self._supports[key] = thinned(self.public, parts, settings.support, own)
        return self._supports[key]

    def group_masses(self, layout: Layout) -> Floats:
        """The cells of every public group as shares: [cells, public groups]."""
        parts, public = layout.workload.parts, self.public
        if parts not in self._group_masses:
            schema, codes, shape = public.prior.schema, public.prior.codes, (public.group, len(public.groups))
            each = [
                mass_by_group(*shape, part.cells(schema, codes), part.n_cells, public.prior.weights) for part in parts
            ]
            self._group_masses[parts] = np.concatenate(each, axis=1).T / public.group_weights
        return self._group_masses[parts]

    @cached_property
    def one_way(self) -> OneWayCells:
        """The one-way cells of all columns; of very many columns, the first ones."""
        prior, public = self.public.prior, self.public
        cells, sizes = [], list[int]()
        for name in prior.schema.coded:
            size = prior.schema[name].size
            if sum(sizes) + size <= MOST_SMOOTHED:
                cells.append(prior.codes[name].astype(np.int64))
                sizes.append(size)
        variation = VariationOfCells(cells, sizes, public.group, len(public.groups), self.seed, prior.weights)
        within = variation.variation.within
        with single_threaded_blas():
            inverse = np.linalg.inv(within + np.diag(RIDGE * np.diag(within) + TINY))
        return OneWayCells(variation, np.asarray(inverse, np.float64))

    def variations(self, layout: Layout, *, keep: bool) -> Iterable[tuple[slice, PublicVariation]]:
        """How the cells of each block vary; all are kept for the next descent, or each is let go of after its turn."""
        parts = layout.workload.parts
        each = ((block, self.variation(layout, block).variation) for block in blocks_of(parts))
        if not keep:
            return each
        if parts not in self._variations:
            self._variations[parts] = list(each)
        return self._variations[parts]

    def variation(self, layout: Layout, block: slice) -> VariationOfCells:
        """How the cells of one block vary together; the latest is kept, because levels often have the same parts."""
        parts = layout.workload.parts
        latest = self._latest  # of this thread's own: rehearsals on one table may run at the same time
        if latest is None or latest[:2] != (parts, block):
            latest = self._latest = parts, block, self._variation(layout, block)
        return latest[2]

    def _variation(self, layout: Layout, block: slice) -> VariationOfCells:
        cells, sizes = [], []
        prior, public = self.public.prior, self.public
        for k, part in enumerate(layout.workload):
            start, stop = max(block.start, layout.part(k).start), min(block.stop, layout.part(k).stop)
            if start < stop:
                cell = part.cells(prior.schema, prior.codes).astype(np.int64) - (start - layout.part(k).start)
                sizes.append(stop - start)
                cells.append(np.where((cell >= 0) & (cell < sizes[-1]), cell, sizes[-1]))
        return VariationOfCells(cells, sizes, public.group, len(public.groups), self.seed, prior.weights)
