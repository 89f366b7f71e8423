"""Streams of private rows from files and tables in memory: read in batches, and coded cell by cell as they pass.

A file's types follow its rows: one missing value turns whole numbers into floats, and an empty column has no type at
all. So every file is read with its own types, each cell is coded by its own value (`prade.data.matching`), and only
codes are combined. No file's types are imposed on another file's rows, and no type makes a run fail: a cell that does
not fit its column counts as a value outside the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError
from prade.data.cells import clean_text, floats_of, is_text, object_cells, plain_array, texts_of
from prade.data.csv_format import CsvFormat, header_of
from prade.data.matching import code_cells
from prade.measuring.csv_records import csv_batches

if TYPE_CHECKING:
    import pyarrow as pa

    from prade.data.column import Column
    from prade.data.groups import KeyedGroups

ROWS_PER_BATCH = 2**16
BYTES_READ_AT_ONCE = 2**20  # of one column of a parquet file

Batch = Mapping[str, Any]  # the cells of each column, as Arrow arrays


@dataclass(frozen=True)
class Stream:
    """Rows that can be read repeatedly: `read(names)` yields batches of the named columns.

    `lacking` maps the name of each column that only some files have to a file that lacks it. With `at_once`, the
    thread that asks for the batches must read all of them.
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], Iterator[Batch]]
    lacking: Mapping[str, str] = field(default_factory=dict)
    at_once: bool = False


@dataclass(frozen=True)
class Coding:
    """What to make of each row: its group, its finest group, its codes under new names, and its person."""

    codes: Mapping[str, Column]
    listed: KeyedGroups
    group: str
    finest_group: str
    person: tuple[str, str] | None  # the column, and its new name

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        people = [] if self.person is None else [self.person[0]]
        wanted = [*self.listed.columns, *self.codes.values()]
        return list(dict.fromkeys([*(column.name for column in wanted), *people]))

    @property
    def schema(self) -> pa.Schema:
        """The types of the coded columns, which follow from the declared columns alone."""
        import pyarrow as pa

        fields = [(self.group, pa.int64()), (self.finest_group, pa.int64())]
        fields += [(own, pa.from_numpy_dtype(code_type(column.size))) for own, column in self.codes.items()]
        if self.person is not None:
            fields.append((self.person[1], pa.large_string()))
        return pa.schema(fields)

    def batch(self, cells: Batch) -> pa.RecordBatch:
        """The rows of listed groups, in codes."""
        import pyarrow as pa

        rows = len(next(iter(cells.values())))
        finest, number = self.listed.joint_codes(cells, rows, refuse=False)
        kept = number >= 0
        columns = [number[kept], finest[kept]]
        for column in self.codes.values():
            codes, _ = code_cells(column, cells[column.name], refuse=False)
            columns.append(codes[kept].astype(code_type(column.size)))
        arrays = [pa.array(column) for column in columns]
        if self.person is not None:
            arrays.append(person_keys(cells[self.person[0]]).filter(pa.array(kept)))
        return pa.record_batch(arrays, schema=self.schema)


def coded(stream: Stream, coding: Coding) -> pa.RecordBatchReader:
    """The stream's rows in codes; they can be read once."""
    import pyarrow as pa

    names = coding.names or stream.columns[:1]  # any column tells how many rows there are
    batches = (coding.batch(cells) for cells in stream.read(names))
    return pa.RecordBatchReader.from_batches(coding.schema, list(batches) if stream.at_once else batches)


def code_type(size: int) -> np.dtype[Any]:
    """The narrowest signed type for codes below `size`: rows that an engine sorts or spills stay small."""
    return np.dtype(np.int16 if size <= 2**15 else np.int32)


