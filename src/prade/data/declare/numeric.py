"""Columns whose codes are bins of numbers or dates."""

from __future__ import annotations

import datetime
import itertools
import math
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from prade.core.errors import WorkloadError
from prade.data.declare.kinds import Coding, ColumnKind, Mask, value_text
from prade.data.read.cells import LARGEST_WHOLE, PER_SECOND, is_text, numbers_in

Floats = NDArray[np.float64]

EPOCH = datetime.date(1970, 1, 1)
LARGEST_NUMBER = 1e300
SEPARATED = 10_000  # a column with such numbers has separators between thousands; smaller numbers may be years


def days(date: datetime.date) -> float:
    """Days since 1970-01-01: the number by which a date is binned."""
    return float((date - EPOCH).days)


class OffEdge(WorkloadError):
    """A comparison with a number inside a bin: `below` and `above` are the nearest edges, None where there is none."""

    def __init__(self, message: str, below: float | None, above: float | None) -> None:
        super().__init__(message, below, above)
        self.below, self.above = below, above


class Numeric(ColumnKind):
    """Cuts k_0 < ... < k_(m-1) make the bins (-inf, k_0), [k_0, k_1), ..., [k_(m-1), inf)."""

    name = "numeric"
    numeric = True
    keys = frozenset({"edges", "integer"})

    def settled(self) -> dict[str, Any]:
        column = self.column
        if not column.edges:
            raise column.error("a numeric column needs edges; give at least one, e.g. edges = [10, 20, 30]")
        bounds = {key: bound for key in ("min", "max") if (bound := getattr(column, key)) is not None}
        given = [*column.edges, *bounds.values()]
        as_dates = [isinstance(number, datetime.date) for number in given]
        if any(as_dates) and (not all(as_dates) or any(isinstance(number, datetime.datetime) for number in given)):
            raise column.error("edges, min and max must all be dates (2020-12-31, no time of day) or all numbers")
        dates = column.dates or any(as_dates)
        integer = column.integer or dates
        edges = tuple(self._finite("edges", edge, integer, dates) for edge in column.edges)
        settled = {key: self._finite(key, bound, integer, dates) for key, bound in bounds.items()}
        low, high = settled.get("min"), settled.get("max")
        text = date_text if dates else value_text
        for before, after in itertools.pairwise(edges):
            if before >= after:
                raise column.error(f"edge {text(after)} follows {text(before)}; list each once, in ascending order")
            if integer and math.ceil(before) == math.ceil(after):
                raise column.error(f"there is no whole number from {text(before)} to {text(after)}; remove one edge")
        if low is not None and high is not None and low > high:
            raise column.error(f"min {text(low)} is above max {text(high)}; swap them")
        cuts = tuple(e for e in edges if (low is None or e > low) and (high is None or e <= high))
        if not cuts:
            limits = " and ".join(f"{key} {text(bound)}" for key, bound in settled.items())
            raise column.error(f"no edge is within {limits}, so there would be only one bin; add an edge that is")
        bins = {"edges": edges, "min": low, "max": high, "cuts": cuts}
        return {**bins, "dates": dates, "integer": integer, "value_type": ""}

    def _finite(self, key: str, number: Any, integer: bool, dates: bool) -> float:
        if isinstance(number, datetime.date):
            return days(number)
        needed = "numbers or dates (2020-12-31), without quotes"
        plain = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
        if plain and -LARGEST_NUMBER <= number <= LARGEST_NUMBER:  # before float(), which fails for larger numbers
            converted = float(number)
            whole = abs(converted) <= LARGEST_WHOLE and (key == "edges" or converted.is_integer())
            dated = days(datetime.date.min) <= converted <= days(datetime.date.max)
            if (whole or not integer) and (dated or not dates):
                return converted
            needed = "dates from 0001-01-01 to 9999-12-31" if dates else "whole numbers up to 2**53 (integer = true)"
        raise self.column.error(f"{key} must be {needed}, got {number!r}; no edge need be infinite or above 1e300")

    @property
    def present(self) -> int:
        return len(self.column.cuts) + 1

    @property
    def limits(self) -> tuple[float, float]:
        """The column's `min` and `max`, infinite where there is none."""
        column = self.column
        return -math.inf if column.min is None else column.min, math.inf if column.max is None else column.max

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The smallest value of each bin except the first: the cuts, rounded up in a column of whole numbers."""
        cuts = self.column.cuts
        return tuple(float(math.ceil(cut)) for cut in cuts) if self.column.integer else cuts

    def bounds(self, code: int) -> tuple[float | None, float | None]:
        """The smallest and largest value of a bin; None where the bin is open-ended."""
        starts = self.thresholds
        low = self.column.min if code == 0 else starts[code - 1]
        if code == len(starts):
            return low, self.column.max
        return low, starts[code] - 1 if self.column.integer else math.nextafter(starts[code], -math.inf)

    def closed_bounds(self, code: int) -> tuple[float, float]:
        """As `bounds`; an open-ended bin is taken to be as wide as its neighbour."""
        low, high = self.bounds(code)
        starts = self.thresholds
        if low is None:
            low = starts[0] - (starts[1] - starts[0] if len(starts) > 1 else 1.0)
        if high is None:
            high = low + (starts[-1] - starts[-2] if len(starts) > 1 else 1.0) - (1.0 if self.column.integer else 0.0)
        return min(low, high), high  # for large floats, low may have been rounded to a number above high

    def codes(self, cells: Any, fallback: int) -> Coding:
        column, numbers = self.column, numbers_in(cells, dates=self.column.dates)
        codes = np.searchsorted(np.asarray(column.cuts), numbers, side="right").astype(np.int64)
        codes[np.isnan(numbers)] = fallback
        low, high = self.limits
        beyond = (numbers < low) | (numbers > high)
        if column.unknown == "missing":
            codes[beyond] = self.present
        fits = np.isfinite(numbers) & ~beyond
        if column.integer and not column.dates:  # a date with a time of day is still in the domain
            fits &= numbers == np.floor(numbers)
        return codes, fits

    def satisfying(self, op: str, value: Any) -> Mask:
        number = self._threshold(op, value)
        if op in ("==", "!="):
            equal = self._exactly(number, op, value)
            return equal if op == "==" else ~equal
        if op in (">", "<="):
            # x > v means x >= the next number after v
            whole = math.floor(number) + 1.0 if math.isfinite(number) else number
            number = whole if self.column.integer else math.nextafter(number, math.inf)
        above = self._at_least(number, op, value)
        return above if op in (">", ">=") else ~above

    def _threshold(self, op: str, value: Any) -> float:
        column = self.column
        if column.dates and isinstance(value, str):
            with suppress(ValueError):
                value = datetime.date.fromisoformat(value)
        if column.dates and isinstance(value, datetime.date):
            return days(value)
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if column.dates or not number or math.isnan(value):
            expected = "a date such as '2020-12-31'" if column.dates else "a number"
            raise WorkloadError(f"{column.name} {op} {value!r}: compare {column.name} with {expected}")
        return float(value)

    def _at_least(self, number: float, op: str, value: Any) -> Mask:
        starts, (low, high) = self.thresholds, self.limits
        first = float(math.ceil(number)) if self.column.integer and math.isfinite(number) else number
        if first <= low:
            return np.ones(self.present, dtype=np.bool_)
        if first > high or first == math.inf:
            return np.zeros(self.present, dtype=np.bool_)
        if first not in starts:
            raise self._off_edge(op, value, number)
        return np.arange(self.present) > starts.index(first)

    def _exactly(self, number: float, op: str, value: Any) -> Mask:
        column = self.column
        equal = np.zeros(self.present, dtype=np.bool_)
        low, high = self.limits
        if not low <= number <= high or (column.integer and not number.is_integer()):
            return equal
        code = int(np.searchsorted(self.thresholds, number, side="right"))
        if self.bounds(code) != (number, number):
            other = f"{column.name} {op} {value!r}: the bin {self.cell_texts()[code]} contains other values too"
            raise WorkloadError(f"{other}; compare with its edges using < and >=, or add edges to the schema")
        equal[code] = True
        return equal

    def _off_edge(self, op: str, value: Any, number: float) -> OffEdge:
        below = max((x for x in self.thresholds if x < number), default=None)
        above = min((x for x in self.thresholds if x > number), default=None)
        near = [self.number_text(cut) for cut in (below, above) if cut is not None]
        compare = "are {}; compare with an edge" if len(near) > 1 else "is {}; compare with it"
        nearest = f"the nearest edge{'s' * (len(near) > 1)} {compare.format(' and '.join(near))}"
        message = f"{self.column.name} {op} {value!r} is not at the edge of a bin: {nearest}, or add one to the schema"
        return OffEdge(message, below, above)

    def natural_type(self) -> pa.DataType:
        return pa.date32() if self.column.dates else pa.int64() if self.column.integer else pa.float64()

    def uniform(self, codes: NDArray[np.int64], chance: Floats) -> Floats:
        """A uniform number from the bin of each code; an open-ended bin is taken to be as wide as its neighbour."""
        low, high = np.array([self.closed_bounds(code) for code in range(self.present)]).T[:, codes]
        if self.column.integer:
            return np.asarray(np.minimum(low + np.floor(chance * (high - low + 1.0)), high))
        return np.asarray(np.clip(low * (1.0 - chance) + high * chance, low, high))

    def typed(self, numbers: Floats, kind: pa.DataType) -> Any | None:
        """Numbers (days for dates) as an Arrow array of a given type; None if the type cannot hold them."""
        types, dates = pa.types, self.column.dates
        whole = self.column.integer or types.is_integer(kind)
        if whole and np.abs(numbers).max(initial=0.0) > 2 * LARGEST_WHOLE:
            return None
        source = pa.array(np.floor(numbers).astype(np.int64) if whole else numbers, from_pandas=True)
        try:
            if dates and types.is_timestamp(kind):
                return pa.array((numbers * (86_400 * PER_SECOND[kind.unit])).astype(np.int64)).cast(kind)
            if dates:
                return source.cast(pa.int32()).cast(pa.date32()).cast(kind)
            if is_text(kind):
                return source.cast(pa.string()).cast(kind)
            return source.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    def number_text(self, number: float) -> str:
        return date_text(number) if self.column.dates else value_text(number)

    def cell_texts(self) -> list[str]:
        low, high, text = self.column.min, self.column.max, self.number_text
        cuts = [text(cut) for cut in self.column.cuts]
        starts = ["(-inf" if low is None else f"[{text(low)}", *(f"[{cut}" for cut in cuts)]
        stops = [*(f"{cut})" for cut in cuts), "inf)" if high is None else f"{text(high)}]"]
        return [f"{start}, {stop}" for start, stop in zip(starts, stops, strict=True)]

    def words(self) -> list[str]:
        """One text for readers per code, without missing and without labels."""
        edges = [self.column.min, *self.thresholds, self.column.max]
        return [self._in_words(*edges[code : code + 2], last=code == self.present - 1) for code in range(self.present)]

    def _in_words(self, low: Any, high: Any, *, last: bool) -> str:
        before, after = ("before {}", "from {}") if self.column.dates else ("under {}", "{} or more")
        if low is None or high is None:
            return before.format(self._number(high)) if low is None else after.format(self._number(low))
        stop = high if last or not self.column.integer else high - 1
        if low == stop:
            return self._number(low)
        return f"{self._number(low)} to {'' if last or self.column.integer else 'under '}{self._number(stop)}"

    def _number(self, number: float) -> str:
        column = self.column
        largest = max(abs(bound) for bound in (column.min, column.max, *column.cuts) if bound is not None)
        if column.dates or largest < SEPARATED or not number.is_integer() or abs(number) >= LARGEST_WHOLE:
            return self.number_text(number)
        return f"{int(number):,}"


def date_text(number: float) -> str:
    """The date that is a number of days after 1970-01-01."""
    return (EPOCH + datetime.timedelta(days=number)).isoformat()
