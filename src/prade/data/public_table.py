"""`PublicTable`, the public table as the user gives it, which is read only once and shared by all stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError, PradeError
from prade.data.cells import is_text, one_piece
from prade.data.columns import Columns
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.declared_types import Like
from prade.data.decoding import Decoder
from prade.data.matching import numbers_of
from prade.data.public import Public, group_columns
from prade.data.public_files import PublicFiles
from prade.data.tables import guess_type, read_table, table_suffix, with_types

if TYPE_CHECKING:
    import pyarrow as pa


class PublicTable:
    """A public table in memory or in files, and the name of its column of weights.

    Files are read only once, when their rows are first needed.

    >>> from prade import Column
    >>> schema = Schema([Column("AGE", "numeric", edges=[18, 65])])
    >>> table = PublicTable({"AGE": [3, 40, 70, 71]})
    >>> table.rows(schema).prior.project("AGE")
    array([0.25, 0.25, 0.5 ])
    """

    def __init__(self, given: Any, weight: str | None = None) -> None:
        source = given
        if source is None:
            raise DataError("estimates need a public table to start from, but none was given", remedy="public")
        if isinstance(source, Public):
            raise DataError("give the public table itself, not coded rows, because values are drawn from it")
        paths = [source] if isinstance(source, (str, PathLike)) else source
        if isinstance(paths, (list, tuple)) and paths and all(isinstance(path, (str, PathLike)) for path in paths):
            source = PublicFiles.at(paths, weight)
        self.given = given
        self.files: PublicFiles | None = source if isinstance(source, PublicFiles) else None
        self.source = source
        self.weight = self.files.weight if self.files is not None and weight is None else weight
        self._rows: dict[tuple[Schema, tuple[str, ...]], Public] = {}
        self._decoders: dict[Schema, Decoder] = {}

    @classmethod
    def of(cls, source: Any, weight: str | None = None) -> PublicTable:
        """A PublicTable from any kind of table or file; a PublicTable is returned unchanged."""
        return source if isinstance(source, PublicTable) else cls(source, weight)

    @cached_property
    def hashed_files(self) -> PublicFiles | None:
        """The files with the hashes of their contents; None for a table in memory."""
        return self.files and self.files.hashed()

    @cached_property
    def cells(self) -> pa.Table | Columns:
        """The table without guessed types, so that no cell influences how another is read.

        The columns of parquet files and of large CSV files are read one at a time, when they are needed.
        """
        if self.files is None:
            return read_table(self.source, guess=False)
        table = self.files.columns()
        if self._is_text and _has_replacements(table):
            read_table(self.files.source())  # refuses a file that is not UTF-8; one that has U+FFFD itself is read
        return table

    @cached_property
    def typed(self) -> pa.Table | Columns:
        """The table with types guessed from its cells."""
        if self.files is None:
            return read_table(self.source)
        if not self._is_text:
            return self.cells  # several files get common types when read
        if isinstance(self.cells, Columns):
            return self.cells.changed(lambda name, cells: guess_type(one_piece(cells)))
        return with_types(self.cells)

    def _typed_for(self, schema: Schema) -> pa.Table | Columns:
        """The table with the types of its own values: in a column of numbers, a text such as "N" stands for missing."""
        table = self.typed
        if not self._is_text:
            return table
        if isinstance(table, Columns):
            return table.changed(lambda name, cells: _numbers_typed(schema, name, cells))
        for index, name in enumerate(table.column_names):
            table = table.set_column(index, name, _numbers_typed(schema, name, table[name]))
        return table

    @property
    def _is_text(self) -> bool:
        """Whether the table is a single CSV file."""
        files = () if self.files is None else self.files.files
        return len(files) == 1 and table_suffix(Path(files[0])) != ".parquet"

    def rows(self, schema: Schema, groups: Groups | None = None) -> Public:
        """The coded rows and the public group of each; groups are defined by the columns of `groups` and the schema."""
        by = group_columns(Groups.of(groups), schema)
        if (schema, by) not in self._rows:
            table = self.source if self.files is None else self.cells
            with self._named():
                self._rows[schema, by] = Public.of(schema, table, by, weight=self.weight)
        return self._rows[schema, by]

    def decoder(self, schema: Schema) -> Decoder:
        """A decoder that turns codes into values like those of the table."""
        if schema not in self._decoders:
            frame = self.source if self.files is None else self._typed_for(schema)
            with self._named():
                self._decoders[schema] = Decoder.fit(schema, frame, weight=self.weight)
        return self._decoders[schema]

    def draft(self, groups: Sequence[str] = (), skip: Sequence[str] = ()) -> Schema:
        """A schema proposed from the table."""
        return Schema.infer(read_table(self.typed), groups=groups, weight=self.weight, skip=skip)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let an error about the table name its files: a run has private files too."""
        try:
            yield
        except PradeError as error:
            raise error.within("the public table" if self.files is None else ", ".join(self.files.files)) from None

    @property
    def like(self) -> Like:
        """The kind of table to return: the same kind as given, or a pyarrow table for files and dicts."""
        home = type(self.source).__module__.partition(".")[0]
        return "pandas" if home == "pandas" else "polars" if home == "polars" else "pyarrow"


def _numbers_typed(schema: Schema, name: str, cells: Any) -> Any:
    """The cells with the type of its numbers, if the column is one of numbers and has texts that stand for missing."""
    import pyarrow as pa

    column = schema[name] if name in schema.names else None
    numeric = column is not None and (column.value_type in ("int", "float") or column.kind == "numeric")
    if column is None or not numeric or not is_text(cells.type):
        return cells
    number = pa.array(~np.isnan(numbers_of(column, one_piece(cells))))
    numbers = one_piece(cells.filter(number)).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string()))
    read = guess_type(numbers)
    return read.take(pa.array(np.cumsum(number) - 1, mask=~np.asarray(number)))


def _has_replacements(table: pa.Table | Columns) -> bool:
    """Whether any text has U+FFFD, which stands for bytes that are not UTF-8."""
    import pyarrow.compute as pc

    texts = (one_piece(table[name]).dictionary for name in table.column_names)
    return any(pc.any(pc.match_substring(each, "\ufffd")).as_py() for each in texts)