def person_keys(cells: Any) -> Any:
    """Each row's person as text, the same for 7 and 7.0; null where the cell is missing or cannot be an id.

    Numbers are compared as doubles, whatever the column's type, because one missing id turns them all into floats.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = plain_array(cells)
    types, kind = pa.types, cells.type
    if types.is_dictionary(kind):
        return person_keys(cells.dictionary).take(cells.indices)
    if types.is_union(kind):
        children = [person_keys(cells.field(number)) for number in range(kind.num_fields)]
        starts = np.cumsum([0, *map(len, children)])[:-1]
        rows = starts[cells.type_codes.to_numpy()] + cells.offsets.to_numpy()
        return pa.concat_arrays(children).take(pa.array(rows))
    if types.is_integer(kind) or types.is_floating(kind):
        numbers = pa.array(floats_of(cells), from_pandas=True)
        return pc.if_else(pc.is_null(texts_of(numbers)), numbers.cast(pa.large_string()), texts_of(numbers))
    if is_text(kind):
        return clean_text(cells)
    if types.is_boolean(kind) or types.is_decimal(kind) or types.is_date(kind) or types.is_timestamp(kind):
        return texts_of(cells)
    return pa.nulls(len(cells), pa.large_string())


# ---------------------------------------------------------------------- where rows come from


def table_stream(table: pa.Table) -> Stream:
    """A table in memory."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for batch in table.select(list(names)).to_batches(max_chunksize=ROWS_PER_BATCH):
            yield dict(zip(names, batch.columns, strict=True))

    return Stream(tuple(table.column_names), read)


def parquet_stream(files: Sequence[str]) -> Stream:
    """Parquet files, one after the other, each with its own types.

    They are read row group by row group, when a batch is asked for: Arrow's scanner would read ahead, up to a GiB, and
    its iterator over all row groups would keep all that it has read of the file.
    """
    import pyarrow.parquet as pq

    headers = [pq.read_schema(file).names for file in files]

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for file in files:
            # In nanoseconds, the times of old writers would overflow.
            options = {"coerce_int96_timestamp_unit": "us", "buffer_size": BYTES_READ_AT_ONCE, "pre_buffer": False}
            with pq.ParquetFile(file, **options) as rows:
                groups = range(rows.num_row_groups)
                batches = (
                    rows.iter_batches(ROWS_PER_BATCH, row_groups=[group], columns=list(names)) for group in groups
                )
                for batch in chain.from_iterable(batches):
                    yield {name: batch.column(batch.schema.get_field_index(name)) for name in names}

    return _of_files(files, headers, read)


def csv_stream(files: Sequence[str], form: CsvFormat) -> Stream:
    """CSV files as text; the caller declares their format, and nothing is guessed from the rows."""
    headers = [header_of(file, form) for file in files]

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for file, header in zip(files, headers, strict=True):
            for columns in csv_batches(file, form, len(header), [header.index(name) for name in names]):
                yield dict(zip(names, columns, strict=True))

    return _of_files(files, headers, read)


def _of_files(
    files: Sequence[str], headers: Sequence[Sequence[str]], read: Callable[[Sequence[str]], Iterator[Batch]]
) -> Stream:
    """The stream of files with these columns; it has the columns that all files have."""
    for file, header in zip(files, headers, strict=True):
        if len(set(header)) < len(header) or not all(header):
            raise DataError(f"{file} has a column without a name or two columns with the same name; rename the column")
    every = dict.fromkeys(name for header in headers for name in header)
    lacking = {
        name: file
        for name in every
        for file, header in reversed(list(zip(files, headers, strict=True)))
        if name not in header
    }
    return Stream(tuple(name for name in every if name not in lacking), read, lacking)


def cursor_stream(
    columns: Sequence[str],
    rows: Callable[[Sequence[str]], Iterator[Sequence[Sequence[Any]]]],
    *,
    at_once: bool = False,
) -> Stream:
    """Rows of Python objects that a database returns, as lists from `rows(names)`: each cell has its own type."""

    def read(names: Sequence[str]) -> Iterator[Batch]:
        for chunk in rows(names):
            yield {name: object_cells(cells) for name, cells in zip(names, zip(*chunk, strict=True), strict=True)}

    return Stream(tuple(columns), read, at_once=at_once)
