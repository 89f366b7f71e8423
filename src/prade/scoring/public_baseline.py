"""The public baseline: what the error would be if public rows were published in place of synthetic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.threads import several
from prade.data.recurring_groups import RecurringGroups
from prade.scoring.distances import Codes, Pair, mean_distance
from prade.scoring.score import CONTEST_PAIRS, Pairs, chosen_pairs

if TYPE_CHECKING:
    from prade.data.encoding import Coded
    from prade.data.groups import Grouping
    from prade.data.public import Public


@dataclass(frozen=True, eq=False)
class PublicBaseline:
    """A public table instead of estimates: each group has its own public rows where there are any, or else all rows."""

    public: Public
    recurring: RecurringGroups

    def weights(self, group: int) -> Floats:
        """Weights of the public rows for a group."""
        everybody = self.public.prior.weights
        mine = np.where(self.recurring.rows(self.public, group), everybody, 0.0)
        return mine if mine.any() else everybody

    def error(self, truth: Codes, group: int, pairs: Sequence[Pair]) -> float:
        """Mean distance of the pairs' two-way tables from those of a group's true rows."""
        return mean_distance(truth, self.public.prior, pairs, self.weights(group))


def public_errors(
    truth: tuple[Coded, Ints], public: Public, level: Grouping, pairs: Pairs = CONTEST_PAIRS, *, threads: int = 1
) -> Floats:
    """The error of the public baseline in each group of a level.

    `truth` are coded rows and the group of each (-1 for none). A group without true rows has NaN.
    """
    coded, number = truth
    baseline = PublicBaseline(public, RecurringGroups.of(public, level))
    names = chosen_pairs([name for name in coded.schema.coded if name in coded.codes], pairs)

    def error(group: int) -> float:
        mine = np.flatnonzero(number == group)
        rows = {name: code[mine] for name, code in coded.codes.items()}
        return baseline.error(rows, group, names) if len(mine) else float("nan")

    return np.array(list(several(error, range(len(level)), threads)))
