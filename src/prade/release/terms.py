"""The terms of a run: who pays, how its plan is chosen, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from prade.core.errors import PradeError
from prade.core.execution import EFFORT
from prade.core.numbers import exact
from prade.planning.task import Task
from prade.privacy.budget import Budget, Number
from prade.privacy.ledger import Ledger
from prade.release.unrecorded_releases import need_on_record, not_entered

PathName = str | PathLike[str]


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
    ask_cap: Callable[[Task, Ledger], Budget] | None = None  # to ask a person for the cap of a new data set


def with_cap(terms: Terms, task: Task, folder: PathName, account: Ledger) -> Terms:
    """Add a cap to the terms if the ledger does not know the data set: ask a person for it, or refuse."""
    if terms.cap is not None or account.knows(task.dataset):
        return terms
    need_on_record(task, Path(folder).resolve(), account)
    if terms.ask_cap is None:
        raise not_entered(task, account)
    return replace(terms, cap=terms.ask_cap(task, account))


def cap_of(cap: Number | Budget | None, budget: Budget) -> Budget | None:
    """Convert a cap to the budget's kind; a number is an epsilon or a rho."""
    if cap is None or isinstance(cap, Budget):
        return cap
    if budget.kind == "approx":
        raise PradeError(f"cap is {cap!r}, but the plan has a delta too: give cap=Budget.approx(epsilon, delta)")
    return Budget(budget.kind, (exact(cap, "the cap"),))
