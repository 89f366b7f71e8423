"""The file of a release's estimates: what is written, and how every row is checked before its numbers are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    """One group's estimate.

    `spread` are the numbers a, w and `shared` of its smoothers, the ratio that its variances are multiplied by, and
    the means of a and w; `excess` are the variances of its cells beyond them; `apart` are a, w and their means for each
    cell where columns differ on their own. `rows_variance` is the variance of the error of `total`.
    """

    group: str
    total: float
    status: Status
    kl: float
    gap: float
    multipliers: list[float]
    spread: list[list[float]] | None
    excess: list[float] | None
    emptied: bytes | None
    apart: list[list[float]] | None = None
    rows_variance: float | None = None

    def check(self) -> None:
        """Refuse numbers that no estimate has, and lists of the wrong length."""
        numbers = [self.multipliers, self.excess or [], *(self.spread or []), *(self.apart or [])]
        finite = np.isfinite(np.concatenate([np.asarray(each, np.float64) for each in numbers])).all()
        if not 0 <= self.total <= LARGEST_TOTAL or not 0 <= (self.rows_variance or 0) < np.inf or not finite:
            raise Malformed(f"{self.group}: a number is not finite, or not a number of rows")
        if any(len(each) != 6 for each in self.spread or []):
            raise Malformed(f"{self.group}: not six numbers for each block")
        if self.apart is not None and len(self.apart) != 4:
            raise Malformed(f"{self.group}: not four numbers for each cell")


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a table that has the columns and types that are written."""
    import pyarrow as pa

    numbers = pa.list_(pa.float64())
    wanted = {
        **dict.fromkeys(("level", "group", "status"), pa.string()),
        **dict.fromkeys(("total", "kl", "gap", "rows_variance"), pa.float64()),
        **dict.fromkeys(("multipliers", "excess"), numbers),
        **dict.fromkeys(("spread", "apart"), pa.list_(numbers)),
        "emptied": pa.binary(),
        "alike": pa.null(),  # weights of public groups, before version 0.10
    }
    given = {field.name: field.type for field in table.schema}
    fits = len(given) == table.num_columns and given.keys() == wanted.keys()
    if not fits or any(kind not in (wanted[name], pa.null()) for name, kind in given.items()):  # null: no value at all
        raise Malformed("the columns are not those that are written")
    rows = structured(table.drop_columns(["alike"]).to_pylist(), list[Row])
    for row in rows:
        row.check()
    return rows


# ---------------------------------------------------------------------- levels


def save_levels(
    path: str | PathLike[str], plan: Plan, settings: Settings, levels: Sequence[LevelEstimates], inputs: str
) -> None:
    """Write a parquet file: one row per group of each level; `inputs` is a fingerprint of what they were made from."""
    import pyarrow as pa

    tables = []
    for planned, level, grouping in zip(plan.levels, levels, plan.groupings, strict=True):
        size = len(grouping)
        columns: dict[str, list[Any]] = {
            "level": [planned.name] * size,
            "group": grouping.labels(),
            "total": level.totals.tolist(),
            "status": list(level.status),
            "kl": level.kl.tolist(),
            "gap": level.gap.tolist(),
            "multipliers": level.multipliers.tolist(),
            "alike": [None] * size,
            "spread": [None] * size if level.fitted is None else level.fitted.tolist(),
            "excess": [None] * size if level.excess is None else level.excess.tolist(),
            "emptied": list(level.emptied),
            "apart": [None] * size if level.apart is None else level.apart.tolist(),
            "rows_variance": [None] * size if level.rows_variance is None else level.rows_variance.tolist(),
        }
        tables.append(columns)
    joined = pa.table({name: [value for each in tables for value in each[name]] for name in tables[0]})
    write_with_header(joined, {"format": FORMAT, "settings": asdict(settings), "inputs": inputs}, path)


def read_levels(
    path: str | PathLike[str], plan: Plan, inputs: str | None = None
) -> tuple[Settings, list[LevelEstimates]]:
    """Read what `save_levels` wrote; `inputs`, where given, must be those that the estimates were made from."""

    from prade.data.read.tables import read_table

    table, levels = read_table(path), []
    with damage_reported(path, "saved estimates", AGAIN):
        header = _header(table, path)
        if inputs not in (None, header.inputs):
            raise IncompatibleFile(
                f"{path} was made from another release or public table; remove it, or give the same ones"
            )
        settings = _settings(header)
        rows = rows_of(table)
        for level, grouping in enumerate(plan.groupings):
            mine, rows = rows[: len(grouping)], rows[len(grouping) :]
            if [row.group for row in mine] != grouping.labels():
                raise Malformed("rows are missing, or in another order")
            levels.append(level_of(parts_of(plan, level), [KeptGroup.read(row) for row in mine]))
        if rows:
            raise Malformed("there are more rows than groups")
    return settings, levels


def settings_in(path: str | PathLike[str]) -> Settings:
    """The settings with which the estimates of a file were made."""
    from prade.data.read.tables import read_table

    with damage_reported(path, "saved estimates", AGAIN):
        return _settings(_header(read_table(path), path))


def _header(table: pa.Table, path: str | PathLike[str]) -> Header:
    header = read_header(table, Header, path, FORMAT)
    if header.format < FORMAT:
        raise IncompatibleFile(f"{path} was made by an earlier version of prade: {AGAIN}")
    return header


def _settings(header: Header) -> Settings:
    written = settings_of_file(header.settings)
    settings = structured(written, Settings)
    if asdict(settings) != written:
        raise Malformed("some settings are missing")
    return settings


@dataclass(frozen=True)
class KeptGroup:
    """What is kept of one group's estimate."""

    total: float
    status: str
    kl: float
    gap: float
    multipliers: Floats
    fitted: Floats | None
    excess: Floats | None
    apart: Floats | None
    emptied: bytes | None
    rows_variance: float | None

    @classmethod
    def read(cls, row: Row) -> KeptGroup:
        """From a row of the file."""
        optional = row.spread, row.excess, row.apart
        fitted, excess, apart = (None if each is None else np.array(each) for each in optional)
        known = row.total, row.status.value, row.kl, row.gap, np.array(row.multipliers)
        return cls(*known, fitted, excess, apart, row.emptied, row.rows_variance)


def level_of(parts: tuple[Part, ...], kept: Sequence[KeptGroup]) -> LevelEstimates:
    """The estimates of a level, if those of its groups belong together."""
    fitted = [each.fitted for each in kept if each.fitted is not None]
    excess = [each.excess for each in kept if each.excess is not None]
    apart = [each.apart for each in kept if each.apart is not None]
    rows_variance = [each.rows_variance for each in kept if each.rows_variance is not None]
    if any(len(each) not in (0, len(kept)) for each in (fitted, excess, apart, rows_variance)):
        raise Malformed("some groups have values that others lack")
    size = sum(part.n_cells for part in parts)
    if any(each.shape != (4, size) for each in apart) or any(
        len(each) != size for each in (*(one.multipliers for one in kept), *excess)
    ):
        raise Malformed("not one number for each cell")
    if any(len(each) != len(blocks_of(parts)) for each in fitted):
        raise Malformed("not six numbers for each block")
    return LevelEstimates(
        parts,
        np.array([each.total for each in kept]),
        np.stack([each.multipliers for each in kept]),
        tuple(each.status for each in kept),
        np.array([each.kl for each in kept]),
        np.array([each.gap for each in kept]),
        np.stack(fitted) if fitted else None,
        np.stack(excess) if excess else None,
        np.stack(apart) if apart else None,
        tuple(each.emptied for each in kept),
        np.array(rows_variance) if rows_variance else None,
    )
