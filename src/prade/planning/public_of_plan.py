"""The public table of a plan: the one in the files that it names, or one that the caller gives."""

from __future__ import annotations

from typing import Any

from prade.core.errors import DataError
from prade.data.public_table import PublicTable
from prade.planning.plan import Plan


def public_of(plan: Plan, public: Any = None, weight: str | None = None) -> PublicTable:
    """Return the public table that the caller gives, or the one in the files that the plan of a release names."""
    files = plan.public
    if public is None:
        if files is None:
            raise DataError("the release does not name its public files", remedy="public")
        return PublicTable(files, weight)
    table = PublicTable.of(public, weight or (None if files is None else files.weight))
    if files is not None and table.hashed_files is not None:
        moved = files.moved_to(table.hashed_files)  # raises an error if the files are not the plan's
        return table if table.hashed_files.csv == moved.csv else PublicTable(moved, table.weight)
    return table
