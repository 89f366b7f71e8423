"""A synthetic table against the truth in every way we have: the contest's score, the public baseline's, the metrics.

All of this is computed from true rows. It is not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.threads import cores
from prade.data.groups import Groups
from prade.data.public.table import PublicTable
from prade.data.read.tables import read_table
from prade.scoring.distances import Pair
from prade.scoring.metrics import USUAL, Choices, all_metrics
from prade.scoring.public_baseline import public_pair_errors
from prade.scoring.score import CONTEST_PAIRS, CONTEST_SEED, Pairs, Score, score
from prade.scoring.sides import Side

if TYPE_CHECKING:
    from prade.data.schema import Schema

WORST = 10


@dataclass(frozen=True, eq=False)
class PublicScore:
    """The distances of the public baseline [groups, pairs], and those of the synthetic rows to compare with."""

    detail: Floats  # NaN for a group without true rows
    synthetic: Floats

    @property
    def groups(self) -> Floats:
        """The mean distance of each group."""
        return np.asarray(self.detail.mean(axis=1))

    @property
    def pairs(self) -> Floats:
        """The mean distance of each pair, over the groups that have true rows."""
        return np.asarray(self.detail[self._known].mean(axis=0))

    @property
    def error(self) -> float:
        """The mean distance of the public baseline, over the groups that have true rows."""
        return float(self.groups[self._known].mean())

    @property
    def ratio(self) -> float | None:
        """The synthetic rows' mean distance in the same groups, whatever their number, as a share of this."""
        mine = float(self.synthetic[self._known].mean())
        return mine / self.error if self.error > 0.0 else None

    @property
    def _known(self) -> Any:
        return np.isfinite(self.groups)

    def __str__(self) -> str:
        return f"public table: mean distance {self.error:.4f} of 2\n{ratio_in_words(self.ratio)}"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The score, and where they were asked for the public baseline's and the metrics."""

    score: Score
    public: PublicScore | None
    metrics: dict[str, Any] | None

    def worst_pairs(self) -> list[dict[str, Any]]:
        """The pairs of columns with the largest mean distances."""
        return worst_pairs(self.score, None if self.public is None else self.public.pairs)

    def worst_places(self) -> list[dict[str, Any]]:
        """The groups with the largest scores."""
        return worst_places(self.score, None if self.public is None else self.public.groups)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the distances of each group and pair, ready for JSON."""
        public = self.public and {"error": self.public.error, "ratio": self.public.ratio}
        worst = {"worst_pairs": self.worst_pairs(), "worst_places": self.worst_places()}
        return {**self.score.to_dict(), **worst, "public": public, "metrics": self.metrics}


def evaluate(
    truth: Any,
    synthetic: Any,
    schema: Schema,
    by: Sequence[str],
    *,
    groups: Any = None,
    pairs: Pairs = CONTEST_PAIRS,
    seed: int = CONTEST_SEED,
    public: Any = None,
    weight: str | None = None,
    choices: Choices | None = USUAL,
) -> Evaluation:
    """Score synthetic rows as `prade.score` does, and compute the metrics, unless `choices` is None.

    `public` is the public table or its files, with its column of weights, for the public baseline.
    """
    scored = score(truth, synthetic, schema, by, groups=groups, pairs=pairs, seed=seed)
    if public is None and choices is None:
        return Evaluation(scored, None, None)
    level = scored.grouping
    if groups is None:
        groups = dict(zip(level.by, map(list, zip(*level.values, strict=True)), strict=True))
    listed = Groups.of(groups)
    columns = tuple(name for name in schema.coded if name not in by)
    rows = read_table(truth, guess=False)
    number = listed.keyed(rows.column_names, level.number).numbers(rows)
    true = Side.of(schema, rows).only(columns)
    public_rows = None if public is None else PublicTable.of(public, weight).rows(schema, listed)
    baseline = None
    if public_rows is not None:
        detail = public_pair_errors((true.coded, number), public_rows, level, scored.pair_names, threads=cores())
        baseline = PublicScore(detail, np.asarray(scored.detail.mean(axis=1)))
    if choices is None:
        return Evaluation(scored, baseline, None)
    other = None if public_rows is None else Side.of_public(public_rows).only(columns)
    drawn = Side.of(schema, synthetic).only(columns)
    return Evaluation(scored, baseline, all_metrics(true.take(np.flatnonzero(number >= 0)), drawn, other, choices))


def worst_pairs(scored: Score, public: Floats | None) -> list[dict[str, Any]]:
    """The pairs with the largest distances, the worst first; a pair that was drawn twice is named once."""
    found: dict[Pair, dict[str, Any]] = {}
    for k in np.argsort(-scored.pairs, kind="stable").tolist():
        first, second = scored.pair_names[k]
        other = None if public is None else float(public[k])
        named = {"first": first, "second": second, "distance": float(scored.pairs[k]), "public": other}
        found.setdefault((min(first, second), max(first, second)), named)
    return list(found.values())[:WORST]


def worst_places(scored: Score, public: Floats | None) -> list[dict[str, Any]]:
    """The groups with the largest scores, the worst first; of equal scores, the one with the larger distance."""
    distances, why = scored.detail.mean(axis=1), scored.why
    order = np.lexsort((-distances, -scored.groups))
    kept = [int(g) for g in order if why[g] != "empty"][:WORST]
    labels = scored.grouping.labels()
    return [
        {
            "label": labels[g],
            "group": g,
            "score": float(scored.groups[g]),
            "distance": float(distances[g]),
            "public": None if public is None or not np.isfinite(public[g]) else float(public[g]),
            "why": why[g],
            "true_rows": int(scored.true_rows[g]),
            "synthetic_rows": int(scored.synthetic_rows[g]),
        }
        for g in kept
    ]


def ratio_in_words(ratio: float | None) -> str:
    """The synthetic rows' error as a share of the public table's.

    >>> print(ratio_in_words(0.482))
    The synthetic rows have 48 % of the public table's error.
    """
    if ratio is None:
        return "The public table has no error to compare with."
    return f"The synthetic rows have {100 * ratio:.0f} % of the public table's error."
