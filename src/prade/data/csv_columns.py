"""A large public CSV file, read once and then column by column: its cells wait in a temporary parquet file."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prade.core.errors import DataError
from prade.data.cells import one_piece
from prade.data.columns import Columns
from prade.data.csv_format import CsvFormat, header_of
from prade.data.decompression_limits import refuse_gzip_bomb
from prade.data.tables import column_names, csv_damage_reported, file_damage_reported, text_of_coded_bytes

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 100_000


def csv_columns(path: Path, form: CsvFormat) -> Columns:
    """The columns of a CSV file as `read_table` reads them without guessing types."""
    import pyarrow.parquet as pq

    if path.name.lower().endswith(".gz"):
        refuse_gzip_bomb(path)
    handle, name = tempfile.mkstemp(prefix="prade-", suffix=".parquet")
    os.close(handle)
    waiting = Path(name)
    try:
        with file_damage_reported(path), csv_damage_reported(path, form):
            header_of(path, replace(form, line_breaks=True))  # an error says what is wrong with the format
            names = _write_cells(path, form, waiting)
    except BaseException:
        waiting.unlink(missing_ok=True)
        raise

    def read(column: str) -> pa.Table:
        table = pq.read_table(waiting, columns=[column], read_dictionary=[column])
        return table.set_column(0, column, text_of_coded_bytes(one_piece(table[column])))

    columns = Columns(names, read)
    weakref.finalize(read, waiting.unlink, missing_ok=True)
    return columns


def _write_cells(path: Path, form: CsvFormat, target: Path) -> list[str]:
    """Copy the cells to a parquet file, as bytes, and return the names of the columns."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    parse = csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    read = csv.ReadOptions(encoding=form.encoding)
    with csv.open_csv(path, read, parse) as reader:
        names = column_names(reader.schema.empty_table())
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()), null_values=[""], strings_can_be_null=True
    )
    schema = pa.schema([(name, pa.binary()) for name in names])
    with csv.open_csv(path, read, parse, convert) as reader, pq.ParquetWriter(target, schema) as writer:
        for table in _pieces(reader):
            try:
                writer.write_table(table)
            except OSError as error:
                raise DataError(
                    f"temporary files cannot be written to {target.parent} ({error.strerror or error}): make room "
                    "there, or set TMPDIR to another folder"
                ) from None
    return names


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Some of the batches together, so that there are not too many groups of rows."""
    import pyarrow as pa

    waiting, rows = [], 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
