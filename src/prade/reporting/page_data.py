"""The data of a report's page: everything that it shows, limited to what one page can hold.

Arrays are packed (`prade.reporting.packing`): [groups of the view, cells]. A view is a level, and the first view is the
whole table, a level of one group.

    headline     {"dataset", "rows", "groups", "level", "budget", "made", "sentence"}
    tiles        four times {"title", "value", "note", "tone": "good" | "plain" | "bad"}
    caveats      sentences: what the rehearsal warned of, and what else limits the release
    use, careful sentences: what the rows are good for, and what they are not good for
    columns      {"name", "title", "description", "unit", "labels", "measured": names of levels,
                 "cells": [first, end] of its cells in a view's arrays,
                 "error": expected error of its table in a group of the last level, "width": median width of its cells'
                 95 % intervals there, in people}; title is the name where the schema has no other; description and unit
                 may be null
    views        {"name", "by", "labels", "totals": numbers of rows, "totalSd": their standard deviations,
                 "parts": [{"name", "cells", "sd": of the noise in a count}],
                 "public", "noisy", "estimate", "sd", "synthetic", and "truth" if given: packed shares of the cells of
                 all columns, one column after the other. "noisy" is clipped to 0..1, and absent (NaN) where a column
                 was not measured; "sd" are standard deviations of "estimate",
                 "basis": for each column "measured", "summed" or "model",
                 "error": for each group, mean over the columns of the expected error of the column's table,
                 "width": for each group, median width of its cells' 95 % intervals, in people,
                 "technical": {"before": misfit of the public table, "after": of the estimate, "kl", "status"}}
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
    budget       for each level {"name", "groups", "asks": [...]} (`prade.reporting.promise`)
    promise      `prade.reporting.promise.promise_of`
    provenance   {"versions": {name: version}, "public": [{"file", "hash"}], "publicRows", "plan", "seed", "ledger",
                 "cite": {"sentence", "bibtex"}} (`prade.reporting.provenance`)
    methodology  a paragraph (`prade.reporting.methodology`)
    truth        null, or the comparison with the true rows

The expected error of a table is what the model of the intervals expects for the L1 distance between its true shares and
its estimated ones: for a normal error of standard deviation s, the expected absolute value is s sqrt(2 / pi), so

    expected error = sum over cells of sd * sqrt(2 / pi)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.threads import several
from prade.estimating.levels.basis import basis
from prade.estimating.levels.error_bars_of_sums import sum_variances
from prade.queries.marginal import Marginal
from prade.reporting.facts import Facts, View, all_pairs

if TYPE_CHECKING:
    from prade.core.progress import Progress
    from prade.estimating.levels.estimates import Estimates
    from prade.reporting.outlines import Outlines
    from prade.reporting.truth import Truth

UNIT = 10_000  # shares are whole numbers of ten-thousandths
FINE_UNIT = 1_000_000  # their standard errors, which are smaller, are whole numbers of millionths
LARGEST_PAIR = 1_000  # cells; a picture of more would be illegible
MOST_NUMBERS = 2_500_000  # in the tables of pairs by group, about three characters each


def data_of(
    estimates: Estimates,
    facts: Facts,
    truth: Truth | None,
    shapes: Outlines | None,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Everything that the page's script draws."""
    schema = estimates.plan.schema
    views: list[dict[str, Any]] = []
    for columns in several(lambda view: _columns(estimates, facts, view), facts.views, threads):
        views.append({**_groups(facts, facts.views[len(views)]), "columns": columns})
        if progress is not None:
            progress("standard errors", len(views), len(facts.views))
    if truth is not None:
        views[-1] |= _against(truth)
    pairs, left_out = _pairs(facts, schema.coded)
    return {
        "unit": UNIT,
        "fineUnit": FINE_UNIT,
        "truth": None if truth is None else _overall(truth),
        "columns": [{"name": name, "labels": schema[name].labels()} for name in schema.coded],
        "views": views,
        "pairs": pairs,
        "leftOut": left_out,
        "largestPair": LARGEST_PAIR,
        "map": None if shapes is None else _map(estimates, facts, shapes),
    }


def _groups(facts: Facts, view: View) -> dict[str, Any]:
    """The groups of a view, and how well each fits."""
    deviation = np.sqrt(np.median(view.answers.variance, axis=0))
    return {
        "name": view.name,
        "labels": view.labels,
        "totals": np.rint(view.totals).astype(int).tolist(),
        "totalSd": rounded(view.total_sd, 1),
        "before": rounded(facts.overall_misfit(view, "prior"), 2),
        "after": rounded(facts.overall_misfit(view, "estimate"), 2),
        "kl": rounded(view.kl, 4),
        "status": list(view.status),
        "parts": [
            {"name": part.name, "cells": part.n_cells, "sd": round(float(sd), 1)}
            for part, sd in zip(view.answers.parts, deviation, strict=True)
        ],
        "misfit": {name: rounded(facts.misfit(view, name), 2) for name in ("prior", "estimate")},
    }


