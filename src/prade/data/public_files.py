"""Where the public table is: one file or several, remembered by the plan so that nobody has to name them again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prade.core.errors import DataError
from prade.core.same_file import content_hash, refuse_repeats

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PublicFiles:
    """Files of public rows, the same columns in each, and the column of their weights, if there is one.

    `sha256` are hashes of the files' contents, where they are known: they tell a file that was moved from another one.

    >>> PublicFiles.at(["il.parquet", "oh.parquet"], weight="PWGTP").weight
    'PWGTP'
    """

    files: tuple[str, ...]
    weight: str | None = None
    sha256: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        texts = isinstance(self.files, tuple) and all(isinstance(file, str) and file for file in self.files)
        if not texts or not self.files:
            raise DataError(f"files is {self.files!r}; give the paths of the public files as texts, at least one")
        if self.weight is not None and not (isinstance(self.weight, str) and self.weight):
            raise DataError(f"weight is {self.weight!r}; give the name of the column of weights, or leave it out")
        if self.sha256 and len(self.sha256) != len(self.files):
            raise DataError(
                f"sha256 has {len(self.sha256)} hashes for {len(self.files)} files; give one for each, or none"
            )

    @classmethod
    def at(cls, paths: Iterable[str | PathLike[str]], weight: str | None = None) -> PublicFiles:
        """The files at these paths, from wherever they are looked for later."""
        return cls(tuple(str(Path(path).absolute()) for path in paths), weight)

    def seen_from(self, folder: str | PathLike[str]) -> PublicFiles:
        """The same files by paths from a folder: what is in one tree with it may be moved along, or published."""
        return replace(self, files=tuple(os.path.relpath(file, Path(folder).absolute()) for file in self.files))

    def found_from(self, folder: str | PathLike[str]) -> PublicFiles:
        """The files whose paths are from a folder; whole paths stay as they are."""
        here = Path(folder).absolute()
        return replace(self, files=tuple(os.path.normpath(here / file) for file in self.files))

    def hashed(self) -> PublicFiles:
        """The same files with the hashes of what is in them now."""
        return replace(self, sha256=tuple(map(content_hash, self._there())))

    def moved_to(self, now: PublicFiles) -> PublicFiles:
        """The files where they are now; others are refused: of those nobody knows that they were not measured."""
        found = now if now.sha256 else now.hashed()
        for file, seen in zip(found.files, found.sha256, strict=True):
            if self.sha256 and seen not in self.sha256:
                raise DataError(
                    f"{file} is not one of the public files that the plan was made with, and could be the private one: "
                    "say where those are now. To start from another public table in Python, give the table itself"
                )
        return replace(found, weight=now.weight or self.weight)

    def _there(self) -> tuple[str, ...]:
        for file in self.files:
            if not Path(file).is_file():
                raise DataError(f"there is no public file {file}; if it was moved, say where it is with --public")
        return self.files

    def source(self) -> Any:
        """What is read as one table: the file's path, or the rows of all files one below the other."""
        self._there()
        refuse_repeats(self.files)  # rows that shall weigh more need a column of weights
        return self.files[0] if len(self.files) == 1 else _below_each_other(self.files)


def _below_each_other(files: tuple[str, ...]) -> pa.Table:
    import pyarrow as pa

    from prade.data.tables import plain_cells, read_table

    tables = [read_table(file) for file in files]
    names = tables[0].column_names
    for file, table in zip(files, tables, strict=True):
        if set(table.column_names) != set(names):
            odd = sorted(set(table.column_names) ^ set(names))
            raise DataError(
                f"{files[0]} and {file} have different columns ({', '.join(odd[:5])} in one only): public files need "
                "the same columns"
            )
    plain = [pa.table({name: plain_cells(table[name]) for name in names}) for table in tables]
    try:
        return pa.concat_tables(plain, promote_options="permissive")
    except pa.ArrowException:
        differing = [name for name in names if len({str(table.schema.field(name).type) for table in plain}) > 1]
        raise DataError(
            f"the public files have {', '.join(differing[:5])} in types that do not go together (numbers and texts): "
            "convert one of them"
        ) from None
