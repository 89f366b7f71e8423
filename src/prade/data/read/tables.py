"""Reading and writing tables: pandas, polars, pyarrow, dicts of arrays, parquet and CSV files, all as pyarrow tables.

The rows may be private, so no error raised here contains a cell or a line of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from prade.core.errors import DataError, closest, names_of
from prade.core.files import replace_file
from prade.data.read.cells import (
    Columns,
    is_missing,
    object_cells,
    plain_cells,
    python_values,
    replace_invalid_utf8,
    text_of_characters,
    texts_of,
)
from prade.data.read.csv import CsvFormat, format_of
from prade.data.read.files import parts_of, read_parts
from prade.data.read.formats import NAMES, PARQUET, damage_reported, file_format, format_to_write


def read_table(source: Any, columns: Sequence[str] | None = None, *, guess: bool = True) -> pa.Table:
    """Read any table or file as a pyarrow table; with `columns`, only these. All tables enter prade through here.

    A column of a CSV file or of Python objects gets the narrowest type that fits all its cells, or becomes text. With
    ``guess=False``, no cell influences how another is read: CSV columns stay text, and each Python object keeps its own
    type (an Arrow union). Types that a file or frame declares are kept either way.
    """
    if isinstance(source, (str, PathLike)):
        return _read_file(Path(source), columns, guess, format_of(source))
    known = type(source).__module__.partition(".")[0] in ("polars", "pyarrow") or hasattr(source, "iloc")
    elsewhere = hasattr(source, "__arrow_c_stream__") and not known and not isinstance(source, (Mapping, Columns))
    if isinstance(source, pa.RecordBatch) or elsewhere:  # a library that offers Arrow's capsules
        source = pa.table(source)
    chosen = _chosen(column_names(source), columns, "the table")
    if isinstance(source, Columns):
        return source.table(chosen)
    if isinstance(source, pa.Table):
        return replace_invalid_utf8(source.select(chosen))
    arrays = [_arrow_column(source, name, guess) for name in chosen]
    if len({len(array) for array in arrays}) > 1:
        raise DataError("the columns differ in length; give columns of equal length")
    return pa.table(arrays, names=chosen)


def table_columns(source: Any) -> pa.Table | Columns:
    """As `read_table` without guessed types; of parquet files and data sets, one column at a time."""
    if isinstance(source, Columns):
        return source
    path = Path(source) if isinstance(source, (str, PathLike)) else None
    if path is None or not path.exists() or file_format(path) is not PARQUET:
        return read_table(source, guess=False)
    parts, schema = parts_of(path), PARQUET.schema(path)

    def read(name: str) -> pa.Table:
        with damage_reported(path):
            return replace_invalid_utf8(read_parts(path, parts, [name]))

    return Columns(checked_names(schema.names), read, schema)


def column_names(source: Any) -> list[str]:
    """Names of the columns of a table in memory."""
    if isinstance(source, Mapping):
        names = list(source)
    elif hasattr(source, "column_names"):  # pyarrow
        names = list(source.column_names)
    elif hasattr(source, "columns") and hasattr(source, "dtypes"):  # pandas, polars
        names = list(source.columns)
    else:
        kinds = f"a pandas, polars or pyarrow table, a dict of arrays, or the path of a {NAMES} file"
        raise DataError(f"a {type(source).__name__} is not a table; give {kinds}")
    return checked_names(names)


def checked_names(names: Sequence[Any]) -> list[str]:
    """Names of columns, which must be texts and differ from each other."""
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"column names must be text, got {name!r}; rename the column")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the table has two columns named {repeated!r}; rename one")
    return list(names)


def _chosen(names: Sequence[str], columns: Sequence[str] | None, where: str) -> list[str]:
    if columns is None:
        return list(names)
    chosen = list(names_of(columns))
    for name in chosen:
        if name not in names:
            raise DataError(f"{where} has no column {name!r}{closest(name, names)}")
    return chosen


def _arrow_column(source: Any, name: str, guess: bool) -> pa.Array:
    values = source[name]
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):  # polars
        if str(values.dtype) != "Object":  # Arrow would read such cells as memory addresses
            with suppress(Exception):  # Arrow does not have all types
                return values.to_arrow()
        values = values.to_list()
    kind = getattr(values, "dtype", object)
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    if not guess and np.dtype(object) == kind:
        return object_cells(values)
    with suppress(Exception):  # Arrow refuses mixed Python objects with various errors, which would quote a cell
        return pa.array(values, from_pandas=True)
    return pa.array([_cell_text(cell) for cell in values], type=pa.string()) if guess else object_cells(values)


def _cell_text(cell: Any) -> str | None:
    if is_missing(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return str(cell).lower()
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    try:
        return text_of_characters(str(cell))
    except Exception:  # an object may raise anything here; that must not affect the other rows
        return type(cell).__name__


# ---------------------------------------------------------------------- files


def _read_file(path: Path, columns: Sequence[str] | None, guess: bool, form: CsvFormat) -> pa.Table:
    kind = file_format(path)
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    with damage_reported(path):
        return kind.read(path, lambda names: _chosen(checked_names(names), columns, str(path)), guess, form)


def write_table(table: Any, path: str | PathLike[str], *, spreadsheet_safe: bool = False) -> None:
    """Write a table in the format that the suffix of `path` names; see `csv_cells` for `spreadsheet_safe`."""
    kind, content = format_to_write(path, spreadsheet_safe=spreadsheet_safe), read_table(table)
    with (
        replace_file(path) as temporary,
        kind.writer(temporary, content.schema, spreadsheet_safe=spreadsheet_safe) as write,
    ):
        write(content)


def group_cells(source: Any, name: str, table: pa.Table | None = None) -> pa.ChunkedArray:
    """A column of a public list of groups, `table` if it was read already. Times in a CSV file stay text."""
    cells = (read_table(source, [name]) if table is None else table)[name]
    if pa.types.is_timestamp(cells.type) and isinstance(source, (str, PathLike)):
        return read_table(source, [name], guess=False)[name]
    return cells


def distinct_values(column: Any) -> list[Any]:
    """The distinct cells in order of appearance; whole floats as whole numbers, times as text."""
    cells = plain_cells(column)
    values = python_values((texts_of(cells) if pa.types.is_timestamp(cells.type) else cells).unique())
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return [int(value) for value in values] if whole else values
