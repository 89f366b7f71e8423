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
from prade.data.declared_types import Like
from prade.data.decoding import Decoder
from prade.data.groups import Groups
from prade.data.matching import numbers_of
from prade.data.public import Public, group_columns
from prade.data.public_files import PublicFiles
from prade.data.schema import Schema
from prade.data.tables import read_table, table_suffix, with_types

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
    def cells(self) -> pa.Table:
        """The table without guessed types, so that no cell influences how another is read."""
        source = self.source if self.files is None else self.files.source()
        table = read_table(source, guess=False)
        if self._is_text and _has_replacements(table):
            read_table(source)  # refuses a file that is not UTF-8; one that has U+FFFD itself is read
        return table

    @cached_property
    def typed(self) -> pa.Table:
        """The table with types guessed from its cells."""
        if self.files is None:
            return read_table(self.source)
        return with_types(self.cells) if self._is_text else self.cells  # several files get common types when read

    def _typed_for(self, schema: Schema) -> pa.Table:
        """The table with the types of its own values: in a column of numbers, a text such as "N" stands for missing."""
        import pyarrow as pa

        table = self.typed
        for index, name in enumerate(table.column_names):
            column = schema[name] if name in schema.names else None
            numeric = column is not None and (column.value_type in ("int", "float") or column.kind == "numeric")
            if column is None or not self._is_text or not numeric or not is_text(table[name].type):
                continue
            number = pa.array(~np.isnan(numbers_of(column, one_piece(table[name]))))
            coded = (
                one_piece(table[name].filter(number)).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string()))
            )
            read = with_types(pa.table({name: coded}))[name]
            cells = one_piece(read).take(pa.array(np.cumsum(number) - 1, mask=~np.asarray(number)))
            table = table.set_column(index, name, cells)
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
        return Schema.infer(self.typed, groups=groups, weight=self.weight, skip=skip)

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


def _has_replacements(table: pa.Table) -> bool:
    """Whether any text has U+FFFD, which stands for bytes that are not UTF-8."""
    import pyarrow.compute as pc

    texts = (one_piece(column).dictionary for column in table.columns)
    return any(pc.any(pc.match_substring(each, "\ufffd")).as_py() for each in texts)
