"""Plans in few words, and ledgers that can pay for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prade import Budget, Ledger, Level, Plan, Schema, Unit

ONE_ROW = Unit(1)


def plan_of(
    schema: Schema,
    *levels: Level,
    groups: Any = None,
    budget: Any = 1,
    unit: Unit = ONE_ROW,
    dataset: str = "survey",
    noise: Any = None,
) -> Plan:
    """A plan; a budget that is not a `Budget` is an epsilon."""
    budget = budget if isinstance(budget, Budget) else Budget.pure(budget)
    return Plan(dataset, schema, budget, unit, list(levels), groups, noise=noise)


def ledger_for(plan: Plan, path: Path | str, cap: Any = None) -> Ledger:
    """A ledger in which the plan's data set has a cap: the plan's own budget, or another budget or epsilon."""
    ledger = Ledger(path)
    cap = plan.budget if cap is None else cap
    ledger.open_dataset(plan.dataset, plan.unit, cap if isinstance(cap, Budget) else Budget.pure(cap))
    return ledger
