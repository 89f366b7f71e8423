"""What the releases of a chain say about one-way tables, year by year, and next year's tables, which follow from it.

The folder of every release that was carried on has a file of it: the noisy one-way tables of that release and of all
before it, with the variance of their noise, and those of the public table that the first one started from. Each release
adds its own year to the file of the one before, so that a chain needs no folder but the last.

Next year's tables are a forecast (`prade.estimating.levels.forecast`). Some are left as the last release has them:

    columns that some release of the chain did not measure in the groups of the last level
    cells in which the last release found something odd (`excess_variance` of `prade.estimating.levels.smoothing`), such
    as people who were rare before: they do not change as others do

All of it is post-processing of noisy answers that are paid for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Flags, Floats, mass_per_cell
from prade.core.errors import DataError
from prade.data.groups import Grouping
from prade.data.recurring_groups import is_time
from prade.data.tables import read_table, write_table
from prade.estimating.levels.blocks import MOST_SMOOTHED
from prade.estimating.levels.estimates import Estimates
from prade.estimating.levels.forecast import Forecast, Years, forecast
from prade.estimating.levels.level_smoothing import SMALLEST_SHARE
from prade.estimating.levels.variation import PublicVariation
from prade.queries.marginal import Marginal
from prade.release.release import file_hash

if TYPE_CHECKING:
    import pyarrow as pa

MOST_YEARS = 8  # the last ones: no trend goes on for ever


@dataclass(frozen=True)
class OneWayTable:
    """A column's table in one year: shares of the rows of each group, [groups, cells], and their noise's variances."""

    shares: Floats
    variance: Floats  # [groups]


@dataclass(frozen=True)
class PastYear:
    """The one-way tables of a year; `groups` are named without years and dates, and have `rows`."""

    groups: tuple[str, ...]
    rows: Floats
    tables: dict[str, OneWayTable]


@dataclass(frozen=True)
class NextYear:
    """The one-way tables to expect, [groups, cells] by column, and the forecast that they come from."""

    tables: dict[str, Floats]
    forecast: Forecast


def next_year(estimates: Estimates, past: Sequence[PastYear]) -> NextYear | None:
    """The tables to expect after the release of these estimates, the last of the past years; None if none follow."""
    schema, groups, every = (
        estimates.plan.schema,
        group_names(estimates.plan.groupings[-1]),
        forecast_columns(estimates),
    )
    columns = [name for name in every if all(name in year.tables for year in past)]
    if len(past) < 2 or len(groups) < 2 or not columns:
        return None
    number = np.repeat(np.arange(len(every)), [schema[name].size for name in every])
    mine = np.flatnonzero(np.isin(number, [every.index(name) for name in columns]))
    whole = estimates.cells.one_way.variation.variation
    variation = PublicVariation(*(each[np.ix_(mine, mine)] for each in (whole.between, whole.within)))
    found = forecast(_years(past, groups, columns), variation, number[mine])
    tables, start = {}, 0
    for name in columns:
        size = schema[name].size
        last = estimates.masses((estimates.public.prior.codes[name].astype(np.int64), size))
        wanted = np.maximum(found.shares[:, start : start + size], SMALLEST_SHARE * last)
        wanted = np.where(odd_cells(estimates, name) | (last == 0), last, wanted)
        tables[name] = wanted / wanted.sum(axis=1, keepdims=True)
        start += size
    return NextYear(tables, found)


def forecast_columns(estimates: Estimates) -> list[str]:
    """The columns whose cells vary together as `PublicCells.one_way` has it: of very many columns, the first ones."""
    columns, cells = [], 0
    for name in estimates.plan.schema.coded:
        if cells + estimates.plan.schema[name].size <= MOST_SMOOTHED:
            columns.append(name)
            cells += estimates.plan.schema[name].size
    return columns


def odd_cells(estimates: Estimates, column: str) -> Flags:
    """The cells of a column in which the answers of any level showed more than groups differ by."""
    found = np.zeros(estimates.plan.schema[column].size, np.bool_)
    for level in estimates.levels:
        start = 0
        for part in level.parts:
            if level.excess is not None and isinstance(part, Marginal) and column in part.columns:
                odd: Flags = (level.excess[:, start : start + part.n_cells].max(axis=0) > 0).reshape(part.sizes)
                found |= np.moveaxis(odd, part.columns.index(column), 0).reshape(len(found), -1).any(axis=1)
            start += part.n_cells
    return found


# ---------------------------------------------------------------------- the years


def past_years(estimates: Estimates, before: Sequence[PastYear] | None) -> list[PastYear]:
    """The years until that of some estimates; `before` are those of the release that they started from.

    It is None if they started from a public table, which is then the first year if it has the groups.
    """
    earlier = [public_year(estimates)] if before is None else list(before)
    return [*(year for year in earlier if year is not None), release_year(estimates)][-MOST_YEARS:]


def release_year(estimates: Estimates) -> PastYear:
    """The noisy one-way tables of a release, each from the most precise answer that has the column."""
    answers, totals = estimates.answers[-1], np.maximum(estimates.totals, 1.0)
    tables: dict[str, OneWayTable] = {}
    for part, counts, variance in zip(answers.parts, answers.counts, answers.variance.T, strict=True):
        if not isinstance(part, Marginal):
            continue
        for axis, name in enumerate(part.columns):
            size = part.sizes[axis]
            summed = np.moveaxis(counts.reshape(len(counts), *part.sizes), axis + 1, 1).reshape(len(counts), size, -1)
            noise = variance * summed.shape[2] / totals**2
            if name not in tables or noise.sum() < tables[name].variance.sum():
                tables[name] = OneWayTable(summed.sum(axis=2) / totals[:, None], noise)
    return PastYear(group_names(estimates.plan.groupings[-1]), np.asarray(estimates.totals), tables)


def public_year(estimates: Estimates) -> PastYear | None:
    """The one-way tables of the groups' own public rows, as many as vary like them (Kish, 1965); None without any."""
    prior, public = estimates.priors[-1], estimates.public
    if not prior.recurs.any():
        return None
    weights, size = public.prior.weights, len(public.groups)
    total, squares = (prior.recurring.sums(mass_per_cell(public.group, each, size)) for each in (weights, weights**2))
    tables = {}
    for name in public.prior.schema.coded:
        sums = prior.recurring.sums(estimates.support.group_sums((Marginal.of(public.prior.schema, [name]),)))
        tables[name] = OneWayTable(sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300), np.zeros(len(sums)))
    rows = np.where(prior.recurs, total**2 / np.maximum(squares, 1e-300), 0.0)
    return PastYear(group_names(estimates.plan.groupings[-1]), rows, tables)


