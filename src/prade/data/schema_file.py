"""Schema files: our TOML, the NIST contest's parameters.json and mbi's domain JSON.

The text says what a person wrote, so every complaint names the column and what to write instead.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import msgspec

from prade.core.documents import file_text, json_value, toml_table
from prade.core.errors import SchemaError
from prade.core.words import closest
from prade.data.column import EPOCH, LARGEST_WHOLE, Column, Kind, Unknown

VERSION = 1
MOST_VALUES = 10**6  # of a column whose values are not written out in the file
Number = int | float | datetime.date


class ColumnEntry(msgspec.Struct, omit_defaults=True):
    """One [[column]] table of the TOML file, key by key, as it is written."""

    name: str
    kind: Kind
    integer: bool = False
    min: Number | None = None
    max: Number | None = None
    edges: list[Number] = []
    values: list[Any] = []
    missing: bool = False
    other: Any = None
    unknown: Unknown | None = None

    @classmethod
    def of(cls, column: Column) -> ColumnEntry:
        """The entry that declares `column`."""

        def written(number: float | None) -> Number | None:
            if number is not None and column.dates:
                return EPOCH + datetime.timedelta(days=number)
            # 5 reads better than 5.0 and means the same
            if number is not None and number.is_integer() and abs(number) < LARGEST_WHOLE:
                return int(number)
            return number

        return cls(
            name=column.name,
            kind=column.kind,
            integer=column.integer and not column.dates,
            min=written(column.min),
            max=written(column.max),
            edges=[edge for edge in map(written, column.edges) if edge is not None],
            values=list(column.values),
            missing=column.missing,
            other=column.other,
            unknown=column.unknown,
        )


# ---------------------------------------------------------------------- reading


def columns_of_file(path: str | PathLike[str]) -> list[Column]:
    """The columns that a schema file declares; its content tells the format."""
    text = file_text(path, "schema file", SchemaError)
    if text.lstrip().startswith("{"):
        found = _object(path, text)
        return columns_of_contest(found) if isinstance(found.get("schema"), Mapping) else columns_of_mbi(found)
    try:
        return columns_of_table(toml_table(text, SchemaError))
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def json_object(path: str | PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file."""
    return _object(path, file_text(path, "schema file", SchemaError))


def _object(path: str | PathLike[str], text: str) -> dict[str, Any]:
    try:
        found = json_value(text, SchemaError)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise SchemaError(f"{path} holds a {type(found).__name__}; a schema is an object, {{...}}")
    return found


def columns_of_table(found: Mapping[str, Any]) -> list[Column]:
    """The columns of the TOML format: ``version = 1`` and one ``[[column]]`` table a column."""
    for key in found:
        if key not in ("version", "column"):
            raise SchemaError(
                f"unknown key {key!r}{closest(key, ('version', 'column'))}; "
                "a schema has `version` and one [[column]] table a column"
            )
    if "version" not in found:
        raise SchemaError(f"the version of the format is not given; begin the file with `version = {VERSION}`")
    if found["version"] != VERSION or isinstance(found["version"], bool):
        raise SchemaError(f"version is {found['version']!r}; this prade reads `version = {VERSION}`")
    entries = found.get("column")
    if not isinstance(entries, list) or not entries:
        raise SchemaError("no columns; write a [[column]] table (double brackets) for each")
    return [_column_of_entry(place, entry) for place, entry in enumerate(entries, start=1)]


def _column_of_entry(place: int, entry: Any) -> Column:
    if not isinstance(entry, dict):
        raise SchemaError(f"column {place} is {entry!r}; write a [[column]] table with name and kind")
    who = f"column {entry['name']!r}" if "name" in entry else f"column {place} of the file"
    known = ColumnEntry.__struct_fields__
    for key in entry:
        if key not in known:
            hint = closest(key, known) or f"; the keys are {', '.join(known)}"
            raise SchemaError(f"{who}: unknown key {key!r}{hint}")
    for key, example in (("name", '"AGE"'), ("kind", '"categorical"')):
        if key not in entry:
            raise SchemaError(f"{who}: {key} is not given; write e.g. {key} = {example}")
    return Column(**entry)  # which checks every key, in words that say what to write


def columns_of_mbi(domain: Mapping[str, Any]) -> list[Column]:
    """The columns of mbi's domain: {"column": number of values}."""
    columns = []
    for name, size in domain.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_VALUES:
            raise SchemaError(
                f"column {name!r}: its size is {str(size)[:40]}; a domain JSON gives each column a whole number from 1 "
                f"to {MOST_VALUES:,}"
            )
        columns.append(Column(name, "categorical", values=tuple(range(size))))
    return columns


# ---------------------------------------------------------------------- the contest

_THOUSANDS = range(0, 105_000, 5_000)
_TWENTIES = range(0, 520, 20)
_QUARTER_HOURS = [100 * hour + minute for hour in range(24) for minute in (0, 15, 30, 45)]

# The bins in which the contest's sprint 2 score counts: (-inf, e0], (e0, e1], ..., (last, inf). Closed above.
CONTEST_EDGES: dict[str, Iterable[int]] = {
    "AGE": range(20, 105, 5),
    **dict.fromkeys(("INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN"), _THOUSANDS),
    **dict.fromkeys(("POVERTY", "HHWT", "PERWT"), _TWENTIES),
    **dict.fromkeys(("DEPARTS", "ARRIVES"), _QUARTER_HOURS),
}
CONTEST_GROUPS = ("PUMA", "YEAR")


def columns_of_contest(parameters: Mapping[str, Any]) -> list[Column]:
    """The columns of the contest's parameters.json; its `runs` are no part of a schema."""
    declared = parameters.get("schema")
    if not isinstance(declared, Mapping) or not declared:
        raise SchemaError('the contest file has no "schema" object with a column in it')
    return [_contest_column(name, entry) for name, entry in declared.items()]


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
            f'column {name!r}: it lists no values and the contest\'s score has no bins for it; add "values"'
        )
    integer = "float" not in str(entry.get("dtype", ""))
    # x > e and x >= (the next number after e) are the same, so a bin closed above becomes one closed below.
    edges = [edge + 1 if integer else math.nextafter(edge, math.inf) for edge in CONTEST_EDGES[name]]
    return Column(name, "numeric", edges=tuple(edges), integer=integer, min=entry.get("min"), max=entry.get("max"))


# ---------------------------------------------------------------------- writing


def toml_of_columns(columns: Iterable[Column]) -> str:
    """The TOML text of the columns, one line a key."""
    import tomli_w

    # The entry's own order of keys, defaults left out (an absent key and its default mean the same).
    entries = [msgspec.to_builtins(ColumnEntry.of(column), builtin_types=(datetime.date,)) for column in columns]
    return one_line_arrays(tomli_w.dumps({"version": VERSION, "column": entries}))


def one_line_arrays(text: str) -> str:
    """Join the arrays that the writer spreads over one line an item; an item never holds a line break."""
    lines: list[str] = []
    inside = False
    for line in text.rstrip("\n").split("\n"):  # not splitlines: text may hold other separators
        if inside and line == "]":
            lines[-1] = lines[-1].removesuffix(", ") + "]"
            inside = False
        elif inside:
            piece = line.strip()
            if piece.startswith("]"):  # of an array within the array
                lines[-1] = lines[-1].removesuffix(", ")
            lines[-1] += piece if piece.endswith("[") else f"{piece} "
        else:
            lines.append(line)
            inside = line.endswith(" = [")
    return "\n".join(lines) + "\n"
