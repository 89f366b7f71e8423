"""`Public`, the encoded public table: every row, unlike a `Prior`'s, with its weight, its public group, its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

from prade.core.arrays import Floats, Ints, mass_per_cell
from prade.core.documents import Malformed
from prade.core.errors import DataError
from prade.core.execution import cores, finishing
from prade.core.files import replace_file
from prade.data.declare.column import Column
from prade.data.declare.groups import Grouping, Groups
from prade.data.declare.schema import Schema
from prade.data.public.joint import Prior, encode
from prade.data.read.cells import (
    AT_ONCE,
    clean_text,
    is_missing,
    is_text,
    one_piece,
    plain_array,
    plain_cells,
    require_plain_type,
)
from prade.data.read.coding import numbers_of
from prade.data.read.files import (
    HEADER,
    WEIGHT_FIELD,
    damage_reported,
    floats,
    read_header,
    whole_numbers,
    write_with_header,
)
from prade.data.read.tables import read_table, table_columns

FORMAT = 3
WITHOUT_ADDED = 2  # the format of a file without added rows
GROUP_FIELD = "prade:group"
NUMBER_FIELD = "prade:number:"  # followed by the column's name
AGAIN = "run `prade estimate` again, which spends nothing"


class _Header(msgspec.Struct):
    format: int
    by: tuple[str, ...]
    groups: list[list[str]]
    schema: str
    added: int = 0


@dataclass(frozen=True, eq=False)
class Public:
    """Public rows with their weights (`prior`), the public groups (`groups`), and the number of each row's `group`.

    `numbers` has every row's number in each numeric column (days since 1970 for dates), moved into the row's bin if it
    is outside, and NaN if it is missing. The last `added` rows are no public person's.

    >>> from prade import Column, Schema
    >>> schema = Schema([Column("PLACE", "group"), Column("AGE", "numeric", edges=[18, 65])])
    >>> public = Public.of(schema, {"PLACE": ["a", "b", "a"], "AGE": [3, 40, 70]}, by=["PLACE"])
    >>> public.groups.values, public.group
    ((('a',), ('b',)), array([0, 1, 0]))
    """

    prior: Prior
    groups: Grouping
    group: Ints
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    added: int = 0

    @classmethod
    def of(cls, schema: Schema, table: Any, by: Sequence[str] = (), *, weight: str | None = None) -> Public:
        """Encode a public table; group columns `by` that it lacks are ignored, and rows of weight 0 are left out."""
        rows = table_columns(table)
        present = [name for name in by if name in rows.column_names]
        for index, name in enumerate(rows.column_names):
            if isinstance(rows, pa.Table) and name in (*by, weight) and pa.types.is_union(rows[name].type):
                rows = rows.set_column(index, name, read_table(table, [name])[name])  # Python objects
        threads = min(cores(), AT_ONCE)
        coded = encode(schema, rows, weight=weight, threads=threads)
        numeric = [name for name in schema.coded if schema[name].numeric]
        binned = finishing(lambda name: binned_numbers(schema[name], rows[name], coded.codes[name]), numeric, threads)
        numbers = dict(zip(numeric, binned, strict=True))
        keys = pa.table({name: rows[name] for name in present})
        if weight is not None:
            with_weight = np.flatnonzero(coded.weights)
            coded, keys = coded.take(with_weight), keys.take(with_weight)
            numbers = {name: each[with_weight] for name, each in numbers.items()}
        prior = Prior(schema, coded.codes, coded.weights)
        if not present:
            return cls(prior, Groups.of().level(()), np.zeros(len(prior), np.int64), numbers)
        for name in present:
            require_plain_type(name, keys[name].type)
        plain = pa.table({name: plain_cells(keys[name]) for name in present})
        listed = plain.group_by(present).aggregate([]).drop_null()
        groups = Groups.of(listed.sort_by([(name, "ascending") for name in present]))
        level = groups.level(present)
        number = groups.keyed(present, level.number).numbers(keys)
        if absent := int((number < 0).sum()):
            raise DataError(f"{absent:,} public rows have no value in {', '.join(present)}; remove these rows")
        return cls(prior, level, number, numbers)

    @cached_property
    def group_weights(self) -> Floats:
        """The total weight of each public group."""
        return mass_per_cell(self.group, self.prior.weights, len(self.groups))

    @cached_property
    def observed(self) -> Public:
        """The rows of public people alone, without added ones."""
        return self.take(np.arange(len(self) - self.added)) if self.added else self

    @property
    def observed_weights(self) -> Floats:
        """The weights of all rows in the public table: 0 for added ones."""
        return np.concatenate([self.observed.prior.weights, np.zeros(self.added)])

    def __len__(self) -> int:
        return len(self.prior)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the coded rows, their weights and groups to a parquet file: all that estimates need."""
        write_with_header(*self.as_table(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Public:
        """Read a file that `save` wrote; the groups' values come back as text."""
        return cls.from_table(read_table(path), path)

    def as_table(self) -> tuple[pa.Table, dict[str, Any]]:
        """The columns and the header of the file that `save` writes."""
        columns = {**self.prior.codes, WEIGHT_FIELD: self.prior.weights, GROUP_FIELD: self.group}
        columns |= {f"{NUMBER_FIELD}{name}": numbers for name, numbers in self.numbers.items()}
        if len(columns) < len(self.prior.codes) + 2 + len(self.numbers):
            raise DataError(f"a column has a name that begins with {'prade:'!r}, which the file needs; rename it")
        values = [[str(value) for value in row] for row in self.groups.values]
        header = {"format": FORMAT if self.added else WITHOUT_ADDED, "by": self.groups.by, "groups": values}
        header |= {"schema": self.prior.schema.to_toml()} | ({"added": self.added} if self.added else {})
        return pa.table(columns), header

    @classmethod
    def from_table(cls, table: pa.Table, path: str | PathLike[str]) -> Public:
        """The public rows in a table with its header, as `as_table` made them; `path` is named in errors."""
        with damage_reported(path, "saved public rows", AGAIN):
            header = read_header(table, _Header, path, FORMAT)
            schema = Schema.from_toml(header.schema)
            numeric = [name for name in schema.coded if f"{NUMBER_FIELD}{name}" in table.column_names]
            names = [name for name in table.column_names if name in schema]
            weights, group = floats(table, WEIGHT_FIELD), whole_numbers(table, GROUP_FIELD)
            prior = Prior(schema, {name: whole_numbers(table, name) for name in names}, weights)
            numbers = {name: floats(table, f"{NUMBER_FIELD}{name}") for name in numeric}
            if (
                {*names} != {*schema.coded}
                or not np.allclose(prior.weights, weights, rtol=1e-9, atol=0)
                or any(len(row) != len(header.by) for row in header.groups)
                or not 0 <= group.min() <= group.max() < len(header.groups)
                or any(not np.array_equal(np.isnan(numbers[n]), prior.codes[n] >= schema[n].present) for n in numeric)
                or not 0 <= header.added < len(group)
            ):
                raise Malformed("its columns, weights, groups or numbers do not belong together")
            prior.weights = weights  # exactly as saved: dividing by their sum again may change the last bit
            groups = Grouping(header.by, tuple(map(tuple, header.groups)), np.arange(len(header.groups)))
            return cls(prior, groups, group.astype(np.int64, copy=False), numbers, header.added)

    def take(self, rows: NDArray[Any]) -> Public:
        """Some of the rows, in rising order where some are added ones; the groups keep their numbers."""
        codes = {name: code[rows] for name, code in self.prior.codes.items()}
        prior = Prior(self.prior.schema, codes, self.prior.weights[rows])
        numbers = {name: each[rows] for name, each in self.numbers.items()}
        added = int(np.count_nonzero(rows >= len(self) - self.added)) if self.added else 0
        return Public(prior, self.groups, self.group[rows], numbers, added)


def binned_numbers(column: Column, cells: Any, codes: NDArray[Any]) -> Floats:
    """The number in each cell, moved into its code's bin, or the bin's middle if it is none; NaN for missing."""
    low, high = _bounds_of_bins(column)
    bins, whole = np.minimum(codes, column.present - 1), one_piece(cells)
    if pa.types.is_union(whole.type):
        whole = pa.array([None if is_missing(cell) else str(cell) for cell in whole.to_pylist()], pa.string())
    if pa.types.is_dictionary(whole.type):
        values = plain_array(whole.dictionary)
        distinct = numbers_of(column, clean_text(values) if is_text(values.type) else values)
        numbers = np.append(distinct, np.nan)[whole.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)]
    else:
        numbers = numbers_of(column, plain_array(whole))
    numbers = np.where(np.isfinite(numbers), np.clip(numbers, low[bins], high[bins]), middles_of_bins(column)[bins])
    return np.where(codes >= column.present, np.nan, numbers)


def middles_of_bins(column: Column) -> Floats:
    """The middle of each bin of a numeric column, or its bound if it has only one."""
    low, high = _bounds_of_bins(column)
    return np.where(np.isinf(low), high, np.where(np.isinf(high), low, (low + high) / 2))


def _bounds_of_bins(column: Column) -> tuple[Floats, Floats]:
    bounds = [column.bounds(code) for code in range(column.present)]
    low = np.array([-np.inf if low is None else low for low, _ in bounds])
    high = np.array([np.inf if high is None else high for _, high in bounds])
    return low, high


def kept(public: Public, rows: Ints) -> Public:
    """Some of the rows, and the groups that these are in, numbered anew."""
    taken = public.take(rows)
    known, group = np.unique(taken.group, return_inverse=True)
    groups = Grouping(public.groups.by, tuple(public.groups.values[each] for each in known), np.arange(len(known)))
    return replace(taken, groups=groups, group=group.astype(np.int64))


def group_columns(groups: Groups, schema: Schema) -> tuple[str, ...]:
    """The columns that define public groups: those of the list of groups, and the schema's own group columns."""
    return tuple(dict.fromkeys([*groups.names, *schema.groups]))


# ---------------------------------------------------------------------- public rows that processes share


def save_mapped(public: Public, path: Path) -> None:
    """Write the rows, for the time of one run, to an Arrow file that many processes map into their memory."""
    table, header = public.as_table()
    table = table.replace_schema_metadata({HEADER: json.dumps(header)}).combine_chunks()
    with replace_file(path) as temporary:
        feather.write_feather(table, temporary, compression="uncompressed", chunksize=max(1, table.num_rows))


def open_mapped(path: Path) -> Public:
    """The rows of a file that `save_mapped` wrote; their arrays are parts of the file."""
    open(path, "rb").close()  # a missing file is an error that names it
    with damage_reported(path, "public rows for workers", "run the same command again"):
        try:
            table = feather.read_table(path, memory_map=True)
        except pa.ArrowInvalid as error:
            raise Malformed(str(error)) from None
        return Public.from_table(table, path)
