"""The data of a report's page: everything that it shows, limited to what one page can hold.

Arrays are packed (`prade.reporting.html`): [groups of the view, cells]. A view is a level, and the first view is the
whole table, a level of one group.

    headline, tiles, promise, provenance, budget, methodology, caveats   see `prade.reporting.statements`
    use, careful sentences: what the rows are good for, and what they are not good for
    diagnosis    where the public table is wrong (`prade.diagnosis`)
    columns      {"name", "title", "description", "unit", "labels", "measured": names of levels,
                 "cells": [first, end] of its cells in a view's arrays,
                 "error": model error of its table in a group of the last level, null if all may have no rows,
                 "width": median width of its cells' 95 % intervals there, in rows}
    views        {"name", "by", "labels", "totals": numbers of rows,
                 "public", "noisy", "estimate", "synthetic", and "truth" if given: packed shares of the cells of all
                 columns, one column after the other; "noisy" is NaN where a column was not measured,
                 "low", "high": 95 % intervals of "estimate", "rowsLow", "rowsHigh": the same in numbers of rows,
                 "basis": for each column "measured", "summed" or "model",
                 "error", "width": for each group, as for columns; the error is null where the group may have no rows}
    noun         what numbers of rows count: "people" where nobody has more than one row, otherwise "rows"
    pairs        for each view {"index": [[i, j], ...] with i < j, numbers of columns,
                 "starts": where each pair's cells start, and the number of all cells at the end,
                 series and intervals as in views, of all pairs, one after the other, j running fastest,
                 "basis": for each pair}.
                 The first view has all pairs that are small enough to be shown, the others have the measured ones. A
                 pair that a view does not have is not known for its groups and must not be shown under their names
    largestPair  pairs of more cells are not shown
    map          null, or the outlines (`prade.reporting.outlines`) with "view" and "without", the groups without one
    truth        null, or the comparison with the true rows (`prade.reporting.truth`)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from prade.core.arrays import Floats, mass_per_cell
from prade.core.execution import Execution, several
from prade.diagnosis.diagnose import Diagnosis, diagnosed
from prade.estimating.levels.asked_rows import basis
from prade.estimating.levels.cell_counts import interval
from prade.estimating.levels.error_bars import AT_ONCE
from prade.estimating.levels.estimates import Estimates
from prade.planning.plan import Plan
from prade.queries.parts import Marginal
from prade.reporting import statements
from prade.reporting.facts import Facts, Precision, View, cells_of, deviations, precision_of
from prade.reporting.html import packed
from prade.reporting.outlines import Outlines
from prade.reporting.statements import Situation, measured_columns, unseen_values, use_and_care
from prade.reporting.truth import Truth, truth_data

LARGEST_PAIR = 1_000  # cells; a picture of more would be illegible
MOST_NUMBERS = 1_000_000  # in the tables of pairs by group, about two characters each
UNIT = 20_000  # shares of a cell are whole multiples of one in this many
FINEST = 60_000  # the same for the ends of intervals: the most that a packed array has room for


def data_of(
    estimates: Estimates,
    facts: Facts,
    truth: Truth | None = None,
    shapes: Outlines | None = None,
    *,
    copied: float | None = None,
    seed: int | None = None,
    execution: Execution = Execution(),
) -> dict[str, Any]:
    """Everything that the page shows; `copied` and `seed` are what the file of synthetic rows states."""
    release, plan, schema = estimates.release, estimates.plan, estimates.plan.schema
    columns, kept, precisions = facts.parts[: len(schema.coded)], dict[int, Any](), list[Precision]()
    for view in facts.views:
        precisions.append(precision_of(estimates, columns, view, kept))
        execution.tell("standard errors", len(precisions), len(facts.views))
    rows = len(facts.rows["synthetic"])
    diagnosis = diagnosed(plan, release.noisy, estimates.public.observed, threads=execution.threads)
    use, careful = use_and_care(_situation(estimates, facts, precisions, copied, diagnosis))
    views = [_view(estimates, facts, precision) for precision in precisions]
    return {
        "headline": statements.headline_of(release, rows),
        "tiles": statements.tiles_of(release, rows),
        "caveats": statements.caveats_of(plan),
        "use": use,
        "careful": careful,
        "diagnosis": _diagnosis(diagnosis, plan),
        "columns": _columns(estimates, precisions[-1]),
        "views": views,
        "noun": "people" if plan.unit.max_rows == 1 else "rows",
        "pairs": pairs_of(estimates, facts, execution),
        "largestPair": LARGEST_PAIR,
        "map": None if shapes is None else _map(estimates, facts, shapes),
        "budget": statements.budget_of(plan),
        "promise": statements.promise_of(release, copied),
        "provenance": statements.provenance_of(estimates, seed, rows),
        "methodology": statements.methodology_of(estimates, rows, seed),
        "truth": truth and truth_data(estimates, truth, execution.threads),
    }


def rounded(values: Iterable[Any], digits: int) -> list[Any]:
    """Numbers rounded to some digits, None for what is not a number.

    >>> rounded([0.126, float("nan"), None], 2)
    [0.13, None, None]
    """
    return [None if value is None or not np.isfinite(value) else round(float(value), digits) for value in values]


def _columns(estimates: Estimates, last: Precision) -> list[dict[str, Any]]:
    """The columns, what they mean, where they were measured, and how precise their tables at the last level are."""
    schema, measured = estimates.plan.schema, measured_columns(estimates.plan)
    errors = rounded((last.error(number) for number in range(len(schema.coded))), 4)
    return [
        {
            **schema[name].described(),
            "measured": list(measured[name]),
            "cells": [last.starts[number], last.starts[number + 1]],
            "error": errors[number],
            "width": round(last.width(number), 1),
        }
        for number, name in enumerate(schema.coded)
    ]


def _view(estimates: Estimates, facts: Facts, precision: Precision) -> dict[str, Any]:
    """The groups of a view with the one-way tables of all columns, and how well each group fits."""
    view, columns = precision.view, facts.parts[: len(estimates.plan.schema.coded)]
    shares = {name: each[:, : precision.starts[-1]] for name, each in view.shares.items()}
    shares["noisy"] = np.concatenate([view.noisy_shares(part) for part in columns], axis=1)
    rows_low, rows_high = precision.counts
    return {
        "name": view.name,
        "by": list(view.by),
        "labels": view.labels,
        "totals": np.rint(view.totals).astype(int).tolist(),
        **_packed_shares(shares, precision.sd),
        "rowsLow": packed(rows_low, unit=1, type="i32"),
        "rowsHigh": packed(rows_high, unit=1, type="i32"),
        "basis": [basis(estimates.plan, view.by, part) for part in columns],
        "error": rounded(precision.errors.mean(axis=1), 4),
        "width": rounded(np.median(precision.widths, axis=1), 1),
    }


def _packed_shares(shares: dict[str, Floats], sd: Floats) -> dict[str, Any]:
    """Every series of shares, and the 95 % intervals of the estimated ones."""
    low, high = interval(shares["estimate"], sd, 0.0, 1.0)
    series = {name: packed(np.clip(each, 0.0, 1.0), unit=UNIT) for name, each in shares.items()}
    return {**series, "low": packed(low, unit=FINEST), "high": packed(high, unit=FINEST)}


def _diagnosis(diagnosis: Diagnosis, plan: Plan) -> dict[str, Any]:
    levels = [
        {
            "name": level.name,
            "groups": len(level),
            "columns": [
                {"title": plan.schema[row["column"]].title or row["column"]}
                | {name: value for name, value in row.items() if name not in ("level", "groups")}
                for row in level.column_rows()
            ],
        }
        for level in diagnosis.levels
    ]
    return {"headlines": diagnosis.headlines(), "remarks": diagnosis.remarks(), "levels": levels}


def _situation(
    estimates: Estimates, facts: Facts, precisions: list[Precision], copied: float | None, diagnosis: Diagnosis
) -> Situation:
    measured, finest = measured_columns(estimates.plan), estimates.plan.levels[-1].name
    last = precisions[-1]
    return Situation(
        estimates.plan,
        last.view.totals,
        last.view.labels,
        last.relative(),
        precisions[0].relative(),
        [last.relative(number) for number in range(len(estimates.plan.schema.coded))],
        unseen_values(estimates, facts),
        copied,
        estimates.public.added,
        [name for name in diagnosis.wrong_somewhere() if finest not in measured[name]],
    )


def _map(estimates: Estimates, facts: Facts, shapes: Outlines) -> dict[str, Any]:
    """The outlines, and the view whose groups they show."""
    by = estimates.plan.groupings[shapes.level].by
    view = next(number for number, each in enumerate(facts.views) if each.by == by)
    shown = {name: getattr(shapes, name) for name in ("width", "height", "paths", "key", "lack")}
    return {**shown, "view": view, "without": len(facts.views[view]) - len(shapes.paths)}


def pairs_of(estimates: Estimates, facts: Facts, execution: Execution) -> list[dict[str, Any]]:
    """Two-way tables: all pairs of columns for the whole table, measured pairs for the groups of a level."""
    schema, room, views = estimates.plan.schema, MOST_NUMBERS, []
    small = [two for two in combinations(schema.coded, 2) if schema.domain_size(two) <= LARGEST_PAIR]
    pairs = [Marginal.of(schema, two) for two in small]
    for number, view in enumerate(facts.views):
        shown = []
        for pair in pairs:
            numbers = (len(view.shares) + 3) * len(view) * pair.n_cells
            if number == 0:
                shown.append(pair)
            elif _measured(view, pair) is not None and numbers <= room:
                room -= numbers
                shown.append(pair)
        views.append(_tables(estimates, facts, view, shown, execution))
    return views


def _measured(view: View, pair: Marginal) -> Marginal | None:
    """The same pair as it was measured, perhaps in the other order."""
    same = (each for each in view.answers.parts if isinstance(each, Marginal) and {*each.columns} == {*pair.columns})
    return next(same, None)


def _tables(
    estimates: Estimates, facts: Facts, view: View, shown: Sequence[Marginal], execution: Execution
) -> dict[str, Any]:
    """The tables of some pairs, one after the other; error bars work on the cells of a batch of pairs together."""
    order, batches = estimates.plan.schema.coded, list[list[Marginal]]()
    for pair in shown:
        if not batches or sum(each.n_cells for each in batches[-1]) + pair.n_cells > AT_ONCE:
            batches.append([])
        batches[-1].append(pair)
    tables: dict[str, list[Floats]] = {name: [np.zeros((len(view), 0))] for name in ("noisy", "sd", *view.shares)}

    def tables_of(batch: Sequence[Marginal]) -> dict[str, Floats]:
        each = [_series(estimates, facts, view, pair) for pair in batch]
        series = {name: np.concatenate([one[name] for one in each], axis=1) for name in each[0]}
        return {**series, "sd": deviations(estimates, batch, view, series["estimate"])}

    for done, of_batch in enumerate(several(tables_of, batches, execution.threads)):
        for name, table in of_batch.items():
            tables[name].append(table)
        execution.tell("two-way tables", done + 1, len(batches))
    series = {name: np.concatenate(each, axis=1) for name, each in tables.items()}
    sd = series.pop("sd")
    return {
        "index": [[order.index(name) for name in pair.columns] for pair in shown],
        "starts": np.cumsum([0, *(pair.n_cells for pair in shown)]).tolist(),
        "basis": [basis(estimates.plan, view.by, pair) for pair in shown],
        **_packed_shares(series, sd),
    }


def _series(estimates: Estimates, facts: Facts, view: View, pair: Marginal) -> dict[str, Floats]:
    """Every series of a pair: [groups, cells]; of one that was not measured, for the whole table only."""
    if (measured := _measured(view, pair)) is not None:
        first, second = pair.sizes
        series = {name: each[:, facts.at(measured)] for name, each in view.shares.items()}
        series["noisy"] = view.noisy_shares(measured)
        if measured.columns == pair.columns:
            return series
        turned = {name: each.reshape(-1, second, first).transpose(0, 2, 1) for name, each in series.items()}
        return {name: each.reshape(len(view), -1) for name, each in turned.items()}
    cells, size = cells_of(pair, estimates)
    series = {name: mass_per_cell(cells, weights, size)[None] for name, weights in facts.weights.items()}
    for name, rows in facts.rows.items():
        series[name] = np.bincount(pair.cells(rows.schema, rows.codes), minlength=size)[None] / max(len(rows), 1)
    return {"noisy": view.noisy_shares(pair), **series}
