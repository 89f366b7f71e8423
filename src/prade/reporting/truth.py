"""Against the truth: the contest's score of every group, and how far prior and synthetic rows are from the true ones.

The paper's figure: for each group the mean, over 50 pairs of columns drawn at random, of the L1 distance (0 to 2)
between the 2-way marginals of the true rows and those of (a) the prior, (b) the synthetic rows.

All of it is made of true rows. It is not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError
from prade.core.threads import several
from prade.data.encode import Coded, encode
from prade.data.tables import read_table
from prade.reporting.facts import PublicPriors
from prade.scoring.distances import mean_distance
from prade.scoring.score import CONTEST_PAIRS, CONTEST_SEED, Score, chosen_pairs, score

if TYPE_CHECKING:
    from prade.core.progress import Progress
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan


@dataclass(frozen=True, eq=False)
class Truth:
    """What the truth says of the last level's groups: the score, and the two sides of the paper's figure."""

    score: Score
    prior: Floats  # mean distance of each group's prior; NaN where the group has no true rows
    rows: tuple[Coded, Ints]  # those in a group, and which

    @property
    def synthetic(self) -> Floats:
        """Mean distance of each group's synthetic rows, whatever their number."""
        return np.asarray(self.score.detail.mean(axis=1))

    @property
    def means(self) -> tuple[float, float]:
        """Over the groups that have true rows: of the prior, of the synthetic rows."""
        known = np.isfinite(self.prior)
        return float(self.prior[known].mean()), float(self.synthetic[known].mean())


def coded_rows(plan: Plan, table: Any) -> tuple[Coded, Ints]:
    """The rows of a table or file in the plan's codes, and the last level's group of each, -1 for none."""
    found = read_table(table, guess=False)
    number = plan.groups.keyed(found.column_names, plan.groupings[-1].number).numbers(found)
    return encode(plan.schema, found), number


def true_rows(plan: Plan, source: Any) -> tuple[Coded, Ints]:
    """The same of a table, of a file, of a list of files, or of all files that a glob fits.

    Every file is coded by itself, so that a column may be numbers in one and texts in the next, as it may be measured.
    """
    files = _files(source)
    if files is None:
        return coded_rows(plan, source)
    each = [coded_rows(plan, file) for file in files]
    codes = {name: np.concatenate([coded.codes[name] for coded, _ in each]) for name in each[0][0].codes}
    return Coded(plan.schema, codes), np.concatenate([number for _, number in each])


def _files(source: Any) -> list[Path] | None:
    """The files that are meant; None where a table is given."""
    if isinstance(source, (list, tuple)) and source and all(isinstance(each, (str, PathLike)) for each in source):
        return [file for each in source for file in _files(each) or ()]
    if not isinstance(source, (str, PathLike)):
        return None
    if "://" in str(source):
        kind = str(source).partition("://")[0]
        raise DataError(
            f"the truth is read from files only, and {kind}://... is an address: give a parquet or CSV file of the "
            "rows that were measured, or a glob of such files"
        )
    place = Path(source)
    if place.exists() or not any(mark in str(place) for mark in "*?["):
        return [place]
    root = Path(place.anchor)
    found = sorted(root.glob(str(place.relative_to(place.anchor))))
    if not found:
        raise DataError(f"no file fits {place}; check the path of the truth")
    return found


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
    coded, number = true_rows(plan, truth)
    if not (number >= 0).any():
        raise DataError("no row of the truth is in a group of the release; give the table that was measured")
    pairs = chosen_pairs(plan.schema.coded, CONTEST_PAIRS, CONTEST_SEED)
    by = plan.groupings[-1].by
    scored = score((coded, number), (synthetic, group), plan.schema, by, groups=plan.groups, pairs=pairs)
    priors, public = PublicPriors(estimates), estimates.public.prior
    last = len(estimates.levels) - 1

    def distance(g: int) -> float:
        mine = np.flatnonzero(number == g)
        if not len(mine):
            return float("nan")
        rows = {name: code[mine] for name, code in coded.codes.items()}
        return mean_distance(rows, public, pairs, priors.weights(last, g))

    found = []
    for each in several(distance, range(len(estimates.totals)), threads):
        found.append(each)
        if progress is not None:
            progress("comparing with the truth", len(found), len(estimates.totals))
    inside = np.flatnonzero(number >= 0)
    return Truth(scored, np.array(found), (coded.take(inside), number[inside]))
