"""Comparison with the truth: the contest's score of every group, and the distances of public and synthetic rows.

The paper's figure shows, for each group, the mean over 50 random pairs of columns of the L1 distance (0 to 2) between
the two-way tables of the true rows and those of (a) the public baseline (`prade.scoring.evaluation`), (b) the
synthetic rows.

All of this is computed from true rows. It is not private.

`truth_data` gives the page's entry "truth", which is null on a page without the true rows:

    score, nist   mean of the contest's score over the places, 0 (best) to 2; the same from 1000 (best) to 0
    pairs         number of pairs of columns in the score
    synthetic     mean distance of the synthetic rows over the places that have true rows, 0 to 2
    prior, ratio  the same for the public table; synthetic / prior
    priorError, syntheticError   the same for each place of the last view, null where it has no true rows
    worst_pairs   [{"first", "second", and as in heat: "places", "whole", "public"}]
    worst_places  as in `prade score --json`, and "view": index of the last view
    heat          {"places", "whole", "public": packed, symmetric; the diagonal is the distance of the one-way table;
                  "places" is the mean over the places of the last level, the others compare all rows together}
    metrics       as in `prade score --json` (`prade.scoring.metrics.measures.all_metrics`)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from prade.core.arrays import Floats, Ints
from prade.core.errors import DataError
from prade.core.execution import Execution
from prade.core.files import found_files, paths_of
from prade.data.public.joint import Coded, encode
from prade.data.read.csv import format_of
from prade.data.read.tables import NAMES, read_table, table_columns
from prade.estimating.levels.estimates import Estimates
from prade.planning.plan import Plan
from prade.release.derived_files import kept_rows
from prade.reporting.html import packed
from prade.scoring.distances import Pair, distances_of, pair_errors
from prade.scoring.evaluation import WORST, Evaluation, PublicScore
from prade.scoring.metrics.measures import all_metrics, plain
from prade.scoring.score import score
from prade.scoring.sides import Side


@dataclass(frozen=True, eq=False)
class Truth(Evaluation):
    """How the last level's groups compare with the truth, and the rows that were compared."""

    public: PublicScore
    rows: tuple[Coded, Ints]  # the true rows that are in a group, and the group of each
    drawn: tuple[Coded, Ints]  # the synthetic rows, and the group of each


def coded_rows(plan: Plan, table: Any) -> tuple[Coded, Ints]:
    """The rows of a table or file in the plan's codes, and each row's group at the last level, -1 for none."""
    rows = table_columns(table)
    number = plan.groups.keyed(rows.column_names, plan.groupings[-1].number).numbers(rows)
    return encode(plan.schema, rows), number


def true_rows(plan: Plan, source: Any) -> tuple[Side, Ints]:
    """The rows with their numbers, and the groups, of a table, a file, a list of files, or all that a glob matches.

    Every file is coded separately, so a column may have numbers in one and texts in the next, as in measuring.
    """
    paths, form = paths_of(source), format_of(source)
    if paths is None and isinstance(source, str):
        raise DataError(
            f"the truth is read from files only, but {source.partition('://')[0]}://... is the address of a database: "
            f"give a {NAMES} file of the rows that were measured, or a glob of such files"
        )
    sides, numbers = [], []
    for each in [source] if paths is None else [form.file(file) for file in found_files(paths)]:
        rows = read_table(each, guess=False)
        numbers.append(plan.groups.keyed(rows.column_names, plan.groupings[-1].number).numbers(rows))
        sides.append(Side.of(plan.schema, rows))
    return Side.joined(sides), np.concatenate(numbers)


def truth_of(estimates: Estimates, truth: Any, drawn: tuple[Coded, Ints], execution: Execution = Execution()) -> Truth:
    """Compare the synthetic rows, coded and with the group of each, and the public baseline with true rows."""
    plan, public = estimates.plan, estimates.public.observed
    true, number = true_rows(plan, truth)
    if not (number >= 0).any():
        raise DataError("no row of the truth is in a group of the release; give the table that was measured")
    scored = score((true, number), drawn, plan.schema, plan.groupings[-1].by, groups=plan.groups)
    baseline = PublicScore.of(scored, (true, number), public, execution.threads)
    execution.tell("comparing with the truth", 1, 2)
    inside = np.flatnonzero(number >= 0)
    true, synthetic = true.take(inside), Side.of(plan.schema, kept_rows(estimates.release))
    numbers = {name: estimates.public.numbers[name][: len(public)] for name in true.numbers}
    metrics = all_metrics(true, synthetic, Side(public.prior, numbers))
    execution.tell("comparing with the truth", 2, 2)
    return Truth(scored, baseline, metrics, (true, number[inside]), drawn)


def truth_data(estimates: Estimates, truth: Truth, threads: int = 1) -> dict[str, Any]:
    """The page's entry "truth"."""
    schema, scored, compared = estimates.plan.schema, truth.score, truth.public
    (true, number), (synthetic, group), level = truth.rows, truth.drawn, estimates.plan.groupings[-1]
    pairs = tuple(combinations_with_replacement(schema.coded, 2))
    by_place = pair_errors(schema, true.codes, number, synthetic.codes, group, len(level), pairs, threads=threads)
    heat = {
        "places": np.asarray(by_place[compared.known].mean(axis=0)),
        "whole": distances_of(true.codes, synthetic, pairs, threads=threads),
        "public": distances_of(true.codes, estimates.public.observed.prior, pairs, threads=threads),
    }
    matrices = np.zeros((len(heat), len(schema.coded), len(schema.coded)))
    matrices[:, *np.triu_indices(len(schema.coded))] = list(heat.values())  # in the order of combinations
    symmetric = np.maximum(matrices, matrices.transpose(0, 2, 1))
    labels = level.labels(schema)
    last = sum(1 for level in estimates.plan.levels if level.by)  # the first view is the whole table
    return {
        "score": scored.mean,
        "nist": scored.nist,
        "pairs": len(scored.pair_names),
        "synthetic": compared.synthetic_error,
        "prior": compared.error,
        "ratio": compared.ratio,
        "priorError": plain(compared.groups),
        "syntheticError": plain(np.where(compared.known, compared.synthetic, np.nan)),
        "sentence": compared.sentence,
        "worst_pairs": _worst_pairs(pairs, heat),
        "worst_places": [{**place, "label": labels[place["group"]], "view": last} for place in truth.worst_places()],
        "heat": {name: packed(each) for name, each in zip(heat, symmetric, strict=True)},
        "metrics": truth.metrics,
    }


def _worst_pairs(pairs: tuple[Pair, ...], heat: dict[str, Floats]) -> list[dict[str, Any]]:
    """The pairs of different columns with the largest mean distance over the places."""
    order = [k for k in np.argsort(-heat["places"], kind="stable") if pairs[k][0] != pairs[k][1]][:WORST]
    return [{"first": pairs[k][0], "second": pairs[k][1], **{n: float(d[k]) for n, d in heat.items()}} for k in order]
