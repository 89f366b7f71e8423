"""The declaration of one column: its values or bins."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from prade.core.documents import writable
from prade.core.errors import SchemaError

Value = int | float | str | bool
LARGEST_WHOLE = 2**53  # beyond this, floats cannot tell neighbouring whole numbers apart


def plain_value(value: Any) -> Any:
    """A listed value as a plain Python value; dates become ISO text."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def value_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    return str(value)


def quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else value_text(value)


def some_of(values: Sequence[Value], most: int = 12) -> str:
    shown = ", ".join(quoted(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"


# ---------------------------------------------------------------------- labels

MISSING = "missing"
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # line breaks among them


def label_key(value: Any) -> str:
    """The key of a value's label: its text, as a TOML file has it. None stands for missing.

    >>> [label_key(value) for value in (2, 1.0, True, "a", None)]
    ['2', '1', 'true', 'a', 'missing']
    """
    value = plain_value(value)
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else value_text(value)


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse what cannot be shown in one line: `words` has texts by what they are."""
    for what, text in words.items():
        if not isinstance(text, str):
            raise SchemaError(f"{what} is {str(text)[:40]!r}; write a text")
        if not writable(text):
            raise SchemaError(f"{what} contains half a character (an unpaired surrogate); correct it")
        if CONTROLS.search(text):
            raise SchemaError(f"{what} {text[:40]!a} has a line break or a control character; write it in one line")


def settled_labels(labels: Any, kind: str, values: Sequence[Value], missing: bool) -> dict[str, str]:
    """The table of a column's labels with texts as keys; labels of values that the column does not have are refused."""
    if not isinstance(labels, Mapping):
        raise SchemaError(f'labels is {str(labels)[:40]!r}; write a table such as {{1 = "male", 2 = "female"}}')
    listed = dict.fromkeys(label_key(value) for value in values)
    if None in labels and MISSING in listed:
        raise SchemaError(f'its missing cells cannot have a label, because it also lists the value "{MISSING}"')
    known = {*listed, MISSING} if missing else listed
    unlisted = kind == "group" and not values  # the list of groups has them
    found: dict[str, str] = {}
    for value, label in labels.items():
        key = label_key(value)
        if key not in known and not unlisted:
            raise _unknown(key, kind, values)
        what = f'the label of "{key[:40]}"'
        check_words({what: label})
        if not label.strip():
            raise SchemaError(f"{what} is empty; leave it out")
        if found.setdefault(key, label) != label:
            raise SchemaError(f"{what} is given twice; remove one")
    return {key: found[key] for key in (*listed, MISSING) if key in found} | found  # in the order of the codes


def _unknown(key: str, kind: str, values: Sequence[Value]) -> SchemaError:
    if key == MISSING:
        return SchemaError("there is a label for missing cells, which needs missing = true")
    if kind == "numeric":
        return SchemaError(f'there is a label for "{key[:40]}", but bins have no labels: only missing may have one')
    return SchemaError(f'there is a label for "{key[:40]}"; the values are {some_of(values)}')


# ---------------------------------------------------------------------- columns

ColumnKind = Literal["categorical", "numeric", "group"]
Unknown = Literal["other", "clip", "missing"]

KINDS = get_args(ColumnKind)
POLICIES = get_args(Unknown)
EPOCH = datetime.date(1970, 1, 1)
LARGEST_NUMBER = 1e300


def days(date: datetime.date) -> float:
    """Days since 1970-01-01: the number by which a date is binned."""
    return float((date - EPOCH).days)


@dataclass(frozen=True)
class Column:
    """A column's domain: a list of values or bins of a number, and possibly a code for missing.

    Codes run from 0 to ``size - 1``. The code of a categorical or group value is its index in `values`. A numeric
    column has cuts k_0 < ... < k_(m-1), which are the `edges` that are above `min` and not above `max`; its bins are
    (-inf, k_0), [k_0, k_1), ..., [k_(m-1), inf), so that no number is out of range. With ``missing=True`` the last
    code means "missing". `unknown` says how a value outside the domain is coded: as the value `other`, as the first or
    last bin (``"clip"``, the default for numbers), or as missing.

    `title`, `description`, `unit` and `labels` are for readers. They have no part in what a cell
    means, so columns that differ only in them are equal. `labels` maps values to their meaning, and None to that of
    missing; its keys are kept as text, as in the schema file.

    >>> hours = Column("WKHP", "numeric", edges=[1, 10, 40], integer=True, min=1, max=99, missing=True)
    >>> hours.cell_texts()
    ['[1, 10)', '[10, 40)', '[40, 99]', 'missing']
    >>> Column("SEX", "categorical", values=[1, 2], labels={1: "male", 2: "female"}).label_of(2)
    'female'
    """

    name: str
    kind: ColumnKind
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

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"a column needs a name, got {self.name!r}; give a text that is not empty")
        if not writable(self.name):
            raise SchemaError(
                f"the column name {self.name!a} contains half a character (an unpaired surrogate), which cannot be "
                "written to a file; rename the column"
            )
        if self.kind not in KINDS:
            raise self._error(f"kind is {self.kind!r}; use one of {', '.join(KINDS)}")
        self._check_flags()
        if self.kind == "numeric":
            self._settle_bins()
        else:
            self._settle_values()
        self._check_policy()
        try:
            check_words({"title": self.title, "description": self.description, "unit": self.unit})
            self._set("labels", settled_labels(self.labels, self.kind, self.values, self.missing))
        except SchemaError as error:
            raise error.within(f"column {self.name!r}") from None

    # ------------------------------------------------------------------ the domain

    @property
    def size(self) -> int:
        """Number of codes, including missing."""
        return self.present + self.missing

    @property
    def present(self) -> int:
        """Number of codes, without missing."""
        if self.kind == "numeric":
            return len(self.cuts) + 1
        if not self.values and self.kind == "group":
            raise self._error(
                "the values of this group column are not known yet; "
                "give the public list of groups with schema.with_groups(table)"
            )
        return len(self.values)

    @property
    def fallback(self) -> int:
        """The code for a cell that is not one of this column's values (for a numeric column: not a number)."""
        if self.other is not None and self.unknown != "missing":
            return self.values.index(self.other)
        if self.missing:
            return self.size - 1
        return 0 if self.kind == "numeric" else self.size - 1

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The smallest value of each bin except the first: the cuts, rounded up in a column of whole numbers."""
        return tuple(float(math.ceil(cut)) for cut in self.cuts) if self.integer else self.cuts

    def cell_texts(self) -> list[str]:
        """One text per code: its value or the bounds of its bin. Those for readers are in `display`."""
        names = self._bin_texts() if self.kind == "numeric" else [value_text(value) for value in self.values]
        return [*names, MISSING][: self.size]  # `size` raises an error for a group column without values

    def bounds(self, code: int) -> tuple[float | None, float | None]:
        """The smallest and largest value of a bin; None where the bin is open-ended."""
        starts = self.thresholds
        low = self.min if code == 0 else starts[code - 1]
        if code == len(starts):
            return low, self.max
        return low, starts[code] - 1 if self.integer else math.nextafter(starts[code], -math.inf)

    # ------------------------------------------------------------------ words for readers

    def label_of(self, value: Any) -> str | None:
        """The label of a value, or of missing (None); None if it has no label."""
        taken = value is None and MISSING in map(label_key, self.values)  # the key means that value
        return None if taken else self.labels.get(label_key(value))

    def value_labelled(self, text: str) -> Value | None:
        """The listed value with this label, in any case of letters; None if there is none."""
        labelled = ((value, self.label_of(value)) for value in self.values)
        wanted = text.casefold()
        return next((value for value, label in labelled if label is not None and label.casefold() == wanted), None)

    def labelled_like(self, other: Column) -> Column:
        """This column with the title, description and unit of another, and with its labels of values that both have."""
        labels = {value: label for value in (*self.values, None) if (label := other.label_of(value)) is not None}
        if not self.missing:
            labels.pop(None, None)
        return replace(self, title=other.title, description=other.description, unit=other.unit, labels=labels)

    def unlabelled(self) -> Column:
        """This column without words for readers."""
        return replace(self, title="", description="", unit="", labels={})

    # ------------------------------------------------------------------ checks

    def _error(self, message: str) -> SchemaError:
        return SchemaError(f"column {self.name!r}: {message}")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_flags(self) -> None:
        for flag in ("missing", "integer", "dates"):
            if not isinstance(getattr(self, flag), bool):
                raise self._error(f"{flag} is {getattr(self, flag)!r}; use true or false")
        for key, kinds in (("values", "categorical or group"), ("edges", "numeric")):
            given = getattr(self, key)
            if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
                raise self._error(f"{key} is {given!r}; give a list")
            if len(given) and (key == "edges") != (self.kind == "numeric"):
                raise self._error(f"a {self.kind} column has no {key}; remove them or change kind to {kinds}")
            self._set(key, tuple(given))
        if self.kind != "numeric" and (self.integer or self.min is not None or self.max is not None):
            raise self._error(f"integer, min and max are for numeric columns, but this one is {self.kind}; remove them")

    def _settle_values(self) -> None:
        values = tuple(plain_value(value) for value in self.values)
        if not values and self.kind == "categorical" and not self.missing:
            raise self._error(
                "the list of values is empty; give at least one value, e.g. values = [1, 2], or missing = true for a "
                "column that is always missing"
            )
        types = {type(value).__name__ for value in values}
        if not types <= {"int", "float", "str", "bool"}:
            raise self._error("values must be numbers, text, true/false or dates")
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            raise self._error("a value does not fit into 64 bits; write the values as text")
        if any(isinstance(value, str) and not writable(value) for value in values):
            raise self._error(
                "a value contains half a character (an unpaired surrogate), which cannot be written to a file; "
                "correct it"
            )
        if types == {"int", "float"}:
            values, types = tuple(float(value) for value in values), {"float"}
        if len(types) > 1:
            raise self._error(
                f"the values mix {' and '.join(sorted(types))}; write them all as one type, "
                f"e.g. [{', '.join(quoted(value_text(value)) for value in values[:3])}]"
            )
        always_missing = "str" if self.kind == "categorical" else ""
        self._set("value_type", types.pop() if types else always_missing)
        if self.value_type == "float" and not all(math.isfinite(value) for value in values):
            raise self._error("values must be finite numbers; for NaN, set missing = true")
        seen: set[Value] = set()
        for value in values:
            if value in seen:
                raise self._error(f"the value {quoted(value)} is listed twice; remove one")
            seen.add(value)
        other = plain_value(self.other)
        if other is not None and (other not in values or isinstance(other, str) != (self.value_type == "str")):
            raise self._error(
                f"other is {quoted(other)}, which is not among the values {some_of(values)}; add it to them"
            )
        self._set("values", values)
        self._set("other", other)
        self._set("cuts", ())

    def _settle_bins(self) -> None:
        if not self.edges:
            raise self._error("a numeric column needs edges; give at least one, e.g. edges = [10, 20, 30]")
        given = [*self.edges, *(bound for bound in (self.min, self.max) if bound is not None)]
        as_dates = [isinstance(number, datetime.date) for number in given]
        if any(as_dates):
            if not all(as_dates) or any(isinstance(number, datetime.datetime) for number in given):
                raise self._error("edges, min and max must all be dates (2020-12-31, no time of day) or all numbers")
            self._set("dates", True)
        if self.dates:
            self._set("integer", True)
        edges = tuple(self._finite("edges", edge) for edge in self.edges)
        low = None if self.min is None else self._finite("min", self.min)
        high = None if self.max is None else self._finite("max", self.max)
        for before, after in itertools.pairwise(edges):
            if before >= after:
                wrong = "is listed twice" if before == after else f"comes after {self.number_text(before)}"
                raise self._error(f"edge {self.number_text(after)} {wrong}; list each edge once, in ascending order")
            if self.integer and math.ceil(before) == math.ceil(after):
                raise self._error(
                    f"there is no whole number in [{self.number_text(before)}, {self.number_text(after)}); "
                    "remove one of the two edges"
                )
        if low is not None and high is not None and low > high:
            raise self._error(f"min {self.number_text(low)} is above max {self.number_text(high)}; swap them")
        self._set("edges", edges)
        self._set("min", low)
        self._set("max", high)
        self._set("value_type", "")
        inside = (e for e in edges if (low is None or e > low) and (high is None or e <= high))
        self._set("cuts", tuple(inside))
        if not self.cuts:
            given_bounds = (("above min", low), ("not above max", high))
            needed = " and ".join(f"{text} {self.number_text(at)}" for text, at in given_bounds if at is not None)
            raise self._error(f"no edge is {needed}, so there would be only one bin; add an edge that is")

    def _finite(self, key: str, number: Any) -> float:
        if isinstance(number, datetime.date):
            return days(number)
        if isinstance(number, (bool, str)) or not isinstance(number, (int, float, np.integer, np.floating)):
            needed = "numbers or dates" if key == "edges" else "a number or a date"
            example = "[10, 20, 30] or [2020-12-31]" if key == "edges" else "10 or 2020-12-31"
            raise self._error(f"{key} must be {needed}, got {number!r}; write e.g. {key} = {example}, without quotes")
        if not isinstance(number, int) and not math.isfinite(number):
            raise self._error(f"{key} must be finite; remove {number}: the first and last bins are open-ended anyway")
        if not -LARGEST_NUMBER <= number <= LARGEST_NUMBER:  # before float(), which fails for larger whole numbers
            raise self._error(f"{key} must be at most 1e300 in absolute value, so that every bin contains numbers")
        converted = float(number)
        if self.dates and not days(datetime.date.min) <= converted <= days(datetime.date.max):
            raise self._error(f"{key} must be dates from 0001-01-01 to 9999-12-31; got {converted:g} days since 1970")
        if self.integer and abs(converted) > LARGEST_WHOLE:
            raise self._error(f"{key} of an integer column must be at most 2**53 in absolute value, got {number!r}")
        if self.integer and key != "edges" and not converted.is_integer():
            raise self._error(f"{key} of an integer column must be a whole number, got {number!r}")
        return converted

    def _check_policy(self) -> None:
        if self.other is not None and self.kind != "categorical":
            raise self._error("other is for categorical columns only; remove it")
        if self.unknown is None:
            return
        if self.unknown not in POLICIES:
            raise self._error(f"unknown is {self.unknown!r}; use one of {', '.join(POLICIES)}")
        if self.unknown == "other" and self.other is None:
            raise self._error('unknown = "other" needs a value to use; give it as other = ...')
        if self.unknown == "missing" and not self.missing:
            raise self._error('unknown = "missing" needs missing = true; add it')
        if self.unknown == "clip" and self.kind != "numeric":
            raise self._error('unknown = "clip" is for numeric columns; use other = ... or missing = true')

    # ------------------------------------------------------------------ text

    def number_text(self, number: float) -> str:
        if self.dates:
            return (EPOCH + datetime.timedelta(days=number)).isoformat()
        return value_text(number)

    def just_above(self, number: float) -> float | None:
        """The short number that an edge is just above; None for usual edges.

        With bins closed on the left, (20, 40] has edges just above 20 and 40, and should be shown as (20, 40].
        """
        short = round(number, 9)
        return short if number == math.nextafter(short, math.inf) else None

    def _bin_texts(self) -> list[str]:
        def start(number: float) -> str:
            short = self.just_above(number)
            return f"[{self.number_text(number)}" if short is None else f"({self.number_text(short)}"

        def stop(number: float) -> str:
            short = self.just_above(number)
            return f"{self.number_text(number)})" if short is None else f"{self.number_text(short)}]"

        first = "(-inf" if self.min is None else f"[{self.number_text(self.min)}"
        last = "inf)" if self.max is None else f"{self.number_text(self.max)}]"
        starts = [first, *(start(cut) for cut in self.cuts)]
        stops = [*(stop(cut) for cut in self.cuts), last]
        return [f"{low}, {high}" for low, high in zip(starts, stops, strict=True)]
