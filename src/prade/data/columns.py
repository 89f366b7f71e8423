"""A table whose columns are read one at a time, so that a file with many columns is never in memory whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from prade.core.documents import json_value
from prade.core.errors import PradeError

if TYPE_CHECKING:
    import pyarrow as pa

PANDAS = b"pandas"
AT_ONCE = 4  # columns that are read and coded at the same time: each is in memory


class Columns:
    """In place of an Arrow table: `column_names`, `columns[name]` and `schema`; nothing that is read is kept.

    `read` reads one column, as a table that has its notes.
    """

    def __init__(
        self, column_names: Sequence[str], read: Callable[[str], pa.Table], schema: pa.Schema | None = None
    ) -> None:
        self.column_names = list(column_names)
        self._read = read
        self._schema = schema

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(name)[name]

    @cached_property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self[self.column_names[0]]) if self.column_names else 0

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of all columns, with the notes for pandas about them; if it was not given, each column is read."""
        import pyarrow as pa

        if self._schema is not None:
            return self._schema
        each = {name: self._read(name).schema for name in self.column_names}
        notes = {name: pandas_notes(schema) for name, schema in each.items()}
        columns = [
            note for name, found in notes.items() for note in found.get("columns", []) if note["field_name"] == name
        ]
        first = next((found for found in notes.values() if found), {})
        metadata = {PANDAS: json.dumps({**first, "index_columns": [], "columns": columns}).encode()}
        return pa.schema([schema.field(0) for schema in each.values()], metadata if columns else None)

    def table(self, names: Sequence[str]) -> pa.Table:
        """Some columns together."""
        import pyarrow as pa

        found = [self._read(name) for name in names]
        if len(found) == 1:
            return found[0]
        return pa.table({name: each[name] for name, each in zip(names, found, strict=True)})

    def changed(self, change: Callable[[str, Any], Any]) -> Columns:
        """The same columns, each changed when it is read: `change` gets a column's name and its cells."""
        import pyarrow as pa

        return Columns(self.column_names, lambda name: pa.table({name: change(name, self[name])}))


def pandas_notes(schema: pa.Schema) -> dict[str, Any]:
    """The notes for pandas in a schema's metadata; empty if there are none, or if they are malformed."""
    with suppress(PradeError, KeyError, TypeError):
        notes = json_value((schema.metadata or {})[PANDAS])
        if all(isinstance(each["field_name"], str | None) for each in notes["columns"]):
            return dict(notes)
    return {}
