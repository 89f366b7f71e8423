"""What differs between kinds of columns: how a column is declared, coded, compared with values, drawn, and shown."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from prade.core.documents import writable
from prade.core.errors import SchemaError, WorkloadError
from prade.data.read.cells import LARGEST_WHOLE, is_number, is_text, numbers_in, numerals_in, texts_of

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
