"""Where the public table is: one file or several. The plan records them, so that nobody has to name them again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prade.core.errors import DataError, within
from prade.core.files import content_hash, refuse_duplicates
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.decode import Decoder
from prade.data.public.public import Public, group_columns
from prade.data.read.cells import Columns, is_text, noted, one_piece, pandas_notes, plain_cells
from prade.data.read.coding import numbers_of
from prade.data.read.csv import DEFAULT_FORMAT, CsvFormat, format_of
from prade.data.read.frames import Like
from prade.data.read.tables import PARQUET, checked_names, file_format, guess_type, read_table, table_columns


@dataclass(frozen=True)
class PublicFiles:
    """Files of public rows, all with the same columns, and the name of the column of weights, if there is one.

    `csv` is the format of CSV files, `sha256` the hashes of the contents, if known. `folder` is the folder of the plan
    that brought the list; None if the user of this run named the files. A plan may come from anybody and name any file
    of its reader, so its files are read only if they lie in its folder and have its hashes (`checked`).
    """

    files: tuple[str, ...]
    weight: str | None = None
    sha256: tuple[str, ...] = ()
    csv: CsvFormat = DEFAULT_FORMAT
    folder: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        texts = [*self.files, *([] if self.weight is None else [self.weight])]
        if not self.files or not all(isinstance(text, str) and text for text in texts):
            raise DataError(f"files is {self.files!r} and weight {self.weight!r}; give paths and a name, as texts")
        if self.sha256 and len(self.sha256) != len(self.files):
            raise DataError(f"sha256 has {len(self.sha256)} hashes for {len(self.files)} files; give one each, or none")

    @classmethod
    def at(cls, paths: Iterable[str | PathLike[str]], weight: str | None = None) -> PublicFiles:
        """The files at these paths, made absolute so that they are found from any folder later."""
        given = list(paths)
        return cls(tuple(str(Path(path).absolute()) for path in given), weight, csv=format_of(given))

    def seen_from(self, folder: str | PathLike[str]) -> PublicFiles:
        """The same files with paths relative to a folder, so that files and folder can be moved together."""
        return replace(self, files=tuple(os.path.relpath(file, Path(folder).absolute()) for file in self.files))

    def found_from(self, folder: str | PathLike[str]) -> PublicFiles:
        """The same files with absolute paths; relative paths are taken from the folder of the file that has them."""
        here = Path(folder).absolute()
        return replace(self, files=tuple(os.path.normpath(here / file) for file in self.files))

    def hashed(self) -> PublicFiles:
        """The same files with the hashes of their current contents."""
        return replace(self, sha256=tuple(map(content_hash, self._existing())))

    def checked(self) -> PublicFiles:
        """The same files, for reading: each has its hash, and those that a plan brought lie in the plan's folder."""
        for file, digest in zip(self.files, self.sha256 or (None,) * len(self.files), strict=True):
            self._check(file, digest)
        return replace(self, folder=None)

    def moved_to(self, now: PublicFiles) -> PublicFiles:
        """The files of a plan, for reading, at the paths that the user names now; the others must pass `checked`.

        Files with other contents are refused: they could be the private ones. Without hashes, the user's replace all.
        """
        now = now if now.sha256 else now.hashed()
        named = dict(zip(now.sha256, now.files, strict=True))
        form: dict[str, Any] = {"weight": now.weight or self.weight, "csv": self.csv}
        if not self.sha256:
            return replace(now, sha256=(), **form)
        for digest, file in named.items():
            if digest not in self.sha256:
                other = f"{file} is not one of the public files that the plan was made with, and may be the private one"
                raise DataError(f"{other}; give the paths of those files, or in Python another public table itself")
        for file, digest in zip(self.files, self.sha256, strict=True):
            if digest not in named:
                self._check(file, digest)
        files = tuple(named.get(digest, file) for file, digest in zip(self.files, self.sha256, strict=True))
        return replace(self, files=files, folder=None, **form)

    def _check(self, file: str, digest: str | None) -> None:
        # by path first: of a file outside the folder, the plan's author learns not even whether it exists
        if self.folder is not None:
            folder = Path(self.folder).resolve()
            if not Path(os.path.realpath(file)).is_relative_to(folder):
                raise DataError(f"{file} lies outside the plan's folder {folder}", remedy="public_named")
            if digest is None:
                raise DataError(f"the plan has no hash of {file}", remedy="public_named")
        _need_file(file)
        if digest is not None and content_hash(file) != digest:
            raise DataError(f"{file} is not the public file that the plan was made with; restore the original")

    def _existing(self) -> tuple[str, ...]:
        if self.folder is not None:
            self.checked()
        for file in self.files:
            _need_file(file)
        return self.files

    @property
    def is_text(self) -> bool:
        """Whether the table is a single CSV file."""
        return len(self.files) == 1 and not file_format(self.files[0]).typed

    def source(self) -> Any:
        """What to read as one table: the path of the only file, or the rows of all files together."""
        refuse_duplicates(self._existing())  # to give rows more weight, use a column of weights
        return self.csv.file(self.files[0]) if len(self.files) == 1 else _concatenated(self.files, self.csv)

    def columns(self) -> Columns:
        """The columns of all files without guessed types; of parquet files, one is read at a time."""
        refuse_duplicates(self._existing())
        if len(self.files) > 1 and all(file_format(file) is PARQUET for file in self.files):
            names = [checked_names(PARQUET.schema(Path(file)).names) for file in self.files]
            _need_same_columns(self.files, names)
            return Columns(names[0], lambda name: _concatenated(self.files, self.csv, [name]))
        table = table_columns(self.source())
        if isinstance(table, Columns):
            return table
        if self.is_text and any(
            pc.any(pc.match_substring(one_piece(cells).dictionary, "\ufffd")).as_py() for cells in table.columns
        ):
            read_table(self.source())  # refuses a file that is not UTF-8; one that has U+FFFD itself is read
        return Columns(table.column_names, lambda name: table.select([name]), table.schema)


