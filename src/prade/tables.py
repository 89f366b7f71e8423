"""Tables in and out: pandas, polars, pyarrow, dicts of arrays, parquet and CSV files, all as pyarrow tables.

Reading may meet private rows, so no error raised here repeats a cell or a line of a file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.column import closest
from prade.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".csv", ".csv.gz")
# Leading zeros make a code ("06" is a state), not a number, so such a column stays text.
WHOLE = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL = r"^-?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$"
HAS_DIGIT = r"^[^eE]*[0-9]"
ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def read_table(source: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """The one way in: any table or file as a pyarrow table, with only `columns` if they are given.

    A CSV column becomes whole numbers, numbers, true/false or dates where every cell reads as one, and text
    otherwise; an empty cell is missing; digits with a leading zero are a code and stay text.
    """
    if isinstance(source, (str, PathLike)):
        return _read_file(Path(source), columns)
    names = column_names(source)
    chosen = _chosen(names, columns, "the table")
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source.select(chosen)
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source]).select(chosen)
    arrays = [_arrow_column(source, name) for name in chosen]
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
    wanted = [columns] if isinstance(columns, str) else list(columns)
    for name in wanted:
        if name not in names:
            raise DataError(f"{where} has no column {name!r}{closest(name, names)}")
    return wanted


def _arrow_column(source: Any, name: str) -> pa.Array:
    import pyarrow as pa

    values = source[name]
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):  # polars
        try:
            return values.to_arrow()
        except Exception:  # its own words may quote a cell
            raise DataError(f"column {name!r}: the type {values.dtype} cannot be read; convert it") from None
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        # Arrow refuses a column of mixed Python objects (and would quote a cell): read it as text instead.
        return pa.array([_cell_text(cell) for cell in values], type=pa.string(), from_pandas=True)


def _cell_text(cell: Any) -> str | None:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)) or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


# ---------------------------------------------------------------------- files


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise DataError(f"{path} is none of {', '.join(SUFFIXES)}; give a file of that kind")


def _read_file(path: Path, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa

    suffix = _suffix(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}; check the path")
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            names = pq.read_schema(path).names
            return pq.read_table(path, columns=_chosen(names, columns, str(path)))
        return _read_csv(path, columns)
    except pa.ArrowException:
        # The reader's own message quotes the line it stumbled over.
        raise DataError(f"{path} is not a well-formed {suffix[1:]} file; write it again or convert it") from None


def _read_csv(path: Path, columns: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as csv

    with csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)) as reader:
        names = reader.schema.names
    chosen = _chosen(names, columns, str(path))
    table = csv.read_csv(
        path,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            include_columns=chosen,
            column_types=dict.fromkeys(chosen, pa.dictionary(pa.int32(), pa.string())),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return pa.table([_guess_type(table[name]) for name in chosen], names=chosen)


def _guess_type(column: pa.ChunkedArray) -> pa.Array:
    """A column of text as the narrowest type that every one of its cells reads as."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = column.combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
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
    with suppress(pa.ArrowInvalid):  # digits in the shape of a date that is no date stay text
        texts = texts.cast(target)
    return texts.take(coded.indices)


@contextmanager
def replace_file(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`; what is written there replaces `path`, whole or not at all."""
    final = Path(path)
    if not final.parent.is_dir():
        raise DataError(f"there is no folder {final.parent} to write {final.name} in; make it first")
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes a file that only its owner reads; give it what a plain open() would have given.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def write_table(table: Any, path: str | PathLike[str]) -> None:
    """Write a table as parquet, CSV or gzipped CSV, by the suffix of `path`."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    suffix = _suffix(Path(path))
    found = read_table(table)
    with replace_file(path) as temporary:
        if suffix == ".parquet":
            pq.write_table(found, temporary)
            return
        plain = pa.table([_plain(column) for column in found.columns], names=found.column_names)
        compression = "gzip" if suffix == ".csv.gz" else None
        with pa.output_stream(str(temporary), compression=compression) as stream:
            csv.write_csv(plain, stream)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionary encoding, which the CSV writer does not know."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def distinct_values(column: pa.ChunkedArray) -> list[Any]:
    """The distinct cells in order of appearance; whole floats as whole numbers."""
    values: list[Any] = _plain(column).unique().to_pylist()
    if all(isinstance(value, float) and value.is_integer() for value in values):
        return [int(value) for value in values]
    return values
