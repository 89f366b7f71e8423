"""`Column`: the declaration of one column, checked, with what its kind says about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from prade.core.documents import writable
from prade.core.errors import SchemaError, WorkloadError, within
from prade.data.declare.kinds import (
    MISSING,
    ORDER,
    Categorical,
    Declaration,
    Group,
    Mask,
    Numeric,
    Unknown,
    check_words,
    settled_labels,
)

KINDS: dict[str, type[Categorical | Numeric]] = {kind.name: kind for kind in (Categorical, Numeric, Group)}


@dataclass(frozen=True)
class Column(Declaration):
    """A column's domain: a list of values or bins of a number, and possibly a code for missing.

    Codes run from 0 to ``size - 1``. The code of a categorical or group value is its index in `values`. The bins of a
    numeric column are (-inf, k_0), [k_0, k_1), ..., [k_(m-1), inf), where k are the `edges` above `min` and not above
    `max`. With ``missing=True`` the last code means "missing". `unknown` says how a value outside the domain is coded:
    as the value `other`, as the first or last bin (``"clip"``, the default for numbers), or as missing.

    `title`, `description`, `unit` and `labels` are for readers; columns that differ only in them are equal. `labels`
    maps values to their meaning, and None to that of missing.

    >>> hours = Column("WKHP", "numeric", edges=[1, 10, 40], integer=True, min=1, max=99, missing=True)
    >>> hours.cell_texts()
    ['[1, 10)', '[10, 40)', '[40, 99]', 'missing']
    >>> Column("SEX", "categorical", values=[1, 2], labels={1: "male", 2: "female"}).label_of(2)
    'female'
    """

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not writable(self.name):
            raise SchemaError(f"a column's name is a text that can be written to a file, got {self.name!a}; rename it")
        if self.kind not in tuple(KINDS):  # a list cannot be hashed
            raise self.error(f"kind is {self.kind!r}; use one of {', '.join(KINDS)}")
        self._check_fields()
        for key, value in self.domain.settled().items():
            self._set(key, value)
        self._check_policy()
        with within(f"column {self.name!r}"):
            check_words({"title": self.title, "description": self.description, "unit": self.unit})
            self._set("labels", settled_labels(self, any_value=self.groups and not self.values))

    @property
    def domain(self) -> Categorical | Numeric:
        """What the column's kind says about it."""
        return KINDS[self.kind](self)

    @property
    def numeric(self) -> bool:
        """Whether the codes are bins of numbers."""
        return KINDS[self.kind].numeric

    @property
    def groups(self) -> bool:
        """Whether the column says to which group a row belongs."""
        return KINDS[self.kind].groups

    @property
    def present(self) -> int:
        """Number of codes, without missing."""
        return self.domain.present

    @property
    def size(self) -> int:
        """Number of codes, including missing."""
        return self.present + self.missing

    @property
    def fallback(self) -> int:
        """The code for a cell that is not one of this column's values (for a numeric column: not a number)."""
        if self.other is not None and self.unknown != "missing":
            return self.values.index(self.other)
        if self.missing:
            return self.size - 1
        return 0 if self.numeric else self.present - 1

    def satisfying(self, op: str, value: Any) -> Mask:
        """Which codes satisfy ``column op value``; missing satisfies none, and an error names edges that can be asked.

        >>> hours = Column("WKHP", "numeric", edges=[1, 10, 40], integer=True, min=1, max=99, missing=True)
        >>> hours.satisfying(">", 39)
        array([False, False,  True, False])
        """
        if op not in ("==", "!=", *ORDER):
            raise WorkloadError(f"{self.name}: {op!r} is not a comparison; write ==, !=, <, <=, > or >=")
        return np.concatenate([self.domain.satisfying(op, value), np.zeros(int(self.missing), np.bool_)])

    def bounds(self, code: int) -> tuple[float | None, float | None]:
        """The smallest and largest value of a bin; None where the bin is open-ended."""
        return Numeric(self).bounds(code)

    @property
    def heading(self) -> str:
        """The column's title, or its name, with the unit in parentheses: Wages (US dollars a year)."""
        title = self.title or self.name
        return f"{title} ({self.unit})" if self.unit else title

    def cell_texts(self) -> list[str]:
        """One text per code: its value or the bounds of its bin. `display_texts` are for readers."""
        return [*self.domain.cell_texts(), MISSING][: self.size]  # raises an error for groups that are not listed

    def display_texts(self) -> list[str]:
        """One text for readers per code: its label, value, or bin in words; the code follows if another has the same.

        >>> Column("RACE", "categorical", values=[1, 2, 3], labels={1: "white", 2: "other", 3: "other"}).display_texts()
        ['white', 'other (2)', 'other (3)']
        """
        codes = self.cell_texts()
        labels = [self.label_of(value) for value in self.values] or [None] * self.present
        labels += [self.label_of(None)] * self.missing
        words = [*self.domain.words(), *codes[self.present :]]
        texts = [word if label is None else label for label, word in zip(labels, words, strict=True)]
        shared = {text for text, number in Counter(texts).items() if number > 1}
        each = zip(labels, texts, codes, strict=True)
        return [f"{label} ({code})" if label in shared else text for label, text, code in each]

    def described(self) -> dict[str, Any]:
        """What a page shows of the column: name, title, description, unit, and one text per code as `labels`."""
        words = {"name": self.name, "title": self.title or self.name, "description": self.description}
        return {**words, "unit": self.unit, "labels": self.display_texts()}

    def labelled_like(self, other: Column) -> Column:
        """This column with the title, description and unit of another, and with its labels of values that both have."""
        labels = {value: label for value in (*self.values, None) if (label := other.label_of(value)) is not None}
        if not self.missing:
            labels.pop(None, None)
        return replace(self, title=other.title, description=other.description, unit=other.unit, labels=labels)

    def unlabelled(self) -> Column:
        """This column without words for readers."""
        return replace(self, title="", description="", unit="", labels={})

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_fields(self) -> None:
        keys = KINDS[self.kind].keys
        for flag in ("missing", "integer", "dates"):
            if not isinstance(getattr(self, flag), bool):
                raise self.error(f"{flag} is {getattr(self, flag)!r}; use true or false")
        for key in ("values", "edges"):
            given = getattr(self, key)
            if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
                raise self.error(f"{key} is {given!r}; give a list")
            self._set(key, tuple(given))
        given = {"values": self.values, "edges": self.edges, "other": self.other is not None}
        given |= {"integer": self.integer or self.min is not None or self.max is not None}
        for key, has in given.items():
            if has and key not in keys:
                words = "integer, min and max are" if key == "integer" else f"{key} is"
                kinds = " or ".join(name for name, kind in KINDS.items() if key in kind.keys)
                raise self.error(f"{words} for {kinds} columns, not for {self.kind} ones; remove it")

    def _check_policy(self) -> None:
        if self.unknown not in (None, *get_args(Unknown)):
            raise self.error(f"unknown is {self.unknown!r}; use one of {', '.join(get_args(Unknown))}")
        has = {None: True, "other": self.other is not None, "missing": self.missing, "clip": self.numeric}
        needs = {"other": "a value to use: other = ...", "missing": "missing = true", "clip": "a numeric column"}
        if not has[self.unknown]:
            raise self.error(f'unknown = "{self.unknown}" needs {needs[str(self.unknown)]}')
