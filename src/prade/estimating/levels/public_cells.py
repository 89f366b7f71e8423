"""The public table seen through the parts of a level: support, shares by group, how cells vary. Each is made once.

The table may have added rows (`prade.estimating.levels.added_rows`), which are then like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import Flags, Floats, Ints, mass_by_group, mass_per_cell
from prade.core.compiled import systematic
from prade.data.declare.groups import Grouping, RecurringGroups
from prade.data.public.joint import Prior
from prade.data.public.public import Public
from prade.estimating.layout import Layout
from prade.estimating.levels.added_rows import shown_cells, with_extra, with_shown
from prade.estimating.levels.variation import PublicVariation, VariationOfCells, blocks_of
from prade.planning.invariants import rules_of
from prade.planning.settings import Settings
from prade.queries.parts import Part
from prade.queries.workload import Workload
from prade.release.release import Release

MOST_TABLES = 4  # with added rows that are kept: other noise may show other cells
Cells = tuple[NDArray[Any], int]  # each public row's cell of a part, and the number of the part's cells


class PublicCells:
    """What descents on one public table share: it depends on the parts they estimate from, not on any answer."""

    def __init__(self, public: Public) -> None:
        self.public = public
        self._whole = Support(public, None, len(public))
        self._supports: dict[Hashable, Support] = {}
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
        if (table := self._with_added.get(key)) is None:
            public = make()
            table = PublicCells(public) if public is not self.public else self
            while len(self._with_added) >= MOST_TABLES:
                self._with_added.pop(next(iter(self._with_added)), None)
            self._with_added[key] = table
        return table

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
        return VariationOfCells(cells, sizes, public.group, len(public.groups), prior.weights)


# ---------------------------------------------------------------------- thinning of a large public table

# What a small group's answers can tell apart needs far fewer rows than a national table has. Row j is drawn with the
# chance h_j, at most 1, and stands for the rows that were not drawn, with the weight p_j / h_j:
#
#     h_j = n c_j,      c_j = p_j [ 0.6 + 0.3 sum_k 1 / m_k(j) / cells + 0.1 / P_g(j) / groups ]
#
# p_j is the row's share of the public table, m_k(j) that of its cell in part k, P_g(j) that of its public group. The
# first term keeps what is common; the second (leverage, see `prade.estimating.kernels`) keeps some hundred rows of
# every cell, however rare; the third some of every public group. A group that recurs in the plan starts mostly from
# its own public rows: of these at least n / 4 are kept, or all if there are fewer.
#
# The draw is systematic along the table, in which the rows of a place mostly stand together: the same rows and parts
# give the same support. Covariances, error bars and the public baseline still come from all rows.


BY_LEVERAGE, BY_GROUP = 0.3, 0.1  # shares of the three terms; the rest is by weight
OWN_ROWS = 0.25  # of n, for each group that recurs
OFFSET = 0.5  # of the systematic draw
WORTHWHILE = 1.5  # times the rows of the support: a table with fewer is taken whole, which is hardly slower


@dataclass(frozen=True, eq=False)
class Support:
    """The public rows that estimates start from: all, or those numbered `rows`, with weights that stand for all."""

    public: Public
    rows: Ints | None = None
    everybody: int = 0  # number of rows of the whole table
    _layouts: dict[tuple[Part, ...], Layout] = field(default_factory=dict)
    _group_sums: dict[tuple[Part, ...], Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.public)

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of these rows, from one value for each row of the whole table."""
        return values if self.rows is None else values[self.rows]

    def spread(self, values: Floats) -> Floats:
        """One value for each row of the whole table, from those of these rows; 0 for all others."""
        if self.rows is None:
            return values
        every = np.zeros(self.everybody)
        every[self.rows] = values
        return every

    def numbers(self, drawn: Ints) -> Ints:
        """The numbers in the whole table of some of these rows."""
        return drawn if self.rows is None else self.rows[drawn]

    def layout(self, parts: tuple[Part, ...]) -> Layout:
        """These rows as some parts see them; made once."""
        if parts not in self._layouts:
            self._layouts[parts] = Layout(self.public.prior, Workload(self.public.prior.schema, parts))
        return self._layouts[parts]

    def group_sums(self, parts: tuple[Part, ...]) -> Floats:
        """The sum of these rows' weights in the cells of every public group: [public groups, cells]; made once."""
        if parts not in self._group_sums:
            prior, of_group = self.public.prior, (self.public.group, len(self.public.groups))
            tables = [
                mass_by_group(*of_group, part.cells(prior.schema, prior.codes), part.n_cells, prior.weights)
                for part in parts
            ]
            self._group_sums[parts] = np.concatenate(tables, axis=1)
        return self._group_sums[parts]


