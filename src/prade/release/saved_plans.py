"""Where the plan of a release is, in its folder or beside it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from prade.core.errors import DataError
from prade.data.public.table import PublicTable
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.release.release import PLAN

PathName = str | PathLike[str]


def plan_beside(folder: PathName) -> Path:
    """Return the path where the plan is kept until the folder exists: FOLDER.plan.toml."""
    return Path(f"{Path(folder).absolute()}.plan.toml")


def saved_plan(folder: PathName) -> Path | None:
    """Return the path of the plan in or beside a release folder, if there is one."""
    return next((file for file in (Path(folder) / PLAN, plan_beside(folder)) if file.exists()), None)


def kept_plan(task: Task, table: PublicTable, folder: PathName) -> Plan | None:
    """Load the plan in or beside a release folder, if there is one. It must be for the same task and public files."""
    if (path := saved_plan(folder)) is None:
        return None
    made = Plan.load(path)
    if (different := made.task.differs_from(task)) is not None:
        raise DataError(
            f"{path} was made with another {different}: use the one it was made with, or choose another folder"
        )
    if made.public is None or table.hashed_files is None:
        return made
    return made.with_public(made.public.moved_to(table.hashed_files))  # refuses other files
