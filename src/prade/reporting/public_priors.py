"""Each group's distribution according to the public table alone: its prior, derived from its parent's prior.

Every such prior gives the rows of one public group one factor: weights = table weights * factor of the row's group. So
the shares of any cells, in all groups at once, are a product of two matrices:

    shares [groups, cells] = factors [groups, public groups] @ masses [public groups, cells]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, mass_by_group, mass_per_cell
from prade.estimating.levels.group_prior import HANDED_ON, GroupPriors
from prade.estimating.levels.public_cells import Cells

if TYPE_CHECKING:
    from prade.estimating.levels.estimates import Estimates


class PublicPriors:
    """The priors of the groups of all levels, as factors of the public groups."""

    def __init__(self, estimates: Estimates) -> None:
        self._public = estimates.public
        self._weights = self._public.observed_weights
        self._of_groups = mass_per_cell(self._public.group, self._weights, len(self._public.groups))
        self.factors: list[Floats] = []  # by level, [groups, public groups]
        for priors in estimates.priors:
            above = self.factors[-1] if self.factors else np.ones((1, len(self._public.groups)))
            self.factors.append(self._level_factors(priors, above, estimates.settings.own))

    def weights(self, level: int, group: int) -> Floats:
        """The weights of the public rows in a group's prior."""
        return self.weighted(self.factors[level][group])

    def weighted(self, factors: Floats) -> Floats:
        """The weights of the public rows that factors of their groups lead to."""
        return np.asarray(self._weights * factors[self._public.group])

    def masses(self, asked: Sequence[Cells]) -> Floats:
        """The weight of the cells of some parts in every public group: [public groups, all cells]."""
        group, groups, weights = self._public.group, len(self._public.groups), self._weights
        return np.concatenate([mass_by_group(group, groups, *cells, weights) for cells in asked], axis=1)

    def _level_factors(self, priors: GroupPriors, above: Floats, own: float) -> Floats:
        of_groups = self._of_groups if self._public.added else priors.public.group_weights
        return _factors(priors, above, own, of_groups)


def _factors(priors: GroupPriors, above: Floats, own: float, of_groups: Floats) -> Floats:
    """The factors of a level's groups, given those of the level above; as `GroupPriors.weights`."""
    handed = above[priors.parent_of]
    if not priors.top:
        handed = HANDED_ON * handed + (1 - HANDED_ON)
    recurring = priors.recurring
    keys = np.where(recurring.loose[:, None], *(key[None] for key in reversed(recurring.keys)))
    mine = (keys == recurring.of_group[:, None]) & recurring.recurs[:, None]
    total = mine @ of_groups
    share = np.divide(own, total, out=np.zeros_like(total), where=total > 0)[:, None]
    return np.where(total[:, None] > 0, share * mine + (1 - own) * handed, handed)
