"""Refuse a private source that is also the public table, or one of its files.

Each private file is compared with each public one as `prade.core.files` describes. Tables in memory are
compared by the memory that holds their cells, never by the cells themselves: two tables with equal cells in different
memory pass, because a refusal must not depend on a private cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prade.core.errors import DataError
from prade.core.files import find_same_content, find_same_file
from prade.data.public.table import PublicFiles
from prade.data.read.frames import shared_memory


def paths_of(source: Any) -> list[str] | None:
    """A path, or a list of paths, as texts; None for anything else."""
    if isinstance(source, (str, PathLike)):
        return None if "://" in str(source) else [str(source)]
    if isinstance(source, Sequence) and source and all(isinstance(each, (str, PathLike)) for each in source):
        return [str(each) for each in source]
    return None


def found_files(paths: Sequence[str]) -> list[str]:
    """The files that paths and globs match."""
    files: list[str] = []
    for text in paths:
        path = Path(text)
        is_pattern = any(mark in text for mark in "*?[") and not path.exists()
        root = Path(path.anchor) if path.is_absolute() else Path()
        matches = sorted(map(str, root.glob(str(path.relative_to(path.anchor))))) if is_pattern else [text]
        if not matches or not all(Path(each).is_file() for each in matches):
            raise DataError(f"there is no file {text}; check the path")
        files += matches
    return files


def refuse_public(private: Any, *public: Any) -> None:
    """Refuse a private source that is among the public tables or files, by identity or by content."""
    refuse_same_files(private, *public)
    refuse_same_contents(private, *public)


def refuse_same_files(private: Any, *public: Any) -> None:
    """Refuse a private source (an argument or result of `open_source`) that is itself one of the public ones.

    Files are compared by path, link and name, tables in memory by the memory of their cells: no cell is read, so this
    may come before anything is reserved. None, and files that do not exist, are skipped.
    """
    origin = getattr(private, "origin", private)
    if (pair := find_same_file(_sides(origin, public))) is not None:
        raise _refusal(f"{pair[0]} is the public file {pair[1]} (by path, link or compression)")
    if paths_of(origin) is not None or isinstance(origin, str):  # other texts are addresses of databases
        return
    for each in public:
        in_memory = each is not None and not isinstance(each, PublicFiles) and paths_of(each) is None
        if in_memory and (shared := shared_memory(origin, each)):
            raise _refusal(shared)


def refuse_same_contents(private: Any, *public: Any) -> None:
    """Refuse private files with the same contents as one of the public files.

    This reads the private rows, so its outcome is about private rows: in a run of a plan from outside, it belongs
    after the reservation. The public files themselves are compared, never hashes that a plan brings, because these
    could be guesses.
    """
    origin = getattr(private, "origin", private)
    if (pair := find_same_content(_sides(origin, public))) is not None:
        raise _refusal(f"{pair[0]} has the same content as the public file {pair[1]}")


def _sides(private: Any, public: Sequence[Any]) -> list[list[str]]:
    """The private files, and the public ones that exist; none of either if one of them is not in files."""
    paths = paths_of(private)
    named = [each.files if isinstance(each, PublicFiles) else paths_of(each) or () for each in public]
    files = [file for each in named for file in each if Path(file).is_file()]
    return [found_files(paths), files] if paths is not None and files else [[], []]


def _refusal(what: str) -> DataError:
    return DataError(
        f"the private table is also given as the public table: {what}. Rows of the public table reappear among the "
        "synthetic rows: give a table that is already public, such as last year's release or another region's"
    )
