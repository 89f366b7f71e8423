"""Invariants: facts that the estimates and the synthetic rows meet exactly, as a schema file or a plan states them.

Here they are plain data. `prade.planning.invariants` reads rules as queries and compares totals with a list of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from prade.core.errors import PradeError, SchemaError, closest, names_of
from prade.data.groups import Groups

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
        return {"rule": self.rule, **_source_to_dict(self.source)}


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
        import pyarrow as pa

        from prade.data.read.tables import group_cells, read_table

        by = names_of(level) if isinstance(level, str | Sequence) else (level,)
        if not all(isinstance(name, str) for name in (*by, column)) or len({*by, column}) < len(by) + 1:
            raise SchemaError(
                f"level is {str(level)[:40]!r} and column is {str(column)[:40]!r}; name the group columns of the "
                "totals, and the column of the numbers"
            )
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
        return (
            f"the numbers of rows of {'+'.join(self.level)}" if self.level else "the number of rows of the whole table"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; the numbers are in it, whatever file they came from."""
        column = DEFAULT_COLUMN + "_" * (DEFAULT_COLUMN in self.level)  # a name that no group column has
        named = {} if column == DEFAULT_COLUMN else {"column": column}
        totals = {**self.groups.to_dict(), column: list(self.rows)}
        return {"level": list(self.level), **named, **_source_to_dict(self.source), "totals": totals}


Invariant = Rule | PublishedTotals


def invariants_of(tables: Any, folder: Path | None = None) -> tuple[Invariant, ...]:
    """The invariants in the [[invariant]] tables of a file.

    `totals` may name another file, relative to `folder`; without a folder, the numbers must be there themselves.
    """
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SchemaError(f"invariant is {str(tables)[:40]!r}; write [[invariant]] tables (double brackets)")
    made: list[Invariant] = []
    for number, table in enumerate(tables, start=1):
        try:
            made.append(_invariant_of(table, folder))
        except PradeError as error:
            raise error.within(f"invariant {number}") from None
    return tuple(made)


def checked_invariants(invariants: Any) -> tuple[Invariant, ...]:
    """The invariants that a caller gives, each once and in their order."""
    for each in (given := tuple(invariants)):
        if not isinstance(each, Rule | PublishedTotals):
            raise SchemaError(f"an invariant is a Rule or PublishedTotals, got {str(each)[:40]!r}")
    return tuple(dict.fromkeys(given))


def _invariant_of(table: Mapping[str, Any], folder: Path | None) -> Invariant:
    keys = ("rule", "source") if "rule" in table else ("level", "totals", "column", "source")
    for key in table:
        if key not in keys:
            hint = closest(key, ("rule", *keys)) or f"; the keys are {', '.join(keys)}"
            raise SchemaError(f"unknown key {key!r}{hint}")
    if "rule" in table:
        return Rule(**table)
    for key in ("level", "totals"):
        if key not in table:
            raise SchemaError(f"{key} is missing; write a rule, or the level and the totals of its groups")
    named = {key: table[key] for key in ("column", "source") if key in table}
    return PublishedTotals.of(_totals(table["totals"], folder), table["level"], **named)


def _totals(value: Any, folder: Path | None) -> Any:
    """The table of totals, or the path of its file."""
    if isinstance(value, Mapping):
        if not all(isinstance(cells, list) for cells in value.values()):
            raise SchemaError("totals must have a list of values for each column, one value per group")
        return dict(value)
    if isinstance(value, str) and folder is not None:
        return folder / value
    where = "the path of a file, or a table of the numbers" if folder is not None else "a table of the numbers"
    raise SchemaError(f"totals is {str(value)[:40]!r}; write {where}")


def _whole_number(cell: Any, column: str) -> int:
    number = int(cell) if isinstance(cell, float) and cell.is_integer() else cell
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise SchemaError(
            f"{column} is {str(cell)[:40]!r} in some group; a number of rows is a whole number, 0 or more"
        )
    return number


def _check_source(source: Any) -> None:
    if source not in get_args(Source):
        raise SchemaError(f'source is {str(source)[:40]!r}; write "public" or "private"')


def _source_to_dict(source: Source) -> dict[str, Any]:
    return {} if source == "public" else {"source": source}
