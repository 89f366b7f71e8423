"""Columns whose codes are listed values: `Categorical`, and `Group`, which names the groups of rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.documents import writable
from prade.core.errors import WorkloadError
from prade.data.declare.kinds import (
    ORDER,
    Coding,
    ColumnKind,
    Mask,
    Value,
    plain_value,
    quoted,
    some_of,
    value_text,
)
from prade.data.read.cells import LARGEST_WHOLE, is_text, numbers_in, numerals_in, texts_of

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 15  # numbers with this many digits are distinct as doubles


class Categorical(ColumnKind):
    """A list of values; the code of a value is its index in the list."""

    name = "categorical"
    keys = frozenset({"values", "other"})
    empty_type = "str"  # the type of the values of a column that has none: its cells are always missing

    def settled(self) -> dict[str, Any]:
        column = self.column
        values = tuple(plain_value(value) for value in column.values)
        self._need_values()
        types = {type(value).__name__ for value in values}
        if not types <= {"int", "float", "str", "bool"}:
            raise column.error("values must be numbers, text, true/false or dates")
        if any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            raise column.error("a value does not fit into 64 bits; write the values as text")
        if any(isinstance(value, str) and not writable(value) for value in values):
            raise column.error(
                "a value contains half a character (an unpaired surrogate), which cannot be written to a file; "
                "correct it"
            )
        if types == {"int", "float"}:
            values, types = tuple(float(value) for value in values), {"float"}
        if len(types) > 1:
            raise column.error(
                f"the values mix {' and '.join(sorted(types))}; write them all as one type, "
                f"e.g. [{', '.join(quoted(value_text(value)) for value in values[:3])}]"
            )
        value_type = types.pop() if types else self.empty_type
        if value_type == "float" and not all(math.isfinite(value) for value in values):
            raise column.error("values must be finite numbers; for NaN, set missing = true")
        seen: set[Value] = set()
        for value in values:
            if value in seen:
                raise column.error(f"the value {quoted(value)} is listed twice; remove one")
            seen.add(value)
        other = plain_value(column.other)
        if other is not None and (other not in values or isinstance(other, str) != (value_type == "str")):
            raise column.error(
                f"other is {quoted(other)}, which is not among the values {some_of(values)}; add it to them"
            )
        return {"values": values, "other": other, "value_type": value_type, "cuts": ()}

    def _need_values(self) -> None:
        if len(self.column.values) == 0 and not self.column.missing:
            raise self.column.error(
                "the list of values is empty; give at least one value, e.g. values = [1, 2], or missing = true for a "
                "column that is always missing"
            )

    def no_label(self, key: str) -> str:
        return f'there is a label for "{key[:40]}"; the values are {some_of(self.column.values)}'

    @property
    def present(self) -> int:
        return len(self.column.values)

    @property
    def last_resort(self) -> int:
        return self.present - 1

    def codes(self, cells: Any, fallback: int) -> Coding:
        index = self._indices(cells)
        fits = index >= 0
        return np.where(fits, index, fallback), fits

    def _indices(self, cells: Any) -> NDArray[np.int64]:
        """The index of each cell in the list of values; -1 if it is not there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values, value_type = self.column.values, self.column.value_type
        if value_type == "str":
            types, kind = pa.types, cells.type
            number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
            texts = numerals(self.column.values) if number else values
            index = pc.index_in(texts_of(cells), value_set=pa.array(texts, pa.large_string()))
            return np.asarray(index.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        if value_type == "bool" and is_text(cells.type):
            words = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
            truth = pc.index_in(words, value_set=pa.array(["false", "true", "0", "1"], pa.large_string()))
            cells = pc.bit_wise_and(truth, 1)
        if value_type == "int" and max(abs(int(value)) for value in values) >= LARGEST_WHOLE:
            return self._exact_indices(cells)
        numbers = numbers_in(cells, dates=self.column.dates)
        listed = np.asarray(values, dtype=np.float64)
        order = np.argsort(listed)
        near = np.minimum(np.searchsorted(listed[order], numbers), len(listed) - 1)
        return np.where(listed[order][near] == numbers, order[near], -1).astype(np.int64)

    def _exact_indices(self, cells: Any) -> NDArray[np.int64]:
        """For whole numbers that floats cannot tell apart: Python compares all numbers exactly."""
        index_of: dict[Any, int] = {value: index for index, value in enumerate(self.column.values)}
        if is_text(cells.type):
            numbers = [None if text is None else Decimal(text) for text in numerals_in(cells).to_pylist()]
        else:
            numbers = cells.to_pylist()
        return np.array([index_of.get(number, -1) for number in numbers], dtype=np.int64)

    def satisfying(self, op: str, value: Any) -> Mask:
        column = self.column
        asked = f"{column.name} {op} {value!r}"
        value = plain_value(value)
        hint = self._label_hint(op, value) if isinstance(value, str) else ""
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
                raise WorkloadError(
                    f"{asked}: choose one of the values of {column.name}, {some_of(column.values)}{hint}"
                )
            equal = np.array([each == value for each in column.values], dtype=np.bool_)
            return equal if op == "==" else ~equal
        if column.value_type not in ("int", "float"):
            raise WorkloadError(
                f"{asked}: the values of {column.name} have no order; use == or !=, or `in` with a list"
            )
        return np.asarray(ORDER[op](np.array(column.values), value), dtype=np.bool_)

    def _label_hint(self, op: str, text: str) -> str:
        """What to write instead of a label, such as ``" ('female' is the label of 2: write SEX == 2)"``; or nothing."""
        column, asked = self.column, text.casefold()
        for value in (*column.values, None):
            label = column.label_of(value)
            if label is not None and label.casefold() == asked:
                if value is not None:
                    return f" ({text!r} is the label of {value!r}: write {column.name} {op} {value!r})"
                test = "is missing" if op == "==" else "is not missing"
                return f" ({text!r} is the label of missing: write {column.name} {test})"
        return ""

    def natural_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.array(self.column.values).type

    def cell_texts(self) -> list[str]:
        return [value_text(value) for value in self.column.values]

    words = cell_texts


class Group(Categorical):
    """The values of a column of the list of groups, which may be given later."""

    name = "group"
    groups = True
    keys = frozenset({"values"})
    empty_type = ""

    def _need_values(self) -> None:
        """The list of groups may give them later."""

    @property
    def unlisted(self) -> bool:
        return not self.column.values

    @property
    def present(self) -> int:
        if self.unlisted:
            raise self.column.error(
                "the values of this group column are not known yet; "
                "give the public list of groups with schema.with_groups(table)"
            )
        return len(self.column.values)


def numerals(values: tuple[Value, ...]) -> list[str]:
    """Listed texts in the form in which numbers are compared with them: codes of one width lose leading zeros.

    A table that stores the codes "00100" and "02300" as numbers contains 100 and 2300. If the widths differ, as in "1"
    and "02", leading zeros are part of the code and are kept.
    """
    texts = [str(value) for value in values]
    codes = {text for text in texts if text.isascii() and text.isdigit() and len(text) <= DIGITS}
    if len({len(code) for code in codes}) > 1:
        return texts
    return [str(int(text)) if text in codes else text for text in texts]
