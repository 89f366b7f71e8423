"""Which codes of a column satisfy a comparison with a value; comparisons that codes cannot decide are refused.

Codes tell only the bin of a number. ``AGE >= 65`` can be decided if a bin begins at 65: it is then a union of bins. Any
other comparison would require guessing within a bin, so it is refused with the nearest edges in the message.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.errors import WorkloadError
from prade.data.declare.column import Column, days, plain_value, some_of

Mask = NDArray[np.bool_]
ORDER = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


class OffEdge(WorkloadError):
    """A comparison with a number inside a bin: `below` and `above` are the nearest edges, None where there is none."""

    def __init__(self, message: str, below: float | None, above: float | None) -> None:
        super().__init__(message, below, above)
        self.below, self.above = below, above


def codes_satisfying(column: Column, op: str, value: Any) -> Mask:
    """Which codes satisfy ``column op value``; missing satisfies none, not even ``!=``.

    >>> hours = Column("WKHP", "numeric", edges=[1, 10, 40], integer=True, min=1, max=99, missing=True)
    >>> codes_satisfying(hours, ">", 39)
    array([False, False,  True, False])
    """
    chosen = np.zeros(column.size, dtype=np.bool_)
    chosen[: column.present] = _of_present(column, op, value)
    return chosen


def _of_present(column: Column, op: str, value: Any) -> Mask:
    if op not in ("==", "!=", *ORDER):
        raise WorkloadError(f"{column.name}: {op!r} is not a comparison; write ==, !=, <, <=, > or >=")
    return _of_bins(column, op, value) if column.kind == "numeric" else _of_values(column, op, value)


def label_hint(column: Column, op: str, text: str) -> str:
    """What to write instead of a label, such as ``" ('female' is the label of 2: write SEX == 2)"``; or nothing."""
    value = column.value_labelled(text)
    if value is not None:
        return f" ({text!r} is the label of {value!r}: write {column.name} {op} {value!r})"
    label = column.label_of(None)
    if label is not None and label.casefold() == text.casefold():
        test = "is missing" if op == "==" else "is not missing"
        return f" ({text!r} is the label of missing: write {column.name} {test})"
    return ""


def _of_values(column: Column, op: str, value: Any) -> Mask:
    asked = f"{column.name} {op} {value!r}"
    value = plain_value(value)
    hint = label_hint(column, op, value) if isinstance(value, str) else ""
    if column.value_type == "bool" and not isinstance(value, str) and value in (0, 1):
        value = bool(value)
    if isinstance(value, str) != (column.value_type == "str"):
        has = {"str": "text", "bool": "true and false"}.get(column.value_type, "numbers")
        got = "text" if isinstance(value, str) else "not text"
        raise WorkloadError(
            f"{asked}: the values of {column.name} are {has}, but this is {got}; write it like "
            f"{some_of(column.values, 3)}{hint}"
        )
    if op in ("==", "!="):
        if value not in column.values:
            raise WorkloadError(f"{asked}: choose one of the values of {column.name}, {some_of(column.values)}{hint}")
        equal = np.array([each == value for each in column.values], dtype=np.bool_)
        return equal if op == "==" else ~equal
    if column.value_type not in ("int", "float"):
        raise WorkloadError(f"{asked}: the values of {column.name} have no order; use == or !=, or `in` with a list")
    return np.asarray(ORDER[op](np.array(column.values), value), dtype=np.bool_)


def _of_bins(column: Column, op: str, value: Any) -> Mask:
    number = _threshold(column, op, value)
    if op in ("==", "!="):
        equal = _exactly(column, number, op, value)
        return equal if op == "==" else ~equal
    if op in (">", "<="):
        # x > v means x >= the next number after v
        number = _next_whole(number) if column.integer else math.nextafter(number, math.inf)
    above = _at_least(column, number, op, value)
    return above if op in (">", ">=") else ~above


def _next_whole(number: float) -> float:
    return math.floor(number) + 1.0 if math.isfinite(number) else number


def _threshold(column: Column, op: str, value: Any) -> float:
    asked = f"{column.name} {op} {value!r}"
    if column.dates and isinstance(value, str):
        try:
            value = datetime.date.fromisoformat(value)
        except ValueError:
            raise WorkloadError(f"{asked}: {column.name} contains dates; write one as '2020-12-31'") from None
    if column.dates and isinstance(value, datetime.date):
        return days(value)
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if column.dates or not number or math.isnan(value):
        expected = "a date such as '2020-12-31'" if column.dates else "a number"
        raise WorkloadError(f"{asked}: compare {column.name} with {expected}")
    return float(value)


def _at_least(column: Column, number: float, op: str, value: Any) -> Mask:
    first = float(math.ceil(number)) if column.integer and math.isfinite(number) else number
    if first == -math.inf or (column.min is not None and first <= column.min):
        return np.ones(column.present, dtype=np.bool_)
    if first == math.inf or (column.max is not None and first > column.max):
        return np.zeros(column.present, dtype=np.bool_)
    if first not in column.thresholds:
        raise _off_edge(column, op, value, number)
    return np.arange(column.present) > column.thresholds.index(first)


def _exactly(column: Column, number: float, op: str, value: Any) -> Mask:
    equal = np.zeros(column.present, dtype=np.bool_)
    below = column.min is not None and number < column.min
    above = column.max is not None and number > column.max
    if below or above or (column.integer and not number.is_integer()):
        return equal
    code = int(np.searchsorted(column.thresholds, number, side="right"))
    if column.bounds(code) != (number, number):
        raise WorkloadError(
            f"{column.name} {op} {value!r}: the bin {column.cell_texts()[code]} contains other values too; "
            "compare with the edges of the bin using < and >=, or add edges to the schema"
        )
    equal[code] = True
    return equal


def _off_edge(column: Column, op: str, value: Any, number: float) -> OffEdge:
    starts = column.thresholds
    below, above = (
        max((x for x in starts if x < number), default=None),
        min((x for x in starts if x > number), default=None),
    )
    near = [cut for cut in (below, above) if cut is not None]
    names = " and ".join(column.number_text(cut) for cut in near)
    where = (
        "the column has a single bin: add an edge to the schema",
        f"the nearest edge is {names}; compare with it, or add one to the schema",
        f"the nearest edges are {names}; compare with an edge, or add one to the schema",
    )[len(near)]
    return OffEdge(
        f"{column.name} {op} {value!r} is not at the edge of a bin: {where}",
        below,
        above,
    )
