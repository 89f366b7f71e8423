"""The file of a release's estimates: what is written, and how every row is checked before its numbers are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from prade.core.arrays import Floats
from prade.core.documents import Malformed, structured
from prade.data.public.public import AGAIN
from prade.data.read.files import IncompatibleFile, damage_reported, read_header, write_with_header
from prade.estimating.estimate import Status
from prade.estimating.levels.answers import parts_of
from prade.estimating.levels.distributions import LevelEstimates
from prade.estimating.levels.foundation import Tilt, groupings_of
from prade.estimating.levels.group_fits import Made
from prade.estimating.levels.random_effects import LARGEST, columns_of
from prade.estimating.levels.tree import Kind
from prade.estimating.levels.variation import blocks_of
from prade.planning.plan import Plan
from prade.planning.settings import Settings, settings_of_file

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 6
LARGEST_TOTAL = 2**53  # rows of a group: noisy counts are not larger, and doubles hold it exactly


class Models(msgspec.Struct):
    """The models of a level: of groups that start from public rows of their own, and of the others."""

    own: Kind | None
    others: Kind | None


class Header(msgspec.Struct):
    """The header of the file: how the estimates were made, a fingerprint of their inputs, and the models by level."""

    format: int
    settings: dict[str, Any]
    inputs: str
    models: list[Models]


class Row(msgspec.Struct):
    """A group of a level; those of the last one have an estimate."""

    level: int
    group: str
    total: float
    rows_variance: float
    scale: float
    status: Status | None
    kl: float | None
    gap: float | None
    multipliers: list[float] | None
    emptied: bytes | None


def save_estimates(
    path: str | PathLike[str],
    plan: Plan,
    settings: Settings,
    levels: Sequence[LevelEstimates],
    made: Sequence[Made],
    inputs: str,
) -> None:
    """Write a parquet file: one row per group of each level; `inputs` is a fingerprint of what they were made from."""
    import pyarrow as pa

    groupings, rows = groupings_of(plan), []
    for number, (grouping, level) in enumerate(zip(groupings, levels, strict=True)):
        numbers = zip(
            grouping.labels(), level.totals.tolist(), level.rows_variance.tolist(), level.scale.tolist(), strict=True
        )
        rows += [
            {"level": number, "group": name, "total": n, "rows_variance": v, "scale": s} for name, n, v, s in numbers
        ]
    for row, each in zip(rows[-len(made) :], made, strict=True):
        multipliers, emptied = each.tilt.multipliers.tolist(), each.tilt.emptied
        row |= {"status": each.status, "kl": each.kl, "gap": each.gap, "multipliers": multipliers, "emptied": emptied}
    models = [Models(each.kinds.get(True), each.kinds.get(False)) for each in levels]
    header = msgspec.to_builtins(Header(FORMAT, asdict(settings), inputs, models))
    write_with_header(pa.Table.from_pylist(rows, pa.schema(_types())), header, path)


def _types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    numbers = dict.fromkeys(("total", "rows_variance", "scale", "kl", "gap"), pa.float64())
    texts = dict.fromkeys(("group", "status"), pa.string())
    given = {"level": pa.int64(), **numbers, **texts, "multipliers": pa.list_(pa.float64()), "emptied": pa.binary()}
    return {name: given[name] for name in Row.__struct_fields__}


def read_estimates(
    path: str | PathLike[str], plan: Plan, inputs_of: Callable[[Settings], str]
) -> tuple[Settings, list[LevelEstimates], list[Made]]:
    """Read what `save_estimates` wrote; `inputs_of` gives the fingerprint of the inputs for some settings."""
    from prade.data.read.tables import read_table

    table = read_table(path)
    with damage_reported(path, "saved estimates", AGAIN):
        earlier = f"{path} was made by an earlier version of prade: {AGAIN}"
        header = read_header(table, Header, path, FORMAT, earlier)
        written = settings_of_file(header.settings)
        settings = structured(written, Settings)
        if asdict(settings) != written:
            raise Malformed("some settings are missing")
        if inputs_of(settings) != header.inputs:
            raise IncompatibleFile(
                f"{path} was made from another release or public table; remove it, or give the same ones"
            )
        if {field.name: field.type for field in table.schema} != _types():
            raise Malformed("the columns are not those that are written")
        rows, groupings = structured(table.to_pylist(), list[Row]), groupings_of(plan)
        wanted = [(number, name) for number, each in enumerate(groupings) for name in each.labels()]
        if [(row.level, row.group) for row in rows] != wanted:
            raise Malformed("rows are missing, or in another order")
        if len(header.models) != len(groupings):
            raise Malformed("there is not one model for each level")
        levels, first = [], 0
        for grouping, models in zip(groupings, header.models, strict=True):
            mine, first = rows[first : first + len(grouping)], first + len(grouping)
            levels.append(_level_of(plan, mine, models))
        return settings, levels, [_made_of(plan, group, row) for group, row in enumerate(mine)]


def _level_of(plan: Plan, rows: Sequence[Row], models: Models) -> LevelEstimates:
    names = "total", "rows_variance", "scale"
    totals, variance, scale = (np.array([getattr(row, name) for row in rows]) for name in names)
    if not ((totals >= 0) & (totals <= LARGEST_TOTAL) & (variance >= 0) & np.isfinite(variance)).all():
        raise Malformed("a total is not a number of rows, or its variance is negative")
    if not ((scale > 0) & np.isfinite(scale)).all():
        raise Malformed("a group's scale is not a positive number")
    kinds = {own: kind for own, kind in ((True, models.own), (False, models.others)) if kind is not None}
    parts = parts_of(plan, 0)
    number, columns = len(blocks_of(parts)), columns_of(parts).shape[1]
    for kind in kinds.values():
        figures = [*kind.told, *[x for each in kind.scales for x in (each.a, each.b, each.k)]]
        widths = np.array([x for each in kind.scales for x in each.columns])
        sizes = {len(each.columns) for each in kind.scales} | {columns}
        if len(kind.scales) != number or len(kind.told) != number or len(sizes) > 1:
            raise Malformed("a model does not have the plan's cells and columns")
        if not (np.isfinite(figures).all() and min(figures) >= 0 and (np.abs(widths) <= LARGEST).all()):
            raise Malformed("a scale of a model is not a finite number of 0 or more")
    return LevelEstimates(totals, variance, scale, kinds)


def _made_of(plan: Plan, group: int, row: Row) -> Made:
    """The estimate of a group of the last level, if its numbers can be those of one."""
    numbers: Floats = np.array(row.multipliers if row.multipliers is not None else [np.nan], np.float64)
    if len(numbers) != sum(part.n_cells for part in parts_of(plan, 0)) or not np.isfinite(numbers).all():
        raise Malformed("multipliers is not a finite number for each cell of every group")
    if row.status is None or row.kl is None or row.gap is None:
        raise Malformed("a group of the last level has no status, kl or gap")
    return Made(Tilt(group, numbers, row.emptied), row.status.value, row.kl, row.gap)
