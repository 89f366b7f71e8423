"""Against the truth: the contest's score of every group, and how far prior and synthetic rows are from the true ones.

The paper's figure: for each group the mean, over 50 pairs of columns drawn at random, of the L1 distance (0 to 2)
between the 2-way marginals of the true rows and those of (a) the prior, (b) the synthetic rows.

All of it is made of true rows. It is not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.codec import Coded, encode
from prade.distances import pair_errors
from prade.errors import DataError
from prade.evaluate import CONTEST_PAIRS, CONTEST_SEED, Score, chosen_pairs, score
from prade.levels import several
from prade.report_facts import Floats, Ints, PublicPriors
from prade.tables import read_table

if TYPE_CHECKING:
    from prade.estimates import Estimates
    from prade.plan import Plan
    from prade.progress import Progress


@dataclass(frozen=True, eq=False)
class Truth:
    """What the truth says of the last level's groups: the score, and the two sides of the paper's figure."""

    score: Score
    prior: Floats  # mean distance of each group's prior; NaN where the group has no true rows

    @property
    def synthetic(self) -> Floats:
        """Mean distance of each group's synthetic rows, whatever their number."""
        return np.asarray(self.score.detail.mean(axis=1))


def coded_rows(plan: Plan, table: Any) -> tuple[Coded, Ints]:
    """The rows of a table or file in the plan's codes, and the last level's group of each, -1 for none."""
    found = read_table(table, guess=False)
    number = plan.groups.keyed(found.column_names, plan.groupings[-1].number).numbers(found)
    return encode(plan.schema, found), number


def truth_of(
    estimates: Estimates,
    truth: Any,
    synthetic: Coded,
    group: Ints,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Truth:
    """Score the synthetic rows, and every group's prior, against true rows."""
    plan = estimates.plan
    coded, number = coded_rows(plan, truth)
    if not (number >= 0).any():
        raise DataError("no row of the truth is in a group of the release; give the table that was measured")
    pairs = chosen_pairs(plan.schema.coded, CONTEST_PAIRS, CONTEST_SEED)
    by = plan.groupings[-1].by
    scored = score((coded, number), (synthetic, group), plan.schema, by, groups=plan.groups, pairs=pairs)
    priors, public = PublicPriors(estimates), estimates.public.prior
    last = len(estimates.levels) - 1
    everyone = np.zeros(len(public), np.int64)

    def distance(g: int) -> float:
        mine = np.flatnonzero(number == g)
        if not len(mine):
            return float("nan")
        rows = {name: code[mine] for name, code in coded.codes.items()}
        weights = priors.weights(last, g)
        one = np.zeros(len(mine), np.int64)
        return float(
            pair_errors(plan.schema, rows, one, public.codes, everyone, 1, pairs, weights=weights, threads=1).mean()
        )

    found = []
    for each in several(distance, len(estimates.totals), threads):
        found.append(each)
        if progress is not None:
            progress("comparing with the truth", len(found), len(estimates.totals))
    return Truth(scored, np.array(found))
