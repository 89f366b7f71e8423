"""A plan: every question that will be asked about the private table and its noise, fixed before any row is read.

A level has disjoint groups and asks. Ask a has parts and a share s_a of the budget B; one row satisfies at most m_a
queries of its parts. The budget B s_a / sum(s) determines the noise scale of its counts,

    pure    b = rows * m_a / epsilon_a          zCDP    sigma^2 = rows^2 * m_a / (2 rho_a)

where `rows` is the number of rows by which neighbouring tables differ. The costs of the asks add up to B; the groups of
a level cost nothing extra, because each row is in only one of them. An (epsilon, delta) budget is split as the zCDP
budget within it, or, with Laplace noise, as the pure budget epsilon.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from prade.core.documents import Malformed, file_text, json_value, structured, toml_table
from prade.core.errors import DataError, PradeError, SchemaError, WorkloadError, many, within
from prade.core.files import replace_file
from prade.data.declare.groups import Grouping, Groups, RecurringGroups
from prade.data.declare.schema import Invariant, PublishedTotals, Schema, invariants_of, toml_text
from prade.data.public.public import Public
from prade.data.public.table import PublicFiles, PublicTable
from prade.data.read.csv import CsvFormat
from prade.planning.invariants import not_protected, obeying, published_totals
from prade.planning.questions import TOTAL, Ask, Level, Question, total_part, total_variance
from prade.planning.settings import NOT_REHEARSED, Expected, Settings, TargetError, settings_of_file
from prade.planning.task import Target, Task, targets_of_tables
from prade.privacy.budget import Budget
from prade.privacy.noise_law import NoiseLaw, noise_law
from prade.privacy.protection import Unit
from prade.queries.parts import Cells, Marginal, Part, Predicate
from prade.queries.query import parse
from prade.queries.workload import Workload

Record = TypeVar("Record")
VERSION = 2  # of version 1, which prade 0.9 and earlier wrote, the plan's hash leaves out those of the public files
LARGEST_SCALE = 10**150  # the variance of such noise still fits into a float
MOST_COUNTS = 2**31  # over all groups, parts and cells: 16 GiB of counts
RELEASED = "release.json"  # the file by which a folder is a release
NAMES_SHOWN = 3  # tables that a line of the description names
KEYS = (
    *("version", "dataset", "noise", "budget", "unit", "level", "settings", "expected", "public"),
    *("target", "invariant", "groups", "schema"),
)  # in the order of the file


class Plan:
    """The questions about each group, the unit of protection and the budget: a value, and a readable file (`save`).

    `settings` say how to estimate, `expected` which error to expect, `public` where the public table is, `targets` what
    the plan was tuned for. They do not affect what is measured, so they may be edited after planning, and plans that
    differ only in them are equal, except that the hashes of the public files belong to the plan. `noise` is the law of
    all noise where it is not the usual one of the budget's kind; `noise_budget` is what is split
    (`prade.privacy.budget.Budget.noise_budget`).

    Each level adds its columns to those of the level before: ``["STATE"], ["PUMA"]`` means every state, and every PUMA
    within its state. If a level's total is None, the plan asks for the number of rows, as one more part of the level,
    if v(own) < v(derived):

        v(own) = variance of the noise in one count        v(derived) = 1 / sum_k 1 / (m_k v_k)

    v(derived) is that of the best mean of the sums of the covering parts, which have m_k counts with variance v_k.

    >>> from prade import Schema, Workload
    >>> schema = Schema.from_mbi({"age": 10, "sex": 2})
    >>> ages = Workload.marginals(schema, ["age"])
    >>> plan = Plan("survey", schema, 1, Unit(1), [Level("STATE", ages), Level("PUMA", Ask(ages, 3))],
    ...     groups={"STATE": [17, 17, 39], "PUMA": [1, 2, 1]})
    >>> print(plan.describe())
    3 groups, 2 levels, epsilon = 1 (pure differential privacy)
    STATE (2 groups)
      number of rows: epsilon = 0.125, Laplace noise of scale 8
      1 one-way table (age), 10 counts in each of 2 groups: epsilon = 0.125, Laplace noise of scale 8
    STATE+PUMA (3 groups)
      number of rows: epsilon = 0.375, Laplace noise of scale 2.66667
      1 one-way table (age), 10 counts in each of 3 groups: epsilon = 0.375, Laplace noise of scale 2.66667
    """

    def __init__(
        self,
        dataset: str,
        schema: Schema,
        budget: Any,
        unit: Unit | None,
        levels: Sequence[Level],
        groups: Any = None,
        *,
        settings: Settings | None = None,
        expected: Expected | None = None,
        public: PublicFiles | None = None,
        invariants: Sequence[Invariant] = (),
        targets: Sequence[Target] = (),
        noise: str | None = None,
        version: int = VERSION,
    ) -> None:
        if not isinstance(levels, Sequence) or not levels or not all(isinstance(level, Level) for level in levels):
            raise PradeError("a plan needs a list of at least one Level(by, workload), and of nothing else")
        if unit is None:
            raise PradeError("a plan needs a Unit, which says what one person may have in the table")
        bys = [level.by for level in levels]
        self.task = task = Task(dataset, schema, budget, unit, bys, groups, invariants, targets)
        self.dataset, self.schema, self.budget, self.unit = task.dataset, task.schema, task.budget, task.unit
        self.groups, self.invariants, self.targets = task.groups, task.invariants, task.targets
        self.settings, self.expected, self.public = settings, expected, public
        self.version = version  # of its file: 1 if prade 0.9 or an earlier version wrote it
        if self.budget == self.budget * 0:
            raise PradeError("the budget is zero, but every answer costs something: give a larger budget")
        self.noise_budget = self.budget.noise_budget(noise)  # refuses a law that cannot keep the promise
        self.law: NoiseLaw = self.budget.law if noise is None else noise_law(noise)
        if not any(level.asks or level.total for level in levels):
            raise PradeError("the plan asks no question: give at least one level a workload")
        if not levels[-1].asks and not levels[-1].total:
            raise PradeError("the last level asks no question, so nothing is known about its groups: leave it out")
        asks = [ask for level in levels for ask in level.asks]
        if any(ask.share == 0 for ask in asks):
            raise PradeError("an Ask has the share 0, but every answer needs some budget: leave it out")
        if any(ask.workload.schema != self.schema for ask in asks):
            raise WorkloadError("a level's workload was made for a schema other than the plan's: make it again")
        nested = [()] * (len(levels) - len(task.levels)) + list(task.levels)  # everybody may come first
        self.levels = tuple(self._settled(replace(level, by=by)) for level, by in zip(levels, nested, strict=True))
        self.published = published_totals(self.invariants, self.groups, self.groupings)
        whole = sum((level.share for level in self.levels), Fraction(0))
        each = (self._questions_of(number, level, whole) for number, level in enumerate(self.levels))
        self.questions = tuple(chain.from_iterable(each))  # in the order of the answers; refuses too small a budget
        counts = sum(len(self.groupings[question.level]) * question.cells for question in self.questions)
        if counts > MOST_COUNTS:
            raise PradeError(
                f"the plan asks for {counts:,} counts, more than fit in memory (at most {MOST_COUNTS:,}): ask for "
                "fewer columns at a time, coarser bins or fewer groups"
            )

    @classmethod
    def simplest(cls, task: Task) -> Plan:
        """The plan that asks for all one-way tables at the last level; it needs no rehearsal and no public table."""
        *above, last = task.levels
        levels = [*(Level(by) for by in above), Level(last, Workload.all_marginals(task.schema, 1))]
        return cls.of(task, levels)

    @classmethod
    def of(cls, task: Task, levels: Sequence[Level], **further: Any) -> Plan:
        """The plan for a task that asks, at each of the task's levels, the questions of `levels`.

        A level of everybody may come before the task's; it is added if the number of all rows is published. `further`
        arguments are those of `Plan`.
        """
        whole = any(isinstance(each, PublishedTotals) and not each.level for each in task.invariants)
        if whole and levels and levels[0].by:
            levels = [Level(()), *levels]
        what = task.dataset, task.schema, task.budget, task.unit, levels, task.groups
        plan = cls(*what, invariants=task.invariants, targets=task.targets, **further)
        if plan.task != task:
            raise PradeError(
                f"the plan has the levels {', '.join(level.name for level in plan.levels)}, but the task has "
                f"{', '.join('+'.join(by) or 'all' for by in task.levels)}: give one Level for each level of the task"
            )
        return plan

    @cached_property
    def groupings(self) -> tuple[Grouping, ...]:
        return tuple(self.groups.level(level.by) for level in self.levels)

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all that is measured and of the public files' contents, whatever the layout of the file."""
        content = json.dumps(measured_to_dict(self), sort_keys=True, default=str, ensure_ascii=False)
        try:
            return hashlib.sha256(content.encode()).hexdigest()
        except UnicodeEncodeError as error:
            raise PradeError(
                f"a name or value of the plan contains half a character ({content[error.start]!a}), which no file can "
                "store: rename it"
            ) from None

    def __eq__(self, other: object) -> bool:
        return self.hash == other.hash if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Plan({self.dataset!r}, {len(self.groupings[-1])} groups, {len(self.levels)} levels, {self.budget!r})"

    def describe(self) -> str:
        """The questions about the groups of each level, with their cost and their noise, as text."""
        lines = [f"{many(len(self.groupings[-1]), 'group')}, {many(len(self.levels), 'level')}, {self.budget}"]
        for number, (level, grouping) in enumerate(zip(self.levels, self.groupings, strict=True)):
            lines.append(f"{level.name} ({many(len(grouping), 'group')})")
            questions = [f"  {self.line(question)}" for question in self.questions if question.level == number]
            lines += questions or ["  no questions: counts are added up from the levels below"]
        for each in self.invariants:
            origin = " (from the private table: not protected)" if each.source == "private" else ""
            lines.append(f"met exactly: {each}{origin}")
        if self.expected is not None:
            lines += [str(self.expected), *map(str, self.expected.targets)]
        return "\n".join(lines)

    @property
    def advice(self) -> str:
        return NOT_REHEARSED if self.expected is None else self.expected.advice or str(self.expected)

    def promise(self) -> str:
        """In plain words: who is protected, on what assumption, and which facts are not protected."""
        return " ".join(filter(None, [self.unit.promise(), not_protected(self.invariants)]))

    def line(self, question: Question) -> str:
        """One question as a line of text: its tables, the number of counts, the cost and the noise."""
        names = question.names() if question.noun != "part" else []
        more = ", ..." if len(names) > NAMES_SHOWN else ""
        named = f" ({', '.join(names[:NAMES_SHOWN])}{more})" if names else ""
        groups = len(self.groupings[question.level])
        where = f" in each of {groups:,} groups" if groups > 1 else ""
        tables = f"{many(len(question.parts), question.noun)}{named}, {many(question.cells, 'count')}{where}"
        cost, scale = str(question.share).partition(" (")[0], float(question.scale)
        return f"{TOTAL if question.is_total else tables}: {cost}, {question.law.words} of scale {scale:g}"

    def changed(self, **changes: Any) -> Plan:
        """The plan with other arguments, for example other `settings`."""
        same = "dataset schema budget unit levels groups settings expected public invariants targets version"
        return Plan(**{**{name: getattr(self, name) for name in same.split()}, "noise": self.law, **changes})

    def with_public(self, public: PublicFiles | None) -> Plan:
        """The plan with another list of public files; it equals the plan if they have the same hashes."""
        return self.changed(public=public)

    def with_labels(self, schema: Schema) -> Plan:
        """The same plan with the titles and labels of a schema that has the plan's columns."""
        if schema != self.schema:
            raise SchemaError("a schema with labels for this plan must have the plan's columns, values and edges")
        return self.changed(schema=schema.with_invariants(()))

    def to_dict(self) -> dict[str, Any]:
        """The plain values that the file contains; numbers of the budget and shares are texts of exact fractions."""
        tables = {**measured_to_dict(self), "version": self.version, "schema": tomllib.loads(self.schema.to_toml())}
        if self.settings is not None:
            tables["settings"] = asdict(self.settings)
        if self.expected is not None:
            expected = asdict(self.expected)
            errors = list(expected.pop("targets"))
            tables["expected"] = {**expected, **({"target": errors} if errors else {})}
        if self.targets:
            tables["target"] = [target.to_dict() for target in self.targets]
        if self.public is not None:
            weight = {} if self.public.weight is None else {"weight": self.public.weight}
            hashes = {"sha256": list(self.public.sha256)} if self.public.sha256 else {}
            tables["public"] = {"files": list(self.public.files), **self.public.csv.to_dict(), **weight, **hashes}
        return {key: tables[key] for key in KEYS if key in tables}

    def to_toml(self) -> str:
        """The text of the file, which begins with the plan's description as comments."""
        # TOML forbids control characters in comments, and a column's name may contain some.
        lines = (line if line.isprintable() else ascii(line)[1:-1] for line in self.describe().split("\n"))
        head = "\n".join(f"# {line}" for line in lines)
        return f"{head}\n\n{toml_text(self.to_dict())}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan as TOML, completely or not at all. Paths of public files are relative to the plan's folder."""
        with replace_file(path) as temporary:
            temporary.write_text(self.text_at(path), encoding="utf-8")

    def text_at(self, path: str | PathLike[str]) -> str:
        seen = None if self.public is None else self.public.seen_from(Path(path).parent)
        return self.with_public(seen).to_toml()

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        return cls(**arguments_of_toml(text))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Plan:
        """The plan in a file; its public files must lie in the file's folder, or, for that of a release, beside it."""
        text, folder = file_text(path, "plan"), Path(path).absolute().parent
        with within(str(path)):
            plan = cls.from_toml(text)
        if plan.public is None:
            return plan
        home = folder.parent if _released(folder, plan.hash) else folder
        return plan.with_public(replace(plan.public.found_from(folder), folder=str(home)))

    def _questions_of(self, number: int, level: Level, whole: Fraction) -> Iterator[Question]:
        """The questions of a level, the total first; `whole` is the share of all levels."""
        totals = [((total_part(self.schema, level),), True, level.total, 1)] if level.total else []
        asked = [(ask.workload.parts, False, ask.share, ask.workload.per_row) for ask in level.asks]
        for parts, is_total, share, per_row in (*totals, *asked):
            budget, rows = self.noise_budget * (share / whole), self.unit.rows
            scale = budget.noise_scale(rows * per_row, rows**2 * per_row)
            if scale > LARGEST_SCALE:
                raise PradeError(f"{self.budget} is too small: its noise would drown every count; give a larger budget")
            yield Question(number, parts, is_total, budget, self.law, scale)

    def _settled(self, level: Level) -> Level:
        """The level with its total decided; the level's share of the budget stays the same."""
        if level.total is not None or not level.asks:
            return replace(level, total=level.total or Fraction(0))
        parts = sum(len(ask.workload) for ask in level.asks)
        own = level.share / (parts + 1)
        factor = Fraction(parts, parts + 1)
        asked = replace(level, total=own, asks=tuple(Ask(ask.workload, ask.share * factor) for ask in level.asks))
        derived = replace(level, total=Fraction(0))
        own_total = next(self._questions_of(0, asked, level.share))
        return asked if own_total.variance < total_variance(self._questions_of(0, derived, level.share)) else derived


