"""A plan's file: TOML that a person reads and edits; unknown keys are refused.

It holds everything that is measured: the schema and the list of groups too, so that a release explains itself. The
tables [settings], [expected] and [public], where there are any, are not measured: how to estimate, what to expect of
it, and where the public table is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, TypeVar, cast

from prade.core.documents import toml_table
from prade.core.errors import DataError, PradeError, WorkloadError
from prade.core.words import closest
from prade.data.groups import Groups
from prade.data.public_files import PublicFiles
from prade.data.schema import Schema
from prade.data.schema_file import columns_of_table, one_line_arrays, toml_of_columns
from prade.planning.expected import Expected
from prade.planning.questions import Ask, Level
from prade.planning.settings import Settings
from prade.privacy.budget import Budget, Unit
from prade.queries.parts import Cells, Marginal, Part, Predicate
from prade.queries.query import parse
from prade.queries.workload import Workload

VERSION = 1
KEYS = ("version", "dataset", "budget", "unit", "level", "settings", "expected", "public", "groups", "schema")
OPTIONAL = ("settings", "expected", "public", "groups")

Record = TypeVar("Record")


# ---------------------------------------------------------------------- writing


@dataclass(frozen=True)
class Content:
    """All that a plan's file says."""

    dataset: str
    schema: Schema
    budget: Budget
    unit: Unit
    levels: Sequence[Level]
    groups: Groups
    settings: Settings | None
    expected: Expected | None
    public: PublicFiles | None


def content_to_dict(plan: Content) -> dict[str, Any]:
    """Plain values: numbers of the budget and shares as texts of exact fractions."""
    free = {name: asdict(value) for name, value in (("settings", plan.settings), ("expected", plan.expected)) if value}
    found = {**measured_to_dict(plan), **free}
    if plan.public is not None:
        weight = {} if plan.public.weight is None else {"weight": plan.public.weight}
        hashes = {"sha256": list(plan.public.sha256)} if plan.public.sha256 else {}
        found["public"] = {"files": list(plan.public.files), **weight, **hashes}
    return {key: found[key] for key in KEYS if key in found}


def measured_to_dict(plan: Content) -> dict[str, Any]:
    """What is asked, of whom, at which price, in plain values: all but what costs nothing and may be edited later."""
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
    return {
        "version": VERSION,
        "dataset": plan.dataset,
        "budget": plan.budget.to_dict(),
        "unit": plan.unit.to_dict(),
        "level": levels,
        "groups": plan.groups.to_dict(),
        "schema": tomllib.loads(toml_of_columns(plan.schema)),
    }


def toml_of_content(plan: Content, description: str) -> str:
    """The text of the file, with what it means in comments at its head."""
    import tomli_w

    # TOML allows no control characters in comments, and a column's name may have some.
    lines = (line if line.isprintable() else ascii(line)[1:-1] for line in description.split("\n"))
    head = "\n".join(f"# {line}" for line in lines)
    return f"{head}\n\n{one_line_arrays(tomli_w.dumps(content_to_dict(plan)))}"


def _part_to_value(part: Part) -> Any:
    """A marginal as its columns; queries as {queries = [...]}; a table of cells as {columns, cells, labels}."""
    match part:
        case Marginal():
            return part.columns[0] if len(part.columns) == 1 else list(part.columns)
        case Predicate():
            return {"queries": [query.text for query in part.queries]}
        case Cells():
            return {"columns": list(part.columns), "cells": part.table.tolist(), "labels": list(part.cell_labels)}
    raise WorkloadError(f"part {part.name!r} is bound to one support's rows and cannot be in a plan")


# ---------------------------------------------------------------------- reading


def content_of_toml(text: str) -> Content:
    """What a plan's file says."""
    found = toml_table(text)
    _only(found, KEYS, optional=OPTIONAL)
    if found["version"] != VERSION or isinstance(found["version"], bool):
        raise DataError(f"version is {found['version']!r}; this prade reads plans of `version = {VERSION}`")
    with within("schema"):
        schema = Schema(columns_of_table(_table(found["schema"], "schema")))
    levels = [_level(schema, place, entry) for place, entry in enumerate(_tables(found["level"], "level"), start=1)]
    with within("budget"):
        budget = Budget.from_dict(_table(found["budget"], "budget"))
    with within("unit"):
        unit = Unit.from_dict(_table(found["unit"], "unit"))
    groups = _groups(_table(found.get("groups", {}), "groups"))
    settings, expected = _record(found, "settings", Settings), _record(found, "expected", Expected)
    public = _public(_table(found["public"], "public")) if "public" in found else None
    return Content(found["dataset"], schema, budget, unit, levels, groups, settings, expected, public)


