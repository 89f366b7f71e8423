"""A tally: private rows pass through the one codec, and only their codes are counted.

For every row of a listed group and every part k of a level

    counts_k[g, c] += 1        g: the row's group at that level    c: its cell in part k

Rows in no listed group are left out; listed groups without rows get zeros. The results are exact counts: they are
private until noise is added.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.execution import cores, in_order
from prade.data.declare.column import Column
from prade.data.declare.groups import KeyedGroups
from prade.data.declare.schema import Schema
from prade.data.read.coding import code_cells, exact_ids
from prade.measuring.person_bound import MEMORY, PLACE, PersonRows, Records, hashed, record_type
from prade.measuring.streams import Batch
from prade.privacy.protection import Unit
from prade.queries.parts import Part

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Tally:
    """Codes rows and counts them, here or wherever this object is sent: it holds declarations, and no rows.

    `listed` has the groups of each level and `parts` its parts. `secret` is the key of the persons' hashes.
    """

    schema: Schema
    listed: tuple[KeyedGroups, ...]
    parts: tuple[tuple[Part, ...], ...]
    unit: Unit | None = None
    secret: bytes = field(default_factory=lambda: bytes.fromhex(secrets.token_hex(32)), repr=False)

    @cached_property
    def _coded(self) -> dict[str, Column]:
        names = dict.fromkeys(name for parts in self.parts for part in parts for name in part.columns)
        return {name: self.schema[name] for name in names}

    @property
    def columns(self) -> list[Column]:
        """The columns whose cells are coded: those of the groups, and those of the parts."""
        return list(dict.fromkeys([*self.listed[0].columns, *self._coded.values()]))

    @property
    def person(self) -> str | None:
        """The column with the person's id, if a bound on a person's rows is enforced."""
        return None if self.unit is None else self.unit.person_id

    @property
    def names(self) -> list[str]:
        people = [] if self.person is None else [self.person]
        return list(dict.fromkeys([*(column.name for column in self.columns), *people]))

    # ---------------------------------------------------------------- rows into codes

    def coded(self, cells: Batch) -> Rows:
        """The rows of listed groups, in codes; with a person id, those that have one."""
        rows = len(next(iter(cells.values())))
        joint, number = self.listed[0].joint_codes(cells, rows, refuse=False)
        kept, people = number >= 0, None
        if self.person is not None:
            people, known = hashed(exact_ids(cells[self.person]), self.secret)
            kept &= known
        whole = bool(kept.all())
        place = np.searchsorted(self.listed[0].joint, joint if whole else joint[kept])
        codes = {}
        for name, column in self._coded.items():
            code, _ = code_cells(column, cells[name], refuse=False)
            codes[name] = (code if whole else code[kept]).astype(code_type(column.size))
        return Rows(place, codes, people if people is None or whole else people[kept])

    @cached_property
    def record(self) -> np.dtype[Any]:
        """A row of a person in codes, in the form that is kept until all rows of that person are there."""
        return record_type({name: code_type(column.size) for name, column in self._coded.items()})

    # ---------------------------------------------------------------- codes into counts

    def zeros(self) -> Counts:
        """Counts of no rows: all tables one after the other, each with a last cell for rows in none of its cells."""
        return np.zeros(sum(_sizes(self.listed, self.parts)), np.int64)

    def tables(self, counts: Counts) -> list[list[Counts]]:
        """The table of each part of each level, as views of the counts."""
        tables = iter(np.split(counts, np.cumsum(_sizes(self.listed, self.parts))[:-1]))
        levels = zip(self.listed, self.parts, strict=True)
        return [[next(tables).reshape(listed.size, part.n_cells + 1) for part in parts] for listed, parts in levels]

    def add(self, rows: Rows, counts: Counts) -> None:
        for listed, parts, tables in zip(self.listed, self.parts, self.tables(counts), strict=True):
            group = listed.number[rows.place]
            for part, table in zip(parts, tables, strict=True):
                key = group * (part.n_cells + 1) + part.cells(self.schema, rows.codes)
                flat = table.reshape(-1)
                if len(flat) <= len(key):
                    flat += np.bincount(key, minlength=len(flat))
                else:
                    np.add.at(flat, key, 1)

    def run(self, batches: Iterable[Batch], memory: int = MEMORY, threads: int | None = None) -> Counts:
        with ThreadPoolExecutor(threads or cores(), thread_name_prefix="prade-codec") as pool:
            coded = in_order(lambda batch: pool.submit(self.coded, batch), batches, 2 * (threads or cores()))
            if self.person is not None:
                return self.bounded((rows.records(self.record) for rows in coded), memory)
            counts = self.zeros()
            for rows in coded:
                self.add(rows, counts)
            return counts

    def bounded(self, records: Iterable[Records], memory: int = MEMORY) -> Counts:
        """The counts of persons' rows, of whom each has at most as many as the unit says."""
        assert self.unit is not None
        counts = self.zeros()
        with ExitStack() as folders:
            people = PersonRows(self.record, self.unit, folders, memory)
            for each in records:
                people.add(each)
            for kept in people.within_bounds():
                codes = {name: kept[f"code {name}"] for name in self._coded}
                self.add(Rows(kept[PLACE], codes, None), counts)
        return counts


def _sizes(listed: tuple[KeyedGroups, ...], parts: tuple[tuple[Part, ...], ...]) -> list[int]:
    levels = zip(listed, parts, strict=True)
    return [groups.size * (part.n_cells + 1) for groups, of_level in levels for part in of_level]


@dataclass(frozen=True)
class Rows:
    """Rows in codes: the place of each in the list of groups, its codes, and its person in two halves."""

    place: NDArray[np.int64]
    codes: dict[str, NDArray[Any]]
    people: NDArray[np.uint64] | None

    def records(self, kind: np.dtype[Any]) -> Records:
        """The rows as records of one array, which can be sorted, written and sent."""
        assert self.people is not None
        records = np.empty(len(self.place), kind)
        columns: Iterator[Any] = iter([*self.people.T, self.place, *self.codes.values()])
        for name, values in zip(kind.names or (), columns, strict=True):
            records[name] = values
        return records


def code_type(size: int) -> np.dtype[Any]:
    """The narrowest signed type for codes below `size`."""
    return np.dtype(np.int16 if size <= 2**15 else np.int32)
