"""Parquet files that prade writes for itself: columns of numbers, and a JSON header in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prade.core.documents import Malformed, Structure, Versioned, json_value, structured
from prade.core.errors import DataError, PradeError
from prade.data.tables import write_table

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = "prade"
WEIGHT_FIELD = "prade:weight"  # name of the column of row weights


def write_with_header(table: pa.Table, header: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a table with its header."""
    write_table(table.replace_schema_metadata({HEADER: json.dumps(header, allow_nan=False)}), path)


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


def read_header(table: pa.Table, kind: type[Structure], path: str | PathLike[str], newest: int) -> Structure:
    """The header of a table that was read from a file; the version is checked before the rest."""
    text = (table.schema.metadata or {}).get(HEADER.encode())
    if text is None:
        raise Malformed("the file has no header")
    header = json_value(text)
    if (version := structured(header, Versioned).format) > newest:
        raise IncompatibleFile(
            f"{path} has file format {version}, but this version of prade reads formats up to {newest}; update prade"
        )
    return structured(header, kind)


def whole_numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """A column of integers without empty cells."""
    import pyarrow as pa

    return _numbers(table, name, pa.types.is_integer)


def floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column of doubles without empty cells."""
    import pyarrow as pa

    return _numbers(table, name, pa.types.is_float64)


def _numbers(table: pa.Table, name: str, fits: Any) -> NDArray[Any]:
    if table.column_names.count(name) != 1:
        raise Malformed(f"the file has no column {name!r}, or has it twice")
    cells = table[name]
    if cells.null_count or not fits(cells.type):
        raise Malformed(f"the column {name!r} has empty cells, or not the type with which it was written")
    return np.asarray(cells.to_numpy())
