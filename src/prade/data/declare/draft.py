"""Proposing a schema from a public table: lists where there are few distinct values, bins where there are many."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints
from prade.core.errors import SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.kinds import LARGEST_NUMBER
from prade.data.read.cells import (
    LARGEST_WHOLE,
    is_day,
    is_text,
    one_piece,
    plain_cells,
    python_values,
    require_plain_type,
)
from prade.data.read.coding import code_cells, numbers_of
from prade.data.read.tables import distinct_values, group_cells, read_table

# Ages at which people usually ask: five-year groups, and 18. Questions can only be asked at edges, and another edge
# would cost another budget.
AGE = re.compile(r"(^|[^a-z])age[psd]?($|[^a-z])", re.IGNORECASE)
USUAL_AGES = (5.0, 10.0, 15.0, 18.0, *map(float, range(20, 90, 5)))
OLDEST = 130


def infer_columns(
    table: Any, groups: tuple[str, ...], weight: str | None, skip: tuple[str, ...], max_values: int, bins: int
) -> list[Column]:
    """The columns that `Schema.infer` proposes; see there for the arguments."""
    if max_values < 2 or bins < 2:
        raise SchemaError(f"max_values is {max_values} and bins is {bins}", remedy="max_values")
    public = read_table(table)
    for name in (*groups, *skip, *([weight] if weight is not None else [])):
        if name not in public.column_names:
            raise SchemaError(f"the table has no column {name!r}{closest(name, public.column_names)}")
    proposed: dict[str, Column | None] = {}
    for name in public.column_names:
        if name != weight and name not in skip:
            cells = group_cells(table, name, public) if name in groups else public[name]
            proposed[name] = _propose(name, cells, name in groups, max_values, bins)
    columns = [column for column in proposed.values() if column is not None]
    if without := [name for name, column in proposed.items() if column is None]:
        message = f"these columns have more than {max_values} different texts, or no values at all: "
        raise SchemaError(message + ", ".join(without), remedy="draft")
    return columns


def _propose(name: str, cells: Any, group: bool, max_values: int, bins: int) -> Column | None:
    require_plain_type(name, cells.type)
    counted = plain_cells(cells).value_counts()
    values, counts = counted.field("values"), counted.field("counts").to_numpy()
    empty = values.is_null(nan_is_null=pa.types.is_floating(values.type)).to_numpy(zero_copy_only=False)
    missing = bool(empty.any())
    values, counts = values.filter(pa.array(~empty)), counts[~empty]
    if len(values) == 0 and not group:
        return Column(name, "categorical", missing=True)
    if group:
        return Column(name, "group", values=tuple(sorted(distinct_values(values))))
    if pa.types.is_boolean(values.type):
        return Column(name, "categorical", values=tuple(sorted(values.to_pylist())), missing=missing)
    if is_day(values.type):
        return _dates(name, values, counts, missing, bins)
    numbers = numbers_of(Column(name, "numeric", edges=(0,)), values)
    not_a_number = np.isnan(numbers)
    if is_text(values.type):
        texts = python_values(values)
        codes = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
        if codes or not_a_number.sum() > 1 or not_a_number.all():  # one, such as "N", stands for missing
            few = len(values) <= max_values
            return Column(name, "categorical", values=tuple(sorted(texts)), missing=missing) if few else None
        missing = missing or bool(not_a_number.any())
    finite = np.abs(numbers) <= LARGEST_NUMBER  # of NaN it is false
    if not finite.any():
        return None
    distinct, rows = _distinct(numbers[finite], counts[finite])
    whole = bool((distinct == np.floor(distinct)).all()) and float(np.abs(distinct).max()) < LARGEST_WHOLE
    # Fractions are measurements, however few there are: another table will have other ones in between.
    if (whole and len(distinct) <= max_values) or len(distinct) == 1:
        values = tuple(int(value) for value in distinct) if whole else tuple(float(value) for value in distinct)
        return Column(name, "categorical", values=values, missing=missing)
    low, high = float(distinct[0]), float(distinct[-1])
    edges: tuple[float, ...] = ()
    if whole and AGE.search(name) is not None and low >= 0 and high <= OLDEST:
        edges = tuple(age for age in USUAL_AGES if low < age <= high)
    if not 0 < len(edges) < bins:
        edges = _between(distinct) if len(distinct) <= bins else _rounded_quantiles(distinct, rows, bins)
    return Column(name, "numeric", edges=edges, integer=whole, min=low, max=high, missing=missing)


def _distinct(numbers: Floats, counts: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    """The distinct numbers, and of how many rows each is."""
    distinct, index = np.unique(numbers, return_inverse=True)
    return distinct, np.bincount(index, weights=counts)


def _dates(name: str, values: Any, counts: NDArray[Any], missing: bool, bins: int) -> Column:
    days = np.floor(numbers_of(Column(name, "numeric", edges=(0.0,), dates=True), values))
    distinct, rows = _distinct(days, counts)
    edges = _quantiles(distinct, rows, bins) if len(distinct) > bins else distinct[1:]
    low, high = (float(distinct[0]), float(distinct[-1])) if len(distinct) > 1 else (None, None)
    edges = edges if len(edges) else distinct[-1:]  # only one day: one bin for earlier days, one for the rest
    return Column(name, "numeric", edges=tuple(map(float, edges)), min=low, max=high, missing=missing, dates=True)


def _quantiles(distinct: Floats, rows: NDArray[Any], bins: int) -> Floats:
    """The distinct quantiles of order 1 / bins, 2 / bins, ..., without the smallest value."""
    cumulative = np.cumsum(rows) / rows.sum()
    orders = np.arange(1, bins) / bins
    indices = np.unique(np.searchsorted(cumulative, orders, side="left"))
    return distinct[indices[indices > 0]]


def _between(distinct: Floats) -> tuple[float, ...]:
    """An edge above each number and at most at the next one: that one, or a number between them with fewer digits."""

    def digits(number: float) -> int:
        return len(Decimal(repr(number)).normalize().as_tuple().digits)

    edges = []
    for low, high in pairwise(distinct.tolist()):
        rounded = _round_within((low + high) / 2, 0.49 * (high - low))
        edges.append(rounded if low < rounded <= high and digits(rounded) < digits(high) else high)
    return tuple(edges)


def _rounded_quantiles(distinct: Floats, rows: NDArray[Any], bins: int) -> tuple[float, ...]:
    """Quantiles rounded as far as that keeps them apart, to numbers that people ask about."""
    raw = _quantiles(distinct, rows, bins)
    raw = raw if len(raw) else distinct[1:2]
    # Rounding may move an edge by half the distance to the edge before it.
    rooms = np.diff(np.concatenate([distinct[:1], raw])) / 2
    edges = sorted({_round_within(float(edge), float(room)) for edge, room in zip(raw, rooms, strict=True)})
    inside = tuple(edge for edge in edges if distinct[0] < edge <= distinct[-1])
    return inside or (float(raw[0]),)


def _round_within(number: float, room: float) -> float:
    """The multiple of the largest of the steps 1, 5, 10, 50 ... (or 0.5, 0.1 ...) that is within `room` of a number."""
    largest = math.ceil(math.log10(max(abs(number), room, sys.float_info.min))) + 1
    for power in range(largest, largest - 18, -1):
        for step in (f"5e{power}", f"1e{power}"):
            rounded = float(round(Decimal(number) / Decimal(step)) * Decimal(step))
            if abs(rounded - number) <= room:
                return rounded
    return number


HOLDS = 0.99  # an order that holds in at least this share of the public rows is a rule
BREAKS = 0.05  # below this share of rows, the order may be one of scale only (hours of work are below most incomes)
MOST_ROWS = 50_000  # enough to tell such shares apart
FEWEST_ROWS = 100  # rows with both values; an order of fewer may be chance


def proposed_links(columns: Sequence[Column], table: Any) -> tuple[tuple[str, ...], ...]:
    """The sets of columns that a PUBLIC table suggests to link."""
    numeric = [column for column in columns if column.numeric]
    public = read_table(table, [column.name for column in numeric])
    rows = np.arange(0, public.num_rows, max(1, -(-public.num_rows // MOST_ROWS)))
    values: dict[str, Floats] = {}
    codes: dict[str, Ints] = {}
    for column in numeric:
        cells = one_piece(plain_cells(public[column.name])).take(rows)
        values[column.name] = numbers_of(column, cells)
        codes[column.name] = code_cells(column, cells)[0]
    names = [column.name for column in numeric]
    together = {name: {name} for name in names}
    for one, other in ordered_pairs(numeric, values, codes):
        union = together[one] | together[other]
        together.update(dict.fromkeys(union, union))
    sets = dict.fromkeys(tuple(name for name in names if name in together[each]) for each in names)
    return tuple(each for each in sets if len(each) > 1)


def ordered_pairs(
    columns: Sequence[Column], values: Mapping[str, Floats], codes: Mapping[str, NDArray[Any]]
) -> list[tuple[str, str]]:
    """The pairs (low, high) of numeric columns such that low is hardly ever above high, and not by scale only.

    `values` has NaN for missing.
    """
    generator = np.random.default_rng(0)

    def exchanged(name: str) -> Floats:
        """The column's values, each exchanged for one of its bin."""
        code = codes[name]
        other = np.empty(len(code), np.int64)
        other[np.argsort(code, kind="stable")] = np.lexsort((generator.random(len(code)), code))
        return values[name][other]

    alone = {column.name: exchanged(column.name) for column in columns}

    def ordered(low: str, high: str) -> bool:
        both = ~np.isnan(values[low]) & ~np.isnan(values[high])
        if both.sum() < FEWEST_ROWS:
            return False
        broken = (values[low] > values[high])[both].mean()
        broken_alone = (alone[low] > alone[high])[both].mean()
        return bool(broken <= 1 - HOLDS and broken_alone >= max(BREAKS, 2 * broken))

    pairs = permutations(columns, 2)
    return [(low.name, high.name) for low, high in pairs if low.dates == high.dates and ordered(low.name, high.name)]
