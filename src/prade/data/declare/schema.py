"""The schema: a table's columns and their domains, declared before any private row is read, and its file.

People write schema files by hand: every error message names the column and says what to write instead.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from prade.core.documents import file_text, toml_table
from prade.core.errors import SchemaError, closest, names_of, within
from prade.core.files import replace_file
from prade.data.declare.column import Column
from prade.data.declare.draft import infer_columns, proposed_links
from prade.data.declare.groups import Groups
from prade.data.declare.kinds import EPOCH
from prade.data.read.cells import LARGEST_WHOLE
from prade.data.read.tables import distinct_values, group_cells, read_table

__all__ = ["Column", "Schema"]

VERSION = 1
# of one [[column]] table, in the order in which they are written
COLUMN_KEYS = (
    *("name", "kind", "title", "description", "unit", "integer", "min", "max", "edges", "values", "missing", "other"),
    *("unknown", "labels"),
)


class Schema:
    """An ordered set of columns; the domain is the product of their codes.

    A synthetic row takes its values in each set of `linked` columns, such as wages and income, from one public row.
    `invariants` are facts about the rows. Schemas that differ only in invariants, titles and labels are equal.

    >>> sex, age = Column("SEX", "categorical", values=(1, 2)), Column("AGE", "numeric", edges=(18, 65))
    >>> schema = Schema([sex, age])
    >>> schema.shape(["SEX", "AGE"]), schema.domain_size(["SEX", "AGE"])
    ((2, 3), 6)
    """

    def __init__(
        self, columns: Sequence[Column], *, linked: Sequence[Sequence[str]] = (), invariants: Sequence[Invariant] = ()
    ) -> None:
        self.columns = tuple(columns)
        self.invariants = checked_invariants(invariants)
        if not self.columns:
            raise SchemaError("a schema needs at least one column; write a [[column]] table for each column")
        self._by_name: dict[str, Column] = {}
        for column in self.columns:
            if not isinstance(column, Column):
                raise SchemaError(f"a schema is made of Column objects, got {type(column).__name__}")
            if column.name in self._by_name:
                raise SchemaError(f"column {column.name!r} is declared twice; remove one of the two")
            self._by_name[column.name] = column
        self.linked = _checked_links(linked, self.coded)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(self._by_name)

    @property
    def coded(self) -> tuple[str, ...]:
        """Names of the columns that are encoded and estimated: all but the group columns."""
        return tuple(column.name for column in self.columns if not column.groups)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the group columns, outermost first."""
        return tuple(column.name for column in self.columns if column.groups)

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except KeyError:
            raise SchemaError(f"there is no column {name!r} in the schema{closest(name, self._by_name)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def size(self, name: str) -> int:
        """Number of codes of one column, including missing."""
        return self[name].size

    def shape(self, names: Sequence[str]) -> tuple[int, ...]:
        """Number of codes of each column, which is the shape of their joint table."""
        return tuple(self.size(name) for name in names_of(names))

    def domain_size(self, names: Sequence[str]) -> int:
        """Number of cells in the product of the columns."""
        return math.prod(self.shape(names))

    def select(self, names: Sequence[str]) -> Schema:
        """A schema with these columns only, in this order."""
        chosen = names_of(names)
        linked = [[name for name in together if name in chosen] for together in self.linked]
        return Schema([self[name] for name in chosen], linked=[together for together in linked if len(together) > 1])

    def with_invariants(self, invariants: Sequence[Invariant]) -> Schema:
        """This schema with other invariants."""
        other = copy.copy(self)
        other.invariants = checked_invariants(invariants)
        return other

    def unlabelled(self) -> Schema:
        """This schema without titles, descriptions, units and labels: what it says about cells."""
        bare = [column.unlabelled() for column in self.columns]
        return Schema(bare, linked=self.linked, invariants=self.invariants)

    def with_groups(self, table: Any) -> Schema:
        """This schema with the values of its group columns taken from a public table or file with one row per group."""
        groups = read_table(table)
        filled = []
        for column in self.columns:
            if column.groups and column.name in groups.column_names:
                values = distinct_values(group_cells(table, column.name))
                if None in values or not values:
                    raise column.error("the list of groups has an empty cell or no rows; give every group a value")
                column = replace(column.unlabelled(), values=tuple(values)).labelled_like(column)
            elif column.groups and not column.values:
                raise column.error(f"the list of groups has no such column{closest(column.name, groups.column_names)}")
            filled.append(column)
        return Schema(filled, linked=self.linked, invariants=self.invariants)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema file."""
        text = file_text(path, "schema file", SchemaError)
        with within(str(path)):
            return cls.from_dict(toml_table(text, SchemaError), Path(path).parent)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML text."""
        return cls.from_dict(toml_table(text, SchemaError))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], folder: Path | None = None) -> Schema:
        """The schema in the tables of a TOML document, whose files of totals are in `folder`."""
        facts = invariants_of(document.get("invariant", []), folder)
        return cls(_columns_of(document), linked=document.get("linked", ()), invariants=facts)

    @classmethod
    def from_mbi(cls, domain: Mapping[str, int]) -> Schema:
        """The schema of mbi's domain, {"column": size}: the values are 0, 1, ..., size - 1."""
        return cls([Column(name, "categorical", values=tuple(range(size))) for name, size in domain.items()])

    @classmethod
    def infer(
        cls,
        table: Any,
        *,
        groups: Sequence[str] = (),
        weight: str | None = None,
        skip: Sequence[str] = (),
        max_values: int = 64,
        bins: int = 20,
    ) -> Schema:
        """Propose a schema for a PUBLIC table; save it, review it and edit it.

        A column with at most `max_values` distinct texts, Booleans or whole numbers becomes categorical, one with more
        numbers numeric, with about `bins` bins at rounded quantiles. One text such as "N" among numbers stands for
        missing. `weight` and columns in `skip` are left out. Numeric columns are linked where one is hardly ever above
        the other.
        """
        columns = infer_columns(table, names_of(groups), weight, names_of(skip), max_values, bins)
        return cls(columns, linked=proposed_links(columns, table))

    def to_toml(self) -> str:
        """The schema as TOML text; `from_toml` turns it back into an equal schema."""
        columns, facts = map(_entry_of, self.columns), [each.to_dict() for each in self.invariants]
        linked = [list(together) for together in self.linked]
        document = {"version": VERSION, "linked": linked, "column": list(columns), "invariant": facts}
        return toml_text({key: value for key, value in document.items() if value})

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema to a TOML file."""
        with replace_file(path) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8")

    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the columns' TOML text without labels; equal schemas have equal fingerprints."""
        return hashlib.sha256(self.unlabelled().with_invariants(()).to_toml().encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and (self.columns, self.linked) == (other.columns, other.linked)

    def __hash__(self) -> int:
        return hash((self.columns, self.linked))

    def __repr__(self) -> str:
        kinds = [f"{column.name}: {column.kind}" for column in self.columns]
        return f"Schema({len(kinds)} columns: {', '.join([*kinds[:6], *['...'] * (len(kinds) > 6)])})"


def _checked_links(linked: Any, coded: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Sets of linked columns, if that is what they are: two or more coded columns each, no column in two sets."""
    if not _is_list(linked) or not all(map(_is_list, linked)):
        raise SchemaError(f'linked is {linked!r}; give a list of lists of column names, e.g. [["WAGES", "INCOME"]]')
    seen: list[str] = []
    for together in linked:
        shown = f"linked: {list(together)}"
        for name in together:
            if name not in coded:
                hint = closest(name, coded) if isinstance(name, str) else ""
                raise SchemaError(f"{shown} has {name!r}, which is not a column of the schema that is estimated{hint}")
            if name in seen:
                raise SchemaError(f"linked: column {name!r} is listed twice; join the sets that have it, or remove it")
            seen.append(name)
        if len(together) < 2:
            raise SchemaError(f"{shown} has fewer than two columns; add those that belong to it, or remove it")
    return tuple(map(tuple, linked))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _columns_of(table: Mapping[str, Any]) -> list[Column]:
    _refuse_unknown_keys(table, ("version", "linked", "column", "invariant"))
    if table.get("version") != VERSION or isinstance(table["version"], bool):
        found = f"version is {table.get('version')!r}"
        raise SchemaError(f"{found}, but this version of prade reads `version = {VERSION}`; begin the file with it")
    entries = table.get("column")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError("the schema has no columns; write a [[column]] table (double brackets) for each column")
    return [_column_of_entry(number, entry) for number, entry in enumerate(entries, start=1)]


def _column_of_entry(number: int, entry: Mapping[str, Any]) -> Column:
    title = f"column {entry['name']!r}" if "name" in entry else f"column {number} of the file"
    _refuse_unknown_keys(entry, COLUMN_KEYS, f"{title}: ")
    for key, example in (("name", '"AGE"'), ("kind", '"categorical"')):
        if key not in entry:
            raise SchemaError(f"{title}: {key} is missing; write e.g. {key} = {example}")
    return Column(**entry)  # checks the value of every key


def _refuse_unknown_keys(table: Mapping[str, Any], keys: Sequence[str], where: str = "") -> None:
    """Refuse a table of a file that has other keys than these."""
    for key in table:
        if key not in keys:
            raise SchemaError(f"{where}unknown key {key!r}{closest(key, keys)}; the keys are {', '.join(keys)}")


def toml_text(document: Mapping[str, Any]) -> str:
    """A document as TOML text, each array on one line; the writer uses a line for each item, which has no breaks."""
    import tomli_w

    text = re.sub(r"\[\n +", "[", tomli_w.dumps(document))
    return re.sub(r",\n +", ", ", re.sub(r",\n *\]", "]", text))


def _entry_of(column: Column) -> dict[str, Any]:
    def written(number: float | None) -> int | float | datetime.date | None:
        if number is not None and column.dates:
            return EPOCH + datetime.timedelta(days=number)
        # 5 is easier to read than 5.0 and means the same.
        whole = number is not None and number.is_integer() and abs(number) < LARGEST_WHOLE
        return int(number) if number is not None and whole else number

    entry = {key: getattr(column, key) for key in COLUMN_KEYS}
    entry |= {"integer": column.integer and not column.dates, "min": written(column.min), "max": written(column.max)}
    entry |= {"edges": [*map(written, column.edges)], "values": list(column.values), "labels": dict(column.labels)}
    stated = {"min", "max", "other"}  # of which 0 and false are values
    return {key: value for key, value in entry.items() if value or (key in stated and value is not None)}


# ---------------------------------------------------------------------- invariants

Source = Literal["public", "private"]

LARGEST_TOTAL = 2**40  # rows of all groups: far more than can be drawn, and few enough to be shared out exactly
DEFAULT_COLUMN = "rows"


@dataclass(frozen=True)
class Rule:
    """A condition that every row meets, or an implication "CONDITION -> CONDITION".

    `source` says where the fact comes from. A fact from the private table is published exactly, without protection.

    >>> Rule("AGE < 15 -> MARRIED == 'no'")
    Rule(rule="AGE < 15 -> MARRIED == 'no'", source='public')
    """

    rule: str
    source: Source = "public"

    def __post_init__(self) -> None:
        if not isinstance(self.rule, str) or not self.rule.strip():
            raise SchemaError(f'rule is {str(self.rule)[:40]!r}; write a text such as "AGE < 15 -> MARRIED == 2"')
        _check_source(self.source)

    def __str__(self) -> str:
        return f"the rule {self.rule}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"rule": self.rule} | ({} if self.source == "public" else {"source": self.source})


@dataclass(frozen=True)
class PublishedTotals:
    """Published numbers of rows of all groups of a level; `PublishedTotals.of` takes them from a table or file.

    >>> totals = PublishedTotals.of({"STATE": [17, 39], "persons": [1200, 800]}, "STATE", "persons")
    >>> totals.groups.level(["STATE"]).labels(), totals.rows
    (['STATE 17', 'STATE 39'], (1200, 800))
    """

    level: tuple[str, ...]
    groups: Groups
    rows: tuple[int, ...]
    source: Source = "public"

    @classmethod
    def of(
        cls, table: Any, level: str | Sequence[str], column: str = DEFAULT_COLUMN, source: Source = "public"
    ) -> PublishedTotals:
        """From a table or file with one row per group: the group columns `level`, and the numbers in `column`."""
        by = names_of(level) if isinstance(level, str | Sequence) else (level,)
        if not all(isinstance(name, str) for name in (*by, column)) or len({*by, column}) < len(by) + 1:
            said = f"level is {str(level)[:40]!r} and column is {str(column)[:40]!r}"
            raise SchemaError(f"{said}; name the group columns of the totals, and the column of the numbers")
        _check_source(source)
        listed = read_table(table, [*by, column])
        groups = Groups.of(pa.table({name: group_cells(table, name, listed) for name in by}) if by else None)
        rows = [_whole_number(cell, column) for cell in listed[column].to_pylist()]
        if len(rows) != len(groups):
            raise SchemaError(f"the number of rows of the whole table is one number, got {len(rows)}")
        if sum(rows) > LARGEST_TOTAL:
            raise SchemaError(f"the totals add up to {sum(rows):,}; a table has at most {LARGEST_TOTAL:,} rows")
        return cls(by, groups, tuple(rows), source)

    def __str__(self) -> str:
        of_level = f"the numbers of rows of {'+'.join(self.level)}"
        return of_level if self.level else "the number of rows of the whole table"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; the numbers are in it, whatever file they came from."""
        column = DEFAULT_COLUMN + "_" * (DEFAULT_COLUMN in self.level)  # a name that no group column has
        table: dict[str, Any] = {"level": list(self.level), "column": column, "source": self.source}
        table |= {"totals": {**self.groups.to_dict(), column: list(self.rows)}}
        return {key: value for key, value in table.items() if value not in (DEFAULT_COLUMN, "public")}


Invariant = Rule | PublishedTotals


def invariants_of(tables: Any, folder: Path | None = None) -> tuple[Invariant, ...]:
    """The invariants in the [[invariant]] tables of a file; files of totals are looked for in `folder`, if given."""
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SchemaError(f"invariant is {str(tables)[:40]!r}; write [[invariant]] tables (double brackets)")
    invariants: list[Invariant] = []
    for number, table in enumerate(tables, start=1):
        with within(f"invariant {number}"):
            invariants.append(_invariant_of(table, folder))
    return tuple(invariants)


def checked_invariants(invariants: Any) -> tuple[Invariant, ...]:
    """The invariants that a caller gives, each once and in their order."""
    for each in (given := tuple(invariants)):
        if not isinstance(each, Rule | PublishedTotals):
            raise SchemaError(f"an invariant is a Rule or PublishedTotals, got {str(each)[:40]!r}")
    return tuple(dict.fromkeys(given))


def _invariant_of(table: Mapping[str, Any], folder: Path | None) -> Invariant:
    if "rule" in table:
        _refuse_unknown_keys(table, ("rule", "source"))
        return Rule(**table)
    _refuse_unknown_keys(table, ("rule", "level", "totals", "column", "source"))
    if "level" not in table or "totals" not in table:
        raise SchemaError("level or totals is missing; write a rule, or the level and the totals of its groups")
    totals = table["totals"]
    if isinstance(totals, str) and folder is not None:
        totals = folder / totals
    elif not isinstance(totals, Mapping) or not all(isinstance(cells, list) for cells in totals.values()):
        where = "the path of a file, or " if folder is not None else ""
        raise SchemaError(f"totals is {str(totals)[:40]!r}; write {where}a table with a list of values for each column")
    named = {key: table[key] for key in ("column", "source") if key in table}
    return PublishedTotals.of(totals, table["level"], **named)


def _whole_number(cell: Any, column: str) -> int:
    number = int(cell) if isinstance(cell, float) and cell.is_integer() else cell
    if type(number) is int and number >= 0:
        return number
    raise SchemaError(f"{column} is {str(cell)[:40]!r} in some group; a number of rows is a whole number, 0 or more")


def _check_source(source: Any) -> None:
    if source not in get_args(Source):
        raise SchemaError(f'source is {str(source)[:40]!r}; write "public" or "private"')