def measured_to_dict(plan: Plan) -> dict[str, Any]:
    """What the plan's hash is made of: all that determines what is measured, and the hashes of the public files."""
    asks = [
        [{"share": str(ask.share), "parts": list(map(_part_to_value, ask.workload))} for ask in level.asks]
        for level in plan.levels
    ]
    pairs = zip(plan.levels, asks, strict=True)
    levels = [{"by": list(level.by), "total": str(level.total), "ask": asked} for level, asked in pairs]
    stated = {"invariant": [each.to_dict() for each in plan.invariants]} if plan.invariants else {}
    # The usual law is left out, as files of earlier versions leave it out: their hashes stay the same.
    noise = {} if plan.law == plan.budget.law else {"noise": plan.law}
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


def _released(folder: Path, plan_hash: str) -> bool:
    with suppress(OSError, Malformed):
        manifest = json_value((folder / RELEASED).read_bytes())
        return isinstance(manifest, dict) and manifest.get("plan") == plan_hash
    return False


def rows_to_plan_with(task: Task, table: PublicTable) -> Public:
    """The public rows that obey a task's rules; a table that cannot serve the task fails here, before any rehearsal."""
    rows = obeying(table.rows(task.schema, task.groups), task.invariants)
    table.decoder(task.schema)  # `sample` takes values from it
    return rows


