"""Plans in few words, the smallest of them, and ledgers that can pay for them."""

import pyarrow as pa

from prade import Budget, Column, Ledger, Level, Plan, Schema, Unit, Workload

ONE_ROW = Unit(1)


def plan_of(schema, *levels, groups=None, budget=1, unit=ONE_ROW, dataset="survey", noise=None):
    """A plan; a budget that is not a `Budget` is an epsilon."""
    budget = budget if isinstance(budget, Budget) else Budget.pure(budget)
    return Plan(dataset, schema, budget, unit, list(levels), groups, noise=noise)


def ledger_for(plan, path, cap=None):
    """A ledger in which the plan's data set has a cap: the plan's own budget, or another budget or epsilon."""
    ledger = Ledger(path)
    cap = plan.budget if cap is None else cap
    ledger.open_dataset(plan.dataset, plan.unit, cap if isinstance(cap, Budget) else Budget.pure(cap))
    return ledger


SCHEMA = Schema([Column("AGE", "numeric", edges=[18, 65])])
AGES = Workload.all_marginals(SCHEMA, 1)
EVERYBODY = Level((), AGES)

IN_TOWNS = pa.table({"AGE": [3, 70, 80, 41], "TOWN": ["a", "b", "elsewhere", "b"]})
PERSONS = pa.table({"AGE": [3, 70, 80], "PERSON": [1, 2, 3]})
TWO_ROWS = Unit(2, person_id="PERSON")


def town_plan(*towns):
    """The ages in each of these towns."""
    return plan_of(SCHEMA, Level("TOWN", AGES), groups={"TOWN": list(towns)}, dataset="people")


TOWN_PLAN = town_plan("a", "b")
