"""A schema proposed from a public table: value lists where values are few, natural bins where they are many.

The proposal is a start. Save it, read it, and correct it from the codebook: a value that the public table happens not
to have, but that a private row may have, belongs in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.column import LARGEST_NUMBER, Column, closest
from prade.errors import SchemaError
from prade.matching import is_text, numbers_of
from prade.tables import read_table

# A text column is one of numbers when at most this many of its distinct cells are none: "N", "NA", "." and the like.
MOST_SENTINELS = 1


def infer_columns(
    table: Any,
    *,
    groups: Sequence[str] = (),
    weight: str | None = None,
    skip: Sequence[str] = (),
    max_values: int = 64,
    bins: int = 20,
) -> list[Column]:
    """Propose a column for each column of a PUBLIC table, in its order, but for `weight` and those in `skip`.

    At most `max_values` distinct text, true/false or whole-number values make a categorical column; more numbers than
    that make a numeric one of about `bins` bins, with rounded quantiles as edges. Columns in `groups` become group
    columns with the values seen. Text with more values than `max_values` has no order to bin by: name it in
    `groups`, in `skip`, or raise `max_values`.
    """
    if max_values < 2 or bins < 2:
        raise SchemaError(f"max_values is {max_values} and bins is {bins}; both must be 2 or more")
    found = read_table(table)
    groups, skip = _names(groups), _names(skip)
    for name in (*groups, *skip, *([weight] if weight is not None else [])):
        if name not in found.column_names:
            raise SchemaError(f"the table has no column {name!r}{closest(name, found.column_names)}")
    columns: list[Column] = []
    too_many: list[str] = []
    for name in found.column_names:
        if name == weight or name in skip:
            continue
        proposed = _propose(name, found[name], name in groups, max_values, bins)
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


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _propose(name: str, cells: Any, group: bool, max_values: int, bins: int) -> Column | None:
    import pyarrow as pa

    cells = cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells
    counted = cells.value_counts()
    values, counts = counted.field("values"), counted.field("counts").to_numpy()
    empty = values.is_null(nan_is_null=pa.types.is_floating(values.type)).to_numpy(zero_copy_only=False)
    missing = bool(empty.any())
    values, counts = values.filter(pa.array(~empty)), counts[~empty]
    if len(values) == 0:
        return None
    if group:
        return Column(name, "group", values=_sorted(values.to_pylist()))
    if pa.types.is_boolean(values.type):
        return Column(name, "categorical", values=_sorted(values.to_pylist()), missing=missing)
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return _dates(name, values, counts, missing, bins)
    numbers = numbers_of(Column(name, "numeric", edges=(0,)), values)
    no_number = np.isnan(numbers)
    if is_text(values.type):
        written = values.to_pylist()
        codes = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in written)
        if codes or no_number.sum() > MOST_SENTINELS or no_number.all():
            few = len(values) <= max_values
            return Column(name, "categorical", values=_sorted(written), missing=missing) if few else None
        missing = missing or bool(no_number.any())
    numbers, counts = numbers[~no_number], counts[~no_number]
    finite = np.abs(numbers) <= LARGEST_NUMBER
    return _numbers(name, numbers[finite], counts[finite], missing, max_values, bins)


def _sorted(values: list[Any]) -> tuple[Any, ...]:
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return tuple(sorted(int(value) for value in values) if whole else sorted(values))


def _numbers(
    name: str, numbers: NDArray[np.float64], counts: NDArray[Any], missing: bool, max_values: int, bins: int
) -> Column | None:
    if not len(numbers):
        return None
    distinct, place = np.unique(numbers, return_inverse=True)
    seen = np.bincount(place, weights=counts)
    whole = bool((distinct == np.floor(distinct)).all()) and float(np.abs(distinct).max()) < 2**53
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
    edges = edges if len(edges) else distinct[:1]
    return Column(
        name,
        "numeric",
        edges=tuple(float(edge) for edge in edges),
        min=float(distinct[0]),
        max=float(distinct[-1]),
        missing=missing,
        dates=True,
    )


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
