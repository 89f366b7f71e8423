"""Schema files, which people write by hand: every error message names the column and says what to write instead."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prade.core.errors import SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.numeric import EPOCH
from prade.data.read.cells import LARGEST_WHOLE

VERSION = 1
KEYS = ("version", "linked", "column", "invariant")
Number = int | float | datetime.date
# of one [[column]] table, in the order in which they are written
COLUMN_KEYS = (
    *("name", "kind", "title", "description", "unit", "integer", "min", "max", "edges", "values", "missing", "other"),
    *("unknown", "labels"),
)


def columns_of_table(table: Mapping[str, Any]) -> list[Column]:
    """The columns that a document of the TOML format declares; `Schema` checks the rest, because it has the columns."""
    refuse_unknown_keys(table, KEYS)
    if table.get("version") != VERSION or isinstance(table["version"], bool):
        raise SchemaError(
            f"version is {table.get('version')!r}, but this version of prade reads `version = {VERSION}`; begin the "
            "file with it"
        )
    entries = table.get("column")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError("the schema has no columns; write a [[column]] table (double brackets) for each column")
    return [_column_of_entry(number, entry) for number, entry in enumerate(entries, start=1)]


def _column_of_entry(number: int, entry: Mapping[str, Any]) -> Column:
    title = f"column {entry['name']!r}" if "name" in entry else f"column {number} of the file"
    refuse_unknown_keys(entry, COLUMN_KEYS, f"{title}: ")
    for key, example in (("name", '"AGE"'), ("kind", '"categorical"')):
        if key not in entry:
            raise SchemaError(f"{title}: {key} is missing; write e.g. {key} = {example}")
    return Column(**entry)  # checks the value of every key


def refuse_unknown_keys(table: Mapping[str, Any], keys: Sequence[str], where: str = "") -> None:
    """Refuse a table of a file that has other keys than these."""
    for key in table:
        if key not in keys:
            raise SchemaError(f"{where}unknown key {key!r}{closest(key, keys)}; the keys are {', '.join(keys)}")


def toml_of_schema(
    columns: Iterable[Column], linked: Iterable[Iterable[str]], invariants: Sequence[Mapping[str, Any]]
) -> str:
    """The TOML text of a schema, one line per key; a missing key means its default."""
    import tomli_w

    sets = [list(together) for together in linked]
    document = {"version": VERSION, "linked": sets, "column": list(map(_entry_of, columns)), "invariant": invariants}
    return one_line_arrays(tomli_w.dumps({key: value for key, value in document.items() if value}))


def _entry_of(column: Column) -> dict[str, Any]:
    def written(number: float | None) -> Number | None:
        if number is not None and column.dates:
            return EPOCH + datetime.timedelta(days=number)
        # 5 is easier to read than 5.0 and means the same.
        whole = number is not None and number.is_integer() and abs(number) < LARGEST_WHOLE
        return int(number) if number is not None and whole else number

    entry = {key: getattr(column, key) for key in COLUMN_KEYS}
    entry |= {"integer": column.integer and not column.dates, "min": written(column.min), "max": written(column.max)}
    entry |= {"edges": [*map(written, column.edges)], "values": list(column.values), "labels": dict(column.labels)}
    given = {key for key, value in entry.items() if value or (key in ("min", "max", "other") and value is not None)}
    return {key: value for key, value in entry.items() if key in given}


def one_line_arrays(text: str) -> str:
    """Put each array on one line; the TOML writer uses one line per item, and items never contain line breaks."""
    lines: list[str] = []
    inside = False
    for line in text.rstrip("\n").split("\n"):  # not splitlines, because texts may contain other separators
        if not inside:
            lines.append(line)
            inside = line.endswith(" = [")
            continue
        piece = line.strip()
        if piece.startswith("]"):  # the end of an array
            lines[-1] = lines[-1].removesuffix(", ")
        inside = line != "]"
        lines[-1] += piece if piece.endswith("[") or not inside else f"{piece} "
    return "\n".join(lines) + "\n"
