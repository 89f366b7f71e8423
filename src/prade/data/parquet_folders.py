"""Data sets: folders of parquet files that all have the same columns, read as one table.

The folders inside say what their files have, as in STATE-17/part-00000.parquet, but every file has all its columns, so
that every program reads them with their types. (Where a column is only in the name of a folder, as in STATE=06,
programs guess its type, and some read the number 6.)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from prade.core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def parts_of(folder: Path) -> list[Path]:
    """The parquet files of a data set, in the order of their names; a DataError if there are none."""
    found = sorted(path for path in folder.rglob("*.parquet") if not _hidden(path.relative_to(folder)))
    if not found:
        raise DataError(f"{folder} is a folder without parquet files; give a table file, or a folder of parquet files")
    for path in found:
        for each in path.relative_to(folder).parent.parts:
            if "=" in each:
                raise DataError(
                    f"{folder} has a column in the names of its folders ({each}), which lose its type; write all "
                    "columns into the files, as `prade sample --partitioned` does"
                )
    return found


def read_parts(folder: Path, parts: Sequence[Path], columns: Sequence[str]) -> pa.Table:
    """Some columns of the parts of a data set, part after part, without what their files note."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(path, columns=list(columns), partitioning=None) for path in parts]
    try:
        return pa.concat_tables([each.replace_schema_metadata(None) for each in tables])
    except pa.ArrowInvalid:
        raise DataError(f"the files in {folder} have different columns or types; write the data set again") from None


def schema_of(path: Path) -> pa.Schema:
    """The schema of a parquet file or of a data set; the share of copies is that of all its rows."""
    import pyarrow.parquet as pq

    from prade.data.copied_share import copied_share, noted_share

    if not path.is_dir():
        return pq.read_schema(path)
    parts = parts_of(path)
    schemas = [pq.read_schema(part) for part in parts]
    rows = [pq.read_metadata(part).num_rows for part in parts]
    shares = [copied_share(schema) for schema in schemas]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return schemas[0]
    copied = sum(round(share * number) for share, number in zip(known, rows, strict=True))
    return noted_share(schemas[0], copied, sum(rows))


def folder_name(column: str, value: object) -> str:
    """The name of the folder of the rows that have a value: `STATE-17`, whatever characters the value has.

    >>> folder_name("PLACE", "a/b = c")
    'PLACE-a%2Fb%20%3D%20c'
    """
    return f"{quote(column, safe='')}-{quote(str(value), safe='')}"[:200]


def _hidden(path: Path) -> bool:
    return any(each.startswith((".", "_")) for each in path.parts)
