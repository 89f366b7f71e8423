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


def columns_of_json(content: Mapping[str, Any]) -> list[Column]:
    """The columns of the contest's parameters.json, whose `runs` are not part of the schema, or of mbi's domain."""
    declared = content.get("schema")
    if not isinstance(declared, Mapping):
        return columns_of_mbi(content)
    return [_contest_column(name, entry) for name, entry in declared.items()]


def columns_of_mbi(domain: Mapping[str, Any]) -> list[Column]:
    """The columns of mbi's domain: {"column": number of values}."""
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_VALUES:
            raise SchemaError(
                f"column {name!r}: the size is {str(size)[:40]}; in a domain file, each column's size must be a whole "
                f"number from 1 to {MOST_VALUES:,}"
            )
    return [Column(name, "categorical", values=tuple(range(size))) for name, size in domain.items()]


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
    refuse_unknown_keys(entry, ("dtype", "values", "min", "max"), f"column {name!r}: ")
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
