"""Comparison with the truth: the contest's score of every group, and the distances of public and synthetic rows.

The paper's figure shows, for each group, the mean over 50 random pairs of columns of the L1 distance (0 to 2) between
the two-way tables of the true rows and those of (a) the public baseline (`prade.scoring.evaluation`), (b) the
synthetic rows.

All of this is computed from true rows. It is not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError
from prade.data.csv_format import format_of
from prade.data.encoding import Coded, encode
from prade.data.tables import read_table, table_columns
from prade.scoring.evaluation import public_pair_errors
from prade.scoring.score import CONTEST_PAIRS, CONTEST_SEED, Score, chosen_pairs, score
from prade.scoring.sides import Side

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.core.progress import Progress
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan


@dataclass(frozen=True, eq=False)
class Truth:
    """How the last level's groups compare with the truth: the score, and the two series of the paper's figure."""

    score: Score
    prior: Floats  # mean distance of each group's public baseline; NaN for a group without true rows
    true: Side  # the true rows that are in a group
    group: Ints  # the group of each
    drawn: tuple[Coded, Ints]  # the synthetic rows, and the group of each

    @property
    def rows(self) -> tuple[Coded, Ints]:
        """The true rows in codes, and the group of each."""
        return self.true.coded, self.group

    @property
    def synthetic(self) -> Floats:
        """The mean distance of each group's synthetic rows, whatever their number."""
        return np.asarray(self.score.detail.mean(axis=1))

    @property
    def means(self) -> tuple[float, float]:
        """The mean distances of the public baseline and of the synthetic rows, over the groups that have true rows."""
        known = np.isfinite(self.prior)
        return float(self.prior[known].mean()), float(self.synthetic[known].mean())


def coded_rows(plan: Plan, table: Any) -> tuple[Coded, Ints]:
    """The rows of a table or file in the plan's codes, and each row's group at the last level, -1 for none."""
    rows = table_columns(table)
    number = plan.groups.keyed(rows.column_names, plan.groupings[-1].number).numbers(rows)
    return encode(plan.schema, rows), number


def true_rows(plan: Plan, source: Any) -> tuple[Side, Ints]:
    """The rows with their numbers, and the groups, of a table, a file, a list of files, or all that a glob matches.

    Every file is coded separately, so a column may have numbers in one and texts in the next, as in measuring.
    """
    files, form = _files(source), format_of(source)
    tables = [source] if files is None else [form.file(file) for file in files]
    each = [_true_rows(plan, read_table(table, guess=False)) for table in tables]
    return Side.joined([side for side, _ in each]), np.concatenate([number for _, number in each])


def _true_rows(plan: Plan, rows: pa.Table) -> tuple[Side, Ints]:
    number = plan.groups.keyed(rows.column_names, plan.groupings[-1].number).numbers(rows)
    return Side.of(plan.schema, rows), number


def _files(source: Any) -> list[Path] | None:
    """The files that `source` names; None if it is a table."""
    if isinstance(source, (list, tuple)) and source and all(isinstance(each, (str, PathLike)) for each in source):
        return [file for each in source for file in _files(each) or ()]
    if not isinstance(source, (str, PathLike)):
        return None
    if "://" in str(source):
        kind = str(source).partition("://")[0]
        raise DataError(
            f"the truth is read from files only, but {kind}://... is the address of a database: give a parquet or CSV "
            "file of the rows that were measured, or a glob of such files"
        )
    path = Path(source)
    if path.exists() or not any(mark in str(path) for mark in "*?["):
        return [path]
    matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not matches:
        raise DataError(f"no file matches {path}; check the path of the truth")
    return matches


def truth_of(
    estimates: Estimates,
    truth: Any,
    synthetic: Coded,
    group: Ints,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> Truth:
    """Compare the synthetic rows and the public baseline with true rows."""
    plan = estimates.plan
    true, number = true_rows(plan, truth)
    coded = true.coded
    if not (number >= 0).any():
        raise DataError("no row of the truth is in a group of the release; give the table that was measured")
    pairs = chosen_pairs(plan.schema.coded, CONTEST_PAIRS, CONTEST_SEED)
    by = plan.groupings[-1].by
    scored = score((coded, number), (synthetic, group), plan.schema, by, groups=plan.groups, pairs=pairs)
    public = estimates.public.observed
    baseline = public_pair_errors((coded, number), public, plan.groupings[-1], pairs, threads=threads)
    if progress is not None:
        progress("comparing with the truth", 1, 1)
    inside = np.flatnonzero(number >= 0)
    return Truth(scored, np.asarray(baseline.mean(axis=1)), true.take(inside), number[inside], (synthetic, group))
