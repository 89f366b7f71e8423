"""What differs between kinds of columns: how a column is declared, coded, compared with values, drawn, and shown."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.arrays import Floats
from prade.core.documents import writable
from prade.core.errors import SchemaError, WorkloadError
from prade.data.read.cells import LARGEST_WHOLE, PER_SECOND, is_number, is_text, numbers_in, numerals_in, texts_of

Value = int | float | str | bool
Unknown = Literal["other", "clip", "missing"]
Mask = NDArray[np.bool_]
Coding = tuple[NDArray[np.int64], Mask]

MISSING = "missing"
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # line breaks among them
ORDER = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
DIGITS = 15  # numbers with this many digits are distinct as doubles


@dataclass(frozen=True)
class Declaration:
    """What a schema says about a column; `prade.data.declare.column.Column` explains the fields and checks them."""

    name: str
    kind: str
    values: tuple[Value, ...] = ()
    edges: tuple[float, ...] = ()
    integer: bool = False
    min: float | None = None
    max: float | None = None
    missing: bool = False
    other: Value | None = None
    unknown: Unknown | None = None
    dates: bool = False  # edges, min and max are days since 1970-01-01; set when they are given as dates
    title: str = field(default="", repr=False, compare=False)
    description: str = field(default="", repr=False, compare=False)
    unit: str = field(default="", repr=False, compare=False)
    labels: Mapping[Any, str] = field(default_factory=dict, repr=False, compare=False)
    value_type: str = field(init=False, repr=False)  # "int", "float", "str", "bool" or "": distinguishes 1 from True
    cuts: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def error(self, message: str) -> SchemaError:
        """An error that names the column."""
        return SchemaError(f"column {self.name!r}: {message}")

    def label_of(self, value: Any) -> str | None:
        """The label of a value, or of missing (None); None if it has no label."""
        taken = value is None and MISSING in map(label_key, self.values)  # the key means that value
        return None if taken else self.labels.get(label_key(value))


class ColumnKind:
    """The behaviour of one column, by its kind. Codes run from 0 to `present` - 1; the code of missing follows."""

    name: ClassVar[str]
    numeric: ClassVar[bool] = False  # a code is a bin of numbers; otherwise, a value
    groups: ClassVar[bool] = False  # the column says to which group a row belongs, and is not estimated
    keys: ClassVar[frozenset[str]]  # of the fields that not all kinds have, those of this kind

    def __init__(self, column: Declaration) -> None:
        self.column = column


class Categorical(ColumnKind):
    """A list of values; the code of a value is its index in the list."""

    name = "categorical"
    keys = frozenset({"values", "other"})

    def settled(self) -> dict[str, Any]:
        """The fields of the declaration that this kind has a part in, checked and in their final form."""
        column, values = self.column, tuple(map(plain_value, self.column.values))
        if not values and not column.missing and not self.groups:
            raise column.error("the list of values is empty; give at least one value, or missing = true if all are")
        if bad := [value for value in values if not _can_be_listed(value)]:
            kinds = "text, true/false, dates or finite numbers of at most 64 bits"
            raise column.error(f"values must be {kinds}, got {str(bad[0])[:40]!a}")
        types = {type(value).__name__ for value in values}
        if types == {"int", "float"}:
            values, types = tuple(float(value) for value in values), {"float"}
        if len(types) > 1:
            texts = ", ".join(_quoted(value_text(value)) for value in values[:3])
            raise column.error(f"the values mix {' and '.join(sorted(types))}; write one type, e.g. [{texts}]")
        value_type = types.pop() if types else "" if self.groups else "str"  # without values, all cells are missing
        if repeated := [value for value, number in Counter(values).items() if number > 1]:
            raise column.error(f"the value {_quoted(repeated[0])} is listed twice; remove one")
        other = plain_value(column.other)
        if other is not None and (other not in values or isinstance(other, str) != (value_type == "str")):
            raise column.error(f"other is {_quoted(other)}, which is not among the values {some_of(values)}; add it")
        return {"values": values, "other": other, "value_type": value_type, "cuts": ()}

    @property
    def present(self) -> int:
        """Number of codes, without missing."""
        return len(self.column.values)

    def codes(self, cells: Any, fallback: int) -> Coding:
        """The code of each cell, and whether the cell is in the domain; missing cells are coded by the caller."""
        index = self._indices(cells)
        fits = index >= 0
        return np.where(fits, index, fallback), fits

    def _indices(self, cells: Any) -> NDArray[np.int64]:
        """The index of each cell in the list of values; -1 if it is not there."""
        values, value_type = self.column.values, self.column.value_type
        if value_type == "str":
            texts = numerals(values) if is_number(cells.type) else values
            index = pc.index_in(texts_of(cells), value_set=pa.array(texts, pa.large_string()))
            return np.asarray(index.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        if value_type == "bool" and is_text(cells.type):
            words = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
            truth = pc.index_in(words, value_set=pa.array(["false", "true", "0", "1"], pa.large_string()))
            cells = pc.bit_wise_and(truth, 1)
        if value_type == "int" and max(map(abs, values)) >= LARGEST_WHOLE:  # type: ignore[arg-type]
            # floats cannot tell them apart; Python compares all numbers exactly
            index_of: dict[Any, int] = {value: index for index, value in enumerate(values)}
            exact = numerals_in(cells).to_pylist() if is_text(cells.type) else cells.to_pylist()
            each = (Decimal(cell) if isinstance(cell, str) else cell for cell in exact)
            return np.array([index_of.get(number, -1) for number in each], dtype=np.int64)
        numbers = numbers_in(cells, dates=self.column.dates)
        listed = np.asarray(values, dtype=np.float64)
        order = np.argsort(listed)
        near = np.minimum(np.searchsorted(listed[order], numbers), len(listed) - 1)
        return np.where(listed[order][near] == numbers, order[near], -1).astype(np.int64)

    def satisfying(self, op: str, value: Any) -> Mask:
        """Which codes satisfy ``column op value``; comparisons that codes cannot decide are refused."""
        column, value = self.column, plain_value(value)
        if column.value_type == "bool" and not isinstance(value, str) and value in (0, 1):
            value = bool(value)
        absent = op in ("==", "!=") and value not in column.values
        if absent or isinstance(value, str) != (column.value_type == "str"):
            known = f"one of the values of {column.name}, written as {some_of(column.values)}"
            raise WorkloadError(f"{column.name} {op} {value!r}: choose {known}")
        if op in ("==", "!="):
            equal = np.array([each == value for each in column.values], dtype=np.bool_)
            return equal if op == "==" else ~equal
        if column.value_type not in ("int", "float"):
            raise WorkloadError(f"{column.name} {op} {value!r}: its values have no order; use ==, != or `in`")
        return np.asarray(ORDER[op](np.array(column.values), value), dtype=np.bool_)

    def natural_type(self) -> pa.DataType:
        """The Arrow type of the column's values if there is no public table to take it from."""
        return pa.array(self.column.values).type

    def cell_texts(self) -> list[str]:
        return [value_text(value) for value in self.column.values]

    words = cell_texts