def own_rows(public: Public, groupings: Sequence[Grouping]) -> Floats:
    """For each public row, how many rows the smallest recurring group has that it belongs to; infinity for none."""
    least, rows = np.full(len(public.groups), np.inf), np.bincount(public.group, minlength=len(public.groups))
    for grouping in groupings:
        if grouping.by:  # the whole table is not a group
            recurring = RecurringGroups.of(public.groups, grouping)
            for keys, mine in zip(recurring.keys, (~recurring.loose, recurring.loose), strict=True):
                recurs = np.isin(keys, recurring.of_group[mine & recurring.recurs])
                of_key = np.bincount(keys[recurs], rows[recurs], minlength=1)
                least[recurs] = np.minimum(least[recurs], of_key[keys[recurs]])
    return least[public.group]


def thinned(public: Public, parts: Sequence[Part], number: int, own: Floats | float = np.inf) -> Support:
    """A support of about `number` public rows, and more of those that are a recurring group's own (see `own_rows`).

    It is the whole table if that has few rows more.
    """
    if len(public) < WORTHWHILE * number:
        return Support(public, None, len(public))
    chance = _at_most_one(_chances(public, parts), number)
    chance = np.maximum(chance, np.minimum(OWN_ROWS * number / own, 1.0))
    certain = chance >= 1.0
    drawn = np.where(certain, 0.0, chance)
    wanted = float(np.cumsum(drawn)[-1])
    if certain.sum() + wanted > len(public) / WORTHWHILE:
        return Support(public, None, len(public))
    # as many as fit at a distance of 1 or more, so that no row is drawn twice
    some = systematic(drawn, int(wanted + 1e-6), OFFSET) if wanted >= 1 else np.empty(0, np.int64)
    rows = np.union1d(np.flatnonzero(certain), some)
    weights = public.prior.weights
    standing_for = weights / np.maximum(chance, 1e-300)
    # what is certain keeps its weight, so the others must have theirs together
    standing_for[some] *= np.cumsum(np.where(certain, 0.0, weights))[-1] / np.cumsum(standing_for[some])[-1]
    codes = {name: code[rows] for name, code in public.prior.codes.items()}
    prior = Prior(public.prior.schema, codes, standing_for[rows])
    return Support(Public(prior, public.groups, public.group[rows]), rows, len(public))


def _chances(public: Public, parts: Sequence[Part]) -> Floats:
    """c_j of every row, up to a factor."""
    prior, groups = public.prior, np.maximum(public.group_weights, 1e-300)
    leverage, cells = np.zeros(len(public)), 0
    for part in parts:
        cell = part.cells(prior.schema, prior.codes)
        mass = mass_per_cell(cell, prior.weights, part.n_cells + 1)[: part.n_cells]
        cells += int(np.count_nonzero(mass))
        leverage += np.append(np.divide(1.0, mass, out=np.zeros(part.n_cells), where=mass > 0), 0.0)[cell]
    by_weight = 1 - BY_LEVERAGE - BY_GROUP
    of_group = BY_GROUP / np.count_nonzero(public.group_weights) / groups
    return np.asarray(prior.weights * (by_weight + BY_LEVERAGE / max(cells, 1) * leverage + of_group[public.group]))


def _at_most_one(chance: Floats, number: int) -> Floats:
    """Chances in these proportions that add up to `number`: one that would exceed 1 is 1, the others share the rest."""
    certain, beyond = np.zeros(len(chance), np.bool_), np.ones(1, np.bool_)
    while beyond.any():
        left = number - int(certain.sum())
        scaled = chance * (left / np.cumsum(np.where(certain, 0.0, chance))[-1])
        beyond = ~certain & (scaled >= 1.0)
        certain |= beyond
    return np.where(certain, 1.0, scaled)