def _need_file(file: str) -> None:
    if not Path(file).is_file():
        raise DataError(f"there is no public file {file}; it may have been moved", remedy="public")


def _need_same_columns(files: tuple[str, ...], names: Sequence[Sequence[str]]) -> None:
    for file, mine in zip(files, names, strict=True):
        absent, more = {*names[0]} - {*mine}, {*mine} - {*names[0]}
        if absent or more:
            lacking, having = (file, files[0]) if absent else (files[0], file)
            columns = ", ".join(sorted(absent or more)[:5])
            raise DataError(f"{lacking} lacks the column {columns}, which {having} has; give files with the same ones")


def _concatenated(files: tuple[str, ...], form: CsvFormat, names: Sequence[str] | None = None) -> pa.Table:
    tables = [read_table(form.file(file), names) for file in files]
    _need_same_columns(files, [table.column_names for table in tables])
    names = tables[0].column_names
    alike = {name: len({table.schema.field(name).type for table in tables}) == 1 for name in names}

    def plain(table: pa.Table, name: str) -> Any:
        """For joining with a column of another type: no dictionary, and no type if there is no value."""
        column = table[name]
        if alike[name]:
            return column
        return pa.nulls(len(column)) if column.null_count == len(column) else plain_cells(column)

    parts = [pa.table({name: plain(table, name) for name in names}) for table in tables]
    try:
        joined = pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException:
        differing = [name for name in names if len({str(table.schema.field(name).type) for table in parts}) > 1]
        types = f"the public files have incompatible types (numbers and text) in {', '.join(differing[:5])}"
        raise DataError(f"{types}; convert the columns to one type") from None
    first = tables[0].schema  # whose notes about the columns that still have its type hold for all
    own = {each.name for each in joined.schema if first.field(each.name).type == each.type}
    notes = {each.name: first.field(each.name).metadata if each.name in own else None for each in joined.schema}
    fields = [each.with_metadata(notes[each.name]) for each in joined.schema]
    return joined.cast(pa.schema(fields, noted(pandas_notes(first), own)))


class PublicTable:
    """A public table in memory or in files, and the name of its column of weights; files are read once, when needed."""

    def __init__(self, given: Any, weight: str | None = None) -> None:
        source = given
        if source is None:
            raise DataError("estimates need a public table to start from, but none was given", remedy="public")
        if isinstance(source, Public):
            raise DataError("give the public table itself, not coded rows, because values are drawn from it")
        paths = [source] if isinstance(source, (str, PathLike)) else source
        if isinstance(paths, (list, tuple)) and paths and all(isinstance(path, (str, PathLike)) for path in paths):
            source = PublicFiles.at(paths, weight)
        self.given, self.source = given, source
        self.files: PublicFiles | None = source if isinstance(source, PublicFiles) else None
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
        """The table without guessed types, so that no cell influences how another is read."""
        return read_table(self.source, guess=False) if self.files is None else self.files.columns()

    @cached_property
    def typed(self) -> pa.Table | Columns:
        """The table with types guessed from its cells."""
        if self.files is None:
            return read_table(self.source)
        if not isinstance(self.cells, Columns) or not self.files.is_text:
            return self.cells  # several files get common types when read
        return self.cells.changed(lambda name, cells: guess_type(one_piece(cells)))

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
            frame = self.source if self.files is None else self.typed
            if isinstance(frame, Columns) and self.files is not None and self.files.is_text:
                frame = frame.changed(lambda name, cells: _numbers_typed(schema, name, cells))
            with self._named():
                self._decoders[schema] = Decoder.fit(schema, frame, weight=self.weight)
        return self._decoders[schema]

    def draft(self, groups: Sequence[str] = (), skip: Sequence[str] = ()) -> Schema:
        """A schema proposed from the table."""
        return Schema.infer(read_table(self.typed), groups=groups, weight=self.weight, skip=skip)

    def _named(self) -> AbstractContextManager[None]:
        """Let an error about the table name its files: a run has private files too."""
        return within("the public table" if self.files is None else ", ".join(self.files.files))

    @property
    def like(self) -> Like:
        """The kind of table to return: the same kind as given, or a pyarrow table for files and dicts."""
        home = type(self.source).__module__.partition(".")[0]
        return cast(Like, home) if home in ("pandas", "polars") else "pyarrow"


def _numbers_typed(schema: Schema, name: str, cells: Any) -> Any:
    """The cells with the type of its numbers, if the column is one of numbers and has texts that stand for missing."""
    column = schema[name] if name in schema.names else None
    if column is None or not is_text(cells.type) or not (column.numeric or column.value_type in ("int", "float")):
        return cells
    number = pa.array(~np.isnan(numbers_of(column, one_piece(cells))))
    numbers = one_piece(cells.filter(number)).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.string()))
    read = guess_type(numbers)
    return read.take(pa.array(np.cumsum(number) - 1, mask=~np.asarray(number)))