def group_names(grouping: Grouping) -> tuple[str, ...]:
    """Names of groups that are the same every year: without years and dates, if no two are then alike."""
    columns = list(zip(*grouping.values, strict=True))
    timeless = [column for column in columns if not is_time(column)]
    for chosen in (timeless, columns):
        names = tuple(json.dumps([str(value) for value in row]) for row in zip(*chosen, strict=True))
        if len(set(names)) == len(grouping):
            break
    return names


def _years(past: Sequence[PastYear], groups: Sequence[str], columns: Sequence[str]) -> Years:
    """All years with the groups in one order; a group without a year has no rows there."""
    shares, variance, rows = [], [], []
    for year in past:
        place = {name: k for k, name in enumerate(year.groups)}
        number = np.array([place.get(name, -1) for name in groups])
        of_year = [year.tables[name] for name in columns]
        shares.append(np.concatenate([table.shares for table in of_year], axis=1)[number])
        each = [np.repeat(table.variance[:, None], table.shares.shape[1], axis=1) for table in of_year]
        variance.append(np.concatenate(each, axis=1)[number])
        rows.append(np.where(number >= 0, year.rows[number], 0.0))
    return Years(np.array(shares), np.array(variance), np.array(rows))


# ---------------------------------------------------------------------- the file


def write_past(past: Sequence[PastYear], path: Path) -> None:
    """Write a parquet file with one row for each year, group and column."""
    import pyarrow as pa

    lines = [
        (number, group, float(year.rows[k]), name, float(table.variance[k]), table.shares[k])
        for number, year in enumerate(past)
        for k, group in enumerate(year.groups)
        for name, table in year.tables.items()
    ]
    fields = ("year", "group", "rows", "column", "variance", "shares")
    write_table(pa.table(dict(zip(fields, map(list, zip(*lines, strict=True)), strict=True))), path)


def read_past(path: Path, digest: str) -> list[PastYear]:
    """What `write_past` wrote; `digest` is the hash of the file when it was written."""
    advice = "put the file back as it was, or start a new chain with public files (--public)"
    if not path.is_file():
        raise DataError(f"there is no {path}, in which the releases before that one are; {advice}")
    if file_hash(path) != digest:
        raise DataError(f"{path} has changed since it was made; {advice}")
    try:
        return _read(read_table(path))
    except (KeyError, ValueError, TypeError) as damage:
        raise DataError(f"{path} does not contain past years of a chain; {advice}") from damage


def _read(table: pa.Table) -> list[PastYear]:
    found: dict[int, dict[str, Any]] = {}
    for line in table.to_pylist():
        year = found.setdefault(line["year"], {"rows": {}, "tables": {}})
        year["rows"][line["group"]] = line["rows"]
        year["tables"].setdefault(line["column"], []).append((line["shares"], line["variance"]))
    return [
        PastYear(
            tuple(year["rows"]),
            np.array(list(year["rows"].values())),
            {
                name: OneWayTable(*(np.array(each) for each in zip(*of, strict=True)))
                for name, of in year["tables"].items()
            },
        )
        for _, year in sorted(found.items())
    ]