def groups_with_public_rows(public: Public, groups: Groups) -> tuple[int, str]:
    """How many of the listed groups occur among the public rows, as a number and in words; no words without groups."""
    if not groups.names:
        return 0, ""
    number = int(RecurringGroups.of(public.groups, groups.level(groups.names)).recurs.sum())
    verb = "occurs" if number == 1 else "occur"
    return number, f"{number:,} of {len(groups):,} groups {verb} among the public rows"


def columns_left_out(plan: Plan) -> list[str]:
    """The columns of the schema that no question of a plan is about, without group columns."""
    asked = {name for level in plan.levels for ask in level.asks for name in ask.workload.columns}
    return [name for name in plan.schema.coded if name not in asked]


def unlisted_groups(schema: Schema, groups: Groups) -> list[str]:
    """The group columns of a schema that the list of groups does not have; synthetic rows will lack them."""
    return [name for name in schema.groups if name not in groups.names]


def left_out_in_words(measured_not: Sequence[str], unlisted: Sequence[str]) -> list[str]:
    """A sentence about columns that a plan does not measure, and one about group columns that no row will have."""
    sentences = {
        "not measured, so that their values follow the public table": measured_not,
        "not in the list of groups, so that synthetic rows will lack them": unlisted,
    }
    return [f"{words}: {', '.join(columns)}" for words, columns in sentences.items() if columns]


