"""A synthetic table against the truth in every way we have: the contest's score, the public baseline's, the metrics.

The public baseline is what the error would be if public rows were published in place of synthetic ones. All of this is
computed from true rows. It is not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from prade.core.arrays import Flags, Floats, Ints, counted
from prade.core.execution import cores, several
from prade.data.declare.groups import Grouping, Groups, RecurringGroups
from prade.data.declare.schema import Schema
from prade.data.public.joint import Coded, joint_codes
from prade.data.public.public import Public
from prade.data.public.table import PublicTable
from prade.data.read.tables import read_table
from prade.scoring.distances import Codes, Pair, distances_of, mean_distance
from prade.scoring.metrics.measures import USUAL, Choices, all_metrics
from prade.scoring.score import CONTEST_PAIRS, CONTEST_SEED, Pairs, Score, score
from prade.scoring.sides import Side

Rows = tuple[Coded, Ints]  # and the group of each

WORST = 10  # pairs and places that are named


@dataclass(frozen=True, eq=False)
class PublicBaseline:
    """A public table instead of estimates: each group has its own public rows where there are any, or else all rows."""

    public: Public
    recurring: RecurringGroups

    def weights(self, group: int) -> Floats:
        mine = self.own(group)
        return mine if mine.any() else self.public.prior.weights

    def own(self, group: int) -> Floats:
        """Weights of the public rows that are the group's own, 0 for all others."""
        return np.where(self.recurring.rows(self.public.group, group), self.public.prior.weights, 0.0)

    def error(self, truth: Codes, group: int, pairs: Sequence[Pair]) -> float:
        """Mean distance of the pairs' two-way tables from those of a group's true rows."""
        return mean_distance(truth, self.public.prior, pairs, self.weights(group))


def public_errors(truth: Rows, public: Public, level: Grouping, pairs: Sequence[Pair], *, threads: int = 1) -> Floats:
    """The distance of the public baseline in each group of a level and each pair of columns; NaN without true rows.

    `truth` are coded rows and the group of each (-1 for none). Groups without public rows of their own share one table
    of everybody, which is made once for each pair.
    """
    coded, number = truth
    baseline = PublicBaseline(public, RecurringGroups.of(public.groups, level))
    with_rows = np.bincount(number[number >= 0], minlength=len(level)) > 0
    alone = [g for g in np.flatnonzero(with_rows & baseline.recurring.recurs).tolist() if baseline.own(g).any()]
    errors = np.full((len(level), len(pairs)), np.nan)

    def of_group(group: int) -> Floats:
        weights, mine = baseline.own(group), coded.take(np.flatnonzero(number == group)).codes
        own = np.flatnonzero(weights)
        return distances_of(mine, public.prior.take(own), pairs, weights[own])

    for g, distances in zip(alone, several(of_group, alone, threads), strict=True):
        errors[g] = distances
    rest = with_rows.copy()
    rest[alone] = False
    if rest.any():
        inside = np.flatnonzero(np.append(rest, False)[number])
        rows = coded.take(inside), number[inside]
        for k, distances in enumerate(several(partial(_errors_of_everybody, rows, public, len(level)), pairs, threads)):
            errors[rest, k] = distances[rest]
    return errors


def _errors_of_everybody(truth: Rows, public: Public, groups: int, pair: Pair) -> Floats:
    """The distance of all public rows' table from that of each group.

    With t and p the shares of a cell, sum |t - p| = 1 + sum over the cells with t > 0 of (|t - p| - p).
    """
    coded, number = truth
    cells = coded.schema.domain_size(pair)
    cell = joint_codes(coded.schema, coded.codes, pair).astype(np.int64)
    place, counts = counted(number * cells + cell, groups * cells)
    group = place // cells
    share, public_share = counts / np.bincount(number)[group], public.prior.project(pair).ravel()[place % cells]
    change = np.bincount(group, np.abs(share - public_share) - public_share, minlength=groups)
    return np.asarray(np.maximum(1.0 + change, 0.0))


# ---------------------------------------------------------------------- the evaluation


@dataclass(frozen=True, eq=False)
class PublicScore:
    """The distances of the public baseline [groups, pairs], and those of the synthetic rows to compare with.

    Means are over the groups that have true rows, which are `known`.
    """

    detail: Floats  # NaN for a group without true rows
    synthetic: Floats

    @classmethod
    def of(cls, scored: Score, truth: Rows, public: Public, threads: int) -> PublicScore:
        """The distances of the pairs and groups of a score of the same true rows."""
        detail = public_errors(truth, public, scored.grouping, scored.pair_names, threads=threads)
        return cls(detail, np.asarray(scored.detail.mean(axis=1)))

    @property
    def groups(self) -> Floats:
        return np.asarray(self.detail.mean(axis=1))

    @property
    def pairs(self) -> Floats:
        return np.asarray(self.detail[self.known].mean(axis=0))

    @property
    def error(self) -> float:
        return float(self.groups[self.known].mean())

    @property
    def synthetic_error(self) -> float:
        """The mean distance of the synthetic rows in the same groups, whatever their number."""
        return float(self.synthetic[self.known].mean())

    @property
    def ratio(self) -> float | None:
        return self.synthetic_error / self.error if self.error > 0.0 else None

    @property
    def known(self) -> Flags:
        return np.asarray(np.isfinite(self.groups))

    @property
    def sentence(self) -> str:
        if self.ratio is None:
            return "The public table has no error to compare with."
        return f"The synthetic rows have {100 * self.ratio:.0f} % of the public table's error."

    def __str__(self) -> str:
        return f"public table: mean distance {self.error:.4f} of 2\n{self.sentence}"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The score, and where they were asked for the public baseline's and the metrics."""

    score: Score
    public: PublicScore | None
    metrics: dict[str, Any] | None

    def worst_pairs(self) -> list[dict[str, Any]]:
        """The pairs with the largest distances, the worst first; a pair that was drawn twice is named once."""
        pairs: dict[Pair, dict[str, Any]] = {}
        distances, names = self.score.pairs, self.score.pair_names
        public = [None] * len(names) if self.public is None else self.public.pairs.tolist()
        for k in np.argsort(-distances, kind="stable").tolist():
            first, second = names[k]
            named = {"first": first, "second": second, "distance": float(distances[k]), "public": public[k]}
            pairs.setdefault((min(first, second), max(first, second)), named)
        return list(pairs.values())[:WORST]

    def worst_places(self) -> list[dict[str, Any]]:
        """The groups with the largest scores, the worst first; of equal scores, the one with the larger distance."""
        scored, public = self.score, None if self.public is None else self.public.groups
        distances, why, labels = scored.detail.mean(axis=1), scored.why, scored.grouping.labels()
        order = np.lexsort((-distances, -scored.groups)).tolist()
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
            for g in [g for g in order if why[g] != "empty"][:WORST]
        ]

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
    choices: Choices | None = USUAL,
) -> Evaluation:
    """Score synthetic rows as `prade.score` does, and compute the metrics, unless `choices` is None.

    `public` is the public table or its files, for the public baseline.
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
    baseline = other = metrics = None
    if public is not None:
        public_rows = PublicTable.of(public).rows(schema, listed)
        baseline = PublicScore.of(scored, (true, number), public_rows, cores())
        other = Side(public_rows.prior, public_rows.numbers).only(columns)
    if choices is not None:
        drawn = Side.of(schema, synthetic).only(columns)
        metrics = all_metrics(true.take(np.flatnonzero(number >= 0)), drawn, other, choices)
    return Evaluation(scored, baseline, metrics)
