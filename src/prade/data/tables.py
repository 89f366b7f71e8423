"""Tables in and out: pandas, polars, pyarrow, dicts of arrays, parquet and CSV files, all as pyarrow tables.

Reading may meet private rows, so no error raised here repeats a cell or a line of a file. A type that is only known
from the cells (CSV, Python objects) is not guessed for private rows: one row more could change it for all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.errors import DataError
from prade.core.files import replace_file
from prade.core.words import closest, names_of
from prade.data.bombs import refuse_gzip_bomb, refuse_parquet_bomb
from prade.data.cells import is_missing, object_cells, one_piece, texts_of

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".csv", ".csv.gz")
# Leading zeros make a code ("06" is a state), not a number, so such a column stays text.
WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL = r"^-?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$"
HAS_DIGIT = r"^[^eE]*[0-9]"
ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
# Without an offset, or in UTC: other offsets would move a time to another day.
ISO_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"


def read_table(source: Any, columns: Sequence[str] | None = None, *, guess: bool = True) -> pa.Table:
    """The one way in: any table or file as a pyarrow table, with only `columns` if they are given.

    A CSV column becomes whole numbers, numbers, true/false, dates or times where every cell reads as one, and text
    otherwise; an empty cell is missing; digits with a leading zero are a code and stay text. A column of Python
    objects becomes the type that holds them all, or text.

    With ``guess=False`` no cell has a say in how another is read: CSV columns stay text, and a column of Python
    objects keeps a type for each cell (an Arrow union). Types that a file or frame declares are kept either way.
    """
    if isinstance(source, (str, PathLike)):
        return _read_file(Path(source), columns, guess)
    names = column_names(source)
    chosen = _chosen(names, columns, "the table")
    import pyarrow as pa

    from prade.data.plain_types import readable_texts

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return readable_texts(source.select(chosen))
    arrays = [_arrow_column(source, name, guess) for name in chosen]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise DataError(f"the columns differ in length ({', '.join(map(str, sorted(lengths)))}); give equal ones")
    return pa.table(arrays, names=chosen)


def column_names(source: Any) -> list[str]:
    """Names of the columns of a table in memory."""
    if isinstance(source, Mapping):
        names = list(source)
    elif hasattr(source, "column_names"):  # pyarrow
        names = list(source.column_names)
    elif hasattr(source, "columns") and hasattr(source, "dtypes"):  # pandas, polars
        names = list(source.columns)
    else:
        raise DataError(
            f"a {type(source).__name__} is not a table; give a pandas, polars or pyarrow table, "
            "a dict of arrays, or the path of a parquet or CSV file"
        )
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"column names must be text, got {name!r}; rename it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"the table has two columns named {twice!r}; rename one")
    return names


def _chosen(names: Sequence[str], columns: Sequence[str] | None, where: str) -> list[str]:
    if columns is None:
        return list(names)
    wanted = list(names_of(columns))
    for name in wanted:
        if name not in names:
            raise DataError(f"{where} has no column {name!r}{closest(name, names)}")
    return wanted


def _arrow_column(source: Any, name: str, guess: bool) -> pa.Array:
    import pyarrow as pa

    values = source[name]
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):  # polars
        if str(values.dtype) != "Object":  # whose cells Arrow would see as addresses
            with suppress(Exception):  # a type that Arrow does not have
                return values.to_arrow()
        values = values.to_list()
    if not guess and not _declares_type(values):
        return object_cells(values)
    with suppress(Exception):  # Arrow refuses a column of mixed Python objects, in many ways, and would quote a cell
        return pa.array(values, from_pandas=True)
    return pa.array([_cell_text(cell) for cell in values], type=pa.string()) if guess else object_cells(values)


def _declares_type(values: Any) -> bool:
    """Whether a column's type is its own, rather than what its cells happen to be."""
    kind = getattr(values, "dtype", object)
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    return np.dtype(object) != kind


