"""Two-way tables for the page: all pairs of columns for the whole table, measured pairs for the groups of a level.

A pair that a view lacks is not known for its groups. Its shape is in `prade.reporting.page_data`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats, mass_per_cell
from prade.core.execution import Execution, several
from prade.estimating.levels.basis import basis
from prade.estimating.levels.error_bars import AT_ONCE
from prade.queries.marginal import Marginal
from prade.reporting.facts import Facts, View, cells_of, deviations
from prade.reporting.html import packed

if TYPE_CHECKING:
    from prade.estimating.levels.estimates import Estimates

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
