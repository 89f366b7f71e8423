"""Schema files: prade's TOML, the NIST contest's parameters.json and mbi's domain JSON.

People write these files by hand, so every error message names the column and says what to write instead.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prade.core.errors import SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.numeric import EPOCH
from prade.data.read.cells import LARGEST_WHOLE

VERSION = 1
KEYS = ("version", "linked", "column", "invariant")
MOST_VALUES = 10**6  # for a column whose values are not listed in the file
Number = int | float | datetime.date
# of one [[column]] table, in the order in which they are written
COLUMN_KEYS = (
    *("name", "kind", "title", "description", "unit", "integer", "min", "max", "edges", "values", "missing", "other"),
    *("unknown", "labels"),
)


def columns_of_table(table: Mapping[str, Any]) -> list[Column]:
    """The columns that a document of the TOML format declares; `Schema` checks the rest, because it has the columns."""
    for key in table:
        if key not in KEYS:
            raise SchemaError(
                f"unknown key {key!r}{closest(key, KEYS)}; "
                "a schema has `version`, `linked` if columns belong together, one [[column]] table per column, and "
                "[[invariant]] tables if there are any"
            )
    if "version" not in table:
        raise SchemaError(f"the version of the format is missing; begin the file with `version = {VERSION}`")
    if table["version"] != VERSION or isinstance(table["version"], bool):
        raise SchemaError(f"version is {table['version']!r}, but this version of prade reads `version = {VERSION}`")
    entries = table.get("column")
    if not isinstance(entries, list) or not entries:
        raise SchemaError("the schema has no columns; write a [[column]] table (double brackets) for each column")
    return [_column_of_entry(number, entry) for number, entry in enumerate(entries, start=1)]


def _column_of_entry(number: int, entry: Any) -> Column:
    if not isinstance(entry, dict):
        raise SchemaError(f"column {number} is {entry!r}; write a [[column]] table with name and kind")
    title = f"column {entry['name']!r}" if "name" in entry else f"column {number} of the file"
    for key in entry:
        if key not in COLUMN_KEYS:
            hint = closest(key, COLUMN_KEYS) or f"; the keys are {', '.join(COLUMN_KEYS)}"
            raise SchemaError(f"{title}: unknown key {key!r}{hint}")
    for key, example in (("name", '"AGE"'), ("kind", '"categorical"')):
        if key not in entry:
            raise SchemaError(f"{title}: {key} is missing; write e.g. {key} = {example}")
    return Column(**entry)  # checks the value of every key


def columns_of_json(content: Mapping[str, Any]) -> list[Column]:
    """The columns of the contest's parameters.json, whose `runs` are not part of the schema, or of mbi's domain."""
    declared = content.get("schema")
    if not isinstance(declared, Mapping):
        return columns_of_mbi(content)
    if not declared:
        raise SchemaError('the contest file needs a "schema" object with at least one column')
    return [_contest_column(name, entry) for name, entry in declared.items()]


def columns_of_mbi(domain: Mapping[str, Any]) -> list[Column]:
    """The columns of mbi's domain: {"column": number of values}."""
    columns = []
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_VALUES:
            raise SchemaError(
                f"column {name!r}: the size is {str(size)[:40]}; in a domain file, each column's size must be a whole "
                f"number from 1 to {MOST_VALUES:,}"
            )
        columns.append(Column(name, "categorical", values=tuple(range(size))))
    return columns


_THOUSANDS = range(0, 105_000, 5_000)
_TWENTIES = range(0, 520, 20)
_QUARTER_HOURS = [100 * hour + minute for hour in range(24) for minute in (0, 15, 30, 45)]

# The bins of the contest's score (sprint 2), closed on the right: (-inf, e0], (e0, e1], ..., (last, inf).
CONTEST_EDGES: dict[str, Iterable[int]] = {
    "AGE": range(20, 105, 5),
    **dict.fromkeys(("INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN"), _THOUSANDS),
    **dict.fromkeys(("POVERTY", "HHWT", "PERWT"), _TWENTIES),
    **dict.fromkeys(("DEPARTS", "ARRIVES"), _QUARTER_HOURS),
}
CONTEST_GROUPS = ("PUMA", "YEAR")


def _contest_column(name: str, entry: Any) -> Column:
    if not isinstance(entry, Mapping):
        raise SchemaError(f'column {name!r}: expected an object such as {{"dtype": "uint8", "values": [1, 2]}}')
    for key in entry:
        if key not in ("dtype", "values", "min", "max"):
            raise SchemaError(f"column {name!r}: unknown key {key!r}{closest(key, ('dtype', 'values', 'min', 'max'))}")
    if "values" in entry:
        return Column(name, "group" if name in CONTEST_GROUPS else "categorical", values=entry["values"])
    if name not in CONTEST_EDGES:
        raise SchemaError(
            f'column {name!r} has no list of values, and the contest\'s score has no bins for it; add "values"'
        )
    integer = "float" not in str(entry.get("dtype", ""))
    # x > e means x >= (the next number after e), so a bin closed on the right becomes one closed on the left.
    edges = [edge + 1 if integer else math.nextafter(edge, math.inf) for edge in CONTEST_EDGES[name]]
    return Column(name, "numeric", edges=tuple(edges), integer=integer, min=entry.get("min"), max=entry.get("max"))


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
        if number is not None and number.is_integer() and abs(number) < LARGEST_WHOLE:
            return int(number)
        return number

    entry = {key: getattr(column, key) for key in COLUMN_KEYS}
    entry |= {"integer": column.integer and not column.dates, "min": written(column.min), "max": written(column.max)}
    entry |= {"edges": [*map(written, column.edges)], "values": list(column.values), "labels": dict(column.labels)}
    return {key: value for key, value in entry.items() if value is not None and (key == "other" or not _empty(value))}


def _empty(value: Any) -> bool:
    return value is False or (isinstance(value, str | list | dict) and not value)


def one_line_arrays(text: str) -> str:
    """Put each array on one line; the TOML writer uses one line per item, and items never contain line breaks."""
    lines: list[str] = []
    inside = False
    for line in text.rstrip("\n").split("\n"):  # not splitlines, because texts may contain other separators
        if inside and line == "]":
            lines[-1] = lines[-1].removesuffix(", ") + "]"
            inside = False
        elif inside:
            piece = line.strip()
            if piece.startswith("]"):  # the end of a nested array
                lines[-1] = lines[-1].removesuffix(", ")
            lines[-1] += piece if piece.endswith("[") else f"{piece} "
        else:
            lines.append(line)
            inside = line.endswith(" = [")
    return "\n".join(lines) + "\n"
