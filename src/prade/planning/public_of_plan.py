"""The public table of a plan: the one in the files that it names, or one that the caller gives."""

from __future__ import annotations

from typing import Any

from prade.core.errors import DataError
from prade.data.public.table import PublicTable
from prade.planning.plan import Plan


def public_of(plan: Plan, public: Any = None, weight: str | None = None) -> PublicTable:
    """Return the public table that the caller gives, or the one in the files that the plan of a release names.

    Files that only the plan names must pass `PublicFiles.checked`.
    """
    files = plan.public
    if public is None:
        if files is None:
            raise DataError("the release does not name its public files", remedy="public")
        return PublicTable(files.checked(), weight)
    table = PublicTable.of(public, weight or (None if files is None else files.weight))
    if files is not None and table.hashed_files is not None:
        now = table.hashed_files
        moved = files.moved_to(now)  # raises an error if the files are not the plan's
        same = now.csv == moved.csv and set(now.files) == set(moved.files)
        return table if same else PublicTable(moved, table.weight)
    return table


def plan_with_checked_files(plan: Plan, public: Any = None) -> Plan:
    """Return the plan with its public files where the caller says they are; what must not be used is refused.

    A table in memory takes the place of files, which are then neither used nor checked.
    """
    if plan.public is None:
        return plan
    now = None if public is None else PublicTable.of(public).hashed_files
    if public is not None and now is None:
        return plan
    return plan.with_public(plan.public.checked() if now is None else plan.public.moved_to(now))
