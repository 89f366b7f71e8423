"""The file of a plan: TOML that people can read and edit. Unknown keys are refused.

It contains everything that determines what is measured, including the schema and the list of groups, so that a release
explains itself. The optional tables [settings], [expected], [public] and [[target]] do not affect what is measured:
they say how to estimate, which error to expect, where the public table is, and what the plan was tuned for. Of these,
only the hashes of the public files are part of the plan's own hash.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, TypeVar, cast

from prade.core.documents import toml_table
from prade.core.errors import DataError, PradeError, WorkloadError, closest
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Invariant, Schema, invariants_of
from prade.data.declare.schema_file import one_line_arrays
from prade.data.public.table import PublicFiles
from prade.data.read.csv import CsvFormat
from prade.planning.questions import Ask, Level
from prade.planning.settings import Expected, Settings, TargetError, settings_of_file
from prade.planning.task import Target, targets_of_tables
from prade.privacy.budget import Budget
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Part, Predicate
from prade.queries.query import parse
from prade.queries.workload import Workload

VERSION = 2  # of version 1, which prade 0.9 and earlier wrote, the plan's hash leaves out those of the public files
KEYS = (
    *("version", "dataset", "noise", "budget", "unit", "level", "settings", "expected", "public"),
    *("target", "invariant", "groups", "schema"),
)
OPTIONAL = ("noise", "settings", "expected", "public", "target", "invariant", "groups")
PUBLIC_KEYS = ("files", "encoding", "delimiter", "weight", "sha256")

Record = TypeVar("Record")


# ---------------------------------------------------------------------- writing


@dataclass(frozen=True)
class Content:
    """Everything that is in a plan's file."""

    dataset: str
    schema: Schema
    budget: Budget
    unit: Unit
    levels: Sequence[Level]
    groups: Groups
    settings: Settings | None
    expected: Expected | None
    public: PublicFiles | None
    invariants: Sequence[Invariant] = ()
    targets: Sequence[Target] = ()
    noise: str | None = None
    version: int = VERSION


def content_to_dict(plan: Content) -> dict[str, Any]:
    """Plain values; the numbers of the budget and the shares are texts of exact fractions."""
    free = {name: asdict(value) for name, value in (("settings", plan.settings), ("expected", plan.expected)) if value}
    if plan.expected is not None:
        errors = free["expected"].pop("targets")
        free["expected"] |= {"target": list(errors)} if errors else {}
    tables = {**measured_to_dict(plan), "schema": tomllib.loads(plan.schema.to_toml()), **free}
    tables |= {"version": plan.version}
    if plan.targets:
        tables["target"] = [target.to_dict() for target in plan.targets]
    if plan.public is not None:
        weight = {} if plan.public.weight is None else {"weight": plan.public.weight}
        hashes = {"sha256": list(plan.public.sha256)} if plan.public.sha256 else {}
        tables["public"] = {"files": list(plan.public.files), **plan.public.csv.to_dict(), **weight, **hashes}
    return {key: tables[key] for key in KEYS if key in tables}


def measured_to_dict(plan: Content) -> dict[str, Any]:
    """What the plan's hash is made of, in plain values: all but what may be edited later at no cost.

    It is all that determines what is measured, and the hashes of the public files.
    """
    levels = [
        {
            "by": list(level.by),
            "total": str(level.total),
            "ask": [
                {"share": str(ask.share), "parts": [_part_to_value(part) for part in ask.workload]}
                for ask in level.asks
            ],
        }
        for level in plan.levels
    ]
    stated = {"invariant": [each.to_dict() for each in plan.invariants]} if plan.invariants else {}
    # The usual law is left out, as files of earlier versions leave it out: their hashes stay the same.
    noise = {} if plan.noise in (None, plan.budget.law) else {"noise": plan.noise}
    # A plan of version 1 keeps the hash that its release and its ledger have; so do plans without public files.
    hashes = [] if plan.public is None or plan.version == 1 else list(plan.public.sha256)
    return {
        **({"version": VERSION, "public": hashes} if hashes else {"version": 1}),
        "dataset": plan.dataset,
        **noise,
        "budget": plan.budget.to_dict(),
        "unit": plan.unit.to_dict(),
        "level": levels,
        **stated,
        "groups": plan.groups.to_dict(),
        "schema": tomllib.loads(plan.schema.unlabelled().to_toml()),
    }


