"""People who have an age: the smallest world that can be measured."""

from __future__ import annotations

import pyarrow as pa

from prade import Column, Level, Plan, Schema, Unit, Workload
from worlds.plans import plan_of

SCHEMA = Schema([Column("AGE", "numeric", edges=[18, 65])])
AGES = Workload.all_marginals(SCHEMA, 1)
EVERYBODY = Level((), AGES)

IN_TOWNS = pa.table({"AGE": [3, 70, 80, 41], "TOWN": ["a", "b", "elsewhere", "b"]})
PERSONS = pa.table({"AGE": [3, 70, 80], "PERSON": [1, 2, 3]})
TWO_ROWS = Unit(2, person_id="PERSON")


def town_plan(*towns: str) -> Plan:
    """The ages in each of these towns."""
    return plan_of(SCHEMA, Level("TOWN", AGES), groups={"TOWN": list(towns)}, dataset="people")


TOWN_PLAN = town_plan("a", "b")
