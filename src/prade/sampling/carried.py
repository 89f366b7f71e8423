"""A release as the public table of the next one: weighted rows whose tables are those of its estimates.

A group's estimate gives a weight to every public row of the support. The rows that carry it on are, for every group,

    kept      rows whose weight is above a threshold c, with their weight
    drawn     of the others, a systematic sample along an order in which neighbours are alike, each with the weight c

so that about as many are left as `MOST_ROWS` allows for each group, and then their weights are raked until all one-way
tables and all tables that were measured are the estimate's. Nothing in this is random.

The file also has what the release learned about change: by how much its groups differed from their own rows of the year
before (`a` of `prade.estimating.levels.smoothing`), which is what the next release expects (`change` of `Settings`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.compiled import systematic
from prade.core.documents import json_value, structured
from prade.core.errors import DataError, Remedy
from prade.data.public.table import PublicFiles, PublicTable
from prade.data.read.files import HEADER
from prade.data.read.tables import PARQUET, file_format, write_table
from prade.estimating.levels.estimates import Estimates, kept_estimates
from prade.planning.plan import Plan, public_of
from prade.planning.settings import Settings
from prade.planning.task import Task
from prade.queries.workload import Workload
from prade.release.derived_files import CARRIED, KEPT_CARRIED, check_kept, is_kept, recorded
from prade.release.release import Release, file_hash
from prade.sampling.draw import ordering
from prade.sampling.table import TableOfRows, numbers_of_rows

FORMAT = 1
WEIGHT = "prade:carried"  # name of the column of weights
MOST_ROWS = 200_000  # of all groups together: about as many as estimates start from
FEWEST_ROWS = 500  # of each group
SWEEPS = 20  # of raking, which changes weights by less than a thousandth after a few
OFFSET = 0.5  # of the systematic sample: nothing is random


class Carried(msgspec.Struct):
    """The header of the file: the release that it was made from, and what that learned about change."""

    format: int
    release: str
    estimates: str
    change: float | None


def carried_on(release: Release, task: Task, public: Any = None, *, other_people: bool = False) -> PublicTable:
    """A release as the public table of the next one: its estimates as weighted rows, in the release's folder.

    The file is written if it is not there. `public` is the release's public table, if its files have moved or lie
    outside the folder that the release is in.
    """
    if not other_people:
        need_same_people(release, task)
    need_same_kind(release, task)
    estimates, table = kept_estimates(release), public_of(release.plan, public)
    path, record = release.path / CARRIED, file_hash(release.path / "estimates.json")
    if is_kept(release, KEPT_CARRIED):
        check_kept(release, KEPT_CARRIED)
    if not is_kept(release, KEPT_CARRIED) or header_of(path).estimates != record:
        header = Carried(FORMAT, release.fingerprint, record, learned_change(estimates))
        with recorded(release, KEPT_CARRIED):
            rows = carried_rows(estimates, table)
            noted = {**(rows.schema.metadata or {}), HEADER: json.dumps(msgspec.to_builtins(header))}
            write_table(rows.replace_schema_metadata(noted), path)
    return PublicTable(PublicFiles.at([path], WEIGHT))


def header_of(path: Path) -> Carried:
    """The header of a file that `carried_on` wrote."""
    text = (PARQUET.schema(path).metadata or {}).get(HEADER.encode())
    return structured(json_value(text or "{}"), Carried)


def expecting_change(plan: Plan, table: PublicTable) -> Plan:
    """The plan with the change that the release behind its public table found; with any other table, the same plan."""
    if table.files is None or table.weight != WEIGHT or file_format(path := Path(table.files.files[0])) is not PARQUET:
        return plan
    if (change := header_of(path).change) is None:
        return plan
    return plan.changed(settings=replace(plan.settings or Settings(), change=change))


def need_same_kind(release: Release, task: Task) -> None:
    """Refuse a task that the release's estimates cannot be the prior of: other columns, or other levels."""
    plan = release.plan
    if plan.schema != task.schema:
        mine, theirs = set(plan.schema.coded), set(task.schema.coded)
        unlike = sorted(mine ^ theirs) or [name for name in plan.schema.coded if plan.schema[name] != task.schema[name]]
        raise DataError(
            f"{release.path} was made with another schema, which differs in {', '.join(unlike[:5]) or 'groups'}; "
            "a release can be the prior of tables with the same columns, values and edges: use its schema, or give "
            "public files"
        )
    lacking = [name for name in task.levels[-1] if name not in plan.levels[-1].by]
    if lacking:
        raise DataError(
            f"{release.path} has no {', '.join(lacking)}: its groups are {plan.levels[-1].name}; plan the same levels, "
            "or give public files"
        )


