"""A schema proposed from a public table: value lists where values are few, natural bins where they are many.

The proposal is a start. Save it, read it, and correct it from the codebook: a value that the public table happens not
to have, but that a private row may have, belongs in the list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import SchemaError
from prade.core.words import closest
from prade.data.cell_types import python_values, require_plain_type
from prade.data.cells import is_text
from prade.data.column import LARGEST_NUMBER, LARGEST_WHOLE, Column
from prade.data.matching import numbers_of
from prade.data.tables import distinct_values, group_cells, plain_cells, read_table

# A text column is one of numbers when at most this many of its distinct cells are none: "N", "NA", "." and the like.
MOST_SENTINELS = 1


def infer_columns(
    table: Any, groups: tuple[str, ...], weight: str | None, skip: tuple[str, ...], max_values: int, bins: int
) -> list[Column]:
    """The columns that `Schema.infer` proposes; its arguments are explained there."""
    if max_values < 2 or bins < 2:
        raise SchemaError(f"max_values is {max_values} and bins is {bins}; both must be 2 or more")
    found = read_table(table)
    for name in (*groups, *skip, *([weight] if weight is not None else [])):
        if name not in found.column_names:
            raise SchemaError(f"the table has no column {name!r}{closest(name, found.column_names)}")
    columns: list[Column] = []
    too_many: list[str] = []
    for name in found.column_names:
        if name == weight or name in skip:
            continue
        cells = group_cells(table, name) if name in groups else found[name]
        proposed = _propose(name, cells, name in groups, max_values, bins)
        if proposed is None:
            too_many.append(name)
        else:
            columns.append(proposed)
    if too_many:
        raise SchemaError(
            f"more than {max_values} different texts, or none at all, in {', '.join(too_many)}; name such columns in "
            "skip=, name places and years in groups=, or raise max_values"
        )
    return columns


def _propose(name: str, cells: Any, group: bool, max_values: int, bins: int) -> Column | None:
    import pyarrow as pa

    require_plain_type(name, cells.type)
    counted = plain_cells(cells).value_counts()
    values, counts = counted.field("values"), counted.field("counts").to_numpy()
    empty = values.is_null(nan_is_null=pa.types.is_floating(values.type)).to_numpy(zero_copy_only=False)
    missing = bool(empty.any())
    values, counts = values.filter(pa.array(~empty)), counts[~empty]
    if len(values) == 0:
        return None
    if group:
        return Column(name, "group", values=tuple(sorted(distinct_values(values))))
    if pa.types.is_boolean(values.type):
        return Column(name, "categorical", values=tuple(sorted(values.to_pylist())), missing=missing)
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return _dates(name, values, counts, missing, bins)
    numbers = numbers_of(Column(name, "numeric", edges=(0,)), values)
    no_number = np.isnan(numbers)
    if is_text(values.type):
        written = python_values(values)
        codes = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in written)
        if codes or no_number.sum() > MOST_SENTINELS or no_number.all():
            few = len(values) <= max_values
            return Column(name, "categorical", values=tuple(sorted(written)), missing=missing) if few else None
        missing = missing or bool(no_number.any())
    numbers, counts = numbers[~no_number], counts[~no_number]
    finite = np.abs(numbers) <= LARGEST_NUMBER
    return _numbers(name, numbers[finite], counts[finite], missing, max_values, bins)


def _numbers(
    name: str, numbers: NDArray[np.float64], counts: NDArray[Any], missing: bool, max_values: int, bins: int
) -> Column | None:
    if not len(numbers):
        return None
    distinct, place = np.unique(numbers, return_inverse=True)
    seen = np.bincount(place, weights=counts)
    whole = bool((distinct == np.floor(distinct)).all()) and float(np.abs(distinct).max()) < LARGEST_WHOLE
    if len(distinct) <= max_values and (whole or len(distinct) <= bins):
        values = tuple(int(value) for value in distinct) if whole else tuple(float(value) for value in distinct)
        return Column(name, "categorical", values=values, missing=missing)
    edges = _rounded_quantiles(distinct, seen, bins)
    low, high = float(distinct[0]), float(distinct[-1])
    return Column(name, "numeric", edges=edges, integer=whole, min=low, max=high, missing=missing)


def _dates(name: str, values: Any, counts: NDArray[Any], missing: bool, bins: int) -> Column:
    days = np.floor(numbers_of(Column(name, "numeric", edges=(0.0,), dates=True), values))
    distinct, place = np.unique(days, return_inverse=True)
    seen = np.bincount(place, weights=counts)
    edges = _quantiles(distinct, seen, bins) if len(distinct) > bins else distinct[1:]
    low, high = (float(distinct[0]), float(distinct[-1])) if len(distinct) > 1 else (None, None)
    edges = edges if len(edges) else distinct[-1:]  # one day only: what comes before it, and the rest
    return Column(name, "numeric", edges=tuple(map(float, edges)), min=low, max=high, missing=missing, dates=True)


def _quantiles(distinct: NDArray[np.float64], seen: NDArray[Any], bins: int) -> NDArray[np.float64]:
    """The values where a further 1 / bins of the rows begins, each once, the smallest value left out."""
    reached = np.cumsum(seen) / seen.sum()
    wanted = np.arange(1, bins) / bins
    places = np.unique(np.searchsorted(reached, wanted, side="left"))
    return distinct[places[places > 0]]


def _rounded_quantiles(distinct: NDArray[np.float64], seen: NDArray[Any], bins: int) -> tuple[float, ...]:
    """Quantiles rounded to as few digits as keep them apart, so that a person would have written them."""
    raw = _quantiles(distinct, seen, bins)
    raw = raw if len(raw) else distinct[1:2]
    # Half the distance from the edge before is what rounding may use up.
    rooms = np.diff(np.concatenate([distinct[:1], raw])) / 2
    edges = sorted({_round_within(float(edge), float(room)) for edge, room in zip(raw, rooms, strict=True)})
    inside = tuple(edge for edge in edges if distinct[0] < edge <= distinct[-1])
    return inside or (float(raw[0]),)


def _round_within(number: float, room: float) -> float:
    """The number with the fewest digits that is at most `room` away."""
    for digits in range(1, 17):
        rounded = float(f"{number:.{digits}g}")
        if abs(rounded - number) <= room:
            return rounded
    return float(number)
