"""Reading the file of a plan: TOML that people can read and edit. Unknown keys are refused.

It has everything that determines what is measured, so that a release explains itself. The optional tables [settings],
[expected], [public] and [[target]] do not affect that; only the hashes of public files are part of the plan's own hash.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from prade.core.documents import structured, toml_table
from prade.core.errors import DataError, WorkloadError, within
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema, invariants_of
from prade.data.public.table import PublicFiles
from prade.data.read.csv import CsvFormat
from prade.planning.questions import Ask, Level
from prade.planning.settings import Expected, Settings, TargetError, settings_of_file
from prade.planning.task import targets_of_tables
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Part, Predicate
from prade.queries.query import parse
from prade.queries.workload import Workload

VERSION = 2  # of version 1, which prade 0.9 and earlier wrote, the plan's hash leaves out those of the public files
Record = TypeVar("Record")


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    share: str | int | float
    parts: list[Any]


class _Level(msgspec.Struct, forbid_unknown_fields=True):
    by: str | list[str]
    total: str | int | float | None = None
    ask: list[_Ask] = []


class _Public(msgspec.Struct, forbid_unknown_fields=True):
    files: list[str]
    encoding: str = "utf-8"
    delimiter: str = ","
    weight: str | None = None
    sha256: list[str] = []


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1, 2]
    dataset: str
    budget: dict[str, Any]
    unit: dict[str, Any]
    level: list[_Level]
    schema: dict[str, Any]
    noise: str | None = None
    settings: dict[str, Any] | None = None
    expected: dict[str, Any] | None = None
    public: _Public | None = None
    target: list[dict[str, Any]] = []
    invariant: list[Any] = []
    groups: dict[str, list[Any]] = {}


class _Cells(msgspec.Struct, forbid_unknown_fields=True):
    columns: list[str]
    cells: list[int]
    labels: list[str]


class _Queries(msgspec.Struct, forbid_unknown_fields=True):
    queries: list[str]


def arguments_of_toml(text: str) -> dict[str, Any]:
    file = _read(toml_table(text), _File)
    with within("schema"):
        schema = Schema.from_dict(file.schema)
    levels = []
    for number, level in enumerate(file.level, start=1):
        with within(f"level {number}"):
            asks = [Ask(Workload(schema, [_part(schema, part) for part in ask.parts]), ask.share) for ask in level.ask]
            levels.append(Level(level.by, asks, level.total))
    with within("budget"):
        budget = Budget.from_dict(file.budget)
    with within("unit"):
        unit = Unit.from_dict(file.unit)
    with within("groups"):
        groups = Groups.of(file.groups or None)
    public, settings = None, None
    if (files := file.public) is not None:
        with within("public"):
            form = CsvFormat(files.encoding, files.delimiter)
            public = PublicFiles(tuple(files.files), files.weight, tuple(files.sha256), form, folder=".")
    if file.settings is not None:  # all or none: their usual values change between versions
        settings = _record("settings", settings_of_file(file.settings), Settings, complete=True)
    return {
        "dataset": file.dataset,
        "schema": schema,
        "budget": budget,
        "unit": unit,
        "levels": levels,
        "groups": groups,
        "settings": settings,
        "expected": None if file.expected is None else _expected(file.expected),
        "public": public,
        "invariants": invariants_of(file.invariant),
        "targets": targets_of_tables(file.target),
        "noise": file.noise,
        "version": file.version,
    }


def _expected(table: dict[str, Any]) -> Expected:
    """The expected errors: those of targets are tables [[expected.target]]."""
    own = {name: value for name, value in table.items() if name != "target"}
    with within("expected.target"):
        errors = _read(table.get("target", []), list[dict[str, Any]])
    own["targets"] = tuple(_record("expected.target", each, TargetError) for each in errors)
    return _record("expected", own, Expected)


def _record(where: str, table: dict[str, Any], record: type[Record], *, complete: bool = False) -> Record:
    """A table as a dataclass: unknown keys are refused, and, if it must be complete, fields that it leaves out."""
    types = get_type_hints(record, include_extras=True)
    known: list[Any] = [
        (each.name, types[each.name], *([] if complete or each.default is MISSING else [each.default]))
        for each in fields(record)  # type: ignore[arg-type]
    ]
    with within(where):
        read = _read(table, msgspec.defstruct(record.__name__, known, forbid_unknown_fields=True))
        return record(**msgspec.structs.asdict(read))


def _part(schema: Schema, value: Any) -> Part:
    try:
        match value:
            case str() | list():
                return Marginal.of(schema, value)
            case {"queries": _}:
                return Predicate(*(parse(text, schema) for text in structured(value, _Queries).queries))
        table = structured(value, _Cells)
    except DataError as fault:
        raise WorkloadError(
            "a part is a column, a list of columns, {queries = [...]} or {columns = [...], cells = [...], "
            f"labels = [...]}}; got {str(value)[:80]!r}: {fault}"
        ) from None
    return Cells(table.columns, table.cells, len(table.labels), table.labels)


def _read(value: Any, kind: type[Record]) -> Record:
    try:
        return structured(value, kind)
    except DataError as fault:
        raise DataError(f"{fault}; correct it, or make the plan again") from None
