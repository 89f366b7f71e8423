"""The data of a report's page: everything that it shows, limited to what one page can hold.

Arrays are packed (`prade.reporting.html`): [groups of the view, cells]. A view is a level, and the first view is the
whole table, a level of one group.

    headline     {"dataset", "rows", "groups", "level", "budget", "made", "sentence"}
    tiles        four times {"title", "value", "note", "tone": "good" | "plain" | "bad"}
    caveats      sentences: what the rehearsal warned of, and what else limits the release
    use, careful sentences: what the rows are good for, and what they are not good for
    diagnosis    where the public table is wrong (`prade.diagnosis`): {"headlines", "remarks": sentences,
                 "levels": [{"name", "groups", "columns": [{"column", "title", "wrong": number of groups, "distance",
                 "at_least", "sampling", "noise_units"}]}]}
    columns      {"name", "title", "description", "unit", "labels", "measured": names of levels,
                 "cells": [first, end] of its cells in a view's arrays,
                 "error": model error of its table in a group of the last level, null if all may have no rows,
                 "width": median width of its cells' 95 % intervals there, in rows}; title is the name where the schema
                 has no other; description and unit may be empty
    views        {"name", "by", "labels", "totals": numbers of rows, "totalSd": their standard deviations,
                 "parts": [{"name", "cells", "sd": of the noise in a count}],
                 "public", "noisy", "estimate", "sd", "synthetic", and "truth" if given: packed shares of the cells of
                 all columns, one column after the other. "noisy" is clipped to 0..1, and absent (NaN) where a column
                 was not measured; "sd" are standard deviations of "estimate",
                 "basis": for each column "measured", "summed" or "model",
                 "error": for each group, mean over the columns of the model error of the column's table, null where
                 the group may well have no rows, so that the error is unknown,
                 "width": for each group, median width of its cells' 95 % intervals, in rows,
                 "technical": {"before": misfit of the public table, "after": of the estimate, "kl", "status"}}
    noun         what numbers of rows count: "people" where nobody has more than one row, otherwise "rows"
    z            a 95 % interval is the estimate plus and minus z standard deviations; the standard deviation of a count
                 is sqrt((rows * sd)^2 + (share * totalSd)^2)
    pairs        for each view {"index": [[i, j], ...] with i < j, numbers of columns,
                 "starts": where each pair's cells start, and the number of all cells at the end,
                 "public", "noisy", "estimate", "sd", "synthetic", and "truth" if given: packed shares of the cells of
                 all pairs, one pair after the other, j running fastest,
                 "basis": for each pair, "leftOut": names of measured pairs for which there was no room}.
                 The first view has all pairs that are small enough to be shown, the others have the measured ones. A
                 pair that a view does not have is not known for its groups and must not be shown under their names
    largestPair  pairs of more cells are not shown
    map          null or {"width", "height", "paths": {group: SVG path}, "others": SVG paths of outlines that belong to
                 no group, "view", "key", "without", "unused", "lack"}
    statuses     {status: what it means}, of those that occur in "technical"
    budget       for each level {"name", "groups", "asks": [...]} (`prade.reporting.statements`)
    promise      `prade.reporting.statements.promise_of`
    provenance   {"versions": {name: version}, "public": [{"file", "hash"}], "publicRows", "plan", "seed", "ledger",
                 "labels": null or {"file", "hash"} of labels that were given after measuring,
                 "cite": {"sentence", "bibtex"}} (`prade.reporting.statements`)
    methodology  a paragraph (`prade.reporting.statements`)
    truth        null, or the comparison with the true rows (`prade.reporting.truth`)

The model error of a table is what the model of the intervals expects for the L1 distance between its true shares and
its estimated ones: for a normal error of standard deviation s, the expected absolute value is s sqrt(2 / pi), so

    model error = sum over cells of sd * sqrt(2 / pi), but at most 2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats, mass_per_cell
from prade.core.execution import Execution, several
from prade.data.declare.display import described
from prade.diagnosis.diagnose import Diagnosis, diagnosed
from prade.estimating.estimate import Status
from prade.estimating.levels.asked_rows import basis
from prade.estimating.levels.cell_counts import NINETY_FIVE
from prade.estimating.levels.error_bars import AT_ONCE
from prade.queries.parts import Marginal
from prade.reporting.facts import Facts, Precision, View, cells_of, deviations, precision_of
from prade.reporting.html import packed
from prade.reporting.statements import caveats_of, headline_of, methodology_of, promise_of, provenance_of, tiles_of
from prade.reporting.truth import truth_data
from prade.reporting.use_and_care import Situation, measured_columns, unseen_values, use_and_care

if TYPE_CHECKING:
    from prade.estimating.levels.estimates import Estimates
    from prade.planning.plan import Plan
    from prade.reporting.outlines import Outlines
    from prade.reporting.truth import Truth


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
    release, schema = estimates.release, estimates.plan.schema
    columns, kept, precisions = facts.parts[: len(schema.coded)], dict[int, Any](), list[Precision]()
    for view in facts.views:
        precisions.append(precision_of(estimates, columns, view, kept))
        execution.tell("standard errors", len(precisions), len(facts.views))
    rows, promise = len(facts.rows["synthetic"]), promise_of(release, copied)
    found = diagnosed(release.plan, release.noisy, estimates.public.observed, threads=execution.threads)
    use, careful = use_and_care(_situation(estimates, facts, precisions, copied, found))
    technical = [_technical(facts, view) for view in facts.views]
    return {
        "headline": headline_of(release, rows),
        "tiles": tiles_of(release, rows),
        "caveats": caveats_of(release.plan),
        "use": use,
        "careful": careful,
        "diagnosis": _diagnosis(found, estimates.plan),
        "columns": _columns(estimates, precisions[-1]),
        "views": [
            {**_view(estimates, facts, precision), "technical": each}
            for precision, each in zip(precisions, technical, strict=True)
        ],
        "noun": noun_of(release.plan),
        "z": NINETY_FIVE,
        "pairs": pairs_of(estimates, facts, execution=execution),
        "largestPair": LARGEST_PAIR,
        "map": None if shapes is None else _map(estimates, facts, shapes),
        "statuses": statuses_of(technical),
        "budget": promise["levels"],
        "promise": promise,
        "provenance": provenance_of(estimates, seed, rows),
        "methodology": methodology_of(estimates, rows, seed),
        "truth": None if truth is None else truth_data(estimates, truth, copied=copied, execution=execution),
    }


def _columns(estimates: Estimates, last: Precision) -> list[dict[str, Any]]:
    """The columns, what they mean, where they were measured, and how precise their tables at the last level are."""
    schema, measured = estimates.plan.schema, measured_columns(estimates.plan)
    errors = rounded((last.column_error(number) for number in range(len(schema.coded))), 4)
    return [
        {
            **described(schema[name]),
            "measured": list(measured[name]),
            "cells": [last.starts[number], last.starts[number + 1]],
            "error": errors[number],
            "width": round(last.column_width(number), 1),
        }
        for number, name in enumerate(schema.coded)
    ]


def _view(estimates: Estimates, facts: Facts, precision: Precision) -> dict[str, Any]:
    """The groups of a view with the one-way tables of all columns."""
    view, columns = precision.view, facts.parts[: len(estimates.plan.schema.coded)]
    noise = np.sqrt(np.median(view.answers.variance, axis=0))
    shares = {name: each[:, : precision.starts[-1]] for name, each in view.shares.items()}
    noisy = [view.noisy_shares(part) for part in columns]
    shares["noisy"] = np.concatenate(
        [
            np.full((len(view), part.n_cells), np.nan) if each is None else each
            for part, each in zip(columns, noisy, strict=True)
        ],
        axis=1,
    )
    return {
        "name": view.name,
        "by": list(view.by),
        "labels": view.labels,
        "totals": np.rint(view.totals).astype(int).tolist(),
        "totalSd": rounded(view.total_sd, 1),
        "parts": [
            {"name": part.name, "cells": part.n_cells, "sd": round(float(sd), 1)}
            for part, sd in zip(view.answers.parts, noise, strict=True)
        ],
        **{name: packed_shares(each) for name, each in shares.items()},
        "sd": packed_shares(precision.sd, fine=True),
        "basis": [basis(estimates.plan, view.by, part) for part in columns],
        "error": rounded(precision.errors.mean(axis=1), 4),
        "width": rounded(np.median(precision.widths, axis=1), 1),
    }


def _technical(facts: Facts, view: View) -> dict[str, Any]:
    """How well each group fits, and how its estimation ended."""
    return {
        "before": rounded(facts.overall_misfit(view, "public"), 2),
        "after": rounded(facts.overall_misfit(view, "estimate"), 2),
        "kl": rounded(view.kl, 4),
        "status": list(view.status),
    }


def _diagnosis(found: Diagnosis, plan: Plan) -> dict[str, Any]:
    """What the diagnosis says, with the columns' titles."""
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
        for level in found.levels
    ]
    return {"headlines": found.headlines(), "remarks": found.remarks(), "levels": levels}