def _columns(estimates: Estimates, facts: Facts, view: View) -> list[dict[str, Any]]:
    """The one-way tables of every group of a view, by every series, with the estimate's standard errors."""
    schema, codes = estimates.plan.schema, estimates.public.prior.codes
    parts = [Marginal.of(schema, [name]) for name in schema.coded]
    # The same numbers as `Estimates.marginal`, which would compute every group's distribution again for each column.
    cells = [(part.cells(schema, codes), part.n_cells) for part in parts]
    rows = np.bincount(view.number, estimates.totals, minlength=len(view))
    sd = np.sqrt(sum_variances(estimates, cells, view.number, len(view))) / np.maximum(rows, 1.0)[:, None]
    ends = np.cumsum([part.n_cells for part in parts])[:-1]
    each = zip(parts, np.split(sd, ends, axis=1), strict=True)
    return [
        {**_series(facts, view, part), "sd": whole(mine, FINE_UNIT), "basis": basis(estimates.plan, view.by, part)}
        for part, mine in each
    ]


def _series(facts: Facts, view: View, part: Marginal) -> dict[str, Any]:
    noisy = view.noisy_shares(part)
    shares = {name: whole(view.shares[name][:, facts.at(part)], UNIT) for name in view.shares}
    return {**shares, "noisy": None if noisy is None else whole(noisy, UNIT)}


def _pairs(facts: Facts, columns: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
    """Every pair for the whole table; measured pairs for every group too, as far as the page has room.

    A pair is a list with one entry per view: the whole table's, then None or the tables of all groups. The second value
    names the measured pairs whose tables by group are left out.
    """
    schema = facts.layout.prior.schema
    shown, left_out, room = {}, [], MOST_NUMBERS
    index = {name: number for number, name in enumerate(columns)}
    for pair in [*all_pairs(columns), *_turned(facts)]:
        part = Marginal.of(schema, pair)
        if part.n_cells > LARGEST_PAIR:
            continue
        entry: list[Any] = [_whole_pair(facts, part)]
        for view in facts.views[1:]:
            entry.append(None)
            if part in view.answers.parts:
                numbers = (len(view.shares) + 1) * len(view) * part.n_cells
                if numbers <= room:
                    room -= numbers
                    entry[-1] = _series(facts, view, part)
                else:
                    left_out.append(f"{part.name} ({view.name})")
        shown[f"{index[pair[0]]},{index[pair[1]]}"] = entry
    return shown, left_out


def _turned(facts: Facts) -> list[tuple[str, str]]:
    """Measured pairs whose first column comes later in the schema than the second."""
    order = facts.layout.prior.schema.names
    parts = dict.fromkeys(part for view in facts.views for part in view.answers.parts)
    pairs = [part.columns for part in parts if isinstance(part, Marginal) and len(part.columns) == 2]
    return [(a, b) for a, b in pairs if order.index(a) > order.index(b)]


def _whole_pair(facts: Facts, part: Marginal) -> dict[str, Any]:
    noisy = facts.views[0].noisy_shares(part)
    series = {name: whole(shares[None], UNIT) for name, shares in facts.whole_pair(part).items()}
    return {**series, "noisy": None if noisy is None else whole(noisy, UNIT)}


def _overall(truth: Truth) -> dict[str, Any]:
    """The comparison with the truth in a few numbers."""
    prior, synthetic = truth.means
    return {
        "mean": truth.score.mean,
        "nist": truth.score.nist,
        "pairs": len(truth.score.pair_names),
        "prior": prior,
        "synthetic": synthetic,
    }


def _against(truth: Truth) -> dict[str, Any]:
    """What the last view has in addition when the truth is known."""
    return {
        "score": rounded(truth.score.groups, 3),
        "why": list(truth.score.why),
        "priorError": rounded(truth.prior, 3),
        "syntheticError": rounded(truth.synthetic, 3),
    }


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


def whole(values: Floats, unit: int) -> list[Any]:
    """Numbers as whole multiples of 1 / unit."""
    multiples: list[Any] = np.rint(np.asarray(values) * unit).astype(np.int64).tolist()
    return multiples


def rounded(values: Iterable[Any], digits: int) -> list[Any]:
    """Numbers rounded to some digits, None for what is not a number; lists of lists keep their shape.

    >>> rounded([0.126, float("nan"), None], 2)
    [0.13, None, None]
    """

    def each(value: Any) -> Any:
        if isinstance(value, (list, np.ndarray)):
            return [each(one) for one in value]
        return None if value is None or not np.isfinite(value) else round(float(value), digits)

    return [each(value) for value in values]