def _cell_text(cell: Any) -> str | None:
    """A cell of a public column of mixed Python objects, as text."""
    if is_missing(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    try:
        return str(cell).encode(errors="backslashreplace").decode()
    except Exception:  # whatever an object does when asked for its text, it says nothing about the other rows
        return type(cell).__name__


# ---------------------------------------------------------------------- files


def table_suffix(path: Path) -> str:
    """Which kind of table file a name stands for."""
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise DataError(f"{path} is none of {', '.join(SUFFIXES)}; give a file of that kind")


def need_csv(path: str | PathLike[str]) -> str:
    """The suffix of a CSV file; a complaint about a kind of file that spreadsheets do not run."""
    suffix = table_suffix(Path(path))
    if suffix == ".parquet":
        raise DataError("spreadsheet-safe is for CSV files, and parquet files do not need it: leave it out")
    return suffix


def _read_file(path: Path, columns: Sequence[str] | None, guess: bool) -> pa.Table:
    import pyarrow as pa

    from prade.data.plain_types import readable_texts

    suffix = table_suffix(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}; check the path")
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            chosen = _chosen(column_names(pq.read_schema(path).empty_table()), columns, str(path))
            refuse_parquet_bomb(path, pq.read_metadata(path).num_rows, len(chosen))
            return readable_texts(pq.read_table(path, columns=chosen))
        if suffix == ".csv.gz":
            refuse_gzip_bomb(path)
        return _read_csv(path, columns, guess)
    except PermissionError:
        raise DataError(f"{path} may not be read; ask for the right to read it") from None
    except (pa.ArrowException, OSError, UnicodeError):
        # The reader's own message quotes the line it stumbled over.
        raise DataError(f"{path} is not a well-formed {suffix[1:]} file; write it again or convert it") from None


def _read_csv(path: Path, columns: Sequence[str] | None, guess: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as csv

    with csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)) as reader:
        names = column_names(reader.schema.empty_table())
    chosen = _chosen(names, columns, str(path))
    table = csv.read_csv(
        path,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            include_columns=chosen,
            # A cell that is no UTF-8 would be an error in a column of text.
            column_types=dict.fromkeys(chosen, pa.dictionary(pa.int32(), pa.string() if guess else pa.binary())),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    read = _guess_type if guess else _text_of_bytes
    return pa.table([read(one_piece(table[name])) for name in chosen], names=chosen)


def with_types(table: pa.Table) -> pa.Table:
    """A table that was read without guessing, with the types that reading it with ``guess=True`` would give."""
    import pyarrow as pa

    def typed(cells: pa.ChunkedArray) -> Any:
        return _guess_type(one_piece(cells)) if cells.type == pa.dictionary(pa.int32(), pa.string()) else cells

    return pa.table([typed(cells) for cells in table.columns], names=table.column_names)


def _text_of_bytes(coded: pa.DictionaryArray) -> pa.DictionaryArray:
    import pyarrow as pa

    try:
        texts = coded.dictionary.cast(pa.string())
    except pa.ArrowInvalid:
        texts = pa.array([text.decode(errors="replace") for text in coded.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, texts)


def _guess_type(coded: pa.DictionaryArray) -> pa.Array:
    """A column of text as the narrowest type that every one of its cells reads as."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = coded.dictionary

    def every(pattern: str) -> bool:
        return bool(len(texts)) and bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())

    target = pa.string()
    if every(WHOLE):
        target = pa.int64()
    elif every(DECIMAL) and every(HAS_DIGIT):
        target = pa.float64()
    elif len(texts) <= 2 and every("^([Tt]rue|TRUE|[Ff]alse|FALSE)$"):
        target, texts = pa.bool_(), pc.utf8_lower(texts)
    elif every(ISO_DATE):
        target = pa.date32()
    elif every(f"{ISO_TIME}$") or every(f"{ISO_TIME}Z$"):
        fraction = pc.max(pc.binary_length(pc.replace_substring_regex(texts, r"^[^.]*\.?|Z$", ""))).as_py()
        unit = ("s", "ms", "us", "ns")[-(-fraction // 3)]
        target = pa.timestamp(unit, "UTC" if every("Z$") else None)
    with suppress(pa.ArrowInvalid):  # digits in the shape of a date that is no date stay text
        texts = texts.cast(target)
    return texts.take(coded.indices)


def write_table(table: Any, path: str | PathLike[str], *, spreadsheet_safe: bool = False) -> None:
    """Write a table as parquet, CSV or gzipped CSV, by the suffix of `path`; `spreadsheet_safe`: see `spreadsheets`."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    from prade.data.spreadsheets import quoted

    suffix = need_csv(path) if spreadsheet_safe else table_suffix(Path(path))
    found = read_table(table)
    with replace_file(path) as temporary:
        if suffix == ".parquet":
            pq.write_table(found, temporary)
            return
        # The CSV writer does not know dictionary encoding.
        plain = pa.table([plain_cells(column) for column in found.columns], names=found.column_names)
        plain = quoted(plain) if spreadsheet_safe else plain
        compression = "gzip" if suffix == ".csv.gz" else None
        with pa.output_stream(str(temporary), compression=compression) as stream:
            csv.write_csv(plain, stream)


def plain_cells(column: Any) -> Any:
    """The column without dictionary encoding."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def group_cells(source: Any, name: str) -> pa.ChunkedArray:
    """A column of a public list of groups; times in a CSV file stay the text that its cells are compared with."""
    import pyarrow as pa

    cells = read_table(source, [name])[name]
    if pa.types.is_timestamp(cells.type) and isinstance(source, (str, PathLike)):
        return read_table(source, [name], guess=False)[name]
    return cells


def distinct_values(column: Any) -> list[Any]:
    """The distinct cells in order of appearance; whole floats as whole numbers, times as text."""
    import pyarrow as pa

    from prade.data.plain_types import python_values

    cells = plain_cells(column)
    values = python_values((texts_of(cells) if pa.types.is_timestamp(cells.type) else cells).unique())
    if all(isinstance(value, float) and value.is_integer() for value in values):
        return [int(value) for value in values]
    return values
