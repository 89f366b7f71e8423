"""What a run refuses before it reads a private row, or before it plans: a private table that is public too.

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
from prade.core.files import find_same_content, find_same_file, found_files, paths_of
from prade.data.public.table import PublicFiles, PublicTable
from prade.data.read.frames import shared_memory
from prade.measuring.source import open_source, planned_tally
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.protection import refuse_weak
from prade.release.terms import saved_plan


def refuse_public(private: Any, *public: Any) -> None:
    """Refuse a private table that is among the public tables or files, by identity or by content."""
    refuse_same_files(private, *public)
    refuse_same_contents(private, *public)


def refuse_same_files(private: Any, *public: Any) -> None:
    """Refuse a private table that is itself one of the public ones; None, and files that do not exist, are skipped.

    Files are compared by path, link and name, tables in memory by the memory of their cells: no cell is read, so this
    may come before anything is reserved.
    """
    if (pair := find_same_file(_sides(private, public))) is not None:
        raise _refusal(f"{pair[0]} is the public file {pair[1]} (by path, link or compression)")
    if isinstance(private, str) or paths_of(private) is not None:  # texts that are no paths are addresses of databases
        return
    for each in public:
        in_memory = each is not None and not isinstance(each, PublicFiles) and paths_of(each) is None
        if in_memory and (shared := shared_memory(private, each)):
            raise _refusal(shared)


def refuse_same_contents(private: Any, *public: Any) -> None:
    """Refuse private files with the same contents as one of the public files.

    This reads the private rows, so in a run of a plan from outside it belongs after the reservation. The public files
    themselves are compared, never hashes that a plan brings, because these could be guesses.
    """
    if (pair := find_same_content(_sides(private, public))) is not None:
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


# ---------------------------------------------------------------------- before a run plans: later would be too late


def refuse_early(
    budget: Budget, private: Any, table: PublicTable, folder: str | PathLike[str], weak_protection: bool
) -> None:
    """Refuse what `measure` would refuse before anything reads the public table, which may be the private one.

    The user names both tables, and a plan made from private rows would tell of them, so contents are compared before
    anything is reserved. A run that continues with a kept plan does not rehearse: `measure` is in time.
    """
    if saved_plan(folder) is None:
        refuse_weak(budget, weak_protection)
        refuse_public(private, table.source)


def refuse_unfit(task: Task, private: Any, folder: str | PathLike[str]) -> None:
    """Refuse a private table that lacks a column, or declares a type that cannot fit, before a long rehearsal.

    No row is read. A run that continues with a kept plan does not rehearse.
    """
    if saved_plan(folder) is None:
        with open_source(private) as source:
            planned_tally(source, Plan.simplest(task))