def _situation(
    estimates: Estimates, facts: Facts, precisions: list[Precision], copied: float | None, found: Diagnosis
) -> Situation:
    """What the sentences about use and care look at."""
    measured, finest = measured_columns(estimates.plan), estimates.plan.levels[-1].name
    last, whole = precisions[-1], precisions[0]
    columns = [last.column_relative(number) for number in range(len(estimates.plan.schema.coded))]
    return Situation(
        estimates.plan,
        last.view.totals,
        last.view.labels,
        last.relative,
        whole.relative,
        columns,
        unseen_values(estimates, facts),
        copied,
        estimates.public.added,
        [name for name in found.wrong_somewhere() if finest not in measured[name]],
    )


def noun_of(plan: Plan) -> str:
    """What a number of rows counts."""
    return "people" if plan.unit.max_rows == 1 else "rows"


def statuses_of(technical: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The statuses that occur, and what each means."""
    names = {name for each in technical for name in each["status"] if name is not None}
    return {status.value: status.advice for status in Status if status.value in names}


def _map(estimates: Estimates, facts: Facts, shapes: Outlines) -> dict[str, Any]:
    """The outlines, and the view whose groups they show."""
    by = estimates.plan.groupings[shapes.level].by
    view = next(number for number, each in enumerate(facts.views) if each.by == by)
    return {
        **shapes.to_dict(),
        "view": view,
        "key": shapes.key,
        "without": len(facts.views[view]) - len(shapes.paths),
        "unused": shapes.unused,
        "lack": shapes.lack,
    }


def rounded(values: Iterable[Any], digits: int) -> list[Any]:
    """Numbers rounded to some digits, None for what is not a number.

    >>> rounded([0.126, float("nan"), None], 2)
    [0.13, None, None]
    """
    return [None if value is None or not np.isfinite(value) else round(float(value), digits) for value in values]


LARGEST_PAIR = 1_000  # cells; a picture of more would be illegible
MOST_NUMBERS = 1_000_000  # in the tables of pairs by group, about two characters each
UNIT = 20_000  # shares of a cell are whole multiples of one in this many
FINEST = 60_000  # numbers in a packed array


@dataclass(frozen=True)
class Pair:
    """Two columns in the order of the schema, and the same pair as it was measured, perhaps in the other order."""

    part: Marginal
    measured: Marginal | None

    def turned(self, table: Floats) -> Floats:
        """A table of the measured pair, [groups, cells], in the order of the schema."""
        assert self.measured is not None
        if self.measured.columns == self.part.columns:
            return table
        first, second = self.part.sizes
        return table.reshape(-1, second, first).transpose(0, 2, 1).reshape(len(table), -1)


def pairs_of(estimates: Estimates, facts: Facts, *, execution: Execution = Execution()) -> list[dict[str, Any]]:
    """The pairs of every view."""
    room, found = MOST_NUMBERS, []
    for number, view in enumerate(facts.views):
        shown, left_out = list[Pair](), list[str]()
        for pair in _pairs(estimates, view):
            if number == 0:
                shown.append(pair)
            elif pair.measured is not None:
                numbers = (len(view.shares) + 2) * len(view) * pair.part.n_cells
                if numbers <= room:
                    room -= numbers
                    shown.append(pair)
                else:
                    left_out.append(pair.part.name)
        found.append({**_tables(estimates, facts, view, shown, execution), "leftOut": left_out})
    return found


def _pairs(estimates: Estimates, view: View) -> Iterator[Pair]:
    """All pairs that are small enough to be shown."""
    schema = estimates.plan.schema
    measured = {tuple(sorted(part.columns)): part for part in view.answers.parts if isinstance(part, Marginal)}
    for columns in combinations(schema.coded, 2):
        if schema.domain_size(columns) <= LARGEST_PAIR:
            yield Pair(Marginal.of(schema, columns), measured.get(tuple(sorted(columns))))


def _tables(
    estimates: Estimates, facts: Facts, view: View, shown: Sequence[Pair], execution: Execution
) -> dict[str, Any]:
    order = estimates.plan.schema.coded
    columns = [pair.part.columns for pair in shown]
    tables: dict[str, list[Floats]] = {name: [] for name in ("noisy", "sd", *view.shares)}
    batches = _batches(shown)
    work = several(lambda batch: _batch(estimates, facts, view, batch), batches, execution.threads)
    for done, made in enumerate(work):
        for name, table in made.items():
            tables[name].append(table)
        execution.tell("two-way tables", done + 1, len(batches))
    joined = {name: np.concatenate(each, axis=1) if each else np.zeros((len(view), 0)) for name, each in tables.items()}
    return {
        "index": [[order.index(a), order.index(b)] for a, b in columns],
        "starts": np.cumsum([0, *(pair.part.n_cells for pair in shown)]).tolist(),
        "basis": [basis(estimates.plan, view.by, pair.part) for pair in shown],
        **{name: packed_shares(table, fine=name == "sd") for name, table in joined.items()},
    }


def _batches(shown: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs in batches of about as many cells as error bars work on together."""
    found: list[list[Pair]] = []
    for pair in shown:
        if not found or sum(each.part.n_cells for each in found[-1]) + pair.part.n_cells > AT_ONCE:
            found.append([])
        found[-1].append(pair)
    return found


def _batch(estimates: Estimates, facts: Facts, view: View, batch: Sequence[Pair]) -> dict[str, Floats]:
    """Every series of some pairs: [groups, cells]."""
    each = [_series(estimates, facts, view, pair) for pair in batch]
    found = {name: np.concatenate([series[name] for series in each], axis=1) for name in each[0]}
    return {**found, "sd": deviations(estimates, [pair.part for pair in batch], view, found["estimate"])}


def _series(estimates: Estimates, facts: Facts, view: View, pair: Pair) -> dict[str, Floats]:
    noisy = np.full((len(view), pair.part.n_cells), np.nan)
    if pair.measured is not None:
        shares = view.noisy_shares(pair.measured)
        assert shares is not None
        noisy = pair.turned(shares)
        return {"noisy": noisy} | {
            name: pair.turned(each[:, facts.at(pair.measured)]) for name, each in view.shares.items()
        }
    cells, size = cells_of(pair.part, estimates)
    series = {name: mass_per_cell(cells, weights, size)[None] for name, weights in facts.weights.items()}
    for name, rows in facts.rows.items():
        counts = np.bincount(pair.part.cells(rows.schema, rows.codes), minlength=size)
        series[name] = counts[None] / max(len(rows), 1)
    return {"noisy": noisy, **series}


def packed_shares(shares: Floats, *, fine: bool = False) -> dict[str, Any]:
    """Shares, or, with `fine`, their much smaller standard deviations, in as fine a unit as the largest allows."""
    if not fine:
        return packed(np.clip(shares, 0.0, 1.0), unit=UNIT)
    largest = float(np.nanmax(shares, initial=0.0))
    return packed(shares, unit=int(FINEST / max(largest, 0.01)))
