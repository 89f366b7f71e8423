"""What a run refuses before it plans: later would be too late."""

from __future__ import annotations

from os import PathLike
from typing import Any

from prade.data.public.table import PublicTable
from prade.measuring.counts import Counting
from prade.measuring.public_overlap import refuse_public
from prade.measuring.source import open_source
from prade.planning.plan import Plan
from prade.planning.task import Task
from prade.privacy.budget import Budget
from prade.privacy.protection import refuse_weak
from prade.release.saved_plans import saved_plan


def refuse_early(
    budget: Budget, private: Any, table: PublicTable, folder: str | PathLike[str], weak_protection: bool
) -> None:
    """Refuse what `measure` would refuse before anything reads the public table, which may be the private one.

    The user of the run names both tables, and a plan that was made from private rows would tell of them; so contents
    of files are compared here, before anything is reserved. A run that continues with a kept plan does not rehearse,
    so `measure` refuses in time.
    """
    if saved_plan(folder) is None:
        refuse_weak(budget, weak_protection)
        refuse_public(private, table.source)


def refuse_unfit(task: Task, private: Any, folder: str | PathLike[str]) -> None:
    """Refuse a private table that lacks a column, or declares a type that cannot fit, before a long rehearsal.

    No row is read. A run that continues with a kept plan does not rehearse.
    """
    if saved_plan(folder) is None:
        source = open_source(private)
        try:
            Counting.of_plan(source, Plan.simplest(task))
        finally:
            if source is not private:
                source.close()
