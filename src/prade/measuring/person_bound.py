"""The bound on the rows of each person that the noise is calibrated for, enforced on the stream of codes.

A row carries its person as a keyed hash of the exact id,

    person = BLAKE2b(id; secret), 128 bits        secret: 256 random bits of the operating system, new each time

so that what is kept or spilled holds no id. Of a person with too many rows, those with the smallest tickets are kept:

    ticket = mix(person, contents of the row, which of the rows with these contents it is)

Which rows are kept therefore depends only on that person's rows and the secret. Adding or removing a person changes
nobody else's rows, and the counted tables differ by at most max_rows rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prade.core.arrays import mixed
from prade.core.files import spill_folder
from prade.privacy.protection import Unit

Records = NDArray[Any]  # a structured array, of `record_type`
HASH, OTHER_HALF, PLACE = "person", "person_too", "place"
PILES = 256  # files that rows are spilled to, by person
BYTES_PER_PILE = 2**25  # of rows in memory, about, which are sorted at a time
MEMORY = 2**29  # bytes of rows that are kept before they go to disk, unless the caller sets a limit


def hashed(ids: Any, secret: bytes) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The keyed hash of each id, in two halves [rows, 2], and whether the row has an id."""
    distinct = ids.dictionary_encode()
    known = np.asarray(ids.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    texts: list[bytes] = distinct.dictionary.to_pylist()
    digests = b"".join(hashlib.blake2b(each, key=secret, digest_size=16).digest() for each in texts)
    halves = np.frombuffer(digests + bytes(16), np.uint64).reshape(-1, 2)  # the last one is for rows without an id
    return halves[distinct.indices.fill_null(len(halves) - 1).to_numpy()], known


# ---------------------------------------------------------------------- the rows that are kept


def record_type(codes: Mapping[str, np.dtype[Any]]) -> np.dtype[Any]:
    """The type of a row in codes: the two halves of its person, its place in the list of groups, its codes."""
    fields: list[tuple[str, Any]] = [(HASH, np.uint64), (OTHER_HALF, np.uint64), (PLACE, np.int64)]
    return np.dtype([*fields, *((f"code {name}", kind) for name, kind in codes.items())])


class PersonRows:
    """Rows in codes, in memory or spilled to a private folder, until all are there and each person's can be chosen.

    They are bounded pile by pile: all rows of one person are in one pile.
    """

    def __init__(self, record: np.dtype[Any], unit: Unit, folders: ExitStack, memory: int = MEMORY) -> None:
        self._record, self._unit, self._folders, self._memory = record, unit, folders, memory
        self._waiting: list[Records] = []
        self._bytes = 0
        self._folder: Path | None = None

    def add(self, rows: Records) -> None:
        """Take some rows; beyond the limit of memory all go to disk."""
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self._memory:
            self._folder = self._folder or self._folders.enter_context(spill_folder())
            self._spill(self._folder)

    def within_bounds(self) -> Iterator[Records]:
        if self._folder is not None:
            self._spill(self._folder)
            for number in range(PILES):
                yield bounded(np.fromfile(self._folder / str(number), self._record), self._unit)
            return
        piles = 1 + self._bytes // BYTES_PER_PILE
        for number in range(piles):
            chosen = (rows[rows[HASH] % np.uint64(piles) == number] for rows in self._waiting)
            yield bounded(np.concatenate([np.empty(0, self._record), *chosen]), self._unit)

    def _spill(self, folder: Path) -> None:
        for rows in self._waiting:
            pile = (rows[HASH] % np.uint64(PILES)).astype(np.int64)
            ends = np.cumsum(np.bincount(pile, minlength=PILES))
            for number, part in enumerate(np.split(rows[np.argsort(pile, kind="stable")], ends[:-1])):
                with (folder / str(number)).open("ab") as file:
                    part.tofile(file)
        self._waiting, self._bytes = [], 0


def bounded(rows: Records, unit: Unit) -> Records:
    """At most ``unit.max_rows`` rows of each person, and at most ``unit.per_group`` of them in each place."""
    rows = rows[np.lexsort((rows[OTHER_HALF], rows[HASH]))]
    person = runs_of(rows[HASH], rows[OTHER_HALF])
    few = unit.max_rows if unit.per_group is None else unit.per_group
    crowded = np.bincount(person)[person] > few
    if not crowded.any():
        return rows
    return np.concatenate([rows[~crowded], _chosen(rows[crowded], unit)])


def _chosen(rows: Records, unit: Unit) -> Records:
    ticket = _tickets(rows)
    person = runs_of(rows[HASH], rows[OTHER_HALF])
    if unit.per_group is not None:
        kept = _first(unit.per_group, ticket, rows[PLACE], person)
        rows, ticket, person = rows[kept], ticket[kept], person[kept]
    return rows[_first(unit.max_rows, ticket, person)]


def _first(most: int, ticket: NDArray[np.uint64], *keys: NDArray[Any]) -> NDArray[np.int64]:
    """The rows with the smallest tickets among those that agree in all keys."""
    order = np.lexsort((ticket, *keys))
    return np.asarray(order[_ranks(runs_of(*(key[order] for key in keys))) < most])


def _tickets(rows: Records) -> NDArray[np.uint64]:
    """A random number for each row that depends on its person, its contents and its copies, and on no other row."""
    contents = rows[HASH] ^ _mixed(rows[OTHER_HALF])
    for name in (rows.dtype.names or ())[2:]:
        contents = _mixed(contents ^ rows[name].astype(np.int64).view(np.uint64))
    order = np.lexsort((contents, rows[OTHER_HALF], rows[HASH]))
    copy = np.empty(len(rows), np.uint64)
    copy[order] = _ranks(runs_of(*(each[order] for each in (contents, rows[OTHER_HALF], rows[HASH]))))
    return _mixed(contents ^ _mixed(copy))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return mixed(bits + np.uint64(0x9E3779B97F4A7C15))


def runs_of(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """The number of the run of equal keys that each row is in."""
    changes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.cumsum(changes)


def _ranks(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each row within its run, from 0."""
    starts = np.flatnonzero(np.diff(runs, prepend=-1))
    return np.arange(len(runs)) - np.repeat(starts, np.diff(np.append(starts, len(runs))))
