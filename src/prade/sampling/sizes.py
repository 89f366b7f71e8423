"""The same estimates with other numbers of rows: only some groups, or a given number of rows in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import shared_out
from prade.core.errors import DataError, PradeError, closest
from prade.core.numbers import whole
from prade.estimating.levels.cell_counts import follows
from prade.estimating.levels.estimates import Estimates


def resized(estimates: Estimates, rows: int | None = None, groups: Mapping[str, Any] | None = None) -> Estimates:
    """The same distributions with `rows` rows in all, and none outside the chosen groups.

    `rows` are divided in proportion to the estimated numbers; None keeps those. `groups` are values, or lists of
    values, of columns of the list of groups.
    """
    if rows is not None and not whole(rows, 1):
        raise PradeError(f"num_rows is {rows!r}; give a whole number, 1 or more, or None for the estimated numbers")
    totals = np.where(_chosen(estimates, groups or {}), np.round(estimates.totals), 0.0)
    if rows is not None:
        if not totals.sum():
            raise DataError(
                "these groups are estimated to be empty, so rows cannot be divided among them: choose others"
            )
        totals = shared_out(int(rows), totals)
    return estimates.with_totals(totals)


def _chosen(estimates: Estimates, wanted: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which groups of the last level have these values."""
    plan = estimates.plan
    last, listed = plan.groupings[-1], plan.groups.to_dict()
    first = np.unique(last.number, return_index=True)[1]
    known = {name: values for name, values in listed.items() if follows(plan, name)}
    chosen = np.ones(len(last), np.bool_)
    for name, given in wanted.items():
        if name not in known:
            raise DataError(
                f"{name!r} does not tell the release's groups apart; their columns are {', '.join(known) or 'none'}"
            )
        values = list(given) if isinstance(given, (list, tuple, set, frozenset, np.ndarray)) else [given]
        if unknown := [value for value in values if value not in known[name]]:
            raise DataError(f"no group has {name} {unknown[0]!r}{closest(str(unknown[0]), map(str, known[name]))}")
        chosen &= np.array([known[name][row] in values for row in first])
    if not chosen.any():
        raise DataError("no group has all these values together: choose others")
    return chosen
