"""Types that a database declares: what cells of a type can be, and whether they can fit a column of the schema."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from prade.data.declare.column import Column
from prade.data.matching import NUMBER, numerals

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Kind = Literal["number", "boolean", "date", "text", "other", "unreadable"]


@dataclass(frozen=True)
class DeclaredType:
    """The type that a database declares for a column, in the database's words, and what cells of it can be."""

    words: str
    kind: Kind

    def misfit(self, column: Column | None) -> str | None:
        """Why no cell of this type can have a value of the column, or be a person's id (None); None if some can."""
        if self.kind == "unreadable":
            return f"prade cannot read the table's type {self.words}; convert it"
        if column is None or self.kind == "text" or column.size == 1:
            return None
        if column.value_type == "str":
            return self._unlike_texts(column)
        wanted = "dates" if column.dates else "numbers"
        if self.kind == "other" or (self.kind == "date") != column.dates:
            return f"the schema has {wanted}, but the table has the type {self.words}; convert it"
        return None

    def _unlike_texts(self, column: Column) -> str | None:
        texts = [str(value) for value in (numerals(column) if self.kind == "number" else column.values)]
        alike = {
            "number": lambda text: re.match(NUMBER, text) is not None,
            "boolean": lambda text: text in ("true", "false"),
            "date": lambda text: DATE.match(text) is not None,
            "other": lambda text: True,
        }[self.kind]
        if any(map(alike, texts)):
            return None
        return (
            f"no cell of the table's type {self.words} can equal a listed value (the first is {column.values[0]!r}); "
            "write the values as the table does, or convert the column"
        )