def public_of(plan: Plan, public: Any = None, weight: str | None = None) -> PublicTable:
    """The public table that the caller gives, or the one in the files that the plan of a release names."""
    if (files := plan.public) is None and public is None:
        raise DataError("the release does not name its public files", remedy="public")
    if files is not None and public is None:
        return PublicTable(files.checked(), weight)
    table = PublicTable.of(public, weight or (files.weight if files else None))
    if files is None or (now := table.hashed_files) is None:
        return table
    moved = files.moved_to(now)  # refuses files that are not the plan's
    same = now.csv == moved.csv and set(now.files) == set(moved.files)
    return table if same else PublicTable(moved, table.weight)


def plan_with_checked_files(plan: Plan, public: Any = None) -> Plan:
    """The plan with its public files where the caller says they are.

    A table in memory takes the place of files, which are then neither used nor checked.
    """
    if plan.public is None:
        return plan
    now = None if public is None else PublicTable.of(public).hashed_files
    if public is not None and now is None:
        return plan
    return plan.with_public(plan.public.checked() if now is None else plan.public.moved_to(now))


# ---------------------------------------------------------------------- reading the file
# Unknown keys are refused. The optional tables [settings], [expected], [public] and [[target]] do not affect what is
# measured; only the hashes of public files are part of the plan's own hash.


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

    def made(where: str, make: Callable[[Any], Record], value: Any) -> Record:
        with within(where):
            return make(value)

    schema, levels = made("schema", Schema.from_dict, file.schema), []
    for number, level in enumerate(file.level, start=1):
        with within(f"level {number}"):
            asks = [Ask(Workload(schema, [_part(schema, part) for part in ask.parts]), ask.share) for ask in level.ask]
            levels.append(Level(level.by, asks, level.total))
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
        "budget": made("budget", Budget.from_dict, file.budget),
        "unit": made("unit", Unit.from_dict, file.unit),
        "levels": levels,
        "groups": made("groups", Groups.of, file.groups or None),
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
        for each in fields(record)  # type: ignore[arg-type]  # every record is a dataclass
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
