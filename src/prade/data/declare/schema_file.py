"""Schema files: prade's TOML, the NIST contest's parameters.json and mbi's domain JSON.

People write these files by hand, so every error message names the column and says what to write instead.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import msgspec

from prade.core.documents import file_text, json_value, toml_table
from prade.core.errors import PradeError, SchemaError, closest
from prade.data.declare.column import Column
from prade.data.declare.kinds import Unknown
from prade.data.declare.numeric import EPOCH
from prade.data.read.cells import LARGEST_WHOLE

VERSION = 1
KEYS = ("version", "linked", "column", "invariant")
MOST_VALUES = 10**6  # for a column whose values are not listed in the file
Number = int | float | datetime.date


class ColumnEntry(msgspec.Struct, omit_defaults=True):
    """One [[column]] table of the TOML file; the fields are its keys, in the order in which they are written."""

    name: str
    kind: str
    title: str = ""
    description: str = ""
    unit: str = ""
    integer: bool = False
    min: Number | None = None
    max: Number | None = None
    edges: list[Number] = []
    values: list[Any] = []
    missing: bool = False
    other: Any = None
    unknown: Unknown | None = None
    labels: dict[str, str] = {}

    @classmethod
    def of(cls, column: Column) -> ColumnEntry:
        """The entry that declares `column`."""

        def written(number: float | None) -> Number | None:
            if number is not None and column.dates:
                return EPOCH + datetime.timedelta(days=number)
            # 5 is easier to read than 5.0 and means the same.
            if number is not None and number.is_integer() and abs(number) < LARGEST_WHOLE:
                return int(number)
            return number

        return cls(
            name=column.name,
            kind=column.kind,
            title=column.title,
            description=column.description,
            unit=column.unit,
            integer=column.integer and not column.dates,
            min=written(column.min),
            max=written(column.max),
            edges=[edge for edge in map(written, column.edges) if edge is not None],
            values=list(column.values),
            missing=column.missing,
            other=column.other,
            unknown=column.unknown,
            labels=dict(column.labels),
        )


# ---------------------------------------------------------------------- reading


def content_of_file(path: str | PathLike[str]) -> dict[str, Any]:
    """What a schema file declares, as in `content_of_table`; its format is recognised from its content."""
    text = file_text(path, "schema file", SchemaError)
    if text.lstrip().startswith("{"):
        content = _object(path, text)
        contest = isinstance(content.get("schema"), Mapping)
        return {"columns": columns_of_contest(content) if contest else columns_of_mbi(content)}
    try:
        return content_of_table(toml_table(text, SchemaError))
    except PradeError as error:
        raise error.within(str(path)) from None


def json_object(path: str | PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file."""
    return _object(path, file_text(path, "schema file", SchemaError))


def _object(path: str | PathLike[str], text: str) -> dict[str, Any]:
    try:
        value = json_value(text, SchemaError)
    except SchemaError as error:
        raise error.within(str(path)) from None
    if not isinstance(value, dict):
        raise SchemaError(f"{path} contains a {type(value).__name__}; a schema must be an object, {{...}}")
    return value


def content_of_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """What the TOML format declares: `columns`, and the tables of `linked` and `invariant` as they are written."""
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
    columns = [_column_of_entry(number, entry) for number, entry in enumerate(entries, start=1)]
    # Schema checks the rest: it knows the columns
    return {"columns": columns, "linked": table.get("linked", []), "invariant": table.get("invariant", [])}


def _column_of_entry(number: int, entry: Any) -> Column:
    if not isinstance(entry, dict):
        raise SchemaError(f"column {number} is {entry!r}; write a [[column]] table with name and kind")
    title = f"column {entry['name']!r}" if "name" in entry else f"column {number} of the file"
    known = ColumnEntry.__struct_fields__
    for key in entry:
        if key not in known:
            hint = closest(key, known) or f"; the keys are {', '.join(known)}"
            raise SchemaError(f"{title}: unknown key {key!r}{hint}")
    for key, example in (("name", '"AGE"'), ("kind", '"categorical"')):
        if key not in entry:
            raise SchemaError(f"{title}: {key} is missing; write e.g. {key} = {example}")
    return Column(**entry)  # checks the value of every key


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


# ---------------------------------------------------------------------- the contest

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


def columns_of_contest(parameters: Mapping[str, Any]) -> list[Column]:
    """The columns of the contest's parameters.json; its `runs` are not part of the schema."""
    declared = parameters.get("schema")
    if not isinstance(declared, Mapping) or not declared:
        raise SchemaError('the contest file needs a "schema" object with at least one column')
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
            f'column {name!r} has no list of values, and the contest\'s score has no bins for it; add "values"'
        )
    integer = "float" not in str(entry.get("dtype", ""))
    # x > e means x >= (the next number after e), so a bin closed on the right becomes one closed on the left.
    edges = [edge + 1 if integer else math.nextafter(edge, math.inf) for edge in CONTEST_EDGES[name]]
    return Column(name, "numeric", edges=tuple(edges), integer=integer, min=entry.get("min"), max=entry.get("max"))


# ---------------------------------------------------------------------- writing


def toml_of_content(
    columns: Iterable[Column], linked: Iterable[Iterable[str]] = (), invariants: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The TOML text of a schema, one line per key."""
    import tomli_w

    # Keys are in the entry's order; defaults are left out, because a missing key means its default.
    entries = [msgspec.to_builtins(ColumnEntry.of(column), builtin_types=(datetime.date,)) for column in columns]
    sets = [list(together) for together in linked]
    stated = {"linked": sets} if sets else {}
    stated_last = {"invariant": invariants} if invariants else {}
    return one_line_arrays(tomli_w.dumps({"version": VERSION, **stated, "column": entries, **stated_last}))


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
