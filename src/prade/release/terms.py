"""The terms of a run: who pays, how its plan is chosen, what is allowed; its saved plan and its drafted schema."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from prade.core.errors import DataError, PradeError
from prade.core.execution import EFFORT
from prade.core.numbers import exact
from prade.data.declare.groups import Groups
from prade.data.declare.schema import Schema
from prade.data.public.table import PublicTable
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.privacy.protection import Unit
from prade.release.release import PLAN

PathName = str | PathLike[str]
Method = Literal["prade", "algorithm-2"]


@dataclass(frozen=True)
class Terms:
    """The options of a run other than its task and tables: who pays, how the plan is chosen, what is allowed."""

    ledger: Ledger | PathName | None = None
    cap: Number | Budget | None = None
    tune: bool = True
    effort: float = EFFORT
    seconds: float | None = None
    again: bool = False
    weak_protection: bool = False
    against_advice: bool = False
    method: Method = "prade"


def cap_of(cap: Number | Budget | None, budget: Budget) -> Budget | None:
    """A cap in the budget's kind; a number is an epsilon or a rho."""
    if cap is None or isinstance(cap, Budget):
        return cap
    if budget.kind == "approx":
        raise PradeError(f"cap is {cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)")
    return Budget(budget.kind, (exact(cap, "the cap"),))


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
    plan = Plan.load(path)
    if (different := plan.task.differs_from(task)) is not None:
        raise DataError(f"{path} was made with another {different}: use the one it was made with, or another folder")
    if plan.public is None or table.hashed_files is None:
        return plan
    return plan.with_public(plan.public.moved_to(table.hashed_files))  # refuses other files


def drafted_schema(folder: str | PathLike[str], table: PublicTable, groups: Groups, unit: Unit) -> Schema:
    """Draft a schema from the public table and keep it beside the folder; a kept plan has its own."""
    if (path := saved_plan(folder)) is not None:
        plan = Plan.load(path)
        return plan.schema.with_invariants(plan.invariants)
    path = Path(f"{Path(folder).absolute()}.schema.toml")
    names = table.typed.column_names
    identifiers = [name for name in names if name == unit.person_id]
    drafted = table.draft([name for name in groups.names if name in names], identifiers)
    if path.exists() and Schema.load(path) != drafted:
        raise PradeError(
            f"{path} is not the draft of this public table; if you corrected it, give it as schema=, otherwise "
            "remove it"
        )
    drafted.save(path)
    warnings.warn(
        f"no schema was given, so {path} was drafted from the public table, with {len(drafted.coded)} columns. "
        "Read it, add the values that private rows may have but the public table lacks, and give it as schema=",
        stacklevel=4,
    )
    return drafted
