"""What differs between kinds of columns: how a column is declared, coded, compared with values, drawn, and shown.

A new kind is a subclass of `ColumnKind`, or of another kind, and stands in `prade.data.declare.column.KINDS`.
"""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from prade.core.documents import writable
from prade.core.errors import SchemaError
from prade.data.read.cells import LARGEST_WHOLE

if TYPE_CHECKING:
    import pyarrow as pa

Value = int | float | str | bool
Unknown = Literal["other", "clip", "missing"]
Mask = NDArray[np.bool_]
Coding = tuple[NDArray[np.int64], Mask]

MISSING = "missing"
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # line breaks among them
ORDER = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


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

    def label_of(self, value: Any) -> str | None:
        """The label of a value, or of missing (None); None if it has no label."""
        taken = value is None and MISSING in map(label_key, self.values)  # the key means that value
        return None if taken else self.labels.get(label_key(value))

    def error(self, message: str) -> SchemaError:
        """An error that names the column."""
        return SchemaError(f"column {self.name!r}: {message}")


class ColumnKind(ABC):
    """The behaviour of one column, by its kind. Codes run from 0 to `present` - 1; the code of missing follows."""

    name: ClassVar[str]
    numeric: ClassVar[bool] = False  # a code is a bin of numbers; otherwise, a value
    groups: ClassVar[bool] = False  # the column says to which group a row belongs, and is not estimated
    keys: ClassVar[frozenset[str]]  # of the fields that not all kinds have, those of this kind

    def __init__(self, column: Declaration) -> None:
        self.column = column

    # declared

    @abstractmethod
    def settled(self) -> dict[str, Any]:
        """The fields of the declaration that this kind has a part in, checked and in their final form."""

    @abstractmethod
    def no_label(self, key: str) -> str:
        """Why there cannot be a label for this key."""

    @property
    def unlisted(self) -> bool:
        """Whether the values are not known yet."""
        return False

    # coded

    @property
    @abstractmethod
    def present(self) -> int:
        """Number of codes, without missing."""

    @property
    @abstractmethod
    def last_resort(self) -> int:
        """The code of a cell outside the domain, in a column without missing and without a value for such cells."""

    @abstractmethod
    def codes(self, cells: Any, fallback: int) -> Coding:
        """The code of each cell, and whether the cell is in the domain; missing cells are coded by the caller."""

    # compared

    @abstractmethod
    def satisfying(self, op: str, value: Any) -> Mask:
        """Which codes satisfy ``column op value``; comparisons that codes cannot decide are refused."""

    # drawn and shown

    @abstractmethod
    def natural_type(self) -> pa.DataType:
        """The Arrow type of the column's values if there is no public table to take it from."""

    @abstractmethod
    def cell_texts(self) -> list[str]:
        """One text per code, without missing."""

    @abstractmethod
    def words(self) -> list[str]:
        """One text for readers per code, without missing and without labels."""


# ---------------------------------------------------------------------- values


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


def settled_labels(domain: ColumnKind) -> dict[str, str]:
    """The table of a column's labels with texts as keys; labels of values that the column does not have are refused.

    A column that lists the value "missing" cannot label its missing cells.
    """
    column, labels = domain.column, domain.column.labels
    if not isinstance(labels, Mapping):
        raise SchemaError(f'labels is {str(labels)[:40]!r}; write a table such as {{1 = "male", 2 = "female"}}')
    listed = dict.fromkeys(label_key(value) for value in column.values)
    if None in labels and MISSING in listed:
        raise SchemaError(f'its missing cells cannot have a label, because it also lists the value "{MISSING}"')
    settled: dict[str, str] = {}
    for value, label in labels.items():
        key = label_key(value)
        if key not in listed and not (key == MISSING and column.missing) and not domain.unlisted:
            needs = "there is a label for missing cells, which needs missing = true"
            raise SchemaError(needs if key == MISSING else domain.no_label(key))
        what = f'the label of "{key[:40]}"'
        check_words({what: label})
        if not label.strip():
            raise SchemaError(f"{what} is empty; leave it out")
        if settled.setdefault(key, label) != label:
            raise SchemaError(f"{what} is given twice; remove one")
    return {key: settled[key] for key in (*listed, MISSING) if key in settled} | settled  # in the order of the codes
