"""Parquet files: folders of them, files with a header of prade's own, notes about copies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prade.core.documents import Malformed, Structure, Versioned, json_value, structured
from prade.core.errors import DataError, PradeError
from prade.core.files import replace_file

HEADER = "prade"
WEIGHT_FIELD = "prade:weight"  # name of the column of row weights
SHARE = b"prade:copied"


def parts_of(folder: Path) -> list[Path]:
    """The parquet files of a data set, in the order of their names; a single file is its only part."""
    if not folder.is_dir():
        return [folder]
    names = {path: path.relative_to(folder).parts for path in sorted(folder.rglob("*.parquet"))}
    parts = [path for path, name in names.items() if not any(each.startswith((".", "_")) for each in name)]
    if not parts:
        raise DataError(f"{folder} is a folder without parquet files; give a table file, or a folder of parquet files")
    if named := [each for path in parts for each in names[path][:-1] if "=" in each]:
        found = f"{folder} has a column in the names of its folders ({named[0]}), which lose its type"
        raise DataError(f"{found}; write all columns into the files, as `prade sample --partitioned` does")
    return parts


def read_parts(folder: Path, parts: Sequence[Path], columns: Sequence[str]) -> pa.Table:
    """Some columns of the parts of a data set, part after part, without what their files note."""
    tables = [pq.read_table(path, columns=list(columns), partitioning=None) for path in parts]
    try:
        return pa.concat_tables([each.replace_schema_metadata(None) for each in tables])
    except pa.ArrowInvalid:
        raise DataError(f"the files in {folder} have different columns or types; write the data set again") from None


def schema_of(path: Path) -> pa.Schema:
    """The schema of a parquet file or of a data set; the share of copies is that of all its rows."""
    parts = parts_of(path)
    schemas = [pq.read_schema(part) for part in parts]
    shares = [copied_share(schema) for schema in schemas]
    if len(parts) == 1 or None in shares:
        return schemas[0]
    rows = [pq.read_metadata(part).num_rows for part in parts]
    copied = sum(round((share or 0) * number) for share, number in zip(shares, rows, strict=True))
    return noted_share(schemas[0], copied, sum(rows))


def folder_name(column: str, value: object) -> str:
    """The name of the folder of the rows that have a value, whatever characters the value has: STATE-17."""
    return f"{quote(column, safe='')}-{quote(str(value), safe='')}"[:200]


# ---------------------------------------------------------------------- parquet files that prade writes for itself


def write_with_header(table: pa.Table, header: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a table with its header."""
    with replace_file(path) as temporary:
        pq.write_table(table.replace_schema_metadata({HEADER: json.dumps(header, allow_nan=False)}), temporary)


class IncompatibleFile(DataError):
    """The file is intact, but another version of prade wrote it, or it was made from something else."""


@contextmanager
def damage_reported(path: str | PathLike[str], what: str, remedy: str) -> Iterator[None]:
    """Raise every PradeError of the block as a DataError that names the file, what it should contain and the remedy."""
    try:
        yield
    except IncompatibleFile:
        raise
    except PradeError as damage:
        raise DataError(f"{path} does not contain {what}, or is damaged ({damage}); {remedy}") from None


def read_header(
    table: pa.Table, kind: type[Structure], path: str | PathLike[str], newest: int, earlier: str = ""
) -> Structure:
    """The header of a table that was read from a file; the version is checked before the rest.

    `earlier` is what to say of a file of an earlier version; without it, such files are read.
    """
    text = (table.schema.metadata or {}).get(HEADER.encode())
    if text is None:
        raise Malformed("the file has no header")
    header = json_value(text)
    if (version := structured(header, Versioned).format) > newest:
        raise IncompatibleFile(f"{path} has file format {version}, and this prade reads up to {newest}; update prade")
    if earlier and version < newest:
        raise IncompatibleFile(earlier)
    return structured(header, kind)


def floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of doubles without empty cells."""
    return whole_numbers(table, name, pa.types.is_float64)


def whole_numbers(table: pa.Table, name: str, fits: Any = pa.types.is_integer) -> NDArray[Any]:
    """A column of integers without empty cells."""
    cells = table[name] if table.column_names.count(name) == 1 else None
    if cells is None or cells.null_count or not fits(cells.type):
        raise Malformed(f"there is no column {name!r} of the type with which it was written, without empty cells")
    return np.asarray(cells.to_numpy())


# ---------------------------------------------------------------------- copies of public rows


def noted_share(schema: pa.Schema, copied: int, rows: int) -> pa.Schema:
    """A schema that states the share of a table's rows that are copies; it stays with the table in parquet files."""
    share = copied / rows if rows else 0.0
    return schema.with_metadata({**(schema.metadata or {}), SHARE: str(share).encode()})


def copied_share(schema: pa.Schema) -> float | None:
    """The share of copies that a table's schema states; None if it states none."""
    with suppress(ValueError):
        share = float((schema.metadata or {}).get(SHARE, "nan"))
        return share if 0 <= share <= 1 else None
    return None


def copies_in_words(share: float | None) -> str:
    """How many of the synthetic rows are copies, in one sentence; the share is rounded down, so 100 % means all."""
    if share is None:
        return "How many of the rows have exactly the values of one public row was not recorded."
    every, percent = "in every column but those of groups and person ids", math.floor(1000 * share) / 10
    return f"{percent:g} % of the rows have, {every}, the values of one public row."