_WRITTEN: dict[Any, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "true or false"),
    "float": ((int, float), "a number"),
    "str": ((str,), "a text"),
    "Kind": ((str,), "a name"),
}


def _record(found: Mapping[str, Any], key: str, kind: type[Record]) -> Record | None:
    """A table of the file that is one small record; what it leaves out is as usual, where that is known."""
    if key not in found:
        return None
    table = _table(found[key], key)
    known = fields(cast("Any", kind))
    with within(key):
        _only(
            table,
            tuple(field.name for field in known),
            optional=tuple(field.name for field in known if field.default is not MISSING),
        )
        for field in known:
            value = table.get(field.name, field.default)
            kinds, wanted = _WRITTEN[field.type]
            if not isinstance(value, kinds) or (field.type == "float" and isinstance(value, bool)):
                raise DataError(f"{field.name} is {str(value)[:40]!r}; write {wanted}")
        return kind(**table)


def _public(table: Mapping[str, Any]) -> PublicFiles:
    with within("public"):
        _only(table, ("files", "weight", "sha256"), optional=("weight", "sha256"))
        files, hashes = table["files"], table.get("sha256", [])
        if not isinstance(files, list):
            raise DataError(f"files is {str(files)[:40]!r}; write a list of paths")
        if not isinstance(hashes, list) or not all(isinstance(each, str) for each in hashes):
            raise DataError(f"sha256 is {str(hashes)[:40]!r}; write a list of hashes, one per file, or leave it out")
        return PublicFiles(tuple(files), table.get("weight"), tuple(hashes))


def _groups(table: Mapping[str, Any]) -> Groups:
    for name, values in table.items():
        if not isinstance(values, list):
            raise DataError(f"groups: {name} is {str(values)[:40]!r}; write a list with one value a group")
    with within("groups"):
        return Groups.of(table or None)


def _level(schema: Schema, place: int, entry: Mapping[str, Any]) -> Level:
    with within(f"level {place}"):
        _only(entry, ("by", "total", "ask"), optional=("total", "ask"))
        asks = _tables(entry.get("ask", []), "level.ask")
        return Level(
            entry["by"], [_ask(schema, number, ask) for number, ask in enumerate(asks, start=1)], entry.get("total")
        )


def _ask(schema: Schema, place: int, entry: Mapping[str, Any]) -> Ask:
    with within(f"ask {place}"):
        _only(entry, ("share", "parts"))
        if not isinstance(entry["parts"], list):
            raise WorkloadError(f'parts is {str(entry["parts"])[:40]!r}; give a list such as ["AGE", ["AGE", "SEX"]]')
        return Ask(Workload(schema, [_part(schema, value) for value in entry["parts"]]), entry["share"])


def _part(schema: Schema, value: Any) -> Part:
    match value:
        case str() | list():
            return Marginal.of(schema, value)
        case {"queries": [*texts], **rest} if not rest:
            return Predicate(*(parse(text, schema) for text in texts))
        case {"columns": [*columns], "cells": [*cells], "labels": [*labels], **rest} if not rest:
            if not all(type(cell) is int for cell in cells) or not all(isinstance(label, str) for label in labels):
                raise WorkloadError("cells are whole numbers in one list, and labels are texts, one a cell")
            return Cells(columns, cells, len(labels), labels)
    raise WorkloadError(
        "a part is a column, a list of columns, {queries = [...]} or {columns = [...], cells = [...], "
        f"labels = [...]}}; got {str(value)[:80]!r}"
    )


@contextmanager
def within(place: str) -> Iterator[None]:
    """Say in front of every complaint where in the file it arose."""
    try:
        yield
    except PradeError as error:
        raise error.within(place) from None


def _only(found: Mapping[str, Any], keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    for key in found:
        if key not in keys:
            hint = closest(key, keys) or f"; the keys are {', '.join(keys)}"
            raise DataError(f"unknown key {key!r}{hint}")
    for key in keys:
        if key not in found and key not in optional:
            raise DataError(f"{key} is not given; the keys are {', '.join(keys)}")


def _table(found: Any, key: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DataError(f"{key} is {str(found)[:40]!r}; write a [{key}] table")
    return found


def _tables(found: Any, key: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise DataError(f"{key} is {str(found)[:40]!r}; write [[{key}]] tables (double brackets)")
    return found
