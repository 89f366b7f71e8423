"""The schema: a table's columns and their domains, declared before any private row is read."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from prade.core.errors import SchemaError, closest, names_of
from prade.data.column import Column
from prade.data.invariants import Invariant, checked_invariants
from prade.data.links import checked_links, proposed_links

__all__ = ["Column", "Schema"]


class Schema:
    """An ordered set of columns; the domain is the product of their codes.

    `linked` are sets of columns whose values belong together, such as wages and income: a synthetic row takes its
    values in such a set from one public row. `invariants` are facts about the rows that a task with this schema takes
    over. Schemas that differ only in invariants, titles and labels are equal, because they code rows alike.

    >>> sex, age = Column("SEX", "categorical", values=(1, 2)), Column("AGE", "numeric", edges=(18, 65))
    >>> schema = Schema([sex, age])
    >>> schema.shape(["SEX", "AGE"]), schema.domain_size(["SEX", "AGE"])
    ((2, 3), 6)
    """

    columns: tuple[Column, ...]
    linked: tuple[tuple[str, ...], ...]
    invariants: tuple[Invariant, ...]

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        linked: Sequence[Sequence[str]] = (),
        invariants: Sequence[Invariant] = (),
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
        self.linked = checked_links(linked, self.coded, self.names)

    # ------------------------------------------------------------------ lookup

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(self._by_name)

    @property
    def coded(self) -> tuple[str, ...]:
        """Names of the columns that are encoded and estimated: all but the group columns."""
        return tuple(column.name for column in self.columns if column.kind != "group")

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the group columns, outermost first."""
        return tuple(column.name for column in self.columns if column.kind == "group")

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

    # ------------------------------------------------------------------ other schemas

    def select(self, names: Sequence[str]) -> Schema:
        """A schema with these columns only, in this order."""
        chosen = [self[name] for name in names_of(names)]
        linked = [[name for name in together if name in names_of(names)] for together in self.linked]
        return Schema(chosen, linked=[together for together in linked if len(together) > 1])

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
        """This schema with the values of its group columns taken from a public list of groups.

        `table` is a table or file with one row per group. Its columns may be nested, as STATE and PUMA are; then the
        values of the outer column repeat. A group column that is not in the list keeps its values.
        """
        from prade.data.read.tables import distinct_values, group_cells, read_table

        groups = read_table(table)
        filled = []
        for column in self.columns:
            if column.kind == "group" and column.name in groups.column_names:
                values = distinct_values(group_cells(table, column.name))
                if None in values or not values:
                    raise SchemaError(
                        f"column {column.name!r}: the list of groups has an empty cell or no rows; "
                        "give every group a value"
                    )
                column = dataclasses.replace(column.unlabelled(), values=tuple(values)).labelled_like(column)
            elif column.kind == "group" and not column.values:
                raise SchemaError(
                    f"column {column.name!r}: the list of groups has no such column"
                    f"{closest(column.name, groups.column_names)}"
                )
            filled.append(column)
        return Schema(filled, linked=self.linked, invariants=self.invariants)

    # ------------------------------------------------------------------ files

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Schema:
        """Read a schema file: prade's TOML, the NIST contest's parameters.json, or mbi's {column: size} JSON."""
        from prade.data import schema_file

        content = schema_file.content_of_file(path)
        try:
            return cls(**content)
        except SchemaError as error:
            raise error.within(str(path)) from None

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML text."""
        from prade.core.documents import toml_table
        from prade.data import schema_file

        return cls(**schema_file.content_of_table(toml_table(text, SchemaError)))

    @classmethod
    def from_contest(cls, path: str | PathLike[str]) -> Schema:
        """Read the parameters.json of the NIST contest (sprint 2); numeric columns get the bins of its score."""
        from prade.data import schema_file

        return cls(schema_file.columns_of_contest(schema_file.json_object(path)))

    @classmethod
    def from_mbi(cls, domain: str | PathLike[str] | Mapping[str, int]) -> Schema:
        """Read mbi's domain, {"column": size}: the values are 0, 1, ..., size - 1.

        >>> Schema.from_mbi({"sex": 2, "race": 5}).shape(["sex", "race"])
        (2, 5)
        """
        from prade.data import schema_file

        sizes = domain if isinstance(domain, Mapping) else schema_file.json_object(domain)
        return cls(schema_file.columns_of_mbi(sizes))

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

        The schema has the table's columns in their order, except `weight` and those in `skip`. A column with at most
        `max_values` distinct texts, Booleans or whole numbers becomes categorical. A column with more distinct numbers
        becomes numeric with about `bins` bins, whose edges are quantiles rounded to usual numbers. A text such as "N"
        in a column of numbers stands for missing, and a column without values is always missing. Columns in `groups`
        become group columns with the values in the table. A text column with more than `max_values` values cannot be
        binned: list it in `groups` or `skip`, or increase `max_values`. Numeric columns are linked where one is hardly
        ever above the other.
        """
        from prade.data.draft import infer_columns

        columns = infer_columns(table, names_of(groups), weight, names_of(skip), max_values, bins)
        return cls(columns, linked=proposed_links(columns, table))

    def to_toml(self) -> str:
        """The schema as TOML text; `from_toml` turns it back into an equal schema."""
        from prade.data import schema_file

        return schema_file.toml_of_content(self.columns, self.linked, self.invariants)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema to a TOML file."""
        from prade.core.files import replace_file

        with replace_file(path) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8")

    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the columns' TOML text without labels; equal schemas have equal fingerprints."""
        return hashlib.sha256(self.unlabelled().with_invariants(()).to_toml().encode()).hexdigest()

    # ------------------------------------------------------------------ comparison and display

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return (self.columns, self.linked) == (other.columns, other.linked)

    def __hash__(self) -> int:
        return hash((self.columns, self.linked))

    def __repr__(self) -> str:
        kinds = (f"{column.name}: {column.kind}" for column in self.columns[:6])
        more = ", ..." if len(self.columns) > 6 else ""
        return f"Schema({len(self.columns)} columns: {', '.join(kinds)}{more})"