def toml_of_content(plan: Content, description: str) -> str:
    """The text of the file, which begins with the description as comments."""
    import tomli_w

    # TOML forbids control characters in comments, and a column's name may contain some.
    lines = (line if line.isprintable() else ascii(line)[1:-1] for line in description.split("\n"))
    head = "\n".join(f"# {line}" for line in lines)
    return f"{head}\n\n{one_line_arrays(tomli_w.dumps(content_to_dict(plan)))}"


def _part_to_value(part: Part) -> Any:
    """A marginal becomes its columns; queries become {queries = [...]}; a table of cells {columns, cells, labels}."""
    match part:
        case Marginal():
            return part.columns[0] if len(part.columns) == 1 else list(part.columns)
        case Predicate():
            return {"queries": [query.text for query in part.queries]}
        case Cells():
            return {"columns": list(part.columns), "cells": part.table.tolist(), "labels": list(part.cell_labels)}
    raise WorkloadError(f"part {part.name!r} cannot be in a plan")


# ---------------------------------------------------------------------- reading


def content_of_toml(text: str) -> Content:
    """The content of a plan's file."""
    document = toml_table(text)
    _only(document, KEYS, optional=OPTIONAL)
    version = document["version"]
    if version not in (1, VERSION) or type(version) is not int:
        raise DataError(f"version is {version!r}; this prade reads plans with `version = {VERSION}` or 1")
    with within("schema"):
        schema = Schema.from_dict(_table(document["schema"], "schema"))
    levels = [_level(schema, number, level) for number, level in enumerate(_tables(document["level"], "level"), 1)]
    with within("budget"):
        budget = Budget.from_dict(_table(document["budget"], "budget"))
    with within("unit"):
        unit = Unit.from_dict(_table(document["unit"], "unit"))
    groups = _groups(_table(document.get("groups", {}), "groups"))
    settings, expected = _settings(document), _expected(document)
    public = _public(_table(document["public"], "public")) if "public" in document else None
    invariants = invariants_of(document.get("invariant", []))
    targets = targets_of_tables(document.get("target", []))
    stated = settings, expected, public, invariants, targets, document.get("noise")
    return Content(document["dataset"], schema, budget, unit, levels, groups, *stated, version)


_VALUES: dict[Any, tuple[tuple[type, ...], str]] = {  # by a field's declared type: what may be written, in words
    "bool": ((bool,), "true or false"),
    "float": ((int, float), "a number"),
    "int": ((int,), "a whole number"),
    "str": ((str,), "a text"),
    "EstimatorName": ((str,), "a name"),
    "PosteriorName": ((str,), "a name"),
}


def _record(document: Mapping[str, Any], key: str, record: type[Record]) -> Record | None:
    """A table of the file as a record; fields that it leaves out get their defaults."""
    if key not in document:
        return None
    table = _table(document[key], key)
    known = fields(cast("Any", record))
    with within(key):
        _only(
            table,
            tuple(field.name for field in known),
            optional=tuple(field.name for field in known if field.default is not MISSING),
        )
        for field in (field for field in known if field.type in _VALUES):
            value = table.get(field.name, field.default)
            types, words = _VALUES[field.type]
            if not isinstance(value, types) or (field.type in ("float", "int") and isinstance(value, bool)):
                raise DataError(f"{field.name} is {str(value)[:40]!r}; write {words}")
        return record(**table)


def _settings(document: Mapping[str, Any]) -> Settings | None:
    """The settings: a file of this version has all of them, because their usual values change between versions."""
    if "settings" not in document:
        return None
    table = settings_of_file(_table(document["settings"], "settings"))
    if missing := [field.name for field in fields(Settings) if field.name not in table]:
        raise DataError(
            f"settings leave out {', '.join(missing)}: the file was edited, or written by prade before version 0.9. "
            "This version reads those of 0.9 and later: write all settings, or none"
        )
    return _record({"settings": table}, "settings", Settings)


