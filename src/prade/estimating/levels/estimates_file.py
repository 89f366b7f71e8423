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
from prade.estimating.levels.variation import blocks_of
from prade.planning.plan import Plan
from prade.planning.settings import Settings, settings_of_file
from prade.queries.parts import Part

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 5
LARGEST_TOTAL = 2**53  # rows of a group: noisy counts are not larger, and doubles hold it exactly


class Header(msgspec.Struct):
    """The header of the file: how the estimates were made, and a fingerprint of their inputs."""

    format: int
    settings: dict[str, Any]
    inputs: str


class Row(msgspec.Struct):
    """One group's estimate: `LevelEstimates`, where `spread` is called `fitted`."""

    group: str
    total: float
    status: Status
    kl: float
    gap: float
    multipliers: list[float]
    spread: list[list[float]] | None
    excess: list[float] | None
    emptied: bytes | None
    apart: list[list[float]] | None
    rows_variance: float


def _rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table that has the columns and types that are written."""
    import pyarrow as pa

    numbers = pa.list_(pa.float64())
    wanted = {
        **dict.fromkeys(("level", "group", "status"), pa.string()),
        **dict.fromkeys(("total", "kl", "gap", "rows_variance"), pa.float64()),
        **dict.fromkeys(("multipliers", "excess"), numbers),
        **dict.fromkeys(("spread", "apart"), pa.list_(numbers)),
        "emptied": pa.binary(),
        "alike": pa.null(),
    }
    given = {field.name: field.type for field in table.schema}
    fits = len(given) == table.num_columns and given.keys() == wanted.keys()
    if not fits or any(kind not in (wanted[name], pa.null()) for name, kind in given.items()):  # null: no value at all
        raise Malformed("the columns are not those that are written")
    return structured(table.drop_columns(["alike"]).to_pylist(), list[Row])


def save_levels(
    path: str | PathLike[str], plan: Plan, settings: Settings, levels: Sequence[LevelEstimates], inputs: str
) -> None:
    """Write a parquet file: one row per group of each level; `inputs` is a fingerprint of what they were made from."""
    import pyarrow as pa

    tables = []
    for planned, level, grouping in zip(plan.levels, levels, plan.groupings, strict=True):
        columns: dict[str, Any] = {
            "level": [planned.name] * len(grouping),
            "group": grouping.labels(),
            "total": level.totals,
            "status": level.status,
            "kl": level.kl,
            "gap": level.gap,
            "multipliers": level.multipliers,
            "alike": None,  # weights of public groups, before version 0.10
            "spread": level.fitted,
            "excess": level.excess,
            "emptied": level.emptied,
            "apart": level.apart,
            "rows_variance": level.rows_variance,
        }
        none = [None] * len(grouping)
        tables.append(
            {k: each.tolist() if isinstance(each, np.ndarray) else each or none for k, each in columns.items()}
        )
    joined = pa.table({name: [value for each in tables for value in each[name]] for name in tables[0]})
    write_with_header(joined, {"format": FORMAT, "settings": asdict(settings), "inputs": inputs}, path)


def read_levels(
    path: str | PathLike[str], plan: Plan, inputs_of: Callable[[Settings], str]
) -> tuple[Settings, list[LevelEstimates]]:
    """Read what `save_levels` wrote; `inputs_of` gives the fingerprint that the inputs must have for some settings."""
    from prade.data.read.tables import read_table

    table, levels = read_table(path), []
    with damage_reported(path, "saved estimates", AGAIN):
        header = read_header(table, Header, path, FORMAT)
        if header.format < FORMAT:
            raise IncompatibleFile(f"{path} was made by an earlier version of prade: {AGAIN}")
        written = settings_of_file(header.settings)
        settings = structured(written, Settings)
        if asdict(settings) != written:
            raise Malformed("some settings are missing")
        if inputs_of(settings) != header.inputs:
            raise IncompatibleFile(
                f"{path} was made from another release or public table; remove it, or give the same ones"
            )
        rows = _rows_of(table)
        for level, grouping in enumerate(plan.groupings):
            mine, rows = rows[: len(grouping)], rows[len(grouping) :]
            if [row.group for row in mine] != grouping.labels():
                raise Malformed("rows are missing, or in another order")
            levels.append(_level_of(parts_of(plan, level), mine))
        if rows:
            raise Malformed("there are more rows than groups")
    return settings, levels


def _level_of(parts: tuple[Part, ...], rows: Sequence[Row]) -> LevelEstimates:
    """The estimates of a level, if the numbers of its groups can be some."""

    def numbers(name: str, *shape: int) -> Floats:
        try:
            found = np.array([getattr(row, name) for row in rows], np.float64)
        except (TypeError, ValueError):  # some groups have none, or others than the rest
            found = np.full(1, np.nan)
        if found.shape != (len(rows), *shape) or not np.isfinite(found).all():
            raise Malformed(f"{name} is not a finite number for each cell or block of every group")
        return found

    def optional(name: str, *shape: int) -> Floats | None:
        return None if all(getattr(row, name) is None for row in rows) else numbers(name, *shape)

    totals, variance, size = numbers("total"), numbers("rows_variance"), sum(part.n_cells for part in parts)
    if not ((totals >= 0) & (totals <= LARGEST_TOTAL) & (variance >= 0)).all():
        raise Malformed("a total is not a number of rows, or its variance is negative")
    return LevelEstimates(
        parts,
        totals,
        numbers("multipliers", size),
        tuple(row.status.value for row in rows),
        np.array([row.kl for row in rows]),
        np.array([row.gap for row in rows]),
        variance,
        optional("spread", len(blocks_of(parts)), 6),
        optional("excess", size),
        optional("apart", 4, size),
        tuple(row.emptied for row in rows),
    )