class Group(Categorical):
    """The values of a column of the list of groups, which may be given later."""

    name = "group"
    groups = True
    keys = frozenset({"values"})

    @property
    def present(self) -> int:
        if not self.column.values:
            raise self.column.error("its values are not known yet; give the list of groups: schema.with_groups(table)")
        return len(self.column.values)


def numerals(values: tuple[Value, ...]) -> list[str]:
    """Listed texts as numbers are compared with them: codes of one width, as 00100 and 02300, lose leading zeros."""
    texts = [str(value) for value in values]
    codes = {text for text in texts if text.isascii() and text.isdigit() and len(text) <= DIGITS}
    one_width = len(set(map(len, codes))) == 1
    return [str(int(text)) if one_width and text in codes else text for text in texts]


def _can_be_listed(value: Any) -> bool:
    if type(value) is str:
        return writable(value)
    return math.isfinite(value) if type(value) is float else type(value) in (bool, int) and abs(value) < 2**63


# ---------------------------------------------------------------------- values and their labels


def plain_value(value: Any) -> Any:
    """A listed value as a plain Python value; dates become ISO text."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def value_text(value: Any) -> str:
    """A value as text, whole floats without a decimal point."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE
    return str(int(value) if whole else value)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else value_text(value)


def some_of(values: Sequence[Value]) -> str:
    """The first values, for a message."""
    shown = ", ".join(map(_quoted, values[:12]))
    return shown if len(values) <= 12 else f"{shown}, ... ({len(values)} in all)"


def label_key(value: Any) -> str:
    """The key of a value's label: its text, as a TOML file has it. None stands for missing."""
    value = plain_value(value)
    return MISSING if value is None else str(value).lower() if isinstance(value, bool) else value_text(value)


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse what cannot be shown in one line: `words` has texts by what they are."""
    for what, text in words.items():
        if not isinstance(text, str) or not writable(text) or CONTROLS.search(text):
            raise SchemaError(f"{what} is {str(text)[:40]!a}; write a text in one line, without control characters")


def settled_labels(column: Declaration, *, any_value: bool) -> dict[str, str]:
    """The labels with texts as keys, in the order of the codes; those of values that the column lacks are refused."""
    labels = column.labels
    if not isinstance(labels, Mapping):
        raise SchemaError(f'labels is {str(labels)[:40]!r}; write a table such as {{1 = "male", 2 = "female"}}')
    listed = dict.fromkeys(map(label_key, column.values))
    if None in labels and MISSING in listed:
        raise SchemaError(f'its missing cells cannot have a label, because it also lists the value "{MISSING}"')
    settled: dict[str, str] = {}
    for value, label in labels.items():
        key = label_key(value)
        if key not in listed and not (key == MISSING and column.missing) and not any_value:
            values = f"only listed values ({some_of(column.values) or 'there are none'}) have labels"
            raise SchemaError(f'there is a label for "{key[:40]}"; {values}, and {MISSING} with missing = true')
        check_words({f'the label of "{key[:40]}"': label})
        if not label.strip() or settled.setdefault(key, label) != label:
            raise SchemaError(f'the label of "{key[:40]}" is empty, or given twice; leave it out')
    return {key: settled[key] for key in (*listed, MISSING) if key in settled} | settled


# ---------------------------------------------------------------------- bins of numbers or dates


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