def _expected(document: Mapping[str, Any]) -> Expected | None:
    """The expected errors: those of targets are tables within [expected]."""
    if "expected" not in document:
        return None
    table = dict(_table(document["expected"], "expected"))
    errors = _tables(table.pop("target", []), "expected.target")
    found = [_record({"expected.target": error}, "expected.target", TargetError) for error in errors]
    if "targets" in table:
        raise DataError("expected: unknown key 'targets'; write [[expected.target]] tables")
    made = _record({"expected": table}, "expected", Expected)
    return None if made is None else replace(made, targets=tuple(each for each in found if each is not None))


def _public(table: Mapping[str, Any]) -> PublicFiles:
    with within("public"):
        _only(table, PUBLIC_KEYS, optional=PUBLIC_KEYS[1:])
        files, hashes = table["files"], table.get("sha256", [])
        if not isinstance(files, list):
            raise DataError(f"files is {str(files)[:40]!r}; write a list of paths")
        if not isinstance(hashes, list) or not all(isinstance(each, str) for each in hashes):
            raise DataError(f"sha256 is {str(hashes)[:40]!r}; write a list of hashes, one per file, or leave it out")
        form = CsvFormat(table.get("encoding", "utf-8"), table.get("delimiter", ","))
        return PublicFiles(tuple(files), table.get("weight"), tuple(hashes), form, folder=".")


def _groups(table: Mapping[str, Any]) -> Groups:
    for name, values in table.items():
        if not isinstance(values, list):
            raise DataError(f"groups: {name} is {str(values)[:40]!r}; write a list with one value per group")
    with within("groups"):
        return Groups.of(table or None)


def _level(schema: Schema, number: int, table: Mapping[str, Any]) -> Level:
    with within(f"level {number}"):
        _only(table, ("by", "total", "ask"), optional=("total", "ask"))
        asks = [_ask(schema, k, ask) for k, ask in enumerate(_tables(table.get("ask", []), "level.ask"), start=1)]
        return Level(table["by"], asks, table.get("total"))


def _ask(schema: Schema, number: int, table: Mapping[str, Any]) -> Ask:
    with within(f"ask {number}"):
        _only(table, ("share", "parts"))
        if not isinstance(table["parts"], list):
            raise WorkloadError(f'parts is {str(table["parts"])[:40]!r}; give a list such as ["AGE", ["AGE", "SEX"]]')
        return Ask(Workload(schema, [_part(schema, value) for value in table["parts"]]), table["share"])


def _part(schema: Schema, value: Any) -> Part:
    match value:
        case str() | list():
            return Marginal.of(schema, value)
        case {"queries": [*texts], **rest} if not rest:
            return Predicate(*(parse(text, schema) for text in texts))
        case {"columns": [*columns], "cells": [*cells], "labels": [*labels], **rest} if not rest:
            if not all(type(cell) is int for cell in cells) or not all(isinstance(label, str) for label in labels):
                raise WorkloadError("cells must be one list of whole numbers, and labels a list of texts, one per cell")
            return Cells(columns, cells, len(labels), labels)
    raise WorkloadError(
        "a part is a column, a list of columns, {queries = [...]} or {columns = [...], cells = [...], "
        f"labels = [...]}}; got {str(value)[:80]!r}"
    )


@contextmanager
def within(where: str) -> Iterator[None]:
    """Begin the message of every error with where in the file it arose."""
    try:
        yield
    except PradeError as error:
        raise error.within(where) from None


def _only(table: Mapping[str, Any], keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    """Refuse unknown keys, and missing ones that are not optional."""
    for key in table:
        if key not in keys:
            hint = closest(key, keys) or f"; the keys are {', '.join(keys)}"
            raise DataError(f"unknown key {key!r}{hint}")
    for key in keys:
        if key not in table and key not in optional:
            raise DataError(f"{key} is missing; the keys are {', '.join(keys)}")


def _table(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{key} is {str(value)[:40]!r}; write a [{key}] table")
    return value


def _tables(value: Any, key: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{key} is {str(value)[:40]!r}; write [[{key}]] tables (double brackets)")
    return value