def need_same_people(release: Release, task: Task) -> None:
    """Refuse another data set or unit than the release's: the same people would have two budgets in the ledger."""
    plan = release.plan
    for what, theirs, mine in (("data set", plan.dataset, task.dataset), ("unit", plan.unit, task.unit)):
        if theirs != mine:
            raise DataError(
                f"{release.path} is about the {what} {theirs!r}, and this plan about the {what} {mine!r}; the same "
                "people must have one budget",
                remedy=Remedy("other_people", what),
            )


def learned_change(estimates: Estimates) -> float | None:
    """The most likely a of the last level: how much groups differed from their own public rows; None if unknown."""
    kind = estimates.levels[-1].kinds.get(True)
    if kind is None or not kind.scales:
        return None
    return float(np.exp(np.mean([math.log((each.a + each.b) * each.typical) for each in kind.scales])))


# ---------------------------------------------------------------------- rows and weights


def carried_rows(estimates: Estimates, public: PublicTable) -> pa.Table:
    """Public rows for every group of the last level, with the group's values and the rows' weights.

    There are about `MOST_ROWS` in all, and at least `FEWEST_ROWS` for each group.
    """
    prior, totals = estimates.support.public.prior, estimates.totals
    number = max(MOST_ROWS // max(int((totals > 0).sum()), 1), FEWEST_ROWS)
    order = ordering(prior.codes, prior.schema)
    parts = dict.fromkeys([*Workload.all_marginals(prior.schema, 1).parts, *estimates.foundation.parts])
    tables = [(part.cells(prior.schema, prior.codes), part.n_cells) for part in parts]

    def carried(group: int, weights: Floats) -> tuple[Ints, Floats]:
        if totals[group] <= 0:
            return np.empty(0, np.int64), np.empty(0)
        rows, kept = chosen_rows(weights / weights.sum(), number, order)
        return rows, totals[group] * raked(rows, kept, weights / weights.sum(), tables)

    each = list(estimates.map(carried))
    groups, sizes = np.arange(len(each)), np.array([len(rows) for rows, _ in each])
    drawn = estimates.support.numbers(np.concatenate([rows for rows, _ in each]))
    of_rows = TableOfRows(estimates.plan, estimates.public, numbers_of_rows(estimates), public, 0)
    table = of_rows.rows_of(groups, sizes, drawn)
    if (person := estimates.plan.unit.person_id) is not None:
        table = table.drop_columns([person])
    return table.append_column(WEIGHT, pa.array(np.concatenate([weights for _, weights in each])))


def chosen_rows(weights: Floats, number: int, order: Ints) -> tuple[Ints, Floats]:
    """About that many rows that stand for all, and their weights; `weights` add up to 1.

    >>> rows, kept = chosen_rows(np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), 3, np.arange(6))
    >>> rows, kept
    (array([0, 2, 4]), array([0.5 , 0.25, 0.25]))
    """
    positive = np.flatnonzero(weights)
    if len(positive) <= number:
        return positive, weights[positive]
    certain = np.zeros(len(weights), np.bool_)
    while True:
        left, mass = number - int(certain.sum()), float(weights[~certain].sum())
        beyond = ~certain & (weights * left >= mass)
        if left <= 0 or not beyond.any():
            break
        certain |= beyond
    kept = np.flatnonzero(certain)
    if left <= 0:
        return kept, weights[kept] / weights[kept].sum()
    drawn = order[systematic(np.where(certain, 0.0, weights)[order], left, OFFSET)]
    return np.concatenate([kept, drawn]), np.concatenate([weights[kept], np.full(left, mass / left)])


def raked(rows: Ints, kept: Floats, weights: Floats, tables: Sequence[tuple[NDArray[Any], int]]) -> Floats:
    """The weights of some rows, changed until their tables are those of all rows' weights.

    `tables` have the cell of every row, and the number of cells. A cell without rows is left out.
    """
    some = [(cells[rows], size, mass_per_cell(cells, weights, size + 1)[:size]) for cells, size in tables]
    for _ in range(SWEEPS):
        for cells, size, wanted in some:
            mass = mass_per_cell(cells, kept, size + 1)[:size]
            factor = np.divide(wanted, mass, out=np.ones(size), where=mass > 0)
            kept = kept * np.append(factor, 1.0)[cells]
    return np.asarray(kept / kept.sum())
